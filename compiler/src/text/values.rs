//! Types, numbers and words, from what pest recognized.

use super::error::{Problem, nearest};
use super::grammar::Rule;
use super::parse::{Reader, Result, parts};
use crate::array::Array;
use crate::ir::Loc;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use pest::iterators::Pair;

/// The most elements of a type, counting an empty axis as 1. Sums and products of a few such
/// numbers, and of their sizes in bytes, stay far from overflow, and no memory holds that many
/// elements.
const MOST_ELEMENTS: usize = 1 << 40;

impl Reader<'_> {
    pub(super) fn tensor(&self, pair: Pair<'_, Rule>) -> Result<TensorType> {
        let start = pair.as_span().start();
        let mut parts = parts(pair);
        let dtype = parts.next().expect("a type begins with an element type");
        let unknown = || Problem::Unknown {
            what: "element type",
            name: dtype.as_str().to_string(),
            nearest: nearest(dtype.as_str(), DType::ALL.map(DType::name)),
        };
        let dtype = DType::parse(dtype.as_str()).ok_or_else(|| self.error(&dtype, unknown()))?;
        let shape = parts
            .map(|extent| self.number(&extent, "extent of an axis"))
            .collect::<Result<Vec<usize>>>()?;
        let ty = TensorType::new(dtype, shape);
        let elements = ty
            .shape
            .iter()
            .fold(1, |product: usize, &extent| product.saturating_mul(extent.max(1)));
        if elements > MOST_ELEMENTS {
            let problem = Problem::TooLarge { ty, limit: "a tensor has at most 2^40 elements" };
            return Err(self.error_at(start, problem));
        }
        Ok(ty)
    }

    /// An integer of some Rust type. `of` describes the expected value.
    pub(super) fn number<T: std::str::FromStr>(
        &self,
        pair: &Pair<'_, Rule>,
        of: &str,
    ) -> Result<T> {
        pair.as_str().parse().map_err(|_| {
            let literal = pair.as_str().to_string();
            let of = of.to_string();
            self.error(pair, Problem::Literal { literal, of })
        })
    }

    pub(super) fn array(&mut self, pair: Pair<'_, Rule>) -> Result<Array> {
        let start = pair.as_span().start();
        let mut parts = parts(pair);
        let mut next = || parts.next().expect("an array has a type and elements");
        let ty = self.tensor(next())?;
        let elements = next();
        if elements.as_rule() == Rule::literal {
            let value = self.scalar(&elements, ty.dtype)?;
            let Some(left) = self.splats.checked_sub(ty.elements()) else {
                let problem = Problem::TooLarge {
                    ty,
                    limit: "arrays of one value have at most 2^26 elements together; broadcast a scalar instead",
                };
                return Err(self.error_at(start, problem));
            };
            self.splats = left;
            return Ok(Array::splat(ty, value));
        }
        let data = super::parse::parts(elements)
            .map(|literal| self.scalar(&literal, ty.dtype))
            .collect::<Result<Vec<Scalar>>>()?;
        if data.len() == ty.elements() {
            return Ok(Array::new(ty, data));
        }
        let problem = Problem::Count {
            what: format!("values of {ty}"),
            expected: ty.elements(),
            got: data.len(),
        };
        Err(self.error_at(start, problem))
    }

    fn scalar(&self, pair: &Pair<'_, Rule>, dtype: DType) -> Result<Scalar> {
        let text = pair.as_str();
        let value = match dtype {
            DType::Bool => text.parse().ok().map(Scalar::Bool),
            _ if dtype.is_float() => float(text, dtype).map(Scalar::Float),
            _ => {
                let (least, greatest) = dtype.integer_range();
                let value = text.parse().ok();
                value.filter(|value| (least..=greatest).contains(value)).map(Scalar::Int)
            }
        };
        value.ok_or_else(|| {
            let literal = text.to_string();
            let of = format!("value of {dtype}");
            self.error(pair, Problem::Literal { literal, of })
        })
    }

    /// The string between quotes; a backslash takes the next character literally.
    pub(super) fn string(&self, pair: &Pair<'_, Rule>) -> String {
        let quoted = pair.as_str();
        let mut characters = quoted[1..quoted.len() - 1].chars();
        let mut word = String::with_capacity(quoted.len());
        while let Some(character) = characters.next() {
            match character {
                '\\' => word.extend(characters.next()),
                character => word.push(character),
            }
        }
        word
    }

    pub(super) fn location(&self, pair: Pair<'_, Rule>) -> Result<Loc> {
        let mut parts = parts(pair);
        let mut next = || parts.next().expect("a location has a file, a line and a column");
        let file = self.string(&next());
        let line = self.number(&next(), "line")?;
        let column = self.number(&next(), "column")?;
        Ok(Loc::read(&file, line, column))
    }
}

/// The nearest value of a float type. `None` if it is infinite although the text is not, or if the
/// text is no number.
fn float(text: &str, dtype: DType) -> Option<f64> {
    match text {
        "nan" => return Some(f64::NAN),
        "inf" => return Some(f64::INFINITY),
        "-inf" => return Some(f64::NEG_INFINITY),
        // Rust accepts more words, such as `infinity`.
        _ if !text.contains(|c: char| c.is_ascii_digit()) => return None,
        _ => {}
    }
    let value = match dtype {
        // A conversion through f64 would round it twice.
        DType::F32 => f64::from(text.parse::<f32>().ok()?),
        _ => dtype.round(text.parse().ok()?),
    };
    value.is_finite().then_some(value)
}
