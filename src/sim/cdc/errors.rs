//! Errors as `TiCDC` writes them: JSON with four spaces, the code in brackets in front of the message.

use serde::Serialize;

use crate::sim::wire::{JSON_UTF8, Reply, escape_html, indented};

#[derive(Serialize)]
struct Body<'a> {
    error_msg: &'a str,
    error_code: &'a str,
}

/// An error with a code.
pub(crate) fn error(status: u16, code: &str, message: &str) -> Reply {
    Reply::new(status, JSON_UTF8, text(code, &format!("[{code}]{message}")))
}

/// An error that has no code of its own: that of another program, passed on.
pub(super) fn plain(status: u16, message: &str) -> Reply {
    Reply::new(status, JSON_UTF8, text("", message))
}

pub(super) fn text(code: &str, message: &str) -> String {
    escape_html(&indented(&Body { error_msg: message, error_code: code }, 4))
}

/// The gate in front of everything under `/api` while a capture starts.
pub(super) fn not_ready() -> Reply {
    error(503, "CDC:ErrServerIsNotReady", "cdc server is not ready")
}

/// A body or parameter that does not parse.
pub(super) fn bad_parameter(message: &str) -> Reply {
    error(400, "CDC:ErrAPIInvalidParam", &format!("invalid api parameter: {message}"))
}

pub(super) fn no_capture(id: &str) -> Reply {
    error(400, "CDC:ErrCaptureNotExist", &format!("capture not exists, {id}"))
}

pub(super) fn no_changefeed(namespace: &str, id: &str) -> Reply {
    error(400, "CDC:ErrChangeFeedNotExists", &format!("changefeed not exists, {namespace}/{id}"))
}
