//! The new architecture: who is a member, who coordinates, and what happens when processes end.

use serde_json::json;
use tiroll::sim::scenario::Scenario;
use tiroll::sim::world::{DrainAnswer, OwnerView, World};

use super::sim_new_arch::{A, B, C, count, do_fault, drain_to_zero, liveness, new_lab, pass};
use super::sim_support::{id_at, owner, tables, world};

const D: &str = "127.0.0.1:8303";

/// The address of the node that the maintainer of a changefeed is on.
fn home(world: &mut World, feed: usize) -> String {
    let nodes = world.dispatchers(feed).unwrap();
    let id = nodes.into_iter().find(|node| node.table_ids.contains(&0)).unwrap().capture_id;
    world.state().captures.into_iter().find(|it| it.id == id).unwrap().address
}

/// Lets the node with the maintainer of the first changefeed coordinate.
fn let_home_coordinate(world: &mut World) -> String {
    let home = home(world, 0);
    while owner(world).as_ref() != Some(&home) {
        world.resign(0);
        pass(world, 500);
    }
    home
}

fn other_than(wanted: &str) -> &'static str {
    [A, B, C].into_iter().find(|address| *address != wanted).unwrap()
}

fn listed(world: &mut World, address: &str) -> usize {
    world.captures_of(0).iter().filter(|it| it.address == address).count()
}

#[test]
fn a_resign_leaves_no_gap() {
    let mut world = world(&new_lab("", ""));
    let mut owners = Vec::new();
    for _ in 0..3 {
        world.resign(0);
        for _ in 0..20 {
            pass(&mut world, 20);
            assert_eq!(world.owner_view(1), OwnerView::Serving(0));
            assert!(world.healthy(0));
            assert!(world.dispatchers(0).is_some(), "maintainers stay where they are");
        }
        owners.push(owner(&mut world).unwrap());
    }
    assert_eq!(owners, [B, C, A], "who resigned goes to the end of the queue");
    assert_eq!(world.max_no_owner_ms(), 0);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
}

#[test]
fn a_leaving_capture_never_coordinates() {
    let mut world = world(&new_lab("", ""));
    let b = id_at(&mut world, B);
    count(&mut world, &b);
    pass(&mut world, 500);
    for expected in [C, A, C] {
        world.resign(0);
        pass(&mut world, 500);
        assert_eq!(owner(&mut world).as_deref(), Some(expected));
    }
}

#[test]
fn a_stopped_capture_stays_listed_for_five_seconds_and_its_liveness_as_it_was() {
    let mut world = world(&new_lab("", ""));
    let id = id_at(&mut world, B);
    world.stop(B, false).unwrap();
    assert_eq!(liveness(&mut world, B), 0, "it does not even say that it stops");
    pass(&mut world, 5_000);
    assert_eq!((world.captures_of(0).len(), tables(&mut world)[B]), (3, 80));
    pass(&mut world, 160);
    assert_eq!(world.captures_of(0).len(), 2);
    pass(&mut world, 1_500);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
    let stop = &world.referee().stops[0];
    assert_eq!((stop.tables, stop.was_owner, stop.forced), (80, false, false));
    assert_eq!(world.drain(0, &id), Some(DrainAnswer::Unknown));
}

#[test]
fn the_tables_call_names_a_gone_node_for_a_moment() {
    let mut named = 0;
    for seed in 1..=10 {
        let text = include_str!("../../assets/scenarios/new-arch.yaml").replace("20261203", &seed.to_string());
        let mut world = world(&Scenario::from_yaml("x.yaml", &text).unwrap());
        let id = id_at(&mut world, B);
        world.stop(B, true).unwrap();
        for _ in 0..300 {
            pass(&mut world, 20);
            let gone = world.captures_of(0).iter().all(|it| it.id != id);
            let nodes = world.dispatchers(0).unwrap_or_default();
            named += u64::from(gone && nodes.iter().any(|node| node.capture_id == id));
        }
        let nodes = world.dispatchers(0).unwrap();
        assert!(nodes.iter().all(|node| node.capture_id != id));
    }
    assert!(named > 10, "{named} samples");
}

