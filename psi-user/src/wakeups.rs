//! One descriptor for everything that the tracer has to be woken for.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use aya::maps::{MapData, RingBuf};
use psi_common::layout::NewCgroup;
use rustix::{
    event::epoll,
    io::{Errno, read},
    time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime},
};

/// When slots are waiting for their grace time.
const SOON: Duration = Duration::from_millis(25);

/// The programs' ring buffers, the averaging period, and a second look at slots that could not be freed yet.
pub(crate) struct Wakeups {
    epoll: OwnedFd,
    ring: RingBuf<MapData>,
    new_cgroups: RingBuf<MapData>,
    period: OwnedFd,
    soon: OwnedFd,
}

impl Wakeups {
    pub(crate) fn new(ring: RingBuf<MapData>, new_cgroups: RingBuf<MapData>, period: Duration) -> io::Result<Self> {
        let timer = || {
            timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )
        };
        let this = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            ring,
            new_cgroups,
            period: timer()?,
            soon: timer()?,
        };
        for fd in [
            this.ring.as_fd(),
            this.new_cgroups.as_fd(),
            this.period.as_fd(),
            this.soon.as_fd(),
        ] {
            this.watch(fd)?;
        }
        set(&this.period, period, period)?;
        Ok(this)
    }

    /// Wakes for another descriptor, too, when it can be read.
    pub(crate) fn watch(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        Ok(())
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Takes everything that is there; says whether an averaging period has passed.
    pub(crate) fn take(&mut self) -> bool {
        while self.ring.next().is_some() {}
        let mut expirations = [0; 8];
        let _: Result<usize, Errno> = read(&self.soon, &mut expirations);
        read(&self.period, &mut expirations).is_ok()
    }

    /// The next cgroup that the programs tell of, see [`NewCgroup`].
    pub(crate) fn new_cgroup(&mut self) -> Option<NewCgroup> {
        let entry = self.new_cgroups.next()?;
        // SAFETY: plain integers, as many bytes as the programs' own type has, or it is not read.
        (entry.len() >= size_of::<NewCgroup>()).then(|| unsafe { entry.as_ptr().cast::<NewCgroup>().read_unaligned() })
    }

    /// Wakes once more after a short while. Should that fail, the averaging period does.
    pub(crate) fn again_soon(&self) {
        let _ = set(&self.soon, SOON, Duration::ZERO);
    }
}

fn set(timer: &OwnedFd, first: Duration, then: Duration) -> io::Result<()> {
    let spec = |time: Duration| Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let new = Itimerspec {
        it_interval: spec(then),
        it_value: spec(first),
    };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &new)?;
    Ok(())
}
