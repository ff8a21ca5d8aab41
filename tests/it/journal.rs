//! The durable record: what is acknowledged is read back exactly or refused with its place, on any disk.

mod damage;
mod disks;
mod faults;
mod held;
mod history;

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tiroll::cluster::Timestamp;
use tiroll::journal::{Base, Holder, Journal, Opened, RolloutId, Writer, read};

/// A record as a rollout might keep it; the room under test does not know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
enum Record {
    Intended { act: u64, server: String },
    Came { act: u64, outcome: Option<String> },
    Said { words: Vec<String> },
}

fn said(words: &str) -> Record {
    Record::Said { words: vec![words.to_owned()] }
}

/// A few records of all kinds, with text that JSON must escape.
fn records(count: u64) -> Vec<Record> {
    let record = |n| match n % 3 {
        0 => Record::Intended { act: n, server: format!("10.0.1.{n}:8300") },
        1 => Record::Came { act: n, outcome: (n % 2 == 0).then(|| "no \"route\"\n\u{e4}".to_owned()) },
        _ => Record::Said { words: vec!["weiter".into(), n.to_string()] },
    };
    (0..count).map(record).collect()
}

/// A moment, some seconds after a fixed one.
fn at(seconds: u64) -> Timestamp {
    let ms = seconds * 1_000;
    Timestamp::new(1_796_098_255_123 + i64::try_from(ms).unwrap(), ms)
}

/// A base directory that goes with the test, and one rollout in it.
struct Place {
    directory: TempDir,
    base: Base,
    id: RolloutId,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = Base::at(directory.path().join("state/tiroll"));
        Self { directory, base, id: RolloutId::parse("20261201-041055-7f3a").unwrap() }
    }

    fn create(&self) -> Journal {
        Journal::create(&self.base, &self.id, at(0), &ann(), "upgrade to v8.5.4").unwrap()
    }

    /// A journal that was written, one record a time, and let go.
    fn written(&self, records: &[Record]) -> Vec<u8> {
        let mut journal = self.create();
        for (n, record) in (1..).zip(records) {
            journal.append(at(n), std::slice::from_ref(record)).unwrap();
        }
        self.bytes()
    }

    fn open(&self) -> Result<(Journal, Opened<Record>), tiroll::journal::JournalError> {
        Journal::open(&self.base, &self.id, at(100), &bob())
    }

    fn read(&self) -> Result<Opened<Record>, tiroll::journal::JournalError> {
        read(&self.base, &self.id)
    }

    fn path(&self) -> PathBuf {
        self.base.rollout(&self.id).join("journal.jsonl")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    fn put(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).unwrap();
    }
}

fn contents(opened: &Opened<Record>) -> Vec<Record> {
    assert!(opened.records.iter().map(|entry| entry.n).eq(1..=opened.records.len() as u64), "numbers have gaps");
    opened.records.iter().map(|entry| entry.record.clone()).collect()
}

fn ann() -> Writer {
    Writer { name: "ann".into(), host: "ops1".into(), pid: 4711 }
}

fn bob() -> Writer {
    Writer { name: "bob".into(), host: "ops2".into(), pid: 12 }
}

fn holder(id: &RolloutId) -> Holder {
    Holder::new(&ann(), id, at(0))
}
