//! `cargo xtask ebpf`: the BPF object.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    object_file, process,
    staleness::{self, Record},
    toolchain::{self, Toolchain},
    workspace::Workspace,
};

const TARGET: &str = "bpfel-unknown-none";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Build nothing; fail if the committed object does not belong to the sources.
    #[arg(long, conflicts_with = "output")]
    check: bool,
    /// Build to FILE and leave the committed object alone.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let Options { check, output } = options;
    if *check {
        staleness::check(workspace)?;
        println!("psi-user/bpf/psitrace.bpf.o belongs to the sources");
        return Ok(());
    }
    if let Some(output) = output {
        let Built { object, .. } = build(workspace)?;
        return write(output, &object);
    }

    let Built { object, record } = build(workspace)?;
    write(&workspace.committed_object(), &object)?;
    let mut json = serde_json::to_vec_pretty(&record)?;
    json.push(b'\n');
    write(&workspace.committed_record(), &json)
}

/// A built object and what it was built from.
pub(crate) struct Built {
    pub(crate) object: Vec<u8>,
    record: Record,
}

pub(crate) fn build(workspace: &Workspace) -> Result<Built> {
    let toolchain = Toolchain::find()?;
    let bpf_linker = toolchain::bpf_linker_version()?;
    // Before the build: an edit made meanwhile must leave the object stale, not fresh.
    let sources_sha256 = staleness::sources_sha256(&workspace.root)?;

    // Apart from the host's build: the two would otherwise wait for each other's lock.
    let target = workspace.target.join("bpf");
    let mut cargo = toolchain.cargo()?;
    cargo.current_dir(&workspace.root);
    cargo.args(["build", "--package", "psi-ebpf", "--bin", "psitrace-bpf", "--release"]);
    cargo
        .args(["-Z", "build-std=core", "--target", TARGET, "--target-dir"])
        .arg(&target);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rustflags(workspace, &toolchain)?);
    if let Err(error) = process::run(&mut cargo) {
        bail!("the BPF build with {} failed: {error:#}", toolchain.version);
    }

    let linked = target.join(TARGET).join("release/psitrace-bpf");
    let object = object_file::strip(&staleness::read(&linked)?)?;
    let record = Record {
        sources_sha256,
        object_sha256: staleness::sha256(&object),
        rustc: toolchain.version,
        bpf_linker,
        target: TARGET.to_owned(),
    };
    Ok(Built { object, record })
}

/// The flags, separated the way cargo wants it so that a folder may have a space in its name.
fn rustflags(workspace: &Workspace, toolchain: &Toolchain) -> Result<OsString> {
    let mut flags: Vec<OsString> = [
        // BTF is derived from full debug information.
        "-Cdebuginfo=2",
        "-Clink-arg=--btf",
        // Atomics that return the old value are v3 instructions.
        "-Ctarget-cpu=v3",
    ]
    .map(OsString::from)
    .to_vec();

    // BTF holds the names of source files: without this two checkouts give two objects.
    let mut places = vec![(workspace.root.clone(), "/psitrace")];
    if let Some(home) = process::cargo_home() {
        // The folder of a registry is named after it, and a mirror has another name. It is there
        // already: xtask's own dependencies came out of it. rustc takes the last flag that fits.
        let registries = subfolders(&home.join("registry/src"));
        places.push((home, "/cargo"));
        places.extend(registries.into_iter().map(|registry| (registry, "/crates")));
    }
    places.push((toolchain.source.clone(), "/rust"));
    for (place, name) in places {
        // rustc sees some files under their real name, others as they were passed to it.
        let real = fs::canonicalize(&place).with_context(|| format!("cannot resolve {}", place.display()))?;
        if real != place {
            flags.push(remap(&real, name));
        }
        flags.push(remap(&place, name));
    }
    Ok(flags.join(OsStr::new("\u{1f}")))
}

/// Sorted, so that the flags stay the same and cargo need not build again.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

fn remap(place: &Path, name: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(place);
    flag.push("=");
    flag.push(name);
    flag
}

/// Replaces `path` in one go: a psi-user build that runs meanwhile sees the old or the new bytes.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&part, bytes))
        .and_then(|()| fs::rename(&part, path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}: {} bytes", path.display(), bytes.len());
    Ok(())
}
