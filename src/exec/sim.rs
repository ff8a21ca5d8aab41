//! `sim=URL`: asks the control server of a simulator.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::Executor;
use crate::api::http::{Call, Http, Kind, Method, Options};
use crate::cluster::ids::AddressError;
use crate::cluster::{Address, Failure, FailureKind, Reading};
use crate::rollout::effect::{Action, ActionOutcome, Verb};

/// The executor.
#[derive(Clone, Debug)]
pub struct SimExecutor {
    http: Http,
    control: Address,
}

/// Why there is no such executor.
#[derive(Debug, thiserror::Error)]
pub enum SimExecutorError {
    /// The URL names no host and port.
    #[error("the control URL names no server: {0}")]
    Url(#[from] AddressError),
    /// The http client could not be built.
    #[error("{0}")]
    Http(#[from] Failure),
}

impl SimExecutor {
    /// An executor for the simulator whose control server is at this URL.
    pub fn new(control: &str) -> Result<Self, SimExecutorError> {
        Ok(Self { http: Http::new(&Options::default())?, control: Address::parse(control)? })
    }

    /// How much faster than life the simulator runs, by its own word.
    pub async fn speed(&self) -> Reading<f64> {
        let answer = self.http.send(&self.control, &Call::get("/state").of_kind(Kind::Tables)).await?;
        let state: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        state.get("speed").and_then(Value::as_f64).filter(|speed| *speed > 0.0).ok_or_else(|| {
            Failure::local(FailureKind::Malformed, "the state of the simulator names no speed").of(&answer.request)
        })
    }

    async fn post(&self, verb: &str, body: &Value) -> ActionOutcome {
        let call = Call::fixed(Method::Post, Kind::Upgrade, verb).with_json(body);
        match self.http.send(&self.control, &call).await {
            Ok(answer) if answer.status == 200 => {
                ActionOutcome::Returned { detail: format!("the simulator did: {verb}") }
            }
            Ok(answer) => ActionOutcome::Failed {
                message: format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body)),
            },
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
