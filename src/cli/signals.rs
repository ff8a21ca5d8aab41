//! Interrupts, counted: the first one is a request, the second one is meant.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP.
pub(super) struct Signals {
    int: Option<Signal>,
    term: Option<Signal>,
    hup: Option<Signal>,
    count: usize,
}

impl Signals {
    /// Listens from now on. A signal that cannot be listened for keeps its usual effect.
    pub(super) fn new() -> Self {
        let listen = |kind| signal(kind).ok();
        Self {
            int: listen(SignalKind::interrupt()),
            term: listen(SignalKind::terminate()),
            hup: listen(SignalKind::hangup()),
            count: 0,
        }
    }

    /// The next one, by name.
    pub(super) async fn next(&mut self) -> &'static str {
        let name = tokio::select! {
            () = wait(&mut self.int) => "SIGINT",
            () = wait(&mut self.term) => "SIGTERM",
            () = wait(&mut self.hup) => "SIGHUP",
        };
        self.count += 1;
        name
    }

    /// How many there were.
    pub(super) const fn count(&self) -> usize {
        self.count
    }
}

async fn wait(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
