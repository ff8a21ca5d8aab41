//! What the screen remembers by itself: where the keys go, what is selected, which dialogs are open.
//!
//! Selection is by identity, never by row: rows come and go under the cursor, and a key must not reach another
//! node than the one that was read.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::cluster::{CaptureId, ChangefeedId, Timestamp};
use crate::rollout::command::{Command, Who};
use crate::rollout::event::{Event, Weight};
use crate::rollout::view::{CaptureView, Mode, View};

use super::Options;
use super::dialog::Dialog;

/// Facts kept for the event pane; the engine keeps none, and a screen shows a few dozen.
const EVENTS_KEPT: usize = 2_000;

/// A pane that can have the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    /// The plan.
    Plan,
    /// The captures.
    Captures,
    /// The changefeeds.
    Changefeeds,
    /// The `TiDB` servers.
    Tidb,
    /// The events.
    Events,
}

/// One line of the event pane.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its place in the stream, which is its identity.
    pub(crate) seq: u64,
    /// When.
    pub(crate) at: Timestamp,
    /// How much it matters.
    pub(crate) weight: Weight,
    /// The line.
    pub(crate) text: String,
}

/// What a detail page is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subject {
    /// A capture and its tables.
    Capture {
        /// Its id.
        id: CaptureId,
        /// Its address, to say who it was once it is gone.
        address: String,
    },
    /// A changefeed.
    Changefeed(ChangefeedId),
    /// A `TiDB` server, by its status address.
    Tidb(String),
    /// A step of the plan.
    Step(usize),
    /// A line of the event pane, in full.
    Event(u64),
}

/// A detail page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Detail {
    /// Of what.
    pub(crate) subject: Subject,
    /// The first line shown.
    pub(crate) scroll: usize,
    /// Which tables.
    pub(crate) filter: String,
}

/// Something in front of the panes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Modal {
    /// The help page, and its first line shown.
    Help(usize),
    /// A detail page.
    Detail(Detail),
    /// A question of the screen's own.
    Dialog(Dialog),
}

/// Whether this screen may steer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steering {
    /// It may.
    Allowed,
    /// It was opened to look only.
    LooksOnly,
    /// There is nothing left to steer: the engine is gone.
    EngineGone,
}

/// A line shown for a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The line.
    pub(crate) text: String,
    /// Whether something was refused.
    pub(crate) is_refusal: bool,
    /// Until when.
    pub(crate) until: Timestamp,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct UiState {
    /// Now, as the loop last saw it.
    pub(crate) now: Timestamp,
    /// Columns and rows.
    pub(crate) size: (u16, u16),
    /// Whether keys may give commands.
    pub(crate) steering: Steering,
    /// Whether the rollout is run by another program.
    pub(crate) is_attached: bool,
    /// Who sits here.
    pub(crate) who: Who,
    /// Commands given here that are not among the events yet.
    pub(crate) given: Vec<Command>,
    /// The last command that was taken, and who gave it.
    pub(crate) last_said: Option<(Who, Command)>,
    /// Where the keys go.
    pub(crate) focus: Pane,
    /// The selected capture.
    pub(crate) capture: Option<CaptureId>,
    /// The selected changefeed.
    pub(crate) changefeed: Option<ChangefeedId>,
    /// The selected `TiDB` server.
    pub(crate) tidb: Option<String>,
    /// The selected step; `None` follows the rollout.
    pub(crate) step: Option<usize>,
    /// The selected event; `None` follows the newest.
    pub(crate) event: Option<u64>,
    /// Which captures to show.
    pub(crate) capture_filter: String,
    /// Which events to show.
    pub(crate) event_filter: String,
    /// Whether keys go into the filter of the focused pane or page.
    pub(crate) is_typing: bool,
    /// Whether requests and counts are among the events.
    pub(crate) shows_details: bool,
    /// What is in front, the topmost last.
    pub(crate) modals: Vec<Modal>,
    /// The events, oldest first.
    pub(crate) events: VecDeque<Entry>,
    /// The number the next event gets.
    pub(crate) next_event: u64,
    /// The view and the time the display was frozen at.
    pub(crate) frozen: Option<(Arc<View>, Timestamp)>,
    /// A line for a moment.
    pub(crate) notice: Option<Notice>,
    /// The mode of the view before this one.
    pub(crate) mode: Option<Mode>,
    /// Whether the present call for a person has been rung for.
    pub(crate) is_called: bool,
}

