//! Which failure an answer is: status, code and message read together (field report 2).

use std::sync::Arc;

use serde_json::Value;

use super::http::Answer;
use crate::cluster::{Failure, FailureKind};

/// Bytes of a body kept for the screen.
const RAW: usize = 4_096;
/// Characters of a message shown in one line.
const MESSAGE: usize = 400;

/// The error of a `TiCDC` answer that is not a success.
pub fn cdc_failure(answer: &Answer) -> Failure {
    let (message, code) = message_and_code(&answer.body);
    let kind = classify(answer.status, &code, &message, answer.body.is_empty());
    build(answer, kind, &code, &message)
}

/// The error of a `TiDB` answer: plain text under 400, an empty 500, or a 404 (contract section 7.1).
pub fn tidb_failure(answer: &Answer) -> Failure {
    let text = answer.text();
    let kind = match answer.status {
        404 => FailureKind::NoRoute,
        401 | 403 => FailureKind::Unauthorized,
        400 => FailureKind::TidbRefused,
        500 if answer.body.is_empty() => FailureKind::Empty500,
        _ => FailureKind::Unexpected,
    };
    build(answer, kind, "", &text)
}

/// A success whose body is not what the contract says.
pub fn malformed(answer: &Answer, why: &str) -> Failure {
    build(answer, FailureKind::Malformed, "", why)
}

/// A failure of this kind, said of this answer.
pub fn build(answer: &Answer, kind: FailureKind, code: &str, message: &str) -> Failure {
    Failure {
        kind,
        request: Arc::from(answer.request.as_str()),
        status: Some(answer.status),
        code: (!code.is_empty()).then(|| Arc::from(code)),
        message: Arc::from(one_line(message).as_str()),
        raw: Arc::from(raw(&answer.body).as_str()),
    }
}

/// `error_msg` and `error_code`, read leniently: whatever is there, wherever it stands (contract section 10.9).
pub fn message_and_code(body: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(body);
    for value in serde_json::Deserializer::from_slice(body).into_iter::<Value>().map_while(Result::ok) {
        let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(message) = field("error_msg") {
            return (message, field("error_code").unwrap_or_default());
        }
    }
    (text.into_owned(), String::new())
}

/// The decision table. `code` may be empty; `message` is the server's text.
pub fn classify(status: u16, code: &str, message: &str, is_empty: bool) -> FailureKind {
    let is = |name: &str| code.contains(name) || message.contains(name);
    let says = |text: &str| message.contains(text);
    match status {
        401 => return FailureKind::Unauthorized,
        404 => return FailureKind::NoRoute,
        500 if is_empty => return FailureKind::Empty500,
        _ => {}
    }
    if is("ErrSchedulerRequestFailed") {
        return if says("only one capture alive") {
            FailureKind::OnlyOneCapture
        } else if says("cannot drain the owner") {
            FailureKind::CannotDrainOwner
        } else if says("drain already in progress") {
            FailureKind::OtherDrain
        } else if says("not all captures initialized") {
            FailureKind::NotInitialized
        } else {
            FailureKind::Unexpected
        };
    }
    let by_code = [
        ("ErrCaptureNotExist", FailureKind::NoSuchCapture),
        ("ErrChangeFeedNotExists", FailureKind::NoSuchChangefeed),
        ("ErrServerIsNotReady", FailureKind::NotReady),
        ("ErrCaptureNotInitialized", FailureKind::NotReady),
        ("ErrUpstreamManagerNotReady", FailureKind::NotReady),
        ("ErrOwnerNotFound", FailureKind::NoOwner),
        ("ErrNotOwner", FailureKind::NoOwner),
        ("ErrRequestForwardErr", FailureKind::NoOwner),
        ("ErrClusterIsUnhealthy", FailureKind::Unhealthy),
        ("ErrVersionIncompatible", FailureKind::IncompatibleTikv),
        ("ErrCredentialNotFound", FailureKind::Unauthorized),
        ("ErrUnauthorized", FailureKind::Unauthorized),
        ("ErrAPIInvalidParam", FailureKind::BadRequest),
    ];
    if let Some((_, kind)) = by_code.iter().find(|(name, _)| is(name)) {
        return *kind;
    }
    if says("not fully initialized") {
        return FailureKind::OwnerStarting;
    }
    let is_hop = says("dial tcp") || says("connection reset") || says("connection refused") || says("EOF");
    if says("election: no leader") || says("cluster is unavailable") || (status == 500 && code.is_empty() && is_hop) {
        return FailureKind::NoOwner;
    }
    if status == 503 { FailureKind::NotReady } else { FailureKind::Unexpected }
}

