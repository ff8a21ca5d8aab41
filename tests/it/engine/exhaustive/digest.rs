//! When two states are one: 128 bits over the `Debug` text of the whole state, with what cannot make a difference made
//! the same. That text has every field of the engine, and of every machine in it, also those that a later change adds:
//! nothing has to be told here.
//!
//! - A moment counts by its age up to [`HORIZON`], which is beyond every number the engine compares an age with. What is
//!   older counts by its order among the old moments of the state: the engine compares moments with each other too.
//! - How long a phase has run is compared as a difference to the longest such time, so that is what counts.
//! - Effects count by their order: the engine compares their ids and never reads them.
//! - Prose (a text with a space in it) is for people; the engine reads none back.
//! - [`LEFT_OUT`] is constant, kept twice, or only shown.
//!
//! So states that are merged behave alike, but for the words and sparklines they show. Two different states with one
//! digest would need a collision of 128 bits among some millions.

use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};

use super::cluster::EPOCH;

/// In milliseconds; the largest limit of the explored policy is 8 s.
pub(super) const HORIZON: u64 = 9_000;

/// Fields that decide nothing. `recorded` is proven equal to the rest in every state; `watch` follows from
/// the rest and sets how often the cluster is read, which is a constant here; `drain`, `took`, `lags` and `counts` are
/// for the eye.
const LEFT_OUT: [(&str, &[&str]); 4] = [
    ("World", &["now"]),
    ("Engine", &["request", "policy", "names", "span", "drain", "recorded", "sent", "watch", "out", "took"]),
    ("GroupPicture", &["lags", "counts"]),
    ("Phase", &["started_at", "ended_at"]),
];

/// Takes digests; its room is used again and again.
#[derive(Debug, Default)]
pub(super) struct Digester {
    text: String,
    kept: Vec<u8>,
    moments: Vec<u64>,
    runs: Vec<u64>,
    effects: Vec<u64>,
}

impl Digester {
    /// The digest of a state at a moment.
    pub(super) fn of(&mut self, state: &impl Debug, now: u64) -> u128 {
        self.text.clear();
        write!(self.text, "{state:?}").unwrap();
        self.kept.clear();
        self.moments.clear();
        self.runs.clear();
        self.effects.clear();
        let text = std::mem::take(&mut self.text);
        Scan { rest: &text, to: self, structs: Vec::new() }.run();
        self.text = text;
        self.append_numbers(now);
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(salt);
            hasher.write(&self.kept);
            hasher.finish()
        };
        (u128::from(half(0)) << 64) | u128::from(half(1))
    }

    fn append_numbers(&mut self, now: u64) {
        let mut old: Vec<_> = self.moments.iter().copied().filter(|at| now.saturating_sub(*at) > HORIZON).collect();
        old.sort_unstable();
        old.dedup();
        let mut sent = self.effects.clone();
        sent.sort_unstable();
        sent.dedup();
        let run = self.runs.iter().max().copied().unwrap_or(0);
        let moments = self.moments.iter().map(|at| match now.saturating_sub(*at) {
            age if age <= HORIZON => age,
            _ => HORIZON + 1 + place(&old, *at),
        });
        let runs = self.runs.iter().map(|other| (run - other).min(HORIZON));
        let effects = self.effects.iter().map(|id| place(&sent, *id));
        let numbers = moments.chain(runs).chain([run.min(HORIZON)]).chain(effects);
        self.kept.extend(numbers.flat_map(u64::to_le_bytes));
    }
}

fn place(sorted: &[u64], number: u64) -> u64 {
    u64::try_from(sorted.partition_point(|other| *other < number)).unwrap()
}

/// Reads a `Debug` text once.
struct Scan<'a> {
    rest: &'a str,
    to: &'a mut Digester,
    /// The structs that are open, by name; an empty one for every other bracket.
    structs: Vec<&'a str>,
}

