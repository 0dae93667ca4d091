//! Stages of a step: results that are computed once, whichever number of equations reads them.

use podracer_dsl::prelude::*;

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
fn tensors(result: &mut impl Numbers) -> Vec<Tensor> {
    let mut tensors = Vec::new();
    result.each(&mut |number| {
        if let Real::Value(x) = *number {
            tensors.push(x);
        }
    });
    tensors
}

/// The result of `f`, which XLA computes once instead of once for each reader.
pub(crate) fn stage<T: Numbers>(f: impl FnOnce() -> T) -> T {
    let mut result = None;
    let computed = fence((), |()| {
        let mut made = f();
        let tensors = tensors(&mut made);
        result = Some(made);
        tensors
    });
    let mut computed = computed.into_iter();
    let mut result = result.expect("the closure runs once");
    result.each(&mut |number| {
        if let Real::Value(x) = number {
            *x = computed.next().expect("one tensor for each value");
        }
    });
    result
}
