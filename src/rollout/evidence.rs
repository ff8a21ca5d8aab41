//! What a round proves. Pure judgements over one sweep; nothing here remembers anything.

use std::collections::BTreeSet;

use super::picture::Picture;
use crate::cluster::{CaptureId, CdcSweep, ChangefeedId, ClusterId, Liveness, Timestamp};
use std::time::Duration;

/// What a round says of one capture's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was read whole, and the capture carries nothing.
    Empty,
    /// It carries this many tables of these changefeeds, most first.
    Carries(Vec<(ChangefeedId, u64)>),
    /// It proves nothing, for this reason.
    Unknown(String),
}

/// Judges a round: one sweep read under one owner who stood `owner_stands` before it began (design section 4).
///
/// `owner_since` is since when the owner named in the sweep has been seen without a break; `known` are all changefeeds
/// ever seen.
pub fn judge_round(
    sweep: &CdcSweep,
    cluster: &ClusterId,
    target: &CaptureId,
    owner_since: Option<Timestamp>,
    known: &BTreeSet<ChangefeedId>,
    owner_stands: Duration,
) -> Verdict {
    let unknown = |why: String| Verdict::Unknown(why);
    let Some(group) = sweep.group(cluster) else { return unknown("the cluster did not answer".to_owned()) };
    let captures = match &group.captures {
        Ok(captures) => captures,
        Err(why) => return unknown(format!("the captures list could not be read: it {why}")),
    };
    let Some(owner) = group.owner() else { return unknown("the list names no single owner".to_owned()) };
    match owner_since {
        Some(since) if sweep.begun.since(since) >= owner_stands && since <= sweep.begun => {}
        _ => return unknown("the owner is too new to be believed".to_owned()),
    }
    if &owner.id == target {
        return unknown("the capture is the owner".to_owned());
    }
    if !captures.iter().any(|entry| &entry.id == target) {
        return unknown("the capture is not in the list".to_owned());
    }
    for entry in captures {
        let Some((_, status)) = sweep.node_of(&entry.id) else {
            let at = &entry.address;
            return unknown(format!("{at} is listed as {} and does not answer as that", entry.id.short()));
        };
        if &entry.id == target {
            continue;
        }
        match status.liveness.meaning {
            Some(Liveness::Alive) => {}
            Some(Liveness::Draining | Liveness::Stopping) => {
                return unknown(format!("{} is stopping too", entry.address));
            }
            None => return unknown(format!("{} does not tell its liveness", entry.address)),
        }
    }
    let feeds = match &group.changefeeds {
        Ok(feeds) => feeds,
        Err(why) => return unknown(format!("the changefeeds could not be read: it {why}")),
    };
    if let Some(missing) = known.iter().find(|id| !feeds.iter().any(|row| &row.id == *id)) {
        return unknown(format!("changefeed {} is missing from the list", missing.label()));
    }
    let processors = match &group.processors {
        Ok(processors) => processors,
        Err(why) => return unknown(format!("the processors could not be read: it {why}")),
    };
    if let Some((stray, _)) = processors.iter().find(|(id, _)| !feeds.iter().any(|row| &row.id == id)) {
        return unknown(format!("changefeed {} has processors and is not in the list", stray.label()));
    }
    let tables = match &group.target {
        Some(tables) if &tables.capture == target => tables,
        _ => return unknown("its tables were not asked for in this round".to_owned()),
    };
    let mut carried = Vec::new();
    for row in feeds {
        if row.state.is_at_rest() {
            if processors.iter().any(|(id, capture)| id == &row.id && capture == target) {
                return unknown(format!("changefeed {} is {} and has a processor there", row.id.label(), row.state));
            }
            continue;
        }
        if !row.state.is_running() {
            return unknown(format!("changefeed {} is in the state `{}`", row.id.label(), row.state));
        }
        match tables.by_changefeed.get(&row.id) {
            Some(Ok(ids)) if ids.is_empty() => {}
            Some(Ok(ids)) => carried.push((row.id.clone(), u64::try_from(ids.len()).unwrap_or(u64::MAX))),
            Some(Err(why)) => return unknown(format!("the tables of {} could not be read: it {why}", row.id.label())),
            None => return unknown(format!("the tables of {} were not read", row.id.label())),
        }
    }
    if carried.is_empty() {
        return Verdict::Empty;
    }
    carried.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Verdict::Carries(carried)
}

/// Whether the newest sweep of `TiCDC` is fresh enough for a gate.
pub fn is_fresh(picture: &Picture, now: Timestamp, stale_after: Duration) -> bool {
    let limit = picture.fresh_within(stale_after);
    picture.cdc.as_ref().is_some_and(|sweep| now.since(sweep.begun) <= limit)
}
