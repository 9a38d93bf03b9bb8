//! Files that are cut, changed or made up.

use std::path::Path;

use proptest::{collection::vec, prelude::*};
use psi_user::record::{Error, Recorder, Replay, VERSION};

use crate::{recorded, replayed, snapshots::run, text};

const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 33;

/// Where the frames begin, and the last one ends: as docs/record-format.md has it.
fn bounds(bytes: &[u8]) -> Vec<usize> {
    let mut bounds = vec![FILE_HEADER];
    while let Some(length) = bytes.get(bounds[bounds.len() - 1]..).and_then(<[u8]>::first_chunk::<4>) {
        let end = bounds[bounds.len() - 1] + FRAME_HEADER + u32::from_le_bytes(*length) as usize;
        bounds.push(end);
    }
    bounds
}

/// Makes a frame's checksums right, so that what is behind them is met.
fn seal(frame: &mut [u8]) {
    let content = crc32fast::hash(&frame[FRAME_HEADER..]);
    frame[25..29].copy_from_slice(&content.to_le_bytes());
    let header = crc32fast::hash(&frame[..29]);
    frame[29..33].copy_from_slice(&header.to_le_bytes());
}

/// Reads all that can be read.
fn read_all(bytes: Vec<u8>) {
    let Ok(mut replay) = Replay::from_bytes(bytes) else {
        return;
    };
    for n in 0..replay.len() {
        let _ = replay.frame(n);
    }
    for n in (0..replay.len()).rev() {
        let _ = replay.frame(n);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A torn frame is the only one that is lost, and it is told where.
    #[test]
    fn a_cut_file_loses_its_last_frame_only(snapshots in run(), at in any::<prop::sample::Index>()) {
        let bytes = recorded(&snapshots);
        let bounds = bounds(&bytes);
        prop_assert_eq!(*bounds.last().expect("bounds"), bytes.len());
        let cut = FILE_HEADER + at.index(bytes.len() - FILE_HEADER);
        let whole = bounds.iter().filter(|&&end| end <= cut).count() - 1;
        let mut replay = Replay::from_bytes(bytes[..cut].to_vec()).expect("a recording");
        prop_assert_eq!(replay.len(), whole);
        for (n, snapshot) in snapshots.iter().enumerate().take(whole) {
            prop_assert_eq!(text(&replay.frame(n).expect("a frame")), text(snapshot));
        }
        let is_torn = !bounds.contains(&cut);
        prop_assert_eq!(replay.damage().len(), usize::from(is_torn));
        if is_torn {
            prop_assert_eq!(replay.damage()[0].offset, bounds[whole] as u64);
            prop_assert_eq!(replay.damage()[0].frames, 1);
        }
    }

    /// Nothing is read past a frame: what follows makes no difference to it.
    #[test]
    fn what_follows_a_frame_makes_no_difference(
        snapshots in run(),
        n in any::<prop::sample::Index>(),
        rest in vec(any::<u8>(), 0..200),
    ) {
        let n = n.index(snapshots.len());
        let mut bytes = recorded(&snapshots);
        bytes.truncate(bounds(&bytes)[n + 1]);
        bytes.extend(rest);
        let mut replay = Replay::from_bytes(bytes).expect("a recording");
        for (n, snapshot) in snapshots.iter().enumerate().take(n + 1) {
            prop_assert_eq!(text(&replay.frame(n).expect("a frame")), text(snapshot));
        }
    }

    /// A changed bit never shows as another figure: its frame, and those that build on it, are missing.
    #[test]
    fn a_changed_bit_is_noticed(snapshots in run(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = recorded(&snapshots);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let Ok(mut replay) = Replay::from_bytes(bytes.clone()) else {
            prop_assert!(at < FILE_HEADER);
            return Ok(());
        };
        // Two bytes of the beginning are of no use yet; their checksum is.
        prop_assert!(at >= FILE_HEADER);
        let bad = bounds(&recorded(&snapshots)).iter().filter(|&&begin| begin <= at).count() - 1;
        prop_assert_eq!(replay.len(), bad);
        prop_assert!(!replay.damage().is_empty());
        for (n, snapshot) in snapshots.iter().enumerate().take(bad) {
            prop_assert_eq!(text(&replay.frame(n).expect("a frame")), text(snapshot));
        }
    }

    #[test]
    fn anything_can_be_read(bytes: Vec<u8>) {
        read_all(bytes);
    }

    /// With right checksums, so that the content is decoded.
    #[test]
    fn any_content_can_be_read(
        snapshots in run(),
        n in any::<prop::sample::Index>(),
        content in vec(any::<u8>(), 0..300),
        is_delta: bool,
    ) {
        let mut bytes = recorded(&snapshots);
        let n = n.index(snapshots.len());
        bytes.truncate(bounds(&bytes)[n]);
        let packed = miniz_oxide::deflate::compress_to_vec(&content, 1);
        let mut frame = vec![0; FRAME_HEADER];
        frame[..4].copy_from_slice(&(packed.len() as u32).to_le_bytes());
        frame[4..8].copy_from_slice(&(content.len() as u32).to_le_bytes());
        frame[8] = u8::from(is_delta);
        frame.extend(packed);
        seal(&mut frame);
        bytes.extend(frame);
        read_all(bytes);
    }

    /// A true frame's content with a few bytes changed gets further than one that is made up.
    #[test]
    fn changed_content_can_be_read(
        snapshots in run(),
        n in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let bytes = recorded(&snapshots);
        let bounds = bounds(&bytes);
        let n = n.index(snapshots.len());
        let frame = &bytes[bounds[n]..bounds[n + 1]];
        let mut content = miniz_oxide::inflate::decompress_to_vec(&frame[FRAME_HEADER..]).expect("own content");
        for (at, byte) in changes {
            let at = at.index(content.len());
            content[at] = byte;
        }
        let packed = miniz_oxide::deflate::compress_to_vec(&content, 1);
        let mut changed = frame[..FRAME_HEADER].to_vec();
        changed[..4].copy_from_slice(&(packed.len() as u32).to_le_bytes());
        changed.extend(packed);
        seal(&mut changed);
        read_all([&bytes[..bounds[n]], &changed, &bytes[bounds[n + 1]..]].concat());
    }
}

/// The header promises more than there is, or more than may be: no memory is taken for it.
#[test]
fn hostile_lengths_are_refused() {
    let good = recorded(&[crate::snapshots::with_cpu_some(1, 1.0)]);
    for (length, full_length) in [(u32::MAX, 10), (10, u32::MAX), (64 << 20, 64 << 20), (0, 64 << 20)] {
        let mut bytes = good.clone();
        let frame = &mut bytes[FILE_HEADER..];
        frame[..4].copy_from_slice(&length.to_le_bytes());
        frame[4..8].copy_from_slice(&full_length.to_le_bytes());
        seal(frame);
        let replay = Replay::from_bytes(bytes).expect("a recording");
        assert!(
            replay.is_empty() && !replay.damage().is_empty(),
            "{length} {full_length}"
        );
    }
}

/// A small frame that would unpack to more than it says ends there.
#[test]
fn a_frame_never_unpacks_to_more_than_it_says() {
    let mut bytes = recorded(&[crate::snapshots::with_cpu_some(1, 1.0)]);
    bytes.truncate(FILE_HEADER);
    let packed = miniz_oxide::deflate::compress_to_vec(&vec![0; 32 << 20], 9);
    let mut frame = vec![0; FRAME_HEADER];
    frame[..4].copy_from_slice(&(packed.len() as u32).to_le_bytes());
    frame[4..8].copy_from_slice(&100_u32.to_le_bytes());
    frame.extend(packed);
    seal(&mut frame);
    bytes.extend(frame);
    let mut replay = Replay::from_bytes(bytes).expect("a recording");
    assert_eq!(replay.len(), 1);
    assert!(matches!(replay.frame(0), Err(Error::Malformed { .. })));
}

#[test]
fn other_files_are_told_apart() {
    let good = recorded(&[crate::snapshots::with_cpu_some(1, 1.0)]);
    assert_eq!(replayed(&good).len(), 1);
    // Not written to the end of its beginning.
    for length in 0..FILE_HEADER {
        assert!(Replay::from_bytes(good[..length].to_vec()).is_ok_and(|replay| replay.is_empty()));
    }
    let mut newer = good.clone();
    newer[8..10].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let error = Replay::from_bytes(newer).expect_err("a newer version");
    assert!(matches!(error, Error::Newer { version, .. } if version == VERSION + 1));
    assert!(error.to_string().contains("newer psitrace"), "{error}");
    for foreign in [&b"\x7fELF"[..], b"x", b"\x89PNG\r\n\x1a\n and so on"] {
        assert!(matches!(
            Replay::from_bytes(foreign.to_vec()),
            Err(Error::Foreign { .. })
        ));
    }
}

/// Whichever of the two it is.
#[test]
fn half_a_recording_is_shown_without_the_other() {
    let good = recorded(&[crate::snapshots::with_cpu_some(1, 1.0)]);
    let mut newer = good.clone();
    newer[8..10].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let mut damaged = good.clone();
    damaged[12] ^= 1;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let files = psi_user::record::files(&path);
    for bad in [&b"something else"[..], &newer, &damaged] {
        for n in 0..2 {
            std::fs::write(&files[n], bad).expect("a file");
            std::fs::write(&files[1 - n], &good).expect("a file");
            let mut replay = Replay::open(&path).expect("half of it");
            let left_out = replay.left_out().map(ToString::to_string).unwrap_or_default();
            assert!(
                left_out.starts_with(&files[n].display().to_string()),
                "saw {left_out:?}"
            );
            assert_eq!(replay.len(), 1);
            assert!(replay.frame(0).is_ok());
            // It is still not recorded to.
            assert!(Recorder::open(&path, crate::LONG).is_err());
            assert_eq!(std::fs::read(&files[n]).expect("it is there"), bad);
            // Without a frame in the other there is nothing to show.
            for rest in [&good[..FILE_HEADER], b""] {
                std::fs::write(&files[1 - n], rest).expect("a file");
                assert!(Replay::open(&path).is_err());
            }
            std::fs::remove_file(&files[1 - n]).expect("it is there");
            assert!(Replay::open(&path).is_err());
        }
    }
    for file in &files {
        std::fs::write(file, &good).expect("a file");
    }
    assert!(Replay::open(&path).is_ok_and(|replay| replay.left_out().is_none()));
    std::fs::remove_file(&files[0]).expect("it is there");
    assert!(Replay::open(&path).is_ok_and(|replay| replay.left_out().is_none()));
}

/// What a log rotation or a sweep of old files does.
#[test]
fn a_file_that_is_taken_away_is_told() {
    let snapshot = crate::snapshots::with_cpu_some(1, 1.0);
    let spoil: [fn(&Path); 2] = [
        |path| std::fs::remove_file(path).expect("it is there"),
        |path| std::fs::write(path, b"").expect("it can be emptied"),
    ];
    for spoil in spoil {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording");
        let (mut recorder, _) = Recorder::open(&path, crate::LONG).expect("a recording");
        recorder.write(&snapshot).expect("room");
        spoil(&path);
        let error = recorder.write(&snapshot).expect_err("it is gone");
        assert!(matches!(error, Error::Gone { .. }), "{error}");
    }
}
