//! A whole file, as it may lie on a disk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use psi_user::record::Replay;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut replay) = Replay::from_bytes(bytes.to_vec()) else {
        return;
    };
    for frame in 0..replay.len() {
        let _ = replay.frame(frame);
    }
});
