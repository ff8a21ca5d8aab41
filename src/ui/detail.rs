//! What a detail page says, line by line; of a capture's tables only the lines asked for are made.

use std::borrow::Cow;

use crate::cluster::{ChangefeedId, Observed, TableId, Timestamp, units};
use crate::rollout::view::{CaptureView, Standing, TableNames, View};

use super::select::changefeeds;
use super::state::{Detail, Modal, Subject, UiState, passes};
use super::status;
use super::theme::Role;
use super::view::{help, words};
use super::widgets::text;

/// The width of a page in a terminal this wide.
pub(crate) fn columns(terminal: u16) -> u16 {
    terminal.saturating_sub(2).min(104)
}

/// How far the page in front can be scrolled.
pub(crate) fn last_scroll(state: &UiState, view: &View) -> usize {
    let (width, rows) = state.size;
    let height = usize::from(rows.saturating_sub(6));
    let total = match state.modals.last() {
        Some(Modal::Help(_)) => help::total(),
        Some(Modal::Detail(detail)) => {
            content(view, state, detail, usize::from(columns(width)).saturating_sub(3), state.now).total()
        }
        _ => 0,
    };
    total.saturating_sub(height)
}

/// A page.
pub(crate) struct Content<'a> {
    /// The title.
    pub(crate) title: String,
    head: Vec<(String, Role)>,
    groups: Vec<(&'a ChangefeedId, Cow<'a, [TableId]>)>,
    names: &'a TableNames,
}

impl Content<'_> {
    /// Lines in all.
    pub(crate) fn total(&self) -> usize {
        self.head.len() + self.groups.iter().map(|(_, ids)| ids.len() + 1).sum::<usize>()
    }

    /// One line.
    pub(crate) fn line(&self, at: usize) -> (String, Role) {
        if let Some(line) = self.head.get(at) {
            return line.clone();
        }
        let mut at = at - self.head.len();
        for (feed, ids) in &self.groups {
            if at == 0 {
                let count = units::counted(u64::try_from(ids.len()).unwrap_or(u64::MAX), "table");
                return (format!("{}  {count}", feed.label()), Role::Strong);
            }
            if let Some(id) = ids.get(at - 1) {
                return (format!("  {}", table(self.names, *id)), Role::Plain);
            }
            at -= ids.len() + 1;
        }
        (String::new(), Role::Plain)
    }
}

fn table(names: &TableNames, id: TableId) -> String {
    names.get(&id).map_or_else(|| format!("table {id} (name not known)"), |name| format!("{name}  ({id})"))
}

/// Builds a page at this width.
pub(crate) fn content<'a>(
    view: &'a View,
    state: &'a UiState,
    detail: &Detail,
    width: usize,
    now: Timestamp,
) -> Content<'a> {
    let mut page = Content { title: String::new(), head: Vec::new(), groups: Vec::new(), names: &view.table_names };
    match &detail.subject {
        Subject::Capture { id, address } => {
            page.title = format!("Capture {address}");
            if let Some(capture) = view.capture(id) {
                of_capture(&mut page, view, capture, &detail.filter, width, now);
            } else {
                let text = format!("Capture {id} is no longer there; a restarted process has another id.");
                page.head.extend(text::wrap(&text, width).into_iter().map(|line| (line, Role::Warn)));
            }
        }
        Subject::Changefeed(id) => {
            page.title = format!("Changefeed {}", id.label());
            of_changefeed(&mut page.head, view, id, width);
        }
        Subject::Tidb(address) => {
            page.title = format!("TiDB {address}");
            of_tidb(&mut page.head, view, address, width, now);
        }
        Subject::Step(index) => of_step(&mut page, view, *index, width, now),
        Subject::Event(seq) => {
            "Event".clone_into(&mut page.title);
            if let Some(entry) = state.events.iter().find(|entry| entry.seq == *seq) {
                page.head.push((format!("{} UTC", words::wall(entry.at)), Role::Dim));
                page.head.extend(text::wrap(&entry.text, width).into_iter().map(|line| (line, Role::Plain)));
            } else {
                page.head.push(("This event is too old to be kept.".to_owned(), Role::Dim));
            }
        }
    }
    page
}

