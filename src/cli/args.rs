//! What may be said on the command line. Types only; what they do is in [`super`].

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cluster::{Address, Version};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "tiroll",
    version,
    about = "Takes a TiDB cluster with TiCDC through a rolling upgrade, one phase at a time",
    after_help = "Try it without a cluster:  tiroll demo\n\n\
        Exit codes: 0 done · 1 error, or something that was asked for could not be read · 2 usage ·\n\
        3 paused, waiting for a person · 4 aborted · 5 timed out · 130 interrupted"
)]
pub struct Cli {
    /// What to do; without it tiroll says what it can do.
    #[command(subcommand)]
    pub command: Option<Verb>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Step through an upgrade of a simulated cluster that ships inside this program
    Demo(Demo),
    /// Serve a simulated cluster on loopback ports, for rehearsals and for other programs
    Sim(Sim),
    /// Read a cluster once and print it
    Status(Status),
    /// Watch a cluster on screen; changes nothing
    Watch(Watch),
    /// Upgrade a cluster, one phase at a time
    Upgrade(Upgrade),
    /// Go on with a rollout after the program ended in the middle of it
    Resume(Resume),
    /// Open the screen of a rollout that another program runs
    Attach(Attach),
    /// Pause a rollout that another program runs
    Pause(Pause),
    /// Abort a rollout that another program runs
    Abort(Abort),
    /// List the rollouts that were begun from here, and what they owe
    History(History),
}

/// The addresses of a cluster.
#[derive(Clone, Debug, Args)]
pub struct Cluster {
    /// Addresses of all TiCDC captures, as host:port
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', required = true)]
    pub cdc: Vec<Address>,
    /// Status addresses of all TiDB servers, as host:port (the status port is 10080 unless configured)
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',')]
    pub tidb: Vec<Address>,
    /// Client addresses of PD, as host:port
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',')]
    pub pd: Vec<Address>,
}

/// How the screen looks.
#[derive(Clone, Copy, Debug, Args)]
pub struct Look {
    /// Draw without colour; `NO_COLOR` in the environment asks for it too
    #[arg(long)]
    pub no_color: bool,
    /// Draw borders and marks in ASCII
    #[arg(long)]
    pub ascii: bool,
}

/// `tiroll demo`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tiroll demo                       press s to run a phase, ? for help\n  \
    tiroll demo --scenario busy       20 captures, 10,000 tables\n  \
    tiroll demo --scenario bad-night  ten captures, and one thing after another goes wrong\n  \
    tiroll demo --headless            the same as plain text, without a terminal")]
pub struct Demo {
    /// A built-in scenario (small, busy, bad-night, leftover, new-arch, new-arch-busy, mixed) or a scenario file
    #[arg(long, default_value = "small", value_name = "NAME|FILE")]
    pub scenario: String,
    /// How many times faster than life the simulated cluster runs
    #[arg(long, default_value_t = 1.0, value_parser = speed, value_name = "X")]
    pub speed: f64,
    /// Run straight through as plain text instead of opening the screen
    #[arg(long)]
    pub headless: bool,
    /// How headless output is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// The screen.
    #[command(flatten)]
    pub look: Look,
}

/// `tiroll sim`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tiroll sim --scenario small --speed 20\n\n\
    As soon as every process listens, the addresses and the control URL are printed; it runs until stopped.")]
