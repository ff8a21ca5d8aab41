//! A rollout's journal as the driver sees it, the locks on its servers, and what earlier rollouts left.

use std::path::PathBuf;

use serde::Serialize;

use super::args::StateDir;
use super::connect::Plan;
use super::output::warn;
use crate::api::Endpoints;
use crate::cluster::{Address, Clock, Timestamp, Version};
use crate::driver::keeper::Keeper;
use crate::driver::link::SOCKET;
use crate::journal::{Base, Claim, Holder, Journal, JournalError, Locks, RolloutId, Summary, Writer, list, read};
use crate::rollout::command::Who;
use crate::rollout::control::Life;
use crate::rollout::durable::{Change, Durable};
use crate::rollout::event::SCHEMA;
use crate::rollout::record::{Began, Record, Replayed};
use crate::rollout::view::Outcome;

/// The journal of one rollout, begun as soon as there is a plan: what was refused before leaves nothing behind.
pub(super) struct Kept {
    base: Base,
    id: RolloutId,
    writer: Writer,
    title: String,
    began: Began,
    journal: Option<Journal>,
    /// Facts from before the plan.
    early: Vec<Record>,
    locks: Locks,
    beat_at: Option<Timestamp>,
}

/// How often the files for people say that the holder lives.
const HEARTBEAT: std::time::Duration = std::time::Duration::from_secs(10);

impl Keeper for Kept {
    fn keep(&mut self, at: Timestamp, records: &[Record]) -> Result<(), String> {
        let kept = self.append(at, records).and_then(|()| self.beat(at));
        kept.map_err(|error| three_parts(&error))
    }
}

impl Kept {
    fn append(&mut self, at: Timestamp, records: &[Record]) -> Result<(), JournalError> {
        if let Some(journal) = &mut self.journal {
            return journal.append(at, records);
        }
        let has_plan = records.iter().any(|record| matches!(record, Record::Change(Change::Plan(_))));
        if !has_plan {
            self.early.extend_from_slice(records);
            return Ok(());
        }
        let mut journal = Journal::create(&self.base, &self.id, at, &self.writer, &self.title)?;
        let first = std::iter::once(Record::Began(self.began.clone()));
        let all: Vec<_> = first.chain(self.early.iter().cloned()).chain(records.iter().cloned()).collect();
        journal.append(at, &all)?;
        self.early.clear();
        self.journal = Some(journal);
        Ok(())
    }

    fn beat(&mut self, at: Timestamp) -> Result<(), JournalError> {
        if self.beat_at.is_some_and(|last| at.since(last) < HEARTBEAT) {
            return Ok(());
        }
        self.beat_at = Some(at);
        self.locks.heartbeat(at)?;
        self.journal.as_mut().map_or(Ok(()), |journal| journal.heartbeat(at))
    }
}

/// The error in its three parts, as one text.
pub(super) fn three_parts(error: &JournalError) -> String {
    format!("{error}. That means: {}. What to do: {}", error.meaning(), error.remedy())
}

/// Why a rollout cannot be begun or gone on with.
pub(super) enum Refusal {
    /// Somebody else holds a server, an earlier rollout owes something there, or there is nothing to go on with.
    Person(String),
    /// It must be said which rollout is meant.
    Usage(String),
    /// The journal cannot be read or written, or the program that runs it cannot be reached.
    Disk(String),
}

impl Refusal {
    /// The reason, in its three parts.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Person(text) | Self::Usage(text) | Self::Disk(text) => text,
        }
    }

    /// A person must look, or it is an error.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Person(_) => 3,
            Self::Usage(_) => 2,
            Self::Disk(_) => 1,
        }
    }
}

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        let text = three_parts(&error);
        if matches!(error, JournalError::Held(_)) { Self::Person(text) } else { Self::Disk(text) }
    }
}

/// The directory of journals: the one named, or the usual one.
pub(super) fn base(state: &StateDir) -> Result<Base, Refusal> {
    match &state.state_dir {
        Some(path) => Ok(Base::at(path)),
        None => Ok(Base::usual()?),
    }
}

