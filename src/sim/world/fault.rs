//! Faults: kept until their moment, then let happen.

use crate::sim::scenario::{Answer, ChangefeedFault, Effect, Fault, FeedState, Restart, Trigger};

use super::{Event, ProcessRef, World};

/// An answer that a fault changes, while it lasts.
#[derive(Debug)]
pub(super) struct Rule {
    process: Option<ProcessRef>,
    answer: Answer,
    until: Option<u64>,
    left: Option<u32>,
}

/// What becomes of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Altered {
    pub(crate) answer: Answer,
}

impl World {
    /// Adds a fault: it happens at once, at its time, or when its trigger comes.
    pub fn add_fault(&mut self, fault: Fault) {
        let index = self.faults.len();
        let when = fault.when.clone();
        self.faults.push(Some(fault));
        match when {
            Trigger::Now => self.set_off(index),
            Trigger::At(at) => self.plan(at.saturating_sub(self.now), Event::Fault(index)),
            _ => {}
        }
    }

    /// Names in a fault that do not exist: for the control server, which has no scenario check.
    pub fn unknown_in(&self, fault: &Fault) -> Option<String> {
        let trigger = match &fault.when {
            Trigger::Drain(name) | Trigger::TablesBelow(name, _) | Trigger::Stop(name) | Trigger::Restart(name) => {
                Some(name)
            }
            Trigger::Now | Trigger::At(_) | Trigger::Resign(_) | Trigger::UpgradeStart => None,
        };
        let process = match &fault.effect {
            Effect::Kill(name)
            | Effect::Stop(name)
            | Effect::Refuse(name, _)
            | Effect::NoReturn(name)
            | Effect::WrongVersion(name, _)
            | Effect::SlowStart(name, _)
            | Effect::FalseZero(name) => Some(name),
            Effect::Answer(answer) => answer.process.as_ref(),
            Effect::StuckTable(stuck) => stuck.process.as_ref(),
            Effect::Restart(restart) => Some(&restart.process),
            Effect::Changefeed(_) | Effect::Lag(_) => None,
        };
        let mut names = trigger.into_iter().chain(process);
        names.find(|name| self.find(name).is_none()).cloned()
    }

    pub(super) fn set_off(&mut self, index: usize) {
        let Some(fault) = self.faults[index].take() else {
            return;
        };
        match fault.effect {
            Effect::Kill(name) => {
                if let Some(process) = self.find(&name).filter(|process| self.is_running(*process)) {
                    // Nobody asked for it, so it is none of the rollout's stops.
                    self.kill_process(process);
                }
            }
            Effect::Stop(name) => {
                if let Some(process) = self.find(&name).filter(|process| self.is_running(*process)) {
                    self.stop_process(process);
                }
            }
            Effect::Refuse(name, until) => {
                let until_ms = until.0.map_or(u64::MAX, |ms| self.now + ms);
                match self.find(&name) {
                    Some(ProcessRef::Capture(slot)) => {
                        self.slots[slot].refuse_until = Some(until_ms);
                    }
                    Some(ProcessRef::Tidb(server)) => {
                        self.tidb.servers[server].refuse_until = Some(until_ms);
                    }
                    Some(ProcessRef::Pd(server)) => self.pd[server].refuse_until = Some(until_ms),
                    None => {}
                }
                if let Some(ms) = until.0 {
                    self.plan(ms, Event::Wake);
                }
            }
            Effect::Answer(answer) => {
                let process = answer.process.as_ref().and_then(|name| self.find(name));
                self.rules.push(Rule {
                    process,
                    until: answer.for_ms.map(|ms| self.now + ms),
                    left: answer.times,
                    answer,
                });
            }
            Effect::StuckTable(stuck) => {
                let process = stuck.process.as_ref().and_then(|name| self.find(name));
                let instance = match process {
                    Some(ProcessRef::Capture(slot)) => self.slots[slot].current,
                    _ => None,
                };
                if (process.is_none() || instance.is_some())
                    && let Some((feed, span)) = self.stick(instance, stuck.table.as_deref())
                    && let Some(ms) = stuck.for_ms
                {
                    self.plan(ms, Event::Unstick { feed, span });
                }
            }
            Effect::Changefeed(change) => {
                let error = change.code.map(|code| (code, change.message.unwrap_or_default()));
                for feed in self.feeds_called(&change.id) {
                    self.set_feed_state(feed, change.state, error.clone());
                }
                if let Some(ms) = change.for_ms {
                    let (id, state) = (change.id, FeedState::Normal);
                    let over = ChangefeedFault { id, state, code: None, message: None, for_ms: None };
                    self.let_happen_in(ms, Effect::Changefeed(over));
                }
            }
            Effect::NoReturn(name) => {
                if let Some(process) = self.find(&name) {
                    self.overrides_of(process).no_return = true;
                }
            }
            Effect::WrongVersion(name, version) => {
                if let Some(process) = self.find(&name) {
                    self.overrides_of(process).version = Some(version.to_string());
                }
            }
            Effect::SlowStart(name, by_ms) => {
                if let Some(process) = self.find(&name) {
                    self.overrides_of(process).slow_ms = by_ms;
                }
            }
            Effect::FalseZero(name) => {
                if let Some(ProcessRef::Capture(slot)) = self.find(&name)
                    && let Some(current) = self.slots[slot].current
                {
                    self.instances[current].false_zero = true;
                }
            }
            Effect::Restart(Restart { after_ms: 0, process, version }) => {
                if let Some(process) = self.find(&process) {
                    self.restart_by_another(process, version);
                }
            }
            Effect::Restart(later) => {
                self.let_happen_in(later.after_ms, Effect::Restart(Restart { after_ms: 0, ..later }));
            }
            Effect::Lag(lag) => {
                for feed in self.feeds_called(&lag.id) {
                    self.settle_checkpoint(feed);
                    self.feeds[feed].extra_lag_ms = lag.by_ms;
                }
            }
        }
    }

