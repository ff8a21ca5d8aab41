//! The one http layer. Nothing else in the program may know `reqwest`.
//!
//! It owns deadlines, body caps and the naming of what went wrong below HTTP. It refuses to know what an answer means:
//! every status is an [`Answer`], and only a request that got none is a [`Failure`].

use std::error::Error as _;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, LOCATION};
use serde::Serialize;
use url::Url;

use super::error::{excerpt, one_line};
use crate::cluster::{Address, Failure, FailureKind, Reading};

/// How long each kind of call may take, from the first byte sent to the last byte read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// `/upgrade/*`: starting waits for the DDL owner, up to 10 s by itself (contract section 7.2).
    pub upgrade: Duration,
    /// Drain and resign, which wait for the owner.
    pub owner: Duration,
    /// Everything else.
    pub other: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { upgrade: Duration::from_secs(30), owner: Duration::from_secs(10), other: Duration::from_secs(5) }
    }
}

/// How the http layer behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How long calls may take.
    pub deadlines: Deadlines,
    /// With it, every server is spoken to over `https`; without it, over plain `http`.
    pub tls: Option<Tls>,
}

/// What `https` needs.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The certificates to trust, as a PEM bundle. The system's own are not consulted: a machine without any would
    /// not even be able to build the client.
    pub ca_pem: Arc<[u8]>,
}

/// What kind of call it is: it decides the deadline and the largest body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ordinary read.
    Read,
    /// A read whose answer grows with the number of tables.
    Tables,
    /// A call that changes something at the owner: drain, resign.
    Owner,
    /// `/upgrade/*`.
    Upgrade,
}

const MIB: usize = 1024 * 1024;

impl Kind {
    /// The largest body, in bytes. A hundred thousand tables are about 2 MiB of ids; details repeat the configuration.
    const fn cap(self) -> usize {
        match self {
            Self::Tables => 32 * MIB,
            Self::Read | Self::Owner | Self::Upgrade => MIB,
        }
    }

    const fn deadline(self, deadlines: &Deadlines) -> Duration {
        match self {
            Self::Read | Self::Tables => deadlines.other,
            Self::Owner => deadlines.owner,
            Self::Upgrade => deadlines.upgrade,
        }
    }

    /// Whether the request changes something. Such a request never travels on a connection that was kept: a server
    /// that has just restarted would leave open whether it was received.
    const fn is_mutating(self) -> bool {
        matches!(self, Self::Owner | Self::Upgrade)
    }
}

/// The methods the servers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
}

impl Method {
    /// The word in the request line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    const fn native(self) -> reqwest::Method {
        match self {
            Self::Get => reqwest::Method::GET,
            Self::Post => reqwest::Method::POST,
            Self::Put => reqwest::Method::PUT,
        }
    }
}

/// One request, without the server it goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    method: Method,
    kind: Kind,
    segments: Vec<String>,
    query: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
}

impl Call {
    /// A request for a path given by its segments, each escaped as needed: names come from people and servers.
    pub fn new<S: AsRef<str>>(method: Method, kind: Kind, segments: impl IntoIterator<Item = S>) -> Self {
        let segments = segments.into_iter().map(|s| s.as_ref().to_owned()).collect();
        Self { method, kind, segments, query: Vec::new(), body: None }
    }

    /// An ordinary `GET` of a fixed path such as `/api/v1/status`.
    pub fn get(path: &str) -> Self {
        Self::fixed(Method::Get, Kind::Read, path)
    }

    /// A request for a fixed path.
    pub fn fixed(method: Method, kind: Kind, path: &str) -> Self {
        Self::new(method, kind, path.trim_start_matches('/').split('/'))
    }

    /// The same request as another kind of call.
    #[must_use]
    pub const fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// The same request with one more query parameter.
    #[must_use]
    pub fn with_query(mut self, key: &'static str, value: &str) -> Self {
        self.query.push((key, value.to_owned()));
        self
    }

    /// The same request with a JSON body.
    #[must_use]
    pub fn with_json<T: Serialize>(mut self, body: &T) -> Self {
        // Only strings and maps of strings are sent; they always serialise.
        self.body = Some(serde_json::to_vec(body).unwrap_or_default());
        self
    }

    /// Path and query as they go over the wire.
    fn target(&self, base: &mut Url) {
        if let Ok(mut path) = base.path_segments_mut() {
            path.clear().extend(&self.segments);
        }
        if !self.query.is_empty() {
            base.query_pairs_mut().extend_pairs(&self.query);
        }
    }
}

