//! What an answer that is no success means. Status, code and message are read together (field report 2): one code has
//! four meanings and one status has more.

use std::sync::Arc;

use serde::Deserialize;

use super::http::Answer;
use crate::cluster::{Failure, FailureKind};

/// The raw body kept for the screen, in bytes.
const RAW_LIMIT: usize = 4 * 1024;
/// The message kept, in characters.
const MESSAGE_LIMIT: usize = 500;

/// The error document of `TiCDC` (contract section 2.1). Plain Go errors come with an empty code.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ErrorBody {
    #[serde(default)]
    error_msg: String,
    #[serde(default)]
    error_code: String,
}

impl ErrorBody {
    /// Reads one, if that is what the bytes are.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        let body: Self = serde_json::from_slice(bytes).ok()?;
        (!body.error_msg.is_empty() || !body.error_code.is_empty()).then_some(body)
    }
}

/// Names the failure of a `TiCDC` or PD answer by status, `error_code` and message together. `message` is empty where
/// the body was.
pub fn classify(status: u16, code: &str, message: &str) -> FailureKind {
    let says = |text: &str| message.contains(text);
    match (status, code.strip_prefix("CDC:").unwrap_or(code)) {
        (401, _) => FailureKind::Unauthorized,
        (404, "") => FailureKind::NoRoute,
        (_, "ErrServerIsNotReady" | "ErrCaptureNotInitialized" | "ErrUpstreamManagerNotReady") => FailureKind::NotReady,
        // The forward limit is met while ownership is unsettled (contract section 1.0).
        (_, "ErrOwnerNotFound" | "ErrNotOwner" | "ErrRequestForwardErr") => FailureKind::NoOwner,
        (_, "ErrMaintainerNotFounded") => FailureKind::NoMaintainer,
        (_, "ErrClusterIsUnhealthy") => FailureKind::Unhealthy,
        (_, "ErrCaptureNotExist") => FailureKind::NoSuchCapture,
        (_, "ErrChangeFeedNotExists") => FailureKind::NoSuchChangefeed,
        (_, "ErrSchedulerRequestFailed") => match () {
            () if says("only one capture alive") => FailureKind::OnlyOneCapture,
            () if says("cannot drain the owner") => FailureKind::CannotDrainOwner,
            () if says("drain already in progress") => FailureKind::OtherDrain,
            () if says("invalid drain epoch") => FailureKind::DrainEpoch,
            () if says("not all captures initialized") => FailureKind::NotInitialized,
            () => FailureKind::Unexpected,
        },
        (503, "ErrVersionIncompatible") => FailureKind::IncompatibleTikv,
        (400, "") if says("HTTP request to an HTTPS server") => FailureKind::Tls,
        (400, "ErrAPIInvalidParam") => FailureKind::BadRequest,
        (400, code) if !code.is_empty() => FailureKind::BadRequest,
        (500, "") if message.is_empty() => FailureKind::Empty500,
        (500, "") if says("election: no leader") => FailureKind::NoOwner,
        (500, "") if says("coordinator is not fully initialized") => FailureKind::OwnerStarting,
        (500, "") if says("TiCDC cluster is unavailable, please try again later") => FailureKind::NoOwner,
        (500, "") if says("find maintainer for changefeed") => FailureKind::NoMaintainer,
        (500, "") if is_broken_hop(message) && is_to_maintainer(message) => FailureKind::NoMaintainer,
        (500, "") if is_broken_hop(message) => FailureKind::NoOwner,
        _ => FailureKind::Unexpected,
    }
}

/// Whether a message is Go's error of a request that one capture forwarded to an owner that is gone: while the lease
/// of a dead owner runs, every forwarded call ends so, with an empty code (contract section 11).
fn is_broken_hop(message: &str) -> bool {
    let is_request = ["Get \"", "Post \"", "Put \""].iter().any(|verb| message.starts_with(verb));
    let is_network = ["dial tcp", "read tcp", "write tcp", "EOF", "connection refused", "connection reset"];
    is_request && is_network.iter().any(|word| message.contains(word))
}

/// Whether the hop that broke was to a maintainer: the tables of a changefeed are forwarded to it, never to the owner
/// (contract section 1.13).
fn is_to_maintainer(message: &str) -> bool {
    let url = message.split('"').nth(1).and_then(|url| url.split('?').next()).unwrap_or_default();
    url.split_once("/changefeeds/").is_some_and(|(_, rest)| rest.ends_with("/tables"))
}

/// The failure in a `TiCDC` answer that is no success.
pub fn cdc_failure(answer: &Answer) -> Failure {
    let (code, message) = match ErrorBody::read(&answer.body) {
        Some(body) => (body.error_code, body.error_msg),
        None => (String::new(), plain_text(answer)),
    };
    failure(answer, answer.status, &code, &message)
}

/// The failure in an error document that came after another document, under a status of success (contract 1.7).
pub(super) fn glued_failure(answer: &Answer, error: &ErrorBody) -> Failure {
    failure(answer, 400, &error.error_code, &error.error_msg)
}

fn failure(answer: &Answer, status: u16, code: &str, message: &str) -> Failure {
    let mut failure = answer.failure(classify(status, code, message), without_prefix(code, message));
    failure.code = (!code.is_empty()).then(|| Arc::from(code));
    failure
}

/// The failure in a `TiDB` answer that is no success: errors are plain text under 400, and 500 is empty while the
/// server starts or stops (contract sections 7.1 and 7.4).
pub fn tidb_failure(answer: &Answer) -> Failure {
    let message = plain_text(answer);
    let kind = match answer.status {
        400 if message.contains("HTTP request to an HTTPS server") => FailureKind::Tls,
        400 => FailureKind::TidbRefused,
        401 => FailureKind::Unauthorized,
        404 => FailureKind::NoRoute,
        500 if answer.body.is_empty() => FailureKind::Empty500,
        _ => FailureKind::Unexpected,
    };
    answer.failure(kind, message)
}

/// What an answer that is no error document says, with a redirect spelled out.
fn plain_text(answer: &Answer) -> String {
    match &answer.location {
        Some(target) => format!("points to {target}, and redirects are not followed"),
        None => String::from_utf8_lossy(&answer.body).trim().to_owned(),
    }
}

/// `[CDC:ErrX]text` without the code, which is kept beside it.
fn without_prefix<'a>(code: &str, message: &'a str) -> &'a str {
    let rest = message.strip_prefix('[').and_then(|m| m.strip_prefix(code)).and_then(|m| m.strip_prefix(']'));
    rest.filter(|_| !code.is_empty()).unwrap_or(message)
}

/// A text as one line without control characters, cut to a length a screen can bear.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MESSAGE_LIMIT));
    let mut count = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        if count > 0 {
            out.push(' ');
        }
        for letter in word.chars() {
            if count >= MESSAGE_LIMIT {
                out.push('…');
                return out;
            }
            out.push(letter);
            count += 1;
        }
        count += 1;
    }
    out
}

/// A body as it came, cut to a few kilobytes.
pub(super) fn excerpt(body: &[u8]) -> String {
    let cut = body.get(..RAW_LIMIT).unwrap_or(body);
    let mut text = String::from_utf8_lossy(cut).into_owned();
    if body.len() > RAW_LIMIT {
        text.push('…');
    }
    text
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
