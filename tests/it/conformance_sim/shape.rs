//! What an answer is apart from the values in it: keys, types, nullness, nesting; texts without ids and addresses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A body as JSON values one after another, or as text.
pub(crate) fn body_shape(body: &str) -> Value {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(body).into_iter::<Value>().collect();
    match values {
        Ok(values) if !values.is_empty() => Value::Array(values.iter().map(shape).collect()),
        _ => Value::String(plain(body)),
    }
}

/// Keys, types, nullness and nesting. Elements of a list are merged: their order is random on the wire. Of a text only
/// errors count, without the ids in them.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => "bool".into(),
        Value::Number(number) if number.is_f64() => "float".into(),
        Value::Number(_) => "integer".into(),
        Value::String(text) if text.contains('!') || text.contains("state") => plain(text).into(),
        Value::String(_) => "text".into(),
        Value::Array(items) => {
            let mut shapes: Vec<Value> = Vec::new();
            for item in items {
                let shape = shape(item);
                if !shapes.contains(&shape) {
                    shapes.push(shape);
                }
            }
            shapes.sort_by_key(ToString::to_string);
            Value::Array(shapes)
        }
        Value::Object(object) if object.contains_key("error_msg") => object
            .iter()
            .map(|(key, value)| (key.clone(), plain(value.as_str().unwrap_or_default()).into()))
            .collect::<Map<_, _>>()
            .into(),
        Value::Object(object) => {
            // Values used as keys: DDL ids in `/info/all`, table ids in `/schema?table_ids=`.
            let mut merged: BTreeMap<String, Value> = BTreeMap::new();
            for (key, value) in object {
                let key = if key.parse::<u64>().is_ok() || is_uuid(key) { "<id>" } else { key };
                merged.insert(key.to_owned(), shape(value));
            }
            merged.into_iter().collect::<Map<_, _>>().into()
        }
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// A text without what differs from cluster to cluster: ids, ports of this machine, numbers of connections.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if let Some(id) = rest.get(..36).filter(|id| is_uuid(id)) {
            out.push_str("<id>");
            rest = &rest[id.len()..];
        } else if let Some(after) = rest.strip_prefix("127.0.0.1:") {
            out.push_str("<address>");
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

#[test]
fn a_difference_in_keys_types_nullness_or_nesting_shows() {
    let same = |a: &str, b: &str| body_shape(a) == body_shape(b);
    assert!(same(r#"{"a":1,"b":[2,3]}"#, r#"{"b":[9],"a":4}"#));
    for other in
        [r#"{"a":"1","b":[2]}"#, r#"{"a":null,"b":[2]}"#, r#"{"a":1}"#, r#"{"a":1,"b":[]}"#, r#"{"a":1,"b":[[2]]}"#]
    {
        assert!(!same(r#"{"a":1,"b":[2,3]}"#, other), "{other}");
    }
    assert!(!same(r#""x""success!""#, r#""x""#));
    assert_eq!(plain("no abeadf4f-7995-43c6-9372-51d69d484aff at 127.0.0.1:8300."), "no <id> at <address>.");
}
