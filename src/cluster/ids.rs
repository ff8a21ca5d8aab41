//! Names of things, each with a type of its own so that an id can never stand where an address is meant.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The id of a capture: a UUID that is fresh at every process start (contract section 0). Two entries of one address
/// with different ids are two processes, one of them usually already gone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaptureId(Arc<str>);

/// The id of a `TiCDC` cluster, `default` unless configured; several may share one PD.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(Arc<str>);

macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            /// Takes the text as it came from the server.
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(Arc::from(text.as_ref()))
            }

            /// The text as the server wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

text_id!(CaptureId);
text_id!(ClusterId);

impl CaptureId {
    /// The first group of the UUID: enough to tell two entries of one address apart on a screen.
    pub fn short(&self) -> &str {
        self.0.split('-').next().unwrap_or_default()
    }
}

/// Something of each capture. A step looks up hundreds of them, and spent a quarter of its instructions on a hash that
/// withstands chosen keys; these are the cluster's own.
pub type ByCapture<T> = HashMap<CaptureId, T, BuildHasherDefault<IdHasher>>;

/// A quick hash of ids, by multiplication: not for keys that somebody chooses.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl IdHasher {
    const fn take(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.take(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.take(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        // The lower bits choose the place, and a product has its best ones above.
        self.0.rotate_left(26)
    }
}

impl Default for ClusterId {
    fn default() -> Self {
        Self::new("default")
    }
}

/// A changefeed: its namespace (classic architecture) or keyspace (new architecture) and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChangefeedId {
    /// `default` unless the cluster uses namespaces.
    pub namespace: Arc<str>,
    /// The name the operator gave.
    pub name: Arc<str>,
}

impl ChangefeedId {
    /// A changefeed by namespace and name.
    pub fn new(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        Self { namespace: Arc::from(namespace.as_ref()), name: Arc::from(name.as_ref()) }
    }

    /// The name alone in the default namespace, `namespace/name` elsewhere: what people call it.
    pub fn label(&self) -> String {
        if &*self.namespace == "default" { self.name.to_string() } else { self.to_string() }
    }
}

impl fmt::Display for ChangefeedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A table (or partition) id as `TiCDC` lists it. Ids of system tables go up to 2^62, so never through a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TableId(pub i64);

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `host:port` of a server. Two addresses are equal when they name the same host and port: IPv6 is compared as a
/// value, so that the compressed and the long spelling agree, and host names without regard to case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: Host,
    port: u16,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Host {
    Ip(IpAddr),
    Name(Arc<str>),
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address: {why}; expected host:port, for example 10.0.1.20:8300 or [2001:db8::1]:8300")]
pub struct AddressError {
    text: String,
    why: &'static str,
}

impl Address {
    /// An address from its parts.
    pub fn new(host: &str, port: u16) -> Self {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let host = bare.parse::<IpAddr>().map_or_else(|_| Host::Name(Arc::from(bare.to_ascii_lowercase())), Host::Ip);
        Self { host, port }
    }

    /// Reads `host:port`, `[v6]:port`, and an unbracketed IPv6 address with a port after its last colon. A leading
    /// `http://` or `https://` and a trailing slash are tolerated, since that is how addresses are pasted.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let fail = |why| AddressError { text: text.to_owned(), why };
        let bare = text.trim();
        let bare = bare.strip_prefix("http://").or_else(|| bare.strip_prefix("https://")).unwrap_or(bare);
        let bare = bare.trim_end_matches('/');
        let (host, port) = bare.rsplit_once(':').ok_or_else(|| fail("the port is missing"))?;
        if host.is_empty() {
            return Err(fail("the host is missing"));
        }
        if host.contains(['/', ' ', '?', '#', '@']) {
            return Err(fail("a host has no spaces and no path"));
        }
        let port: u16 = port.parse().map_err(|_| fail("the port is not a number from 1 to 65535"))?;
        if port == 0 {
            return Err(fail("the port is not a number from 1 to 65535"));
        }
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let inner = host.trim_start_matches('[').trim_end_matches(']');
        if inner.contains(':') || is_bracketed {
            let ip: Ipv6Addr = inner.parse().map_err(|_| fail("that is no IPv6 address"))?;
            return Ok(Self { host: Host::Ip(IpAddr::V6(ip)), port });
        }
        Ok(Self::new(host, port))
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The host, without brackets.
    pub fn host(&self) -> String {
        match &self.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.to_string(),
        }
    }

    /// Whether the host is an address of this machine or a wildcard: such an advertised address cannot be reached
    /// from elsewhere (field report 42).
    pub const fn is_local(&self) -> bool {
        match &self.host {
            Host::Ip(ip) => ip.is_loopback() || ip.is_unspecified(),
            Host::Name(_) => false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.host {
            Host::Ip(IpAddr::V6(ip)) => format!("[{ip}]:{}", self.port),
            Host::Ip(ip) => format!("{ip}:{}", self.port),
            Host::Name(name) => format!("{name}:{}", self.port),
        };
        f.pad(&text)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl std::str::FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Address {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_is_compared_as_a_value_and_printed_with_brackets() {
        let spellings =
            ["[2001:db8::19b]:8300", "2001:db8::19b:8300", "[2001:0DB8:0:0::19B]:8300", "http://[2001:db8::19b]:8300/"];
        for text in spellings {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), "[2001:db8::19b]:8300", "{text}");
        }
    }

    #[test]
    fn host_names_compare_without_case() {
        assert_eq!(Address::parse("Node-A.internal:8300"), Address::parse("node-a.INTERNAL:8300"));
        assert_ne!(Address::parse("node-a:8300"), Address::parse("node-a:8301"));
    }

    #[test]
    fn a_bad_address_says_what_is_wrong_with_it() {
        for (text, why) in [
            ("10.0.0.1", "the port is missing"),
            (":8300", "the host is missing"),
            ("h:0", "the port is not a number from 1 to 65535"),
            ("h:99999", "the port is not a number from 1 to 65535"),
            ("h/x:1", "a host has no spaces and no path"),
            ("[zz::]:1", "that is no IPv6 address"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_short_capture_id_is_its_first_group() {
        assert_eq!(CaptureId::new("abeadf4f-7995-43c6").short(), "abeadf4f");
        assert_eq!(CaptureId::new("").short(), "");
    }
}
