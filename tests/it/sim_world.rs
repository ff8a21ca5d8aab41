//! The model by itself, in virtual time.

use tiroll::sim::scenario::Scenario;
use tiroll::sim::world::{DrainAnswer, OwnerView, World};

use super::sim_support::{id_at, lab, lab_with, owner, tables, world};

const A: &str = "127.0.0.1:8300";
const B: &str = "127.0.0.1:8301";
const C: &str = "127.0.0.1:8302";

fn liveness(world: &mut World, address: &str) -> Option<u64> {
    let state = world.state();
    let mut found = state.captures.into_iter().filter(|it| it.address == address);
    found.find_map(|it| it.liveness_raw)
}

fn count(world: &mut World, id: &str) -> usize {
    match world.drain(0, id) {
        Some(DrainAnswer::Count(count)) => count,
        other => panic!("{other:?}"),
    }
}

fn pass(world: &mut World, ms: u64) {
    let at = world.now_ms() + ms;
    world.advance_to(at);
}

#[test]
fn a_drain_empties_its_target_in_steps_and_loses_no_table() {
    let mut world = world(&lab(120, 3, ""));
    let id = id_at(&mut world, B);
    let mut seen = vec![count(&mut world, &id)];
    assert_eq!(seen[0], 80);
    assert_eq!(liveness(&mut world, B), Some(0), "liveness flips after the answer, not with it");
    pass(&mut world, 150);
    assert_eq!(liveness(&mut world, B), Some(1));
    for _ in 0..40 {
        pass(&mut world, 200);
        seen.push(count(&mut world, &id));
        let listed: usize = tables(&mut world).values().sum();
        assert!((240..=260).contains(&listed), "{listed} tables are listed");
    }
    assert!(seen.is_sorted_by(|a, b| a >= b), "{seen:?}");
    assert_eq!(seen.last(), Some(&0));
    assert_eq!(tables(&mut world)[B], 0);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
    // It got no table in 150 s, and draining it again is 0.
    pass(&mut world, 150_000);
    assert_eq!(tables(&mut world)[B], 0);
    assert_eq!(count(&mut world, &id), 0);
}

#[test]
fn a_drain_of_an_empty_capture_arms_nothing_and_the_balancer_fills_it() {
    let mut world = world(&lab_with(120, 3, "    empty: [capture-2]", ""));
    let id = id_at(&mut world, B);
    assert_eq!(count(&mut world, &id), 0);
    pass(&mut world, 2_000);
    assert_eq!(liveness(&mut world, B), Some(0));
    pass(&mut world, 75_000);
    assert_eq!(tables(&mut world)[B], 80);
}

#[test]
fn drains_are_refused_in_the_servers_order() {
    let mut alone = world(&lab(10, 1, ""));
    assert_eq!(alone.drain(0, "nope"), Some(DrainAnswer::OnlyOne));
    let mut world = world(&lab(10, 3, ""));
    let owner_id = id_at(&mut world, A);
    assert_eq!(world.drain(0, "nope"), Some(DrainAnswer::Unknown));
    assert_eq!(world.drain(0, &owner_id), Some(DrainAnswer::IsOwner));
}

#[test]
fn two_drains_move_tables_to_and_fro_until_one_is_restarted() {
    let mut world = world(&lab(120, 3, ""));
    let (b, c) = (id_at(&mut world, B), id_at(&mut world, C));
    count(&mut world, &b);
    pass(&mut world, 7_000);
    assert_eq!(tables(&mut world)[B], 0);
    assert_eq!(count(&mut world, &c), 120);
    // For two minutes there is no end to it, while the answer for C passes through zero.
    let (mut zeros, mut ups) = (0, 0);
    let mut last = 120;
    for _ in 0..400 {
        pass(&mut world, 300);
        let now = count(&mut world, &c);
        zeros += usize::from(now == 0);
        ups += usize::from(now > last);
        last = now;
        let all = tables(&mut world);
        assert!(all[B] + all[C] >= 120, "{all:?}");
    }
    assert!(zeros > 0 && ups > 5, "{zeros} zeros, {ups} times up");
    world.restart(B, Some("v8.5.4"), true).unwrap();
    pass(&mut world, 40_000);
    assert_eq!(tables(&mut world)[C], 0, "the other one empties by itself");
    assert_eq!(liveness(&mut world, B), Some(0));
}

