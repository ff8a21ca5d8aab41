//! What only a person can decide, and how it ended: in the middle of the screen, in whole sentences, with the keys that
//! answer. It is a pane and no dialog, so that the cluster stays in sight while one thinks.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::rollout::view::{Ending, Mode, OwedView, Question};

use super::super::dialog;
use super::super::keymap::{self, Action};
use super::super::status;
use super::super::theme::Role;
use super::super::widgets::{pane, text};
use super::Ctx;

/// Whether the banner says all there is to say, so that no other pane about the present phase is needed.
pub(super) fn is_instead_of_drain(ctx: &Ctx<'_>) -> bool {
    matches!(ctx.view.mode, Mode::Ended(_))
}

/// Rows it wants at this width; `None` if there is nothing to say.
pub(super) fn wanted(ctx: &Ctx<'_>, columns: u16) -> Option<u16> {
    let (_, _, lines) = content(ctx, columns)?;
    u16::try_from(lines.len() + 2).ok()
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, ctx: &Ctx<'_>) {
    let Some((title, role, lines)) = content(ctx, area.width) else { return };
    let room = usize::from(area.height).saturating_sub(2);
    let title =
        if lines.len() > room { format!("{title} · cut, {} rows more needed", lines.len() - room) } else { title };
    let title = Line::from(vec![Span::raw(" "), ctx.span(title, role), Span::raw(" ")]);
    let inner = pane::framed(buf, area, title, ctx.style(role), true);
    // If it does not all fit, the way out matters more than the story.
    let spare = lines.len().saturating_sub(room);
    let choices = lines.iter().rev().take_while(|line| !line.spans.is_empty()).count();
    let story = lines.len().saturating_sub(choices + spare);
    let tail = lines.len() - choices;
    let shown = lines.iter().take(story).chain(lines.iter().skip(tail)).cloned();
    pane::lines(buf, inner, shown);
}

type Content = (String, Role, Vec<Line<'static>>);

fn content(ctx: &Ctx<'_>, columns: u16) -> Option<Content> {
    let width = usize::from(columns).saturating_sub(4);
    match (&ctx.view.mode, &ctx.view.question) {
        (Mode::Ended(ending), _) => Some(ended(ctx, ending, width)),
        (mode, Some(question)) => Some(asked(ctx, question, *mode == Mode::Aborted, width)),
        (_, None) => None,
    }
}

fn paragraph(ctx: &Ctx<'_>, heading: &str, text: &str, role: Role, width: usize) -> Vec<Line<'static>> {
    const HEADING: usize = 9;
    if text.is_empty() {
        return Vec::new();
    }
    let wrapped = text::wrap(text, width.saturating_sub(HEADING));
    wrapped
        .into_iter()
        .enumerate()
        .map(|(at, line)| {
            let heading = if at == 0 { heading } else { "" };
            Line::from(vec![Span::raw(" "), ctx.span(text::left(heading, HEADING), Role::Dim), ctx.span(line, role)])
        })
        .collect()
}

fn asked(ctx: &Ctx<'_>, question: &Question, is_aborted: bool, width: usize) -> Content {
    let mut lines = paragraph(ctx, "what", &question.what, Role::Strong, width);
    lines.extend(paragraph(ctx, "means", &question.means, Role::Plain, width));
    lines.extend(paragraph(ctx, "do", &question.advice, Role::Plain, width));
    if is_aborted {
        lines.extend(owed(ctx, &ctx.view.owed, &question.means, width));
    }
    lines.push(Line::default());
    for choice in &question.choices {
        let key = keymap::key(Action::Tell(choice.command));
        let name = choice.command.name();
        let (role, label) = match keymap::permission(Action::Tell(choice.command), ctx.live, ctx.state) {
            Ok(()) => (Role::Plain, dialog::label(choice).to_owned()),
            Err(why) => (Role::Dim, format!("not now: {why}")),
        };
        for (at, line) in text::wrap(&label, width.saturating_sub(14)).into_iter().enumerate() {
            let (key, name) = if at == 0 { (key.as_str(), name) } else { (" ", "") };
            lines.push(Line::from(vec![
                ctx.span(format!("  {key}  "), Role::Key),
                ctx.span(text::left(name, 9), Role::Strong),
                ctx.span(line, role),
            ]));
        }
    }
    lines.extend(overruling(ctx, width));
    let title = if is_aborted {
        "Aborted: what is left, and the ways on".to_owned()
    } else {
        // `capture/drain` is for scripts.
        let phase = question.step.rsplit('/').next().unwrap_or_default().replace('_', " ");
        format!("⏸ Waiting for you: {phase} {}", question.target).trim_end().to_owned()
    };
    (title, Role::Warn, lines)
}

/// The ways on that are no answer to the question, and each ask for a name and a reason.
fn overruling(ctx: &Ctx<'_>, width: usize) -> Vec<Line<'static>> {
    let key = |command| format!("{} {}", keymap::key(Action::Tell(command)), command.name());
    let keys: Vec<_> = ctx.view.by_name.iter().map(|named| key(named.command)).collect();
    if keys.is_empty() {
        return Vec::new();
    }
    let text = format!("  or, with its name and a reason typed: {}", keys.join(", "));
    text::wrap(&text, width).into_iter().map(|line| Line::from(ctx.span(line, Role::Dim))).collect()
}

/// What is owed and what pays it; what it means is left out where it has just been `said`.
fn owed(ctx: &Ctx<'_>, owed: &[OwedView], said: &str, width: usize) -> Vec<Line<'static>> {
    if owed.is_empty() {
        return paragraph(ctx, "owed", "nothing", Role::Plain, width);
    }
    let text = |owed: &OwedView| {
        let what = if said.contains(&owed.what) { String::new() } else { format!(" {}", dialog::sentence(&owed.what)) };
        format!("{} {}.{what} By hand: {}", owed.kind, owed.target, owed.how)
    };
    owed.iter().flat_map(|owed| paragraph(ctx, "owed", &text(owed), Role::Warn, width)).collect()
}

fn ended(ctx: &Ctx<'_>, ending: &Ending, width: usize) -> Content {
    let status = status::of_outcome(ending.outcome);
    let mut lines = paragraph(ctx, "why", &ending.reason, Role::Strong, width);
    let (over, all) = ctx.view.progress();
    let took = ctx
        .view
        .started_at
        .map(|started| crate::cluster::units::spoken(ctx.view.ended_at.unwrap_or(ctx.view.at).since(started)));
    let took = took.map_or_else(String::new, |took| format!(" in {took}"));
    if all > 0 {
        lines.extend(paragraph(ctx, "phases", &format!("{over} of {all} over{took}"), Role::Plain, width));
    }
    lines.extend(owed(ctx, &ctx.view.owed, &ending.reason, width));
    lines.push(Line::default());
    let leave = keymap::key(Action::Leave);
    lines.push(Line::from(vec![
        ctx.span(format!("  {leave}  "), Role::Key),
        ctx.span(format!("leave; the program then exits with {}", ending.exit_code), Role::Plain),
    ]));
    (format!("{} Ended: {}", status.glyph, status.word), status.role, lines)
}
