//! Bodies of requests, and what Go's JSON decoder says of bad ones.

use serde_json::Value;
use serde_json::error::Category;

/// Package and name of the type that a v1 drain is read into, which errors show.
pub(super) type DrainType = (&'static str, &'static str);

pub(super) const CLASSIC_DRAIN: DrainType = ("model", "DrainCaptureRequest");
/// Recording cdc-new 52.
pub(super) const NEW_DRAIN: DrainType = ("v1", "drainCaptureRequest");

/// The capture that a v1 drain names; an absent one is empty.
pub(super) fn drain(body: &[u8], (package, name): DrainType) -> Result<String, String> {
    let value = parse(body)?;
    let Value::Object(fields) = value else {
        return Err(format!("json: cannot unmarshal {} into Go value of type {package}.{name}", kind(&value)));
    };
    match fields.get("capture_id") {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(id)) => Ok(id.clone()),
        Some(other) => {
            Err(format!("json: cannot unmarshal {} into Go struct field {name}.capture_id of type string", kind(other)))
        }
    }
}

/// A body that must be an object, whatever is in it.
pub(super) fn object(body: &[u8]) -> Result<(), String> {
    match parse(body)? {
        Value::Object(_) | Value::Null => Ok(()),
        other => Err(format!("json: cannot unmarshal {} into Go value", kind(&other))),
    }
}

fn parse(body: &[u8]) -> Result<Value, String> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err("EOF".to_owned());
    }
    serde_json::from_slice(body).map_err(|error| {
        if error.classify() == Category::Eof {
            return "unexpected EOF".to_owned();
        }
        let at = error.column().saturating_sub(1);
        let line = body.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1));
        let found = line.and_then(|line| line.get(at)).copied().map_or('?', char::from);
        let place = if error.to_string().contains("key must be a string") { "object key string" } else { "value" };
        format!("invalid character '{found}' looking for beginning of {place}")
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_bodies_read_like_gos() {
        assert_eq!(drain(b"", CLASSIC_DRAIN).unwrap_err(), "EOF");
        assert_eq!(
            drain(b"{not json", CLASSIC_DRAIN).unwrap_err(),
            "invalid character 'n' looking for beginning of object key string"
        );
        assert_eq!(
            drain(b"{\"capture_id\": 7}", CLASSIC_DRAIN).unwrap_err(),
            "json: cannot unmarshal number into Go struct field DrainCaptureRequest.capture_id of type string"
        );
        assert_eq!(
            drain(b"{\"capture_id\": 7}", NEW_DRAIN).unwrap_err(),
            "json: cannot unmarshal number into Go struct field drainCaptureRequest.capture_id of type string"
        );
        assert_eq!(drain(b"{}", CLASSIC_DRAIN).unwrap(), "");
    }
}