impl<'a> Scan<'a> {
    fn run(mut self) {
        let mut name = "";
        while let Some(&c) = self.rest.as_bytes().first() {
            match c {
                b'"' => {
                    let text = self.quoted();
                    if !text.contains(' ') {
                        self.to.kept.extend_from_slice(text.as_bytes());
                    }
                    self.to.kept.push(b'"');
                    continue;
                }
                b'0'..=b'9' => {
                    let number = self.number();
                    if self.rest.starts_with("s,") || self.rest.starts_with("s)") || self.rest.starts_with("s ") {
                        self.to.runs.push(number);
                        self.to.kept.push(b'~');
                    } else if self.rest.starts_with("ns") {
                        self.to.runs.push(0);
                        self.to.kept.push(b'~');
                        self.rest = &self.rest[1..];
                    } else {
                        self.to.kept.extend_from_slice(&number.to_le_bytes());
                    }
                    continue;
                }
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                    name = self.word();
                    self.named(name);
                    continue;
                }
                b'{' | b'(' | b'[' => self.structs.push(std::mem::take(&mut name)),
                b'}' | b')' | b']' => drop(self.structs.pop()),
                b' ' => {}
                _ => name = "",
            }
            if c != b' ' {
                self.to.kept.push(c);
            }
            self.rest = &self.rest[1..];
        }
    }

    /// After a word: a field, a moment, an effect, or any other name.
    fn named(&mut self, word: &str) {
        if self.rest.starts_with(": ") {
            let within = self.structs.last().copied().unwrap_or_default();
            if LEFT_OUT.iter().any(|(of, fields)| *of == within && fields.contains(&word)) {
                self.skip_value();
                return;
            }
        } else if word == "Timestamp" {
            self.skip_to("mono_ms: ");
            let at = self.number();
            self.skip_to("}");
            self.to.moments.push(at);
            return self.to.kept.push(b'@');
        } else if word == "Tso" {
            self.skip_to("(");
            let at = self.number() >> 18;
            self.skip_to(")");
            // The cluster's clock and ours go together here.
            self.to.moments.push(at.saturating_sub(EPOCH));
            return self.to.kept.push(b'@');
        } else if word == "EffectId" {
            self.skip_to("(");
            let id = self.number();
            self.skip_to(")");
            self.to.effects.push(id);
            return self.to.kept.push(b'#');
        }
        self.to.kept.extend_from_slice(word.as_bytes());
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.bytes().position(|c| !c.is_ascii_alphanumeric() && c != b'_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> u64 {
        let end = self.rest.bytes().position(|c| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        number.parse().unwrap()
    }

    fn skip_to(&mut self, what: &str) {
        let at = self.rest.find(what).unwrap();
        self.rest = &self.rest[at + what.len()..];
    }

    /// A text in quotes, without them.
    fn quoted(&mut self) -> &'a str {
        let mut end = 1;
        while self.rest.as_bytes()[end] != b'"' {
            end += if self.rest.as_bytes()[end] == b'\\' { 2 } else { 1 };
        }
        let text = &self.rest[1..end];
        self.rest = &self.rest[end + 1..];
        text
    }

    /// To the comma or bracket behind a value.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.rest.as_bytes()[0] {
                b'"' => {
                    self.quoted();
                    continue;
                }
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' | b',' if depth == 0 => return,
                b'}' | b')' | b']' => depth -= 1,
                _ => {}
            }
            self.rest = &self.rest[1..];
        }
    }
}

#[test]
fn only_what_makes_a_difference_counts() {
    use std::time::Duration;
    use tiroll::cluster::Timestamp;
    use tiroll::rollout::effect::EffectId;

    let of = |ages: [u64; 3], note: &str, runs: [u64; 2], effects: [u64; 2], count: u64| {
        let now = 50_000 + count * 1_000;
        let ages = ages.map(|age| Timestamp::new(7, now - age * 1_000));
        let state = (ages, note, runs.map(Duration::from_secs), effects.map(EffectId), 5, "v1");
        Digester::default().of(&state, now)
    };
    let one = of([1, 20, 30], "for 3 s", [3, 1], [8, 9], 0);
    assert_eq!(one, of([1, 25, 40], "for 4 \"s\"", [3, 1], [2, 7], 0), "old is old, ids and prose are none");
    assert_eq!(one, of([1, 20, 30], "for 3 s", [3, 1], [8, 9], 4), "only later");
    assert_ne!(one, of([2, 20, 30], "for 3 s", [3, 1], [8, 9], 0), "longer ago");
    assert_ne!(one, of([1, 30, 20], "for 3 s", [3, 1], [8, 9], 0), "the other order");
    assert_ne!(one, of([1, 20, 30], "for_3_s", [3, 1], [8, 9], 0), "a name");
    assert_ne!(one, of([1, 20, 30], "for 3 s", [4, 1], [8, 9], 0), "has run for longer");
    assert_ne!(one, of([1, 20, 30], "for 3 s", [3, 1], [9, 9], 0), "the same effect");
}
