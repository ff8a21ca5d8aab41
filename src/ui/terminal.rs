//! The terminal: taken once, given back once, whoever does it first: the normal way out, a dropped guard or a panic
//! anywhere in the program.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue, style};
use futures::{Stream, stream};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// Whether the terminal is ours now. Restoring takes this flag, so it happens once: a second time would wipe whatever
/// was printed after the first.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);
/// Whether some part of the program panicked while the screen was up.
static HAS_CRASHED: AtomicBool = AtomicBool::new(false);
/// Wakes the loop when that happens.
static CRASHED: Notify = Notify::const_new();

/// What the loop needs of a terminal; tests have one in memory.
pub(crate) trait Surface {
    /// Columns and rows.
    fn size(&self) -> io::Result<(u16, u16)>;
    /// Draws one frame.
    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()>;
    /// Forgets what is on the screen, so that the next frame is drawn whole.
    fn clear(&mut self) -> io::Result<()>;
    /// Sets the window's title.
    fn title(&mut self, title: &str) -> io::Result<()>;
    /// Calls for a person.
    fn ring(&mut self) -> io::Result<()>;
    /// Puts the program in the background and comes back when it is in the foreground again.
    fn suspend(&mut self) -> io::Result<()>;
}

/// Whether input and output are a terminal.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Gives the terminal back, if it is taken. Says whether it was. Errors are of no use here: the terminal may be gone.
pub fn restore() -> bool {
    if !IS_ENTERED.swap(false, Ordering::SeqCst) {
        return false;
    }
    let mut out = io::stdout();
    // The title goes back where the terminal keeps a stack of titles (xterm and its kin); others ignore this.
    let _ = out.write_all(b"\x1b[23;0t");
    let _ = execute!(out, EndSynchronizedUpdate, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
    true
}

/// As [`restore`], from a panic hook: the loop ends too, or it would draw over the report.
pub fn restore_for_panic() -> bool {
    HAS_CRASHED.store(true, Ordering::SeqCst);
    let was_entered = restore();
    CRASHED.notify_one();
    was_entered
}

/// Resolves when some part of the program has panicked.
pub(crate) async fn crashed() {
    if !HAS_CRASHED.load(Ordering::SeqCst) {
        CRASHED.notified().await;
    }
}

/// Whether some part of the program has panicked.
pub(crate) fn has_crashed() -> bool {
    HAS_CRASHED.load(Ordering::SeqCst)
}

fn take() -> io::Result<()> {
    if IS_ENTERED.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    let enter = || -> io::Result<()> {
        enable_raw_mode()?;
        let mut out = io::stdout();
        out.write_all(b"\x1b[22;0t")?;
        // Pasted text arrives as text and not as keys: a pasted `x` must not open the abort dialog. The mouse stays the
        // terminal's own, so that text can be selected and copied.
        execute!(out, EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)
    };
    enter().inspect_err(|_| {
        restore();
    })
}

/// The real terminal, taken as long as this value lives.
pub(crate) struct Screen {
    // The library's own end shows the cursor and, on a terminal that is gone, complains to a standard error that is gone
    // with it, which is a panic. [`restore`] gives everything back; that end must not run.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        // Colours are this program's own choice (`theme`). Left to itself, the terminal library honours `NO_COLOR` by
        // writing resets, which also take the reversal off the selected row.
        style::force_color_output(true);
        take()?;
        let writer = BufWriter::with_capacity(64 * 1024, io::stdout());
        let terminal = Terminal::new(CrosstermBackend::new(writer)).inspect_err(|_| {
            restore();
        })?;
        Ok(Self { terminal: ManuallyDrop::new(terminal) })
    }

    /// Clears the screen and the memory of it. The library's own `clear` asks the terminal for its cursor and waits for
    /// the answer, which a terminal that is slow or half gone does not give; a resize to the same size does not ask.
    fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from(size))
    }

    fn is_ours() -> io::Result<()> {
        if IS_ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(io::Error::other("the terminal was given back"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

impl Surface for Screen {
    fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()> {
        Self::is_ours()?;
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| paint(frame.buffer_mut()))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    fn clear(&mut self) -> io::Result<()> {
        Self::is_ours()?;
        self.forget()
    }

    fn title(&mut self, title: &str) -> io::Result<()> {
        Self::is_ours()?;
        execute!(self.terminal.backend_mut(), SetTitle(title))
    }

    fn ring(&mut self) -> io::Result<()> {
        Self::is_ours()?;
        let out = self.terminal.backend_mut();
        out.write_all(b"\x07")?;
        io::Write::flush(out)
    }

    fn suspend(&mut self) -> io::Result<()> {
        restore();
        // The whole process group, as the terminal itself would do it: a wrapper such as cargo has to stop too, or the
        // shell would never show its prompt. Without a shell to come back to the kernel ignores it.
        let stopped = Command::new("sh").args(["-c", "kill -TSTP 0"]).status();
        take()?;
        self.forget()?;
        stopped.map(|_| ())
    }
}

/// The signals that end the screen, by name.
pub(crate) type Signals = Pin<Box<dyn Stream<Item = &'static str> + Send>>;

/// Starts to listen for the signals that end the screen. They are handled apart from the keys, so that they work when no
/// key will ever come again.
pub(crate) fn signals() -> io::Result<Signals> {
    let named = [
        (signal(SignalKind::terminate())?, "SIGTERM"),
        (signal(SignalKind::hangup())?, "SIGHUP"),
        (signal(SignalKind::interrupt())?, "SIGINT"),
    ];
    let each = named.map(|(signal, name)| {
        let next = move |mut signal: Signal| async move { signal.recv().await.map(|()| (name, signal)) };
        Box::pin(stream::unfold(signal, next))
    });
    Ok(Box::pin(stream::select_all(each)))
}
