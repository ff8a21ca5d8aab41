//! A server of raw bytes, for tests: it answers exactly what it is told, well formed or not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::http::{Http, Options};
use crate::cluster::{Address, Clock, Timestamp};

/// A server on a loopback port, gone with this value.
pub(super) struct Fake {
    pub(super) address: Address,
    /// The line of each request and the host it was sent to.
    requests: Arc<Mutex<Vec<(String, String)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Fake {
    /// Answers each request by its line, `GET /path?query`, with the bytes that are returned; none means silence.
    pub(super) async fn new(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self::with_body(move |line, _| answer(line)).await
    }

    /// The same, with the body of the request.
    pub(super) async fn with_body(answer: impl Fn(&str, &str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move { converse(stream, &seen, &*answer).await });
            }
        });
        Self { address, requests, task }
    }

    /// A server that answers everything alike.
    pub(super) async fn always(bytes: Vec<u8>) -> Self {
        Self::new(move |_| Some(bytes.clone())).await
    }

    /// The request lines so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(line, _)| line.clone()).collect()
    }

    /// The hosts that the requests so far named.
    pub(super) fn hosts(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(_, host)| host.clone()).collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(
    mut stream: TcpStream,
    seen: &Mutex<Vec<(String, String)>>,
    answer: &(impl Fn(&str, &str) -> Option<Vec<u8>> + Sync),
) {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        // The first byte of a TLS handshake: a server of plain HTTP answers that in plain text.
        if bytes.first() == Some(&0x16) {
            let _ = stream.write_all(&reply(400, "text/plain", "bad request")).await;
            return;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            head.lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(|value| value.trim().to_owned()))
        };
        let length = header("content-length:").map(|n| n.parse::<usize>().unwrap());
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        seen.lock().unwrap().push((line.clone(), header("host:").unwrap_or_default()));
        match answer(&line, body) {
            Some(reply) => {
                let _ = stream.write_all(&reply).await;
            }
            None => std::future::pending::<()>().await,
        }
        return;
    }
}

/// Answers by request line, which may be set while the server runs. Any other line is 404.
#[derive(Clone, Default)]
pub(super) struct Routes(Arc<Mutex<HashMap<String, Vec<u8>>>>);

impl Routes {
    /// A server with these answers, none yet.
    pub(super) async fn serve() -> (Self, Fake) {
        let routes = Self::default();
        let answers = routes.clone();
        let fake = Fake::new(move |line| {
            let found = answers.0.lock().unwrap().get(line).cloned();
            Some(found.unwrap_or_else(|| reply(404, "text/plain", "404 page not found")))
        })
        .await;
        (routes, fake)
    }

    /// Sets the answer to one request line: 200 with this JSON.
    pub(super) fn ok(&self, line: &str, body: impl AsRef<str>) -> &Self {
        self.set(line, json(200, body.as_ref()))
    }

    /// Sets the answer to one request line.
    pub(super) fn set(&self, line: &str, bytes: Vec<u8>) -> &Self {
        self.0.lock().unwrap().insert(line.to_owned(), bytes);
        self
    }
}

/// A whole answer as bytes.
pub(super) fn reply(status: u16, content_type: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A whole JSON answer as bytes.
pub(super) fn json(status: u16, body: &str) -> Vec<u8> {
    reply(status, "application/json; charset=utf-8", body)
}

/// The http layer as tests use it.
pub(super) fn http() -> Http {
    Http::new(&Options::default()).unwrap()
}

/// A clock that stands still.
pub(super) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::new(1_796_072_632_050, 10_000)
    }
}

/// An address where nothing listens.
pub(super) async fn nowhere() -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Address::new("127.0.0.1", listener.local_addr().unwrap().port())
}
