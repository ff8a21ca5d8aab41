//! The new architecture by itself, in virtual time.

use tiroll::sim::world::{DrainAnswer, World};

use super::sim_support::{id_at, lab_with, tables, world};

#[test]
fn tmp() {
    let mut world = world(&lab_with(120, 3, "", "architecture: new"));
    let id = id_at(&mut world, "127.0.0.1:8301");
    for i in 0..60 {
        let a = world.drain(0, &id);
        let l = world.state().captures.iter().map(|c| c.liveness_raw).collect::<Vec<_>>();
        println!("{} {a:?} {l:?} {:?}", world.now_ms(), tables(&mut world));
        let at = world.now_ms() + 200;
        world.advance_to(at);
    }
    println!("{}", world.referee().worst_lag_ms);
}