#[test]
fn a_resign_leaves_a_gap_and_the_old_owner_goes_to_the_end_of_the_queue() {
    let mut world = world(&lab(120, 3, ""));
    world.resign(0);
    assert_eq!(world.owner_view(2), OwnerView::NotFound);
    pass(&mut world, 260);
    assert_eq!(owner(&mut world).as_deref(), Some(B));
    assert!(!world.healthy(0));
    pass(&mut world, 1_500);
    assert!(world.healthy(0));
    world.resign(0);
    pass(&mut world, 2_000);
    assert_eq!(owner(&mut world).as_deref(), Some(C));
    world.resign(0);
    pass(&mut world, 2_000);
    assert_eq!(owner(&mut world).as_deref(), Some(A));
    assert!((50..=250).contains(&world.max_no_owner_ms()), "{}", world.max_no_owner_ms());
}

#[test]
fn alone_the_same_capture_owns_again_after_150_ms() {
    let mut world = world(&lab(10, 1, ""));
    world.resign(0);
    pass(&mut world, 149);
    assert_eq!(world.owner_view(0), OwnerView::NotFound);
    pass(&mut world, 1);
    assert_eq!(world.owner_view(0), OwnerView::Serving(0));
}

#[test]
fn the_first_counts_after_a_change_of_owner_are_no_tables() {
    let mut world = world(&lab(120, 3, ""));
    world.resign(0);
    pass(&mut world, 252);
    let id = id_at(&mut world, A);
    assert_eq!(count(&mut world, &id), 2, "one for each changefeed that is not ready");
    pass(&mut world, 2_000);
    let seen = count(&mut world, &id);
    assert!((60..=80).contains(&seen), "{seen}");
}

#[test]
fn a_drain_goes_on_under_a_new_owner() {
    let mut world = world(&lab(120, 3, ""));
    let id = id_at(&mut world, B);
    count(&mut world, &id);
    pass(&mut world, 1_000);
    world.resign(0);
    pass(&mut world, 12_000);
    assert_eq!(owner(&mut world).as_deref(), Some(C), "a stopping capture is passed over");
    assert_eq!(tables(&mut world)[B], 0);
}

