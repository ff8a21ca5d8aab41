//! Named outcomes of asking a server: what failed, and which of the many failures it was.
//!
//! One error code has several meanings (field report 2), and one status too, so a failure is named by status, code and
//! message read together. The raw body is kept for the screen; nothing decides on it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What asking gave: a value, or the reason why there is none.
pub type Reading<T> = Result<T, Failure>;

/// A request that gave no usable answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which failure it was.
    pub kind: FailureKind,
    /// The request, as `GET http://host:port/path`; empty where there was none.
    pub request: Arc<str>,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// The server's `error_code`, if it gave a non-empty one.
    pub code: Option<Arc<str>>,
    /// What the server (or the network) said, in one line.
    pub message: Arc<str>,
    /// The body as it came, cut to a few kilobytes; empty where there was none.
    pub raw: Arc<str>,
}

impl Failure {
    /// A failure that no server spoke of.
    pub fn local(kind: FailureKind, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            request: Arc::from(""),
            status: None,
            code: None,
            message: Arc::from(message.as_ref()),
            raw: Arc::from(""),
        }
    }

    /// The same failure, said of this request.
    #[must_use]
    pub fn of(mut self, request: impl AsRef<str>) -> Self {
        self.request = Arc::from(request.as_ref());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.words())?;
        if let Some(status) = self.status {
            write!(f, " ({status}")?;
            if let Some(code) = &self.code {
                write!(f, " {code}")?;
            }
            write!(f, ")")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({:?}, {self}, {:?})", self.kind, self.request)
    }
}

impl std::error::Error for Failure {}

/// Which failure it was. Exhaustive on purpose: a match on it is a decision table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Nothing listens there.
    Refused,
    /// No answer within the deadline.
    Timeout,
    /// The connection broke, was reset, or the name did not resolve.
    Network,
    /// TLS was refused, or one side spoke TLS and the other did not.
    Tls,
    /// The body was larger than this call may have.
    TooLarge,
    /// An answer of the right status whose body is not what the contract says: truncated, HTML, another shape.
    Malformed,
    /// 503 `CDC:ErrServerIsNotReady`: the process is starting (contract section 1.0).
    NotReady,
    /// No owner at the moment: `CDC:ErrOwnerNotFound`, `election: no leader`, `CDC:ErrNotOwner`, or the dial error of a
    /// forwarding hop with an empty code (contract section 11).
    NoOwner,
    /// `coordinator is not fully initialized`: a new architecture's owner that has just begun.
    OwnerStarting,
    /// New architecture: the node asked knows no maintainer of the changefeed. `Can't not find maintainer for
    /// changefeed: …` with an empty code, `CDC:ErrMaintainerNotFounded`, or a broken hop to the maintainer's node. It
    /// is said while a maintainer moves, until 14 s after its node died (recorded/README 18), of a changefeed that is
    /// at rest (recorded cdc-new-more 04), and by a node that does not reach itself at the address it was asked at:
    /// it looks the maintainer up with a call to that very address (contract section 1.13).
    NoMaintainer,
    /// 500 `CDC:ErrClusterIsUnhealthy`, from the health call.
    Unhealthy,
    /// 500 with an empty body: a recovered panic, or a `TiDB` that is starting or stopping (contract 1.0, 7.4).
    Empty500,
    /// 404 for the route: too old a server, a wrong method, or another program on that port.
    NoRoute,
    /// 401: the call needs credentials.
    Unauthorized,
    /// 400 `CDC:ErrCaptureNotExist`.
    NoSuchCapture,
    /// 400 `CDC:ErrChangeFeedNotExists`.
    NoSuchChangefeed,
    /// 400 `only one capture alive`.
    OnlyOneCapture,
    /// 400 `cannot drain the owner`.
    CannotDrainOwner,
    /// `drain already in progress on capture …`: somebody else's drain session.
    OtherDrain,
    /// `invalid drain epoch`: two first requests met. The next one takes a new epoch (contract section 2.2).
    DrainEpoch,
    /// `not all captures initialized` (older releases, 503).
    NotInitialized,
    /// 503 `CDC:ErrVersionIncompatible` from a drain: about `TiKV`, and retrying will not heal it.
    IncompatibleTikv,
    /// 400 `CDC:ErrAPIInvalidParam` and other refusals of what was sent.
    BadRequest,
    /// A `TiDB` that refused with a plain text 400 (contract section 7.1).
    TidbRefused,
    /// Nothing was sent: it would say nothing of this cluster, or not enough is known of it to choose the call.
    NotAsked,
    /// Any other answer: shown as it is, decided by nobody but a person.
    Unexpected,
}

impl FailureKind {
    /// The failure in a few words, for a sentence that names the server before it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Refused => "refuses connections",
            Self::Timeout => "did not answer in time",
            Self::Network => "could not be reached",
            Self::Tls => "TLS was refused",
            Self::TooLarge => "answered more than this call may carry",
            Self::Malformed => "answered something that could not be read",
            Self::NotReady => "is starting and not ready yet",
            Self::NoOwner => "has no owner to ask at the moment",
            Self::OwnerStarting => "has a coordinator that is still starting",
            Self::NoMaintainer => "finds no maintainer of the changefeed at the moment",
            Self::Unhealthy => "says the cluster is unhealthy",
            Self::Empty500 => "answered 500 without a reason",
            Self::NoRoute => "does not know this call",
            Self::Unauthorized => "wants credentials",
            Self::NoSuchCapture => "knows no such capture",
            Self::NoSuchChangefeed => "knows no such changefeed",
            Self::OnlyOneCapture => "says only one capture is alive",
            Self::CannotDrainOwner => "will not drain the owner",
            Self::OtherDrain => "is draining another capture",
            Self::DrainEpoch => "says the drain was outrun by another request",
            Self::NotInitialized => "says not all captures are initialised",
            Self::IncompatibleTikv => "says TiKV is incompatible with this TiCDC",
            Self::BadRequest => "refused the request",
            Self::TidbRefused => "refused",
            Self::NotAsked => "was not asked",
            Self::Unexpected => "answered something unexpected",
        }
    }

    /// Whether the same read may simply be asked again, here or at another endpoint. Says nothing of mutating calls:
    /// of those only the drain request repeats.
    pub const fn is_transient(self) -> bool {
        match self {
            Self::Refused
            | Self::Timeout
            | Self::Network
            | Self::NotReady
            | Self::NoOwner
            | Self::OwnerStarting
            | Self::NoMaintainer
            | Self::DrainEpoch
            | Self::Unhealthy
            | Self::Empty500
            | Self::NotInitialized => true,
            Self::Tls
            | Self::TooLarge
            | Self::Malformed
            | Self::NoRoute
            | Self::Unauthorized
            | Self::NoSuchCapture
            | Self::NoSuchChangefeed
            | Self::OnlyOneCapture
            | Self::CannotDrainOwner
            | Self::OtherDrain
            | Self::IncompatibleTikv
            | Self::BadRequest
            | Self::TidbRefused
            | Self::NotAsked
            | Self::Unexpected => false,
        }
    }
}
