//! Whatever is done to a world, it comes to rest with every table replicated once.

use proptest::prelude::*;

use tiroll::sim::world::World;

use super::sim_support::{lab, tables, world};

#[derive(Debug, Clone, Copy)]
enum Act {
    Stop(usize),
    Start(usize),
    Kill(usize),
    Restart(usize),
    Drain(usize),
    /// To another version: up to three of them run together.
    Upgrade(usize, usize),
    /// A changefeed is stopped, or runs again.
    Feed(bool),
    Resign,
    Pass(u64),
}

const VERSIONS: [&str; 3] = ["v8.5.3", "v8.5.4", "v7.5.7"];

fn set_feed(world: &mut World, state: &str) {
    let fault = serde_json::json!({ "do": { "changefeed": { "id": "cf-a", "state": state } } });
    world.add_fault(serde_json::from_value(fault).unwrap());
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let one = prop_oneof![
        (0..4_usize).prop_map(Act::Stop),
        (0..4_usize).prop_map(Act::Start),
        (0..4_usize).prop_map(Act::Kill),
        (0..4_usize).prop_map(Act::Restart),
        (0..4_usize).prop_map(Act::Drain),
        (0..4_usize, 0..3_usize).prop_map(|(capture, version)| Act::Upgrade(capture, version)),
        any::<bool>().prop_map(Act::Feed),
        Just(Act::Resign),
        (10..4_000_u64).prop_map(Act::Pass),
        (10..20_000_u64).prop_map(Act::Pass),
    ];
    proptest::collection::vec(one, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_table_is_lost_whatever_happens(acts in acts()) {
        let mut world = world(&lab(30, 4, ""));
        let address = |capture: usize| format!("127.0.0.1:{}", 8300 + capture);
        for act in acts {
            match act {
                // Some of these are refused, which is as good.
                Act::Stop(capture) => drop(world.stop(&address(capture), true)),
                Act::Start(capture) => drop(world.start(&address(capture), None)),
                Act::Kill(capture) => drop(world.kill(&address(capture), true)),
                Act::Restart(capture) => drop(world.restart(&address(capture), None, true)),
                Act::Drain(capture) => {
                    let found = world.captures_of(0).into_iter().find(|it| it.address == address(capture));
                    if let Some(found) = found {
                        world.drain(0, &found.id);
                    }
                }
                Act::Upgrade(capture, version) => {
                    drop(world.restart(&address(capture), Some(VERSIONS[version]), true));
                }
                Act::Feed(runs) => set_feed(&mut world, if runs { "normal" } else { "stopped" }),
                Act::Resign => world.resign(0),
                Act::Pass(ms) => {
                    let at = world.now_ms() + ms;
                    world.advance_to(at);
                }
            }
            let listed: usize = tables(&mut world).values().sum();
            prop_assert!(listed <= 60 + 2 * 10 + 60, "{} tables are listed", listed);
        }
        // Everything is brought to one version, one after another, and nothing is left stopping or stopped.
        set_feed(&mut world, "normal");
        for capture in 0..4 {
            let at = world.now_ms() + 5_000;
            world.advance_to(at);
            if world.start(&address(capture), Some("v8.5.4")).is_err() {
                drop(world.restart(&address(capture), Some("v8.5.4"), true));
            }
        }
        let at = world.now_ms() + 250_000;
        world.advance_to(at);
        let state = world.state();
        prop_assert!(world.healthy(0), "{:?}", state);
        prop_assert!(state.unknown.is_empty(), "{:?}", state.unknown);
        prop_assert_eq!(state.captures.iter().filter(|it| it.is_owner).count(), 1);
        prop_assert_eq!(state.captures.len(), 4);
        let spread = tables(&mut world);
        prop_assert_eq!(spread.values().sum::<usize>(), 60);
        prop_assert!(spread.values().all(|count| (12..=16).contains(count)), "{:?}", spread);
        prop_assert!(state.changefeeds.iter().all(|it| it.lag_ms < 3_200), "{:?}", state.changefeeds);
    }
}
