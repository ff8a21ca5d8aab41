//! What the control server and faults do to processes: stop, start, restart, kill.

use std::fmt;

use serde::Serialize;

use crate::sim::scenario::VersionText;

use super::{Event, Stop, World};

/// A process by its kind and number from 0, whatever runs there at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProcessRef {
    /// A capture of any `TiCDC` cluster.
    Capture(usize),
    /// A `TiDB` server.
    Tidb(usize),
    /// A PD server.
    Pd(usize),
}

/// What kind of process was acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Component {
    /// A capture.
    Ticdc,
    /// A `TiDB` server.
    Tidb,
    /// A PD server.
    Pd,
}

/// An action that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Virtual time at which the processes are as asked for.
    pub done_at_ms: u64,
}

/// Why an action is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// No process has this address or name.
    #[error("no process listens at {0}")]
    Unknown(String),
    /// It is down already.
    #[error("the process at {0} is not running")]
    NotRunning(String),
    /// It is up already.
    #[error("the process at {0} is already running")]
    AlreadyRunning(String),
    /// Another action on it is not finished.
    #[error("another action on the process at {0} is under way")]
    UnderWay(String),
    /// The version does not parse.
    #[error("{0}")]
    Version(String),
}

/// What a fault has in store for the next start of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Overrides {
    pub(super) no_return: bool,
    pub(super) version: Option<String>,
    pub(super) slow_ms: u64,
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ticdc => "ticdc",
            Self::Tidb => "tidb",
            Self::Pd => "pd",
        })
    }
}

impl World {
    /// The process that has this address (for `TiDB` the status or the SQL one) or this name.
    pub fn find(&self, address_or_name: &str) -> Option<ProcessRef> {
        let is = |name: &str, address: &str| name == address_or_name || address == address_or_name;
        let capture = self.slots.iter().position(|slot| is(&slot.name, &slot.address));
        let tidb = || {
            self.tidb
                .servers
                .iter()
                .position(|server| is(&server.name, &server.status) || server.sql == address_or_name)
        };
        let pd = || self.pd.iter().position(|server| is(&server.name, &server.address));
        capture.map(ProcessRef::Capture).or_else(|| tidb().map(ProcessRef::Tidb)).or_else(|| pd().map(ProcessRef::Pd))
    }

    /// Kind and address of a process (for `TiDB` the status address).
    pub fn component(&self, process: ProcessRef) -> (Component, String) {
        match process {
            ProcessRef::Capture(slot) => (Component::Ticdc, self.slots[slot].address.clone()),
            ProcessRef::Tidb(server) => (Component::Tidb, self.tidb.servers[server].status.clone()),
            ProcessRef::Pd(server) => (Component::Pd, self.pd[server].address.clone()),
        }
    }

    /// Whether there is a process, answering or not.
    pub fn is_running(&self, process: ProcessRef) -> bool {
        match process {
            ProcessRef::Capture(slot) => self.slots[slot].current.is_some(),
            ProcessRef::Tidb(server) => self.tidb.servers[server].current.is_some(),
            ProcessRef::Pd(server) => self.pd[server].running,
        }
    }

    /// Whether connections to it are accepted.
    pub fn is_listening(&self, process: ProcessRef) -> bool {
        match process {
            ProcessRef::Capture(slot) => {
                let it = &self.slots[slot];
                it.refuse_until.is_none_or(|until| until <= self.now)
                    && it.current.is_some_and(|current| self.instances[current].listening)
            }
            ProcessRef::Tidb(server) => self.tidb_listens(server, self.now),
            ProcessRef::Pd(server) => {
                let it = &self.pd[server];
                it.running && it.refuse_until.is_none_or(|until| until <= self.now)
            }
        }
    }

    /// Which process listens, as a number that is another one for each that was started; `None` if none does.
    pub fn listener(&self, process: ProcessRef) -> Option<usize> {
        if !self.is_listening(process) {
            return None;
        }
        match process {
            ProcessRef::Capture(slot) => self.slots[slot].current,
            ProcessRef::Tidb(server) => self.tidb.servers[server].current,
            ProcessRef::Pd(server) => Some(self.pd[server].starts),
        }
    }

    /// Every process there is a place for.
    pub fn processes(&self) -> Vec<ProcessRef> {
        let captures = (0..self.slots.len()).map(ProcessRef::Capture);
        let tidb = (0..self.tidb.servers.len()).map(ProcessRef::Tidb);
        captures.chain(tidb).chain((0..self.pd.len()).map(ProcessRef::Pd)).collect()
    }

    fn named(&self, address: &str) -> Result<ProcessRef, ActionError> {
        let process = self.find(address).ok_or_else(|| ActionError::Unknown(address.to_owned()))?;
        if self.restarting.contains(&process) {
            return Err(ActionError::UnderWay(address.to_owned()));
        }
        Ok(process)
    }

    /// A process that runs and was not told to end before.
    fn staying(&self, address: &str) -> Result<ProcessRef, ActionError> {
        let process = self.named(address)?;
        if !self.is_running(process) {
            return Err(ActionError::NotRunning(address.to_owned()));
        }
        if self.ending.contains(&process) {
            return Err(ActionError::UnderWay(address.to_owned()));
        }
        Ok(process)
    }

    /// Tells a process to end by itself (SIGTERM). `forced` is what the client says of it, for the referee.
    pub fn stop(&mut self, address: &str, forced: bool) -> Result<Planned, ActionError> {
        let process = self.staying(address)?;
        Ok(Planned { done_at_ms: self.now + self.ask_to_stop(process, forced) })
    }

