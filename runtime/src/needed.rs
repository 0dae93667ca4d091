//! The least memory of a training, known from its types alone: a training that cannot fit is
//! rejected before minutes of compiling.
//!
//! # Invariants
//! - It is a lower bound. It counts buffers that exist at the same time whatever XLA does. These
//!   are the state, which every call takes, and the results of the largest loop, such as the
//!   rollout or the trees of a search.

use podracer_compiler::ops::Scan;
use podracer_compiler::{Func, Loc, TensorType, Var};

use crate::pjrt::memory;
use crate::{Client, RuntimeError};

/// Buffers that exist at the same time.
#[derive(Default)]
pub(crate) struct Needed {
    /// Name, type, number of copies.
    parts: Vec<(String, TensorType, usize)>,
}

/// Number of buffers that an error names.
const SHOWN: usize = 3;

impl Needed {
    /// Adds `copies` copies of a buffer.
    pub(crate) fn add(&mut self, name: String, ty: &TensorType, copies: usize) {
        self.parts.push((name, ty.clone(), copies));
    }

    /// Adds `copies` copies of the arrays that the largest loop of a function makes.
    pub(crate) fn add_largest_loop(&mut self, func: &Func, copies: usize) {
        let mut largest = (0, Loc::NONE, Vec::new());
        find_largest(func, &mut largest);
        let (_, loc, types) = largest;
        self.parts.extend(types.into_iter().map(|ty| (format!("the loop at {loc}"), ty, copies)));
    }

    /// Checks that this amount of memory is free, if the devices compute in the host's memory.
    ///
    /// # Errors
    /// [`RuntimeError::OutOfMemory`] with the largest buffers.
    pub(crate) fn check(self, client: &Client) -> Result<(), RuntimeError> {
        match memory::available().filter(|_| client.platform() == "cpu") {
            Some(available) => self.check_against(available),
            None => Ok(()),
        }
    }

    fn check_against(mut self, available: u64) -> Result<(), RuntimeError> {
        let bytes = |(_, ty, copies): &(String, TensorType, usize)| {
            let bytes_of_one =
                ty.shape.iter().try_fold(ty.dtype.size() as u64, |bytes, &extent| {
                    bytes.checked_mul(extent as u64)
                });
            bytes_of_one.unwrap_or(u64::MAX).saturating_mul(*copies as u64)
        };
        let needed = self.parts.iter().map(bytes).fold(0, u64::saturating_add);
        if needed <= available {
            return Ok(());
        }
        self.parts.sort_by_key(|part| std::cmp::Reverse(bytes(part)));
        let named = self.parts.iter().take(SHOWN).map(|part| {
            let (name, ty, copies) = part;
            let times = if *copies > 1 { format!("{copies} times ") } else { String::new() };
            format!("{} for {times}{ty} of {name}", memory::size(bytes(part)))
        });
        let rest = self.parts.iter().skip(SHOWN).map(bytes).fold(0, u64::saturating_add);
        Err(RuntimeError::OutOfMemory(format!(
            "the training takes at least {}, and {} are free: {}, and {} for all else",
            memory::size(needed),
            memory::size(available),
            named.collect::<Vec<_>>().join(", "),
            memory::size(rest)
        )))
    }
}

/// The loop with the most bytes of results, including loops inside others: bytes, line, and the
/// types of the results. The results are the arrays that it writes round by round, and the carries
/// that begin as new values, such as the trees of a search. Other carries may be buffers that are
/// counted already.
fn find_largest(func: &Func, largest: &mut (u64, Loc, Vec<TensorType>)) {
    let new = new_buffers(func);
    for eqn in &func.eqns {
        if let Some(scan) = eqn.op.downcast::<Scan>()
            && scan.length > 1
        {
            let begin = &eqn.inputs[scan.consts..];
            let makes = |&(at, _): &(usize, &Var)| at >= scan.carries || new[begin[at].index()];
            let types = eqn.outputs.iter().enumerate().filter(makes);
            let types: Vec<TensorType> = types.map(|(_, &var)| func.ty(var).clone()).collect();
            let bytes = types.iter().map(|ty| ty.bytes() as u64).fold(0, u64::saturating_add);
            if bytes > largest.0 {
                *largest = (bytes, eqn.loc, types);
            }
        }
        eqn.op.funcs().into_iter().for_each(|body| find_largest(body, largest));
    }
}

/// For every variable of a function, true if no parameter's buffer can become its buffer, because
/// it comes only from smaller variables.
fn new_buffers(func: &Func) -> Vec<bool> {
    let mut new = vec![false; func.types.len()];
    let bytes = |var: Var| func.ty(var).bytes();
    for eqn in &func.eqns {
        for &output in &eqn.outputs {
            let fits = |input: &&Var| bytes(**input) >= bytes(output);
            new[output.index()] = eqn.inputs.iter().filter(fits).all(|input| new[input.index()]);
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use podracer_dsl::prelude::*;

    use super::*;

    #[test]
    fn the_state_and_the_largest_loop_are_counted_once() {
        let line = line!() + 2;
        let traced = trace(f32([1024]), |x| {
            let (x, ys) = scan(x, 0..256, |x, _| {
                let (x, small) = scan(x, 0..2, |x: Tensor, _| (x + 1.0, x));
                (x, small.index(0))
            });
            x + ys.sum_axis(0)
        });
        let traced = traced.expect("no mistake");
        let needed = || {
            let mut needed = Needed::default();
            needed.add("the state's `x`".to_owned(), &TensorType::new(F32, [1024]), 2);
            needed.add_largest_loop(traced.func(), 2);
            needed
        };
        let bytes = 2 * 4 * 1024 * (1 + 256);
        assert!(needed().check_against(bytes).is_ok());
        let error = needed().check_against(bytes - 1).expect_err("a byte too many").to_string();
        let expected =
            format!("0.00 GiB for 2 times f32[256,1024] of the loop at {}:{line}:", file!());
        assert!(error.contains(&expected), "{error}");
        assert!(error.contains("f32[1024] of the state's `x`"), "{error}");
        let huge = TensorType::new(F32, [usize::MAX / 2, 8]);
        let mut needed = Needed::default();
        needed.add("the state's `x`".to_owned(), &huge, 1);
        assert!(needed.check_against(u64::MAX - 1).is_err());
    }

    #[test]
    fn a_carry_that_begins_as_a_new_array_is_counted() {
        let loops = |carry: fn(Tensor) -> Tensor| {
            let traced = trace(f32([1024]), |x| {
                let step = |_, (all, one): (Tensor, Tensor)| (all.set(0, one), one + 1.0);
                fori_loop(0..9, (carry(x), scalar(0.0)), step).0
            });
            let mut needed = Needed::default();
            needed.add_largest_loop(traced.expect("no mistake").func(), 1);
            needed.check_against(4095).is_err()
        };
        assert!(!loops(|x| x), "an argument");
        assert!(!loops(|x| (x + 1.0).set(3, 2.0)), "its buffer may be the argument's");
        assert!(loops(|x| full([1024], x.index(0)).set(1, 2.0)));
    }
}
