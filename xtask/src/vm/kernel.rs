//! Debian's kernels: found and fetched through apt, unpacked but not installed.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
};

use anyhow::{Context as _, Result, bail};

use crate::process;

/// A kernel that is asked for; the newest of its series is taken, for Debian's archive keeps no old ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `6.12`
    series: String,
    /// `cloud`, `rt`, or `amd64` for the plain one.
    flavour: String,
}

impl Wanted {
    pub(crate) fn new(series: &str, flavour: &str) -> Self {
        Self {
            series: series.to_owned(),
            flavour: flavour.to_owned(),
        }
    }

    /// An expression for the names of its packages: `linux-image-6.12.117+deb12-rt-amd64-unsigned`.
    fn packages(&self) -> String {
        let Self { series, flavour } = self;
        let flavour = match flavour.as_str() {
            "amd64" => String::new(),
            flavour => format!("-{flavour}"),
        };
        let series = series.replace('.', r"\.");
        format!(r"^linux-image-{series}\.[^-]*(-[0-9]+)?{flavour}-amd64-unsigned$")
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { series, flavour } = self;
        write!(f, "{series}-{flavour}")
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (series, flavour) = text.split_once('-').unwrap_or((text, "cloud"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_series = series
            .split_once('.')
            .is_some_and(|(a, b)| is_number(a) && is_number(b));
        let is_flavour = !flavour.is_empty() && flavour.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_series && is_flavour {
            Ok(Self::new(series, flavour))
        } else {
            Err("expected a series and perhaps a flavour, such as 6.12 or 6.12-rt".to_owned())
        }
    }
}

/// An unpacked kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// As `uname -r` has it.
    pub(crate) release: String,
    pub(crate) image: PathBuf,
    root: PathBuf,
}

impl Kernel {
    /// The newest one that apt knows, fetched if it is not in `cache` yet.
    pub(crate) fn find(wanted: &Wanted, cache: &Path) -> Result<Self> {
        let cache = cache.join(wanted.to_string());
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let root = fetch(wanted, &cache).or_else(|error| {
            let root = cached(&cache).ok_or(error)?;
            println!("{wanted}: apt does not help, taking the one from before");
            anyhow::Ok(root)
        })?;
        Self::unpacked(root)
    }

    fn unpacked(root: PathBuf) -> Result<Self> {
        let boot = root.join("boot");
        let image = entries(&boot)
            .into_iter()
            .find(|path| name_of(path).starts_with("vmlinuz-"))
            .with_context(|| format!("no kernel in {}", boot.display()))?;
        let release = name_of(&image).trim_start_matches("vmlinuz-").to_owned();
        Ok(Self { release, image, root })
    }

    /// What the kernel must load for its disk: names and contents, what others need first.
    pub(crate) fn disk_modules(&self) -> Result<Vec<(String, Vec<u8>)>> {
        const DRIVERS: [(&str, &str); 2] = [("CONFIG_VIRTIO_PCI", "virtio_pci"), ("CONFIG_VIRTIO_BLK", "virtio_blk")];
        let Self { release, root, .. } = self;
        let config = root.join("boot").join(format!("config-{release}"));
        let config = fs::read_to_string(&config).with_context(|| format!("cannot read {}", config.display()))?;
        let mut files = BTreeMap::new();
        // Where /lib is /usr/lib packages may have either.
        for lib in ["lib", "usr/lib"] {
            find_modules(&root.join(lib).join("modules").join(release), &mut files);
        }
        let mut modules = Vec::new();
        for (option, driver) in DRIVERS {
            let built_in = format!("{option}=y");
            if !config.lines().any(|line| line == built_in) {
                add_module(driver, &files, &mut modules)?;
            }
        }
        Ok(modules)
    }
}

/// A module after those that it needs.
fn add_module(name: &str, files: &BTreeMap<String, PathBuf>, modules: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    if modules.iter().any(|(other, _)| other == name) {
        return Ok(());
    }
    let file = files.get(name).with_context(|| format!("no module {name}"))?;
    let needed = process::output(Command::new("modinfo").args(["-F", "depends"]).arg(file))?;
    for other in needed.split(',').map(str::trim).filter(|other| !other.is_empty()) {
        add_module(&module_name(other), files, modules)?;
    }
    modules.push((name.to_owned(), decompressed(file)?));
    Ok(())
}

/// All modules below a folder, by their names.
fn find_modules(folder: &Path, files: &mut BTreeMap<String, PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            find_modules(&path, files);
        } else if let Some((name, _)) = name_of(&path).split_once(".ko") {
            files.insert(module_name(name), path);
        }
    }
}

