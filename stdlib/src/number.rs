//! Hyper-parameters: numbers that may be traced.

use podracer_dsl::prelude::*;
use podracer_dsl::tensor::Operand;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A hyper-parameter: a constant of the program, or a tensor f32 `[]`.
///
/// A constant compiles to the same program as the `f64` that it holds. A traced number is computed
/// by the program. So a `vmap` over the members of a population, or the gradient of a
/// meta-objective, can treat hyper-parameters as inputs.
#[derive(Clone, Copy)]
pub enum Number {
    /// A number that is the same in every run of the program.
    Constant(f64),
    /// A number that the program computes, f32 `[]`.
    Traced(Tensor),
}

impl Number {
    /// The number as a constant; `None` if it is traced.
    pub fn constant(self) -> Option<f64> {
        match self {
            Number::Constant(value) => Some(value),
            Number::Traced(_) => None,
        }
    }

    /// True if the number is a constant and equal to `value`. Only constants may decide which program is traced.
    pub fn is(self, value: f64) -> bool {
        self.constant() == Some(value)
    }
}

/// Equality of constants. A traced number equals nothing, because its value is unknown.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        other.constant().is_some_and(|value| self.is(value))
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Number::Constant(value)
    }
}

impl From<Tensor> for Number {
    fn from(value: Tensor) -> Self {
        Number::Traced(value)
    }
}

impl IntoTensor for Number {
    fn operand(self) -> Operand {
        match self {
            Number::Constant(value) => value.operand(),
            Number::Traced(value) => value.operand(),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Constant(value) => write!(f, "{value}"),
            Number::Traced(value) => write!(f, "{value:?}"),
        }
    }
}

/// Arithmetic of numbers. Constants are computed on the host, in f64, as Rust would.
macro_rules! arithmetic {
    ($($trait:ident $method:ident $op:tt),*) => {$(
        impl $trait for Number {
            type Output = Number;
            #[track_caller]
            fn $method(self, other: Number) -> Number {
                match (self, other) {
                    (Number::Constant(a), Number::Constant(b)) => Number::Constant(a $op b),
                    _ => Number::Traced(self.into_tensor() $op other.into_tensor()),
                }
            }
        }

        impl $trait<Number> for f64 {
            type Output = Number;
            #[track_caller]
            fn $method(self, other: Number) -> Number {
                Number::Constant(self) $op other
            }
        }

        impl $trait<Tensor> for Number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                match self {
                    Number::Constant(value) => value $op other,
                    Number::Traced(value) => value $op other,
                }
            }
        }
    )*};
}
arithmetic!(Add add +, Sub sub -, Mul mul *, Div div /);

impl Neg for Number {
    type Output = Number;
    #[track_caller]
    fn neg(self) -> Number {
        match self {
            Number::Constant(value) => Number::Constant(-value),
            Number::Traced(value) => Number::Traced(-value),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Number::Constant(value) => serializer.serialize_f64(*value),
            Number::Traced(_) => {
                Err(ser::Error::custom("a number that the program computes has no value to write"))
            }
        }
    }
}

/// Prefix of a setting with a number from a column of the row in [`with_row`].
const COLUMN: &str = "column ";

thread_local! {
    /// The numbers of the member with the settings that are being read, f32 `[C]`.
    static ROW: Cell<Option<Tensor>> = const { Cell::new(None) };
}

/// The text of a setting with the number in column `index`, from 0, of the row in [`with_row`].
pub fn column(index: usize) -> String {
    format!("{COLUMN}{index}")
}

/// Runs `f`, which reads settings. In them a number may be a [`column()`] of this row, f32 `[C]`: a
/// number that the program computes.
pub fn with_row<T>(row: Tensor, f: impl FnOnce() -> T) -> T {
    struct Before(Option<Tensor>);
    impl Drop for Before {
        fn drop(&mut self) {
            ROW.set(self.0);
        }
    }
    let _before = Before(ROW.replace(Some(row)));
    f()
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNumber)
    }
}

/// Reads numbers, and columns if there is a row.
struct AnyNumber;

impl Visitor<'_> for AnyNumber {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("f64")
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Number, E> {
        in_f32(value)
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Number, E> {
        in_f32(value as f64)
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Number, E> {
        in_f32(value as f64)
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        let index = text.strip_prefix(COLUMN).and_then(|index| index.parse::<i32>().ok());
        match (ROW.get(), index) {
            (Some(row), Some(index)) => Ok(Number::Traced(row.index(index))),
            _ => Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
    }
}

/// The constant in a setting. Programs compute with f32, so a number that would become 0 or
/// infinite as f32 is an error.
fn in_f32<E: Error>(value: f64) -> Result<Number, E> {
    let single = value as f32;
    if value != 0.0 && single == 0.0 {
        let least = f32::from_bits(1);
        return Err(E::custom(format!(
            "{value:e} is 0 in f32: the least positive number is {least:e}"
        )));
    }
    if value.is_finite() && single.is_infinite() {
        let most = f32::MAX;
        return Err(E::custom(format!(
            "{value:e} is infinite in f32: the greatest number is {most:e}"
        )));
    }
    Ok(Number::Constant(value))
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        f64::json_schema(generator)
    }
}
