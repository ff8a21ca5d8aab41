//! Where tables are. What is asked of it at every look is worked out once, when it was read: none of it can be changed
//! afterwards, so that no sum comes apart from what it sums up.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use super::answer::Reading;
use super::ids::{ByCapture, CaptureId, ChangefeedId, TableId};

/// The tables of one changefeed, by capture. While a table moves it is listed at two captures (recorded/README 2).
pub type Placement = BTreeMap<CaptureId, Vec<TableId>>;

/// The tables of one changefeed at one capture. A hundred thousand ids are passed on by their place in memory.
pub type TableIds = Arc<[TableId]>;

/// The tables of one capture, by changefeed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureTables {
    by_changefeed: Arc<BTreeMap<ChangefeedId, TableIds>>,
    count: u64,
}

impl CaptureTables {
    /// The tables themselves.
    pub const fn by_changefeed(&self) -> &Arc<BTreeMap<ChangefeedId, TableIds>> {
        &self.by_changefeed
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// See [`super::CdcSweep::sharing`].
    fn sharing(self, before: &Self) -> Self {
        if self == *before {
            return before.clone();
        }
        let lists = self.by_changefeed.iter().map(|(id, ids)| match before.by_changefeed.get_key_value(id) {
            Some((id, same)) => (id.clone(), Arc::clone(if same == ids { same } else { ids })),
            None => (id.clone(), Arc::clone(ids)),
        });
        Self { by_changefeed: Arc::new(lists.collect()), ..self }
    }
}

impl From<BTreeMap<ChangefeedId, TableIds>> for CaptureTables {
    fn from(by_changefeed: BTreeMap<ChangefeedId, TableIds>) -> Self {
        let count = by_changefeed.values().map(|ids| count(ids)).sum();
        Self { by_changefeed: Arc::new(by_changefeed), count }
    }
}

/// How many tables a changefeed names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// One on the move at each of its places.
    pub all: u64,
    /// Each once.
    pub distinct: u64,
}

/// What every changefeed that may run names, and its tables by capture as far as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placements {
    named: BTreeMap<ChangefeedId, Reading<Named>>,
    by_capture: ByCapture<CaptureTables>,
}

impl Placements {
    /// The tables of every capture that some changefeed names.
    pub const fn by_capture(&self) -> &ByCapture<CaptureTables> {
        &self.by_capture
    }

    /// The tables of a changefeed at a capture; `None` where it does not name that capture, or was not read.
    pub fn at(&self, capture: &CaptureId, id: &ChangefeedId) -> Option<&TableIds> {
        self.by_capture.get(capture)?.by_changefeed.get(id)
    }

    /// See [`super::CdcSweep::sharing`].
    pub(super) fn sharing(self, before: &Self) -> Self {
        let by_capture =
            self.by_capture.into_iter().map(|(capture, now)| match before.by_capture.get_key_value(&capture) {
                Some((capture, before)) => (capture.clone(), now.sharing(before)),
                None => (capture, now),
            });
        Self { by_capture: by_capture.collect(), ..self }
    }
}

impl Deref for Placements {
    type Target = BTreeMap<ChangefeedId, Reading<Named>>;

    fn deref(&self) -> &Self::Target {
        &self.named
    }
}

impl FromIterator<(ChangefeedId, Reading<Placement>)> for Placements {
    fn from_iter<I: IntoIterator<Item = (ChangefeedId, Reading<Placement>)>>(readings: I) -> Self {
        let mut named = BTreeMap::new();
        let mut by_capture: ByCapture<BTreeMap<ChangefeedId, TableIds>> = ByCapture::default();
        for (id, reading) in readings {
            let sums = reading.map(|placement| {
                let all = placement.values().map(|ids| count(ids)).sum();
                let distinct = distinct(placement.values());
                for (capture, ids) in placement {
                    by_capture.entry(capture).or_default().insert(id.clone(), ids.into());
                }
                Named { all, distinct }
            });
            named.insert(id, sums);
        }
        let by_capture = by_capture.into_iter().map(|(capture, tables)| (capture, tables.into())).collect();
        Self { named, by_capture }
    }
}

