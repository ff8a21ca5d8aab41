//! Values that are read from text or a pair and checked on the way, so that an error has the value's own place.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};

use super::Span;

/// Reads a text and makes something of it.
pub(super) struct Text<T, F> {
    expected: &'static str,
    parse: F,
    made: PhantomData<T>,
}

impl<T, F: Fn(&str) -> Result<T, String>> Text<T, F> {
    pub(super) fn new(expected: &'static str, parse: F) -> Self {
        Self { expected, parse, made: PhantomData }
    }
}

impl<T, F: Fn(&str) -> Result<T, String>> Visitor<'_> for Text<T, F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

/// Reads `[least, most]`.
pub(super) struct Pair;

impl<'de> Visitor<'de> for Pair {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[least, most] in milliseconds")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Span, A::Error> {
        let (Some(min), Some(max), None) = (seq.next_element()?, seq.next_element()?, seq.next_element::<u64>()?)
        else {
            return Err(A::Error::custom("expected two numbers: [least, most] in milliseconds"));
        };
        if min > max {
            return Err(A::Error::custom(format!(
                "[{min}, {max}] is not a span, expected [least, most] in milliseconds"
            )));
        }
        Ok(Span { min, max })
    }
}