/// One line without control characters, cut to what a screen may carry.
pub fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if clean.chars().count() <= MESSAGE {
        return clean;
    }
    let mut cut: String = clean.chars().take(MESSAGE).collect();
    cut.push('…');
    cut
}

fn raw(body: &[u8]) -> String {
    let shown = body.get(..body.len().min(RAW)).unwrap_or_default();
    String::from_utf8_lossy(shown).chars().filter(|c| !c.is_control() || *c == '\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_code_has_many_meanings_and_one_status_too() {
        use FailureKind as K;
        let sched = "CDC:ErrSchedulerRequestFailed";
        let rows: &[(u16, &str, &str, K)] = &[
            (
                400,
                sched,
                "[CDC:ErrSchedulerRequestFailed]scheduler request failed, only one capture alive",
                K::OnlyOneCapture,
            ),
            (400, sched, "scheduler request failed, cannot drain the owner", K::CannotDrainOwner),
            (500, sched, "scheduler request failed, cannot drain the owner", K::CannotDrainOwner),
            (503, sched, "scheduler request failed, not all captures initialized", K::NotInitialized),
            (400, sched, "scheduler request failed, drain already in progress on capture cap-c1", K::OtherDrain),
            (400, sched, "scheduler request failed, something new", K::Unexpected),
            (400, "CDC:ErrCaptureNotExist", "capture not exists, x", K::NoSuchCapture),
            (503, "CDC:ErrServerIsNotReady", "cdc server is not ready", K::NotReady),
            (503, "CDC:ErrVersionIncompatible", "TiKV v9 is not supported", K::IncompatibleTikv),
            (503, "CDC:ErrGetAllStoresFailed", "PD unreachable", K::NotReady),
            (500, "CDC:ErrOwnerNotFound", "owner not found", K::NoOwner),
            (500, "", "election: no leader", K::NoOwner),
            (
                500,
                "",
                "Get \"http://127.0.0.1:8302/api\": dial tcp 127.0.0.1:8302: connect: connection refused",
                K::NoOwner,
            ),
            (500, "", "read tcp: connection reset by peer", K::NoOwner),
            (500, "ErrRequestForwardErr", "an request can only forward to owner one time", K::NoOwner),
            (500, "", "coordinator is not fully initialized, wait a moment", K::OwnerStarting),
            (500, "CDC:ErrClusterIsUnhealthy", "TiCDC cluster is unhealthy", K::Unhealthy),
            (401, "CDC:ErrUnauthorized", "user u unauthorized", K::Unauthorized),
            (404, "", "404 page not found", K::NoRoute),
            (400, "CDC:ErrAPIInvalidParam", "EOF", K::BadRequest),
            (418, "", "teapot", K::Unexpected),
        ];
        for (status, code, message, kind) in rows {
            assert_eq!(classify(*status, code, message, false), *kind, "{status} {code} {message}");
        }
        assert_eq!(classify(500, "", "", true), K::Empty500);
    }

    #[test]
    fn control_characters_of_a_server_never_reach_the_screen() {
        assert_eq!(one_line("a\u{1b}[31mred\r\n\tb"), "a [31mred b");
        assert_eq!(one_line(&"x".repeat(1_000)).chars().count(), 401);
    }

    #[test]
    fn an_error_is_found_behind_a_glued_first_document() {
        let body = br#"{"table_ids": null}{"error_msg":"m","error_code":"CDC:ErrAPIInvalidParam"}"#;
        assert_eq!(message_and_code(body), ("m".to_owned(), "CDC:ErrAPIInvalidParam".to_owned()));
    }
}