/// A labelled line, wrapped under its label.
fn field(head: &mut Vec<(String, Role)>, label: &str, value: &str, role: Role, width: usize) {
    const LABEL: usize = 14;
    let lines = text::wrap(value, width.saturating_sub(LABEL).max(10));
    for (at, line) in lines.iter().enumerate() {
        head.push((format!("{}{line}", text::left(if at == 0 { label } else { "" }, LABEL)), role));
    }
}

fn aged<T>(observed: &Observed<T>, now: Timestamp) -> (String, Role) {
    match (observed, observed.age(now)) {
        (Observed::Known { .. }, Some(age)) if age <= words::OLD => {
            (format!("{} ago", units::spoken(age)), Role::Plain)
        }
        (Observed::Known { .. }, Some(age)) => (format!("{} ago: old", units::spoken(age)), Role::Warn),
        (Observed::Stale { why, .. }, Some(age)) => {
            (format!("{} ago: old, since it {why}", units::spoken(age)), Role::Warn)
        }
        (Observed::Unknown { why }, _) => (format!("never: {why}"), Role::Warn),
        _ => ("not asked yet".to_owned(), Role::Warn),
    }
}

fn of_capture<'a>(
    page: &mut Content<'a>,
    view: &View,
    capture: &'a CaptureView,
    filter: &str,
    width: usize,
    now: Timestamp,
) {
    let head = &mut page.head;
    let state = status::of_capture(view, capture);
    field(head, "id", capture.id.as_str(), Role::Plain, width);
    field(head, "address", &capture.address, Role::Plain, width);
    let version = capture.version.as_ref().map_or("?", |version| version.as_str());
    let architecture = capture.architecture.map_or("? architecture", |a| match a.word() {
        "new" => "new architecture",
        _ => "classic architecture",
    });
    field(head, "version", &format!("{version}, {architecture}"), Role::Plain, width);
    let raw = capture.liveness.raw.map_or_else(|| "not said".to_owned(), |raw| raw.to_string());
    field(head, "state", &format!("{} {} (liveness {raw})", state.glyph, state.word), state.role, width);
    let standing = match capture.standing {
        Standing::Present => "listed, and answers as itself",
        Standing::Ghost => "listed, but another process or nobody answers at its address: it is leaving",
        Standing::Unlisted => "answers, but is in no list (yet)",
        Standing::Silent => "listed; its own answer could not be read",
    };
    field(head, "seen", standing, Role::Plain, width);
    let duty = if capture.is_owner { "♛ owner of its TiCDC cluster" } else { "none" };
    field(head, "duty", duty, Role::Plain, width);
    let nothing = if capture.table_count() == Some(0) { "none: it carries no table" } else { "?" };
    let lag = |lag| format!("{}, the largest of its changefeeds", units::spoken(lag));
    let lag = capture.lag.map_or_else(|| nothing.to_owned(), lag);
    field(head, "lag", &lag, Role::Plain, width);
    let asked =
        capture.seen_at.map_or_else(|| "never".to_owned(), |at| format!("{} ago", units::spoken(now.since(at))));
    field(head, "last asked", &asked, Role::Plain, width);
    let (age, role) = aged(&capture.tables, now);
    let count = capture.table_count().map_or_else(|| "? tables".to_owned(), |count| units::counted(count, "table"));
    field(head, "tables", &format!("{count}, read {age}"), role, width);
    head.push((String::new(), Role::Plain));
    let Some(tables) = capture.tables.last() else { return };
    for (feed, ids) in tables.iter().filter(|(_, ids)| !ids.is_empty()) {
        let ids = if filter.is_empty() {
            Cow::Borrowed(&**ids)
        } else {
            Cow::Owned(ids.iter().copied().filter(|id| passes(filter, &table(page.names, *id))).collect::<Vec<_>>())
        };
        if !ids.is_empty() {
            page.groups.push((feed, ids));
        }
    }
    if page.groups.is_empty() {
        let text = if filter.is_empty() { "no tables here" } else { "no table passes the filter" };
        page.head.push((text.to_owned(), Role::Dim));
    }
}

