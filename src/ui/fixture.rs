//! Views for tests: a small cluster in every situation the screen has to show.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::{
    Architecture, CaptureId, ChangefeedError, ChangefeedId, ChangefeedState, ClusterId, Failure, FailureKind,
    LivenessReading, Observed, TableId, TableIds, Timestamp, Version,
};
use crate::rollout::command::{Command, Who};
use crate::rollout::event::{Event, Fact, Weight};
use crate::rollout::view::{
    ByName, CaptureView, ChangefeedView, Choice, DrainView, Ending, GroupView, Mode, Outcome, OwedView, PdView,
    PhaseKind, PhaseState, PhaseView, Question, Standing, StepKind, StepView, TidbServerView, TidbView, Title, View,
};

use super::Options;
use super::state::UiState;

/// Now: 14:03:27.
pub(crate) fn now() -> Timestamp {
    Timestamp::new(50_607_000, 1_000_000)
}

/// So many seconds ago.
pub(crate) fn ago(seconds: u64) -> Timestamp {
    let now = now();
    Timestamp::new(now.wall_ms - i64::try_from(seconds).unwrap() * 1000, now.mono_ms - seconds * 1000)
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn known<T>(value: T) -> Observed<T> {
    Observed::Known { value, at: ago(1) }
}

pub(crate) fn options() -> Options {
    Options { ascii: false, no_color: true, who: Who::new("op@desk"), can_command: true, is_attached: false }
}

/// A fresh state of the screen with some events.
pub(crate) fn state() -> UiState {
    let mut state = UiState::new(&options(), now(), (80, 24));
    let facts = [
        (
            70,
            Fact::PhaseEnded {
                step: 0,
                target: "127.0.0.1:8301".to_owned(),
                phase: PhaseKind::Settle,
                outcome: "done".into(),
                evidence: "3 changefeeds run, lag under 10 s for 10 s".to_owned(),
                took_ms: 14_000,
            },
        ),
        (40, Fact::Commanded { who: Who::new("op@desk"), command: Command::Step, consent: None }),
        (40, Fact::PhaseStarted { step: 1, target: "127.0.0.1:8302".to_owned(), phase: PhaseKind::Drain }),
        (39, Fact::Sent { id: 41, what: "PUT http://127.0.0.1:8300/api/v1/captures/drain".to_owned() }),
        (20, Fact::Noted { weight: Weight::Warning, text: "lag of orders rose to 4.2 s".to_owned() }),
        (3, Fact::DrainProgress { step: 1, target: "127.0.0.1:8302".to_owned(), count: 17, of: 40, work: None }),
    ];
    for (seconds, fact) in facts {
        state.push_event(&Event { at: ago(seconds), fact });
    }
    state
}

fn tables(counts: &[(&str, i64, i64)]) -> Observed<Arc<BTreeMap<ChangefeedId, TableIds>>> {
    let feed = |&(name, from, count): &(&str, i64, i64)| {
        (ChangefeedId::new("default", name), (from..from + count).map(TableId).collect())
    };
    known(Arc::new(counts.iter().map(feed).collect()))
}

fn capture(port: u16, at: &str, liveness: i64, counts: &[(&str, i64, i64)]) -> CaptureView {
    CaptureView {
        id: CaptureId::new(format!("{port}abc-7995-43c6-9d2e-0242ac120002")),
        address: format!("127.0.0.1:{port}"),
        version: Some(version(at)),
        liveness: LivenessReading::new(Some(liveness), Architecture::Classic),
        architecture: Some(Architecture::Classic),
        is_owner: false,
        standing: Standing::Present,
        tables: tables(counts),
        per_minute: Some(0),
        lag: Some(Duration::from_millis(900)),
        seen_at: Some(ago(1)),
    }
}

fn feed(name: &str, state: ChangefeedState, lag_ms: u64, tables: u64) -> ChangefeedView {
    ChangefeedView {
        id: ChangefeedId::new("default", name),
        state,
        lag: Some(Duration::from_millis(lag_ms)),
        lag_history: vec![800, 900, 1200, 2400, 4200, 3000, 1500, lag_ms],
        tables: Some(tables),
        error: None,
    }
}

fn phase(kind: PhaseKind, state: PhaseState, note: &str) -> PhaseView {
    let started_at = (state != PhaseState::Waiting).then(|| ago(38));
    let took = state.is_over().then(|| Duration::from_secs(21));
    PhaseView { kind, state, started_at, took, note: note.to_owned() }
}

fn step(kind: StepKind, target: &str, note: &str, phases: Vec<PhaseView>) -> StepView {
    StepView { kind, target: target.to_owned(), note: note.to_owned(), phases }
}

fn phases(kinds: &[PhaseKind], state: PhaseState) -> Vec<PhaseView> {
    kinds.iter().map(|kind| phase(*kind, state, "")).collect()
}

fn plan() -> Vec<StepView> {
    use PhaseKind::{Drain, Resign, Restart, Settle, Verify};
    use PhaseState::{Done, Waiting};
    let capture = [Drain, Restart, Verify, Settle];
    vec![
        step(StepKind::Capture, "127.0.0.1:8301", "", phases(&capture, Done)),
        step(StepKind::Capture, "127.0.0.1:8302", "", phases(&capture, Waiting)),
        step(
            StepKind::Capture,
            "127.0.0.1:8300",
            "owner, last",
            phases(&[Resign, Drain, Restart, Verify, Settle], Waiting),
        ),
        step(StepKind::HandOver, "PD and TiKV", "", phases(&[PhaseKind::HandOver], Waiting)),
        step(StepKind::EnterUpgrading, "cluster", "", phases(&[PhaseKind::EnterUpgrading], Waiting)),
        step(StepKind::Tidb, "127.0.0.1:10080", "", phases(&[Restart, Verify], Waiting)),
        step(StepKind::Tidb, "127.0.0.1:10081", "DDL owner, last", phases(&[Restart, Verify], Waiting)),
        step(StepKind::LeaveUpgrading, "cluster", "", phases(&[PhaseKind::LeaveUpgrading], Waiting)),
    ]
}

fn allow(view: &mut View, allowed: &[Command]) {
    view.commands = Command::ALL
        .iter()
        .map(|command| {
            let why = || format!("{} makes no sense in mode {}", command.name(), view.mode.word());
            (*command, if allowed.contains(command) { Ok(()) } else { Err(why()) })
        })
        .collect();
}

/// The first frame: nothing is known.
pub(crate) fn reading() -> View {
    let mut view = View {
        at: now(),
        title: Title {
            operation: "upgrade".into(),
            from: None,
            to: Some(version("v8.5.4")),
            is_simulated: true,
            speed: 20.0,
            executor: "sim".into(),
        },
        mode: Mode::Reading,
        started_at: None,
        ended_at: None,
        remaining: None,
        plan: Vec::new(),
        cursor: None,
        groups: Vec::new(),
        drain: None,
        tidb: Some(TidbView { is_upgrading: Observed::Unasked, upgrading_since: None, servers: Vec::new() }),
        pd: Vec::new(),
        owed: Vec::new(),
        question: None,
        by_name: Vec::new(),
        commands: Vec::new(),
        table_names: Arc::default(),
        unread: Vec::new(),
    };
    allow(&mut view, &[]);
    view
}

fn server(port: u16, is_owner: bool) -> TidbServerView {
    TidbServerView {
        address: format!("127.0.0.1:{port}"),
        sql_address: Some(format!("127.0.0.1:{}", port - 6080)),
        version: known(version("v8.5.3")),
        is_ddl_owner: Some(is_owner),
        serves: known(()),
    }
}

/// Between two steps of a small rollout.
pub(crate) fn stepping() -> View {
    let mut owner = capture(8300, "v8.5.3", 0, &[("orders", 100, 25), ("users", 200, 15)]);
    owner.is_owner = true;
    owner.per_minute = Some(12);
    let group = GroupView {
        cluster_id: ClusterId::default(),
        owner: known(Some(owner.id.clone())),
        captures: vec![
            owner,
            capture(8301, "v8.5.4", 0, &[("orders", 130, 28), ("dwh", 300, 12)]),
            capture(8302, "v8.5.3", 0, &[("orders", 160, 27), ("dwh", 320, 8), ("users", 220, 5)]),
        ],
        changefeeds: known(vec![
            feed("dwh", ChangefeedState::Normal, 1100, 20),
            feed("orders", ChangefeedState::Normal, 900, 80),
            feed("users", ChangefeedState::Normal, 700, 20),
        ]),
        health: known(true),
    };
    let names = (100..130).map(|id| (TableId(id), format!("shop.orders_{id:03}"))).collect();
    let mut view = View {
        title: Title { from: Some(version("v8.5.3")), ..reading().title },
        mode: Mode::Stepping,
        started_at: Some(ago(372)),
        remaining: Some(Duration::from_secs(550)),
        plan: plan(),
        cursor: Some((1, 0)),
        groups: vec![group],
        tidb: Some(TidbView {
            is_upgrading: known(false),
            upgrading_since: None,
            servers: vec![server(10080, false), server(10081, true)],
        }),
        pd: vec![PdView { address: "127.0.0.1:2379".to_owned(), version: known(version("v8.5.3")) }],
        table_names: Arc::new(names),
        ..reading()
    };
    allow(&mut view, &[Command::Step, Command::Continue, Command::Abort]);
    view
}

/// In the middle of a drain.
pub(crate) fn draining() -> View {
    let mut view = stepping();
    view.mode = Mode::StepRunning;
    view.plan[1].phases[0] = phase(PhaseKind::Drain, PhaseState::Running, "17 tables left");
    let captures = &mut view.groups[0].captures;
    captures[2] = capture(8302, "v8.5.3", 1, &[("orders", 160, 11), ("dwh", 320, 4), ("users", 220, 2)]);
    captures[2].per_minute = Some(-118);
    captures[0].per_minute = Some(60);
    captures[1].per_minute = Some(58);
    view.drain = Some(DrainView {
        capture: captures[2].id.clone(),
        address: captures[2].address.clone(),
        work: None,
        count: Some(17),
        baseline: 40,
        counted_at: Some(ago(1)),
        started_at: ago(38),
        rate: Some(2.06),
        remaining: Some(Duration::from_secs(22)),
        history: vec![40, 40, 38, 35, 31, 28, 26, 22, 19, 17],
        by_changefeed: vec![
            (ChangefeedId::new("default", "orders"), 11),
            (ChangefeedId::new("default", "dwh"), 4),
            (ChangefeedId::new("default", "users"), 2),
        ],
        waiting_for: "17 tables to move".to_owned(),
        is_lost: false,
        is_done: false,
    });
    view.owed = vec![drained_owed()];
    allow(&mut view, &[Command::Pause, Command::Abort]);
    view
}

fn of_new_architecture(mut view: View) -> View {
    for capture in &mut view.groups[0].captures {
        capture.architecture = Some(Architecture::New);
        capture.liveness = LivenessReading::new(capture.liveness.raw, Architecture::New);
    }
    view
}

/// The same in the new architecture: no table is left, and the drain is not over.
pub(crate) fn draining_new() -> View {
    let mut view = of_new_architecture(draining());
    view.plan[1].phases[0].note = String::new();
    view.groups[0].captures[2].tables = known(Arc::default());
    if let Some(drain) = &mut view.drain {
        drain.count = Some(0);
        drain.work = Some(5);
        drain.remaining = None;
        drain.by_changefeed = Vec::new();
        drain.history.push(0);
        drain.waiting_for = "liveness 2 (stopping): no table is left there".to_owned();
    }
    view
}

/// Drained, and the restart waits for a person.
pub(crate) fn drained() -> View {
    let mut view = draining_new();
    view.mode = Mode::Stepping;
    view.plan[1].phases[0] =
        phase(PhaseKind::Drain, PhaseState::Done, "two zeros, and one round that found no table there");
    view.cursor = Some((1, 1));
    view.groups[0].captures[2].liveness = LivenessReading::new(Some(2), Architecture::New);
    if let Some(drain) = &mut view.drain {
        drain.work = Some(0);
        drain.is_done = true;
        drain.waiting_for = String::new();
    }
    allow(&mut view, &[Command::Step, Command::Continue, Command::Abort]);
    view
}

/// A person paused, and the coordinator changed meanwhile.
pub(crate) fn drain_lost() -> View {
    let mut view = of_new_architecture(draining());
    view.mode = Mode::Paused;
    if let Some(drain) = &mut view.drain {
        drain.work = Some(22);
        drain.rate = Some(0.0);
        drain.is_lost = true;
        drain.waiting_for = "the drain to be asked again: the new coordinator places nothing before".to_owned();
    }
    allow(&mut view, &[Command::AskAgain, Command::Step, Command::Continue, Command::Abort]);
    view
}

fn drained_owed() -> OwedView {
    OwedView {
        kind: "restart".into(),
        target: "127.0.0.1:8302".to_owned(),
        what: "A drain was asked for: this capture takes no table again until its process is restarted.".to_owned(),
        how: "restart the cdc process at 127.0.0.1:8302".to_owned(),
        since: ago(38),
    }
}

/// A drain that stalled.
pub(crate) fn by_force(tables: u64) -> ByName {
    let first = format!(
        "127.0.0.1:8302 is restarted with {tables} tables on it. They stand still until another capture has taken them over."
    );
    ByName { command: Command::Force, typed: vec![format!("127.0.0.1:8302 {tables}")], means: vec![first] }
}

pub(crate) fn question() -> View {
    let mut view = draining();
    view.mode = Mode::Asking;
    view.plan[1].phases[0].state = PhaseState::Asking;
    view.groups[0].changefeeds = known(vec![
        ChangefeedView {
            error: Some(ChangefeedError {
                code: Arc::from("CDC:ErrSinkUnknown"),
                message: Arc::from("dial tcp 10.0.9.9:3306: connect: connection refused"),
            }),
            ..feed("dwh", ChangefeedState::Warning, 48_000, 20)
        },
        feed("orders", ChangefeedState::Normal, 900, 80),
        feed("users", ChangefeedState::Normal, 700, 20),
    ]);
    view.question = Some(Question {
        reason: "drain_stalled".into(),
        step: "capture/drain".to_owned(),
        target: "127.0.0.1:8302".to_owned(),
        what: "The drain has not moved for 30 s: 17 of 40 tables are still on 127.0.0.1:8302.".to_owned(),
        means:
            "It is not safe to restart the process: these tables would stop replicating until another capture takes \
                them. Changefeed dwh is in warning (CDC:ErrSinkUnknown), which is the likely cause."
                .to_owned(),
        advice: "Repair the sink of dwh, then retry; or wait longer if the tables are large.".to_owned(),
        choices: vec![
            Choice { command: Command::Wait, label: "give the drain 10 min more".to_owned() },
            Choice { command: Command::Retry, label: "ask for the drain again".to_owned() },
            Choice { command: Command::Abort, label: "give up; 127.0.0.1:8302 has to be recovered".to_owned() },
        ],
    });
    allow(&mut view, &[Command::Wait, Command::Retry, Command::Abort, Command::Pause, Command::Force]);
    view.by_name = vec![by_force(17)];
    view
}

/// After an abort in the middle of a drain.
pub(crate) fn aborted() -> View {
    let mut view = draining();
    view.mode = Mode::Aborted;
    view.plan[1].phases[0].state = PhaseState::Aborted;
    view.question = Some(Question {
        reason: "aborted".into(),
        step: "capture/drain".to_owned(),
        target: "127.0.0.1:8302".to_owned(),
        what: "The rollout was aborted while 127.0.0.1:8302 was draining.".to_owned(),
        means: "127.0.0.1:8302 goes on draining and takes no table again until it is restarted. 1 of 3 captures runs \
                v8.5.4."
            .to_owned(),
        advice: "Recover it now, unless you want to restart it yourself.".to_owned(),
        choices: vec![
            Choice { command: Command::Recover, label: "restart 127.0.0.1:8302 on v8.5.3 once it is empty".to_owned() },
            Choice { command: Command::Close, label: "end here; the restart stays owed".to_owned() },
        ],
    });
    allow(&mut view, &[Command::Recover, Command::Close]);
    view
}

/// All done.
pub(crate) fn ended() -> View {
    let mut view = stepping();
    for step in &mut view.plan {
        for phase in &mut step.phases {
            phase.state = PhaseState::Done;
            phase.took = Some(Duration::from_secs(21));
        }
    }
    for capture in &mut view.groups[0].captures {
        capture.version = Some(version("v8.5.4"));
    }
    for server in &mut view.tidb.as_mut().unwrap().servers {
        server.version = known(version("v8.5.4"));
    }
    view.mode = Mode::Ended(Ending {
        outcome: Outcome::Done,
        exit_code: 0,
        reason: "3 captures and 2 TiDB servers run v8.5.4, each proven by its own word.".to_owned(),
    });
    view.remaining = None;
    view.cursor = None;
    allow(&mut view, &[]);
    view
}

/// Looking only, at a cluster in a bad state with awkward names.
pub(crate) fn watching() -> View {
    let mut view = stepping();
    view.title.operation = "watch".into();
    view.title.to = None;
    view.title.is_simulated = false;
    view.mode = Mode::Watching;
    view.plan = Vec::new();
    view.cursor = None;
    view.started_at = None;
    let refused = Failure::local(FailureKind::Refused, "connection refused");
    let captures = &mut view.groups[0].captures;
    captures[1].address = "upstream-ticdc-0.upstream-ticdc-peer.some-long-namespace.svc.cluster.local:8301".to_owned();
    captures[1].standing = Standing::Ghost;
    captures[1].version = None;
    captures[1].liveness = LivenessReading::default();
    captures[2].standing = Standing::Silent;
    captures[2].tables =
        Observed::Stale { value: captures[2].tables.last().unwrap().clone(), at: ago(75), why: refused.clone() };
    view.unread = vec![("127.0.0.1:8302".to_owned(), refused.clone()), ("127.0.0.1:10080".to_owned(), refused.clone())];
    let tidb = view.tidb.as_mut().unwrap();
    tidb.is_upgrading = known(true);
    tidb.upgrading_since = Some(ago(83));
    tidb.servers[0].serves.absorb(Err(refused), ago(1));
    allow(&mut view, &[]);
    view
}