    fn let_happen_in(&mut self, ms: u64, effect: Effect) {
        self.add_fault(Fault { when: Trigger::At(self.now + ms), effect });
    }

    fn feeds_called(&self, id: &str) -> Vec<usize> {
        (0..self.feeds.len()).filter(|feed| self.feeds[*feed].id == id).collect()
    }

    /// Whether a fault changes the answer to a request, and how. Uses one of its times up.
    pub(crate) fn alter(&mut self, process: ProcessRef, method: &str, route: &str) -> Option<Altered> {
        let now = self.now;
        let rule = self.rules.iter_mut().find(|rule| {
            rule.process.is_none_or(|of| of == process)
                && rule.answer.method.as_ref().is_none_or(|of| of == method)
                && rule.answer.route.as_ref().is_none_or(|of| of == route)
                && rule.until.is_none_or(|until| now < until)
                && rule.left != Some(0)
        })?;
        if let Some(left) = &mut rule.left {
            *left -= 1;
        }
        Some(Altered { answer: rule.answer.clone() })
    }

    fn trigger(&mut self, is_it: impl Fn(&Trigger) -> bool) {
        let due: Vec<usize> = (0..self.faults.len())
            .filter(|index| self.faults[*index].as_ref().is_some_and(|fault| is_it(&fault.when)))
            .collect();
        for index in due {
            self.set_off(index);
        }
    }

    pub(super) fn trigger_drain(&mut self, name: &str, address: &str) {
        self.trigger(|when| matches!(when, Trigger::Drain(of) if of == name || of == address));
    }

    pub(super) fn trigger_resign(&mut self, cluster: &str) {
        self.trigger(|when| matches!(when, Trigger::Resign(of) if of == cluster));
    }

    pub(super) fn trigger_upgrade_start(&mut self) {
        self.trigger(|when| matches!(when, Trigger::UpgradeStart));
    }

    pub(super) fn trigger_stop(&mut self, process: ProcessRef) {
        self.trigger_process(process, |when| match when {
            Trigger::Stop(of) => Some(of),
            _ => None,
        });
    }

    pub(super) fn trigger_restart(&mut self, process: ProcessRef) {
        self.trigger_process(process, |when| match when {
            Trigger::Restart(of) => Some(of),
            _ => None,
        });
    }

    fn trigger_process(&mut self, process: ProcessRef, name_of: impl Fn(&Trigger) -> Option<&String>) {
        let due: Vec<usize> = (0..self.faults.len())
            .filter(|index| {
                let fault = self.faults[*index].as_ref();
                let name = fault.and_then(|fault| name_of(&fault.when));
                name.is_some_and(|name| self.find(name) == Some(process))
            })
            .collect();
        for index in due {
            self.set_off(index);
        }
    }

    /// The triggers that wait for a number of tables, looked at after everything that happens.
    pub(super) fn check_table_triggers(&mut self) {
        let waiting: Vec<(usize, String, usize)> = self
            .faults
            .iter()
            .enumerate()
            .filter_map(|(index, fault)| match fault.as_ref().map(|fault| &fault.when) {
                Some(Trigger::TablesBelow(name, count)) => Some((index, name.clone(), *count)),
                _ => None,
            })
            .collect();
        for (index, name, count) in waiting {
            let Some(ProcessRef::Capture(slot)) = self.find(&name) else {
                continue;
            };
            let Some(current) = self.slots[slot].current else {
                continue;
            };
            let drained = self.instances[current].drained_from.is_some();
            if drained && self.tables_by_feed(current).into_iter().sum::<usize>() < count {
                self.set_off(index);
            }
        }
    }
}
