use std::sync::Arc;

use super::*;
use crate::cluster::FailureKind;

fn answer(body: &str) -> Answer {
    Answer {
        request: Arc::from("GET http://h:1/x"),
        status: 200,
        content_type: Arc::from("application/json"),
        location: None,
        body: body.as_bytes().to_vec(),
    }
}

#[derive(Debug, Deserialize)]
struct Count {
    #[serde(deserialize_with = "whole")]
    n: u64,
}

fn count(body: &str) -> Reading<u64> {
    only_value::<Count>(&answer(body)).map(|count| count.n)
}

#[test]
fn numbers_beyond_2_to_the_53_are_exact_and_may_be_quoted() {
    assert_eq!(count(r#"{"n":470829664056115205}"#), Ok(470_829_664_056_115_205));
    assert_eq!(count(r#"{"n":"470829664056115205"}"#), Ok(470_829_664_056_115_205));
    assert_eq!(count(r#"{"n":18446744073709551615}"#), Ok(u64::MAX));
}

#[test]
fn what_is_no_whole_number_is_malformed() {
    for body in [
        r#"{"n":1.5}"#,
        r#"{"n":-1}"#,
        r#"{"n":18446744073709551616}"#,
        r#"{"n":4.7e17}"#,
        r#"{"n":"x"}"#,
        r#"{"n":null}"#,
        r#"{"n":true}"#,
        "{}",
        "",
        "   ",
    ] {
        assert_eq!(count(body).unwrap_err().kind, FailureKind::Malformed, "{body}");
    }
}

fn texts(body: &str) -> Result<Vec<String>, FailureKind> {
    list::<String>(&answer(body)).map_err(|failure| failure.kind)
}

#[test]
fn both_shapes_of_a_list_are_read() {
    let both = Ok(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(texts(r#"["a","b"]"#), both);
    assert_eq!(texts("[\n    \"a\",\n    \"b\"\n]\n"), both);
    assert_eq!(texts(r#"{"total":2,"items":["a","b"]}"#), both);
    // Counted separately by the server: what is there counts (field report 72).
    assert_eq!(texts(r#"{"total":3,"items":["a","b"]}"#), both);
}

#[test]
fn a_list_is_empty_only_by_the_servers_word() {
    for body in ["[]", r#"{"total":0,"items":[]}"#, r#"{"total":0,"items":null}"#, r#"{"total":0}"#] {
        assert_eq!(texts(body), Ok(vec![]), "{body}");
    }
    for body in [
        "null",
        "{}",
        r#"{"items":null}"#,
        r#"{"items":[]}"#,
        r#"{"total":2,"items":null}"#,
        r#"{"total":2,"items":[]}"#,
        r#"{"error_msg":"x","error_code":""}"#,
        r#"["a","b""#,
        "<html><body>ok</body></html>",
        "",
        r#""a""#,
        "[1]",
        r#"["a"]["b"]"#,
    ] {
        assert_eq!(texts(body), Err(FailureKind::Malformed), "{body}");
    }
}

#[test]
fn an_error_glued_to_a_value_is_the_answer() {
    let body =
        "{\"n\":1}{\"error_msg\":\"[CDC:ErrAPIInvalidParam]abnormal state\",\"error_code\":\"CDC:ErrAPIInvalidParam\"}";
    let failure = count(body).unwrap_err();
    assert_eq!(failure.kind, FailureKind::BadRequest);
    assert_eq!(&*failure.message, "abnormal state");
    assert_eq!(failure.status, Some(200));
    assert_eq!(count("{\"n\":1}\n{\"n\":2}").unwrap_err().kind, FailureKind::Malformed);
    assert_eq!(count("{\"n\":1}\n  \n"), Ok(1));
}

#[test]
fn the_first_of_glued_values_can_be_read_alone() {
    let glued = answer("\"The cluster state is normal.\"\"success!\"");
    let (text, rest) = first_value::<String>(&glued).unwrap();
    assert_eq!(text, "The cluster state is normal.");
    assert_eq!(rest, b"\"success!\"");
}

#[test]
fn a_web_page_is_named_as_one() {
    let failure = list::<String>(&answer("<!doctype html>")).unwrap_err();
    assert!(failure.message.contains("web page"), "{failure}");
}
