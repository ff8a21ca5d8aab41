//! The format of a journal: one JSON object a line, numbered, chained and checksummed.
//!
//! ```text
//! {"v":1,"n":17,"at":"2026-12-01T04:10:55.123Z","crc":"9ad1c2f0","record":{…}}
//! ```
//!
//! Line 0 holds the room's own [`Header`]; records follow from 1 on without gaps. The checksum (CRC-32) covers the line
//! before it by *its* checksum, then the bytes of version, number and time, then the text of the record. A line is sound
//! only if it reads, byte for byte, as this program would write it; so a changed byte is noticed wherever it is, and so
//! is a line that is missing, doubled or moved. What no file can tell is that whole lines are gone from its end.
//!
//! # What counts as torn
//!
//! The line end is the last byte of a write, so a line that has one was written whole: if it is not sound, it was
//! changed later, and that is *damage* even at the very end. Only what follows the last line end can be an unfinished
//! write:
//!
//! | after the last line end stands | meaning |
//! |---|---|
//! | nothing | whole |
//! | a sound line that lacks only its line end | its record is kept; the line end is added |
//! | a sound line and then something else | damage: the line end itself was changed |
//! | anything else | torn: cut off, kept aside, reported; the append was never acknowledged |
//!
//! A power failure within the write of a batch longer than a block may leave a hole before a line end. That is refused
//! as damage, although the batch was never acknowledged: a complete line is never dropped on a guess.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::JournalError;
use super::lock::Writer;
use super::moment::Moment;
use super::place::RolloutId;

/// The version of the format.
pub(super) const VERSION: u64 = 1;
/// What the header calls the format.
pub(super) const FORMAT: &str = "tiroll journal";
/// How every journal begins, of any version.
const BEGINNING: &[u8] = b"{\"v\":";

/// The first line of a journal: whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The name of the format.
    pub format: String,
    /// The version of the format.
    pub version: u64,
    /// The version of the program that began the journal.
    pub program: String,
    /// The rollout.
    pub id: RolloutId,
    /// When it began.
    pub started: Moment,
    /// What it is about, in one line for people.
    pub title: String,
    /// Who began it.
    pub writer: Writer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<'a> {
    v: u64,
    n: u64,
    at: &'a str,
    crc: &'a str,
    #[serde(borrow)]
    record: &'a RawValue,
}

/// Where the chain stands: the number of the next line and the checksum of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    /// The number of the next line.
    pub(super) next: u64,
    crc: u32,
}

impl Chain {
    /// Adds a line, with its line end, to `out`.
    pub(super) fn push(&mut self, out: &mut Vec<u8>, at: Moment, record: &str) {
        let crc = encode(out, *self, &at.to_string(), record);
        out.push(b'\n');
        self.advance(crc);
    }

    fn advance(&mut self, crc: u32) {
        self.next += 1;
        self.crc = crc;
    }
}

/// Writes a line without its line end, and says its checksum.
fn encode(out: &mut Vec<u8>, chain: Chain, at: &str, record: &str) -> u32 {
    let begun = out.len();
    // Writing to memory does not fail.
    let _ = write!(out, "{{\"v\":{VERSION},\"n\":{},\"at\":\"{at}\"", chain.next);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&chain.crc.to_be_bytes());
    hasher.update(out.get(begun..).unwrap_or_default());
    hasher.update(record.as_bytes());
    let crc = hasher.finalize();
    let _ = write!(out, ",\"crc\":\"{crc:08x}\",\"record\":{record}}}");
    crc
}

/// One sound line after the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Its number, from 1 on. As editors count lines it is one more.
    pub(super) n: u64,
    pub(super) at: Moment,
    pub(super) record: &'a str,
}

/// What follows the last line end and is not damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    None,
    /// A sound line that lacks its line end; it is among the lines.
    Unended {
        offset: u64,
        bytes: u64,
    },
    /// An unfinished write.
    Torn {
        offset: u64,
        bytes: u64,
    },
}

/// What a journal says, as far as it is sound.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub(super) header: Option<Header>,
    pub(super) lines: Vec<Line<'a>>,
    pub(super) tail: Tail,
    pub(super) chain: Chain,
    /// Why it was not read to its end.
    pub(super) fault: Option<JournalError>,
}

