//! Processes that wake each other through pipes.

use std::{
    env,
    hint::spin_loop,
    io::{self, Read as _, Write as _},
    process::{Child, Command, Stdio},
};

use crate::ready;

/// Starts pairs of processes and waits for them.
pub(crate) fn ping_pong(pairs: usize) -> io::Result<()> {
    let mut children = Vec::new();
    for _ in 0..pairs {
        let (reader, other_writer) = io::pipe()?;
        let (other_reader, writer) = io::pipe()?;
        children.push(half(&["pong", "--serve"], reader.into(), writer.into())?);
        children.push(half(&["pong"], other_reader.into(), other_writer.into())?);
    }
    ready()?;
    for mut child in children {
        child.wait()?;
    }
    Ok(())
}

fn half(arguments: &[&str], reader: Stdio, writer: Stdio) -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .args(arguments)
        .stdin(reader)
        .stdout(writer)
        .spawn()
}

/// Gives back each byte that comes.
pub(crate) fn pong(serve: bool) -> io::Result<()> {
    let mut ball = [0];
    let (mut reader, mut writer) = (io::stdin().lock(), unbuffered()?);
    if serve {
        writer.write_all(&ball)?;
        // For an emulator that runs one CPU at a time: the others' turn.
        spin_loop();
    }
    loop {
        reader.read_exact(&mut ball)?;
        writer.write_all(&ball)?;
        // For an emulator that runs one CPU at a time: the others' turn.
        spin_loop();
    }
}

fn unbuffered() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd as _;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}
