//! Exchanges with real servers, as they were recorded under `tests/fixtures/recorded`.
//!
//! A file holds either one exchange or a sequence of samples. An exchange keeps the exact body as text; a sequence has
//! a shape of its own in each file and is handed out as it is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// The folders of recordings.
pub(crate) const FOLDERS: [&str; 6] =
    ["cdc-classic", "cdc-classic-more", "cdc-v7.5", "cdc-new", "cdc-new-more", "tidb"];

/// One file.
#[derive(Clone, Debug)]
pub(crate) enum Recording {
    /// One question and its answer.
    Exchange(Box<Exchange>),
    /// Samples over some time.
    Sequence(Value),
}

/// One question and its answer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Exchange {
    /// What was sent.
    pub(crate) request: Request,
    /// What came back.
    pub(crate) response: Response,
}

/// What was sent.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Request {
    /// `GET`, `POST` or `PUT`.
    pub(crate) method: String,
    /// Host and port of the server asked.
    pub(crate) addr: String,
    /// Path and query.
    pub(crate) path: String,
    /// The JSON sent, or a text where it was none.
    pub(crate) body: Option<Value>,
}

/// What came back.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Response {
    /// The status.
    pub(crate) status: u16,
    /// Content type, content length, transfer encoding; names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// The body.
    pub(crate) raw: String,
}

impl Request {
    /// The path without its query.
    pub(crate) fn bare_path(&self) -> &str {
        self.path.split_once('?').map_or(&self.path, |(path, _)| path)
    }
}

impl Response {
    /// The content type, if there was one.
    pub(crate) fn content_type(&self) -> Option<&str> {
        self.headers.get("content-type").map(String::as_str)
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded")
}

/// The files of a folder, without `.json`, in the order of their numbers.
pub(crate) fn files(folder: &str) -> Vec<String> {
    let number = |name: &String| name.split('-').next().and_then(|n| n.parse::<u32>().ok()).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".json").unwrap().to_owned())
        .collect();
    names.sort_by_key(number);
    names
}

/// Reads one file.
pub(crate) fn load(folder: &str, file: &str) -> Recording {
    let path = root().join(folder).join(format!("{file}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let value: Value = serde_json::from_str(&text).unwrap();
    if value.get("response").is_none() {
        return Recording::Sequence(value);
    }
    let exchange = serde_json::from_value(value).unwrap_or_else(|e| panic!("{folder}/{file}: {e}"));
    Recording::Exchange(Box::new(exchange))
}

/// Reads a file that holds one exchange.
pub(crate) fn exchange(folder: &str, file: &str) -> Exchange {
    match load(folder, file) {
        Recording::Exchange(exchange) => *exchange,
        Recording::Sequence(_) => panic!("{folder}/{file} is a sequence"),
    }
}

/// The events of the rolling restart of three captures, one after another.
pub(crate) fn rolling() -> Vec<Value> {
    let text = std::fs::read_to_string(root().join("rolling.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
