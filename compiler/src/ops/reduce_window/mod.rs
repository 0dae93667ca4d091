//! Reductions under moving windows: sums and extrema, as pooling layers need them, and the
//! selections that are the derivatives of the extrema.

mod select;
mod window;

pub use select::{SelectAndGather, SelectAndScatter};
pub use window::Window;

use super::reduce::{Max, Min, Monoid, Sum};
use super::samples::ramp;
use super::{Direction, Elementwise, Op, OpStruct, Operand, Rule, Sample, TypeError};
use crate::array::Array;
use crate::attributes::Attributes;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_splat};
use crate::ops::rules::batched_as;
use crate::types::{DType, TensorType};
use std::marker::PhantomData;

/// A [`Monoid`] with the name and derivative of its windowed reduction.
pub trait WindowFold: Monoid {
    /// The name in the IR's text.
    const MNEMONIC: &'static str;

    /// The tangent of the result for the operand `x`, from the tangent of `x`.
    fn jvp(b: &mut Builder, window: &Window, x: Var, t: Var) -> Var;

    /// The cotangent of an operand of type `ty`, from the cotangent of the result.
    fn transpose(b: &mut Builder, window: &Window, ty: &TensorType, ct: Var) -> Rule<Var> {
        let _ = (b, window, ty, ct);
        Rule::None("it is not linear in its operand")
    }
}

/// Combines the elements under each position of a window by the [`Monoid`] `K`; padding is ignored.
/// Floats may be combined in any order.
#[derive(Clone, Debug)]
pub struct ReduceWindow<K> {
    /// The window that moves over the operand.
    pub window: Window,
    kind: PhantomData<K>,
}

/// Sums under a window.
pub type ReduceWindowSum = ReduceWindow<Sum>;
/// The greatest element under a window; NaN if any is NaN. Its derivative goes to the first of the
/// greatest elements.
pub type ReduceWindowMax = ReduceWindow<Max>;
/// The least element under a window; NaN if any is NaN. Its derivative goes to the first of the
/// least elements.
pub type ReduceWindowMin = ReduceWindow<Min>;

impl<K> ReduceWindow<K> {
    /// The reduction under this window.
    pub fn new(window: Window) -> Self {
        ReduceWindow { window, kind: PhantomData }
    }
}

impl<K: WindowFold> ReduceWindow<K> {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample =
            |window: Window, x: Array| Sample::new(ReduceWindow::<K>::new(window), vec![x]);
        let mut samples: Vec<Sample> = windows()
            .into_iter()
            .map(|(window, shape)| sample(window, uneven(&shape)).tolerance(EXACT))
            .collect();
        samples.push(sample(Window::new([2]), ramp(DType::I32, [4])));
        samples.push(sample(Window::new([2]), ramp(DType::F64, [4])).tolerance(EXACT));
        samples.push(
            sample(Window::new([2]), ramp(DType::BF16, [4])).tolerance(EXACT).not_differentiable(),
        );
        samples.push(sample(Window::new([2]), ramp(DType::F32, [1])).not_differentiable());
        let peculiar = [1.0, f64::INFINITY, f64::NAN, 2.0, -0.0, f64::NEG_INFINITY];
        samples.push(
            sample(Window::new([2]), Array::floats(DType::F32, [6], &peculiar))
                .not_differentiable(),
        );
        samples
    }
}

/// Windows, each with the shape of an operand: disjoint, overlapping, padded, with gaps.
fn windows() -> Vec<(Window, Vec<usize>)> {
    vec![
        (Window::new([2]), vec![5]),
        (Window { strides: vec![2, 3], ..Window::new([2, 2]) }, vec![4, 6]),
        (
            Window {
                strides: vec![2, 1],
                low: vec![1, 0],
                high: vec![2, 1],
                ..Window::new([3, 2])
            },
            vec![4, 3],
        ),
        (Window::new([1, 3, 1]), vec![2, 3, 2]),
    ]
}

/// The sums of these numbers are exact in any order, except for the sign of a zero.
const EXACT: f64 = 1e-15;

/// Distinct values in no particular order.
fn uneven(shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|i| ((7 * i + 3) % 29) as f64 * 0.25 - 3.0).collect();
    Array::floats(DType::F32, shape, &values)
}

