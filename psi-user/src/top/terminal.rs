//! The terminal: taken over as a whole, given back however the program ends.

use std::{
    io::{self, BufWriter, Write, stdout},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use crossterm::{
    cursor::Show,
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size},
};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, layout::Rect};

/// Room for a large frame, so that it reaches the terminal in one piece.
const FRAME_BYTES: usize = 64 * 1024;

/// For terminals that do not know their size, such as serial lines.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// Whether the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Output>>>,
    area: Rect,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn enter() -> io::Result<Self> {
        restore_on_panic();
        let area = area()?;
        // The size is set by hand, since ratatui's own way cannot know USUAL_SIZE.
        let options = TerminalOptions {
            viewport: Viewport::Fixed(area),
        };
        let backend = CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, Output));
        let screen = Self {
            terminal: Terminal::with_options(backend, options)?,
            area,
        };
        // From here on, dropping the screen gives the terminal back.
        TAKEN.store(true, SeqCst);
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        Ok(screen)
    }

    /// Draws a frame in the terminal's present size.
    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let area = area()?;
        if area != self.area {
            self.area = area;
            self.terminal.resize(area)?;
        }
        self.terminal.draw(view)?;
        Ok(())
    }

    /// Has the next frame drawn in full.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.terminal.resize(self.area)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Standard output while the terminal is ours. What comes later is dropped: the rest of a frame after a panic, and the
/// cursor that ratatui shows at the end, which panics if the terminal is gone, with standard error on it.
struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if TAKEN.load(SeqCst) {
            stdout().write(bytes)
        } else {
            Ok(bytes.len())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if TAKEN.load(SeqCst) { stdout().flush() } else { Ok(()) }
    }
}

fn area() -> io::Result<Rect> {
    let (mut width, mut height) = size()?;
    if (width, height) == (0, 0) {
        (width, height) = USUAL_SIZE;
    }
    Ok(Rect::new(0, 0, width, height))
}

/// Gives the terminal back, once. Errors are of no use: the terminal may be gone.
fn restore() {
    if TAKEN.swap(false, SeqCst) {
        _ = execute!(stdout(), LeaveAlternateScreen, Show);
        _ = disable_raw_mode();
    }
}

/// Has the panic's message printed on a sane terminal, not on a screen that is about to go.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            previous(info);
        }));
    });
}
