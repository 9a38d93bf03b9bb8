//! Frames whose checksums are right and whose content may be anything: two bytes of length, then the content, for each.
//! Of the length's bits the highest says that the frame builds on the one before.

#![no_main]

use libfuzzer_sys::fuzz_target;
use miniz_oxide::deflate::compress_to_vec;
use psi_user::record::Replay;

const DELTA: u16 = 1 << 15;

fuzz_target!(|bytes: &[u8]| {
    let mut file = beginning();
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = u16::from_le_bytes(*length);
        let (content, after) = after.split_at(after.len().min((length & !DELTA).into()));
        file.extend(frame(content, length & DELTA != 0));
        rest = after;
    }
    let mut replay = Replay::from_bytes(file).expect("a recording");
    for frame in 0..replay.len() {
        let _ = replay.frame(frame);
    }
});

fn beginning() -> Vec<u8> {
    let mut bytes = b"\x89PSIREC\n\x01\0\0\0".to_vec();
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn frame(content: &[u8], is_delta: bool) -> Vec<u8> {
    let packed = compress_to_vec(content, 0);
    let mut bytes = Vec::new();
    bytes.extend((packed.len() as u32).to_le_bytes());
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.push(is_delta.into());
    bytes.extend([0; 16]);
    bytes.extend(crc32fast::hash(&packed).to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(packed);
    bytes
}
