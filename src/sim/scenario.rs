//! Scenario files: what a simulated cluster is made of, at which pace it works, and what goes wrong in it.
//!
//! The built-in files under `assets/scenarios` are the documentation of the format. A file is read strictly: an unknown
//! field, a value out of range or a name that does not exist is refused with its place and with what was expected.

use std::collections::BTreeMap;
use std::fmt;

use semver::Version;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

mod check;
mod fault;
mod text;

pub use fault::{Answer, ChangefeedFault, Effect, Fault, LagFault, Process, Restart, Stuck, Trigger, Until};

/// A scenario file that cannot be used: where, why, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ScenarioError {
    /// Name of the file, or of the built-in scenario.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

/// A whole simulated cluster as a scenario file describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A short name for titles.
    pub name: String,
    /// One sentence for people who choose among scenarios.
    #[serde(default)]
    pub description: String,
    /// Which kind of `TiCDC` runs.
    #[serde(default)]
    pub architecture: Architecture,
    /// Same seed, same cluster, same course of events.
    #[serde(default = "one")]
    pub seed: u64,
    /// Databases with the tables in them.
    #[serde(default)]
    pub databases: Vec<Database>,
    /// `TiCDC` clusters; captures of different cluster ids know nothing of each other.
    pub clusters: Vec<Cluster>,
    /// The `TiDB` servers.
    pub tidb: Tidb,
    /// The PD servers.
    #[serde(default)]
    pub pd: Pd,
    /// How fast things go.
    #[serde(default)]
    pub rates: Rates,
    /// What goes wrong, and when.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// Which kind of `TiCDC` a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Architecture {
    /// The classic architecture: one owner schedules tables of all changefeeds.
    #[default]
    Classic,
    /// The new architecture: a coordinator places one maintainer for each changefeed, and that schedules its tables.
    New,
}

impl Architecture {
    /// The word for it in scenarios and in the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::New => "new",
        }
    }
}

impl<'de> Deserialize<'de> for Architecture {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let known = |text: &str| match text {
            "classic" => Ok(Self::Classic),
            "new" => Ok(Self::New),
            other => Err(format!("architecture `{other}` does not exist, expected `classic` or `new`")),
        };
        deserializer.deserialize_str(text::Text::new("`classic` or `new`", known))
    }
}

/// A version as servers say it: `v` and a semantic version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct VersionText(String);

impl VersionText {
    /// Reads a version such as `v8.5.4`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix('v').unwrap_or_default();
        match Version::parse(number) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err(format!("version `{text}` is not one, expected something like `v8.5.4`")),
        }
    }

    /// The text with its `v`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VersionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for VersionText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(text::Text::new("a version like `v8.5.4`", Self::parse))
    }
}

/// A database and its tables.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// Its name.
    pub name: String,
    /// Groups of tables in it.
    pub tables: Vec<Tables>,
}

/// A group of tables that are named alike: prefix and a number with three digits or more.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// What their names begin with.
    pub prefix: String,
    /// How many.
    pub count: usize,
}

/// One `TiCDC` cluster.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Its cluster id; `default` unless set.
    #[serde(default = "default_id")]
    pub id: String,
    /// The version its captures run.
    pub version: VersionText,
    /// How many captures. They are called `capture-1` and so on, counted through all clusters; the first one owns.
    pub captures: usize,
    /// Captures that run another version than the rest, by name.
    #[serde(default)]
    pub versions: BTreeMap<String, VersionText>,
    /// Captures that somebody drained and never restarted (liveness 1, in the new architecture 2, no tables), by name.
    #[serde(default)]
    pub drained: Vec<String>,
    /// Captures that were just started and hold no table yet, by name.
    #[serde(default)]
    pub empty: Vec<String>,
    /// Captures of a classic cluster that run the new architecture, by name. Each answers for itself, is in no list and
    /// waits until the last classic one has left (recorded/README 21).
    #[serde(default)]
    pub new_architecture: Vec<String>,
    /// Captures of the new architecture that run a build before drains, by name: while one of them lives, a drain is
    /// answered with 0 and drains nothing (contract section 3.2, step 5). Started again with another version, it is
    /// cured.
    #[serde(default)]
    pub legacy: Vec<String>,
    /// Whether the captures of the new architecture run a build in which drains are a fake: every tenth call is
    /// answered with 10, all others with 0, and nothing moves (contract section 3.2). It holds while the coordinator
    /// that answers runs the version it had at first.
    #[serde(default)]
    pub fake_drain: bool,
    /// Its changefeeds.
    #[serde(default)]
    pub changefeeds: Vec<Changefeed>,
}

/// One changefeed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changefeed {
    /// Its id.
    pub id: String,
    /// Its namespace; `default` unless set.
    #[serde(default = "default_id")]
    pub namespace: String,
    /// Databases whose tables it replicates.
    pub databases: Vec<String>,
    /// The state it is found in.
    #[serde(default)]
    pub state: FeedState,
    /// Where it sends changes to, as the servers show it.
    #[serde(default = "blackhole")]
    pub sink_uri: String,
}

/// State of a changefeed, in the words of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedState {
    /// Replicating.
    #[default]
    Normal,
    /// Replicating, with an error that is retried.
    Warning,
    /// Waiting for a retry.
    Pending,
    /// Given up after an error.
    Failed,
    /// Paused by a person.
    Stopped,
    /// Came to its target timestamp.
    Finished,
}

