//! The composition root: reads the command line, wires the rooms together, maps outcomes to exit codes.

pub mod args;
mod attach;
mod company;
mod connect;
mod headless;
mod keep;
mod on_wait;
mod output;
mod screen;
mod script;
mod signals;

use std::path::Path;

use clap::Parser;
use color_eyre::eyre::{Context, Result, eyre};

use crate::cluster::Version;
use crate::driver::clock::SystemClock;
use crate::sim;
use crate::sim::scenario::Scenario;
use crate::ui;
use args::{Cli, Demo, ExecutorChoice, Format, History, Resume, Sim, Status, Upgrade, Verb, Watch};
use company::Company;
use connect::{OnRecord, Plan, endpoints_of_sim};
use output::{say, warn};
use screen::Purpose;
use signals::Signals;

/// The version the demo upgrades to: the next patch after that of the built-in scenarios.
const DEMO_TARGET: &str = "v8.5.4";

/// Runs the program; its exit code (design section 9).
pub fn main() -> u8 {
    if let Err(error) = crate::crash::install(!screen::wants_no_colour(), None) {
        warn(&format!("the error hooks could not be installed: {error}"));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output with code 0, everything else is a usage error.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            let _ = error.print();
            return code;
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            warn(&format!("error: the async runtime did not start: {error}"));
            return 1;
        }
    };
    let code = runtime.block_on(async {
        match run(cli).await {
            Ok(code) => code,
            Err(error) => {
                warn(&format!("error: {error:#}"));
                1
            }
        }
    });
    // Pollers and a lost terminal's reader are not waited for.
    runtime.shutdown_background();
    code
}

async fn run(cli: Cli) -> Result<u8> {
    match cli.command {
        None => {
            introduce();
            Ok(0)
        }
        Some(Verb::Demo(demo)) => run_demo(demo).await,
        Some(Verb::Sim(sim)) => run_sim(sim).await,
        Some(Verb::Status(status)) => run_status(status).await,
        Some(Verb::Watch(watch)) => run_watch(watch).await,
        Some(Verb::Upgrade(upgrade)) => run_upgrade(upgrade).await,
        Some(Verb::Resume(resume)) => run_resume(resume).await,
        Some(Verb::Attach(args)) => attach::attach(args).await,
        Some(Verb::Pause(args)) => attach::pause(args).await,
        Some(Verb::Abort(args)) => attach::abort(args).await,
        Some(Verb::History(history)) => run_history(&history),
    }
}

fn introduce() {
    say("tiroll takes a TiDB cluster with TiCDC through a rolling upgrade, one phase at a time.");
    say("");
    say("  tiroll demo       step through an upgrade of a simulated cluster: nothing to set up");
    say("  tiroll status     read a cluster once");
    say("  tiroll watch      watch a cluster on screen");
    say("  tiroll upgrade    upgrade a cluster");
    say("  tiroll sim        serve a simulated cluster");
    say("");
    say("Start with the demo; `tiroll help COMMAND` explains the rest.");
}

/// A built-in scenario by name, or a file.
fn scenario(name: &str) -> Result<Scenario> {
    if let Some(scenario) = Scenario::builtin(name) {
        return Ok(scenario?);
    }
    if !Path::new(name).exists() {
        return Err(eyre!(
            "there is no scenario `{name}`: it is neither a built-in one ({}) nor a file",
            sim::scenario::builtin_names().join(", ")
        ));
    }
    let text = std::fs::read_to_string(name).wrap_err_with(|| format!("the scenario file {name} cannot be read"))?;
    Ok(Scenario::from_yaml(name, &text)?)
}

async fn start_sim(name: &str, speed: f64) -> Result<sim::Running> {
    let options = sim::Options { speed, ..sim::Options::default() };
    Ok(sim::start(scenario(name)?, options).await?)
}

async fn run_demo(demo: Demo) -> Result<u8> {
    if !ui::has_terminal() && !demo.headless {
        warn("the demo is a screen, and this is no terminal.");
        warn("For the same rollout as plain text: tiroll demo --headless");
        return Ok(2);
    }
    let running = start_sim(&demo.scenario, demo.speed).await?;
    let plan = Plan {
        target: endpoints_of_sim(&running)?,
        to: Some(Version::parse(DEMO_TARGET)?),
        executor: Some(ExecutorChoice::Sim(running.control.clone())),
        set: Vec::new(),
        is_auto: demo.headless,
        lingers: !demo.headless,
        speed: Some(demo.speed),
    };
    let started = plan.start(SystemClock::new(), OnRecord::default()).await?;
    if demo.headless {
        return Ok(headless::run(started, demo.format, None, false, None).await);
    }
    screen::run(started, demo.look, Purpose::Demo, None, None).await
}

async fn run_sim(args: Sim) -> Result<u8> {
    let running = start_sim(&args.scenario, args.speed).await?;
    say(&sim::announce(&running, args.format == Format::Json));
    let mut signals = Signals::new();
    signals.next().await;
    running.stop().await;
    Ok(0)
}