/// Any answer, whatever its status.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The request, as `GET http://host:port/path`.
    pub request: Arc<str>,
    /// The HTTP status.
    pub status: u16,
    /// The content type, empty where there was none. Nothing decides on it: errors come as `text/plain` too
    /// (contract section 1.6).
    pub content_type: Arc<str>,
    /// Where a redirect points. It is not followed: a request meant for one node must not end at another.
    pub location: Option<Arc<str>>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A failure said of this answer.
    pub fn failure(&self, kind: FailureKind, message: impl AsRef<str>) -> Failure {
        Failure {
            kind,
            request: Arc::clone(&self.request),
            status: Some(self.status),
            code: None,
            message: Arc::from(one_line(message.as_ref())),
            raw: Arc::from(excerpt(&self.body)),
        }
    }

    /// The failure for a body that is not what the contract says.
    pub fn malformed(&self, why: impl AsRef<str>) -> Failure {
        self.failure(FailureKind::Malformed, why)
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({} -> {} {:?})", self.request, self.status, excerpt(&self.body))
    }
}

/// The client all calls go through. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Http {
    reads: reqwest::Client,
    mutations: reqwest::Client,
    deadlines: Deadlines,
    scheme: &'static str,
}

impl Http {
    /// Builds the client, once for the whole program.
    pub fn new(options: &Options) -> Reading<Self> {
        // Fails only if a provider is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let pem = options.tls.as_ref().map(|tls| Arc::clone(&tls.ca_pem)).unwrap_or_default();
        let trusted = if pem.is_empty() {
            Vec::new()
        } else {
            reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|e| Failure::local(FailureKind::Tls, format!("the CA bundle could not be read: {e}")))?
        };
        let client = |idle_per_host| {
            reqwest::Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .tls_certs_only(trusted.clone())
                .http1_only()
                .pool_max_idle_per_host(idle_per_host)
                .build()
                .map_err(|e| Failure::local(FailureKind::Tls, format!("the http client could not be built: {e}")))
        };
        Ok(Self {
            reads: client(8)?,
            mutations: client(0)?,
            deadlines: options.deadlines,
            scheme: if options.tls.is_some() { "https" } else { "http" },
        })
    }

    /// Sends one request, once, and reads the whole answer.
    pub async fn send(&self, to: &Address, call: &Call) -> Reading<Answer> {
        let mut url = Url::parse(&format!("{}://{to}/", self.scheme))
            .map_err(|e| Failure::local(FailureKind::Network, format!("{to} is no host to connect to: {e}")))?;
        call.target(&mut url);
        let request: Arc<str> = Arc::from(format!("{} {url}", call.method.word()));
        let client = if call.kind.is_mutating() { &self.mutations } else { &self.reads };
        let mut builder = client.request(call.method.native(), url).timeout(call.kind.deadline(&self.deadlines));
        if let Some(body) = &call.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let broken = |e: &reqwest::Error| below_http(e).of(&request);
        let mut response = builder.send().await.map_err(|e| broken(&e))?;
        let header = |name| response.headers().get(name).map(|v| Arc::from(String::from_utf8_lossy(v.as_bytes())));
        let mut answer = Answer {
            request: Arc::clone(&request),
            status: response.status().as_u16(),
            content_type: header(CONTENT_TYPE).unwrap_or_default(),
            location: header(LOCATION),
            body: Vec::new(),
        };
        let cap = call.kind.cap();
        while let Some(chunk) = response.chunk().await.map_err(|e| broken(&e))? {
            if answer.body.len() + chunk.len() > cap {
                answer.body.truncate(cap);
                return Err(answer.failure(FailureKind::TooLarge, format!("more than {} KiB", cap / 1024)));
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

/// Names what broke below HTTP.
fn below_http(error: &reqwest::Error) -> Failure {
    let mut kind = if error.is_timeout() { FailureKind::Timeout } else { FailureKind::Network };
    let mut message = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<rustls::Error>() {
            kind = FailureKind::Tls;
        }
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            kind = match io.kind() {
                io::ErrorKind::ConnectionRefused => FailureKind::Refused,
                io::ErrorKind::TimedOut => FailureKind::Timeout,
                _ if is_tls(io) => FailureKind::Tls,
                _ => kind,
            };
        }
        source = cause.source();
        if source.is_none() {
            // Only the innermost cause: the outer ones repeat the address, which the request names already.
            let _ = write!(message, "{cause}");
        }
    }
    if message.is_empty() {
        message = error.to_string();
    }
    Failure::local(kind, one_line(&message))
}

/// Whether a TLS error hides in an input error, which may itself be wrapped in another.
fn is_tls(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<rustls::Error>() || inner.downcast_ref::<io::Error>().is_some_and(is_tls))
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
