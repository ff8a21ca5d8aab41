//! From the engine to the read model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::command::Command;
use super::engine::Engine;
use super::obligation::Obligation;
use super::picture::{Carrier, GroupPicture};
use super::plan::Phase;
use super::view::{
    CaptureView, ChangefeedView, GroupView, Mode, PdView, PhaseState, PhaseView, Question, Standing, StepView,
    TidbServerView, TidbView, Title, View,
};
use crate::cluster::{CdcSweep, ChangefeedId, ClusterId, Failure, Observed, TableIds};

impl Engine {
    /// Everything there is to show, as of the last step.
    pub fn view(&self) -> View {
        View {
            at: self.now,
            title: Title {
                operation: if self.request.is_watch { "watch" } else { "upgrade" }.into(),
                from: self.span.from.clone(),
                to: (!self.request.is_watch).then(|| self.request.target.clone()),
                is_simulated: self.request.is_simulated,
                speed: self.request.speed,
                executor: self.request.executor.into(),
            },
            mode: self.mode(),
            started_at: self.span.started_at,
            ended_at: self.span.ended_at,
            remaining: self.remaining(),
            plan: self.plan_view(),
            cursor: (!self.plan.is_empty()).then_some(self.cursor),
            groups: self.group_views(),
            drain: self.drain.as_ref().map(|record| record.view(self.now, self.is_drain_lost(), self.state.may_act())),
            tidb: self.tidb_view(),
            pd: self
                .picture
                .pd_versions
                .iter()
                .map(|(address, version)| PdView { address: address.to_string(), version: version.clone() })
                .collect(),
            owed: self.obligations.iter().map(Obligation::view).collect(),
            question: self.question().cloned(),
            by_name: Command::ALL
                .iter()
                .filter(|command| command.is_by_name() && self.permission(**command).is_ok())
                .filter_map(|command| self.by_name(*command).ok())
                .collect(),
            commands: Command::ALL.iter().map(|command| (*command, self.permission(*command))).collect(),
            table_names: Arc::clone(&self.names),
            unread: self.unread(),
        }
    }

    /// What the engine is doing, without all the rest of the view.
    pub fn mode(&self) -> Mode {
        self.state.mode(self.active.is_some())
    }

    /// What a person is asked at the moment.
    pub const fn question(&self) -> Option<&Question> {
        self.state.question()
    }

    fn plan_view(&self) -> Vec<StepView> {
        let asked = self.state.question().map(|question| question.what.as_str());
        let note = |at: (usize, usize), phase: &Phase| match phase.state {
            PhaseState::Asking => asked.unwrap_or_default().to_owned(),
            PhaseState::Running | PhaseState::Waiting if at == self.cursor => self.waits_for.clone(),
            _ => phase.note.clone(),
        };
        self.plan
            .iter()
            .enumerate()
            .map(|(at, step)| StepView {
                kind: step.kind,
                target: step.target.label(),
                note: step.note.clone(),
                phases: step
                    .phases
                    .iter()
                    .enumerate()
                    .map(|(n, phase)| PhaseView {
                        kind: phase.kind,
                        state: phase.state,
                        started_at: phase.started_at,
                        took: phase.started_at.zip(phase.ended_at).map(|(from, to)| to.since(from)),
                        note: note((at, n), phase),
                    })
                    .collect(),
            })
            .collect()
    }

    fn group_views(&self) -> Vec<GroupView> {
        let sweep = self.picture.cdc.as_deref();
        self.picture
            .groups
            .iter()
            .map(|(cluster_id, group)| GroupView {
                cluster_id: cluster_id.clone(),
                owner: group.owner.clone(),
                captures: self.captures(cluster_id, group, sweep),
                changefeeds: group.changefeeds.map(|rows| {
                    rows.iter()
                        .map(|row| ChangefeedView {
                            id: row.id.clone(),
                            state: row.state.clone(),
                            lag: group.lag(row),
                            lag_history: group
                                .lags
                                .get(&row.id)
                                .map(|l| l.iter().copied().collect())
                                .unwrap_or_default(),
                            tables: group.distinct.as_ref().map(|all| all.get(&row.id).copied().unwrap_or(0)),
                            error: row.error.clone(),
                        })
                        .collect()
                }),
                health: group.health.clone(),
            })
            .collect()
    }