#[test]
fn a_stopped_capture_stays_listed_for_five_seconds_with_its_tables() {
    let mut world = world(&lab(120, 3, ""));
    world.stop(B, false).unwrap();
    pass(&mut world, 4_990);
    assert_eq!(world.captures_of(0).len(), 3);
    assert_eq!(tables(&mut world)[B], 80);
    assert_eq!(world.state().unknown.len(), 1, "a ghost is named");
    pass(&mut world, 1_000);
    assert_eq!(world.captures_of(0).len(), 2);
    pass(&mut world, 1_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
    pass(&mut world, 1_000);
    let worst = world.referee().worst_lag_ms;
    assert!((7_000..10_000).contains(&worst), "lag {worst}");
    assert_eq!(world.referee().stops[0].tables, 80);
    assert!(!world.referee().stops[0].was_owner);
}

#[test]
fn a_drained_capture_costs_nothing_when_it_is_restarted() {
    let mut world = world(&lab(120, 3, ""));
    let id = id_at(&mut world, B);
    count(&mut world, &id);
    pass(&mut world, 8_000);
    world.restart(B, Some("v8.5.4"), false).unwrap();
    pass(&mut world, 3_000);
    let at_b: Vec<String> = world.captures_of(0).into_iter().filter(|it| it.address == B).map(|it| it.id).collect();
    assert_eq!(at_b.len(), 2, "old id and new id at one address");
    pass(&mut world, 90_000);
    let new = id_at(&mut world, B);
    assert_ne!(new, id);
    assert_eq!(tables(&mut world)[B], 80, "the balancer gives it tables again");
    let referee = world.referee();
    assert_eq!(referee.stops[0].tables, 0);
    assert_eq!(referee.restarts[B], 1);
    assert!(referee.worst_lag_ms < 3_500, "{}", referee.worst_lag_ms);
    assert!(world.left_stopping().is_empty());
}

#[test]
fn a_crashed_capture_is_listed_until_lease_and_hold_are_over() {
    let mut world = world(&lab(120, 3, ""));
    let id = id_at(&mut world, B);
    world.kill(B, false).unwrap();
    pass(&mut world, 11_500);
    assert_eq!(world.captures_of(0).len(), 3);
    assert!(world.healthy(0));
    assert_eq!(count(&mut world, &id), 80, "the dead one's count does not change");
    pass(&mut world, 2_000);
    assert_eq!(world.drain(0, &id), Some(DrainAnswer::Unknown));
    pass(&mut world, 2_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
}

#[test]
fn after_the_owner_crashed_nobody_owns_until_its_lease_lapses() {
    let mut world = world(&lab(120, 3, ""));
    world.kill(A, false).unwrap();
    pass(&mut world, 7_900);
    assert_eq!(world.owner_view(1), OwnerView::Dead(A.to_owned()));
    pass(&mut world, 2_000);
    assert_eq!(world.captures_of(0).len(), 2, "its successor never lists it");
    pass(&mut world, 3_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240, "and places its tables at once");
    let gap = world.max_no_owner_ms();
    assert!((8_000..9_900).contains(&gap), "{gap}");
}

#[test]
fn an_owner_that_ends_is_succeeded_at_once_and_still_listed() {
    let mut world = world(&lab(120, 3, ""));
    world.stop(A, true).unwrap();
    pass(&mut world, 400);
    assert_eq!(owner(&mut world).as_deref(), Some(B));
    assert_eq!(world.captures_of(0).len(), 3);
    pass(&mut world, 8_000);
    assert_eq!(world.captures_of(0).len(), 2);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
    let stop = &world.referee().stops[0];
    assert!(stop.was_owner && stop.forced);
}

#[test]
fn only_stopping_captures_own_nothing() {
    let mut world = world(&lab(20, 2, ""));
    let id = id_at(&mut world, B);
    count(&mut world, &id);
    pass(&mut world, 4_000);
    world.stop(A, true).unwrap();
    pass(&mut world, 10_000);
    assert_eq!(world.owner_view(1), OwnerView::NoLeader);
    world.start(A, None).unwrap();
    pass(&mut world, 2_000);
    assert_eq!(owner(&mut world).as_deref(), Some(A));
}

#[test]
fn three_versions_freeze_and_a_resign_wedges() {
    let mut world = world(&lab(120, 3, ""));
    world.restart(B, Some("v8.5.4"), true).unwrap();
    pass(&mut world, 20_000);
    assert!(world.healthy(0), "two versions may run together");
    world.restart(C, Some("v7.5.7"), true).unwrap();
    pass(&mut world, 12_000);
    assert!(!world.healthy(0));
    let before: Vec<u64> = world.state().changefeeds.iter().map(|it| it.checkpoint_ts).collect();
    pass(&mut world, 20_000);
    let after = world.state().changefeeds;
    assert_eq!(before, after.iter().map(|it| it.checkpoint_ts).collect::<Vec<_>>());
    assert!(after.iter().all(|it| it.state == "normal"));
    assert_eq!(world.captures_of(0).len(), 3, "lists still answer");
    world.resign(0);
    pass(&mut world, 10_000);
    assert_eq!(world.owner_view(0), OwnerView::NotFound);
    world.restart(C, Some("v8.5.4"), true).unwrap();
    pass(&mut world, 15_000);
    assert!(world.healthy(0), "it heals once the set is legal");
    assert!(world.state().changefeeds.iter().all(|it| it.lag_ms < 4_000));
}

#[test]
fn leftover_has_a_stopping_capture_without_tables_and_nothing_is_balanced() {
    let scenario = Scenario::builtin("leftover").unwrap().unwrap();
    let mut world = world(&scenario);
    assert_eq!(liveness(&mut world, C), Some(1));
    pass(&mut world, 200_000);
    assert_eq!(tables(&mut world)[C], 0);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 120);
    assert_eq!(world.left_stopping(), vec![C.to_owned()]);
}

#[test]
fn a_drain_of_small_takes_about_twenty_seconds() {
    let scenario = Scenario::builtin("small").unwrap().unwrap();
    let mut world = world(&scenario);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 120);
    for (address, other) in [(B, C), (C, A)] {
        let id = id_at(&mut world, address);
        let from = world.now_ms();
        while count(&mut world, &id) > 0 {
            pass(&mut world, 500);
        }
        let took = world.now_ms() - from;
        assert!((12_000..34_000).contains(&took), "{took}");
        world.restart(address, Some("v8.5.4"), false).unwrap();
        pass(&mut world, 12_000);
        let _ = other;
    }
}

