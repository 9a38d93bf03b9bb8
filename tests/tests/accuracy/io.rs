//! Waiting for disks and memory.

use std::path::Path;

use tempfile::{NamedTempFile, TempDir};
use tests::{
    cgroup::Cgroup,
    disk,
    load::{Load, Working},
    machine,
};

use crate::{folder, load, measure::Place, tool};

/// Starts four threads of fio on a file, with these options more.
fn fio(place: &Place, load: Load, file: &Path, options: &str) -> Option<Working> {
    let file = file.to_str().expect("temporary names are UTF-8");
    let line = format!(
        "fio --name=accuracy --filename={file} --size=64m --numjobs=4 --thread --time_based --runtime=600 {options}"
    );
    tool(&place.session, load, &line)
}

#[test]
fn direct_reads_of_1_mib() {
    direct_reads("direct_reads_of_1_mib", "1m");
}

#[test]
fn direct_reads_of_64_kib() {
    direct_reads("direct_reads_of_64_kib", "64k");
}

/// Tens of thousands of waits a second, as short as they get.
#[test]
fn direct_reads_of_4_kib() {
    direct_reads("direct_reads_of_4_kib", "4k");
}

fn direct_reads(name: &'static str, block: &str) {
    let Some(place) = Place::new(name) else { return };
    let Some(file) = disk::file(&place.session, folder()) else {
        return;
    };
    let options = format!("--direct=1 --rw=randread --bs={block}");
    let Some(_readers) = fio(&place, load().within(&place.own), file.path(), &options) else {
        return;
    };
    place.check(&["io some"]);
}

#[test]
fn fsync_storm() {
    let Some(place) = Place::new("fsync_storm") else {
        return;
    };
    let folder = TempDir::new_in(folder()).expect("a folder in the build folder");
    let options = "--rw=randwrite --bs=4k --fsync=1";
    let file = folder.path().join("written");
    let Some(_writers) = fio(&place, load().within(&place.own), &file, options) else {
        return;
    };
    place.check(&["io some"]);
}

/// A file four times as large as the memory for it, read over and over. A memory controller of v1 sets the limit for
/// tasks whose pressure is counted in their v2 cgroup.
#[test]
fn memory_thrash_under_a_limit() {
    let Some(place) = Place::new("memory_thrash_under_a_limit") else {
        return;
    };
    let Some(mount) = machine::v1_mount("memory") else {
        return place.session.skip("no v1 memory hierarchy is mounted");
    };
    let Some(file) = disk::file(&place.session, folder()) else {
        return;
    };
    forget(&file);
    let limit = Cgroup::below(&mount, place.session.name());
    limit.set("memory.limit_in_bytes", &(disk::SIZE / 4).to_string());
    let reader = || load().within(&limit).within(&place.own);
    let _readers = [0; 2].map(|_| reader().start_on(&["read-cached"], file.path()));
    place.check(&["memory some"]);
}

/// So that the file's pages are charged to the cgroup that reads it.
fn forget(file: &NamedTempFile) {
    rustix::fs::fadvise(file.as_file(), 0, None, rustix::fs::Advice::DontNeed).expect("advice is taken");
}
