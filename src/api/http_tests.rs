use super::super::fake::{Fake, http, nowhere, reply};
use super::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn kind(outcome: Reading<Answer>) -> FailureKind {
    outcome.unwrap_err().kind
}

#[tokio::test]
async fn what_broke_below_http_is_named() {
    let call = Call::get("/api/v1/status");
    let failure = http().send(&nowhere().await, &call).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(failure.request.starts_with("GET http://127.0.0.1:") && failure.request.ends_with("/api/v1/status"));

    let closing = Fake::always(Vec::new()).await;
    assert_eq!(kind(http().send(&closing.address, &call).await), FailureKind::Network);

    let gibberish = Fake::always(b"SSH-2.0-OpenSSH_9.7\r\n".to_vec()).await;
    assert_eq!(kind(http().send(&gibberish.address, &call).await), FailureKind::Network);

    let half = Fake::always(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1,2".to_vec()).await;
    assert_eq!(kind(http().send(&half.address, &call).await), FailureKind::Network);

    let unknown = Address::new("no-such-host.invalid", 1);
    assert_eq!(kind(http().send(&unknown, &call).await), FailureKind::Network);
}

#[tokio::test]
async fn each_kind_of_call_has_its_deadline() {
    let short = Duration::from_millis(1);
    let long = Duration::from_mins(10);
    let silent = Fake::new(|_| None).await;
    for (kind_of_call, deadlines) in [
        (Kind::Read, Deadlines { other: short, owner: long, upgrade: long }),
        (Kind::Tables, Deadlines { other: short, owner: long, upgrade: long }),
        (Kind::Owner, Deadlines { other: long, owner: short, upgrade: long }),
        (Kind::Upgrade, Deadlines { other: long, owner: long, upgrade: short }),
    ] {
        let http = Http::new(&Options { deadlines, tls: None }).unwrap();
        let call = Call::fixed(Method::Post, kind_of_call, "/x");
        assert_eq!(kind(http.send(&silent.address, &call).await), FailureKind::Timeout, "{kind_of_call:?}");
    }
    let defaults = Deadlines::default();
    let seconds = [defaults.upgrade, defaults.owner, defaults.other].map(|d| d.as_secs());
    assert_eq!(seconds, [30, 10, 5]);
}

#[tokio::test]
async fn a_body_has_a_cap_by_the_kind_of_call() {
    let server = Fake::always(reply(200, "application/json", &"x".repeat(2 * MIB))).await;
    let failure = http().send(&server.address, &Call::get("/x")).await.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::TooLarge, Some(200)));
    assert!(failure.raw.len() < 5_000);
    let answer = http().send(&server.address, &Call::get("/x").of_kind(Kind::Tables)).await.unwrap();
    assert_eq!(answer.body.len(), 2 * MIB);
}

/// A body without an end and without a length: what is over the cap is not waited for, and the server is let go.
#[tokio::test]
async fn a_body_without_end_is_cut_off_and_its_connection_dropped() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut request).await.unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
        let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x1_0000], b"\r\n"].concat();
        let mut written = 0;
        while stream.write_all(&chunk).await.is_ok() {
            written += 0x1_0000;
        }
        written
    });
    let failure = http().send(&address, &Call::get("/x")).await.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::TooLarge, Some(200)));
    // It ends only because nobody reads any more; what was written beyond the cap lies in the buffers of both sides.
    let written: usize = server.await.unwrap();
    assert!(written >= MIB, "{written}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let bytes = b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/elsewhere\r\nContent-Length: 0\r\n\r\n";
    let server = Fake::always(bytes.to_vec()).await;
    let answer = http().send(&server.address, &Call::get("/x")).await.unwrap();
    assert_eq!((answer.status, answer.location.as_deref()), (307, Some("http://127.0.0.1:1/elsewhere")));
    assert_eq!(server.requests(), ["GET /x"]);
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_named_so() {
    let plain = Fake::always(reply(200, "text/plain", "hello")).await;
    let http = Http::new(&Options { tls: Some(Tls::default()), ..Options::default() }).unwrap();
    let failure = http.send(&plain.address, &Call::get("/x")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Tls, "{failure:?}");
    assert!(failure.request.starts_with("GET https://"));
}

#[test]
fn an_unreadable_ca_bundle_is_said_at_once() {
    let tls = Tls { ca_pem: Arc::from(*b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n") };
    let failure = Http::new(&Options { tls: Some(tls), ..Options::default() }).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Tls);
}

#[test]
fn ipv6_addresses_make_urls_with_brackets() {
    let address = Address::parse("2001:db8::19b:8300").unwrap();
    let mut url = Url::parse(&format!("http://{address}/")).unwrap();
    Call::get("/api/v1/status").target(&mut url);
    assert_eq!(url.as_str(), "http://[2001:db8::19b]:8300/api/v1/status");
}