#[test]
fn the_same_seed_gives_the_same_course_of_events() {
    let run = || {
        let mut world = world(&lab(120, 3, ""));
        let id = id_at(&mut world, B);
        let mut log = Vec::new();
        count(&mut world, &id);
        for step in 0..60 {
            pass(&mut world, 250);
            if step == 30 {
                world.resign(0);
            }
            log.push((tables(&mut world), owner(&mut world), world.state().changefeeds));
        }
        log
    };
    assert_eq!(run(), run());
}

#[test]
fn how_often_the_world_is_looked_at_changes_nothing() {
    let run = |step: u64| {
        let mut world = world(&lab(120, 3, ""));
        let id = id_at(&mut world, B);
        count(&mut world, &id);
        let mut now = 0;
        while now < 9_000 {
            now += step;
            world.advance_to(now);
        }
        world.advance_to(9_000);
        world.restart(B, None, false).unwrap();
        world.advance_to(100_800);
        (tables(&mut world), world.state().changefeeds)
    };
    assert_eq!(run(10), run(900));
}

#[test]
fn busy_is_cheap() {
    let scenario = Scenario::builtin("busy").unwrap().unwrap();
    let mut world = world(&scenario);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 10_000);
    let address = "127.0.0.1:8307";
    let id = id_at(&mut world, address);
    let from = world.now_ms();
    while count(&mut world, &id) > 0 {
        pass(&mut world, 1_000);
    }
    let took = world.now_ms() - from;
    assert!((5_000..20_000).contains(&took), "{took}");
    pass(&mut world, 100_000);
    assert_eq!(tables(&mut world)[address], 0);
}

#[test]
fn a_changefeed_that_is_not_normal_is_left_out_of_the_count_and_drained_all_the_same() {
    let more = "faults: [{ do: { changefeed: { id: cf-b, state: warning, code: 'CDC:ErrX', message: x } } }]";
    let mut world = world(&lab(120, 3, more));
    let id = id_at(&mut world, B);
    assert_eq!(count(&mut world, &id), 40);
    pass(&mut world, 8_000);
    assert_eq!(tables(&mut world)[B], 0, "liveness makes every scheduler drain");
}

#[test]
fn a_zero_of_the_count_is_no_proof_while_a_changefeed_is_in_warning() {
    let more = "faults:
  - do: { changefeed: { id: cf-a, state: warning } }
  - do: { changefeed: { id: cf-b, state: warning } }
";
    let mut world = world(&lab(120, 3, more));
    let id = id_at(&mut world, B);
    assert_eq!(count(&mut world, &id), 0);
    pass(&mut world, 5_000);
    assert_eq!(tables(&mut world)[B], 80);
}

