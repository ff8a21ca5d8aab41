//! A cluster of a few captures and two `TiDB` servers as plain data: it answers the engine's effects, gives sweeps, and
//! watches over what must never happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tiroll::cluster::tidb::TidbAll;
use tiroll::cluster::{
    Address, Architecture, CaptureEntry, CaptureId, CdcSweep, ChangefeedId, ChangefeedRow, ChangefeedState, ClusterId,
    Failure, FailureKind, FinishAnswer, GroupSweep, LivenessReading, NodeReading, NodeStatus, Reading, StartAnswer,
    TableId, TargetTables, TidbInfo, TidbReading, TidbStatus, TidbSweep, Timestamp, Tso, UpgradeState, Version,
};
use tiroll::rollout::command::{Command, Permission, Who};
use tiroll::rollout::effect::{Action, ActionOutcome, Call, CallAnswer, Component, Effect, EffectId, Input};
use tiroll::rollout::event::{Event, Fact};
use tiroll::rollout::policy::Policy;
use tiroll::rollout::view::Mode;
use tiroll::rollout::{Engine, Request, StepOutput};

const EPOCH: i64 = 1_796_072_400_000;
/// How long an entry of an ended process stays listed.
const GHOST_MS: u64 = 5_000;

pub(crate) fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub(crate) address: Address,
    pub(crate) generation: u32,
    pub(crate) version: &'static str,
    pub(crate) stopping: bool,
    /// Tables of the two changefeeds.
    pub(crate) tables: [u64; 2],
    /// Down until then.
    pub(crate) down_until: Option<u64>,
    /// When tables of others were given to it.
    given_at: u64,
    n: usize,
}

impl Capture {
    pub(crate) fn id(&self) -> CaptureId {
        CaptureId::new(format!("{:04}{:04}-7995-43c6-9372-51d69d484aff", self.n, self.generation))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Tidb {
    pub(crate) address: Address,
    pub(crate) version: &'static str,
    start: i64,
    down_until: Option<u64>,
}

/// What a test may spoil in the next sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spoil {
    pub(crate) captures: bool,
    pub(crate) changefeeds: bool,
    pub(crate) target: bool,
    pub(crate) node: Option<usize>,
    pub(crate) tidb: bool,
}

/// The cluster, the engine that rolls it, and everything that is under way between them.
pub(crate) struct Course {
    pub(crate) engine: Engine,
    pub(crate) now: u64,
    pub(crate) captures: Vec<Capture>,
    pub(crate) owner: usize,
    pub(crate) tidb: Vec<Tidb>,
    pub(crate) upgrading: bool,
    pub(crate) warning: bool,
    /// Tables of the second changefeed do not move.
    pub(crate) is_stuck: bool,
    /// The next restart comes back as this.
    pub(crate) comes_back_as: Option<&'static str>,
    /// The next call fails like this.
    pub(crate) next_call_fails: Option<FailureKind>,
    /// The next act is never heard of again, and nothing happens.
    pub(crate) loses_next_act: bool,
    ghosts: Vec<(usize, CaptureId, u64)>,
    inbox: Vec<(u64, Input)>,
    pub(crate) events: Vec<Event>,
    pub(crate) effects: Vec<Effect>,
    outstanding: BTreeSet<EffectId>,
    watched: Option<CaptureId>,
    /// When the engine last read the cluster.
    read_at: u64,
    owned_since: u64,
    /// Every input with its time, for the replay.
    pub(crate) tape: Vec<(Timestamp, Input)>,
    pub(crate) outputs: Vec<StepOutput>,
}

pub(crate) fn request(is_auto: bool) -> Request {
    Request {
        target: version("v8.5.4"),
        is_watch: false,
        has_tidb: true,
        has_pd: false,
        executor: "sim",
        hand_over_passes: true,
        is_simulated: true,
        speed: 1.0,
        is_auto,
    }
}

impl Course {
    pub(crate) fn new(captures: usize, is_auto: bool) -> Self {
        let captures = (0..captures)
            .map(|n| Capture {
                address: Address::new("10.0.1.1", 8300 + u16::try_from(n).unwrap()),
                generation: 0,
                version: "v8.5.3",
                stopping: false,
                tables: [6, 3],
                down_until: None,
                given_at: 0,
                n,
            })
            .collect();
        let tidb = (0..2)
            .map(|n| Tidb {
                address: Address::new("10.0.2.1", 10_080 + n),
                version: "v8.5.3",
                start: 1,
                down_until: None,
            })
            .collect();
        Self {
            engine: Engine::new(request(is_auto), Policy::default()),
            now: 1_000,
            captures,
            owner: 0,
            tidb,
            upgrading: false,
            warning: false,
            is_stuck: false,
            comes_back_as: None,
            next_call_fails: None,
            loses_next_act: false,
            ghosts: Vec::new(),
            inbox: Vec::new(),
            events: Vec::new(),
            effects: Vec::new(),
            outstanding: BTreeSet::new(),
            watched: None,
            read_at: 0,
            owned_since: 0,
            tape: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::new(EPOCH + i64::try_from(self.now).unwrap(), self.now)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.engine.view().mode
    }

    pub(crate) fn asked(&self) -> Option<&'static str> {
        self.engine.view().question.map(|question| question.reason)
    }

