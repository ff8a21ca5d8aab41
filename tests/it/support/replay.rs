//! A server that gives recorded answers.

use std::sync::{Arc, Mutex};

use tiroll::cluster::Address;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::recording::{Exchange, Response};

/// The status for a question that nobody recorded: no server and no test expects it.
pub(crate) const UNRECORDED: u16 = 599;

/// A question as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Method and path without the query.
    pub(crate) line: String,
    /// The body.
    pub(crate) body: String,
}

/// A loopback server for as long as this value lives.
pub(crate) struct Replay {
    /// Where it listens.
    pub(crate) address: Address,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Replay {
    /// Gives each recorded answer to the method and path it was recorded for, whatever the query.
    pub(crate) async fn serve(exchanges: Vec<Exchange>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let exchanges = Arc::new(exchanges);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&exchanges), Arc::clone(&seen)));
            }
        });
        Self { address, asked, task }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(mut stream: TcpStream, exchanges: Arc<Vec<Exchange>>, seen: Arc<Mutex<Vec<Asked>>>) {
    let mut bytes = Vec::new();
    while stream.read_buf(&mut bytes).await.is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
        });
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let path = target.split('?').next().unwrap();
        seen.lock().unwrap().push(Asked { line: format!("{method} {path}"), body: body.to_owned() });
        let found = exchanges.iter().find(|e| e.request.method == method && e.request.bare_path() == path);
        let answer = found.map_or_else(
            || format!("HTTP/1.1 {UNRECORDED} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            |exchange| wire(&exchange.response),
        );
        let _ = stream.write_all(answer.as_bytes()).await;
        return;
    }
}

/// The recorded answer as it went over the wire, chunked where it was.
fn wire(response: &Response) -> String {
    let mut out = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", response.status);
    for (name, value) in response.headers.iter().filter(|(name, _)| *name != "connection") {
        for part in [name, ": ", value, "\r\n"] {
            out.push_str(part);
        }
    }
    out += "\r\n";
    if response.headers.contains_key("transfer-encoding") {
        out + &format!("{:x}\r\n{}\r\n0\r\n\r\n", response.raw.len(), response.raw)
    } else {
        out + &response.raw
    }
}
