//! A CPU that goes and comes.

use std::{
    fs,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use tests::machine;

use crate::{load, measure::Place};

#[test]
fn cpu_goes_and_comes() {
    let Some(place) = Place::new("cpu_goes_and_comes") else {
        return;
    };
    let cpu = machine::load_cpu();
    let Some(switch) = Switch::of(cpu) else {
        // Not a skip: no set-up gives a machine that.
        println!("left out: CPU {cpu} cannot be taken offline here");
        return;
    };
    let _spinners = load().within(&place.own).behind().start(&["spin", "--threads", "3"]);
    let _pairs = load().within(&place.own).behind().start(&["ping-pong", "--pairs", "2"]);
    let mut times = 0;
    place.check_while(&["cpu some"], || {
        switch.turn("0");
        sleep(Duration::from_millis(700));
        switch.turn("1");
        sleep(Duration::from_millis(1300));
        times += 1;
    });
    println!("CPU {cpu} was taken offline {times} times");
    assert!(times > 1, "expected more than one turn, saw {times}");
}

/// Takes a CPU offline and back.
struct Switch {
    file: PathBuf,
    /// Waits for the end of this process, whatever its cause, and brings the CPU back.
    keeper: Child,
}

impl Switch {
    fn of(cpu: usize) -> Option<Self> {
        let file = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        // Writing what it is tells whether it may be written.
        fs::write(&file, "1").ok()?;
        let keeper = Command::new("sh")
            .args(["-c", "read -r nothing; echo 1 > \"$0\""])
            .arg(&file)
            // Ctrl-C ends the test, not the keeper.
            .process_group(0)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let switch = Self { file, keeper };
        let allowed = fs::write(&switch.file, "0").is_ok();
        switch.turn("1");
        allowed.then_some(switch)
    }

    fn turn(&self, online: &str) {
        fs::write(&self.file, online)
            .unwrap_or_else(|error| panic!("writing {online} to {}: {error}", self.file.display()));
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if let Some(stdin) = &mut self.keeper.stdin {
            // It may be dead; then so is the CPU's hope, and the next line says so.
            let _ = stdin.write_all(b"\n");
        }
        let ended = self.keeper.wait();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!("a CPU may be offline: write 1 to {}", self.file.display());
        }
    }
}
