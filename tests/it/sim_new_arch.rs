//! Drains of the new architecture in virtual time. Who is a member and coordinates is in `sim_new_members`.

use std::collections::BTreeSet;

use serde_json::json;
use tiroll::sim::scenario::{Fault, Scenario};
use tiroll::sim::world::{DrainAnswer, World};

use super::sim_support::{id_at, lab_with, owner, tables, world};

pub(crate) const A: &str = "127.0.0.1:8300";
pub(crate) const B: &str = "127.0.0.1:8301";
pub(crate) const C: &str = "127.0.0.1:8302";

/// The lab of the recordings with the new architecture.
pub(crate) fn new_lab(cluster: &str, more: &str) -> Scenario {
    lab_with(120, 3, cluster, &format!("architecture: new\n{more}"))
}

pub(crate) fn pass(world: &mut World, ms: u64) {
    let at = world.now_ms() + ms;
    world.advance_to(at);
}

pub(crate) fn count(world: &mut World, id: &str) -> usize {
    match world.drain(0, id) {
        Some(DrainAnswer::Count(count)) => count,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn liveness(world: &mut World, address: &str) -> u64 {
    let state = world.state();
    let mut found = state.captures.into_iter().filter(|it| it.address == address);
    found.find_map(|it| it.liveness_raw).unwrap()
}

/// Asks every 200 ms until the answer is 0; says what was answered when.
pub(crate) fn drain_to_zero(world: &mut World, id: &str) -> Vec<(u64, usize)> {
    let mut seen = Vec::new();
    for _ in 0..300 {
        let answer = count(world, id);
        seen.push((world.now_ms(), answer));
        if answer == 0 {
            return seen;
        }
        pass(world, 200);
    }
    panic!("no end: {seen:?}");
}

pub(crate) fn do_fault(world: &mut World, fault: serde_json::Value) {
    let fault: Fault = serde_json::from_value(fault).unwrap();
    assert_eq!(world.unknown_in(&fault), None);
    world.add_fault(fault);
}

#[test]
fn a_drain_counts_changefeeds_first_and_is_over_only_when_the_target_stops() {
    let mut world = world(&new_lab("", ""));
    let id = id_at(&mut world, B);
    assert_eq!(count(&mut world, &id), 2, "one for each changefeed");
    assert_eq!(liveness(&mut world, B), 0);
    pass(&mut world, 100);
    assert_eq!(liveness(&mut world, B), 1);
    let (mut changes, mut last, mut empty_at, mut stopped_at) = (Vec::new(), 2, None, None);
    while last > 0 {
        pass(&mut world, 20);
        let now = world.now_ms();
        assert!(now < 15_000, "{changes:?}");
        let answer = count(&mut world, &id);
        if answer != last {
            changes.push((now, answer));
            last = answer;
        }
        if tables(&mut world)[B] == 0 {
            empty_at.get_or_insert(now);
        }
        if liveness(&mut world, B) == 2 {
            stopped_at.get_or_insert(now);
            assert!(empty_at.is_some(), "it stops only when nothing is left");
        } else {
            assert!(answer >= 1, "0 is answered only after it was seen stopping");
        }
    }
    let most = changes.iter().map(|(_, answer)| *answer).max().unwrap();
    assert!((60..=80).contains(&most), "{changes:?}");
    let refreshed = &changes[..changes.len() - 1];
    assert!(refreshed.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 900), "refreshed too often: {changes:?}");
    let after = changes.last().unwrap().0 - empty_at.unwrap();
    assert!((1_300..3_500).contains(&after), "0 came {after} ms after the last table");
    assert!(changes.last().unwrap().0 >= stopped_at.unwrap());
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
}

#[test]
fn a_table_is_never_listed_twice_and_for_a_moment_nowhere() {
    let mut world = world(&new_lab("", ""));
    let id = id_at(&mut world, B);
    count(&mut world, &id);
    let mut fewest = 121;
    for _ in 0..500 {
        pass(&mut world, 20);
        for feed in 0..2 {
            let Some(nodes) = world.dispatchers(feed) else {
                continue;
            };
            let ids: Vec<u64> = nodes.iter().flat_map(|node| node.table_ids.clone()).collect();
            let distinct: BTreeSet<u64> = ids.iter().copied().collect();
            assert_eq!(distinct.len(), ids.len());
            assert!(distinct.contains(&0));
            assert!(nodes.iter().all(|node| !node.table_ids.is_empty()), "a node with nothing is not there");
            fewest = fewest.min(ids.len());
        }
    }
    assert!((100..121).contains(&fewest), "{fewest}");
    let nodes = world.dispatchers(0).unwrap();
    assert!(nodes.iter().all(|node| node.capture_id != id));
    assert_eq!(nodes.iter().map(|node| node.table_ids.len()).sum::<usize>(), 121);
}

#[test]
fn every_answer_has_its_own_order() {
    let mut world = world(&new_lab("", ""));
    let all: Vec<_> = (0..20).map(|_| world.dispatchers(0).unwrap()).collect();
    let firsts: BTreeSet<&str> = all.iter().map(|nodes| nodes[0].capture_id.as_str()).collect();
    assert_eq!(firsts.len(), 3);
    let places: BTreeSet<usize> = all
        .iter()
        .flat_map(|nodes| nodes.iter().filter_map(|node| node.table_ids.iter().position(|id| *id == 0)))
        .collect();
    assert!(places.len() > 5, "{places:?}");
}

#[test]
fn a_maintainer_on_the_target_leaves_first() {
    let mut world = world(&new_lab("", ""));
    let home = world.dispatchers(0).unwrap().into_iter().find(|node| node.table_ids.contains(&0)).unwrap().capture_id;
    let state = world.state();
    let address = state.captures.iter().find(|it| it.id == home).unwrap().address.clone();
    while owner(&mut world).as_ref() == Some(&address) {
        world.resign(0);
        pass(&mut world, 300);
    }
    let before = tables(&mut world)[&address];
    count(&mut world, &home);
    let mut without = 0;
    for _ in 0..60 {
        pass(&mut world, 20);
        match world.dispatchers(0) {
            None => {
                without += 1;
                assert_eq!(tables(&mut world)[&address], before, "no table moves before the maintainer");
            }
            Some(nodes) => {
                let on_it = nodes.iter().find(|node| node.capture_id == home);
                let zero = on_it.is_some_and(|node| node.table_ids.contains(&0));
                assert!(!zero || without == 0, "it does not come back");
            }
        }
    }
    assert!((9..=24).contains(&without), "{without} times 20 ms without a maintainer");
    drain_to_zero(&mut world, &home);
}

#[test]
fn a_drain_is_held_open_until_its_target_has_left_the_list() {
    let mut world = world(&new_lab("", ""));
    let (b, c) = (id_at(&mut world, B), id_at(&mut world, C));
    drain_to_zero(&mut world, &b);
    let before = tables(&mut world);
    for _ in 0..120 {
        pass(&mut world, 1_000);
        assert_eq!(count(&mut world, &c), 1, "whatever its tables");
        assert_eq!(count(&mut world, &b), 0);
        assert_eq!(liveness(&mut world, C), 0);
    }
    assert_eq!(tables(&mut world), before, "nothing is balanced meanwhile");
    world.stop(B, false).unwrap();
    pass(&mut world, 4_900);
    assert_eq!((world.captures_of(0).len(), count(&mut world, &c)), (3, 1));
    let mut still = 0;
    while count(&mut world, &c) == 1 {
        still += u64::from(world.captures_of(0).len() == 2) * 20;
        pass(&mut world, 20);
        assert!(still < 1_000);
    }
    assert!((180..=520).contains(&still), "the members are told for {still} ms that it is over");
    assert_eq!(count(&mut world, &c), 2, "then the drain of the other one begins");
    assert_eq!(world.drain(0, &b), Some(DrainAnswer::Count(0)), "a completed target is remembered");
}

#[test]
fn a_gone_capture_that_was_never_drained_does_not_exist() {
    let mut world = world(&new_lab("", ""));
    let (b, c) = (id_at(&mut world, B), id_at(&mut world, C));
    count(&mut world, &c);
    pass(&mut world, 1_000);
    world.stop(C, true).unwrap();
    pass(&mut world, 4_800);
    assert!(count(&mut world, &c) > 0, "listed still, so the drain is open still");
    pass(&mut world, 400);
    assert_eq!(world.drain(0, &c), Some(DrainAnswer::Unknown), "its drain had not come to its end");
    world.stop(B, true).unwrap();
    pass(&mut world, 5_200);
    assert_eq!(world.drain(0, &b), Some(DrainAnswer::Unknown));
    assert_eq!(world.drain(0, ""), Some(DrainAnswer::Unknown));
}

#[test]
fn the_coordinator_is_not_drained_and_alone_there_is_no_other_answer() {
    let mut alone = world(&lab_with(10, 1, "", "architecture: new"));
    let id = id_at(&mut alone, A);
    assert_eq!(alone.drain(0, &id), Some(DrainAnswer::IsOwner));
    assert_eq!(alone.drain(0, "nope"), Some(DrainAnswer::Unknown));
    let mut world = world(&new_lab("", ""));
    let id = id_at(&mut world, A);
    assert_eq!(world.drain(0, &id), Some(DrainAnswer::IsOwner));
}

#[test]
fn a_restarted_capture_stays_empty_for_long_and_is_filled_in_the_end() {
    // Wherever in the balancing period that is.
    for wait in 0..12 {
        let mut world = world(&new_lab("", ""));
        pass(&mut world, wait * 5_000);
        let id = id_at(&mut world, B);
        drain_to_zero(&mut world, &id);
        world.restart(B, Some("v8.5.4"), false).unwrap();
        pass(&mut world, 7_500);
        assert_eq!(world.captures_of(0).len(), 3);
        assert_eq!(liveness(&mut world, B), 0);
        for _ in 0..55 {
            pass(&mut world, 1_000);
            assert_eq!(tables(&mut world)[B], 0);
        }
        pass(&mut world, 90_000);
        assert_eq!(tables(&mut world)[B], 80);
        let referee = world.referee();
        assert_eq!((referee.stops[0].tables, referee.stops[0].was_owner), (0, false));
        assert!(world.left_stopping().is_empty());
    }
}

#[test]
fn nothing_is_balanced_while_a_drained_capture_is_there() {
    let mut world = world(&new_lab("", ""));
    let id = id_at(&mut world, B);
    drain_to_zero(&mut world, &id);
    world.stop(C, true).unwrap();
    pass(&mut world, 8_000);
    world.start(C, None).unwrap();
    pass(&mut world, 150_000);
    let all = tables(&mut world);
    assert_eq!((all[A], all[B], all[C]), (240, 0, 0), "a third one came back empty and gets nothing");
    world.restart(B, None, false).unwrap();
    pass(&mut world, 200_000);
    let all = tables(&mut world);
    assert_eq!((all[A], all[B], all[C]), (80, 80, 80));
}

#[test]
fn a_drain_that_is_not_asked_for_again_stands_still_after_the_coordinator_changed() {
    let mut world = world(&new_lab("", ""));
    let id = id_at(&mut world, B);
    count(&mut world, &id);
    pass(&mut world, 2_000);
    world.resign(0);
    pass(&mut world, 1_500);
    assert_ne!(owner(&mut world).as_deref(), Some(A));
    let left = tables(&mut world)[B];
    assert!((10..80).contains(&left), "{left}");
    for _ in 0..15 {
        pass(&mut world, 1_000);
        assert_eq!((tables(&mut world)[B], liveness(&mut world, B)), (left, 1));
    }
    assert_eq!(count(&mut world, &id), 2, "it begins anew");
    let seen = drain_to_zero(&mut world, &id);
    assert!(seen.iter().all(|(_, answer)| *answer <= left), "{seen:?}");
    assert_eq!((tables(&mut world)[B], liveness(&mut world, B)), (0, 2));
}

#[test]
fn no_maintainer_is_placed_beside_a_leaving_capture_that_nobody_drains() {
    let mut world = world(&new_lab("", ""));
    let id = id_at(&mut world, B);
    count(&mut world, &id);
    pass(&mut world, 2_000);
    world.resign(0);
    pass(&mut world, 1_000);
    do_fault(&mut world, json!({ "do": { "changefeed": { "id": "cf-a", "state": "stopped" } } }));
    do_fault(&mut world, json!({ "do": { "changefeed": { "id": "cf-a", "state": "normal" } } }));
    pass(&mut world, 20_000);
    assert_eq!(world.dispatchers(0), None);
    assert!(world.dispatchers(1).is_some());
    count(&mut world, &id);
    pass(&mut world, 1_000);
    assert!(world.dispatchers(0).is_some(), "asked for again, it goes on");
    drain_to_zero(&mut world, &id);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
}

#[test]
fn a_false_zero_leaves_tables_behind() {
    let more = "faults: [{ when: { drain: capture-2 }, do: { false_zero: { process: capture-2 } } }]";
    let mut world = world(&new_lab("", more));
    let id = id_at(&mut world, B);
    let seen = drain_to_zero(&mut world, &id);
    assert_eq!(seen[0].1, 2);
    assert!(seen.last().unwrap().0 < 1_000, "{seen:?}");
    assert_eq!(liveness(&mut world, B), 2);
    let named = |world: &mut World| -> usize {
        let nodes = (0..2).flat_map(|feed| world.dispatchers(feed).unwrap()).collect::<Vec<_>>();
        nodes.iter().filter(|node| node.capture_id == id).map(|node| node.table_ids.len()).sum()
    };
    assert_eq!(named(&mut world), 80);
    pass(&mut world, 60_000);
    assert_eq!((named(&mut world), count(&mut world, &id)), (80, 0), "they stay");
    world.restart(B, None, false).unwrap();
    pass(&mut world, 8_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240, "until the process is gone");
    assert_eq!(world.referee().stops[0].tables, 80);
    // The next process is drained as it should be.
    pass(&mut world, 100_000);
    let id = id_at(&mut world, B);
    assert!(tables(&mut world)[B] > 0);
    drain_to_zero(&mut world, &id);
    assert_eq!(tables(&mut world)[B], 0);
}

#[test]
fn a_false_zero_comes_with_every_trigger() {
    for when in [
        json!({ "at_ms": 500 }),
        json!({ "tables_below": { "process": "capture-2", "count": 60 } }),
        json!({ "resign": "default" }),
    ] {
        let mut world = world(&new_lab("", ""));
        do_fault(&mut world, json!({ "when": when, "do": { "false_zero": { "process": B } } }));
        let id = id_at(&mut world, B);
        count(&mut world, &id);
        pass(&mut world, 1_000);
        if when["resign"] == "default" {
            world.resign(0);
            pass(&mut world, 1_500);
        }
        drain_to_zero(&mut world, &id);
        let left = tables(&mut world)[B];
        assert!(left > 0, "{when}");
        assert_eq!(liveness(&mut world, B), 2, "{when}");
    }
}

#[test]
fn a_stuck_table_never_leaves() {
    let mut world = world(&new_lab("", ""));
    do_fault(&mut world, json!({ "do": { "stuck_table": { "process": "capture-2" } } }));
    let id = id_at(&mut world, B);
    count(&mut world, &id);
    pass(&mut world, 120_000);
    assert_eq!((count(&mut world, &id), tables(&mut world)[B], liveness(&mut world, B)), (1, 1, 1));
    world.stop(B, true).unwrap();
    pass(&mut world, 8_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
}

#[test]
fn beside_an_early_build_a_drain_is_zero_and_drains_nothing() {
    let mut world = world(&new_lab("    legacy: [capture-3]", ""));
    let (b, c) = (id_at(&mut world, B), id_at(&mut world, C));
    for id in [&b, &c] {
        assert_eq!(count(&mut world, id), 0);
    }
    pass(&mut world, 10_000);
    assert_eq!((tables(&mut world)[B], liveness(&mut world, B)), (80, 0));
    world.restart(C, Some("v8.5.3"), true).unwrap();
    pass(&mut world, 10_000);
    assert_eq!(count(&mut world, &b), 0, "the same version is the same build");
    world.restart(C, Some("v8.5.4"), true).unwrap();
    pass(&mut world, 10_000);
    assert_eq!(count(&mut world, &b), 2, "the new one is cured");
    drain_to_zero(&mut world, &b);
    assert_eq!(tables(&mut world)[B], 0);
}

#[test]
fn a_fake_drain_answers_ten_every_tenth_time() {
    let mut world = world(&new_lab("    fake_drain: true", ""));
    let b = id_at(&mut world, B);
    let answers: Vec<usize> = (0..20).map(|_| count(&mut world, &b)).collect();
    let tenth: Vec<usize> = (1..=20).map(|call| if call % 10 == 0 { 10 } else { 0 }).collect();
    assert_eq!(answers, tenth);
    pass(&mut world, 20_000);
    assert_eq!((tables(&mut world)[B], liveness(&mut world, B)), (80, 0));
    // B is upgraded and coordinates: its drains are real ones.
    world.restart(B, Some("v8.5.4"), true).unwrap();
    pass(&mut world, 10_000);
    while owner(&mut world).as_deref() != Some(B) {
        world.resign(0);
        pass(&mut world, 500);
    }
    let c = id_at(&mut world, C);
    assert_eq!(count(&mut world, &c), 2);
    drain_to_zero(&mut world, &c);
    assert_eq!(tables(&mut world)[C], 0);
}

#[test]
fn a_paused_changefeed_has_no_maintainer_and_is_not_counted() {
    let mut world = world(&new_lab("", ""));
    do_fault(&mut world, json!({ "do": { "changefeed": { "id": "cf-b", "state": "stopped" } } }));
    assert_eq!(world.dispatchers(1), None);
    assert!(world.healthy(0));
    let id = id_at(&mut world, B);
    assert_eq!(count(&mut world, &id), 1);
    let seen = drain_to_zero(&mut world, &id);
    assert!(seen.iter().any(|(_, answer)| (10..=40).contains(answer)), "{seen:?}");
    do_fault(&mut world, json!({ "do": { "changefeed": { "id": "cf-b", "state": "normal" } } }));
    pass(&mut world, 3_000);
    let nodes = world.dispatchers(1).unwrap();
    assert_eq!(nodes.iter().map(|node| node.table_ids.len()).sum::<usize>(), 121);
    assert!(nodes.iter().all(|node| node.capture_id != id), "nothing comes to a drained one");
}

#[test]
fn one_that_waits_for_a_retry_counts_and_one_that_failed_does_not() {
    for (state, first) in [("pending", 2), ("warning", 2), ("failed", 1), ("finished", 1)] {
        let mut world = world(&new_lab("", ""));
        do_fault(&mut world, json!({ "do": { "changefeed": { "id": "cf-b", "state": state } } }));
        let id = id_at(&mut world, B);
        assert_eq!(count(&mut world, &id), first, "{state}");
        drain_to_zero(&mut world, &id);
    }
}

#[test]
fn draining_costs_lag_but_not_more_than_was_recorded() {
    let mut worst = Vec::new();
    for seed in 1..=20 {
        let text = include_str!("../../assets/scenarios/new-arch.yaml").replace("20261203", &seed.to_string());
        let mut world = world(&Scenario::from_yaml("x.yaml", &text).unwrap());
        let id = id_at(&mut world, B);
        let seen = drain_to_zero(&mut world, &id);
        let took = seen.last().unwrap().0;
        assert!((10_000..40_000).contains(&took), "{took}");
        worst.push(world.referee().worst_lag_ms);
    }
    worst.sort_unstable();
    assert!(worst[0] >= 2_500 && worst[19] <= 8_300, "{worst:?}");
    assert!(worst[19] > 5_000, "{worst:?}");
}

#[test]
fn the_same_seed_gives_the_same_course() {
    let course = || {
        let mut world = world(&Scenario::builtin("new-arch").unwrap().unwrap());
        let id = id_at(&mut world, B);
        let seen = drain_to_zero(&mut world, &id);
        world.restart(B, Some("v8.5.4"), false).unwrap();
        pass(&mut world, 100_000);
        (seen, tables(&mut world), world.state())
    };
    assert_eq!(course(), course());
}
