//! A second person: the screen of a rollout that another program runs, and single commands to it.

use std::time::Duration;

use color_eyre::eyre::Result;
use serde_json::{Value, json};

use super::args::{Abort, Attach, Pause, StateDir};
use super::headless::owed_lines;
use super::keep::{self, Place, Refusal};
use super::output::{say, warn};
use super::screen::{self, Purpose};
use crate::driver::Started;
use crate::driver::link::{self, LinkError, Role};
use crate::rollout::command::{Command, Permission, Who};
use crate::rollout::event::SCHEMA;
use crate::rollout::view::{Mode, PhaseKind, PhaseState, View};
use crate::ui;

/// A rollout that has just begun may not listen yet: how often it is tried, and how long apart.
const TRIES: usize = 20;
const APART: Duration = Duration::from_millis(50);

/// `tiroll attach`.
pub(super) async fn attach(args: Attach) -> Result<u8> {
    if !ui::has_terminal() {
        warn("error: `tiroll attach` is a screen, and this is no terminal. `tiroll history` says what runs.");
        return Ok(2);
    }
    let role = if args.read_only { Role::Looks } else { Role::Steers };
    match join(&args.state, args.id.as_deref(), role).await {
        Ok((place, started)) => {
            let purpose = Purpose::Attached { id: place.id.to_string(), can_command: !args.read_only };
            screen::run(started, args.look, purpose, None, None).await
        }
        Err(refusal) => Ok(refused(&refusal)),
    }
}

/// `tiroll pause`.
pub(super) async fn pause(args: Pause) -> Result<u8> {
    let who = keep::who();
    match join(&args.state, args.id.as_deref(), Role::Tells).await {
        Ok((place, started)) => {
            let word = started.handle.command(&who, Command::Pause).await;
            Ok(report(&place, started, &who, Command::Pause, word, args.json).await)
        }
        Err(refusal) => Ok(refused(&refusal)),
    }
}

/// `tiroll abort`.
pub(super) async fn abort(args: Abort) -> Result<u8> {
    let who = keep::who();
    match join(&args.state, args.id.as_deref(), Role::Tells).await {
        Ok((place, started)) => {
            let may = may_abort(&started.handle.view().borrow(), &place, args.restarting.as_deref());
            let word = match may {
                Ok(()) => started.handle.command(&who, Command::Abort).await,
                Err(why) => Err(why),
            };
            Ok(report(&place, started, &who, Command::Abort, word, args.json).await)
        }
        Err(refusal) => Ok(refused(&refusal)),
    }
}

/// In the middle of a restart the node must be named, as on the screen.
fn may_abort(view: &View, place: &Place, named: Option<&str>) -> Permission {
    let is_restart = |kind, state| kind == PhaseKind::Restart && state == PhaseState::Running;
    match view.current().filter(|(_, phase)| is_restart(phase.kind, phase.state)) {
        Some((step, _)) if named != Some(step.target.as_str()) => Err(format!(
            "{at} is being restarted and may stay down. To abort all the same, name it: tiroll abort {} --restarting {at}",
            place.id,
            at = step.target,
        )),
        None if named.is_some() => Err("nothing is being restarted now; abort without --restarting".to_owned()),
        Some(_) | None => Ok(()),
    }
}

/// Finds the rollout that is meant, and attaches.
async fn join(state: &StateDir, id: Option<&str>, role: Role) -> Result<(Place, Started), Refusal> {
    let base = keep::base(state)?;
    let place = keep::running(&base, id)?;
    let (who, socket) = (keep::who(), place.socket());
    let mut tick = tokio::time::interval(APART);
    let mut tries = 0;
    loop {
        tick.tick().await;
        tries += 1;
        match link::attach(&socket, &who, role).await {
            Ok(started) => return Ok((place, started)),
            Err(LinkError::Nobody { .. }) if tries < TRIES => {}
            Err(error) => return Err(Refusal::Disk(format!("rollout {} cannot be attached to: {error}", place.id))),
        }
    }
}

/// Says what became of a command; the exit code.
async fn report(place: &Place, started: Started, who: &Who, command: Command, word: Permission, is_json: bool) -> u8 {
    // The answer comes after the view that shows what the command has done.
    let view = started.handle.view().borrow().clone();
    started.handle.stop();
    drop(started.task.await);
    if is_json {
        say(&document(place, &view, who, command, &word).to_string());
    }
    if let Err(why) = word {
        if !is_json {
            warn(&format!("{} refused: {why}", command.name()));
        }
        return 3;
    }
    if !is_json {
        for line in lines(place, &view, who, command) {
            say(&line);
        }
    }
    0
}

fn document(place: &Place, view: &View, who: &Who, command: Command, word: &Permission) -> Value {
    let at = view.current().filter(|(_, phase)| !phase.state.is_over());
    let mode = match &view.mode {
        Mode::Ended(_) => json!("ended"),
        mode => json!(mode),
    };
    let owed: Vec<_> = view
        .owed
        .iter()
        .map(|owed| json!({ "kind": owed.kind, "target": owed.target, "what": owed.what, "how": owed.how }))
        .collect();
    json!({
        "v": SCHEMA, "rollout": place.id, "command": command, "who": who.name, "taken": word.is_ok(), "reason": word.as_ref().err(),
        "mode": mode, "simulated": view.title.is_simulated, "owed": owed,
        "target": at.map(|(step, _)| &step.target), "phase": at.map(|(_, phase)| phase.kind.name()),
    })
}

fn lines(place: &Place, view: &View, who: &Who, command: Command) -> Vec<String> {
    let id = &place.id;
    let mark = if view.title.is_simulated { " (SIMULATED)" } else { "" };
    let mut lines = Vec::new();
    if command == Command::Pause {
        lines.push(format!("Paused rollout {id}{mark} as {}. Nothing new starts.", who.name));
        if let Some((step, phase)) = view.current().filter(|(_, phase)| phase.state == PhaseState::Running) {
            let what = format!("{} of {}", phase.kind.word(), step.target);
            lines.push(format!("What the servers are doing for the {what} goes on and stays visible."));
        }
        lines.push(format!("To go on: tiroll attach {id}, then c"));
    } else {
        lines.push(format!("Aborted rollout {id}{mark} as {}.", who.name));
        match (&view.mode, &view.question) {
            (Mode::Ended(ending), _) => lines.push(ending.reason.clone()),
            (_, Some(question)) => lines.push(question.means.clone()),
            (_, None) => {}
        }
    }
    lines.extend(owed_lines(&view.owed));
    if command == Command::Abort && !view.owed.is_empty() {
        lines
            .push(format!("To pay it with care: tiroll attach {id}, or tiroll resume {id} once its program has ended"));
    }
    lines
}

fn refused(refusal: &Refusal) -> u8 {
    warn(&format!("error: {}", refusal.text()));
    refusal.exit_code()
}
