//! Literals as operands next to tensors: numbers, bools, and arrays of them. A literal has no dtype
//! until it is combined with a tensor, and then takes the tensor's dtype. Literals alone become
//! f32, i32 or bool, so a program contains no weak types.

use super::{Tensor, broadcast_to, emit1, fail, poison, report};
use podracer_compiler::ops::{BroadcastInDim, Constant};
use podracer_compiler::{Array, DType, Scalar, TensorType};
use std::sync::Arc;

/// A number, or an array of numbers, written in Rust.
#[derive(Clone, Debug)]
pub struct Literal {
    /// The dtype of the literal if no tensor decides it.
    own: DType,
    shape: Vec<usize>,
    data: Vec<Scalar>,
}

/// A tensor, or a literal that will become a tensor.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor, which has its dtype.
    Tensor(Tensor),
    /// A literal, which takes the dtype of the other operand's tensor.
    Literal(Literal),
}

/// A value that becomes a tensor, as `jax.typing.ArrayLike` does: [`Tensor`], `&Tensor`, numbers, bools, nested arrays
/// of numbers.
///
/// Next to a tensor, a literal takes the tensor's dtype: an integer may become a float, but a float
/// never becomes an integer, and a number never becomes a bool. Alone, `1.5` is f32, `2` is i32,
/// `true` is bool; a typed number (`2u32`, `1.0f32`) keeps its type, but f64 becomes f32 and usize
/// becomes i32.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a tensor nor a number",
    label = "expected `Tensor`, a number, a bool or an array of numbers",
    note = "to bring a value of the host into the program, pass it as an argument of the traced function"
)]
pub trait IntoTensor {
    /// The operand, before its dtype is decided.
    fn operand(self) -> Operand;

    /// The tensor; a literal gets its own dtype.
    #[track_caller]
    fn into_tensor(self) -> Tensor
    where
        Self: Sized,
    {
        materialize(self.operand())
    }
}

/// Numbers that may stand in a nested array literal.
trait LiteralNumber: Copy {
    const OWN: DType;
    fn to_scalar(self) -> Scalar;
}

impl IntoTensor for Tensor {
    fn operand(self) -> Operand {
        Operand::Tensor(self)
    }
}

impl IntoTensor for &Tensor {
    fn operand(self) -> Operand {
        Operand::Tensor(*self)
    }
}

macro_rules! numbers {
    ($($type:ty, $dtype:ident, $value:ident => $scalar:expr;)*) => {$(
        impl LiteralNumber for $type {
            const OWN: DType = DType::$dtype;
            fn to_scalar(self) -> Scalar {
                let $value = self;
                $scalar
            }
        }

        impl IntoTensor for $type {
            fn operand(self) -> Operand {
                Operand::Literal(Literal { own: <$type as LiteralNumber>::OWN, shape: Vec::new(), data: vec![self.to_scalar()] })
            }
        }

        impl<const N: usize> IntoTensor for [$type; N] {
            fn operand(self) -> Operand {
                Operand::Literal(rows(&[self.as_slice()], vec![N]))
            }
        }

        impl IntoTensor for &[$type] {
            fn operand(self) -> Operand {
                Operand::Literal(rows(&[self], vec![self.len()]))
            }
        }

        impl IntoTensor for Vec<$type> {
            fn operand(self) -> Operand {
                self.as_slice().operand()
            }
        }

        impl<const N: usize, const M: usize> IntoTensor for [[$type; M]; N] {
            fn operand(self) -> Operand {
                let all: Vec<&[$type]> = self.iter().map(|row| row.as_slice()).collect();
                Operand::Literal(rows(&all, vec![N, M]))
            }
        }

        impl<const N: usize, const M: usize, const L: usize> IntoTensor for [[[$type; L]; M]; N] {
            fn operand(self) -> Operand {
                let all: Vec<&[$type]> = self.iter().flatten().map(|row| row.as_slice()).collect();
                Operand::Literal(rows(&all, vec![N, M, L]))
            }
        }
    )*};
}

numbers! {
    bool, Bool, value => Scalar::Bool(value);
    i8, I8, value => Scalar::Int(i128::from(value));
    i16, I16, value => Scalar::Int(i128::from(value));
    i32, I32, value => Scalar::Int(i128::from(value));
    i64, I64, value => Scalar::Int(i128::from(value));
    u8, U8, value => Scalar::Int(i128::from(value));
    u16, U16, value => Scalar::Int(i128::from(value));
    u32, U32, value => Scalar::Int(i128::from(value));
    u64, U64, value => Scalar::Int(i128::from(value));
    usize, I32, value => Scalar::Int(value as i128);
    f32, F32, value => Scalar::Float(f64::from(value));
    f64, F32, value => Scalar::Float(value);
}

fn rows<T: LiteralNumber>(rows: &[&[T]], shape: Vec<usize>) -> Literal {
    Literal {
        own: T::OWN,
        shape,
        data: rows.iter().flat_map(|row| row.iter().map(|value| value.to_scalar())).collect(),
    }
}

impl Operand {
    /// The shape, known before the dtype is.
    pub(crate) fn shape(&self) -> Vec<usize> {
        match self {
            Operand::Tensor(tensor) => tensor.shape(),
            Operand::Literal(literal) => literal.shape.clone(),
        }
    }
}

