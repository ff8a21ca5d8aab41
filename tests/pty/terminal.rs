//! A program in a real pseudo-terminal, seen as a person would: keys in, a screen out.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long between two presses of a key that is pressed until something happens.
const BETWEEN_KEYS: Duration = Duration::from_millis(500);
/// How long to listen before looking at the screen again.
const LOOK: Duration = Duration::from_millis(100);

/// The program under test and its terminal.
pub(crate) struct Terminal {
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    child: Box<dyn Child + Send + Sync>,
    parser: vt100::Parser,
    /// Every byte the program wrote.
    pub(crate) raw: Vec<u8>,
}

#[expect(clippy::disallowed_methods, reason = "a terminal test waits for a real program, in real time")]
fn now() -> Instant {
    Instant::now()
}

const fn size(cols: u16, rows: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn some(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a terminal has cells")
}

impl Terminal {
    /// Starts `tiroll` with these arguments and environment.
    pub(crate) fn start(args: &[&str], (cols, rows): (u16, u16), env: &[(&str, &str)]) -> Self {
        let pair = native_pty_system().openpty(size(cols, rows)).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_tiroll"));
        command.env("TIROLL_STATE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/state-pty"));
        command.args(args);
        command.env_remove("NO_COLOR");
        command.env("TERM", "xterm-256color");
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let writer = pair.master.take_writer().expect("a writer");
        let (bytes, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 8_192];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || bytes.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let parser = vt100::Parser::new(some(rows), some(cols), 0);
        Self { master: pair.master, writer, output, child, parser, raw: Vec::new() }
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        // A program that has just ended takes no more keys; the test then fails on what it waits for.
        let _ = self.writer.write_all(keys.as_bytes()).and_then(|()| self.writer.flush());
    }

    /// Takes in what the program wrote meanwhile; says whether it may write more.
    fn listen(&mut self) -> bool {
        match self.output.recv_timeout(LOOK) {
            Ok(bytes) => {
                self.parser.process(&bytes);
                self.raw.extend(bytes);
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// The screen as text.
    pub(crate) fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the screen is as wanted, pressing these keys at every look (none: only wait).
    pub(crate) fn until(&mut self, what: &str, keys: &str, is_so: impl Fn(&str) -> bool) {
        let begun = now();
        let mut pressed = begun;
        while begun.elapsed() < PATIENCE && !is_so(&self.screen()) {
            if !self.listen() {
                break;
            }
            // A dialog takes an answer only after a moment without keys: a held key must not give it.
            if !keys.is_empty() && pressed.elapsed() > BETWEEN_KEYS {
                pressed = now();
                self.press(keys);
            }
        }
        assert!(is_so(&self.screen()), "{what} never came to be; the screen:\n{}", self.screen());
    }

    /// Waits for a text.
    pub(crate) fn see(&mut self, text: &str) {
        self.until(&format!("`{text}`"), "", |screen| screen.contains(text));
    }

    /// Presses a key until a text is there: dialogs take no answer in their first moment.
    pub(crate) fn press_until(&mut self, keys: &str, text: &str) {
        self.press(keys);
        self.until(&format!("`{text}` after {keys:?}"), keys, |screen| screen.contains(text));
    }

    /// Makes the terminal another size.
    pub(crate) fn resize(&mut self, cols: u16, rows: u16) {
        self.master.resize(size(cols, rows)).expect("it can be resized");
        self.parser.screen_mut().set_size(some(rows), some(cols));
    }

    /// Sends a signal with the system's own `kill`: the crate forbids the unsafe call.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.process_id().expect("it runs");
        let status = std::process::Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
        assert!(status.is_ok_and(|status| status.success()), "the signal was not sent");
    }

    /// Waits for the end; the exit code.
    pub(crate) fn end(&mut self) -> u32 {
        let begun = now();
        while begun.elapsed() < PATIENCE {
            self.listen();
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                while self.output.recv_timeout(LOOK).is_ok_and(|bytes| {
                    self.raw.extend(bytes);
                    true
                }) {}
                return status.exit_code();
            }
        }
        panic!("it did not end; the screen:\n{}", self.screen());
    }

    /// Whether the terminal was given back: the other screen left and the cursor shown, after they were taken.
    pub(crate) fn is_given_back(&self) -> bool {
        let last = |wanted: &[u8]| self.raw.windows(wanted.len()).rposition(|window| window == wanted);
        let is_after = |back: &[u8], taken: &[u8]| match (last(back), last(taken)) {
            (Some(back), Some(taken)) => back > taken,
            _ => false,
        };
        is_after(b"\x1b[?1049l", b"\x1b[?1049h") && is_after(b"\x1b[?25h", b"\x1b[?25l")
    }

    /// The first row of the screen that has this text, and whether any cell of it is inverse.
    pub(crate) fn row_is_inverse(&self, text: &str) -> bool {
        let screen = self.parser.screen();
        let (rows, cols) = screen.size();
        let at = screen.rows(0, cols.into()).position(|row| row.contains(text)).expect("the row is there");
        let at = u16::try_from(at).expect("a row");
        assert!(at < rows.into());
        (0..u16::from(cols)).any(|col| screen.cell(at, col).is_some_and(vt100::Cell::inverse))
    }
}

/// Starts the demo, waits for its first bytes, and closes the terminal as a lost connection does; the program must end.
pub(crate) fn lose_the_terminal() {
    let pair = native_pty_system().openpty(size(80, 24)).expect("a pseudo-terminal");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_tiroll"));
    command.arg("demo");
    let mut child = pair.slave.spawn_command(command).expect("the program starts");
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().expect("a reader");
    let mut seen = Vec::new();
    while !seen.windows(8).any(|window| window == b"\x1b[?1049h") {
        let mut buffer = [0; 8_192];
        let count = reader.read(&mut buffer).expect("the program writes");
        assert!(count > 0, "it ended before its first frame");
        seen.extend_from_slice(&buffer[..count]);
    }
    drop((reader, pair.master));
    let (ended, end) = channel();
    let mut killer = child.clone_killer();
    std::thread::spawn(move || ended.send(child.wait().map(|status| status.exit_code())));
    let code = end.recv_timeout(PATIENCE);
    if code.is_err() {
        killer.kill().expect("it runs");
    }
    let code = code.expect("it goes on without a terminal").expect("it can be waited for");
    assert_eq!(code, 130, "it ends as interrupted, and in no panic");
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
    }
}
