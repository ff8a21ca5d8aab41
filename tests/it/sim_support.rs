//! Helpers of the simulator's tests: worlds without a server, and an HTTP client that shows the bytes as they came.

use std::collections::BTreeMap;

use serde_json::Value;
use tiroll::sim::scenario::Scenario;
use tiroll::sim::world::{Addresses, World};
use tiroll::sim::{Options, Running, Time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The day of the recordings.
pub(crate) const EPOCH_MS: u64 = 1_796_072_400_000;

/// The lab of the recordings: three captures, two changefeeds over the same tables, moves of just under a second.
pub(crate) fn lab(tables: usize, captures: usize, more: &str) -> Scenario {
    lab_with(tables, captures, "", more)
}

pub(crate) fn lab_with(tables: usize, captures: usize, cluster: &str, more: &str) -> Scenario {
    let text = format!(
        "name: lab
seed: 7
databases:
  - name: lab
    tables: [{{ prefix: t, count: {tables} }}]
clusters:
  - version: v8.5.3
    captures: {captures}
{cluster}
    changefeeds:
      - {{ id: cf-a, databases: [lab] }}
      - {{ id: cf-b, databases: [lab] }}
tidb: {{ servers: 2, version: v8.5.3 }}
pd: {{ versions: [v8.5.4] }}
{more}
"
    );
    Scenario::from_yaml("lab.yaml", &text).unwrap()
}

pub(crate) fn world(scenario: &Scenario) -> World {
    World::new(scenario, &Addresses::usual(scenario), EPOCH_MS)
}

/// A served scenario whose time stands still.
pub(crate) async fn served(scenario: Scenario) -> Running {
    let options = Options { speed: 1.0, time: Time::Manual };
    tiroll::sim::start(scenario, options).await.unwrap()
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Raw {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Asks and expects an answer.
pub(crate) async fn ask(address: &str, method: &str, path: &str, body: &str) -> Raw {
    try_ask(address, method, path, body).await.unwrap()
}

pub(crate) async fn get(address: &str, path: &str) -> Raw {
    ask(address, "GET", path, "").await
}

/// Asks the control server to act.
pub(crate) async fn control(url: &str, action: &str, body: Value) -> Raw {
    ask(url, "POST", &format!("/{action}"), &body.to_string()).await
}

pub(crate) async fn try_ask(address: &str, method: &str, path: &str, body: &str) -> std::io::Result<Raw> {
    let address = address.trim_start_matches("http://");
    ask_as(address, address, method, path, body).await
}

/// Asks with a `Host` header of one's own.
pub(crate) async fn ask_as(address: &str, host: &str, method: &str, path: &str, body: &str) -> std::io::Result<Raw> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    parse(&bytes).ok_or_else(|| std::io::Error::other("the connection ended without an answer"))
}

fn parse(bytes: &[u8]) -> Option<Raw> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let chunked = headers.get("transfer-encoding").is_some_and(|it| it == "chunked");
    let body = if chunked { unchunk(body) } else { body.to_owned() };
    Some(Raw { status, headers, body })
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        body.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}

/// Tables of each capture by address, as the state has them.
pub(crate) fn tables(world: &mut World) -> BTreeMap<String, usize> {
    let state = world.state();
    let mut by_address = BTreeMap::new();
    for capture in state.captures {
        *by_address.entry(capture.address).or_insert(0) += capture.tables;
    }
    by_address
}

/// The id of the capture that runs at an address.
pub(crate) fn id_at(world: &mut World, address: &str) -> String {
    let state = world.state();
    let mut running = state.captures.into_iter().filter(|it| it.address == address && it.version.is_some());
    running.next().unwrap().id
}

/// The address of the owner.
pub(crate) fn owner(world: &mut World) -> Option<String> {
    world.state().captures.into_iter().find(|it| it.is_owner).map(|it| it.address)
}
