//! Integration tests.

#[cfg(test)]
mod conformance_clients;
#[cfg(test)]
mod support;
