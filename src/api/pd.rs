//! PD, of which only the version is asked (contract section 7.4).

use serde::Deserialize;

use super::error::cdc_failure;
use super::http::{Call, Http};
use super::wire::object;
use crate::cluster::{Address, Reading, Version};

#[derive(Deserialize)]
struct VersionBody {
    version: String,
}

/// The version a PD server names.
pub async fn version(http: &Http, at: &Address) -> Reading<Version> {
    let answer = http.send(at, &Call::get("/pd/api/v1/version")).await?;
    if answer.status != 200 {
        return Err(cdc_failure(&answer));
    }
    let body: VersionBody = object(&answer)?;
    Version::parse(&body.version).map_err(|e| answer.malformed(e.to_string()))
}
