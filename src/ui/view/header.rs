//! Two rows: what this is about and the time; what is going on and how long it still takes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::cluster::units;
use crate::rollout::command::Command;
use crate::rollout::view::{Mode, PhaseState, View};

use super::super::keymap::{self, Action};
use super::super::state::Steering;
use super::super::status;
use super::super::theme::Role;
use super::super::widgets::{pane, text};
use super::Ctx;
use super::words::{about, fitted, part, wall};

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let columns = usize::from(area.width);
    pane::lines(buf, area, [title(ctx, columns), progress(ctx, columns)]);
}

fn title(ctx: &Ctx<'_>, columns: usize) -> ratatui::text::Line<'static> {
    let title = &ctx.view.title;
    let mut left = vec![part(ctx.span(" tiroll ", Role::Strong), 0)];
    let versions = match (&title.from, &title.to) {
        (Some(from), Some(to)) => format!(" {from} → {to}"),
        (None, Some(to)) => format!(" ? → {to}"),
        (Some(from), None) => format!(" {from}"),
        (None, None) => String::new(),
    };
    left.push(part(ctx.span(format!(" {}{versions} ", title.operation), Role::Plain), 1));
    if title.is_simulated {
        let speed =
            if (title.speed - 1.0).abs() < f64::EPSILON { String::new() } else { format!(" ×{}", title.speed) };
        left.push(part(ctx.span(" ", Role::Plain), 0));
        left.push(part(ctx.span(format!(" SIMULATED{speed} "), Role::Mark), 0));
    }
    if !title.executor.is_empty() && title.executor != "sim" {
        left.push(part(ctx.span(format!("  by {}", title.executor), Role::Dim), 3));
    }
    let standing = match (ctx.state.is_attached, ctx.state.steering) {
        (true, Steering::LooksOnly) => "  attached, looks only",
        (false, Steering::LooksOnly) => "  looks only",
        (true, _) => "  attached",
        (false, _) => "",
    };
    left.push(part(ctx.span(standing, Role::Dim), 2));
    let mut right = Vec::new();
    if ctx.state.steering == Steering::EngineGone && !matches!(ctx.view.mode, Mode::Ended(_)) {
        right.push(part(ctx.span(" STOPPED: nothing here changes any more ", Role::Mark), 0));
    }
    if let Some((_, at)) = ctx.state.frozen {
        right.push(part(
            ctx.span(format!(" DISPLAY FROZEN at {}, {} goes on ", wall(at), keymap::key(Action::Freeze)), Role::Mark),
            0,
        ));
        right.push(part(ctx.span("  ", Role::Plain), 0));
    }
    right.push(part(ctx.span(wall(ctx.state.now), Role::Strong), 0));
    right.push(part(ctx.span(" UTC ", Role::Dim), 4));
    fitted(left, right, columns)
}

/// The mode for a person, and whether it waits for one.
fn mode(view: &View) -> (String, Role) {
    let word = view.mode.word();
    match &view.mode {
        Mode::Reading => ("reading the cluster".to_owned(), Role::Active),
        Mode::Watching => ("watching".to_owned(), Role::Active),
        Mode::StepRunning | Mode::Running => (format!("{word} ▶ running"), Role::Active),
        Mode::Aborted if view.question.is_none() => (format!("{word} ▶ paying back"), Role::Active),
        Mode::Stepping | Mode::Paused => (format!("{word} ▮▮ waiting for you"), Role::Strong),
        Mode::Asking | Mode::Aborted => (format!("{word} ▮▮ waiting for you"), Role::Warn),
        Mode::Ended(ending) => {
            let status = status::of_outcome(ending.outcome);
            (format!("{word} {} {}", status.glyph, status.word), status.role)
        }
    }
}

fn progress(ctx: &Ctx<'_>, columns: usize) -> ratatui::text::Line<'static> {
    let view = ctx.view;
    let (word, role) = mode(view);
    let mut left = vec![part(ctx.span(format!(" {word}"), role), 0)];
    if let (Mode::Paused, Some((who, Command::Pause))) = (&view.mode, &ctx.state.last_said) {
        left.push(part(ctx.span(format!("  by {}", text::clean(&who.name)), Role::Plain), 2));
    }
    // After an abort nothing is next: what comes is for the person to say.
    let shown = match view.mode {
        Mode::Ended(_) => None,
        Mode::Aborted => next(view).filter(|(_, phase)| phase.state != PhaseState::Waiting),
        _ => next(view),
    };
    if let Some((step, phase)) = shown {
        let what = format!("{} {}", phase.kind.word(), step.target);
        let text = match (phase.state, phase.started_at) {
            (PhaseState::Waiting, _) => format!("  next: {what}"),
            (_, Some(since)) => format!("  {what} for {}", units::clock(ctx.now.since(since))),
            (_, None) => format!("  {what}"),
        };
        left.push(part(ctx.span(text, Role::Plain), 1));
    }
    let mut right = Vec::new();
    if let Some(started) = view.started_at {
        let until = view.ended_at.unwrap_or(if matches!(view.mode, Mode::Ended(_)) { view.at } else { ctx.now });
        right.push(part(ctx.span(format!("elapsed {}", units::clock(until.since(started))), Role::Plain), 3));
        if !matches!(view.mode, Mode::Ended(_) | Mode::Aborted) {
            let left_over =
                view.remaining.map_or_else(|| "time left unknown".to_owned(), |d| format!("{} left", about(d)));
            right.push(part(ctx.span(format!("  {left_over}"), Role::Plain), 2));
        }
        right.push(part(ctx.span(" ", Role::Plain), 0));
    }
    fitted(left, right, columns)
}

/// The phase under the cursor, or the next one to come.
pub(super) fn next(view: &View) -> Option<(&crate::rollout::view::StepView, &crate::rollout::view::PhaseView)> {
    let current = view.current().filter(|(_, phase)| !phase.state.is_over());
    current.or_else(|| {
        let all = view.plan.iter().flat_map(|step| step.phases.iter().map(move |phase| (step, phase)));
        all.into_iter().find(|(_, phase)| !phase.state.is_over())
    })
}
