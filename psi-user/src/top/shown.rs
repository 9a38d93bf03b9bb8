//! The view and what it shows: the tracer's figures, or the frames of a recording.

use std::time::Duration;

use anyhow::{Result, bail};
use crossterm::event::{Event, KeyCode, KeyEventKind};
use tokio::time::Instant;

use super::{
    Feed, Options, Source, View,
    player::{Player, Travel},
    search::{Looked, Search},
    state::Asked,
    style::Palette,
    trail::{POINT_NS, POINTS},
};

/// How long a search looks before it lets keys and the screen have their turn.
const LOOK: Duration = Duration::from_millis(50);

/// The view and what it shows.
pub(super) struct Shown<'a> {
    pub(super) view: View,
    pub(super) playing: Playing<'a>,
    /// A search that is not at its end.
    pub(super) search: Option<Search>,
    /// Whether what the view knows of the past is that of another frame.
    is_stale: bool,
    start: Instant,
}

pub(super) enum Playing<'a> {
    Live(&'a mut dyn Source),
    Replay(Player<'a>),
}

impl<'a> Shown<'a> {
    pub(super) fn new(feed: Feed<'a>, options: Options) -> Result<Self> {
        let mut view = View::new(options, Palette::from_environment());
        let playing = match feed {
            Feed::Live(source) => Playing::Live(source),
            Feed::Replay(history) => {
                let Some(mut player) = Player::new(history) else {
                    bail!("the recording has no frames");
                };
                view.at(player.place());
                view.update(player.frame()?);
                Playing::Replay(player)
            }
        };
        Ok(Self {
            view,
            playing,
            search: None,
            is_stale: false,
            start: Instant::now(),
        })
    }

    /// Whether time changes what is shown.
    pub(super) const fn ticks(&self) -> bool {
        let is_playing = !self.view.state.paused && self.search.is_none();
        matches!(self.playing, Playing::Live(_)) || is_playing
    }

    /// Takes an event. Any key ends a search, but for the one that began it; Esc does nothing else then.
    pub(super) fn asked(&mut self, event: &Event) -> Asked {
        let is_key = matches!(event, Event::Key(key) if key.kind != KeyEventKind::Release);
        let Some(search) = self.search.as_ref().filter(|_| is_key) else {
            return self.view.asked(event);
        };
        let forward = search.forward;
        let is_escape = matches!(event, Event::Key(key) if key.code == KeyCode::Esc);
        self.view.state.message = None;
        let asked = if is_escape {
            Asked::Nothing
        } else {
            self.view.asked(event)
        };
        if asked == (Asked::Spike { forward }) {
            return Asked::Nothing;
        }
        self.search = None;
        asked
    }

    pub(super) fn tick(&mut self) -> Result<()> {
        match &mut self.playing {
            Playing::Live(source) => {
                let snapshot = source.snapshot()?;
                self.view.update(snapshot);
                Ok(())
            }
            Playing::Replay(_) => self.travel(Travel::Frames(1)),
        }
    }

    pub(super) fn housekeeping(&mut self) -> Result<()> {
        match &mut self.playing {
            Playing::Live(source) => source.housekeeping(),
            Playing::Replay(_) => Ok(()),
        }
    }

    pub(super) fn travel(&mut self, travel: Travel) -> Result<()> {
        let Playing::Replay(player) = &mut self.playing else {
            return Ok(());
        };
        if let Err(why) = player.go(travel) {
            self.stop(why);
            return Ok(());
        }
        self.arrive(travel == Travel::Frames(1))
    }

    /// Begins to look for a spike.
    pub(super) fn search(&mut self, forward: bool) -> Result<()> {
        let Playing::Replay(player) = &self.playing else {
            return Ok(());
        };
        self.search = Some(player.search(forward, self.view.spikes()));
        self.look()
    }

    /// Looks on for a while.
    pub(super) fn look(&mut self) -> Result<()> {
        let (Playing::Replay(player), Some(search)) = (&mut self.playing, &mut self.search) else {
            return Ok(());
        };
        let forward = search.forward;
        match player.look(search, std::time::Instant::now() + LOOK)? {
            Looked::Until(at) => {
                let count = player.place().count;
                self.view.state.message = Some(format!("looking: at frame {at}/{count}; Esc stops it"));
                return Ok(());
            }
            Looked::Found(_) => self.arrive(false)?,
            Looked::Nowhere if forward => self.stop("no spike from here to the end"),
            Looked::Nowhere => self.stop("no spike from the beginning to here"),
        }
        self.search = None;
        Ok(())
    }

    /// A recording stands still where it cannot go on.
    fn stop(&mut self, why: &str) {
        self.view.state.message = Some(why.to_owned());
        self.view.state.paused = true;
    }

    /// Shows the frame that the player went to.
    fn arrive(&mut self, is_next: bool) -> Result<()> {
        let Playing::Replay(player) = &mut self.playing else {
            return Ok(());
        };
        if self.search.is_some() {
            self.view.state.message = None;
        }
        self.is_stale |= !is_next;
        if self.is_stale {
            self.view.state.trails.clear();
        }
        self.view.at(player.place());
        self.view.update(player.frame()?);
        Ok(())
    }

    /// Finds out what the details need and do not have.
    pub(super) fn complete(&mut self) -> Result<()> {
        let Self {
            view,
            playing,
            is_stale,
            start,
            ..
        } = self;
        if let Playing::Replay(player) = playing
            && let Some(kept) = view.state.pane.as_ref().map(|pane| pane.id)
            && *is_stale
        {
            // Only now, for these are many frames to read.
            let trails = &mut view.state.trails;
            trails.clear();
            for frame in player.before(POINT_NS * POINTS as u64) {
                trails.record(&frame?, Some(kept));
            }
            trails.record(&player.frame()?, Some(kept));
            *is_stale = false;
        }
        if let Some(path) = view.wants() {
            let inspection = match playing {
                Playing::Live(source) => source.inspect(path),
                Playing::Replay(_) => None,
            };
            view.inspected(inspection, start.elapsed().as_nanos() as u64);
        }
        Ok(())
    }

    /// On a terminal that hands over whole lines, Enter is what sends the other keys.
    pub(super) fn is_line_end(&self, event: &Event) -> bool {
        let is_enter = matches!(event, Event::Key(key) if key.code == KeyCode::Enter);
        is_enter && self.view.state.prompt.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fields::Stall,
        model::Snapshot,
        top::{
            History, Inspection,
            fixture::{Recording, cgroup, snapshot},
        },
    };

    /// A frame each two seconds.
    fn recording() -> Recording {
        let frame = |n: u64| Snapshot {
            // Each is a point of a chart.
            time_ns: snapshot(Vec::new()).time_ns.next_multiple_of(POINT_NS) + n * POINT_NS,
            interval_ns: POINT_NS,
            ..snapshot(vec![cgroup("/", 1, 0.0), cgroup("/a", 2, n as f64)])
        };
        Recording((0..10).map(frame).collect())
    }

    fn key(shown: &mut Shown<'_>, code: KeyCode) -> Asked {
        shown.asked(&Event::Key(code.into()))
    }

    /// The points that the details know of.
    fn known(shown: &Shown<'_>) -> usize {
        let state = &shown.view.state;
        let now_ns = state.snapshot().map_or(0, |snapshot| snapshot.time_ns);
        state.trails.points(2, Stall::CPU_SOME, now_ns).iter().flatten().count()
    }

    #[test]
    fn a_recording_stands_still_until_it_is_played_and_stops_at_its_end() {
        let mut recording = recording();
        let mut shown = Shown::new(Feed::Replay(&mut recording), Options::default()).expect("frames");
        assert!(!shown.ticks());
        key(&mut shown, KeyCode::Char('p'));
        assert!(shown.ticks());
        for index in 1..10 {
            shown.tick().expect("frames can be read");
            assert_eq!(shown.view.state.place.map(|place| place.index), Some(index));
        }
        assert!(shown.ticks());
        shown.tick().expect("frames can be read");
        assert!(!shown.ticks());
        assert_eq!(shown.view.state.message.as_deref(), Some("the recording ends here"));
    }

    #[test]
    fn details_of_a_recording_know_what_was_before() {
        let mut recording = recording();
        let mut shown = Shown::new(Feed::Replay(&mut recording), Options::default()).expect("frames");
        shown.travel(Travel::To(u64::MAX)).expect("frames can be read");
        shown.complete().expect("frames can be read");
        assert_eq!(known(&shown), 1);
        key(&mut shown, KeyCode::Char('j'));
        key(&mut shown, KeyCode::Enter);
        shown.complete().expect("frames can be read");
        assert_eq!(known(&shown), 10);
        shown.travel(Travel::Frames(-3)).expect("frames can be read");
        shown.complete().expect("frames can be read");
        assert_eq!(known(&shown), 7);
        shown.travel(Travel::Frames(1)).expect("frames can be read");
        assert_eq!(known(&shown), 8);
    }

    /// A recording that takes its time.
    struct Slow(Recording);

    impl History for Slow {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn time_ns(&self, index: usize) -> u64 {
            self.0.time_ns(index)
        }

        fn frame(&mut self, index: usize) -> Result<Snapshot> {
            std::thread::sleep(LOOK / 10);
            self.0.frame(index)
        }
    }

    #[test]
    fn keys_do_not_wait_for_a_search() {
        let percent = |n| if n == 70 { 50.0 } else { 0.0 };
        let frames = (0..100).map(|n| snapshot(vec![cgroup("/", 1, percent(n))]));
        let mut recording = Slow(Recording(frames.collect()));
        let mut shown = Shown::new(Feed::Replay(&mut recording), Options::default()).expect("frames");
        let is_looking = |shown: &Shown<'_>| {
            let message = shown.view.state.message.as_deref();
            let is_told = message.is_some_and(|message| message.starts_with("looking: at frame "));
            assert_eq!(shown.search.is_some(), is_told);
            is_told
        };
        let index = |shown: &Shown<'_>| shown.view.state.place.map(|place| place.index);
        key(&mut shown, KeyCode::Char('p'));
        shown.search(true).expect("frames can be read");
        assert!(is_looking(&shown) && !shown.ticks());
        // The same key goes on with it, Esc ends it.
        assert_eq!(key(&mut shown, KeyCode::Char('n')), Asked::Nothing);
        shown.look().expect("frames can be read");
        assert!(is_looking(&shown));
        assert_eq!(key(&mut shown, KeyCode::Esc), Asked::Nothing);
        assert!(!is_looking(&shown) && shown.ticks());
        assert_eq!(index(&shown), Some(0));
        // Another key does what it always does.
        shown.search(true).expect("frames can be read");
        assert!(is_looking(&shown));
        assert_eq!(key(&mut shown, KeyCode::Right), Asked::Travel(Travel::Frames(1)));
        assert!(!is_looking(&shown));

        shown.search(true).expect("frames can be read");
        while is_looking(&shown) {
            shown.look().expect("frames can be read");
        }
        assert_eq!(index(&shown), Some(70));
        shown.search(false).expect("frames can be read");
        while is_looking(&shown) {
            shown.look().expect("frames can be read");
        }
        assert_eq!(
            shown.view.state.message.as_deref(),
            Some("no spike from the beginning to here")
        );
        assert!(!shown.ticks());
    }

    #[test]
    fn an_empty_recording_is_an_error() {
        assert!(Shown::new(Feed::Replay(&mut Recording(Vec::new())), Options::default()).is_err());
    }

    /// Always the same; counts what it is asked for.
    #[derive(Default)]
    struct Counting {
        inspected: Vec<String>,
    }

    impl Source for Counting {
        fn snapshot(&mut self) -> Result<Snapshot> {
            Ok(snapshot(vec![cgroup("/", 1, 0.0), cgroup("/a", 2, 1.0)]))
        }

        fn inspect(&mut self, path: &str) -> Option<Inspection> {
            self.inspected.push(path.to_owned());
            Some(Inspection::default())
        }
    }

    #[test]
    fn the_kernel_is_asked_once_an_interval_and_for_what_is_shown_only() {
        let mut source = Counting::default();
        let mut shown = Shown::new(Feed::Live(&mut source), Options::default()).expect("a source");
        let mut step = |code: Option<KeyCode>| {
            match code {
                Some(code) => _ = key(&mut shown, code),
                None => shown.tick().expect("figures"),
            }
            shown.complete().expect("figures");
        };
        step(None);
        step(Some(KeyCode::Enter));
        step(Some(KeyCode::Char('a')));
        step(None);
        step(Some(KeyCode::Char('j')));
        step(Some(KeyCode::Esc));
        step(None);
        assert_eq!(source.inspected, ["/", "/", "/a"]);
    }
}