fn claims(servers: &Endpoints) -> Vec<Claim> {
    let of = |kind: &'static str, list: &[Address]| {
        list.iter().map(move |at| Claim::new(kind, at.clone())).collect::<Vec<_>>()
    };
    [of("cdc", &servers.cdc), of("tidb", &servers.tidb)].concat()
}

/// Who acts: the user of this machine.
fn here() -> Writer {
    Writer::here(std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "operator".to_owned()))
}

/// The same as a name for commands.
pub(super) fn who() -> Who {
    let Writer { name, host, .. } = here();
    Who::new(format!("{name}@{host}"))
}

/// Where a rollout lives.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Its name.
    pub(super) id: RolloutId,
    directory: PathBuf,
}

impl Place {
    fn new(base: &Base, id: &RolloutId) -> Self {
        Self { id: id.clone(), directory: base.rollout(id) }
    }

    /// The socket that others attach to.
    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join(SOCKET)
    }
}

/// Takes the locks on every server that a new rollout may change, and makes ready to keep it.
pub(super) fn begin(base: &Base, plan: &Plan, clock: &dyn Clock) -> Result<Kept, Refusal> {
    let at = clock.now();
    let (id, writer) = (RolloutId::new(at), here());
    let locks = Locks::take(base, &claims(&plan.target), Holder::new(&writer, &id, at))?;
    for (claim, holder) in locks.taken_over() {
        warn(&format!("{claim} was held by {holder}, which is gone"));
    }
    let before = open_among(base, list(base)?).into_iter().find(|(_, replayed)| owes_there(replayed, &plan.target));
    if let Some((left, replayed)) = before {
        return Err(Refusal::Person(owed_before(&left.id, &replayed.durable)));
    }
    let Endpoints { cdc, tidb, pd } = plan.target.clone();
    let began = Began {
        schema: SCHEMA,
        operation: "upgrade".to_owned(),
        target: plan.to.clone().unwrap_or_else(Version::zero),
        cdc,
        tidb,
        pd,
        executor: plan.executor.as_ref().map(ToString::to_string).unwrap_or_default(),
        set: plan.set.clone(),
    };
    let title = format!("{} to {}", began.operation, began.target);
    Ok(Kept { base: base.clone(), id, writer, title, began, journal: None, early: Vec::new(), locks, beat_at: None })
}

/// Opens a rollout to go on with it.
pub(super) fn reopen(base: &Base, id: &RolloutId, clock: &dyn Clock) -> Result<(Kept, Replayed), Refusal> {
    let at = clock.now();
    let writer = here();
    let (journal, opened) = Journal::open::<Record>(base, id, at, &writer)?;
    if let Some(torn) = &opened.torn {
        warn(&format!("journal of {id}: {torn}"));
    }
    let replayed = Replayed::from_records(opened.records.into_iter().map(|entry| entry.record));
    let Some(began) = replayed.began.clone() else {
        return Err(Refusal::Person(format!(
            "rollout {id} ended before it had a plan: there is nothing to go on with"
        )));
    };
    if began.schema > SCHEMA {
        return Err(Refusal::Person(format!(
            "rollout {id} was written by a newer tiroll (schema {}; this one knows {SCHEMA}): nothing was read from it and nothing changed. Go on with that version",
            began.schema
        )));
    }
    if !is_open(&replayed.durable) {
        return Err(Refusal::Person(format!("rollout {id} is over and owes nothing: there is nothing to go on with")));
    }
    let servers = servers_of(&began);
    let locks = Locks::take(base, &claims(&servers), Holder::new(&writer, id, at))?;
    let title = opened.header.title;
    let kept = Kept {
        base: base.clone(),
        id: id.clone(),
        writer,
        title,
        began,
        journal: Some(journal),
        early: Vec::new(),
        locks,
        beat_at: None,
    };
    Ok((kept, replayed))
}

