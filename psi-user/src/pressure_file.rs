//! The kernel's own pressure files, where there are any.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Resources that the kernel may have a file for.
pub const RESOURCES: [&str; 4] = ["cpu", "memory", "io", "irq"];

/// `total` of both lines of a pressure file, us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The line `some`; irq has none.
    pub some_us: Option<u64>,
    /// The line `full`.
    pub full_us: Option<u64>,
}

/// A cgroup's pressure file: in /proc for the root, which has none of its own.
pub fn path(cgroup_directory: &Path, is_root: bool, resource: &str) -> PathBuf {
    if is_root {
        PathBuf::from("/proc/pressure").join(resource)
    } else {
        cgroup_directory.join(format!("{resource}.pressure"))
    }
}

/// Reads a pressure file. Each read makes the kernel sample anew.
///
/// None where the kernel has no such file, or does not keep it (PSI off at boot or for the cgroup).
///
/// # Errors
/// Other errors than these.
pub fn read(path: &Path) -> io::Result<Option<Totals>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(parse(&text))),
        // ENOENT: not built in, or off at boot. EOPNOTSUPP: off, on some kernels.
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn parse(text: &str) -> Totals {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        line.split_whitespace()
            .find_map(|field| field.strip_prefix("total=")?.parse().ok())
    };
    Totals {
        some_us: total("some "),
        full_us: total("full "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_totals_by_line() {
        let text = "some avg10=0.22 avg60=0.17 avg300=1.11 total=58761459\n\
                    full avg10=0.00 avg60=0.13 avg300=0.96 total=57\n";
        assert_eq!(
            parse(text),
            Totals {
                some_us: Some(58_761_459),
                full_us: Some(57)
            }
        );
        let irq = "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(
            parse(irq),
            Totals {
                some_us: None,
                full_us: Some(5)
            }
        );
    }

    #[test]
    fn an_absent_file_is_not_zero() {
        assert!(matches!(read(Path::new("/proc/no-such-pressure")), Ok(None)));
    }
}