    fn captures(&self, cluster: &ClusterId, group: &GroupPicture, sweep: Option<&CdcSweep>) -> Vec<CaptureView> {
        let mut captures = Vec::new();
        let mut shown = BTreeSet::new();
        for entry in group.captures.last().into_iter().flatten() {
            shown.insert(&entry.id);
            let own = sweep.and_then(|sweep| sweep.node_of(&entry.id));
            let status = self.picture.statuses.get(&entry.id).and_then(Observed::last);
            let standing = match (own, status) {
                (Some(_), _) => Standing::Present,
                (None, _) if self.is_taken(sweep, &entry.id, cluster) => Standing::Ghost,
                (None, _) => Standing::Silent,
            };
            let address = self.picture.address_of(cluster, &entry.id).unwrap_or_else(|| entry.address.clone());
            captures.push(CaptureView {
                id: entry.id.clone(),
                address: address.to_string(),
                version: status.and_then(|status| status.version.clone()),
                liveness: own.map(|(_, status)| status.liveness).unwrap_or_default(),
                architecture: status.map(|status| status.architecture),
                is_owner: entry.is_owner,
                standing,
                tables: group.tables.get(&entry.id).map(tables_of).unwrap_or_default(),
                per_minute: per_minute(group, &entry.id),
                lag: lag_at(group, &entry.id),
                seen_at: self.picture.statuses.get(&entry.id).and_then(Observed::at),
            });
        }
        for node in sweep.map(|sweep| &*sweep.nodes).unwrap_or_default() {
            let Ok(status) = &node.status else { continue };
            let Some(id) = &status.id else { continue };
            let is_here = status.cluster() == *cluster;
            if is_here && shown.insert(id) {
                captures.push(CaptureView {
                    id: id.clone(),
                    address: node.address.to_string(),
                    version: status.version.clone(),
                    liveness: status.liveness,
                    architecture: Some(status.architecture),
                    is_owner: false,
                    standing: Standing::Unlisted,
                    tables: Observed::Unasked,
                    per_minute: None,
                    lag: None,
                    seen_at: Some(node.at),
                });
            }
        }
        captures.sort_by(|a, b| (&a.address, &a.id).cmp(&(&b.address, &b.id)));
        captures
    }

    /// Whether the address of a listed id is answered by another process, or refused: the entry is leaving.
    fn is_taken(&self, sweep: Option<&CdcSweep>, id: &crate::cluster::CaptureId, cluster: &ClusterId) -> bool {
        let Some(address) = self.picture.address_of(cluster, id) else { return false };
        let node = sweep.and_then(|sweep| sweep.node_at(&address));
        node.is_some_and(|node| match &node.status {
            Ok(status) => status.id.as_ref() != Some(id),
            Err(why) => why.kind == crate::cluster::FailureKind::Refused,
        })
    }

    fn tidb_view(&self) -> Option<TidbView> {
        if !self.request.has_tidb {
            return None;
        }
        let sweep = self.picture.tidb.as_ref();
        let servers = sweep.map(|sweep| sweep.servers.as_slice()).unwrap_or_default();
        Some(TidbView {
            is_upgrading: self.picture.is_upgrading.clone(),
            upgrading_since: self.picture.upgrading_since,
            servers: servers
                .iter()
                .map(|server| TidbServerView {
                    address: server.address.to_string(),
                    sql_address: server.info.as_ref().ok().map(|info| info.sql_address.to_string()),
                    version: self.picture.tidb_versions.get(&server.address).cloned().unwrap_or_default(),
                    is_ddl_owner: server.info.as_ref().ok().and_then(|info| info.is_ddl_owner),
                    serves: self.picture.tidb_serves.get(&server.address).cloned().unwrap_or_default(),
                })
                .collect(),
        })
    }