#[test]
fn a_crashed_capture_is_listed_for_more_than_thirteen_seconds() {
    let mut world = world(&new_lab("", ""));
    let id = id_at(&mut world, B);
    world.kill(B, false).unwrap();
    count(&mut world, &id);
    pass(&mut world, 6_000);
    let seen = count(&mut world, &id);
    pass(&mut world, 7_150);
    assert_eq!((count(&mut world, &id), world.captures_of(0).len()), (seen, 3), "a dead one is not drained");
    assert!(world.healthy(0) && seen > 0);
    pass(&mut world, 300);
    assert_eq!(world.captures_of(0).len(), 2);
    pass(&mut world, 2_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
}

#[test]
fn a_started_capture_answers_before_it_is_in_any_list() {
    let mut world = world(&new_lab("", ""));
    world.stop(B, true).unwrap();
    pass(&mut world, 8_000);
    world.start(B, Some("v8.5.4")).unwrap();
    let process = world.find(B).unwrap();
    let (mut refused, mut unlisted) = (0, 0);
    while listed(&mut world, B) == 0 {
        pass(&mut world, 10);
        if world.is_listening(process) {
            unlisted += 10;
        } else {
            refused += 10;
        }
        assert!(refused + unlisted < 2_000);
    }
    assert!((90..=200).contains(&refused), "{refused}");
    assert!((90..=410).contains(&unlisted), "{unlisted}");
    assert!(world.healthy(0));
}

#[test]
fn a_coordinator_that_ends_is_succeeded_at_once_and_its_maintainers_come_later() {
    let mut world = world(&new_lab("", ""));
    let first = let_home_coordinate(&mut world);
    world.stop(&first, true).unwrap();
    pass(&mut world, 60);
    let heir = owner(&mut world).unwrap();
    assert_ne!(heir, first);
    assert_eq!(world.captures_of(0).len(), 3, "listed still");
    let mut without = 0;
    while world.dispatchers(0).is_none() {
        pass(&mut world, 20);
        without += 20;
        assert!(without < 8_000);
    }
    assert!((4_900..5_800).contains(&without), "{without} ms without a maintainer");
    pass(&mut world, 2_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
    assert_eq!(world.max_no_owner_ms(), 0);
    assert!(world.referee().stops[0].was_owner);
}

#[test]
fn a_crash_of_the_coordinator_in_a_drain() {
    let mut world = world(&new_lab("", ""));
    let first = let_home_coordinate(&mut world);
    let target = other_than(&first);
    let id = id_at(&mut world, target);
    count(&mut world, &id);
    pass(&mut world, 1_000);
    world.kill(&first, false).unwrap();
    assert_eq!(world.drain(0, &id), None);
    assert_eq!(world.dispatchers(0), None);
    let left = tables(&mut world)[target];
    let slot = [A, B, C].iter().position(|address| *address == target).unwrap();
    pass(&mut world, 7_950);
    assert_eq!(world.owner_view(slot), OwnerView::Dead(first.clone()));
    pass(&mut world, 1_300);
    assert_eq!(world.owner_view(slot), OwnerView::Serving(0));
    let gap = world.max_no_owner_ms();
    assert!((8_000..=9_200).contains(&gap), "{gap}");
    pass(&mut world, 3_500);
    assert_eq!(listed(&mut world, &first), 1, "its successor lists it for the usual five seconds");
    while listed(&mut world, &first) == 1 {
        assert_eq!(count(&mut world, &id), 1, "while the dead one is listed");
        assert_eq!(world.dispatchers(0), None);
        assert_eq!(liveness(&mut world, target), 1);
        pass(&mut world, 100);
        assert!(world.now_ms() < 30_000);
    }
    let at = tables(&mut world)[target];
    assert!(at <= left && at > 0, "{at} of {left}");
    let dropped_at = world.now_ms();
    while world.dispatchers(0).is_none() {
        count(&mut world, &id);
        pass(&mut world, 20);
    }
    let without = world.now_ms() - dropped_at;
    assert!((100..900).contains(&without), "{without}");
    let seen = drain_to_zero(&mut world, &id);
    assert!(seen.iter().any(|(_, answer)| *answer > 2), "{seen:?}");
    assert_eq!((tables(&mut world)[target], liveness(&mut world, target)), (0, 2));
    pass(&mut world, 2_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240, "those of the dead one are elsewhere");
}

#[test]
fn a_capture_that_waits_beside_classic_ones_is_in_no_list_until_the_last_one_has_left() {
    let mut world = world(&Scenario::builtin("mixed").unwrap().unwrap());
    for _ in 0..45 {
        pass(&mut world, 1_000);
        assert_eq!(listed(&mut world, D), 0);
    }
    assert!(world.is_listening(world.find(D).unwrap()));
    let id = id_at(&mut world, D);
    assert_eq!(world.drain(0, &id), Some(DrainAnswer::Unknown));
    // Classic goes on as ever, also without its owner, which it never wins.
    world.resign(0);
    pass(&mut world, 2_000);
    assert_eq!(owner(&mut world).as_deref(), Some(B));
    world.stop(A, true).unwrap();
    world.stop(B, true).unwrap();
    pass(&mut world, 10_000);
    assert_eq!(owner(&mut world).as_deref(), Some(C));
    assert_eq!(tables(&mut world)[C], 120);
    assert_eq!(listed(&mut world, D), 0);
    let stopped = world.stop(C, true).unwrap();
    world.advance_to(stopped.done_at_ms);
    assert_eq!(listed(&mut world, D), 0);
    let gone_at = world.now_ms();
    while listed(&mut world, D) == 0 {
        pass(&mut world, 10);
        assert!(world.now_ms() < gone_at + 1_000);
    }
    let took = world.now_ms() - gone_at;
    assert!((90..=300).contains(&took), "{took}");
    assert_eq!(world.captures_of(0).len(), 1, "no ghost of the other architecture");
    assert_eq!(owner(&mut world).as_deref(), Some(D));
    pass(&mut world, 5_000);
    assert_eq!(tables(&mut world)[D], 120);
    let named: usize = (0..3).map(|feed| world.dispatchers(feed).unwrap()[0].table_ids.len()).sum();
    assert_eq!(named, 123);
}

#[test]
fn after_the_last_classic_one_crashed_a_waiting_capture_waits_for_its_lease() {
    let mut world = world(&Scenario::builtin("mixed").unwrap().unwrap());
    for address in [B, C] {
        world.stop(address, true).unwrap();
    }
    pass(&mut world, 10_000);
    world.kill(A, true).unwrap();
    pass(&mut world, 7_900);
    assert_eq!(world.owner_view(3), OwnerView::Dead(A.to_owned()));
    pass(&mut world, 2_100);
    assert_eq!(owner(&mut world).as_deref(), Some(D));
}

#[test]
fn a_restarted_capture_beside_classic_ones_waits_again() {
    let mut world = world(&Scenario::builtin("mixed").unwrap().unwrap());
    let before = id_at(&mut world, D);
    world.restart(D, Some("v8.5.4"), true).unwrap();
    pass(&mut world, 5_000);
    assert_ne!(id_at(&mut world, D), before);
    assert_eq!(listed(&mut world, D), 0);
    let stop = &world.referee().stops[0];
    assert_eq!((stop.tables, stop.was_owner), (0, false));
}

#[test]
fn a_whole_round_is_possible_and_counts_as_what_it_is() {
    let mut world = world(&Scenario::builtin("new-arch").unwrap().unwrap());
    for address in [B, C, A] {
        while owner(&mut world).as_deref() == Some(address) {
            world.resign(0);
            pass(&mut world, 500);
        }
        let id = id_at(&mut world, address);
        drain_to_zero(&mut world, &id);
        assert_eq!(tables(&mut world)[address], 0);
        world.restart(address, Some("v8.5.4"), false).unwrap();
        while listed(&mut world, address) != 1 || world.captures_of(0).iter().any(|it| it.id == id) {
            pass(&mut world, 100);
        }
    }
    let (elapsed, referee) = (world.referee().elapsed_ms(), world.referee());
    assert!(referee.stops.iter().all(|stop| stop.tables == 0 && !stop.was_owner));
    let minimum = referee.minimum_ms;
    assert!(minimum <= elapsed && elapsed < 2 * minimum, "{elapsed} ms, the least is {minimum} ms");
    assert!(world.left_stopping().is_empty());
    assert!(world.state().captures.iter().all(|it| it.version.as_deref() == Some("v8.5.4")));
    assert!(world.state().captures.iter().all(|it| it.architecture == Some("new")));
}

#[test]
fn one_that_is_found_drained_is_left_stopping_and_freezes_placement() {
    let mut world = world(&new_lab("    drained: [capture-3]", ""));
    assert_eq!((liveness(&mut world, C), world.left_stopping()), (2, vec![C.to_owned()]));
    do_fault(&mut world, json!({ "do": { "changefeed": { "id": "cf-a", "state": "stopped" } } }));
    do_fault(&mut world, json!({ "do": { "changefeed": { "id": "cf-a", "state": "normal" } } }));
    pass(&mut world, 10_000);
    assert_eq!(world.dispatchers(0), None);
    world.restart(C, None, false).unwrap();
    pass(&mut world, 8_000);
    assert!(world.dispatchers(0).is_some(), "it has left");
}
