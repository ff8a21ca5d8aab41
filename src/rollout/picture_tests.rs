use proptest::prelude::*;

use super::*;
use crate::cluster::{
    Architecture, ChangefeedState, LivenessReading, NodeReading, Placements, Processors, Reading, TableId, Version,
};

/// One sweep over at most four nodes of one cluster, in small numbers; `None` could not be read.
#[derive(Clone, Debug)]
struct Seen {
    /// The capture that answers at each address, its version and its liveness.
    nodes: Vec<Option<(u8, u8, i64)>>,
    list: Option<BTreeSet<u8>>,
    has_changefeeds: bool,
    placement: Vec<Option<BTreeMap<u8, BTreeSet<i64>>>>,
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let node = prop::option::weighted(0.8, (0u8..5, 0u8..4, 0i64..3));
    let ids = prop::collection::btree_set(0i64..8, 0..5);
    let places = prop::option::weighted(0.8, prop::collection::btree_map(0u8..5, ids, 0..4));
    (
        prop::collection::vec(node, 0..4),
        prop::option::weighted(0.8, prop::collection::btree_set(0u8..5, 0..4)),
        prop::bool::weighted(0.9),
        prop::collection::vec(places, 0..3),
    )
        .prop_map(|(nodes, list, has_changefeeds, placement)| Seen { nodes, list, has_changefeeds, placement })
}

fn capture(n: u8) -> CaptureId {
    CaptureId::new(format!("cap-{n}"))
}

fn feed(n: usize) -> ChangefeedId {
    ChangefeedId::new("default", format!("feed-{n}"))
}

fn refused<T>() -> Reading<T> {
    Err(Failure::local(FailureKind::Refused, "connection refused"))
}

impl Seen {
    fn status((id, version, liveness): (u8, u8, i64)) -> NodeStatus {
        let text = format!("v8.5.{version}");
        NodeStatus {
            id: Some(capture(id)),
            version: Version::parse(&text).ok(),
            version_text: text.into(),
            git_hash: "".into(),
            cluster_id: None,
            pid: None,
            is_owner: false,
            liveness: LivenessReading::new(Some(liveness), Architecture::Classic),
            architecture: Architecture::Classic,
        }
    }

    fn sweep(&self, at: Timestamp) -> CdcSweep {
        let node = |(n, node): (usize, &Option<(u8, u8, i64)>)| NodeReading {
            address: Address::new("10.0.1.1", 8300 + u16::try_from(n).unwrap()),
            is_configured: true,
            status: node.map(Self::status).map_or_else(refused, Ok),
            at,
        };
        let entry = |n: &u8| CaptureEntry {
            id: capture(*n),
            address: Address::new("10.0.1.1", 8300 + u16::from(*n)),
            cluster_id: None,
            is_owner: *n == 0,
        };
        let row = |n| ChangefeedRow { id: feed(n), state: ChangefeedState::Normal, checkpoint: None, error: None };
        let ids = |ids: &BTreeSet<i64>| ids.iter().copied().map(TableId).collect::<Vec<_>>();
        let places = |places: &BTreeMap<u8, BTreeSet<i64>>| {
            Ok(places.iter().map(|(at, tables)| (capture(*at), ids(tables))).collect())
        };
        let placement = self.placement.iter().enumerate();
        let placement: Placements =
            placement.map(|(n, reading)| (feed(n), reading.as_ref().map_or_else(refused, places))).collect();
        let group = GroupSweep {
            cluster_id: ClusterId::default(),
            architecture: Some(Architecture::Classic),
            captures: self.list.as_ref().map_or_else(refused, |list| Ok(list.iter().map(entry).collect())),
            health: Ok(()),
            changefeeds: if self.has_changefeeds { Ok((0..3).map(row).collect()) } else { refused() },
            processors: Ok(Processors::default()),
            placement,
            target: None,
            cluster_time: refused(),
        };
        let nodes: Vec<_> = self.nodes.iter().enumerate().map(node).collect();
        CdcSweep { begun: at, ended: at, nodes: nodes.into(), groups: vec![group] }
    }
}

/// The first node that names the capture, found by looking at each.
fn found<'a>(sweep: &'a CdcSweep, id: &CaptureId) -> Option<&'a NodeStatus> {
    sweep.nodes.iter().filter_map(|node| node.status.as_ref().ok()).find(|status| status.id.as_ref() == Some(id))
}

proptest! {
    #[test]
    fn what_was_worked_out_at_a_sweep_is_what_is_found_by_looking(seen in prop::collection::vec(any_seen(), 1..6)) {
        let mut picture = Picture::default();
        let mut before: Option<Arc<CdcSweep>> = None;
        for (turn, seen) in (1u64..).zip(seen) {
            let sweep = seen.sweep(Timestamp::new(0, turn * 1_000));
            // As the poller does it.
            let sweep = Arc::new(match &before {
                Some(before) => {
                    let shared = sweep.clone().sharing(before);
                    prop_assert_eq!(&shared, &sweep);
                    shared
                }
                None => sweep,
            });
            before = Some(Arc::clone(&sweep));
            picture.absorb_cdc(&sweep);
            for n in 0..5 {
                prop_assert_eq!(sweep.node_of(&capture(n)).map(|(_, status)| status), found(&sweep, &capture(n)));
            }
            let group = &picture.groups[&ClusterId::default()];

            if let Some(list) = group.captures.last() {
                let listed: BTreeSet<_> = list.iter().map(|entry| &entry.id).collect();
                prop_assert_eq!(group.tables.keys().collect::<BTreeSet<_>>(), listed);
                for n in 0..3 {
                    let of = |all: &Option<BTreeMap<_, u64>>| all.as_ref().map(|all| all.get(&feed(n)).copied().unwrap_or(0));
                    prop_assert_eq!(of(&group.distinct), of(&group.count_distinct()));
                }
            }
            for (id, carrier) in &group.tables {
                if let (Some(tables), Some((_, newest))) = (carrier.seen.known(), carrier.counts.back()) {
                    let is = seen.placement.iter().flatten().filter_map(|places| {
                        places.iter().find(|(n, _)| capture(**n) == *id).map(|(_, ids)| ids.len() as u64)
                    });
                    prop_assert_eq!(tables.count(), is.sum::<u64>());
                    prop_assert_eq!(tables.count(), *newest);
                }
            }

            let known = group.captures.known().into_iter().flatten();
            let texts = known.filter_map(|entry| picture.statuses.get(&entry.id)?.last());
            let versions: BTreeSet<_> = texts.map(|status| Arc::clone(&status.version_text)).collect();
            prop_assert_eq!(&group.versions, &versions);

            let last = group.captures.last().into_iter().flatten();
            let is_leaving = |entry: &CaptureEntry| {
                found(&sweep, &entry.id).and_then(|status| status.liveness.meaning) != Some(Liveness::Alive)
            };
            let has_moved = |carrier: &Carrier| {
                let counts: Vec<_> = carrier.counts.iter().map(|(_, count)| *count).collect();
                matches!(counts[..], [.., before, now] if before != now)
            };
            let is_moving = last.clone().any(is_leaving)
                || group.owner.last() == Some(&None)
                || group.tables.values().any(has_moved);
            prop_assert_eq!(picture.is_moving(), is_moving);
        }
    }
}