fn of_changefeed(head: &mut Vec<(String, Role)>, view: &View, id: &ChangefeedId, width: usize) {
    let Some(feed) = changefeeds(view).find(|feed| &feed.id == id) else {
        head.push(("It is no longer in the list.".to_owned(), Role::Warn));
        return;
    };
    let (glyph, role) = status::of_changefeed(&feed.state);
    field(head, "id", &feed.id.to_string(), Role::Plain, width);
    field(head, "state", &format!("{glyph} {}", feed.state), role, width);
    field(head, "lag", &feed.lag.map_or_else(|| "?".to_owned(), units::spoken), Role::Plain, width);
    let tables = feed.tables.map_or_else(|| "?".to_owned(), units::grouped);
    field(head, "tables", &tables, Role::Plain, width);
    if let Some(error) = &feed.error {
        field(head, "error", &error.code, Role::Bad, width);
        field(head, "", &error.message, Role::Plain, width);
    }
    let on = view.groups.iter().flat_map(|group| &group.captures).filter_map(|capture| {
        let count = capture.tables.last()?.get(id)?.len();
        (count > 0).then(|| format!("{} on {}", count, capture.address))
    });
    let on: Vec<_> = on.collect();
    if !on.is_empty() {
        field(head, "where", &on.join(" · "), Role::Plain, width);
    }
}

fn of_tidb(head: &mut Vec<(String, Role)>, view: &View, address: &str, width: usize, now: Timestamp) {
    let servers = || view.tidb.iter().flat_map(|tidb| &tidb.servers);
    let Some(server) = servers().find(|server| server.address == address) else {
        head.push(("It is no longer known.".to_owned(), Role::Warn));
        return;
    };
    let state = status::of_tidb(view, server);
    field(head, "status at", &server.address, Role::Plain, width);
    field(head, "SQL at", server.sql_address.as_deref().unwrap_or("?"), Role::Plain, width);
    let version = server.version.last().map_or("?", |version| version.as_str());
    let (age, role) = aged(&server.version, now);
    field(head, "version", &format!("{version}, read {age}"), role, width);
    field(head, "state", &format!("{} {}", state.glyph, state.word), state.role, width);
    if let Some(why) = server.serves.failure() {
        field(head, "", &why.to_string(), Role::Bad, width);
        field(head, "", &why.request, Role::Dim, width);
    }
    let ddl = match server.is_ddl_owner {
        Some(true) => "owns DDL",
        Some(false) => "does not own DDL",
        None => "?",
    };
    field(head, "DDL", ddl, Role::Plain, width);
}

fn of_step(page: &mut Content<'_>, view: &View, index: usize, width: usize, now: Timestamp) {
    let Some(step) = view.plan.get(index) else { return };
    page.title = format!("Step {} of {}: {}", index + 1, view.plan.len(), step.target);
    let head = &mut page.head;
    if !step.note.is_empty() {
        field(head, "", &step.note, Role::Plain, width);
    }
    for phase in &step.phases {
        let status = status::of_phase(phase.state);
        let time = match (phase.took, phase.started_at) {
            (Some(took), _) => format!(", took {}", units::spoken(took)),
            (None, Some(since)) if !phase.state.is_over() => format!(", for {}", units::spoken(now.since(since))),
            _ => String::new(),
        };
        let line = format!("{} {}{time}", status.glyph, status.word);
        field(head, phase.kind.word(), &line, status.role, width);
        field(head, "", &phase.note, Role::Plain, width);
    }
}
