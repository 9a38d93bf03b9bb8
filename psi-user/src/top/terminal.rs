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
    style::Print,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size},
};
use ratatui::{
    Terminal, TerminalOptions, Viewport,
    backend::CrosstermBackend,
    buffer::{Buffer, Cell},
    layout::Rect,
    style::Modifier,
};

use super::style::is_dumb;

/// Room for a large frame, so that it reaches the terminal in one piece.
const FRAME_BYTES: usize = 64 * 1024;

/// For terminals that do not know their size, such as serial lines.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// Has presses, the wheel and their places told (xterm's modes 1000 and 1006). Not crossterm's command: that has each
/// movement told too, and a frame would be drawn for each.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// Before lines on a dumb terminal, which cannot show what is chosen otherwise.
const CHOSEN: &str = "> ";

/// Whether the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
pub(super) struct Screen {
    /// None on a terminal that cannot move its cursor: there frame follows upon frame, as text.
    terminal: Option<Terminal<CrosstermBackend<BufWriter<Output>>>>,
    area: Rect,
    mouse: bool,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn enter() -> io::Result<Self> {
        restore_on_panic();
        let area = area()?;
        if is_dumb() {
            return Ok(Self {
                terminal: None,
                area,
                mouse: false,
            });
        }
        // The size is set by hand, since ratatui's own way cannot know USUAL_SIZE.
        let options = TerminalOptions {
            viewport: Viewport::Fixed(area),
        };
        let backend = CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, Output));
        let screen = Self {
            terminal: Some(Terminal::with_options(backend, options)?),
            area,
            mouse: true,
        };
        // Dropping the screen gives the terminal back.
        screen.take()?;
        Ok(screen)
    }

    fn take(&self) -> io::Result<()> {
        TAKEN.store(true, SeqCst);
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, Print(mouse(self.mouse)))
    }

    /// Gives the terminal back for a while.
    pub(super) fn leave() {
        restore();
    }

    /// Takes the terminal over again, whatever became of it meanwhile.
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        if self.is_plain() {
            return Ok(());
        }
        // Else raw mode would be taken for set.
        restore();
        self.take()?;
        self.clear()
    }

    /// Whether frame follows upon frame, and keys come by lines.
    pub(super) const fn is_plain(&self) -> bool {
        self.terminal.is_none()
    }

    /// Says who gets the mouse: we, or the terminal for its own text selection.
    pub(super) fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        if self.is_plain() {
            return Ok(());
        }
        self.mouse = on;
        execute!(stdout(), Print(mouse(on)))
    }

    /// Draws a frame in the terminal's present size.
    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        let area = area()?;
        let Some(terminal) = &mut self.terminal else {
            return plain(area, view);
        };
        if area != self.area {
            self.area = area;
            terminal.resize(area)?;
        }
        terminal.draw(|frame| view(frame.buffer_mut()))?;
        Ok(())
    }

    /// Has the next frame drawn in full.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        match &mut self.terminal {
            Some(terminal) => terminal.resize(self.area),
            None => Ok(()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Writes a frame as lines of text.
fn plain(mut area: Rect, view: impl FnOnce(&mut Buffer)) -> io::Result<()> {
    area.width = area.width.saturating_sub(CHOSEN.len() as u16);
    let mut buffer = Buffer::empty(area);
    view(&mut buffer);
    let mut text = String::new();
    for line in buffer.content.chunks(usize::from(area.width).max(1)) {
        let is_chosen = line.iter().all(|cell| cell.modifier.contains(Modifier::REVERSED));
        let mark = if is_chosen { CHOSEN } else { "  " };
        let line: String = [mark].into_iter().chain(line.iter().map(Cell::symbol)).collect();
        if !line.trim_end().is_empty() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text.push('\n');
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

const fn mouse(on: bool) -> &'static str {
    if on { MOUSE_ON } else { MOUSE_OFF }
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
        _ = execute!(stdout(), Print(MOUSE_OFF), LeaveAlternateScreen, Show);
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
