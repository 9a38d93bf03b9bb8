//! The kernel's own pressure files, where there are any.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::fields::{Kind, Resource};

/// `total` of both lines of a pressure file, us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The line `some`; irq has none.
    pub some_us: Option<u64>,
    /// The line `full`.
    pub full_us: Option<u64>,
}

/// A pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lines {
    /// The line `some`; irq has none.
    pub some: Option<Line>,
    /// The line `full`; cpu of old kernels has none.
    pub full: Option<Line>,
}

impl Totals {
    /// One line's.
    pub const fn of(self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::Some => self.some_us,
            Kind::Full => self.full_us,
        }
    }
}

impl Lines {
    /// One line.
    pub const fn of(self, kind: Kind) -> Option<Line> {
        match kind {
            Kind::Some => self.some,
            Kind::Full => self.full,
        }
    }
}

/// A line of a pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// Running average over 10 s, % (0 to 100); likewise the next two.
    pub avg10: f64,
    /// Over 60 s.
    pub avg60: f64,
    /// Over 300 s.
    pub avg300: f64,
    /// Total stall time since boot, or since the cgroup was made, us.
    pub total_us: u64,
}

/// A cgroup's pressure file: in /proc for the root, which has none of its own.
pub fn path(cgroup_directory: &Path, is_root: bool, resource: Resource) -> PathBuf {
    let resource = resource.name();
    if is_root {
        PathBuf::from("/proc/pressure").join(resource)
    } else {
        cgroup_directory.join(format!("{resource}.pressure"))
    }
}

/// Reads the totals of a pressure file. Each read makes the kernel sample anew.
///
/// None where the kernel has no such file, or does not keep it (PSI off at boot or for the cgroup).
///
/// # Errors
/// Other errors than these.
pub fn read(path: &Path) -> io::Result<Option<Totals>> {
    let total = |line: Option<Line>| line.map(|line| line.total_us);
    Ok(read_lines(path)?.map(|Lines { some, full }| Totals {
        some_us: total(some),
        full_us: total(full),
    }))
}

/// The same for all that is in the file.
///
/// # Errors
/// As [`read`].
pub fn read_lines(path: &Path) -> io::Result<Option<Lines>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(parse(&text))),
        // ENOENT: not built in, or off at boot. EOPNOTSUPP: off, on some kernels.
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn parse(text: &str) -> Lines {
    let line = |kind: Kind| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(kind.name())?.strip_prefix(' '))?;
        let field = |name: &str| line.split_whitespace().find_map(|field| field.strip_prefix(name));
        let average = |name| field(name)?.parse().ok();
        Some(Line {
            avg10: average("avg10=")?,
            avg60: average("avg60=")?,
            avg300: average("avg300=")?,
            total_us: field("total=")?.parse().ok()?,
        })
    };
    Lines {
        some: line(Kind::Some),
        full: line(Kind::Full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines() {
        let text = "some avg10=0.22 avg60=0.17 avg300=1.11 total=58761459\n\
                    full avg10=0.00 avg60=0.13 avg300=0.96 total=57\n";
        let some = Line {
            avg10: 0.22,
            avg60: 0.17,
            avg300: 1.11,
            total_us: 58_761_459,
        };
        let full = Line {
            avg10: 0.0,
            avg60: 0.13,
            avg300: 0.96,
            total_us: 57,
        };
        assert_eq!(
            parse(text),
            Lines {
                some: Some(some),
                full: Some(full)
            }
        );
        let irq = parse("full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
        assert_eq!((irq.some, irq.full.map(|line| line.total_us)), (None, Some(5)));
        assert_eq!(parse("some avg10=x avg60=0.17 avg300=1.11 total=5\n"), Lines::default());
    }

    #[test]
    fn an_absent_file_is_not_zero() {
        assert!(matches!(read(Path::new("/proc/no-such-pressure")), Ok(None)));
    }
}
