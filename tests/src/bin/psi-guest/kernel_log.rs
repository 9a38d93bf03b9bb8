//! What the kernel complains about while the tests run.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::OpenOptionsExt as _,
};

use rustix::fs::OFlags;

/// The kernel's log from now on.
#[derive(Debug)]
pub(crate) struct KernelLog {
    file: File,
}

impl KernelLog {
    pub(crate) fn from_now_on() -> Self {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open("/dev/kmsg")
            .expect("/dev/kmsg opens");
        file.seek(SeekFrom::End(0)).expect("/dev/kmsg has an end");
        Self { file }
    }

    /// Messages of level error or worse, and warnings with a stack.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut record = [0; 8192];
        // One record a read; would block at the end.
        while let Ok(length) = self.file.read(&mut record) {
            let record = String::from_utf8_lossy(&record[..length]);
            // `priority,sequence,time,flags;message`, then lines of variables.
            let Some((head, message)) = record.split_once(';') else {
                continue;
            };
            let message = message.lines().next().unwrap_or_default();
            let level = head
                .split(',')
                .next()
                .and_then(|priority| priority.parse::<u32>().ok())
                .map(|priority| priority & 7);
            if level.is_some_and(|level| level <= 3)
                || ["WARNING:", "BUG:", "stall"].iter().any(|word| message.contains(word))
            {
                complaints.push(message.to_owned());
            }
        }
        complaints
    }
}
