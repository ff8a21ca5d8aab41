//! Moving the selection of a pane, always from one identity to another.

use crate::rollout::view::{ChangefeedView, Standing, View};

use super::state::{Pane, Subject, UiState};
use super::widgets::window;

/// The changefeeds of all `TiCDC` clusters, as far as they are known.
pub(crate) fn changefeeds(view: &View) -> impl Iterator<Item = &ChangefeedView> {
    view.groups.iter().flat_map(|group| group.changefeeds.last().into_iter().flatten())
}

/// Where the selected capture is among those shown: what was selected, else what the rollout is about, else the first.
pub(crate) fn capture_place(state: &UiState, view: &View) -> usize {
    let chosen = state.capture.as_ref();
    let at = chosen.and_then(|id| state.captures(view).position(|capture| &capture.id == id));
    let current = || {
        let (step, _) = view.current()?;
        // A ghost at the address of its successor is not what the step is about.
        state.captures(view).position(|c| c.address == step.target && c.standing != Standing::Ghost)
    };
    at.or_else(current).unwrap_or(0)
}

/// Where the selected changefeed is.
pub(crate) fn changefeed_place(state: &UiState, view: &View) -> usize {
    let chosen = state.changefeed.as_ref();
    chosen.and_then(|id| changefeeds(view).position(|feed| &feed.id == id)).unwrap_or(0)
}

/// Where the selected `TiDB` server is.
pub(crate) fn tidb_place(state: &UiState, view: &View) -> usize {
    let servers = || view.tidb.iter().flat_map(|tidb| &tidb.servers);
    state.tidb.as_ref().and_then(|address| servers().position(|server| &server.address == address)).unwrap_or(0)
}

/// The step the plan shows around: the selected one, else the one under the cursor, else the next to come.
pub(crate) fn step_place(state: &UiState, view: &View) -> usize {
    let next = || view.plan.iter().position(|step| !step.state().is_over());
    let place = state.step.or_else(|| view.cursor.map(|(step, _)| step)).or_else(next);
    place.unwrap_or_else(|| view.plan.len().saturating_sub(1))
}

/// Moves the selection of the focused pane.
pub(crate) fn step(state: &mut UiState, view: &View, by: isize) {
    match state.focus {
        Pane::Plan => {
            let to = window::moved(step_place(state, view), by, view.plan.len());
            state.step = (!view.plan.is_empty()).then_some(to);
        }
        Pane::Captures => {
            let total = state.captures(view).count();
            let to = window::moved(capture_place(state, view), by, total);
            let id = state.captures(view).nth(to).map(|capture| capture.id.clone());
            state.capture = id;
        }
        Pane::Changefeeds => {
            let to = window::moved(changefeed_place(state, view), by, changefeeds(view).count());
            state.changefeed = changefeeds(view).nth(to).map(|feed| feed.id.clone());
        }
        Pane::Tidb => {
            let servers = || view.tidb.iter().flat_map(|tidb| &tidb.servers);
            let to = window::moved(tidb_place(state, view), by, servers().count());
            state.tidb = servers().nth(to).map(|server| server.address.clone());
        }
        Pane::Events => {
            // Newest first inside, oldest on top of the screen: up is away from the newest.
            let total = state.entries().count();
            let to = window::moved(state.event_place(), by.saturating_neg(), total);
            let seq = state.entries().nth(to).map(|entry| entry.seq);
            state.event = seq.filter(|_| to > 0);
        }
    }
}

/// What `Enter` opens.
pub(crate) fn subject(state: &UiState, view: &View) -> Option<Subject> {
    match state.focus {
        Pane::Plan => (!view.plan.is_empty()).then(|| Subject::Step(step_place(state, view))),
        Pane::Captures => {
            let capture = state.captures(view).nth(capture_place(state, view))?;
            Some(Subject::Capture { id: capture.id.clone(), address: capture.address.clone() })
        }
        Pane::Changefeeds => {
            let feed = changefeeds(view).nth(changefeed_place(state, view))?;
            Some(Subject::Changefeed(feed.id.clone()))
        }
        Pane::Tidb => {
            let server = view.tidb.as_ref()?.servers.get(tidb_place(state, view))?;
            Some(Subject::Tidb(server.address.clone()))
        }
        Pane::Events => {
            let entry = state.entries().nth(state.event_place())?;
            Some(Subject::Event(entry.seq))
        }
    }
}