impl UiState {
    /// The state at the start.
    pub(crate) fn new(options: &Options, now: Timestamp, size: (u16, u16)) -> Self {
        Self {
            now,
            size,
            steering: if options.can_command { Steering::Allowed } else { Steering::LooksOnly },
            is_attached: options.is_attached,
            who: options.who.clone(),
            given: Vec::new(),
            last_said: None,
            focus: Pane::Captures,
            capture: None,
            changefeed: None,
            tidb: None,
            step: None,
            event: None,
            capture_filter: String::new(),
            event_filter: String::new(),
            is_typing: false,
            shows_details: false,
            modals: Vec::new(),
            events: VecDeque::new(),
            next_event: 0,
            frozen: None,
            notice: None,
            mode: None,
            is_called: false,
        }
    }

    /// Panes that exist for this view, in the order of `Tab`.
    pub(crate) fn panes(view: &View) -> Vec<Pane> {
        let mut panes = Vec::with_capacity(5);
        if !is_watching(view) {
            panes.push(Pane::Plan);
        }
        panes.extend([Pane::Captures, Pane::Changefeeds]);
        if view.tidb.is_some() || !view.pd.is_empty() {
            panes.push(Pane::Tidb);
        }
        panes.push(Pane::Events);
        panes
    }

    /// The captures to show, over all `TiCDC` clusters.
    pub(crate) fn captures<'a>(&'a self, view: &'a View) -> impl Iterator<Item = &'a CaptureView> {
        let matches = move |capture: &&CaptureView| {
            passes(&self.capture_filter, &capture.address) || passes(&self.capture_filter, capture.id.as_str())
        };
        view.groups.iter().flat_map(|group| &group.captures).filter(matches)
    }

    /// The events to show, newest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.events.iter().rev().filter(|entry| {
            (self.shows_details || entry.weight != Weight::Detail) && passes(&self.event_filter, &entry.text)
        })
    }

    /// The selected event's place among those shown, newest first.
    pub(crate) fn event_place(&self) -> usize {
        self.event.and_then(|seq| self.entries().position(|entry| entry.seq <= seq)).unwrap_or(0)
    }

    /// Takes a fact in.
    pub(crate) fn push_event(&mut self, event: &Event) {
        self.push_entry(event.at, event.fact.weight(), event.fact.line());
    }

    /// Takes a line in.
    pub(crate) fn push_entry(&mut self, at: Timestamp, weight: Weight, text: String) {
        if self.events.len() == EVENTS_KEPT {
            self.events.pop_front();
        }
        self.events.push_back(Entry { seq: self.next_event, at, weight, text });
        self.next_event += 1;
    }

    /// The notice, as long as it is to be shown.
    pub(crate) fn live_notice(&self) -> Option<&Notice> {
        self.notice.as_ref().filter(|notice| notice.until > self.now)
    }

    /// The filter that keys go into now.
    pub(crate) fn filter_mut(&mut self) -> Option<&mut String> {
        match (self.modals.last_mut(), self.focus) {
            (Some(Modal::Detail(detail)), _) => Some(&mut detail.filter),
            (None, Pane::Captures) => Some(&mut self.capture_filter),
            (None, Pane::Events) => Some(&mut self.event_filter),
            _ => None,
        }
    }
}

/// Whether there is nothing to steer.
pub(crate) fn is_watching(view: &View) -> bool {
    view.title.operation == "watch" || view.mode == Mode::Watching
}

/// Whether a text passes a filter: it holds the words typed, in any case; after `!` it does not hold them.
pub(crate) fn passes(filter: &str, text: &str) -> bool {
    let holds = |part: &str| {
        // Nothing is copied for the usual case of no filter at all.
        part.is_empty() || text.to_lowercase().contains(&part.to_lowercase())
    };
    match filter.strip_prefix('!') {
        Some("") => true,
        Some(part) => !holds(part),
        None => holds(filter),
    }
}
