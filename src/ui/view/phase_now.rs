//! What goes on right now: the drain, live, or whatever phase it is and what it waits for.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::cluster::units;
use crate::rollout::command::Command;
use crate::rollout::view::{DrainView, GroupView, Mode, PhaseKind, PhaseState, PhaseView, StepView};

use super::super::keymap::{self, Action};
use super::super::status;
use super::super::theme::Role;
use super::super::widgets::{bar, pane, text};
use super::Ctx;
use super::header::next;
use super::words::{about, fitted, part, short};

/// A count older than this is said to be so: the count comes about once a second.
const COUNT_OLD: std::time::Duration = std::time::Duration::from_secs(5);

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let phase = next(ctx.view);
    let is_drain = phase.is_none_or(|(_, phase)| phase.kind == PhaseKind::Drain && phase.state != PhaseState::Waiting);
    match (&ctx.view.drain, phase) {
        (Some(drain), _) if !drain.is_done || is_drain => draw_drain(buf, area, drain, ctx),
        (_, Some((step, phase))) => draw_phase(buf, area, step, phase, ctx),
        _ => draw_nothing(buf, area, ctx),
    }
}

fn draw_nothing(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let inner = ctx.frame(buf, area, vec![ctx.span("Now", Role::Strong)], None);
    let text = match ctx.view.mode {
        Mode::Reading => "The cluster is being read. Nothing is changed.",
        _ => "No phase is under way.",
    };
    write(buf, inner, ctx, &[(text.to_owned(), Role::Plain)]);
}

fn write(buf: &mut Buffer, inner: Rect, ctx: &Ctx<'_>, texts: &[(String, Role)]) {
    let width = usize::from(inner.width).saturating_sub(2);
    let lines = texts.iter().flat_map(|(text, role)| {
        text::wrap(text, width).into_iter().map(|line| Line::from(ctx.span(format!(" {line}"), *role)))
    });
    pane::lines(buf, inner, lines);
}

fn draw_phase(buf: &mut Buffer, area: Rect, step: &StepView, phase: &PhaseView, ctx: &Ctx<'_>) {
    let status = status::of_phase(phase.state);
    let is_waiting = phase.state == PhaseState::Waiting;
    let word = if is_waiting { "Next" } else { "Now" };
    let title = vec![
        ctx.span(format!("{word}: {} {}", phase.kind.word(), step.target), Role::Strong),
        ctx.span(format!(" {} {}", status.glyph, status.word), status.role),
    ];
    let inner = ctx.frame(buf, area, title, None);
    let mut texts = Vec::new();
    if !phase.note.is_empty() {
        texts.push((phase.note.clone(), Role::Strong));
    }
    let held = held(ctx, step, phase);
    let explained = (explained(phase.kind).to_owned(), Role::Plain);
    // Where room is short, what it holds up and the keys go before what it is.
    let last = if let Some(held) = held {
        texts.push((held, Role::Warn));
        Some(explained)
    } else {
        texts.push(explained);
        None
    };
    if is_waiting {
        let keys = [Command::Step, Command::Continue]
            .into_iter()
            .filter(|command| keymap::permission(Action::Tell(*command), ctx.live, ctx.state).is_ok());
        let keys: Vec<_> = keys
            .map(|command| {
                let what = if command == Command::Step { "runs it" } else { "runs on from here" };
                format!("{} {what}", keymap::key(Action::Tell(command)))
            })
            .collect();
        if !keys.is_empty() {
            texts.push((keys.join(" · "), Role::Key));
        }
    }
    texts.extend(last);
    write(buf, inner, ctx, &texts);
}

/// What a drained capture that waits for its restart holds up, and for how long: it is out of sight otherwise.
fn held(ctx: &Ctx<'_>, step: &StepView, phase: &PhaseView) -> Option<String> {
    let is_drained = ctx.view.drain.as_ref().is_some_and(|drain| drain.is_done && drain.address == step.target);
    if phase.kind != PhaseKind::Restart || !is_drained {
        return None;
    }
    if ctx.view.drain.as_ref().is_some_and(|drain| drain.is_lost) {
        let key = keymap::key(Action::Tell(Command::AskAgain));
        return Some(format!(
            "The coordinator changed: nothing in the cluster is placed until {key} asks for this drain again."
        ));
    }
    let owed = ctx.view.owed.iter().find(|owed| owed.kind == "restart" && owed.target == step.target)?;
    let since = units::clock(ctx.now.since(owed.since));
    let is_new = ctx.view.groups.iter().any(GroupView::is_new);
    let session = if is_new { ", and its drain is held open, so no other begins" } else { "" };
    Some(format!("Nothing is balanced until then ({since}){session}."))
}

/// What a phase does, for those who see it for the first time.
const fn explained(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Resign => "The owner hands its duty to another capture, so that it can be drained.",
        PhaseKind::Drain => "It gives its tables to the others, and takes none until it is restarted.",
        PhaseKind::Restart => "Proven empty once more, it is stopped, replaced and started.",
        PhaseKind::Verify => "The new process proves itself: new id, target version, listed, alive.",
        PhaseKind::Settle => "Every changefeed runs as before: checkpoint moving, lag small.",
        PhaseKind::HandOver => "PD and TiKV are upgraded with your cluster manager; this program does not touch them.",
        PhaseKind::EnterUpgrading => "TiDB enters the upgrading state: from then on user DDL hangs until it is left.",
        PhaseKind::LeaveUpgrading => "TiDB leaves the upgrading state: user DDL runs again.",
    }
}

