//! What can be told of journals without writing.

use std::fs;
use std::time::SystemTime;

use tiroll::journal::{Base, Condition, Journal, JournalError, RolloutId, list};

use super::{Place, ann, at, records};

/// Every file under the base, with its bytes and the time of its last change.
fn everything(base: &Base) -> Vec<(String, Vec<u8>, SystemTime)> {
    let (mut found, mut folders) = (Vec::new(), vec![base.path().to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let changed = fs::metadata(&path).unwrap().modified().unwrap();
            let bytes = if path.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
            found.push((path.display().to_string(), bytes, changed));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn reading_touches_nothing() {
    let place = Place::new();
    let whole = place.written(&records(4));
    for bytes in [&whole[..], &whole[..whole.len() - 1], &whole[..whole.len() - 7], &whole[..10]] {
        place.put(bytes);
        let before = everything(&place.base);
        let _ = place.read();
        let _ = list(&place.base).unwrap();
        assert_eq!(everything(&place.base), before);
    }
}

#[test]
fn a_list_tells_of_each_whatever_is_wrong_with_others() {
    let place = Place::new();
    assert!(list(&place.base).unwrap().is_empty(), "no directory is an empty list");
    let whole = place.written(&records(4));
    let named = |text: &str| RolloutId::parse(text).unwrap();
    let put = |id: &RolloutId, bytes: &[u8]| {
        fs::create_dir(place.base.rollout(id)).unwrap();
        fs::write(place.base.rollout(id).join("journal.jsonl"), bytes).unwrap();
    };
    let (torn, damaged) = (named("20261202-000000-0001"), named("20261203-000000-0001"));
    let held = Journal::create(&place.base, &torn, at(86_400), &ann(), "patch").unwrap();
    drop(held);
    let bytes = fs::read(place.base.rollout(&torn).join("journal.jsonl")).unwrap();
    fs::write(place.base.rollout(&torn).join("journal.jsonl"), [&bytes[..], b"{\"v\":1,"].concat()).unwrap();
    let mut bad = whole.clone();
    let middle = whole.len() / 2;
    bad[middle] ^= 1;
    put(&damaged, &bad);
    put(&named("20261204-000000-0001"), b"#!/bin/sh\n");
    fs::create_dir(place.base.rollout(&named("20261205-000000-0001"))).unwrap();
    fs::create_dir(place.base.path().join("rollouts/Not ours")).unwrap();

    let list = list(&place.base).unwrap();
    let told: Vec<_> = list
        .iter()
        .map(|summary| {
            let condition = match &summary.condition {
                Condition::Whole => "whole".to_owned(),
                Condition::Torn(torn) => format!("torn in line {}", torn.line),
                Condition::Refused(JournalError::Damaged { .. }) => "damaged".to_owned(),
                Condition::Refused(JournalError::Foreign { .. }) => "foreign".to_owned(),
                Condition::Refused(JournalError::NoSuchRollout { .. }) => "missing".to_owned(),
                Condition::Refused(error) => error.to_string(),
            };
            (summary.id.as_str(), condition, summary.header.as_ref().map(|header| header.title.as_str()))
        })
        .collect();
    let told: Vec<_> = told.iter().map(|(id, condition, title)| (*id, condition.as_str(), *title)).collect();
    assert_eq!(
        told,
        [
            ("20261205-000000-0001", "missing", None),
            ("20261204-000000-0001", "foreign", None),
            ("20261203-000000-0001", "damaged", Some("upgrade to v8.5.4")),
            ("20261202-000000-0001", "torn in line 2", Some("patch")),
            ("20261201-041055-7f3a", "whole", Some("upgrade to v8.5.4")),
        ]
    );
    assert_eq!((list[4].records, list[4].last), (4, Some(at(4).into())));
    assert_eq!((list[3].records, list[3].last), (0, None));
    assert!(list[2].records < 4);
    assert!(list.iter().all(|summary| !summary.is_held));
}

#[test]
fn a_rollout_that_is_not_there_is_said_so() {
    let place = Place::new();
    let error = place.open().unwrap_err();
    let expected = format!("there is no rollout {} under {}", place.id, place.base.path().display());
    assert_eq!(error.to_string(), expected);
    assert_eq!(place.read().unwrap_err().to_string(), expected);
    assert!(!place.base.path().exists());
    let _journal = place.create();
    let again = Journal::create(&place.base, &place.id, at(0), &ann(), "t").unwrap_err();
    assert!(matches!(again, JournalError::Exists { .. }), "{again}");
    assert!(place.path().exists(), "what was there stays");
}
