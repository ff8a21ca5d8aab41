//! PD calls.

use serde::Deserialize;

use super::error::{malformed, tidb_failure};
use super::http::{Deadline, Http, Method};
use super::json;
use crate::cluster::{Address, Reading, Version};

#[derive(Deserialize)]
struct VersionAnswer {
    version: String,
}

/// `/pd/api/v1/version` (contract section 7.4).
pub async fn version(http: &Http, at: &Address) -> Reading<Version> {
    let answer = http.send(Method::Get, at, "/pd/api/v1/version", None, Deadline::Other).await?;
    if answer.status != 200 {
        return Err(tidb_failure(&answer));
    }
    json::value(&answer.body)
        .and_then(json::typed::<VersionAnswer>)
        .and_then(|wire| Version::parse(&wire.version).map_err(|error| error.to_string()))
        .map_err(|why| malformed(&answer, &why))
}
