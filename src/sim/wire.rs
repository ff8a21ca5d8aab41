//! Answers as they go over the wire: status, content type, body, to the byte as recorded.
//!
//! The shapes are written here on their own, not shared with the clients, so that the two can disagree.

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

/// What a request asks, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// The `Host` header; empty without one.
    pub(crate) host: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The path in its parts: `/api/v1/status` is `["api", "v1", "status"]`.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.path.trim_start_matches('/').split('/').collect()
    }

    /// The value of a parameter of the query, not decoded beyond `%2C`, which is all that is asked of it.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.replace("%2C", ",").replace("%2c", ","))
    }

    /// Path and query together.
    pub(crate) fn uri(&self) -> String {
        if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) }
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) nosniff: bool,
    pub(crate) body: String,
    /// Close the connection instead.
    pub(crate) drop: bool,
}

/// What comes of a request when it arrives.
#[derive(Debug, Clone)]
pub(crate) enum Step<C> {
    /// The answer is there at once.
    Done(Reply),
    /// It comes after this many virtual milliseconds, and says how things are then.
    Wait(u64, C),
}

pub(crate) const JSON_UTF8: &str = "application/json; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT_UTF8: &str = "text/plain; charset=utf-8";

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        Self { status, content_type: Some(content_type.to_owned()), nosniff: false, body: body.into(), drop: false }
    }

    /// No body, and no content type either.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, content_type: None, nosniff: false, body: String::new(), drop: false }
    }

    /// The connection ends without an answer.
    pub(crate) fn dropped() -> Self {
        Self { drop: true, ..Self::empty(500) }
    }

    pub(crate) fn indented(status: u16, value: &impl Serialize) -> Self {
        Self::new(status, JSON_UTF8, indented(value, 4))
    }

    pub(crate) fn compact(status: u16, value: &impl Serialize) -> Self {
        Self::new(status, JSON_UTF8, compact(value))
    }
}

/// JSON without white space.
pub(crate) fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// JSON indented by this many spaces.
pub(crate) fn indented(value: &impl Serialize, spaces: usize) -> String {
    let indent = " ".repeat(spaces);
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
    if value.serialize(&mut serializer).is_err() {
        return String::new();
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Go escapes these three wherever they stand in a string.
pub(crate) fn escape_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
