//! `manual`: a person does it. The program says what to run and notices by itself that it happened.

use futures::future::BoxFuture;

use super::Executor;
use crate::rollout::effect::{Action, ActionOutcome, Component, Verb};

/// The executor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manual;

impl Executor for Manual {
    fn name(&self) -> &'static str {
        "manual"
    }

    fn perform(&self, action: Action) -> BoxFuture<'_, ActionOutcome> {
        let text = words(&action);
        Box::pin(async move { ActionOutcome::Asked { text } })
    }
}

/// What a person is told.
fn words(action: &Action) -> String {
    let unit = match action.component {
        Component::Ticdc => format!("cdc-{}.service", action.address.port()),
        Component::Tidb => "tidb-<port>.service".to_owned(),
    };
    let what = action.component.word();
    match (action.verb, &action.version) {
        (Verb::Restart, Some(version)) => format!(
            "your turn: put the {version} binary of {what} in place at {} and restart it (with systemd: systemctl restart {unit}); noticed by itself",
            action.address
        ),
        (Verb::Restart, None) => format!(
            "your turn: restart {what} at {} on the binary it has (with systemd: systemctl restart {unit}); noticed by itself",
            action.address
        ),
        (Verb::Start, _) => format!(
            "your turn: start {what} at {} (with systemd: systemctl start {unit}); noticed by itself",
            action.address
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Address, Version};

    #[test]
    fn a_person_is_told_node_version_and_that_it_will_be_noticed() {
        let action = Action {
            verb: Verb::Restart,
            component: Component::Ticdc,
            address: Address::parse("10.0.1.12:8300").unwrap(),
            version: Some(Version::parse("v8.5.4").unwrap()),
            forced: false,
        };
        let text = words(&action);
        for part in ["10.0.1.12:8300", "v8.5.4", "noticed by itself", "cdc-8300.service"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