impl Literal {
    /// The literal's values in a dtype, or a message that says why they do not fit it.
    fn cast(&self, dtype: DType) -> Result<Array, String> {
        let kind = |dtype: DType| {
            if dtype.is_float() {
                "a float"
            } else if dtype == DType::Bool {
                "a bool"
            } else {
                "an integer"
            }
        };
        let mut data = Vec::with_capacity(self.data.len());
        for &value in &self.data {
            data.push(match value {
                Scalar::Int(value) if dtype.is_float() => Scalar::Float(value as f64),
                Scalar::Int(value) if dtype.is_integer() => {
                    let (low, high) = dtype.integer_range();
                    if value < low || value > high {
                        return Err(format!("{value} is outside of {dtype}'s range [{low}, {high}]"));
                    }
                    Scalar::Int(value)
                }
                Scalar::Float(value) if dtype.is_float() => Scalar::Float(value),
                Scalar::Bool(value) if dtype == DType::Bool => Scalar::Bool(value),
                Scalar::Float(value) => return Err(format!("the literal {value:?} does not become {}: cast the {dtype} tensor with `.astype(F32)`", kind(dtype))),
                Scalar::Int(value) => return Err(format!("the literal {value} does not become {}: compare the tensor, or cast it", kind(dtype))),
                Scalar::Bool(value) => return Err(format!("the literal {value} does not become {}: cast it with `constant({value}).astype(..)`", kind(dtype))),
            });
        }
        Ok(Array::new(TensorType::new(dtype, &self.shape), data))
    }
}

/// The tensor of an operand that stands alone: a literal gets its own dtype.
#[track_caller]
pub(crate) fn materialize(operand: Operand) -> Tensor {
    match operand {
        Operand::Tensor(tensor) => tensor,
        Operand::Literal(literal) => literal_as("constant", &literal, literal.own),
    }
}

#[track_caller]
fn literal_as(op: &str, literal: &Literal, dtype: DType) -> Tensor {
    match literal.cast(dtype) {
        Ok(array) => constant_array(array),
        Err(message) => fail(op, message, &[], TensorType::new(dtype, &literal.shape)),
    }
}

/// Emits a constant: one element and a broadcast if all elements are equal, since a constant's values live in the
/// program text.
#[track_caller]
pub(crate) fn constant_array(array: Array) -> Tensor {
    let ty = array.ty().clone();
    match array.splat_value() {
        Some(value) if ty.rank() > 0 => {
            let scalar = constant_array(Array::single(ty.dtype, value));
            emit1(
                BroadcastInDim { shape: ty.shape.to_vec(), broadcast_dimensions: Vec::new() },
                &[scalar],
                ty,
            )
        }
        _ => emit1(Constant { value: Arc::new(array) }, &[], ty),
    }
}

/// Gives operands one dtype: the dtype of the first tensor among them, or the strongest dtype of
/// the literals. A literal that cannot take this dtype is an error of `op`. Tensors keep their
/// dtypes: the op decides whether they are compatible.
#[track_caller]
pub(crate) fn same_dtype(op: &str, operands: Vec<Operand>) -> Vec<Tensor> {
    let of_tensor = operands.iter().find_map(|operand| match operand {
        Operand::Tensor(tensor) => Some(tensor.dtype()),
        Operand::Literal(_) => None,
    });
    // Next to an integer literal, a float literal decides: `select(p, 1, 0.5)` is f32.
    let of_literals = || {
        let own = operands.iter().filter_map(|operand| match operand {
            Operand::Literal(literal) => Some(literal.own),
            Operand::Tensor(_) => None,
        });
        own.reduce(|a, b| if b.is_float() && !a.is_float() { b } else { a }).unwrap_or(DType::F32)
    };
    let dtype = of_tensor.unwrap_or_else(of_literals);
    let mut tensors = Vec::with_capacity(operands.len());
    for operand in &operands {
        tensors.push(match operand {
            Operand::Tensor(tensor) => *tensor,
            Operand::Literal(literal) => literal_as(op, literal, dtype),
        });
    }
    tensors
}

/// Gives operands one dtype and broadcasts them to one shape. After an error all are poisoned.
#[track_caller]
pub(crate) fn align(op: &str, operands: Vec<Operand>) -> Vec<Tensor> {
    let mut shape = Vec::new();
    let mut error = None;
    for (i, operand) in operands.iter().enumerate() {
        match super::broadcast_pair(&shape, &operand.shape()) {
            Ok(both) => shape = both,
            Err(clash) => {
                error = Some((i, clash));
                break;
            }
        }
    }
    let mut tensors = same_dtype(op, operands);
    let Some((i, clash)) = error else {
        // A closure would lose the caller's line.
        for tensor in &mut tensors {
            *tensor = broadcast_to(*tensor, &shape);
        }
        return tensors;
    };
    // Name the pair that clashes: the operand, and the first operand before it that is not
    // compatible with it.
    let other = (0..i)
        .find(|&j| super::broadcast_pair(&tensors[j].shape(), &tensors[i].shape()).is_err())
        .unwrap_or(0);
    report(
        op,
        format!("{} and {} do not broadcast ({clash})", tensors[other].ty(), tensors[i].ty()),
        &tensors,
    );
    let guess = tensors
        .iter()
        .map(|tensor| tensor.ty())
        .max_by_key(TensorType::elements)
        .unwrap_or(TensorType::scalar(DType::F32));
    tensors.iter().map(|tensor| poison(guess.with_dtype(tensor.dtype()))).collect()
}

/// Two operands of one dtype, each of its own shape.
#[track_caller]
pub(crate) fn literal_pair(op: &str, a: Operand, b: Operand) -> [Tensor; 2] {
    match same_dtype(op, vec![a, b])[..] {
        [a, b] => [a, b],
        _ => [poison(TensorType::scalar(DType::F32)); 2],
    }
}
