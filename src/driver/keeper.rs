//! Where a rollout's records are kept, seen from the driver: the journal, or nothing for a demo.

use crate::cluster::Timestamp;
use crate::rollout::record::Record;

/// Keeps records durably. Its calls may block; the driver runs them beside its loop.
pub trait Keeper: Send {
    /// Keeps these, all of one moment, in their order. When this returns `Ok` they outlive the machine. On an error none
    /// of them counts, and they are brought again later; the text says what happened, with the path.
    fn keep(&mut self, at: Timestamp, records: &[Record]) -> Result<(), String>;
}

/// Records on their way to a keeper: those that could not be kept wait in front of the next ones.
pub(super) struct Desk {
    keeper: Option<Box<dyn Keeper>>,
    waiting: Vec<Record>,
}

/// The keeper was lost with the task that ran it.
const LOST: &str = "the task that writes the journal failed";

impl Desk {
    pub(super) const fn new(keeper: Option<Box<dyn Keeper>>) -> Self {
        Self { keeper, waiting: Vec::new() }
    }

    /// Whether anything waits to be kept.
    pub(super) const fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Keeps these and whatever waited before them.
    pub(super) async fn keep(&mut self, at: Timestamp, records: Vec<Record>) -> Result<(), String> {
        self.waiting.extend(records);
        let Some(mut keeper) = self.keeper.take() else {
            self.waiting.clear();
            return Ok(());
        };
        if self.waiting.is_empty() {
            self.keeper = Some(keeper);
            return Ok(());
        }
        let records = std::mem::take(&mut self.waiting);
        let written = tokio::task::spawn_blocking(move || {
            let outcome = keeper.keep(at, &records);
            (keeper, records, outcome)
        });
        let Ok((keeper, records, outcome)) = written.await else {
            self.keeper = Some(Box::new(Broken));
            return Err(LOST.to_owned());
        };
        self.keeper = Some(keeper);
        if outcome.is_err() {
            self.waiting = records;
        }
        outcome
    }
}

struct Broken;

impl Keeper for Broken {
    fn keep(&mut self, _: Timestamp, _: &[Record]) -> Result<(), String> {
        Err(LOST.to_owned())
    }
}