/// Reads the bytes of a journal; the path is for the messages.
pub(super) fn scan<'a>(path: &Path, bytes: &'a [u8]) -> Scan<'a> {
    let mut scan = Scan { header: None, lines: Vec::new(), tail: Tail::None, chain: Chain::default(), fault: None };
    scan.fault = scan.run(path, bytes).err();
    scan
}

impl<'a> Scan<'a> {
    fn run(&mut self, path: &Path, bytes: &'a [u8]) -> Result<(), JournalError> {
        let shared = bytes.len().min(BEGINNING.len());
        if bytes.get(..shared) != BEGINNING.get(..shared) {
            return Err(JournalError::Foreign { path: path.to_path_buf() });
        }
        let mut offset = 0;
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (text, after) = rest.split_at(end);
            let wire = serde_json::from_slice(text).map_err(|error| self.unreadable(path, offset, text, &error))?;
            self.take(path, offset, text, &wire)?;
            offset += length(text) + 1;
            rest = after.get(1..).unwrap_or_default();
        }
        self.end(path, offset, rest)
    }

    fn end(&mut self, path: &Path, offset: u64, rest: &'a [u8]) -> Result<(), JournalError> {
        let bytes = length(rest);
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Wire<'a>>();
        if let Some(Ok(wire)) = values.next() {
            let (text, after) = rest.split_at(values.byte_offset().min(rest.len()));
            if self.check(text, &wire).is_ok() {
                if !after.is_empty() {
                    let why = "its record is whole, but something else stands where the line should end";
                    return Err(self.damaged(path, offset, why.to_owned()));
                }
                self.tail = Tail::Unended { offset, bytes };
                return self.take(path, offset, text, &wire);
            }
        }
        if self.header.is_none() {
            return Err(JournalError::NeverBegun { path: path.to_path_buf(), length: bytes });
        }
        if bytes > 0 {
            self.tail = Tail::Torn { offset, bytes };
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, offset: u64, text: &[u8], wire: &Wire<'a>) -> Result<(), JournalError> {
        let (at, crc) = match self.check(text, wire) {
            Ok(sound) => sound,
            Err(_) if self.is_newer(wire) => return Err(newer(path, wire.v)),
            Err(why) => return Err(self.damaged(path, offset, why)),
        };
        if self.header.is_some() {
            self.lines.push(Line { n: self.chain.next, at, record: wire.record.get() });
        } else {
            let foreign = |_| JournalError::Foreign { path: path.to_path_buf() };
            let header: Header = serde_json::from_str(wire.record.get()).map_err(foreign)?;
            if header.format != FORMAT {
                return Err(JournalError::Foreign { path: path.to_path_buf() });
            }
            self.header = Some(header);
        }
        self.chain.advance(crc);
        Ok(())
    }

    /// The time and checksum of a line that stands where it belongs and reads as we would write it.
    fn check(&self, text: &[u8], wire: &Wire<'_>) -> Result<(Moment, u32), String> {
        let mut ours = Vec::with_capacity(text.len());
        let crc = encode(&mut ours, self.chain, wire.at, wire.record.get());
        if ours != text {
            let belongs = self.chain.next;
            return Err(if wire.n != belongs {
                format!("it is numbered {} where {belongs} belongs: a line is missing, doubled or moved", wire.n)
            } else if wire.crc != format!("{crc:08x}") {
                format!("its checksum is {} where {crc:08x} belongs: it, or the line before it, was changed", wire.crc)
            } else {
                "it is not spelled as this program spells it".to_owned()
            });
        }
        let at = Moment::parse(wire.at).ok_or_else(|| format!("`{}` is no time", wire.at))?;
        Ok((at, crc))
    }

    /// Whether an unsound first line is of a later version, and not one of ours whose version was changed: then its
    /// checksum would still be the one of version 1.
    fn is_newer(&self, wire: &Wire<'_>) -> bool {
        let crc = encode(&mut Vec::new(), self.chain, wire.at, wire.record.get());
        self.header.is_none() && wire.v > VERSION && wire.crc != format!("{crc:08x}")
    }

    fn unreadable(&self, path: &Path, offset: u64, text: &[u8], error: &serde_json::Error) -> JournalError {
        #[derive(Deserialize)]
        struct Versioned {
            v: u64,
        }
        // A later version may have fields of other names, but it says which it is.
        match serde_json::from_slice::<Versioned>(text) {
            Ok(line) if self.header.is_none() && line.v > VERSION => newer(path, line.v),
            _ => self.damaged(path, offset, format!("it does not read as a line of a journal ({error})")),
        }
    }

    fn damaged(&self, path: &Path, offset: u64, why: String) -> JournalError {
        JournalError::Damaged { path: path.to_path_buf(), line: self.chain.next + 1, offset, why }
    }
}