/// How many tables these are, one that is in several lists counted once.
pub fn distinct<T: AsRef<[TableId]>>(lists: impl IntoIterator<Item = T>) -> u64 {
    let mut ids = Vec::new();
    for list in lists {
        ids.extend_from_slice(list.as_ref());
    }
    // Each list is in order by itself, which this way of sorting makes use of.
    ids.sort();
    ids.dedup();
    count(&ids)
}

fn count(ids: &[TableId]) -> u64 {
    u64::try_from(ids.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::answer::{Failure, FailureKind};
    use super::*;

    type Places = BTreeMap<u8, BTreeSet<i64>>;

    /// A few changefeeds, captures and tables, so that most of them are met again; `None` could not be read.
    fn any_places() -> impl Strategy<Value = BTreeMap<u8, Option<Places>>> {
        let ids = prop::collection::btree_set(0i64..8, 0..6);
        let places = prop::collection::btree_map(0u8..4, ids, 0..4);
        prop::collection::btree_map(0u8..3, prop::option::weighted(0.8, places), 0..3)
    }

    fn capture(n: u8) -> CaptureId {
        CaptureId::new(format!("cap-{n}"))
    }

    fn placements(feeds: &BTreeMap<u8, Option<Places>>) -> Placements {
        let ids = |ids: &BTreeSet<i64>| ids.iter().copied().map(TableId).collect::<Vec<_>>();
        let read = |places: &Places| places.iter().map(|(at, tables)| (capture(*at), ids(tables))).collect();
        let refused = || Failure::local(FailureKind::Refused, "connection refused");
        let id = |feed: &u8| ChangefeedId::new("default", format!("feed-{feed}"));
        feeds.iter().map(|(feed, places)| (id(feed), places.as_ref().map(read).ok_or_else(refused))).collect()
    }

    proptest! {
        #[test]
        fn what_was_worked_out_is_what_is_counted(feeds in any_places()) {
            let placements = placements(&feeds);
            for (reading, places) in placements.values().zip(feeds.values()) {
                prop_assert_eq!(reading.is_ok(), places.is_some());
                let (Ok(named), Some(places)) = (reading, places) else { continue };
                prop_assert_eq!(named.all, places.values().map(|ids| ids.len() as u64).sum::<u64>());
                prop_assert_eq!(named.distinct, places.values().flatten().collect::<BTreeSet<_>>().len() as u64);
            }
            let read = || feeds.values().flatten();
            let named: BTreeSet<_> = read().flat_map(BTreeMap::keys).map(|at| capture(*at)).collect();
            prop_assert_eq!(placements.by_capture().keys().cloned().collect::<BTreeSet<_>>(), named);
            for at in 0..4 {
                let Some(tables) = placements.by_capture().get(&capture(at)) else { continue };
                let of: Vec<_> = read().filter_map(|places| places.get(&at)).collect();
                prop_assert_eq!(tables.count(), of.iter().map(|ids| ids.len() as u64).sum::<u64>());
                let lists = tables.by_changefeed().values();
                let lists: Vec<BTreeSet<_>> = lists.map(|ids| ids.iter().map(|id| id.0).collect()).collect();
                prop_assert_eq!(lists.iter().collect::<Vec<_>>(), of);
            }
        }

        #[test]
        fn what_is_shared_says_the_same(before in any_places(), now in any_places()) {
            let before = placements(&before);
            let now = placements(&now);
            let shared = now.clone().sharing(&before);
            prop_assert_eq!(&shared, &now);
            for (at, tables) in shared.by_capture() {
                let Some(before) = before.by_capture().get(at) else { continue };
                prop_assert_eq!(Arc::ptr_eq(tables.by_changefeed(), before.by_changefeed()), tables == before);
                for (id, ids) in &**tables.by_changefeed() {
                    let Some(before) = before.by_changefeed().get(id) else { continue };
                    prop_assert_eq!(Arc::ptr_eq(ids, before), ids == before);
                }
            }
        }
    }
}