pub struct Sim {
    /// A built-in scenario (small, busy, bad-night, leftover, new-arch, new-arch-busy, mixed) or a scenario file
    #[arg(long, value_name = "NAME|FILE")]
    pub scenario: String,
    /// How many times faster than life the simulated cluster runs
    #[arg(long, default_value_t = 1.0, value_parser = speed, value_name = "X")]
    pub speed: f64,
    /// How the addresses are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// `tiroll status`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tiroll status --cdc 10.0.1.11:8300,10.0.1.12:8300 --tidb 10.0.1.1:10080\n\n\
    What could not be read is shown as unknown, never as empty, and the exit code is then 1.")]
pub struct Status {
    /// The cluster.
    #[command(flatten)]
    pub cluster: Cluster,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `tiroll watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The cluster.
    #[command(flatten)]
    pub cluster: Cluster,
    /// The screen.
    #[command(flatten)]
    pub look: Look,
}

/// `tiroll upgrade`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tiroll upgrade --cdc 10.0.1.11:8300,10.0.1.12:8300 --to v8.5.4 --executor manual --dry-run\n  \
    tiroll upgrade --cdc ... --tidb 10.0.1.1:10080 --to v8.5.4 --executor manual\n\n\
    Nothing that still carries tables is restarted. A timeout is a question for a person, never a licence to go on.")]
pub struct Upgrade {
    /// The cluster.
    #[command(flatten)]
    pub cluster: Cluster,
    /// The version every server shall have
    #[arg(long, value_name = "VERSION")]
    pub to: Version,
    /// How processes are restarted: `manual` (you do it, tiroll notices) or `sim=URL` (a simulator's control URL)
    #[arg(long, value_name = "manual|sim=URL", value_parser = executor)]
    pub executor: ExecutorChoice,
    /// Run without a screen, phase after phase; needs --yes
    #[arg(long)]
    pub headless: bool,
    /// How headless output (and the plan of --dry-run) is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Headless: yes, run the plan (never implies force, skip or waive)
    #[arg(long)]
    pub yes: bool,
    /// End after this long, as on an interrupt, with exit code 5
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Change one of the numbers of the rollout, for example `--set drain_deadline=20m`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the plan and end; nothing is changed
    #[arg(long)]
    pub dry_run: bool,
    /// Who is called.
    #[command(flatten)]
    pub on_wait: OnWait,
    /// The journal.
    #[command(flatten)]
    pub state: StateDir,
    /// The screen.
    #[command(flatten)]
    pub look: Look,
}

/// `tiroll resume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tiroll resume                                   the one rollout that is open\n  \
    tiroll resume 20261201-041055-7f3a --headless --yes\n\n\
    The cluster is read first; nothing is sent before a person (or --yes) has chosen. What was sent and may not have\n\
    arrived is named, and settled by what the servers show; --yes alone does not choose there (exit code 3).")]
pub struct Resume {
    /// Which rollout (`tiroll history` lists them); may be left out where only one is open
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// How processes are restarted from now on, if otherwise than before
    #[arg(long, value_name = "manual|sim=URL", value_parser = executor)]
    pub executor: Option<ExecutorChoice>,
    /// Run without a screen, phase after phase; needs --yes
    #[arg(long)]
    pub headless: bool,
    /// How headless output is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Headless: yes, go on (never implies force, skip or waive)
    #[arg(long)]
    pub yes: bool,
    /// End after this long, as on an interrupt, with exit code 5
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Change one of the numbers of the rollout, beside those set when it began
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Who is called.
    #[command(flatten)]
    pub on_wait: OnWait,
    /// The journal.
    #[command(flatten)]
    pub state: StateDir,
    /// The screen.
    #[command(flatten)]
    pub look: Look,
}

/// `tiroll attach`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tiroll attach                                   the one rollout that is running\n  \
    tiroll attach 20261201-041055-7f3a --read-only\n\n\
    For the user who began it, on the same machine. Leaving this screen leaves the rollout running. Exit codes: 0 left, or\n\
    the rollout ended · 1 its program is gone, or could not be reached · 2 name the one you mean · 3 nothing runs."
)]
pub struct Attach {
    /// Which rollout (`tiroll history` lists them); may be left out where only one is running
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Look only: every key that would change something is refused
    #[arg(long)]
    pub read_only: bool,
    /// The journal.
    #[command(flatten)]
    pub state: StateDir,
    /// The screen.
    #[command(flatten)]
    pub look: Look,
}

