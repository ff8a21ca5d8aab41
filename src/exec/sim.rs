//! `sim=URL`: asks the control server of a simulator.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::Executor;
use crate::api::http::{BuildError, Deadline, Http, Method, Options};
use crate::cluster::{Failure, FailureKind, Reading};
use crate::rollout::effect::{Action, ActionOutcome, Verb};

/// The executor.
#[derive(Clone, Debug)]
pub struct SimExecutor {
    http: Http,
    control: String,
}

impl SimExecutor {
    /// An executor for the simulator whose control server is at this URL.
    pub fn new(control: &str) -> Result<Self, BuildError> {
        Ok(Self { http: Http::new(Options::default())?, control: control.trim_end_matches('/').to_owned() })
    }

    /// How much faster than life the simulator runs, by its own word.
    pub async fn speed(&self) -> Reading<f64> {
        let url = format!("{}/state", self.control);
        let answer = self.http.send_to(Method::Get, &url, None, Deadline::Other).await?;
        let state: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        state.get("speed").and_then(Value::as_f64).filter(|speed| *speed > 0.0).ok_or_else(|| {
            Failure::local(FailureKind::Malformed, "the state of the simulator names no speed").of(&answer.request)
        })
    }

    async fn post(&self, verb: &str, body: &Value) -> ActionOutcome {
        let url = format!("{}/{verb}", self.control);
        match self.http.send_to(Method::Post, &url, Some(body), Deadline::Upgrade).await {
            Ok(answer) if answer.status == 200 => {
                ActionOutcome::Returned { detail: format!("the simulator did: {verb}") }
            }
            Ok(answer) => ActionOutcome::Failed { message: format!("{} {}", answer.status, answer.text()) },
            Err(why) => ActionOutcome::Failed { message: format!("the control server {why}") },
        }
    }
}

impl Executor for SimExecutor {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn perform(&self, action: Action) -> BoxFuture<'_, ActionOutcome> {
        async move {
            let verb = match action.verb {
                Verb::Restart => "restart",
                Verb::Start => "start",
            };
            let body = match &action.version {
                Some(version) => {
                    json!({ "address": action.address, "version": version, "forced": action.forced })
                }
                None => json!({ "address": action.address, "forced": action.forced }),
            };
            self.post(verb, &body).await
        }
        .boxed()
    }
}
