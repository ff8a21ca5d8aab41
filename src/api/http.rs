//! The one http layer: deadlines by kind of call, a cap on every body, no redirects, no proxies, and transport failures
//! told apart. Nothing else in the crate may use `reqwest`.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::{Address, Failure, FailureKind, Reading};

/// What the layer is built with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Deadline of an `/upgrade/*` call: start polls for up to 10 s (contract section 7.2).
    pub call_upgrade: Duration,
    /// Deadline of a drain or owner call.
    pub call_drain: Duration,
    /// Deadline of every other call.
    pub call_other: Duration,
    /// The largest body taken, in bytes. 100,000 table ids fit many times over.
    pub body_cap: usize,
    /// Certificates; none yet, and then every address is spoken to in plain http.
    pub tls: Option<Tls>,
}

/// The place for certificates.
#[derive(Clone, Debug)]
pub struct Tls {}

impl Default for Options {
    fn default() -> Self {
        Self {
            call_upgrade: Duration::from_secs(30),
            call_drain: Duration::from_secs(10),
            call_other: Duration::from_secs(5),
            body_cap: 32 << 20,
            tls: None,
        }
    }
}

/// Why the layer could not be built.
#[derive(Debug, thiserror::Error)]
#[error("the http client could not be built: {0}")]
pub struct BuildError(#[from] reqwest::Error);

/// Which deadline a call has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// `/upgrade/*`.
    Upgrade,
    /// Drain and owner calls.
    Drain,
    /// The rest.
    Other,
}

/// The methods in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
}

impl Method {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// An answer, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request, as `GET http://host:port/path`.
    pub request: String,
    /// The status.
    pub status: u16,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as text, whatever bytes it has.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The layer. Building one takes a while; cloning one is free.
#[derive(Clone, Debug)]
pub struct Http {
    client: reqwest::Client,
    options: Options,
}

impl Http {
    /// Builds the layer once.
    pub fn new(options: Options) -> Result<Self, BuildError> {
        // Installing a provider twice is no error of anybody's: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            // A proxy from the environment must never come between us and a node.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // Without this the build fails on machines that have no CA bundle, even for plain http.
            .tls_certs_only(Vec::<reqwest::Certificate>::new())
            .pool_max_idle_per_host(16)
            .build()?;
        Ok(Self { client, options })
    }

    /// Sends a request once and reads the answer whole, within the deadline of its kind.
    pub async fn send(
        &self,
        method: Method,
        address: &Address,
        path: &str,
        body: Option<&Value>,
        deadline: Deadline,
    ) -> Reading<Answer> {
        let url = format!("http://{address}{path}");
        self.send_to(method, &url, body, deadline).await
    }

    /// The same, to a whole URL.
    pub async fn send_to(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
        deadline: Deadline,
    ) -> Reading<Answer> {
        let request = format!("{} {url}", method.name());
        let limit = match deadline {
            Deadline::Upgrade => self.options.call_upgrade,
            Deadline::Drain => self.options.call_drain,
            Deadline::Other => self.options.call_other,
        };
        let mut builder = match method {
            Method::Get => self.client.get(url),
            Method::Post => self.client.post(url),
            Method::Put => self.client.put(url),
        };
        builder = builder.timeout(limit);
        if let Some(body) = body {
            builder = builder.json(body);
        }
        let fail = |error: &reqwest::Error| transport_failure(error, limit).of(&request);
        let mut response = builder.send().await.map_err(|error| fail(&error))?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| fail(&error))? {
            if body.len() + chunk.len() > self.options.body_cap {
                let message = format!("the body is larger than {} bytes", self.options.body_cap);
                return Err(Failure {
                    status: Some(status),
                    ..Failure::local(FailureKind::TooLarge, message).of(&request)
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { request, status, body })
    }
}

fn transport_failure(error: &reqwest::Error, limit: Duration) -> Failure {
    if error.is_timeout() {
        return Failure::local(FailureKind::Timeout, format!("no answer within {} s", limit.as_secs_f32()));
    }
    let mut text = String::new();
    let mut kind = FailureKind::Network;
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::ConnectionRefused
        {
            kind = FailureKind::Refused;
        }
        if cause.downcast_ref::<rustls::Error>().is_some() {
            kind = FailureKind::Tls;
        }
        text.clear();
        // Writing to a String cannot fail.
        let _ = write!(text, "{cause}");
        source = cause.source();
    }
    if text.is_empty() {
        text = error.to_string();
    }
    Failure::local(kind, text)
}
