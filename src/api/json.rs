//! Reading JSON as servers write it: glued values, numbers in quotes, lists of two shapes.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The JSON values of a body, one after another: some answers glue two together (contract sections 1.7, 7.1).
pub fn values(body: &[u8]) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    for value in serde_json::Deserializer::from_slice(body).into_iter::<Value>() {
        found.push(value.map_err(|error| format!("not JSON: {error}"))?);
    }
    if found.is_empty() { Err("the body is empty".to_owned()) } else { Ok(found) }
}

/// The only JSON value of a body.
pub fn value(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| format!("not JSON: {error}"))
}

/// A list in either shape: bare, or `{total, items}`. Absent or null items are an empty list only if `total` says 0
/// (field report 72).
pub fn list(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Object(mut object) => match (object.remove("items"), object.get("total").and_then(Value::as_u64)) {
            (Some(Value::Array(items)), _) => Ok(items),
            (None | Some(Value::Null), Some(0)) => Ok(Vec::new()),
            (None | Some(Value::Null), _) => Err("a list without items".to_owned()),
            (Some(_), _) => Err("items that are no list".to_owned()),
        },
        other => Err(format!("expected a list, got {}", shape(&other))),
    }
}

const fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A typed value out of a JSON value.
pub fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("unexpected shape: {error}"))
}

/// A u64 that may come as a number or in quotes; never through a float.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Shape {
        Number(u64),
        Text(String),
    }
    match Shape::deserialize(deserializer)? {
        Shape::Number(number) => Ok(number),
        Shape::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_both_shapes_are_read_and_null_is_not_empty() {
        let read = |text: &str| list(serde_json::from_str(text).unwrap());
        assert_eq!(read("[1,2]").unwrap().len(), 2);
        assert_eq!(read(r#"{"total":1,"items":[1]}"#).unwrap().len(), 1);
        assert_eq!(read(r#"{"total":0,"items":null}"#).unwrap().len(), 0);
        assert_eq!(read(r#"{"total":0}"#).unwrap().len(), 0);
        for unknown in [r#"{"total":2,"items":null}"#, r#"{"items":null}"#, "{}", "null", "\"x\"", r#"{"items":{}}"#] {
            assert!(read(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn glued_values_come_apart_and_garbage_is_named() {
        assert_eq!(values(br#""a""success!""#).unwrap().len(), 2);
        assert!(values(b"").is_err());
        assert!(values(b"<html>").is_err());
        assert!(values(br#"[{"id":"#).is_err());
    }
}
