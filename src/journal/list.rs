//! All rollouts of a base directory, for the history.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::error::{JournalError, READ};
use super::line::{self, Header};
use super::lock::{Holder, is_held, read_note};
use super::moment::Moment;
use super::place::{Base, RolloutId};
use super::read::{Torn, cannot_open, torn};

/// One rollout in the history.
#[derive(Debug)]
pub struct Summary {
    /// Its name.
    pub id: RolloutId,
    /// Whose it is; `None` if the first line cannot be read.
    pub header: Option<Header>,
    /// How many records are sound, from the first on.
    pub records: u64,
    /// The time of the last sound record.
    pub last: Option<Moment>,
    /// Whether it can be resumed.
    pub condition: Condition,
    /// Whether somebody writes to it now.
    pub is_held: bool,
    /// Who does, or who died without letting go.
    pub holder: Option<Holder>,
}

/// The condition of a journal.
#[derive(Debug)]
pub enum Condition {
    /// Nothing is amiss.
    Whole,
    /// The last line is unfinished; resuming cuts it off.
    Torn(Torn),
    /// It is damaged, foreign or cannot be read.
    Refused(JournalError),
}

/// Lists the rollouts, the latest first. A journal that cannot be read is in the list with the reason; a base directory
/// that does not exist is an empty list. Writes nothing.
pub fn list(base: &Base) -> Result<Vec<Summary>, JournalError> {
    let rollouts = base.rollouts();
    let cannot = |error| JournalError::disk(READ, &rollouts, error);
    let entries = match fs::read_dir(&rollouts) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        // A name that is no id was not put there by this program.
        let name = entry.map_err(cannot)?.file_name();
        if let Some(id) = name.to_str().and_then(|name| RolloutId::parse(name).ok()) {
            found.push(summary(base, id));
        }
    }
    found.sort_by(|a, b| b.id.cmp(&a.id));
    Ok(found)
}

fn summary(base: &Base, id: RolloutId) -> Summary {
    let path = base.journal(&id);
    let holder = read_note(&base.writer(&id));
    let mut summary =
        Summary { id, header: None, records: 0, last: None, condition: Condition::Whole, is_held: false, holder };
    match read_held(&path) {
        Ok((bytes, is_held)) => {
            summary.is_held = is_held;
            summary.tell(&path, &bytes);
        }
        Err(error) => summary.condition = Condition::Refused(cannot_open(READ, base, &summary.id, &path, error)),
    }
    summary
}

fn read_held(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let is_held = is_held(&file);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((bytes, is_held))
}

impl Summary {
    fn tell(&mut self, path: &Path, bytes: &[u8]) {
        let scan = line::scan(path, bytes);
        self.records = u64::try_from(scan.lines.len()).unwrap_or(u64::MAX);
        self.last = scan.lines.last().map(|line| line.at);
        // Of a journal that is being written the last line may be on its way.
        let torn = torn(&scan).filter(|_| !self.is_held);
        let other = scan.header.as_ref().map(|header| &header.id).filter(|id| **id != self.id);
        self.condition = match (scan.fault, other, torn) {
            (Some(fault), _, _) => Condition::Refused(fault),
            (None, Some(other), _) => {
                Condition::Refused(JournalError::Misplaced { path: path.to_path_buf(), id: other.to_string() })
            }
            (None, None, Some(torn)) => Condition::Torn(torn),
            (None, None, None) => Condition::Whole,
        };
        self.header = scan.header;
    }
}