#[test]
fn clusters_know_nothing_of_each_other() {
    let text = "name: two
databases: [{ name: lab, tables: [{ prefix: t, count: 20 }] }]
clusters:
  - { id: east, version: v8.5.3, captures: 2, changefeeds: [{ id: cf-a, databases: [lab] }] }
  - { id: west, version: v8.5.3, captures: 2, changefeeds: [{ id: cf-b, databases: [lab] }] }
tidb: { servers: 1, version: v8.5.3 }
";
    let mut world = world(&Scenario::from_yaml("two.yaml", text).unwrap());
    assert_eq!(world.captures_of(0).len(), 2);
    world.resign(1);
    assert_eq!(world.owner_view(0), OwnerView::Serving(0));
    assert_eq!(world.owner_view(3), OwnerView::NotFound);
    pass(&mut world, 2_000);
    let owners: Vec<String> =
        world.state().captures.into_iter().filter(|it| it.is_owner).map(|it| it.address).collect();
    assert_eq!(owners, [A, "127.0.0.1:8303"]);
}

#[test]
fn schema_changes_of_users_wait_while_the_cluster_is_upgrading() {
    let mut world = world(&lab(20, 3, "faults: [{ when: { at_ms: 5000 }, do: { lag: { id: cf-a, by_ms: 20000 } } }]"));
    pass(&mut world, 10_000);
    assert!(world.state().changefeeds[0].lag_ms > 7_000, "a fault makes it fall behind");
    let text = "name: ddl
databases: [{ name: lab, tables: [{ prefix: t, count: 20 }] }]
clusters: [{ version: v8.5.3, captures: 2, changefeeds: [{ id: cf-a, databases: [lab] }] }]
tidb: { servers: 1, version: v8.5.3, upgrading: true, ddl: [{ at_ms: 1000, database: lab, table: late }] }
";
    let mut world = super::sim_support::world(&Scenario::from_yaml("ddl.yaml", text).unwrap());
    pass(&mut world, 30_000);
    assert_eq!(world.waiting_ddl(), 1);
    assert_eq!(world.state().tidb.state, Some("upgrading"));
    assert_eq!(tables(&mut world).values().sum::<usize>(), 20);
}

#[test]
fn an_action_on_a_process_that_is_ending_is_refused() {
    let mut world = world(&lab(20, 3, ""));
    world.stop(B, false).unwrap();
    assert!(world.stop(B, false).is_err());
    assert!(world.restart(B, None, false).is_err());
    pass(&mut world, 100);
    world.start(B, Some("v8.5.4")).unwrap();
    assert!(world.start(B, None).is_err());
    assert_eq!(world.referee().stops.len(), 1);
    assert!(world.restart(C, Some("eight"), false).is_err());
    assert_eq!(world.referee().stops.len(), 1, "nothing is stopped for a version that does not parse");
}

#[test]
fn a_kill_in_the_middle_of_a_drain_happens_when_few_tables_are_left() {
    let more = "faults: [{ when: { tables_below: { process: capture-2, count: 30 } }, do: { kill: capture-2 } }]";
    let mut world = world(&lab(120, 3, more));
    let id = id_at(&mut world, B);
    count(&mut world, &id);
    pass(&mut world, 8_000);
    let left = tables(&mut world)[B];
    assert!((1..30).contains(&left), "{left}");
    assert!(world.referee().stops.is_empty(), "a fault is none of the rollout's stops");
    pass(&mut world, 20_000);
    assert_eq!(tables(&mut world).values().sum::<usize>(), 240);
}

#[test]
fn a_live_capture_is_unknown_to_a_new_owner_at_first_and_a_ghost_shows_none() {
    let mut world = world(&lab(120, 3, ""));
    let (a, b) = (id_at(&mut world, A), id_at(&mut world, B));
    assert_eq!(world.carrying(0, &b).map(|ids| ids.len()), Some(40));
    world.stop(A, true).unwrap();
    pass(&mut world, 330);
    assert_eq!(world.captures_of(0).len(), 3);
    assert_eq!(world.carrying(0, &b), None, "unknown, which is not empty");
    pass(&mut world, 2_500);
    assert_eq!(world.carrying(0, &b).map(|ids| ids.len()), Some(40));
    assert_eq!(world.carrying(0, &a), Some(Vec::new()));
    assert!(!world.healthy(0), "the ghost never answers the new owner");
    pass(&mut world, 3_000);
    assert_eq!(world.carrying(0, &a), None);
    assert!(world.healthy(0));
}
