//! Stages of a step: results that are computed once, whichever number of equations reads them.

use podracer_dsl::prelude::*;

use crate::model::Model;
use crate::real::Real;
use crate::vector::{Inertia, Spatial};

/// The numbers of a result, in a fixed order.
pub(crate) trait Numbers {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real));
}

impl Numbers for Real {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        f(self);
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.iter_mut().for_each(|part| part.each(f));
    }
}

impl<T: Numbers, const N: usize> Numbers for [T; N] {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.iter_mut().for_each(|part| part.each(f));
    }
}

impl<A: Numbers, B: Numbers> Numbers for (A, B) {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.0.each(f);
        self.1.each(f);
    }
}

/// [`Numbers`] of a struct, by its fields with numbers.
macro_rules! numbers {
    ($type:ty: $($field:ident),*) => {
        impl $crate::dynamics::stage::Numbers for $type {
            fn each(&mut self, f: &mut dyn FnMut(&mut $crate::real::Real)) {
                $(self.$field.each(f);)*
            }
        }
    };
}
pub(crate) use numbers;

numbers!(Spatial: w, v);
numbers!(Inertia: mass, moment, rotational);

/// The tensors among the numbers.
pub(crate) fn values(numbers: &mut impl Numbers) -> Vec<Tensor> {
    let mut values = Vec::new();
    numbers.each(&mut |number| {
        if let Real::Value(x) = *number {
            values.push(x);
        }
    });
    values
}

/// Replaces the tensors among the numbers.
pub(crate) fn replace(numbers: &mut impl Numbers, values: Vec<Tensor>) {
    let mut values = values.into_iter();
    numbers.each(&mut |number| {
        if let Real::Value(x) = number {
            *x = values.next().expect("one tensor for each value");
        }
    });
}

/// The result of `f`, which XLA computes once instead of once for each reader.
pub(crate) fn stage<T: Numbers>(f: impl FnOnce() -> T) -> T {
    let mut result = None;
    let computed = fence((), |()| {
        let mut made = f();
        let values = values(&mut made);
        result = Some(made);
        values
    });
    let mut result = result.expect("the closure runs once");
    replace(&mut result, computed);
    result
}

/// The number of degrees of freedom above which a model is large.
const LARGE: usize = 10;

/// A part of a stage, which is a stage of its own in a large model. Each stage costs compile time, more than
/// proportionally. In a small model it takes longer than what XLA computes once more for each reader.
pub(crate) fn detail<T: Numbers>(model: &Model, f: impl FnOnce() -> T) -> T {
    if model.nv > LARGE { stage(f) } else { f() }
}

/// A loop over the leading axis of `xs`. The carry's numbers are tensors with the dtype of `like`.
pub(crate) fn rounds<T: Numbers + Clone, Y: IntoTree>(
    mut carry: T,
    xs: Tensor,
    like: Tensor,
    f: impl FnOnce(T, Tensor) -> (T, Y),
) -> (T, Y::Tree) {
    let all = |carry: &mut T| {
        carry.each(&mut |number| *number = Real::Value(number.tensor(like)));
        values(carry)
    };
    let start = all(&mut carry);
    let (end, outputs) = scan(start, xs, |values, x| {
        let mut now = carry.clone();
        replace(&mut now, values);
        let (mut next, output) = f(now, x);
        (all(&mut next), output)
    });
    replace(&mut carry, end);
    (carry, outputs)
}
