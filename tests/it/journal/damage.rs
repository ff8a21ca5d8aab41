//! Whatever happens to the bytes of a journal: it is never read wrongly.

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use tiroll::journal::{Journal, JournalError, RolloutId};

use super::disks::Unsynced;
use super::{Place, Record, ann, at, bob, contents, records, said};

/// The lines of a journal, each with its line end.
fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Where each line stands, with its line end.
fn ranges(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut begun = 0;
    let mut range = |line: &Vec<u8>| {
        let range = begun..begun + line.len();
        begun = range.end;
        range
    };
    lines(bytes).iter().map(&mut range).collect()
}

fn any_record() -> impl Strategy<Value = Record> {
    let text = || ".{0,12}".prop_map(|text| text);
    prop_oneof![
        (any::<u64>(), text()).prop_map(|(act, server)| Record::Intended { act, server }),
        (any::<u64>(), proptest::option::of(text())).prop_map(|(act, outcome)| Record::Came { act, outcome }),
        vec(text(), 0..4).prop_map(|words| Record::Said { words }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_in_any_batches_are_read_back_exactly(batches in vec(vec(any_record(), 0..6), 0..8)) {
        let place = Place::new();
        let mut journal = place.create();
        for (n, batch) in (1..).zip(&batches) {
            // Now and then the writer goes and another comes.
            if n % 3 == 0 {
                drop(journal);
                let (again, opened) = place.open().unwrap();
                prop_assert!(opened.torn.is_none() && opened.left_by.is_none());
                journal = again;
            }
            journal.append(at(n), batch).unwrap();
        }
        let opened = place.read().unwrap();
        let expected: Vec<_> = batches.iter().flatten().cloned().collect();
        prop_assert_eq!(contents(&opened), expected);
        let times: Vec<_> = opened.records.iter().map(|entry| entry.at.ms()).collect();
        let expected: Vec<_> = (1..).zip(&batches).flat_map(|(n, batch)| vec![at(n).wall_ms; batch.len()]).collect();
        prop_assert_eq!(times, expected);
        prop_assert_eq!(opened.header.title, "upgrade to v8.5.4");
        prop_assert_eq!(opened.header.writer, ann());
        prop_assert_eq!(journal.records(), opened.records.len() as u64);
    }
}

#[test]
fn cut_at_every_length_it_gives_the_whole_records_and_reports_the_rest() {
    let place = Place::new();
    let records = records(6);
    let whole = place.written(&records);
    let ranges = ranges(&whole);
    for length in 0..=whole.len() {
        let torn_files = fs::read_dir(place.base.rollout(&place.id)).unwrap().count();
        place.put(&whole[..length]);
        let complete = ranges.iter().filter(|range| range.end <= length).count();
        // A line that lacks only its line end counts, too.
        let counted = ranges.iter().filter(|range| range.end - 1 <= length).count();
        let begun =
            ranges.iter().find(|range| range.contains(&length) && range.start < length).map(|range| range.start);
        let read = place.read();
        if counted == 0 {
            let error = read.unwrap_err();
            assert!(matches!(error, JournalError::NeverBegun { .. }), "{length}: {error}");
            assert!(matches!(place.open().unwrap_err(), JournalError::NeverBegun { .. }));
            assert_eq!(place.bytes(), whole[..length], "a refusal must not touch the file");
            continue;
        }
        let read = read.unwrap();
        let expected = &records[..counted - 1];
        assert_eq!(contents(&read), expected, "{length}");
        assert_eq!(read.torn.as_ref().map(|torn| torn.offset), begun.map(|start| start as u64), "{length}");
        assert_eq!(read.torn.as_ref().is_some_and(|torn| torn.is_whole), counted > complete, "{length}");

        let opened = Journal::open_on(Arc::new(Unsynced), &place.base, &place.id, at(40), &bob());
        let (mut journal, opened) = opened.unwrap();
        assert_eq!(contents(&opened), expected, "{length}");
        let aside = opened.torn.and_then(|torn| torn.aside);
        match aside {
            Some(aside) => {
                assert_eq!(fs::read(&aside).unwrap(), whole[begun.unwrap()..length]);
                assert!(aside.file_name().unwrap().to_string_lossy().starts_with(&format!("journal.torn-{counted}")));
            }
            None => assert!(begun.is_none() || counted > complete, "{length}"),
        }
        journal.append(at(50), &[said("on")]).unwrap();
        drop(journal);
        let read = place.read().unwrap();
        assert!(read.torn.is_none());
        assert_eq!(contents(&read), [expected, &[said("on")]].concat(), "{length}");
        let files = fs::read_dir(place.base.rollout(&place.id)).unwrap().count();
        assert!(files <= torn_files + 2);
    }
}

/// Some other values of a byte: each bit changed, all of them, and those with a meaning of their own.
fn others(byte: u8) -> impl Iterator<Item = u8> {
    let bits = (0..8).map(move |bit| byte ^ (1 << bit));
    bits.chain([!byte, b'\n', b'"', b'}', b' ', 0]).filter(move |other| *other != byte)
}

#[test]
fn a_byte_changed_anywhere_is_refused_with_its_line() {
    let place = Place::new();
    let whole = place.written(&records(4));
    for (n, range) in (1..).zip(ranges(&whole)) {
        for offset in range.clone() {
            for other in others(whole[offset]) {
                let mut bytes = whole.clone();
                bytes[offset] = other;
                place.put(&bytes);
                match place.read() {
                    Err(JournalError::Damaged { line, offset: begin, .. }) => {
                        assert_eq!((line, begin), (n, range.start as u64), "byte {offset} as {other:#x}");
                    }
                    // The first bytes are how a journal is known.
                    Err(JournalError::Foreign { .. }) => assert!(offset < 5, "byte {offset} as {other:#x}"),
                    other => panic!("byte {offset}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_byte_changed_beside_an_unfinished_line_never_costs_a_whole_record() {
    let place = Place::new();
    let records = records(3);
    let whole = place.written(&records);
    let last = ranges(&whole).pop().unwrap();
    let cut = &whole[..last.end - 9];
    for offset in 0..cut.len() {
        for other in others(cut[offset]) {
            let mut bytes = cut.to_vec();
            bytes[offset] = other;
            place.put(&bytes);
            match place.read() {
                Ok(opened) => {
                    assert!(offset >= last.start, "byte {offset} as {other:#x}");
                    assert_eq!(contents(&opened), records[..2], "byte {offset} as {other:#x}");
                    assert_eq!(opened.torn.unwrap().line, 4);
                }
                Err(JournalError::Damaged { line, .. }) => {
                    assert!(offset < last.start || other == b'\n', "byte {offset} as {other:#x} in line {line}");
                }
                Err(JournalError::Foreign { .. }) => assert!(offset < 5),
                Err(error) => panic!("byte {offset} as {other:#x}: {error}"),
            }
        }
    }
}

#[test]
fn lines_that_are_missing_doubled_or_moved_are_refused() {
    let place = Place::new();
    // Twice the same record, so that nothing but the chain tells the lines apart.
    let whole = place.written(&[said("a"), said("a"), said("a"), said("a"), said("a")]);
    let lines = lines(&whole);
    let refused = |lines: &[Vec<u8>], what: &str| {
        place.put(&lines.concat());
        let error = place.read().unwrap_err();
        let text = error.to_string();
        let is_first = text.contains("no journal");
        assert!(matches!(error, JournalError::Damaged { .. }) || is_first, "{what}: {text}");
    };
    for n in 0..lines.len() {
        let mut changed = lines.clone();
        changed.insert(n, lines[n].clone());
        refused(&changed, &format!("line {n} doubled"));
        if n + 1 < lines.len() {
            let mut changed = lines.clone();
            changed.remove(n);
            refused(&changed, &format!("line {n} missing"));
        }
        for m in 0..n {
            let mut changed = lines.clone();
            changed.swap(m, n);
            refused(&changed, &format!("lines {m} and {n} swapped"));
        }
    }
}

#[test]
fn a_line_of_another_journal_does_not_fit() {
    let (place, other) = (Place::new(), Place::new());
    let mut changed = lines(&place.written(&[said("a"), said("b")]));
    changed[2] = lines(&other.written(&[said("c"), said("b")])).remove(2);
    place.put(&changed.concat());
    let error = place.read().unwrap_err().to_string();
    assert!(error.contains("is damaged in line 3, at byte "), "{error}");
    assert!(error.contains("its checksum is "), "{error}");
}

#[test]
fn a_copy_under_another_name_is_not_gone_on_with() {
    let place = Place::new();
    place.written(&records(2));
    let other = RolloutId::parse("20261201-041055-0000").unwrap();
    let directory = place.base.rollout(&other);
    fs::create_dir(&directory).unwrap();
    fs::copy(place.path(), directory.join("journal.jsonl")).unwrap();
    let error = Journal::open::<Record>(&place.base, &other, at(1), &ann()).unwrap_err();
    assert!(error.to_string().contains("is the journal of rollout 20261201-041055-7f3a"), "{error}");
}

#[test]
fn a_record_of_another_program_is_told_from_damage() {
    let place = Place::new();
    let mut journal = place.create();
    journal.append(at(1), &[serde_json::json!({"kind": "invented_later"})]).unwrap();
    drop(journal);
    let error = place.open().unwrap_err();
    assert!(matches!(&error, JournalError::UnknownRecord { line: 2, .. }), "{error}");
    assert!(error.remedy().contains(env!("CARGO_PKG_VERSION")), "{}", error.remedy());
}
