//! The numbers of a line of metrics, read without a copy of its names.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A number of a line by its name.
pub(super) fn number(numbers: &[(Cow<'_, str>, f64)], name: &str) -> Option<f64> {
    numbers.iter().find(|(one, _)| one == name).map(|(_, value)| *value)
}

/// The numbers of a line of metrics.
pub(super) struct MetricsLine<'a>(pub(super) Vec<(Cow<'a, str>, f64)>);

impl<'de: 'a, 'a> Deserialize<'de> for MetricsLine<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = MetricsLine<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<MetricsLine<'de>, A::Error> {
                let mut numbers = Vec::with_capacity(24);
                while let Some(BorrowedKey(name)) = map.next_key()? {
                    if let LineNumber(Some(value)) = map.next_value()? {
                        numbers.push((name, value));
                    }
                }
                Ok(MetricsLine(numbers))
            }
        }
        from.deserialize_map(Numbers)
    }
}

/// A name that is borrowed from the line if the line contains it without escapes.
#[derive(Deserialize)]
struct BorrowedKey<'a>(#[serde(borrow)] Cow<'a, str>);

/// A value of a line, if it is a number.
struct LineNumber(Option<f64>);

impl<'de> Deserialize<'de> for LineNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Value;
        impl<'de> Visitor<'de> for Value {
            type Value = LineNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_f64<E>(self, value: f64) -> Result<LineNumber, E> {
                Ok(LineNumber(Some(value)))
            }

            fn visit_u64<E>(self, value: u64) -> Result<LineNumber, E> {
                Ok(LineNumber(Some(value as f64)))
            }

            fn visit_i64<E>(self, value: i64) -> Result<LineNumber, E> {
                Ok(LineNumber(Some(value as f64)))
            }

            fn visit_bool<E>(self, _: bool) -> Result<LineNumber, E> {
                Ok(LineNumber(None))
            }

            fn visit_str<E>(self, _: &str) -> Result<LineNumber, E> {
                Ok(LineNumber(None))
            }

            fn visit_unit<E>(self) -> Result<LineNumber, E> {
                Ok(LineNumber(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<LineNumber, A::Error> {
                while all.next_element::<IgnoredAny>()?.is_some() {}
                Ok(LineNumber(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<LineNumber, A::Error> {
                while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(LineNumber(None))
            }
        }
        from.deserialize_any(Value)
    }
}