impl<K: WindowFold> ReduceWindow<K> {
    pub(super) const MNEMONIC: &'static str = K::MNEMONIC;
    pub(super) const ATTRIBUTES: &'static [&'static str] =
        &["dimensions", "strides", "low", "high"];

    pub(super) fn parse(attributes: &Attributes) -> Result<Self, String> {
        Window::parse(attributes).map(ReduceWindow::new)
    }
}

impl<K: WindowFold> OpStruct for ReduceWindow<K> {
    fn mnemonic(&self) -> &'static str {
        K::MNEMONIC
    }

    fn attributes(&self) -> Attributes {
        self.window.attributes()
    }
}

impl<K: WindowFold> Op for ReduceWindow<K> {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        K::COMBINE.dtype(&[inputs[0].dtype])?;
        Ok(vec![self.window.places(&inputs[0])?])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        let ty = self.window.places(x.ty()).expect("eval is given well-typed operands");
        vec![Array::from_fn(ty, |place| {
            let mut total = K::identity(x.ty().dtype);
            self.window.for_each(&x.ty().shape, place, |index| {
                total = K::combine(x.ty().dtype, total, x.at(index));
            });
            total
        })]
    }

    batched_as! { |op, _cx| ReduceWindow::<K>::new(op.window.batched()) }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        Rule::Some(vec![tangents[0].map(|t| K::jvp(b, &self.window, inputs[0], t))])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let cotangent = cotangents[0].expect("transpose is called with a cotangent");
        let ty = inputs[0].linear().expect("the only operand of a linear equation is linear");
        K::transpose(b, &self.window, ty, cotangent).map(|cotangent| vec![Some(cotangent)])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        vec![lower::<K>(hlo, &self.window, inputs[0], &results[0])]
    }
}

/// Emits `stablehlo.reduce_window` of one operand.
pub(super) fn lower<K: Monoid>(
    hlo: &mut dyn Hlo,
    window: &Window,
    x: HloValue,
    result: &TensorType,
) -> HloValue {
    let scalar = TensorType::scalar(result.dtype);
    let identity = hlo_splat(hlo, &scalar, K::identity(result.dtype));
    let region = K::region(hlo, result.dtype);
    let results = std::slice::from_ref(result);
    window.lower(hlo, "stablehlo.reduce_window", &[x, identity], vec![region], results)[0]
}

impl WindowFold for Sum {
    const MNEMONIC: &'static str = "reduce_window_sum";

    fn jvp(b: &mut Builder, window: &Window, _: Var, t: Var) -> Var {
        b.reduce_window_sum(t, window.clone())
    }

    /// An element gets the sum of the cotangents of the windows that contain it. Those windows
    /// start within a window's extent in front of the element.
    fn transpose(b: &mut Builder, window: &Window, ty: &TensorType, ct: Var) -> Rule<Var> {
        let places = b.ty(ct).clone();
        if places.elements() == 0 {
            return Rule::Some(b.zeros(ty));
        }
        let axes = 0..ty.rank();
        let low: Vec<i64> = (axes.clone())
            .map(|axis| (window.dimensions[axis] - 1 - window.low[axis]) as i64)
            .collect();
        let high: Vec<i64> = axes
            .map(|axis| {
                let starts = (places.shape[axis] - 1) * window.strides[axis] + 1;
                (ty.shape[axis] + window.low[axis] - starts) as i64
            })
            .collect();
        let between: Vec<i64> = window.strides.iter().map(|&by| by as i64 - 1).collect();
        let zero = b.zeros(&TensorType::scalar(ty.dtype));
        let padded = b.pad(ct, zero, &low, &high, &between);
        Rule::Some(b.reduce_window_sum(padded, Window::new(&window.dimensions[..])))
    }
}

impl WindowFold for Max {
    const MNEMONIC: &'static str = "reduce_window_max";

    fn jvp(b: &mut Builder, window: &Window, x: Var, t: Var) -> Var {
        b.select_and_gather(x, t, Direction::Ge, window.clone())
    }
}

impl WindowFold for Min {
    const MNEMONIC: &'static str = "reduce_window_min";

    fn jvp(b: &mut Builder, window: &Window, x: Var, t: Var) -> Var {
        b.select_and_gather(x, t, Direction::Le, window.clone())
    }
}

impl Builder {
    /// Emits [`ReduceWindowSum`].
    #[track_caller]
    pub fn reduce_window_sum(&mut self, x: Var, window: Window) -> Var {
        self.emit1(ReduceWindowSum::new(window), &[x])
    }
}
