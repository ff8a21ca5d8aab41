//! Reading JSON as the servers really write it: whole 64-bit numbers, quoted numbers, two shapes of a list, and a
//! second document glued to the first.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, DeserializeOwned, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::{ErrorBody, glued_failure};
use super::http::Answer;
use crate::cluster::Reading;

/// A 64-bit number that never passes through a float and may be quoted (field report 74).
pub(super) fn whole<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Whole,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(WholeVisitor(PhantomData))
}

/// The same, where the field may be null. An absent field needs `#[serde(default)]` beside it.
pub(super) fn whole_or_null<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Whole,
    D: Deserializer<'de>,
{
    Ok(Option::<Exact<T>>::deserialize(deserializer)?.map(|exact| exact.0))
}

/// A number of [`whole`], where it stands in a list.
pub(super) struct Exact<T>(pub(super) T);

impl<'de, T: Whole> Deserialize<'de> for Exact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        whole(deserializer).map(Self)
    }
}

/// The two kinds of whole numbers on the wire.
pub(super) trait Whole: TryFrom<i64> + TryFrom<u64> + std::str::FromStr {}

impl Whole for u64 {}
impl Whole for i64 {}

struct WholeVisitor<T>(PhantomData<T>);

impl<T: Whole> Visitor<'_> for WholeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole 64-bit number")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        value.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(value), &self))
    }
}

/// The first JSON value of the body and the bytes after it.
pub(super) fn first_value<T: DeserializeOwned>(answer: &Answer) -> Reading<(T, &[u8])> {
    let mut stream = serde_json::Deserializer::from_slice(&answer.body).into_iter::<T>();
    let value = stream
        .next()
        .ok_or_else(|| answer.malformed("the body is empty"))?
        .map_err(|e| answer.malformed(format!("{e}{}", shape_hint(&answer.body))))?;
    let rest = answer.body.get(stream.byte_offset()..).unwrap_or_default();
    Ok((value, rest))
}

/// The body as one JSON object. Derived readers also take a list of values for an object, which no server means.
pub(super) fn object<T: DeserializeOwned>(answer: &Answer) -> Reading<T> {
    match answer.body.trim_ascii_start().first() {
        Some(b'[') => Err(answer.malformed("a list stands where an object is expected")),
        _ => only_value(answer),
    }
}

/// The body as one JSON value. An error document glued to it is the answer's true content: `TiCDC` writes its v1
/// processor detail of a stopped changefeed so, under status 200 (recorded cdc-classic-more 08).
pub(super) fn only_value<T: DeserializeOwned>(answer: &Answer) -> Reading<T> {
    let (value, rest) = first_value(answer)?;
    let rest = rest.trim_ascii();
    if rest.is_empty() {
        return Ok(value);
    }
    Err(match ErrorBody::read(rest) {
        Some(error) => glued_failure(answer, &error),
        None => answer.malformed("something follows the JSON value"),
    })
}

/// A success that carries nothing: no body at all, or an object. A web page under 200 is another program's word, and
/// an error document under 200 is still an error.
pub(super) fn nothing(answer: &Answer) -> Reading<()> {
    match answer.body.trim_ascii() {
        [] => Ok(()),
        body @ [b'{', ..] => match ErrorBody::read(body) {
            Some(error) => Err(glued_failure(answer, &error)),
            None => only_value::<IgnoredAny>(answer).map(drop),
        },
        body => Err(answer.malformed(format!("neither nothing nor an object{}", shape_hint(body)))),
    }
}

/// A list in either shape: bare as v1 writes it, or `{"total", "items"}` as v2 does; some builds write the second
/// under the paths of the first (field report 72). A null is an empty list only if `total` says 0.
pub(super) fn list<T: DeserializeOwned>(answer: &Answer) -> Reading<Vec<T>> {
    if answer.body.trim_ascii_start().first() == Some(&b'[') {
        return only_value(answer);
    }
    let wrapped: Wrapped<T> = object(answer)?;
    match (wrapped.items, wrapped.total) {
        (Some(items), total) if !items.is_empty() || total == Some(0) => Ok(items),
        (None, Some(0)) => Ok(Vec::new()),
        (_, Some(total)) => Err(answer.malformed(format!("says {total} in total and lists none"))),
        (_, None) => Err(answer.malformed("is neither a list nor an object with items and total")),
    }
}

/// A list as `{"total", "items"}` of which nothing may be missing: `total` is the number of its items.
pub(super) fn counted_list<T: DeserializeOwned>(answer: &Answer) -> Reading<Vec<T>> {
    let wrapped: Wrapped<T> = object(answer)?;
    match (wrapped.items, wrapped.total) {
        (Some(items), Some(total)) if u64::try_from(items.len()) == Ok(total) => Ok(items),
        (Some(items), Some(total)) => Err(answer.malformed(format!("says {total} in total and lists {}", items.len()))),
        _ => Err(answer.malformed("is no object with items and total")),
    }
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Wrapped<T> {
    #[serde(default, deserialize_with = "whole_or_null")]
    total: Option<u64>,
    #[serde(default)]
    items: Option<Vec<T>>,
}

/// A word on what came instead of JSON.
fn shape_hint(body: &[u8]) -> &'static str {
    match body.trim_ascii_start().first() {
        Some(b'<') => " (looks like a web page)",
        _ => "",
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