    fn unread(&self) -> Vec<(String, Failure)> {
        let mut unread = Vec::new();
        if let Some(sweep) = &self.picture.cdc {
            for node in &sweep.nodes {
                if let Err(why) = &node.status {
                    unread.push((node.address.to_string(), why.clone()));
                }
            }
            for group in &sweep.groups {
                let mut add = |what: &str, why: Option<&Failure>| {
                    if let Some(why) = why {
                        unread.push((format!("{what} of TiCDC cluster {}", group.cluster_id), why.clone()));
                    }
                };
                add("captures", group.captures.as_ref().err());
                add("changefeeds", group.changefeeds.as_ref().err());
                add("clock", group.cluster_time.as_ref().err());
            }
        }
        if let Some(sweep) = &self.picture.tidb {
            for server in &sweep.servers {
                if let Err(why) = &server.info {
                    unread.push((format!("TiDB {}", server.address), why.clone()));
                }
            }
            if let Err(why) = &sweep.state {
                unread.push(("TiDB upgrade state".to_owned(), why.clone()));
            }
        }
        if let Some(sweep) = &self.picture.pd {
            for server in &sweep.servers {
                if let Err(why) = &server.version {
                    unread.push((format!("PD {}", server.address), why.clone()));
                }
            }
        }
        unread
    }

    /// About how much longer, from what the same phases took so far; unknown until each kind was seen once.
    fn remaining(&self) -> Option<Duration> {
        // Nobody knows how long a person takes.
        if self.plan.is_empty()
            || self.state.is_over()
            || self.state.question().is_some()
            || self.state.standing().is_paused
        {
            return None;
        }
        let mut sum = Duration::ZERO;
        for step in self.plan.iter() {
            for phase in step.phases.iter().filter(|phase| !phase.state.is_over()) {
                let known: Vec<Duration> = self
                    .took
                    .iter()
                    .filter(|(kind, done, _)| *kind == step.kind && *done == phase.kind)
                    .map(|(_, _, took)| *took)
                    .collect();
                let is_short = matches!(
                    phase.kind,
                    super::view::PhaseKind::Resign
                        | super::view::PhaseKind::HandOver
                        | super::view::PhaseKind::EnterUpgrading
                        | super::view::PhaseKind::LeaveUpgrading
                );
                let mean = match u32::try_from(known.len()) {
                    Ok(0) | Err(_) if is_short => self.policy.owner_stands,
                    Ok(0) | Err(_) if step.kind == super::view::StepKind::Tidb => self.policy.poll_idle,
                    Ok(0) | Err(_) => return None,
                    Ok(count) => known.iter().sum::<Duration>() / count,
                };
                let gone = match (phase.state, phase.started_at) {
                    (PhaseState::Running | PhaseState::Asking, Some(since)) => self.now.since(since),
                    _ => Duration::ZERO,
                };
                sum += mean.saturating_sub(gone);
            }
        }
        Some(sum)
    }
}

fn tables_of(carrier: &Carrier) -> Observed<Arc<BTreeMap<ChangefeedId, TableIds>>> {
    carrier.seen.map(|tables| Arc::clone(tables.by_changefeed()))
}

/// Tables gained or lost over the last minute.
fn per_minute(group: &GroupPicture, id: &crate::cluster::CaptureId) -> Option<i64> {
    let samples = &group.tables.get(id)?.counts;
    let (last_at, last) = *samples.back()?;
    let (first_at, first) = *samples.iter().find(|(at, _)| last_at.since(*at) <= Duration::from_mins(1))?;
    if last_at.since(first_at) < Duration::from_secs(2) {
        return None;
    }
    Some(i64::try_from(last).ok()? - i64::try_from(first).ok()?)
}

/// The largest lag of the changefeeds with tables on a capture.
fn lag_at(group: &GroupPicture, id: &crate::cluster::CaptureId) -> Option<Duration> {
    let tables = group.tables.get(id)?.seen.last()?.by_changefeed();
    let rows = group.changefeeds.last()?;
    rows.iter()
        .filter(|row| tables.get(&row.id).is_some_and(|ids| !ids.is_empty()))
        .filter_map(|row| group.lag(row))
        .max()
}