/// The servers of a rollout, as they were named.
pub(super) fn servers_of(began: &Began) -> Endpoints {
    Endpoints { cdc: began.cdc.clone(), tidb: began.tidb.clone(), pd: began.pd.clone() }
}

/// Those of the rollouts that can be gone on with and that nobody holds.
fn open_among(base: &Base, rollouts: Vec<Summary>) -> Vec<(Summary, Replayed)> {
    let mut found = Vec::new();
    for summary in rollouts.into_iter().filter(|summary| !summary.is_held) {
        // What cannot be read is shown by `history`; it must not keep other clusters from being upgraded.
        let Ok(opened) = read::<Record>(base, &summary.id) else { continue };
        let replayed = Replayed::from_records(opened.records.into_iter().map(|entry| entry.record));
        if is_open(&replayed.durable) {
            found.push((summary, replayed));
        }
    }
    found
}

/// Whether there is something to go on with: it did not come to its end, or it owes something.
pub(super) fn is_open(durable: &Durable) -> bool {
    match &durable.standing.life {
        Life::Reading | Life::Watching => false,
        Life::Going | Life::Aborted => true,
        Life::Ended(ending) => match ending.outcome {
            Outcome::Aborted => !durable.obligations.is_empty(),
            outcome => outcome.is_of_program() && !durable.plan.is_empty(),
        },
    }
}

fn owes_there(replayed: &Replayed, servers: &Endpoints) -> bool {
    let Some(began) = &replayed.began else { return false };
    let is_shared = |a: &[Address], b: &[Address]| a.iter().any(|at| b.contains(at));
    !replayed.durable.obligations.is_empty()
        && (is_shared(&began.cdc, &servers.cdc) || is_shared(&began.tidb, &servers.tidb))
}

fn owed_before(id: &RolloutId, durable: &Durable) -> String {
    let owed: Vec<_> = durable.obligations.iter().map(|obligation| obligation.view().what).collect();
    format!(
        "rollout {id} was left on this cluster and owes something: {}. Nothing was changed. Go on with it, or pay what it owes: tiroll resume {id}",
        owed.join("; ")
    )
}

/// The rollout that is meant: the one named, or the only one that is open.
pub(super) fn named_or_open(base: &Base, id: Option<&str>) -> Result<RolloutId, Refusal> {
    if let Some(id) = id {
        return Ok(RolloutId::parse(id)?);
    }
    let (held, free): (Vec<_>, Vec<_>) = list(base)?.into_iter().partition(|summary| summary.is_held);
    let open = open_among(base, free);
    match open.as_slice() {
        [] => Err(Refusal::Person(match held.first() {
            Some(held) => {
                let holder = held.holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string);
                format!(
                    "rollout {} is running: it is held by {holder}. It can be gone on with when that ends.",
                    held.id
                )
            }
            None => {
                "no rollout is open, so there is nothing to go on with. `tiroll history` lists all of them.".to_owned()
            }
        })),
        [(summary, _)] => Ok(summary.id.clone()),
        more => {
            let ids: Vec<_> = more.iter().map(|(summary, _)| summary.id.to_string()).collect();
            Err(Refusal::Person(format!("more than one rollout is open; name the one you mean: {}.", ids.join(", "))))
        }
    }
}