fn draw_drain(buf: &mut Buffer, area: Rect, drain: &DrainView, ctx: &Ctx<'_>) {
    let mut title = vec![ctx.span(format!("Drain {}", drain.address), Role::Strong)];
    if drain.is_done {
        title.push(ctx.span(" ✔ empty", Role::Good));
    } else {
        title.push(ctx.span(format!(" ▶ for {}", units::clock(ctx.now.since(drain.started_at))), Role::Active));
    }
    let inner = ctx.frame(buf, area, title, None);
    // On a wide terminal the figures stay together, where one glance takes them all in.
    let width = usize::from(inner.width).min(100);
    let mut lines = vec![progress(ctx, drain, width), speed(ctx, drain, width)];
    lines.push(by_changefeed(ctx, drain, width));
    let waiting = drain.waiting_for.as_str();
    let note = ctx.view.current().map(|(_, phase)| phase.note.as_str()).unwrap_or_default();
    let why = if waiting.is_empty() { note } else { waiting };
    let work = work(ctx, drain, width);
    let has_work = work.is_some();
    if let Some(work) = work {
        lines.insert(1, work);
    }
    if !why.is_empty() {
        let at = match (has_work, inner.height < 3) {
            (true, true) => 1,
            (true, false) => 2,
            (false, true) => lines.len() - 1,
            (false, false) => lines.len(),
        };
        let why = format!("waits for: {why}");
        // Where there is room it is said in full, before speed and changefeeds.
        let room = width.saturating_sub(3);
        let said = if has_work && inner.height > 3 { text::wrap(&why, room) } else { vec![text::cut(&why, room)] };
        for (row, line) in said.into_iter().enumerate() {
            let line = if row == 0 { format!(" {line}") } else { format!("   {line}") };
            lines.insert(at + row, Line::from(ctx.span(line, Role::Strong)));
        }
    }
    pane::lines(buf, inner, lines);
}

fn progress(ctx: &Ctx<'_>, drain: &DrainView, width: usize) -> Line<'static> {
    let Some(count) = drain.count else {
        return Line::from(ctx.span(text::cut(" ? moved: no count worth showing yet", width), Role::Warn));
    };
    let moved = drain.baseline.saturating_sub(count);
    let percent = (moved * 100).checked_div(drain.baseline).unwrap_or(if drain.is_done { 100 } else { 0 });
    let tail = format!(" {} of {} moved {percent:>3}% ", units::grouped(moved), units::grouped(drain.baseline));
    let room = width.saturating_sub(text::width(&tail) + 1);
    let is_old = !drain.is_done && drain.counted_at.is_some_and(|at| ctx.now.since(at) > COUNT_OLD);
    let role = if is_old { Role::Dim } else { Role::Active };
    let filled = bar::bar(moved, drain.baseline.max(1), room);
    Line::from(vec![Span::raw(" "), ctx.span(filled.replace(' ', "·"), role), ctx.span(tail, Role::Strong)])
}

/// New architecture: the coordinator's own number, called what it is, beside the capture's own word.
fn work(ctx: &Ctx<'_>, drain: &DrainView, width: usize) -> Option<Line<'static>> {
    let work = drain.work?;
    let number = format!(" remaining work {}", units::grouped(work));
    let liveness = ctx.view.capture(&drain.capture).map(|capture| capture.liveness);
    let liveness = match liveness.and_then(|liveness| liveness.raw.zip(liveness.meaning)) {
        Some((raw, meaning)) => format!("liveness {raw}, {} ", meaning.word()),
        None => "liveness ? ".to_owned(),
    };
    let left = vec![
        part(ctx.span(number, Role::Plain), 0),
        part(ctx.span(" by the coordinator, no count of tables", Role::Dim), 2),
    ];
    Some(fitted(left, vec![part(ctx.span(liveness, Role::Strong), 1)], width))
}

fn speed(ctx: &Ctx<'_>, drain: &DrainView, width: usize) -> Line<'static> {
    let rate = drain.rate.map_or_else(|| "speed unknown".to_owned(), |rate| format!("{rate:.1} tables/s"));
    let rate = format!(" {rate}");
    let mut right = Vec::new();
    if let Some(age) = drain.counted_at.map(|at| ctx.now.since(at)).filter(|age| *age > COUNT_OLD && !drain.is_done) {
        right.push(part(ctx.span(format!("count {} old  ", short(age)), Role::Warn), 1));
    }
    if !drain.is_done && drain.count != Some(0) {
        let left =
            drain.remaining.map_or_else(|| "time left unknown".to_owned(), |left| format!("{} left", about(left)));
        right.push(part(ctx.span(format!("{left} "), Role::Strong), 0));
    }
    let taken: usize = right.iter().map(|part| text::width(&part.span.content)).sum();
    let room = width.saturating_sub(text::width(&rate) + taken + 4).min(40);
    let spark = if room < 3 { String::new() } else { bar::sparkline(&drain.history, room) };
    let left = vec![part(ctx.span(rate, Role::Plain), 0), part(ctx.span(format!("  {spark}"), Role::Active), 2)];
    fitted(left, right, width)
}

fn by_changefeed(ctx: &Ctx<'_>, drain: &DrainView, width: usize) -> Line<'static> {
    if drain.by_changefeed.is_empty() {
        let text = match (drain.is_done, drain.count) {
            (true, _) => "",
            (false, Some(0)) => " no table is left there",
            (false, _) => " still there: ?",
        };
        return Line::from(ctx.span(text, Role::Dim));
    }
    // Only as many as can be seen: there may be hundreds of changefeeds.
    let shown = drain.by_changefeed.iter().take(width / 4);
    let parts: Vec<_> = shown.map(|(id, count)| format!("{} {}", id.label(), units::grouped(*count))).collect();
    Line::from(ctx.span(text::cut(&format!(" still there: {}", parts.join(" · ")), width), Role::Plain))
}
