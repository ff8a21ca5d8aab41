//! A disk that fails: nothing is lost silently, nothing is written twice, and the next try goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use proptest::collection::vec;
use proptest::prelude::*;
use tiroll::journal::{Disk, Journal, JournalError, list};

use super::disks::{Full, Play, Scripted};
use super::{Place, Record, ann, at, bob, contents, records, said};

fn create_on(place: &Place, disk: Arc<dyn Disk>) -> Result<Journal, JournalError> {
    Journal::create_on(disk, &place.base, &place.id, at(0), &ann(), "t")
}

fn disk_error(error: &JournalError, kind: ErrorKind) {
    match error {
        JournalError::Disk { source, .. } => assert_eq!(source.kind(), kind, "{error}"),
        _ => panic!("{error}"),
    }
    assert!(!error.meaning().is_empty() && !error.remedy().is_empty());
}

#[test]
fn a_disk_that_fills_within_a_line_costs_nothing_but_the_try() {
    let place = Place::new();
    let disk = Scripted::new();
    let mut journal = create_on(&place, disk.clone()).unwrap();
    journal.append(at(1), &[said("before")]).unwrap();
    let good = place.bytes();

    disk.writes([Play::Short(40), Play::Fails(ErrorKind::StorageFull)]);
    let error = journal.append(at(2), &[said("one"), said("two")]).unwrap_err();
    disk_error(&error, ErrorKind::StorageFull);
    assert!(error.to_string().starts_with(&format!("cannot write to {}: ", place.path().display())), "{error}");
    assert!(error.remedy().starts_with("make room"), "{}", error.remedy());
    assert_eq!(place.bytes(), good, "the half line is cut off at once");

    journal.append(at(3), &[said("one"), said("two")]).unwrap();
    assert_eq!(contents(&place.read().unwrap()), [said("before"), said("one"), said("two")]);
}

#[test]
fn what_could_not_be_cut_off_at_once_is_cut_off_before_the_next_write() {
    let place = Place::new();
    let disk = Scripted::new();
    let mut journal = create_on(&place, disk.clone()).unwrap();
    disk.writes([Play::Lies(30, ErrorKind::Other)]);
    disk.cuts([Play::Fails(ErrorKind::Other), Play::Fails(ErrorKind::ReadOnlyFilesystem)]);
    assert!(journal.append(at(1), &[said("a")]).is_err());
    let error = journal.append(at(1), &[said("a")]).unwrap_err();
    disk_error(&error, ErrorKind::ReadOnlyFilesystem);
    assert!(error.to_string().starts_with("cannot cut the unfinished end of "), "{error}");
    journal.append(at(1), &[said("a")]).unwrap();
    let read = place.read().unwrap();
    assert!(read.torn.is_none());
    assert_eq!(contents(&read), [said("a")]);
}

#[test]
fn records_whose_sync_failed_are_written_again_and_not_synced_again() {
    let place = Place::new();
    let disk = Scripted::new();
    let mut journal = create_on(&place, disk.clone()).unwrap();
    let good = place.bytes();
    disk.syncs([Play::Fails(ErrorKind::Other)]);
    let error = journal.append(at(1), &[said("a")]).unwrap_err();
    assert!(error.to_string().starts_with("cannot sync "), "{error}");
    assert_eq!(place.bytes(), good);
    journal.append(at(1), &[said("a")]).unwrap();
    assert_eq!(contents(&place.read().unwrap()), [said("a")]);
}

#[test]
fn a_disk_that_is_really_full_says_so() {
    let Ok(device) = OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let place = Place::new();
    let disk = Arc::new(Full { is_full: Mutex::new(false), device });
    let mut journal = create_on(&place, disk.clone()).unwrap();
    *disk.is_full.lock().unwrap() = true;
    disk_error(&journal.append(at(1), &[said("a")]).unwrap_err(), ErrorKind::StorageFull);
    *disk.is_full.lock().unwrap() = false;
    journal.append(at(1), &[said("a")]).unwrap();
    assert_eq!(contents(&place.read().unwrap()), [said("a")]);
}

