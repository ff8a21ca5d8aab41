//! Who else takes part in a rollout: people who attach from other terminals, and the program that calls one.

use tokio::sync::watch;

use super::keep::Place;
use super::on_wait::{Call, OnWait};
use crate::driver::Started;
use crate::driver::link::{self, Link};

/// All of them, as long as the rollout runs.
pub(super) struct Company {
    id: String,
    link: Link,
    on_wait: Option<OnWait>,
}

impl Company {
    /// Lets people attach from now on, and calls one when one is needed.
    pub(super) fn invite(started: &Started, place: &Place, on_wait: Vec<String>, goes_on: bool) -> Self {
        let link = link::serve(started.handle.clone(), place.socket());
        let id = place.id.to_string();
        let call = Call { command: on_wait, rollout: id.clone(), goes_on };
        let on_wait = (!call.command.is_empty()).then(|| OnWait::start(call, started.handle.clone()));
        Self { id, link, on_wait }
    }

    /// The rollout's id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// How many are attached who could answer a question.
    pub(super) fn steering(&self) -> watch::Receiver<usize> {
        self.link.steering()
    }

    /// Tells everybody the end. A call that is under way is waited for.
    pub(super) async fn part(self) {
        self.link.close().await;
        if let Some(on_wait) = self.on_wait {
            on_wait.finish().await;
        }
    }
}