fn newer(path: &Path, version: u64) -> JournalError {
    JournalError::Newer { path: path.to_path_buf(), version, known: VERSION }
}

/// A length as the file counts it.
pub(super) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> String {
        let writer = Writer { name: "ann".into(), host: "ops1".into(), pid: 7 };
        let id = RolloutId::parse("20261201-041055-7f3a").unwrap();
        let (started, title) = (Moment::from_ms(0), "t".into());
        let header = Header { format: FORMAT.into(), version: 1, program: "0.1.0".into(), id, started, title, writer };
        serde_json::to_string(&header).unwrap()
    }

    fn journal(records: &[&str]) -> Vec<u8> {
        let (mut chain, mut out) = (Chain::default(), Vec::new());
        chain.push(&mut out, Moment::from_ms(0), &header());
        for record in records {
            chain.push(&mut out, Moment::from_ms(1_796_098_255_123), record);
        }
        out
    }

    fn fault(bytes: &[u8]) -> String {
        scan(Path::new("j"), bytes).fault.map(|fault| fault.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_text_of_a_record_is_kept_as_it_is() {
        let odd = r#"{"b":1.0,  "a":[1e3,"\u0061"]}"#;
        let bytes = journal(&[odd]);
        let scan = scan(Path::new("j"), &bytes);
        assert!(scan.fault.is_none(), "{:?}", scan.fault);
        assert_eq!(scan.lines[0].record, odd);
    }

    #[test]
    fn a_line_can_be_checked_by_hand() {
        let text = String::from_utf8(journal(&["{\"x\":1}"])).unwrap();
        let last = text.lines().last().unwrap();
        let (head, rest) = last.split_once(",\"crc\":\"").unwrap();
        let (crc, record) = rest.split_once("\",\"record\":").unwrap();
        let previous = text.lines().next().unwrap().split_once("\"crc\":\"").unwrap().1;
        let mut covered = u32::from_str_radix(&previous[..8], 16).unwrap().to_be_bytes().to_vec();
        covered.extend_from_slice(head.as_bytes());
        covered.extend_from_slice(record.strip_suffix('}').unwrap().as_bytes());
        assert_eq!(crc, format!("{:08x}", crc32fast::hash(&covered)));
        assert_eq!(head, "{\"v\":1,\"n\":1,\"at\":\"2026-12-01T04:10:55.123Z\"");
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_damaged() {
        assert_eq!(fault(b"#!/bin/sh\n"), "j is no journal of tiroll: its first line does not begin like one");
        assert_eq!(fault(b""), "j ends within its first line, at byte 0");
        assert_eq!(fault(b"{\"v\":1,\"n\""), "j ends within its first line, at byte 10");
        let later = "j is written in version 2 of the format; this program knows version 1";
        assert_eq!(fault(b"{\"v\":2,\"sum\":\"\",\"what\":{}}\n"), later);
        let text = String::from_utf8(journal(&[])).unwrap();
        assert!(fault(text.replacen('1', "2", 1).as_bytes()).starts_with("j is damaged in line 1, at byte 0: "));
        let (mut chain, mut other) = (Chain::default(), Vec::new());
        chain.push(&mut other, Moment::from_ms(0), "{\"format\":\"something else\"}");
        assert!(fault(&other).contains("is no journal of tiroll"));
    }

    #[test]
    fn a_line_end_that_was_changed_is_damage_and_a_missing_one_is_not() {
        let mut bytes = journal(&["1", "2"]);
        let last = bytes.len() - 1;
        bytes[last] = b'x';
        assert!(fault(&bytes).contains("something else stands where the line should end"), "{}", fault(&bytes));
        bytes.truncate(last);
        let unended = scan(Path::new("j"), &bytes);
        assert!(unended.fault.is_none());
        assert_eq!(unended.lines.len(), 2);
        assert!(matches!(unended.tail, Tail::Unended { .. }));
    }
}
