use super::*;

#[test]
fn status_code_and_message_decide_together() {
    use FailureKind as K;
    let scheduler = "CDC:ErrSchedulerRequestFailed";
    let table = [
        (503, "CDC:ErrServerIsNotReady", "cdc server is not ready", K::NotReady),
        (500, "CDC:ErrCaptureNotInitialized", "capture has not been initialized yet", K::NotReady),
        (500, "CDC:ErrOwnerNotFound", "[CDC:ErrOwnerNotFound]owner not found", K::NoOwner),
        (500, "CDC:ErrNotOwner", "[CDC:ErrNotOwner]this capture is not a owner", K::NoOwner),
        (500, "ErrRequestForwardErr", "an request can only forward to owner one time", K::NoOwner),
        (500, "", "election: no leader", K::NoOwner),
        (
            500,
            "",
            "Get \"http://127.0.0.1:8302/api/v1/captures\": dial tcp 127.0.0.1:8302: connect: connection refused",
            K::NoOwner,
        ),
        (
            500,
            "",
            "Get \"http://127.0.0.1:8302/api/v2/health\": read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer",
            K::NoOwner,
        ),
        (500, "", "Put \"http://127.0.0.1:8302/api/v1/captures/drain\": EOF", K::NoOwner),
        (500, "", "TiCDC cluster is unavailable, please try again later", K::NoOwner),
        (500, "", "coordinator is not fully initialized, wait a moment", K::OwnerStarting),
        (500, "CDC:ErrClusterIsUnhealthy", "TiCDC cluster is unhealthy", K::Unhealthy),
        (500, "", "", K::Empty500),
        (404, "", "404 page not found", K::NoRoute),
        (401, "CDC:ErrCredentialNotFound", "credential not found", K::Unauthorized),
        (400, "CDC:ErrCaptureNotExist", "capture not exists, nope", K::NoSuchCapture),
        (400, "CDC:ErrChangeFeedNotExists", "changefeed not exists, default/nope", K::NoSuchChangefeed),
        (400, scheduler, "scheduler request failed, only one capture alive", K::OnlyOneCapture),
        (500, scheduler, "scheduler request failed, only one capture alive", K::OnlyOneCapture),
        (400, scheduler, "scheduler request failed, cannot drain the owner", K::CannotDrainOwner),
        (400, scheduler, "scheduler request failed, drain already in progress on capture c1", K::OtherDrain),
        (500, scheduler, "scheduler request failed, drain already in progress on capture c1", K::OtherDrain),
        (503, scheduler, "scheduler request failed, not all captures initialized", K::NotInitialized),
        (400, scheduler, "scheduler request failed, invalid drain epoch", K::DrainEpoch),
        (400, scheduler, "scheduler request failed, drain epoch overflow", K::Unexpected),
        (500, "", "Can't not find maintainer for changefeed: cf-b", K::NoMaintainer),
        (500, "CDC:ErrMaintainerNotFounded", "maintainer not found", K::NoMaintainer),
        (
            500,
            "",
            "Get \"http://127.0.0.1:18301/api/v2/changefeeds/cf-a/tables?keyspace=ks\": dial tcp 127.0.0.1:18301: connect: connection refused",
            K::NoMaintainer,
        ),
        (
            500,
            "",
            "Get \"http://127.0.0.1:18301/api/v2/changefeeds/tables\": dial tcp 127.0.0.1:18301: connect: connection refused",
            K::NoOwner,
        ),
        (503, "CDC:ErrVersionIncompatible", "TiKV v6.0.0 is not supported", K::IncompatibleTikv),
        (500, "CDC:ErrVersionIncompatible", "belong to 3 different versions", K::Unexpected),
        (400, "CDC:ErrAPIInvalidParam", "invalid api parameter: EOF", K::BadRequest),
        (400, "", "Client sent an HTTP request to an HTTPS server.", K::Tls),
        (400, "", "something else", K::Unexpected),
        (500, "", "something else", K::Unexpected),
        (500, "", "dial tcp of the sink's own database failed", K::Unexpected),
        (503, "", "<html>Service Unavailable</html>", K::Unexpected),
        (503, "", "", K::Unexpected),
        (418, "CDC:ErrNew", "a new one", K::Unexpected),
    ];
    for (status, code, message, kind) in table {
        assert_eq!(classify(status, code, message), kind, "{status} {code} {message}");
    }
}

fn answer(status: u16, body: &str) -> Answer {
    Answer {
        request: Arc::from("GET http://h:1/x"),
        status,
        content_type: Arc::from("text/plain; charset=utf-8"),
        location: None,
        body: body.as_bytes().to_vec(),
    }
}

#[test]
fn an_error_document_counts_under_any_content_type() {
    let body = "{\n    \"error_msg\": \"[CDC:ErrVersionIncompatible]version is incompatible: TiKV v6\",\n    \
                \"error_code\": \"CDC:ErrVersionIncompatible\"\n}";
    let failure = cdc_failure(&answer(503, body));
    assert_eq!(failure.kind, FailureKind::IncompatibleTikv);
    assert_eq!(failure.code.as_deref(), Some("CDC:ErrVersionIncompatible"));
    assert_eq!(&*failure.message, "version is incompatible: TiKV v6");
    assert_eq!(&*failure.raw, body);
    assert_eq!(&*failure.request, "GET http://h:1/x");
}

#[test]
fn an_empty_code_is_no_code() {
    let failure = cdc_failure(&answer(500, r#"{"error_msg":"election: no leader","error_code":""}"#));
    assert_eq!((failure.kind, failure.code), (FailureKind::NoOwner, None));
}

#[test]
fn tidb_refuses_in_plain_text_and_its_500_is_empty() {
    let refused = tidb_failure(&answer(400, "This API only support POST method"));
    assert_eq!(refused.kind, FailureKind::TidbRefused);
    assert_eq!(&*refused.message, "This API only support POST method");
    assert_eq!(tidb_failure(&answer(500, "")).kind, FailureKind::Empty500);
    assert_eq!(tidb_failure(&answer(404, "404 page not found\n")).kind, FailureKind::NoRoute);
}

#[test]
fn what_is_shown_is_one_line_without_control_characters_and_cut() {
    assert_eq!(one_line("a\u{1b}[31mred\n\tb\u{7}"), "a [31mred b");
    assert!(one_line(&"x".repeat(10_000)).chars().count() <= MESSAGE_LIMIT + 1);
    assert!(excerpt(&vec![b'x'; 1_000_000]).len() < RAW_LIMIT + 4);
}
