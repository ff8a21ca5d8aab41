//! The plan as a tree: families of steps, steps, and the phases of the step that matters now.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::cluster::units;
use crate::rollout::view::{PhaseState, PhaseView, StepKind, StepView, View};

use super::super::select;
use super::super::state::{Pane, UiState};
use super::super::status;
use super::super::theme::Role;
use super::super::widgets::{pane, text, window};
use super::Ctx;

/// A line of the tree, as indices into the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// A family, from its first step to before its last.
    Family(usize, usize),
    Step(usize),
    Phase(usize, usize),
}

const fn family(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Capture => "TiCDC",
        StepKind::HandOver => "PD, TiKV",
        StepKind::EnterUpgrading | StepKind::Tidb | StepKind::LeaveUpgrading => "TiDB",
        StepKind::Recover => "recover",
    }
}

/// A step that is one thing with one name has no tree of its own.
const fn is_single(step: &StepView) -> bool {
    matches!(step.kind, StepKind::HandOver | StepKind::EnterUpgrading | StepKind::LeaveUpgrading)
}

/// Whether the phases of a step are shown.
type Unfolds<'a> = dyn Fn(usize, &StepView) -> bool + 'a;

fn rows(view: &View, unfolds: impl Fn(usize, &StepView) -> bool) -> Vec<Row> {
    let mut rows = Vec::with_capacity(view.plan.len() * 2);
    let mut at = 0;
    while let Some(first) = view.plan.get(at) {
        let name = family(first.kind);
        let end =
            view.plan.iter().skip(at).position(|step| family(step.kind) != name).map_or(view.plan.len(), |n| at + n);
        if end - at > 1 || !is_single(first) {
            rows.push(Row::Family(at, end));
        }
        for (index, step) in view.plan.iter().enumerate().take(end).skip(at) {
            rows.push(Row::Step(index));
            if !is_single(step) && unfolds(index, step) {
                rows.extend((0..step.phases.len()).map(|phase| Row::Phase(index, phase)));
            }
        }
        at = end;
    }
    rows
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let view = ctx.view;
    let (over, all) = view.progress();
    let title = if view.plan.is_empty() {
        vec![ctx.span("Plan", Role::Strong)]
    } else {
        vec![ctx.span("Plan", Role::Strong), ctx.span(format!(" {over} of {all} phases"), Role::Plain)]
    };
    let inner = ctx.frame(buf, area, title, Some(Pane::Plan));
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    if view.plan.is_empty() {
        let lines = text::wrap("The plan comes once the cluster has been read.", width.saturating_sub(1));
        pane::lines(buf, inner, lines.into_iter().map(|line| Line::from(ctx.span(format!(" {line}"), Role::Dim))));
        return;
    }
    let chosen = select::step_place(ctx.state, view);
    let matters = |index: usize, step: &StepView| {
        let is_held = step.phases.iter().any(|p| matches!(p.state, PhaseState::Asking | PhaseState::Running));
        index == chosen || is_held || view.cursor.is_some_and(|(step, _)| step == index)
    };
    // What is done folds first, then what is still to come; what goes on now never does.
    let levels: [&Unfolds<'_>; 3] =
        [&|_, _| true, &|index, step| matters(index, step) || !step.state().is_over(), &matters];
    let shown = levels.iter().map(|unfolds| rows(view, unfolds)).find(|rows| rows.len() <= height);
    let shown = shown.unwrap_or_else(|| rows(view, matters));
    let kept = kept_row(ctx.state, view, &shown, chosen);
    let visible = window::around(shown.len(), height, kept);
    let lines = shown.get(visible).unwrap_or_default().iter().map(|row| match *row {
        Row::Family(first, end) => family_line(ctx, first, end, width),
        Row::Step(index) => step_line(ctx, index, chosen, width),
        Row::Phase(step, phase) => phase_line(ctx, step, phase, width),
    });
    pane::lines(buf, inner, lines);
}

/// The row that must be on screen: the chosen step, or the phase of now.
fn kept_row(state: &UiState, view: &View, rows: &[Row], chosen: usize) -> usize {
    let phase = view.cursor.filter(|(step, _)| state.step.is_none() && *step == chosen);
    let exact = phase.and_then(|(step, phase)| rows.iter().position(|row| *row == Row::Phase(step, phase)));
    exact.or_else(|| rows.iter().position(|row| *row == Row::Step(chosen))).unwrap_or(0)
}

/// A line: what is left of the columns after the time goes to the name, then to the remark.
fn line(
    ctx: &Ctx<'_>,
    indent: usize,
    head: (&str, Role),
    name: (&str, Role),
    note: &str,
    time: &str,
    width: usize,
) -> Vec<Span<'static>> {
    let time_width = if time.is_empty() { 0 } else { text::width(time) + 2 };
    let room = width.saturating_sub(1 + indent + 2 + time_width);
    let shown = text::cut_middle(name.0, room);
    let rest = room.saturating_sub(text::width(&shown));
    let note = if rest >= 6 && !note.is_empty() { format!("  {note}") } else { String::new() };
    vec![
        Span::raw(" ".repeat(indent)),
        ctx.span(head.0, head.1),
        Span::raw(" "),
        ctx.span(shown, name.1),
        ctx.span(text::left(&note, rest), Role::Dim),
        ctx.span(if time.is_empty() { String::new() } else { format!(" {time} ") }, Role::Plain),
    ]
}