    /// Lets time pass: the cluster moves on, what is due arrives, and both sides are read.
    pub(crate) fn pass(&mut self, ms: u64, spoil: Spoil) {
        self.now += ms;
        self.live(ms);
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.inbox).into_iter().partition(|(at, _)| *at <= self.now);
        self.inbox = later;
        for (_, input) in due {
            self.tell(input);
        }
        let sweep = self.cdc(spoil);
        self.read_at = self.now;
        self.tell(Input::Cdc(Arc::new(sweep)));
        let sweep = self.tidb_sweep(spoil);
        self.tell(Input::Tidb(Arc::new(sweep)));
    }

    /// Passes time in steps until it is so; a quarter of an hour is too long for anything.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..3_600 {
            if is_so(self) {
                return;
            }
            self.pass(250, Spoil::default());
        }
        let view = self.engine.view();
        panic!("{what} never came to be: {:?} {:?} {:?}", view.mode, view.current(), view.question);
    }

    pub(crate) fn say(&mut self, command: Command) -> Permission {
        let (permission, out) = self.engine.command(self.at(), &Who::new("test"), command);
        self.take(out);
        permission
    }

    fn tell(&mut self, input: Input) {
        if let Input::Answer { id, .. } | Input::Outcome { id, .. } = &input {
            self.outstanding.remove(id);
        }
        let at = self.at();
        self.tape.push((at, input.clone()));
        let out = self.engine.step(at, input);
        self.outputs.push(out.clone());
        self.take(out);
    }

    fn take(&mut self, out: StepOutput) {
        self.watch_debts(&out);
        self.events.extend(out.events);
        for effect in out.effects {
            self.effects.push(effect.clone());
            match effect {
                Effect::Watch(watch) => self.watched = watch.target,
                Effect::Call { id, call } => {
                    assert!(self.outstanding.is_empty(), "{call}: another call is in flight");
                    self.outstanding.insert(id);
                    self.answer(id, &call);
                }
                Effect::Exec { id, action } => {
                    assert!(self.outstanding.is_empty(), "{action}: another call is in flight");
                    self.outstanding.insert(id);
                    self.act(id, &action);
                }
            }
        }
    }

    /// What must be changed back is owed before it is changed.
    fn watch_debts(&self, out: &StepOutput) {
        let owed = |kind: &str| {
            let facts = self.events.iter().chain(&out.events).map(|event| &event.fact);
            let mut count = 0;
            for fact in facts {
                match fact {
                    Fact::ObligationIncurred(owed) if owed.kind == kind => count += 1,
                    Fact::ObligationPaid { owed, .. } if owed.kind == kind => count -= 1,
                    _ => {}
                }
            }
            count > 0
        };
        for effect in &out.effects {
            match effect {
                Effect::Call { call: Call::Drain { .. }, .. } => assert!(owed("restart"), "a drain nobody owes"),
                Effect::Call { call: Call::UpgradeStart, .. } => assert!(owed("finish"), "a start nobody owes"),
                Effect::Exec { .. } => assert!(owed("start"), "an act nobody owes"),
                _ => {}
            }
        }
    }

    fn answer(&mut self, id: EffectId, call: &Call) {
        let fails = self.next_call_fails.take().map(|kind| Failure::local(kind, "as the test wants it"));
        let answer = match call {
            Call::Drain { capture, .. } => CallAnswer::Drain(fails.map_or_else(|| self.drain(capture), Err)),
            Call::Resign { .. } => CallAnswer::Resign(fails.map_or_else(
                || {
                    self.resign();
                    Ok(())
                },
                Err,
            )),
            Call::UpgradeStart => {
                let before = std::mem::replace(&mut self.upgrading, true);
                let said = if before { StartAnswer::Duplicated } else { StartAnswer::Success };
                CallAnswer::Start(fails.map_or(Ok(said), Err))
            }
            Call::UpgradeFinish => {
                let before = std::mem::replace(&mut self.upgrading, false);
                let said = if before { FinishAnswer::Success } else { FinishAnswer::Duplicated };
                CallAnswer::Finish(fails.map_or(Ok(said), Err))
            }
        };
        self.inbox.push((self.now + 100, Input::Answer { id, sent_at: self.at(), answer }));
    }

    fn drain(&mut self, id: &CaptureId) -> Reading<u64> {
        let able = self.captures.iter().filter(|c| c.down_until.is_none()).count();
        let Some(n) = self.captures.iter().position(|c| &c.id() == id && c.down_until.is_none()) else {
            return Err(Failure::local(FailureKind::NoSuchCapture, "gone"));
        };
        if able < 2 {
            return Err(Failure::local(FailureKind::OnlyOneCapture, "alone"));
        }
        if n == self.owner {
            return Err(Failure::local(FailureKind::CannotDrainOwner, "owner"));
        }
        let beside = self.captures.iter().any(|c| c.n != n && c.stopping && c.down_until.is_none());
        assert!(!beside || self.is_news(), "a drain is asked for beside a stopping capture");
        // The count leaves out a changefeed that is not normal (contract section 3.1).
        let capture = &mut self.captures[n];
        let count = capture.tables[0] + if self.warning { 0 } else { capture.tables[1] };
        capture.stopping |= count > 0;
        Ok(count)
    }

    /// Whether the cluster changed since the engine last read it: then it could not know better.
    fn is_news(&self) -> bool {
        let view = self.engine.view();
        let read: Vec<_> =
            view.groups.iter().flat_map(|g| &g.captures).map(|c| (c.id.clone(), c.liveness.raw)).collect();
        self.captures.iter().any(|c| !read.contains(&(c.id(), Some(i64::from(c.stopping)))))
    }

    pub(crate) fn resign(&mut self) {
        let count = self.captures.len();
        let next = (1..=count).map(|step| (self.owner + step) % count);
        let able = |n: &usize| !self.captures[*n].stopping && self.captures[*n].down_until.is_none();
        if let Some(next) = next.clone().find(able) {
            self.owner = next;
            self.owned_since = self.now;
        }
    }

    fn act(&mut self, id: EffectId, action: &Action) {
        if std::mem::take(&mut self.loses_next_act) {
            self.outstanding.remove(&id);
            return;
        }
        let back = self.comes_back_as.take();
        let wanted = action.version.as_ref().map(|v| if v.as_str() == "v8.5.4" { "v8.5.4" } else { "v8.5.3" });
        match action.component {
            Component::Ticdc => {
                let n = self.captures.iter().position(|c| c.address == action.address).expect("a known address");
                let c = &self.captures[n];
                // THE promise: nothing that still carries tables, and no owner, is stopped.
                // Tables that somebody gave it since it was last read are nobody's to know.
                let is_unread = c.given_at >= self.read_at;
                assert!(
                    c.down_until.is_some() || c.tables == [0, 0] || is_unread,
                    "{action}: it carries {:?}",
                    c.tables
                );
                let is_new_owner = self.owned_since >= self.read_at;
                assert!(c.down_until.is_some() || n != self.owner || is_new_owner, "{action}: it owns");
                let keeps = c.version;
                self.restart(n, back.or(wanted).unwrap_or(keeps));
            }
            Component::Tidb => {
                let at = self.now + 1_500;
                let tidb = self.tidb.iter_mut().find(|t| t.address == action.address).expect("a known address");
                tidb.version = back.or(wanted).unwrap_or(tidb.version);
                tidb.start += 60;
                tidb.down_until = Some(at);
            }
        }
        let outcome = ActionOutcome::Returned { detail: "done".to_owned() };
        self.inbox.push((self.now + 1_000, Input::Outcome { id, outcome }));
    }

    /// A process ends and comes back; its tables are given to others when its entry leaves.
    pub(crate) fn restart(&mut self, n: usize, version: &'static str) {
        let id = self.captures[n].id();
        self.ghosts.push((n, id, self.now + GHOST_MS));
        let orphans = std::mem::take(&mut self.captures[n].tables);
        let capture = &mut self.captures[n];
        capture.generation += 1;
        capture.version = version;
        capture.stopping = false;
        capture.down_until = Some(self.now + 1_500);
        if self.owner == n {
            self.resign();
        }
        // New and orphaned tables never go to a stopping capture (contract section 3.1).
        let able = self.captures.iter().position(|c| c.n != n && c.down_until.is_none() && !c.stopping);
        let heir = able.unwrap_or(n);
        if orphans != [0, 0] {
            self.captures[heir].given_at = self.now;
        }
        for (tables, orphans) in self.captures[heir].tables.iter_mut().zip(orphans) {
            *tables += orphans;
        }
    }

    fn live(&mut self, ms: u64) {
        self.ghosts.retain(|(_, _, until)| *until > self.now);
        for capture in &mut self.captures {
            capture.down_until = capture.down_until.filter(|until| *until > self.now);
        }
        for tidb in &mut self.tidb {
            tidb.down_until = tidb.down_until.filter(|until| *until > self.now);
        }
        for n in 0..self.captures.len() {
            let to = self.captures.iter().position(|c| c.n != n && c.down_until.is_none() && !c.stopping);
            if let Some(to) = to.filter(|_| self.captures[n].stopping && self.captures[n].down_until.is_none()) {
                for feed in 0..2 {
                    let moves =
                        if feed == 1 && self.is_stuck { 0 } else { (ms / 250).min(self.captures[n].tables[feed]) };
                    self.captures[n].tables[feed] -= moves;
                    self.captures[to].tables[feed] += moves;
                }
            }
        }
    }

    fn feeds() -> [ChangefeedId; 2] {
        [ChangefeedId::new("default", "orders"), ChangefeedId::new("default", "dwh")]
    }

    fn cdc(&self, spoil: Spoil) -> CdcSweep {
        let spoilt = || Failure::local(FailureKind::Timeout, "spoilt by the test");
        let at = self.at();
        let cluster = ClusterId::default();
        let nodes = self
            .captures
            .iter()
            .map(|c| NodeReading {
                address: c.address.clone(),
                is_configured: true,
                at,
                status: if c.down_until.is_some() {
                    Err(Failure::local(FailureKind::Refused, "refused"))
                } else if spoil.node == Some(c.n) {
                    Err(spoilt())
                } else {
                    Ok(NodeStatus {
                        id: Some(c.id()),
                        version: Version::parse(c.version).ok(),
                        version_text: c.version.into(),
                        git_hash: "".into(),
                        cluster_id: Some(cluster.clone()),
                        pid: Some(i64::from(c.generation) + 100),
                        is_owner: c.n == self.owner,
                        liveness: LivenessReading::new(Some(i64::from(c.stopping)), Architecture::Classic),
                        architecture: Architecture::Classic,
                    })
                },
            })
            .collect();
        let entry = |id: CaptureId, n: usize| CaptureEntry {
            is_owner: n == self.owner && id == self.captures[n].id(),
            address: self.captures[n].address.clone(),
            cluster_id: Some(cluster.clone()),
            id,
        };
        let mut list: Vec<_> =
            self.captures.iter().filter(|c| c.down_until.is_none()).map(|c| entry(c.id(), c.n)).collect();
        list.extend(self.ghosts.iter().map(|(n, id, _)| entry(id.clone(), *n)));
        let clock = u64::try_from(at.wall_ms).unwrap();
        let row = |n: usize| ChangefeedRow {
            id: Self::feeds()[n].clone(),
            state: if n == 1 && self.warning { ChangefeedState::Warning } else { ChangefeedState::Normal },
            checkpoint: Tso::new((clock - 2_000) << 18),
            error: None,
        };
        let ids = |n: usize, count: u64| -> Vec<TableId> {
            (0..count).map(|k| TableId(i64::try_from(k).unwrap() + 1_000 * i64::try_from(n).unwrap())).collect()
        };
        let placement = (0..2)
            .map(|feed| {
                let all = self.captures.iter().filter(|c| c.down_until.is_none());
                (Self::feeds()[feed].clone(), Ok(all.map(|c| (c.id(), ids(c.n, c.tables[feed]))).collect()))
            })
            .collect();
        let target = self.watched.as_ref().map(|capture| TargetTables {
            capture: capture.clone(),
            by_changefeed: (0..2)
                .map(|feed| {
                    let found = self.captures.iter().find(|c| &c.id() == capture && c.down_until.is_none());
                    let reading = match found {
                        _ if spoil.target => Err(spoilt()),
                        Some(c) => Ok(ids(c.n, c.tables[feed])),
                        None => Err(Failure::local(FailureKind::NoSuchCapture, "gone")),
                    };
                    (Self::feeds()[feed].clone(), reading)
                })
                .collect::<BTreeMap<_, _>>(),
        });
        let group = GroupSweep {
            cluster_id: cluster.clone(),
            captures: if spoil.captures { Err(spoilt()) } else { Ok(list) },
            health: Ok(()),
            changefeeds: if spoil.changefeeds { Err(spoilt()) } else { Ok(vec![row(1), row(0)]) },
            processors: Ok(Vec::new()),
            placement,
            target,
            cluster_time: Tso::new(clock << 18).ok_or_else(spoilt),
        };
        CdcSweep { begun: at, ended: at, nodes, groups: vec![group] }
    }

    fn tidb_sweep(&self, spoil: Spoil) -> TidbSweep {
        let at = self.at();
        let refused = || Failure::local(FailureKind::Refused, "refused");
        let servers = self
            .tidb
            .iter()
            .map(|t| TidbReading {
                address: t.address.clone(),
                status: t
                    .down_until
                    .map_or_else(|| Ok(TidbStatus { version: version(t.version), connections: 0 }), |_| Err(refused())),
                info: t.down_until.map_or_else(
                    || {
                        Ok(TidbInfo {
                            ddl_id: format!("ddl-{}-{}", t.address.port(), t.start).into(),
                            version: version(t.version),
                            git_hash: "".into(),
                            sql_address: t.address.clone(),
                            status_address: t.address.clone(),
                            start_timestamp: t.start,
                            is_ddl_owner: Some(t.address.port() == 10_080),
                        })
                    },
                    |_| Err(refused()),
                ),
            })
            .collect();
        let state = if self.upgrading {
            UpgradeState::Upgrading { servers: 2, percent: 100, is_consistent: true }
        } else {
            UpgradeState::Normal
        };
        TidbSweep {
            begun: at,
            ended: at,
            servers,
            all: Ok(TidbAll { owner_id: "".into(), servers: Vec::new() }),
            state: if spoil.tidb { Err(refused()) } else { Ok(state) },
        }
    }
}
