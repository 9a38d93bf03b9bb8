//! What a guest boots into: busybox, psitrace, its tests, and modules for the disk, all in memory.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::kernel::Kernel;
use crate::process;

const INIT: &[u8] = include_bytes!("init.sh");
const FOLDERS: [&str; 7] = ["bin", "dev", "modules", "proc", "sys", "tmp", "run"];

/// The archive, for `kernel` and with `programs` in /bin.
pub(crate) fn build(kernel: &Kernel, programs: &[PathBuf]) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for folder in FOLDERS {
        archive.folder(Path::new(folder));
    }
    archive.file(Path::new("init"), INIT);
    let busybox = find("busybox").context("busybox is not installed")?;
    let mut libraries = BTreeSet::new();
    for program in [&busybox].into_iter().chain(programs) {
        let name = program.file_name().context("a program has a name")?;
        archive.file(&Path::new("bin").join(name), &read(program)?);
        libraries.extend(libraries_of(program));
    }
    for library in libraries {
        archive.file(&library, &read(&library)?);
    }
    for (n, (name, module)) in kernel.disk_modules()?.iter().enumerate() {
        // The shell sorts them: what others need comes first.
        archive.file(&Path::new("modules").join(format!("{n:02}-{name}.ko")), module);
    }
    Ok(archive.finish())
}

fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&process::search_path())
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The loader included; none for a static program, of which ldd complains.
fn libraries_of(program: &Path) -> Vec<PathBuf> {
    let listed = process::output(Command::new("ldd").arg(program)).unwrap_or_default();
    libraries_in(&listed)
}

/// From `libc.so.6 => /lib/libc.so.6 (0x...)` and `/lib64/ld-linux-x86-64.so.2 (0x...)`.
fn libraries_in(listed: &str) -> Vec<PathBuf> {
    let words = listed.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

/// A cpio archive in the form that the kernel unpacks ("newc", see the kernel's
/// Documentation/driver-api/early-userspace/buffer-format.rst).
#[derive(Debug, Default)]
struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<PathBuf>,
    entries: u32,
}

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// With the folders that it is in.
    fn folder(&mut self, path: &Path) {
        let path = relative(path);
        if path == Path::new("") || !self.folders.insert(path.to_owned()) {
            return;
        }
        if let Some(parent) = path.parent() {
            self.folder(parent);
        }
        self.entry(path, FOLDER, &[]);
    }

    /// Executable, which does no harm to other files.
    fn file(&mut self, path: &Path, content: &[u8]) {
        let path = relative(path);
        if let Some(parent) = path.parent() {
            self.folder(parent);
        }
        self.entry(path, PROGRAM, content);
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) {
        self.entries += 1;
        let name = path.as_os_str().as_bytes();
        let (links, size, name_size) = (1, content.len() as u32, name.len() as u32 + 1);
        self.bytes.extend(b"070701");
        // inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name's size, checksum.
        for field in [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name);
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry(Path::new("TRAILER!!!"), 0, &[]);
        self.bytes
    }
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_ldd() {
        let listed = "\tlinux-vdso.so.1 (0x00007f17e892e000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f17e821e000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f17e8930000)
";
        let wanted = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(libraries_in(listed), wanted.map(PathBuf::from));
        assert_eq!(libraries_in("\tnot a dynamic executable\n"), Vec::<PathBuf>::new());
    }

    #[test]
    fn archive_has_parents_before_children() {
        let mut archive = Archive::default();
        archive.file(Path::new("/a/b/c"), b"hello");
        archive.file(Path::new("a/d"), b"");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.starts_with(b"070701"));
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<_> = ["a\0", "a/b\0", "a/b/c\0", "a/d\0", "TRAILER!!!\0"]
            .iter()
            .map(|name| text.find(name).expect("an entry"))
            .collect();
        assert!(names.is_sorted());
        assert_eq!(text.matches("070701").count(), 5);
    }
}