fn family_line(ctx: &Ctx<'_>, first: usize, end: usize, width: usize) -> Line<'static> {
    let steps = ctx.view.plan.get(first..end).unwrap_or_default();
    let name = steps.first().map_or("", |step| family(step.kind));
    let nodes = || steps.iter().filter(|step| !is_single(step));
    let done = nodes().filter(|step| step.state() == PhaseState::Done).count();
    let is = |state: PhaseState| steps.iter().all(|step| step.state() == state);
    let is_over = steps.iter().all(|step| step.state().is_over());
    let is_held = steps.iter().flat_map(|step| &step.phases).any(|phase| phase.state == PhaseState::Aborted);
    let head = if is(PhaseState::Skipped) {
        ("–", Role::Dim)
    } else if is_over && is_held {
        ("✖", Role::Bad)
    } else if is_over {
        ("✔", Role::Good)
    } else if is(PhaseState::Waiting) {
        ("○", Role::Dim)
    } else {
        ("▼", Role::Active)
    };
    let text = format!("{name} {done}/{}", nodes().count());
    ctx.row(line(ctx, 0, head, (&text, Role::Strong), "", "", width), false, Pane::Plan)
}

fn step_line(ctx: &Ctx<'_>, index: usize, chosen: usize, width: usize) -> Line<'static> {
    let Some(step) = ctx.view.plan.get(index) else { return Line::default() };
    let is_current = ctx.view.cursor.is_some_and(|(at, _)| at == index) && !step.state().is_over();
    let status = status::of_step(step, is_current);
    let role = if is_current { Role::Strong } else { Role::Plain };
    let single = step.phases.first().filter(|_| is_single(step));
    let name = single.map_or(step.target.as_str(), |phase| phase.kind.word());
    let note = single.map(|phase| phase.note.as_str()).filter(|note| !note.is_empty()).unwrap_or(&step.note);
    let note = if note.is_empty() && step.kind == StepKind::HandOver { &step.target } else { note };
    let took = step.phases.iter().filter_map(|phase| phase.took).sum::<Duration>();
    let time = match single {
        Some(phase) => time_of(ctx, phase),
        None if step.state().is_over() && took > Duration::ZERO => units::clock(took),
        None => String::new(),
    };
    let is_alone = is_single(step) && !has_family(ctx.view, index);
    let indent = if is_alone { 0 } else { 2 };
    let spans = line(ctx, indent, (status.glyph, status.role), (name, role), note, &time, width);
    ctx.row(spans, index == chosen && ctx.state.focus == Pane::Plan, Pane::Plan)
}

/// Whether a step stands under a heading.
fn has_family(view: &View, index: usize) -> bool {
    let kind = |at: usize| view.plan.get(at).map(|step| family(step.kind));
    let own = kind(index);
    (index > 0 && kind(index - 1) == own) || kind(index + 1) == own
}

fn time_of(ctx: &Ctx<'_>, phase: &PhaseView) -> String {
    match (phase.took, phase.started_at) {
        (Some(took), _) => units::clock(took),
        (None, Some(since)) if !phase.state.is_over() => units::clock(ctx.now.since(since)),
        _ => String::new(),
    }
}

fn phase_line(ctx: &Ctx<'_>, step: usize, phase: usize, width: usize) -> Line<'static> {
    let Some(view) = ctx.view.plan.get(step).and_then(|step| step.phases.get(phase)) else { return Line::default() };
    let is_current = ctx.view.cursor == Some((step, phase));
    let status = status::of_phase(view.state);
    let role = match (is_current, view.state) {
        (true, _) => Role::Strong,
        (false, PhaseState::Waiting | PhaseState::Skipped) => Role::Dim,
        (false, _) => Role::Plain,
    };
    let is_next = is_current && view.state == PhaseState::Waiting;
    let note = if is_next && view.note.is_empty() { "next" } else { &view.note };
    let time = time_of(ctx, view);
    ctx.row(line(ctx, 4, (status.glyph, status.role), (view.kind.word(), role), note, &time, width), false, Pane::Plan)
}