impl FeedState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Warning => "warning",
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Finished => "finished",
        }
    }

    /// Whether its tables are being replicated. Only these have a scheduler and processors.
    pub fn runs(self) -> bool {
        matches!(self, Self::Normal | Self::Warning)
    }
}

/// The `TiDB` servers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tidb {
    /// How many, called `tidb-1` and so on; the first one is the DDL owner.
    pub servers: usize,
    /// The version they run.
    pub version: VersionText,
    /// Servers that run another version, by name.
    #[serde(default)]
    pub versions: BTreeMap<String, VersionText>,
    /// Whether somebody left the cluster in the upgrading state.
    #[serde(default)]
    pub upgrading: bool,
    /// Statements that users send to change the schema.
    #[serde(default)]
    pub ddl: Vec<Ddl>,
}

/// A schema change that a user sends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ddl {
    /// When, in virtual milliseconds since the start.
    pub at_ms: u64,
    /// The database of the new table.
    pub database: String,
    /// The name of the new table.
    pub table: String,
}

/// The PD servers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pd {
    /// One version for each server, called `pd-1` and so on.
    #[serde(default)]
    pub versions: Vec<VersionText>,
}

/// A span of virtual milliseconds from which a duration is drawn, as `[least, most]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(text::Pair)
    }
}

/// How fast things go, in virtual milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// From the order to move a table until the other capture replicates it.
    pub move_ms: Span,
    /// From the order to place a table that nobody has until it is replicated.
    pub place_ms: Span,
    /// How many tables of one changefeed move at a time.
    pub concurrency: usize,
    /// From the end of a process until the next one is started in its place.
    pub restart_ms: Span,
    /// From a process's start until it listens.
    pub boot_ms: Span,
    /// From a capture listening until it is ready to answer.
    pub ready_ms: Span,
    /// From a capture being ready until a changefeed's scheduler has heard from it.
    pub registration_ms: Span,
    /// Nobody owns for this long after a resign.
    pub handover_ms: Span,
    /// How often tables are balanced, from when the owner took office; in the new architecture how long it takes after
    /// the members or a drain changed.
    pub balance_ms: u64,
    /// How long a new coordinator answers calls about changefeeds with 500 "not fully initialized". Nothing unless set:
    /// it was never recorded (contract section 11).
    pub bootstrap_ms: Span,
    /// How long a `TiDB` server answers 500 before it closes its listeners.
    pub tidb_graceful_wait_ms: u64,
    /// How long a `TiDB` process lives on after it closed its listeners.
    pub tidb_close_ms: u64,
}

impl Default for Rates {
    fn default() -> Self {
        let span = |min, max| Span { min, max };
        Self {
            move_ms: span(850, 950),
            place_ms: span(200, 600),
            concurrency: 10,
            restart_ms: span(1_000, 2_000),
            boot_ms: span(100, 150),
            ready_ms: span(100, 300),
            registration_ms: span(50, 300),
            handover_ms: span(50, 250),
            balance_ms: 60_000,
            bootstrap_ms: span(0, 0),
            tidb_graceful_wait_ms: 1_000,
            tidb_close_ms: 500,
        }
    }
}

const BUILTIN: [(&str, &str); 7] = [
    ("small", include_str!("../../assets/scenarios/small.yaml")),
    ("busy", include_str!("../../assets/scenarios/busy.yaml")),
    ("bad-night", include_str!("../../assets/scenarios/bad-night.yaml")),
    ("leftover", include_str!("../../assets/scenarios/leftover.yaml")),
    ("new-arch", include_str!("../../assets/scenarios/new-arch.yaml")),
    ("new-arch-busy", include_str!("../../assets/scenarios/new-arch-busy.yaml")),
    ("mixed", include_str!("../../assets/scenarios/mixed.yaml")),
];

/// Names of the scenarios that ship inside the binary.
pub fn builtin_names() -> Vec<&'static str> {
    BUILTIN.iter().map(|(name, _)| *name).collect()
}

impl Scenario {
    /// A scenario that ships inside the binary.
    pub fn builtin(name: &str) -> Option<Result<Self, ScenarioError>> {
        let (name, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
        Some(Self::from_yaml(&format!("{name}.yaml"), text))
    }

    /// Reads a scenario; `file_name` is only for the message of an error.
    pub fn from_yaml(file_name: &str, text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = serde_yaml::from_str(text).map_err(|error| {
            let place = error.location();
            let full = error.to_string();
            ScenarioError {
                file: file_name.to_owned(),
                line: place.as_ref().map_or(1, serde_yaml::Location::line),
                column: place.as_ref().map_or(1, serde_yaml::Location::column),
                message: without_place(&full),
            }
        })?;
        check::check(&scenario).map_err(|wrong| {
            let (line, column) = check::place_of(text, &wrong.value);
            ScenarioError { file: file_name.to_owned(), line, column, message: wrong.message }
        })?;
        Ok(scenario)
    }

    /// How many captures there are in all clusters.
    pub fn captures(&self) -> usize {
        self.clusters.iter().map(|cluster| cluster.captures).sum()
    }
}

/// The parser's message without its own ` at line … column …`, which is said once in front.
fn without_place(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(text, _)| text).to_owned()
}

fn one() -> u64 {
    1
}

fn default_id() -> String {
    "default".to_owned()
}

fn blackhole() -> String {
    "blackhole:".to_owned()
}
