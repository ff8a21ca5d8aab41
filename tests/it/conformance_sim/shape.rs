//! What an answer is apart from the values in it: keys, types, nullness, nesting; texts without ids and addresses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Keys whose values are the same in the same situation: a rollout is steered by them.
const TELLING: [&str; 11] = [
    "liveness",
    "total",
    "state",
    "feed_state",
    "error_code",
    "cluster_id",
    "namespace",
    "servers_num",
    "upgraded_percent",
    "table_count",
    "version",
];

/// A body as JSON values one after another, or as text.
pub(crate) fn body_shape(body: &str) -> Value {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(body).into_iter::<Value>().collect();
    match values {
        Ok(values) if !values.is_empty() => Value::Array(values.iter().map(shape).collect()),
        _ => Value::String(plain(body)),
    }
}

/// Keys, types, nullness and nesting, and the values that tell a state: booleans and those of [`TELLING`]. Elements of a
/// list are merged: their order is random on the wire. Of other texts only errors count, without the ids in them.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(it) => it.to_string().into(),
        Value::Number(number) if number.is_f64() => "float".into(),
        Value::Number(_) => "integer".into(),
        Value::String(text) if text.contains('!') || text.contains("state") => plain(text).into(),
        Value::String(_) => "text".into(),
        Value::Array(items) => merged(items),
        Value::Object(object) if object.contains_key("error_msg") => object
            .iter()
            .map(|(key, value)| (key.clone(), plain(value.as_str().unwrap_or_default()).into()))
            .collect::<Map<_, _>>()
            .into(),
        Value::Object(object) => {
            // Values used as keys: DDL ids in `/info/all`, table ids in `/schema?table_ids=`. What stands under them is
            // merged like a list.
            let (by_id, by_name): (Vec<_>, Vec<_>) = object.iter().partition(|(key, _)| is_id(key));
            let mut shapes: BTreeMap<String, Value> = BTreeMap::new();
            for (key, value) in by_name {
                let is_telling = TELLING.contains(&key.as_str()) && !value.is_object() && !value.is_array();
                shapes.insert(key.clone(), if is_telling { value.clone() } else { shape(value) });
            }
            if !by_id.is_empty() {
                shapes.insert("<id>".to_owned(), merged(by_id.into_iter().map(|(_, value)| value)));
            }
            shapes.into_iter().collect::<Map<_, _>>().into()
        }
    }
}

/// The different shapes among some values, in an order of their own.
fn merged<'a>(values: impl IntoIterator<Item = &'a Value>) -> Value {
    let mut shapes: Vec<Value> = Vec::new();
    for shape in values.into_iter().map(shape) {
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    shapes.sort_by_key(ToString::to_string);
    Value::Array(shapes)
}

/// How a JSON body is written: the order of keys of its objects, and the white space around its punctuation, which is
/// none in a compact body and tells the indentation of every level in another.
pub(crate) fn written(body: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut orders, mut spaces) = (BTreeSet::new(), BTreeSet::new());
    // Each open object or list: its name, and its keys so far.
    let mut open: Vec<(String, Vec<String>)> = Vec::new();
    let (mut before, mut space, mut last) = (' ', String::new(), String::new());
    let mut rest = body.chars();
    while let Some(next) = rest.next() {
        if next.is_whitespace() {
            space.push(next);
            continue;
        }
        let class = if "{}[]:,\"".contains(next) { next } else { 'v' };
        if !space.is_empty() {
            spaces.insert(format!("{before}{}{class}", space.escape_default()));
            space.clear();
        }
        match next {
            '"' => {
                last.clear();
                while let Some(inner) = rest.next().filter(|it| *it != '"') {
                    last.push(inner);
                    if inner == '\\' {
                        last.extend(rest.next());
                    }
                }
            }
            ':' => {
                let key = if is_id(&last) { "<id>" } else { &last };
                if let Some((_, keys)) = open.last_mut().filter(|(_, keys)| keys.last().is_none_or(|it| it != key)) {
                    keys.push(key.to_owned());
                }
            }
            '{' | '[' => {
                let name = open.last().map_or("", |(_, keys)| keys.last().map_or("", String::as_str));
                open.push((name.to_owned(), Vec::new()));
            }
            '}' | ']' => {
                let path: Vec<&str> = open.iter().map(|(name, _)| name.as_str()).collect();
                let keys = open.last().map(|(_, keys)| keys.join(",")).unwrap_or_default();
                orders.insert(format!("{}: {keys}", path.join("/")));
                open.pop();
            }
            _ => {}
        }
        before = class;
    }
    if !space.is_empty() {
        spaces.insert(format!("{before}{}", space.escape_default()));
    }
    (orders, spaces)
}

fn is_id(key: &str) -> bool {
    key.parse::<u64>().is_ok() || is_uuid(key)
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
    assert!(!same(r#"{"17":{"a":1},"18":{}}"#, r#"{"17":{"a":1},"18":{"a":1}}"#));
    assert!(!same(r#"{"liveness":0}"#, r#"{"liveness":1}"#));
    assert!(!same(r#""x""success!""#, r#""x""#));
    assert_eq!(plain("no abeadf4f-7995-43c6-9372-51d69d484aff at 127.0.0.1:8300."), "no <id> at <address>.");
}

#[test]
fn a_difference_in_the_order_of_keys_or_in_white_space_shows() {
    let one = "{\n \"a\": [\n  {\n   \"b\": 1,\n   \"c\": \"x: {\\\"\"\n  }\n ]\n}";
    let (orders, spaces) = written(one);
    assert_eq!(orders, ["/a/: b,c", "/a: ", ": a"].map(str::to_owned).into());
    assert!(spaces.contains(r"{\n   \u{22}") || spaces.contains("{\\n   \""), "{spaces:?}");
    for (from, to) in [("\n   \"b\"", "\n  \"b\""), ("\": 1", "\":1"), ("\"b\"", "\"d\""), ("]\n}", "]\n}\n")] {
        assert_ne!(written(&one.replace(from, to)), written(one), "{from:?}");
    }
    assert_ne!(written(r#"{"a":1,"b":2}"#), written(r#"{"b":2,"a":1}"#));
    assert!(written(r#"{"a":1,"b":"2 : 3"}"#).1.is_empty());
}
