//! Every state as a glyph, a word and a meaning, so that none is told by colour alone.

use crate::cluster::{Architecture, CaptureId, ChangefeedState, Liveness};
use crate::rollout::view::{CaptureView, Outcome, PhaseState, Standing, StepView, TidbServerView, View};

use super::theme::Role;

/// A state for the eye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// The sign.
    pub(crate) glyph: &'static str,
    /// The word.
    pub(crate) word: &'static str,
    /// The meaning, which chooses the colour.
    pub(crate) role: Role,
}

const fn status(glyph: &'static str, word: &'static str, role: Role) -> Status {
    Status { glyph, word, role }
}

/// The legend of the help page.
pub(crate) const LEGEND: &[Status] = &[
    status("✔", "done, at the target", Role::Good),
    status("▶", "going on now", Role::Active),
    status("○", "not begun", Role::Dim),
    status("⏸", "waits for you", Role::Warn),
    status("✖", "given up, failed", Role::Bad),
    status("–", "skipped, not needed", Role::Dim),
    status("♛", "owner, or coordinator", Role::Strong),
    status("●", "as it should be", Role::Good),
    status("▲", "look at it", Role::Warn),
    status("◌", "leaving, or not listed", Role::Dim),
    status("?", "could not be read: unknown, not zero", Role::Warn),
];

/// A phase or a step.
pub(crate) const fn of_phase(state: PhaseState) -> Status {
    match state {
        PhaseState::Waiting => status("○", "not begun", Role::Dim),
        PhaseState::Running => status("▶", "running", Role::Active),
        PhaseState::Asking => status("⏸", "asks", Role::Warn),
        PhaseState::Done => status("✔", "done", Role::Good),
        PhaseState::Skipped => status("–", "skipped", Role::Dim),
        PhaseState::Aborted => status("✖", "aborted", Role::Bad),
    }
}

/// A step; between two of its phases it is the one going on.
pub(crate) fn of_step(step: &StepView, is_current: bool) -> Status {
    match (step.state(), is_current) {
        (PhaseState::Waiting, true) if step.phases.iter().any(|phase| phase.state.is_over()) => {
            of_phase(PhaseState::Running)
        }
        (PhaseState::Done, _) if step.phases.iter().any(|phase| phase.state == PhaseState::Aborted) => {
            of_phase(PhaseState::Aborted)
        }
        (state, _) => of_phase(state),
    }
}

fn is_draining(view: &View, id: &CaptureId) -> bool {
    view.drain.as_ref().is_some_and(|drain| &drain.capture == id && !drain.is_done)
}

/// A capture, by what the list, its own answer and the open drain say together.
pub(crate) fn of_capture(view: &View, capture: &CaptureView) -> Status {
    match (capture.standing, capture.liveness.meaning) {
        (Standing::Ghost, _) => status("◌", "leaving", Role::Dim),
        (Standing::Silent, _) => status("▲", "silent", Role::Bad),
        (Standing::Unlisted, _) => status("◌", "unlisted", Role::Warn),
        (Standing::Present, Some(Liveness::Draining)) => status("▶", "draining", Role::Active),
        // Classic captures call themselves stopping while they still give tables away.
        (Standing::Present, Some(Liveness::Stopping))
            if capture.architecture != Some(Architecture::New) && is_draining(view, &capture.id) =>
        {
            status("▶", "draining", Role::Active)
        }
        (Standing::Present, Some(Liveness::Stopping)) => status("⏸", "stopping", Role::Warn),
        (Standing::Present, Some(Liveness::Alive)) => status("●", "alive", Role::Good),
        (Standing::Present, None) => status("?", "?", Role::Warn),
    }
}

/// A changefeed's sign and meaning; its word is the server's.
pub(crate) const fn of_changefeed(state: &ChangefeedState) -> (&'static str, Role) {
    match state {
        ChangefeedState::Normal => ("●", Role::Good),
        ChangefeedState::Warning | ChangefeedState::Pending => ("▲", Role::Warn),
        ChangefeedState::Failed => ("✖", Role::Bad),
        ChangefeedState::Stopped => ("⏸", Role::Dim),
        ChangefeedState::Finished | ChangefeedState::Removed => ("–", Role::Dim),
        ChangefeedState::Uninitialised => ("○", Role::Dim),
        ChangefeedState::Other(_) => ("?", Role::Warn),
    }
}

/// A `TiDB` server.
pub(crate) fn of_tidb(view: &View, server: &TidbServerView) -> Status {
    let is_at_target = match (&view.title.to, server.version.last()) {
        (Some(to), Some(version)) => version.is_same_release(to),
        _ => false,
    };
    if server.serves.failure().is_some() {
        return status("▲", "does not serve", Role::Bad);
    }
    match (server.serves.known(), is_at_target) {
        (None, _) => status("?", "?", Role::Warn),
        (Some(()), true) => status("✔", "serves", Role::Good),
        (Some(()), false) => status("●", "serves", Role::Plain),
    }
}

/// How it ended.
pub(crate) const fn of_outcome(outcome: Outcome) -> Status {
    match outcome {
        Outcome::Done => status("✔", "done", Role::Good),
        Outcome::NothingToDo => status("✔", "nothing to do", Role::Good),
        Outcome::Refused => status("✖", "refused, nothing was changed", Role::Bad),
        Outcome::Paused => status("⏸", "paused, waiting for a person", Role::Warn),
        Outcome::Aborted => status("✖", "aborted", Role::Bad),
        Outcome::TimedOut => status("✖", "out of time", Role::Bad),
        Outcome::Interrupted => status("✖", "interrupted", Role::Bad),
        Outcome::Failed => status("✖", "failed", Role::Bad),
    }
}