/// The running rollout that is meant: the one named, or the only one.
pub(super) fn running(base: &Base, id: Option<&str>) -> Result<Place, Refusal> {
    let named = id.map(RolloutId::parse).transpose()?;
    let (held, free): (Vec<_>, Vec<_>) = list(base)?.into_iter().partition(|summary| summary.is_held);
    let line = |summary: &Summary| {
        let title = summary.header.as_ref().map_or("?", |header| header.title.as_str());
        let by = summary.holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string);
        format!("\n  {}  {title}, by {by}", summary.id)
    };
    if let Some(id) = named {
        if held.iter().any(|summary| summary.id == id) {
            return Ok(Place::new(base, &id));
        }
        if !free.iter().any(|summary| summary.id == id) {
            let base = base.path().display();
            return Err(Refusal::Person(format!(
                "there is no rollout {id} in {base}; `tiroll history` lists all of them"
            )));
        }
        return Err(Refusal::Person(format!(
            "rollout {id} is not running. If it is open, this goes on with it: tiroll resume {id}"
        )));
    }
    match held.as_slice() {
        [only] => Ok(Place::new(base, &only.id)),
        [] => {
            let open: Vec<_> =
                open_among(base, free).iter().map(|(open, _)| format!("\n  tiroll resume {}", open.id)).collect();
            Err(Refusal::Person(match open.as_slice() {
                [] => "no rollout is running, and none is open".to_owned(),
                open => format!("no rollout is running. What is open can be gone on with:{}", open.concat()),
            }))
        }
        more => {
            let more: Vec<_> = more.iter().map(line).collect();
            Err(Refusal::Usage(format!("more than one rollout is running; name the one you mean:{}", more.concat())))
        }
    }
}

impl Kept {
    /// Where it lives.
    pub(super) fn place(&self) -> Place {
        Place::new(&self.base, &self.id)
    }

    /// How it was begun.
    pub(super) const fn began(&self) -> &Began {
        &self.began
    }
}

/// All rollouts begun from here, the latest first.
#[derive(Serialize)]
pub(super) struct History {
    rollouts: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    id: String,
    title: Option<String>,
    started: Option<String>,
    last: Option<String>,
    /// `open`, `over`, `running`, `damaged`.
    state: &'static str,
    /// How it ended, or why it cannot be read.
    note: String,
    owed: Vec<String>,
}

/// Reads every journal. One that is damaged is in the list as that.
pub(super) fn history(base: &Base) -> Result<History, Refusal> {
    let rollouts = list(base)?.into_iter().map(|summary| line_of(base, summary)).collect();
    Ok(History { rollouts })
}

fn line_of(base: &Base, summary: Summary) -> Line {
    let mut line = Line {
        id: summary.id.to_string(),
        title: summary.header.as_ref().map(|header| header.title.clone()),
        started: summary.header.as_ref().map(|header| header.started.to_string()),
        last: summary.last.map(|last| last.to_string()),
        state: "damaged",
        note: String::new(),
        owed: Vec::new(),
    };
    let opened = match read::<Record>(base, &summary.id) {
        Ok(opened) => opened,
        Err(error) => {
            line.note = three_parts(&error);
            return line;
        }
    };
    let durable = Replayed::from_records(opened.records.into_iter().map(|entry| entry.record)).durable;
    line.owed = durable.obligations.iter().map(|obligation| obligation.view().what).collect();
    line.state = match (summary.is_held, is_open(&durable)) {
        (true, _) => "running",
        (false, true) => "open",
        (false, false) => "over",
    };
    line.note = match (&durable.standing.life, summary.holder.filter(|_| summary.is_held)) {
        (_, Some(holder)) => format!("by {holder}"),
        (Life::Ended(ending), None) => ending.reason.clone(),
        (Life::Reading | Life::Watching, None) => {
            "the program ended before a plan stood; nothing was changed".to_owned()
        }
        (_, None) => format!("the program ended in the middle of it; to go on: tiroll resume {}", summary.id),
    };
    line
}

impl History {
    /// The list for people.
    pub(super) fn text(&self) -> String {
        if self.rollouts.is_empty() {
            return "no rollout was begun from here".to_owned();
        }
        let mut text = String::new();
        for line in &self.rollouts {
            let (title, started) = (line.title.as_deref().unwrap_or("?"), line.started.as_deref().unwrap_or("?"));
            text += &[&line.id, "  ", line.state, "  ", title, ", begun ", started, "\n"].concat();
            for note in std::iter::once(&line.note).filter(|note| !note.is_empty()) {
                text += &["    ", note, "\n"].concat();
            }
            for owed in &line.owed {
                text += &["    owed: ", owed, "\n"].concat();
            }
        }
        text
    }
}
