//! The new architecture's coordinator as [`super::model`]'s cluster has it: one drain session at a time, in memory only.

use tiroll::cluster::{Architecture, CaptureId, Failure, FailureKind, Reading};

use super::model::Course;

/// What a coordinator knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coordinator {
    /// Whose drain is open.
    session: Option<CaptureId>,
    /// Whose drain came to its end under this coordinator.
    completed: Vec<CaptureId>,
    /// Since when the open one has had no table.
    empty_since: Option<u64>,
    /// The first answers count changefeeds.
    has_counted: bool,
    /// Until then it says 1 and opens nothing: a dead one is still listed.
    busy_until: u64,
    /// Maintainers do not answer until then.
    pub(crate) no_tables_until: u64,
    /// A capture of an early build is there: every drain is answered 0.
    pub(crate) is_legacy: bool,
    /// It believes that nothing is left, whatever is there.
    pub(crate) believes_zero: bool,
    /// Its maintainers have just begun, and name no table anywhere.
    pub(crate) names_nothing_until: u64,
    /// The maintainer of both changefeeds stays at this capture.
    pub(crate) maintainer_stays_at: Option<CaptureId>,
    /// Its maintainers name only every other table.
    pub(crate) names_half: bool,
    /// It never takes note that the work is over.
    pub(crate) is_slow: bool,
}

impl Coordinator {
    /// It says 1 and opens nothing until then.
    pub(crate) fn stays_busy_until(&mut self, until: u64) {
        self.busy_until = until;
    }

    /// Nothing is odd any more.
    pub(crate) fn mend(&mut self) {
        self.believes_zero = false;
        self.is_legacy = false;
        self.is_slow = false;
        self.names_nothing_until = 0;
        self.names_half = false;
        self.maintainer_stays_at = None;
        self.no_tables_until = 0;
    }

    /// Another one begins: what was in memory is gone.
    pub(crate) fn forget(&mut self) {
        self.session = None;
        self.completed.clear();
        self.empty_since = None;
        self.has_counted = false;
    }
}

impl Course {
    /// A cluster of the new architecture.
    pub(crate) fn of_new_architecture(captures: usize, is_auto: bool) -> Self {
        Self::of(Architecture::New, captures, is_auto)
    }

    /// A cluster of either architecture.
    pub(crate) fn of(architecture: Architecture, captures: usize, is_auto: bool) -> Self {
        let mut course = Self::new(captures, is_auto);
        course.architecture = architecture;
        course
    }

    pub(crate) fn is_in_session(&self, n: usize) -> bool {
        self.coordinator.session.as_ref() == Some(&self.captures[n].id())
    }

    /// The same coordinator is elected again after a moment, and knows nothing of before.
    pub(crate) fn elect_again(&mut self) {
        self.no_owner_until = self.now + 500;
        self.coordinator.forget();
    }

    /// Whether the tables calls do not answer.
    pub(crate) fn are_maintainers_gone(&self) -> bool {
        self.architecture == Architecture::New && self.now < self.coordinator.no_tables_until
    }

    fn carried(&self, n: usize) -> u64 {
        self.captures[n].tables.iter().sum()
    }

    /// Contract section 3.2.
    pub(crate) fn drain_new(&mut self, id: &CaptureId) -> Reading<u64> {
        if self.now < self.no_owner_until {
            return Err(Failure::local(FailureKind::NoOwner, "nobody owns"));
        }
        let found = self.captures.iter().position(|c| &c.id() == id && c.down_until.is_none());
        let Some(n) = found else {
            return if self.coordinator.completed.contains(id) {
                Ok(0)
            } else {
                Err(Failure::local(FailureKind::NoSuchCapture, "gone"))
            };
        };
        if n == self.owner {
            return Err(Failure::local(FailureKind::CannotDrainOwner, "owner"));
        }
        if self.coordinator.is_legacy {
            return Ok(0);
        }
        let is_other = self.coordinator.session.as_ref().is_some_and(|other| other != id);
        if is_other || self.now < self.coordinator.busy_until {
            return Ok(1);
        }
        self.coordinator.session = Some(id.clone());
        self.captures[n].stopping = true;
        if self.coordinator.believes_zero {
            self.captures[n].is_finished = true;
            return Ok(0);
        }
        if !std::mem::replace(&mut self.coordinator.has_counted, true) {
            return Ok(2);
        }
        let left = self.carried(n);
        if left == 0 && self.captures[n].is_finished { Ok(0) } else { Ok(left.max(1)) }
    }

    /// What it does as time passes.
    pub(crate) fn live_coordinator(&mut self) {
        let Some(id) = self.coordinator.session.clone() else { return };
        let is_listed = self.ghosts.iter().any(|(_, ghost, _)| ghost == &id);
        let Some(n) = self.captures.iter().position(|c| c.id() == id) else {
            if !is_listed {
                self.coordinator.session = None;
                self.coordinator.has_counted = false;
            }
            return;
        };
        if self.carried(n) > 0 || self.coordinator.is_slow {
            self.coordinator.empty_since = None;
            return;
        }
        let since = *self.coordinator.empty_since.get_or_insert(self.now);
        if self.now - since >= 2_000 {
            self.captures[n].is_finished = true;
            self.coordinator.completed.push(id);
        }
    }

    /// The coordinator's process is killed: nobody owns while its lease runs, it stays listed for 5 s more, and as long
    /// do the maintainers that sat there not answer (recorded cdc-new-more 09).
    pub(crate) fn crash_coordinator(&mut self) {
        let gone = self.owner;
        self.stays_down = 600_000;
        self.restart(gone, self.captures[gone].version);
        self.no_owner_until = self.now + 9_000;
        self.coordinator.busy_until = self.now + 14_000;
        self.coordinator.no_tables_until = self.now + 14_500;
        for (n, _, until) in &mut self.ghosts {
            if *n == gone {
                *until = self.now + 14_000;
            }
        }
    }
}
