//! What PD says of itself.

use super::answer::Reading;
use super::ids::Address;
use super::version::Version;

/// One PD server and the version it named at `/pd/api/v1/version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdReading {
    /// Its client address, as configured.
    pub address: Address,
    /// Its version.
    pub version: Reading<Version>,
}
