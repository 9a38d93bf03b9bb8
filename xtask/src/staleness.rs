//! Does the committed BPF object belong to the sources beside it?
//!
//! psi-user embeds a committed object so that plain stable Rust builds it. The record beside the
//! object tells whether someone changed the BPF sources and forgot to build.

use std::{fs, io, path::Path};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::workspace::Workspace;

/// The crates an object is built from.
const SOURCE_CRATES: [&str; 2] = ["psi-common", "psi-ebpf"];

/// `psitrace.bpf.json`.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Record {
    pub(crate) sources_sha256: String,
    pub(crate) object_sha256: String,
    pub(crate) rustc: String,
    pub(crate) bpf_linker: String,
    pub(crate) target: String,
}

/// Fails if the committed object is not what the sources give.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let problem = match problem(workspace) {
        Ok(None) => return Ok(()),
        Ok(Some(problem)) => problem.to_owned(),
        Err(error) => format!("{error:#}"),
    };
    bail!("committed object is stale: run `cargo xtask ebpf` and commit psi-user/bpf ({problem})")
}

fn problem(workspace: &Workspace) -> Result<Option<&'static str>> {
    let record: Record =
        serde_json::from_slice(&read(&workspace.committed_record())?).context("cannot understand psitrace.bpf.json")?;
    if record.object_sha256 != sha256(&read(&workspace.committed_object())?) {
        return Ok(Some(
            "psitrace.bpf.o is not the object that psitrace.bpf.json describes",
        ));
    }
    if record.sources_sha256 != sources_sha256(&workspace.root)? {
        return Ok(Some("psi-ebpf or psi-common changed since it was built"));
    }
    Ok(None)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// One hash over the names and contents of all sources; the order of folder entries, the
/// checkout's place and the files' times do not matter.
pub(crate) fn sources_sha256(root: &Path) -> Result<String> {
    let mut files = Vec::new();
    for name in SOURCE_CRATES {
        files.push(format!("{name}/Cargo.toml"));
        list(root, &format!("{name}/src"), &mut files).with_context(|| format!("cannot list {name}/src"))?;
    }
    files.sort();

    let mut hash = Sha256::new();
    for file in files {
        let content = read(&root.join(&file))?;
        hash.update(&file);
        // Name and length first: no two trees then give the same stream of bytes.
        hash.update([0]);
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    }
    Ok(hex(&hash.finalize()))
}

fn list(root: &Path, folder: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(root, &name, files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Result<tempfile::TempDir> {
        let root = tempfile::tempdir()?;
        for (path, content) in files {
            let path = root.path().join(path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, content)?;
        }
        Ok(root)
    }

    const FILES: [(&str, &str); 5] = [
        ("psi-common/Cargo.toml", "common"),
        ("psi-common/src/lib.rs", "lib"),
        ("psi-ebpf/Cargo.toml", "ebpf"),
        ("psi-ebpf/src/hooks/sched.rs", "sched"),
        ("psi-ebpf/src/main.rs", "main"),
    ];

    fn workspace(root: &Path) -> Workspace {
        Workspace {
            root: root.to_owned(),
            target: root.join("target"),
        }
    }

    fn record(root: &Path, object: &[u8]) -> Result<Record> {
        Ok(Record {
            sources_sha256: sources_sha256(root)?,
            object_sha256: sha256(object),
            rustc: String::new(),
            bpf_linker: String::new(),
            target: String::new(),
        })
    }

    #[test]
    fn hashes_of_known_bytes() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
    }

    #[test]
    fn place_and_order_do_not_matter() -> Result<()> {
        let mut reversed = FILES;
        reversed.reverse();
        let (one, other) = (tree(&FILES)?, tree(&reversed)?);
        assert_eq!(sources_sha256(one.path())?, sources_sha256(other.path())?);
        Ok(())
    }

    #[test]
    fn every_file_matters_and_nothing_else_does() -> Result<()> {
        let root = tree(&FILES)?;
        let before = sources_sha256(root.path())?;
        fs::write(root.path().join("psi-ebpf/README.md"), "not a source")?;
        assert_eq!(sources_sha256(root.path())?, before);
        for (path, _) in FILES {
            let path = root.path().join(path);
            let content = fs::read(&path)?;
            fs::write(&path, "changed")?;
            assert_ne!(sources_sha256(root.path())?, before, "{}", path.display());
            fs::write(&path, content)?;
        }
        Ok(())
    }

    #[test]
    fn moved_bytes_change_the_hash() -> Result<()> {
        let mut moved = FILES;
        moved[0].1 = "commonl";
        moved[1].1 = "ib";
        let (one, other) = (tree(&FILES)?, tree(&moved)?);
        assert_ne!(sources_sha256(one.path())?, sources_sha256(other.path())?);
        Ok(())
    }

    #[test]
    fn check_names_what_is_stale() -> Result<()> {
        let root = tree(&FILES)?;
        let workspace = workspace(root.path());
        fs::create_dir_all(root.path().join("psi-user/bpf"))?;
        let stale = |what: &str| {
            let error = check(&workspace).map_or_else(|error| error.to_string(), |()| "ok".into());
            assert!(error.contains(what), "{error}");
        };

        stale("cannot read");
        let record = record(root.path(), b"object")?;
        fs::write(workspace.committed_record(), serde_json::to_vec(&record)?)?;
        fs::write(workspace.committed_object(), "other")?;
        stale("is not the object");
        fs::write(workspace.committed_object(), "object")?;
        stale("ok");
        fs::write(root.path().join("psi-ebpf/src/main.rs"), "changed")?;
        stale("changed since");
        Ok(())
    }
}