async fn run_status(args: Status) -> Result<u8> {
    let clock = SystemClock::new();
    let document = connect::read_status(&args.cluster, &clock).await?;
    if args.json {
        say(&script::document(&document)?);
    } else {
        say(document.render_text().trim_end());
    }
    Ok(u8::from(!document.is_complete()))
}

async fn run_watch(args: Watch) -> Result<u8> {
    if !ui::has_terminal() {
        warn("`tiroll watch` is a screen, and this is no terminal. `tiroll status` prints the cluster once.");
        return Ok(2);
    }
    let plan = Plan {
        target: (&args.cluster).into(),
        to: None,
        executor: None,
        set: Vec::new(),
        is_auto: false,
        lingers: true,
        speed: None,
    };
    let started = plan.start(SystemClock::new(), OnRecord::default()).await?;
    screen::run(started, args.look, Purpose::Watch, None, None).await
}

async fn run_upgrade(args: Upgrade) -> Result<u8> {
    if args.headless && !args.yes && !args.dry_run {
        warn("error: --headless runs the plan without asking, so it needs --yes.");
        warn("To see the plan first: the same command with --dry-run");
        return Ok(2);
    }
    if !ui::has_terminal() && !args.headless && !args.dry_run {
        warn("error: this is no terminal. Run it with --headless --yes, or look at the plan with --dry-run.");
        return Ok(2);
    }
    let plan = Plan {
        target: (&args.cluster).into(),
        to: Some(args.to),
        executor: Some(args.executor),
        set: args.set,
        is_auto: args.headless && !args.dry_run,
        lingers: !args.headless,
        speed: None,
    };
    if let Err(error) = plan.policy() {
        warn(&format!("error: {error}"));
        return Ok(2);
    }
    if args.dry_run {
        let started = plan.start(SystemClock::new(), OnRecord::default()).await?;
        return Ok(headless::dry_run(started, args.format).await);
    }
    let clock = SystemClock::new();
    let kept = match keep::base(&args.state).and_then(|base| keep::begin(&base, &plan, &clock)) {
        Ok(kept) => kept,
        Err(refusal) => return Ok(refuse(&refusal, args.headless && args.format == Format::Json, &clock)),
    };
    let place = kept.place();
    let record = OnRecord { keeper: Some(Box::new(kept)), resumed: None };
    let started = plan.start(clock, record).await?;
    let company = Some(Company::invite(&started, &place, args.on_wait.on_wait, false));
    if args.headless {
        return Ok(headless::run(started, args.format, args.timeout, false, company).await);
    }
    screen::run(started, args.look, Purpose::Rollout, args.timeout, company).await
}

async fn run_resume(args: Resume) -> Result<u8> {
    if args.headless != args.yes || (!ui::has_terminal() && !args.headless) {
        warn("error: without a screen, `tiroll resume` needs both --headless and --yes.");
        return Ok(2);
    }
    let clock = SystemClock::new();
    let is_json = args.headless && args.format == Format::Json;
    let opened = keep::base(&args.state).and_then(|base| {
        let id = keep::named_or_open(&base, args.id.as_deref())?;
        keep::reopen(&base, &id, &clock)
    });
    let (kept, replayed) = match opened {
        Ok(opened) => opened,
        Err(refusal) => return Ok(refuse(&refusal, is_json, &clock)),
    };
    let began = kept.began().clone();
    let executor = match args.executor {
        Some(executor) => executor,
        None => args::executor(&began.executor)
            .map_err(|why| eyre!("the journal names the executor `{}`: {why}", began.executor))?,
    };
    let plan = Plan {
        target: keep::servers_of(&began),
        to: Some(began.target.clone()),
        executor: Some(executor),
        set: began.set.iter().cloned().chain(args.set).collect(),
        is_auto: args.headless,
        lingers: !args.headless,
        speed: None,
    };
    if let Err(error) = plan.policy() {
        warn(&format!("error: {error}"));
        return Ok(2);
    }
    let place = kept.place();
    let record = OnRecord { keeper: Some(Box::new(kept)), resumed: Some(replayed.durable) };
    let started = plan.start(clock, record).await?;
    let company = Some(Company::invite(&started, &place, args.on_wait.on_wait, args.headless));
    if args.headless {
        return Ok(headless::run(started, args.format, args.timeout, true, company).await);
    }
    screen::run(started, args.look, Purpose::Rollout, args.timeout, company).await
}

fn run_history(args: &History) -> Result<u8> {
    match keep::base(&args.state).and_then(|base| keep::history(&base)) {
        Ok(history) if args.json => say(&script::document(&history)?),
        Ok(history) => say(history.text().trim_end()),
        Err(refusal) => {
            warn(&format!("error: {}", refusal.text()));
            return Ok(1);
        }
    }
    Ok(0)
}

/// Says why a rollout is not begun or gone on with; the exit code.
fn refuse(refusal: &keep::Refusal, is_json: bool, clock: &SystemClock) -> u8 {
    if is_json {
        say(&headless::refusal(refusal.text(), refusal.exit_code(), clock));
    } else {
        warn(&format!("error: {}", refusal.text()));
    }
    refusal.exit_code()
}