#[test]
fn a_journal_that_cannot_be_begun_leaves_nothing_behind() {
    for kind in [ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem] {
        let place = Place::new();
        let disk = Scripted::new();
        disk.writes([Play::Short(7), Play::Fails(kind)]);
        disk_error(&create_on(&place, disk).unwrap_err(), kind);
        assert!(list(&place.base).unwrap().is_empty());
        place.create();
    }
}

fn any_play() -> impl Strategy<Value = Play> {
    prop_oneof![
        3 => Just(Play::Works),
        2 => (1..300_usize).prop_map(Play::Short),
        1 => Just(Play::Fails(ErrorKind::StorageFull)),
        1 => Just(Play::Fails(ErrorKind::Interrupted)),
        1 => (0..300_usize).prop_map(|most| Play::Lies(most, ErrorKind::Other)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_any_disk_the_acknowledged_records_are_there_once_and_in_order(
        sizes in vec(1..4_u64, 1..12),
        retries in vec(0..3_usize, 12),
        writes in vec(any_play(), 0..20),
        syncs in vec(any_play(), 0..10),
        cuts in vec(any_play(), 0..10),
    ) {
        let place = Place::new();
        let disk = Scripted::new();
        let mut journal = create_on(&place, disk.clone()).unwrap();
        disk.writes(writes);
        disk.syncs(syncs);
        disk.cuts(cuts);
        let mut acknowledged = Vec::new();
        for ((n, size), retries) in (1..).zip(sizes).zip(retries) {
            let batch: Vec<_> = (0..size).map(|k| Record::Came { act: n * 10 + k, outcome: None }).collect();
            // Some batches are given up.
            if (0..=retries).any(|_| journal.append(at(n), &batch).is_ok()) {
                acknowledged.extend(batch);
            }
            prop_assert_eq!(journal.records(), acknowledged.len() as u64);
        }
        // The scripts end, so that it works at last.
        prop_assert!((0..50).any(|_| journal.append(at(99), &[said("end")]).is_ok()));
        acknowledged.push(said("end"));
        let read = place.read().unwrap();
        prop_assert!(read.torn.is_none());
        prop_assert_eq!(contents(&read), acknowledged);
    }
}

#[test]
fn a_directory_that_was_removed_is_noticed_and_can_be_written_anew() {
    let place = Place::new();
    let mut journal = place.create();
    journal.append(at(1), &records(5)).unwrap();
    fs::remove_dir_all(place.base.path()).unwrap();
    let error = journal.append(at(2), &[said("after")]).unwrap_err();
    assert!(matches!(error, JournalError::Vanished { .. }), "{error}");
    assert!(matches!(journal.heartbeat(at(2)), Err(JournalError::Vanished { .. })));

    journal.restore().unwrap();
    assert_eq!(contents(&place.read().unwrap()), records(5));
    assert!(matches!(place.open(), Err(JournalError::Held(_))), "the lock is restored, too");
    journal.append(at(2), &[said("after")]).unwrap();
    drop(journal);
    let (_, opened) = place.open().unwrap();
    assert_eq!(contents(&opened), [records(5), vec![said("after")]].concat());
    assert!(opened.left_by.is_none());
}

#[test]
fn only_the_file_removed_is_restored_beside_its_note() {
    let place = Place::new();
    let mut journal = place.create();
    journal.append(at(1), &[said("a")]).unwrap();
    fs::remove_file(place.path()).unwrap();
    journal.restore().unwrap();
    journal.restore().unwrap();
    let Err(JournalError::Held(held)) = place.open() else { panic!("not held") };
    assert_eq!(held.holder.unwrap().name, "ann");
    assert_eq!(contents(&place.read().unwrap()), [said("a")]);
}

#[test]
fn a_directory_that_was_moved_away_and_back_is_gone_on_with() {
    let place = Place::new();
    let mut journal = place.create();
    let (here, there) = (place.base.rollout(&place.id), place.directory.path().join("away"));
    fs::rename(&here, &there).unwrap();
    assert!(matches!(journal.append(at(1), &[said("a")]), Err(JournalError::Vanished { .. })));
    fs::create_dir(&here).unwrap();
    fs::copy(there.join("journal.jsonl"), place.path()).unwrap();
    assert!(matches!(journal.append(at(1), &[said("a")]), Err(JournalError::Replaced { .. })));
    assert!(matches!(journal.restore(), Err(JournalError::Replaced { .. })));
    fs::remove_dir_all(&here).unwrap();
    fs::rename(&there, &here).unwrap();
    journal.append(at(1), &[said("a")]).unwrap();
    assert_eq!(contents(&place.read().unwrap()), [said("a")]);
}

#[test]
fn a_file_that_somebody_else_wrote_to_or_cut_is_not_written_to() {
    let place = Place::new();
    let mut journal = place.create();
    journal.append(at(1), &[said("a")]).unwrap();
    let good = place.bytes();
    let mut other: File = OpenOptions::new().append(true).open(place.path()).unwrap();
    other.write_all(b"x").unwrap();
    let error = journal.append(at(2), &[said("b")]).unwrap_err();
    let expected = format!("it has {} bytes where {} were written", good.len() + 1, good.len());
    assert!(error.to_string().ends_with(&expected), "{error}");
    other.set_len(3).unwrap();
    assert!(matches!(journal.append(at(2), &[said("b")]), Err(JournalError::Changed { found: 3, .. })));
    place.put(&good);
    journal.append(at(2), &[said("b")]).unwrap();
    assert_eq!(contents(&place.read().unwrap()), [said("a"), said("b")]);
}

#[test]
fn a_record_that_is_no_single_line_is_refused_before_anything_is_written() {
    let place = Place::new();
    let mut journal = place.create();
    let good = place.bytes();
    let raw = serde_json::value::RawValue::from_string("{\n}".to_owned()).unwrap();
    assert!(matches!(journal.append(at(1), &[raw]), Err(JournalError::Unwritable { .. })));
    assert_eq!(place.bytes(), good);
    journal.append(at(1), &[said("a")]).unwrap();
}

#[test]
fn a_torn_line_that_cannot_be_kept_aside_is_not_cut_off() {
    let place = Place::new();
    let whole = place.written(&records(3));
    let cut = &whole[..whole.len() - 5];
    place.put(cut);
    let disk = Scripted::new();
    disk.writes([Play::Fails(ErrorKind::StorageFull)]);
    let opened = Journal::open_on::<Record>(disk, &place.base, &place.id, at(9), &bob());
    disk_error(&opened.unwrap_err(), ErrorKind::StorageFull);
    assert_eq!(place.bytes(), cut);
    let (_, opened) = place.open().unwrap();
    assert!(opened.torn.unwrap().aside.is_some());
}

#[test]
fn directories_and_files_are_for_their_owner_alone() -> io::Result<()> {
    let place = Place::new();
    let whole = place.written(&records(3));
    place.put(&whole[..whole.len() - 5]);
    let (_journal, _) = place.open().unwrap();
    let claim = tiroll::journal::Claim::new("cdc", tiroll::cluster::Address::new("10.0.1.1", 8300));
    let _locks = tiroll::journal::Locks::take(&place.base, &[claim], super::holder(&place.id)).unwrap();
    let mut found = vec![place.base.path().to_path_buf()];
    let mut seen = 0;
    while let Some(path) = found.pop() {
        let metadata = fs::metadata(&path)?;
        let mode = metadata.permissions().mode() & 0o777;
        assert_eq!(mode, if metadata.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        seen += 1;
        if metadata.is_dir() {
            found.extend(fs::read_dir(&path)?.map(|entry| entry.unwrap().path()));
        }
    }
    // tiroll, locks and its file, rollouts, the rollout, its journal, torn line and writer.
    assert_eq!(seen, 8);
    Ok(())
}