/// In a module's name both characters are the same.
fn module_name(name: &str) -> String {
    name.replace('-', "_")
}

fn decompressed(file: &Path) -> Result<Vec<u8>> {
    let program = match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(file).with_context(|| format!("cannot read {}", file.display())),
    };
    let output = Command::new(program).arg("-dc").arg(file).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{program} cannot unpack {} ({})", file.display(), output.status);
    }
    Ok(output.stdout)
}

/// The root of the newest kernel, unpacked. Older ones are removed.
fn fetch(wanted: &Wanted, cache: &Path) -> Result<PathBuf> {
    let package = newest(wanted)?;
    let uris = process::output(Command::new("apt-get").args(["-qq", "download", "--print-uris", &package]))?;
    // 'address' name size hash
    let deb = uris
        .split_whitespace()
        .nth(1)
        .context("apt-get download names no file")?;
    let root = cache.join(deb.trim_end_matches(".deb"));
    if root.is_dir() {
        return Ok(root);
    }

    println!("fetching {package}");
    let part = cache.join("part");
    if part.exists() {
        fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))?;
    }
    fs::create_dir_all(&part)?;
    process::output(
        Command::new("apt-get")
            .current_dir(&part)
            .args(["-qq", "download", &package]),
    )?;
    let file = entries(&part)
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get download left no file")?;
    process::output(Command::new("dpkg").arg("-x").arg(&file).arg(&part))?;
    fs::remove_file(&file)?;
    for old in entries(cache).into_iter().filter(|path| *path != part) {
        // One that stays is no more than a waste of space.
        let _ = fs::remove_dir_all(old);
    }
    fs::rename(&part, &root)?;
    Ok(root)
}

fn cached(cache: &Path) -> Option<PathBuf> {
    entries(cache)
        .into_iter()
        .find(|path| name_of(path).starts_with("linux-image-"))
}

fn newest(wanted: &Wanted) -> Result<String> {
    let search = || {
        let found = process::output(Command::new("apt-cache").args(["search", "--names-only", &wanted.packages()]))?;
        let names = found.lines().filter_map(|line| line.split_whitespace().next());
        anyhow::Ok(names.max_by(|a, b| compare(a, b)).map(ToOwned::to_owned))
    };
    if let Some(package) = search()? {
        return Ok(package);
    }
    // A fresh machine knows no packages.
    process::output(Command::new("apt-get").args(["-qq", "update"]))?;
    search()?.with_context(|| format!("apt knows no kernel {wanted}"))
}

/// As people sort versions: numbers by value.
fn compare(a: &str, b: &str) -> Ordering {
    numbers(a).cmp(&numbers(b))
}

fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_named_by_series_and_flavour() {
        assert_eq!("6.1".parse(), Ok(Wanted::new("6.1", "cloud")));
        assert_eq!("6.12-rt".parse(), Ok(Wanted::new("6.12", "rt")));
        for bad in ["", "6", "6.", "6.1-", "6.1.2", "x.y", "6.1-a b"] {
            assert!(bad.parse::<Wanted>().is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn packages_of_one_flavour_are_looked_for() {
        let cloud = r"^linux-image-6\.1\.[^-]*(-[0-9]+)?-cloud-amd64-unsigned$";
        assert_eq!(Wanted::new("6.1", "cloud").packages(), cloud);
        let plain = r"^linux-image-6\.1\.[^-]*(-[0-9]+)?-amd64-unsigned$";
        assert_eq!(Wanted::new("6.1", "amd64").packages(), plain);
    }

    #[test]
    fn versions_are_compared_by_value() {
        let old = "linux-image-6.12.9+deb12-cloud-amd64-unsigned";
        let new = "linux-image-6.12.117+deb12-cloud-amd64-unsigned";
        assert_eq!(compare(old, new), Ordering::Less);
        let (old, new) = ("linux-image-6.1.0-9-cloud-amd64", "linux-image-6.1.0-57-cloud-amd64");
        assert_eq!(compare(old, new), Ordering::Less);
    }
}