/// `tiroll pause`.
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing new starts; what the servers are doing goes on. The program that runs the rollout stays, a headless\n\
    one too; `tiroll attach` continues. Exit codes: 0 paused · 1 its program could not be reached · 2 name the one you\n\
    mean · 3 refused, or nothing runs."
)]
pub struct Pause {
    /// Which rollout (`tiroll history` lists them); may be left out where only one is running
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// The journal.
    #[command(flatten)]
    pub state: StateDir,
}

/// `tiroll abort`.
#[derive(Debug, Args)]
#[command(
    after_help = "Says what that leaves behind and how it is paid; pays nothing itself. A headless rollout then ends with exit\n\
    code 4, unless somebody is attached. Exit codes: 0 aborted · 1 its program could not be reached · 2 name the one you\n\
    mean · 3 refused, or nothing runs."
)]
pub struct Abort {
    /// Which rollout (`tiroll history` lists them); may be left out where only one is running
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// The node that is being restarted now and may stay down: must be named to abort in the middle of its restart
    #[arg(long, value_name = "HOST:PORT")]
    pub restarting: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// The journal.
    #[command(flatten)]
    pub state: StateDir,
}

/// The program that calls a person.
#[derive(Debug, Args)]
pub struct OnWait {
    /// A program to run when a person is needed, once for each question; `;` ends its arguments. No shell reads them. It
    /// finds `TIROLL_ROLLOUT`, `TIROLL_REASON`, `TIROLL_TARGET` and `TIROLL_MESSAGE` in its environment, and has 30 s
    #[arg(long, value_name = "PROGRAM [ARG]", num_args = 1.., value_terminator = ";", allow_hyphen_values = true)]
    pub on_wait: Vec<String>,
}

/// `tiroll history`.
#[derive(Debug, Args)]
pub struct History {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// The journal.
    #[command(flatten)]
    pub state: StateDir,
}

/// Where journals live.
#[derive(Debug, Args)]
pub struct StateDir {
    /// Where rollouts are recorded, instead of `$XDG_STATE_HOME/tiroll` (or `~/.local/state/tiroll`)
    #[arg(long, value_name = "DIR", env = "TIROLL_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
}

/// How output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines for people
    Text,
    /// One JSON value a line
    Json,
}

/// How processes are restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorChoice {
    /// A person does it.
    Manual,
    /// The simulator does it; this is its control URL.
    Sim(String),
}

impl std::fmt::Display for ExecutorChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Manual => f.write_str("manual"),
            Self::Sim(control) => write!(f, "sim={control}"),
        }
    }
}

pub(super) fn executor(text: &str) -> Result<ExecutorChoice, String> {
    match text.split_once('=') {
        None if text == "manual" => Ok(ExecutorChoice::Manual),
        Some(("sim", url)) if url.starts_with("http://") => {
            Ok(ExecutorChoice::Sim(url.trim_end_matches('/').to_owned()))
        }
        Some(("sim", _)) => Err("expected sim=URL with the control URL that `tiroll sim` printed".to_owned()),
        _ => Err("expected `manual` or `sim=URL`".to_owned()),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("expected a number above 0, for example 20".to_owned()),
    }
}

/// `10s`, `2m`, `1h 30m`: durations as people write them.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let why = || "expected a duration, for example 90s or 10m".to_owned();
    let span: jiff::SignedDuration = text.parse().map_err(|_| why())?;
    Duration::try_from(span).map_err(|_| why())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_duration("soon").is_err());
        assert!(parse_duration("-5s").is_err());
        assert!(parse_duration("5").is_err());
    }

    #[test]
    fn an_executor_is_manual_or_a_simulator() {
        assert_eq!(executor("manual"), Ok(ExecutorChoice::Manual));
        assert_eq!(executor("sim=http://127.0.0.1:9/"), Ok(ExecutorChoice::Sim("http://127.0.0.1:9".to_owned())));
        for bad in ["", "sim", "sim=", "sim=ftp://x", "ssh"] {
            assert!(executor(bad).is_err(), "{bad}");
        }
    }
}