    /// Ends a process without a word (kill -9).
    pub fn kill(&mut self, address: &str, forced: bool) -> Result<Planned, ActionError> {
        let process = self.named(address)?;
        if !self.is_running(process) {
            return Err(ActionError::NotRunning(address.to_owned()));
        }
        self.note_stop(process, forced);
        self.kill_process(process);
        Ok(Planned { done_at_ms: self.now })
    }

    /// Starts a process where none runs, of another version if one is given.
    pub fn start(&mut self, address: &str, version: Option<&str>) -> Result<Planned, ActionError> {
        let process = self.named(address)?;
        if self.is_running(process) {
            return Err(ActionError::AlreadyRunning(address.to_owned()));
        }
        self.set_version(process, version)?;
        self.note_mutation();
        self.spawn(process);
        Ok(Planned { done_at_ms: self.now })
    }

    /// Stops a process and starts another one in its place, of another version if one is given: an upgrade.
    pub fn restart(&mut self, address: &str, version: Option<&str>, forced: bool) -> Result<Planned, ActionError> {
        let process = self.staying(address)?;
        self.set_version(process, version)?;
        let gone_in = self.ask_to_stop(process, forced);
        Ok(Planned { done_at_ms: self.now + self.spawn_once_gone(process, gone_in) })
    }

    /// Has the next process come up after the one before is gone; in how many virtual milliseconds it begins.
    fn spawn_once_gone(&mut self, process: ProcessRef, gone_in: u64) -> u64 {
        let in_ms = gone_in + self.rng.range(self.rates.restart_ms.min, self.rates.restart_ms.max);
        self.restarting.insert(process);
        self.plan(in_ms, Event::Spawn(process));
        in_ms
    }

    /// A restart that is none of the rollout's: of what runs there, or of nothing.
    pub(super) fn restart_by_another(&mut self, process: ProcessRef, version: Option<VersionText>) {
        if self.restarting.contains(&process) {
            return;
        }
        if let Some(version) = version {
            self.install(process, version.to_string());
        }
        let gone_in = if self.is_running(process) { self.stop_process(process) } else { 0 };
        self.spawn_once_gone(process, gone_in);
    }

    fn set_version(&mut self, process: ProcessRef, version: Option<&str>) -> Result<(), ActionError> {
        let Some(version) = version else {
            return Ok(());
        };
        let version = VersionText::parse(version).map_err(ActionError::Version)?.to_string();
        self.install(process, version);
        Ok(())
    }

    /// The version that its next start runs.
    fn install(&mut self, process: ProcessRef, version: String) {
        match process {
            ProcessRef::Capture(slot) => self.slots[slot].version = version,
            ProcessRef::Tidb(server) => self.tidb.servers[server].version = version,
            ProcessRef::Pd(server) => self.pd[server].next_version = version,
        }
    }

    pub(super) fn spawn(&mut self, process: ProcessRef) {
        self.restarting.remove(&process);
        if self.is_running(process) {
            return;
        }
        match process {
            ProcessRef::Capture(slot) => self.spawn_capture(slot),
            ProcessRef::Tidb(server) => self.spawn_tidb(server),
            ProcessRef::Pd(server) => self.spawn_pd(server),
        }
        self.settled();
        self.trigger_restart(process);
    }

    fn ask_to_stop(&mut self, process: ProcessRef, forced: bool) -> u64 {
        self.note_stop(process, forced);
        self.ending.insert(process);
        self.stop_process(process)
    }

    /// Lets a running process end; says in how many milliseconds it is gone.
    pub(super) fn stop_process(&mut self, process: ProcessRef) -> u64 {
        let in_ms = match process {
            ProcessRef::Capture(slot) => match self.slots[slot].current {
                Some(instance) => self.stop_capture(instance),
                None => 0,
            },
            ProcessRef::Tidb(server) => self.stop_tidb(server),
            ProcessRef::Pd(server) => self.stop_pd(server),
        };
        self.trigger_stop(process);
        in_ms
    }

    pub(super) fn kill_process(&mut self, process: ProcessRef) {
        match process {
            ProcessRef::Capture(slot) => {
                if let Some(instance) = self.slots[slot].current {
                    self.kill_capture(instance);
                }
            }
            ProcessRef::Tidb(server) => self.kill_tidb(server),
            ProcessRef::Pd(server) => {
                self.stop_pd(server);
            }
        }
        self.trigger_stop(process);
    }

    /// Writes down what truly is stopped, and as what.
    fn note_stop(&mut self, process: ProcessRef, forced: bool) {
        self.note_mutation();
        let (component, address) = self.component(process);
        let (tables, was_owner, is_new, drained_from) = match process {
            ProcessRef::Capture(slot) => {
                let Some(instance) = self.slots[slot].current else {
                    return;
                };
                let carried: usize = self.tables_by_feed(instance).into_iter().sum();
                let drained = self.instances[instance].drained_from.clone().unwrap_or_default();
                (carried, self.is_owner(instance), self.is_new(instance), drained)
            }
            ProcessRef::Tidb(_) => (0, false, false, Vec::new()),
            // A PD server is none of the rollout's stops.
            ProcessRef::Pd(_) => return,
        };
        self.add_minimum(component, is_new, &drained_from);
        self.referee.stops.push(Stop { component, address, tables, was_owner, forced, at_ms: self.now });
    }

    pub(super) fn overrides_of(&mut self, process: ProcessRef) -> &mut Overrides {
        self.overrides.entry(process).or_default()
    }

    pub(super) fn take_overrides(&mut self, process: ProcessRef) -> Overrides {
        self.overrides.remove(&process).unwrap_or_default()
    }
}
