//! One writer for a rollout, one program for a server: between processes, and after a process died.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use tiroll::cluster::Address;
use tiroll::journal::{Base, Claim, Journal, JournalError, LockHeld, Locks, RolloutId, Writer, list};

use super::{Place, Record, ann, at, bob, contents, holder, said};

/// Names the base directory in which the child of a test below takes its locks.
const BASE: &str = "TIROLL_TEST_JOURNAL_BASE";

fn claim(host: &str) -> Claim {
    Claim::new("cdc", Address::new(host, 8300))
}

fn held(error: JournalError) -> LockHeld {
    match error {
        JournalError::Held(held) => *held,
        other => panic!("{other}"),
    }
}

/// Not a test by itself: the second process of the tests below. It holds a rollout and a server until it is killed.
#[test]
fn holds_for_another_test() {
    let Some(base) = env::var_os(BASE) else {
        return;
    };
    let base = Base::at(base);
    let id = RolloutId::parse("20261201-041055-7f3a").unwrap();
    let mut journal = Journal::create(&base, &id, at(0), &Writer::here("ann"), "t").unwrap();
    journal.append(at(1), &[said("from the other process")]).unwrap();
    let holder = tiroll::journal::Holder::new(&Writer::here("ann"), &id, at(0));
    let _locks = Locks::take(&base, &[claim("10.0.1.2")], holder).unwrap();
    println!("\nheld");
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// Another process that holds the rollout and a server, killed with the test.
struct Other(Child);

impl Other {
    fn start(place: &Place) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "journal::held::holds_for_another_test", "--nocapture", "--test-threads=1"])
            .env(BASE, place.base.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "held"), "the other process ended before it held anything");
        Self(child)
    }

    fn kill(mut self) -> u32 {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        self.0.id()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_second_process_is_told_who_holds_it_and_takes_over_when_that_one_dies() {
    let place = Place::new();
    let other = Other::start(&place);
    let pid = other.0.id();
    let host = Writer::here("x").host;

    let error = place.open().unwrap_err();
    let expected = format!(
        "rollout {0} is held by ann on {host} (process {pid}, rollout {0}, since 2026-12-01T04:10:55.123Z)",
        place.id
    );
    assert_eq!(error.to_string(), expected);
    assert!(error.remedy().contains(&format!("`tiroll attach {}`", place.id)), "{}", error.remedy());
    assert!(error.remedy().contains(&format!("as soon as process {pid} on {host} ends")), "{}", error.remedy());

    let both = [claim("10.0.1.2"), claim("10.0.1.1")];
    let refused = held(Locks::take(&place.base, &both, holder(&place.id)).unwrap_err());
    assert_eq!(refused.what, "cdc 10.0.1.2:8300");
    assert_eq!(refused.holder.unwrap().pid, pid);
    // Nothing of the refused attempt is kept.
    drop(Locks::take(&place.base, &[claim("10.0.1.1")], holder(&place.id)).unwrap());

    let summary = list(&place.base).unwrap().remove(0);
    assert!(summary.is_held);
    assert_eq!(summary.holder.unwrap().pid, pid);

    assert_eq!(other.kill(), pid);
    let (mut journal, opened) = place.open().unwrap();
    assert_eq!(opened.left_by.as_ref().unwrap().pid, pid, "the dead holder is reported");
    assert_eq!(contents(&opened), [said("from the other process")]);
    journal.append(at(2), &[said("from this one")]).unwrap();
    let locks = Locks::take(&place.base, &both, holder(&place.id)).unwrap();
    let taken: Vec<_> = locks.taken_over().iter().map(|(claim, holder)| (claim.to_string(), holder.pid)).collect();
    assert_eq!(taken, [("cdc 10.0.1.2:8300".to_owned(), pid)]);
}

#[test]
fn a_lock_that_was_let_go_names_nobody() {
    let place = Place::new();
    drop(place.create());
    let (journal, opened) = place.open().unwrap();
    assert_eq!(opened.left_by, None);
    let refused = held(Journal::open::<Record>(&place.base, &place.id, at(1), &ann()).unwrap_err());
    let holder = refused.holder.unwrap();
    assert_eq!((holder.name.as_str(), holder.since), ("bob", at(100).into()));
    drop(journal);
    assert!(!list(&place.base).unwrap()[0].is_held);
    assert!(list(&place.base).unwrap()[0].holder.is_none());
}

#[test]
fn a_refused_attempt_leaves_the_name_of_the_dead() {
    let place = Place::new();
    let other = Other::start(&place);
    let pid = other.kill();
    let kept = Locks::take(&place.base, &[claim("10.0.1.3")], holder(&place.id)).unwrap();
    let both = [claim("10.0.1.2"), claim("10.0.1.3")];
    assert!(Locks::take(&place.base, &both, holder(&place.id)).is_err());
    drop(kept);
    let locks = Locks::take(&place.base, &both, holder(&place.id)).unwrap();
    assert_eq!(locks.taken_over().values().map(|holder| holder.pid).collect::<Vec<_>>(), [pid]);

    // The same for a journal that is refused for another reason.
    let good = place.bytes();
    place.put(&[&good[..], b"x\n"].concat());
    assert!(matches!(place.open(), Err(JournalError::Damaged { .. })));
    place.put(&good);
    assert_eq!(place.open().unwrap().1.left_by.unwrap().pid, pid);
}

#[test]
fn a_heartbeat_is_seen_and_finds_a_lost_lock() {
    let place = Place::new();
    let mut journal = place.create();
    let mut locks = Locks::take(&place.base, &[claim("10.0.1.1")], holder(&place.id)).unwrap();
    journal.heartbeat(at(30)).unwrap();
    locks.heartbeat(at(30)).unwrap();
    let seen = held(place.open().unwrap_err()).holder.unwrap();
    assert_eq!((seen.since, seen.heartbeat), (at(0).into(), at(30).into()));
    let seen = held(Locks::take(&place.base, &[claim("10.0.1.1")], holder(&place.id)).unwrap_err()).holder.unwrap();
    assert_eq!((seen.since, seen.heartbeat), (at(0).into(), at(30).into()));

    // Somebody takes the lock file for a leftover.
    fs::remove_file(place.base.path().join("locks/cdc-10.0.1.1=8300.lock")).unwrap();
    let error = locks.heartbeat(at(40)).unwrap_err();
    assert!(matches!(error, JournalError::LockLost { .. }), "{error}");
    let _second = Locks::take(&place.base, &[claim("10.0.1.1")], holder(&place.id)).unwrap();
    assert!(locks.heartbeat(at(50)).is_err());
}

#[test]
fn the_note_for_people_may_be_removed_without_harm() {
    let place = Place::new();
    let mut journal = place.create();
    fs::remove_file(place.base.rollout(&place.id).join("writer.json")).unwrap();
    let refused = held(Journal::open::<Record>(&place.base, &place.id, at(1), &bob()).unwrap_err());
    assert_eq!(refused.holder, None);
    journal.append(at(1), &[said("a")]).unwrap();
}

#[test]
fn whoever_only_looks_never_turns_a_writer_away() {
    let place = Place::new();
    drop(place.create());
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let place = &place;
        scope.spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                assert_eq!(list(&place.base).unwrap().len(), 1);
            }
        });
        for _ in 0..200 {
            drop(place.open().unwrap());
        }
        drop(stop);
    });
}
