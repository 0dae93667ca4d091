//! Where a NaN comes from: the reference semantics run with an eye on every equation, those of bodies too.

use super::{Eqn, Func, Loc};
use crate::array::Array;
use crate::types::TensorType;
use std::cell::RefCell;
use std::fmt;

/// The first equation that gave a NaN and was given none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NanOrigin {
    /// The op.
    pub op: &'static str,
    /// The user's line.
    pub loc: Loc,
    /// The operands' types.
    pub operands: Vec<TensorType>,
    /// The indices of the first NaN in its result.
    pub index: Vec<usize>,
}

impl fmt::Display for NanOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<String> = self.operands.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{}({}) gave NaN at {:?}, and none was given to it\n  --> {}",
            self.op,
            types.join(", "),
            self.index,
            self.loc
        )
    }
}

thread_local! {
    /// `None` unless somebody looks for a NaN on this thread; then what was found first.
    static FOUND: RefCell<Option<Option<NanOrigin>>> = const { RefCell::new(None) };
}

impl Func {
    /// [`Func::eval`], and where the first NaN came from, if there is one that was not in the arguments. An equation in
    /// the body of a loop is found in the iteration in which it gives a NaN.
    pub fn eval_to_nan(&self, arguments: &[Array]) -> (Vec<Array>, Option<NanOrigin>) {
        let outer = FOUND.replace(Some(None));
        let results = self.eval(arguments);
        let found = FOUND.replace(outer).flatten();
        (results, found)
    }
}

/// Looks at an equation that has been evaluated.
pub(super) fn look(eqn: &Eqn, inputs: &[Array], outputs: &[Array]) {
    FOUND.with_borrow_mut(|found| {
        let Some(found @ None) = found else {
            return;
        };
        let nan_in = |array: &Array| {
            let float = array.ty.dtype.is_float();
            let mut elements = array.data.iter().take_while(|_| float);
            elements.position(|element| element.float().is_nan())
        };
        let Some((output, position)) =
            outputs.iter().find_map(|output| Some((output, nan_in(output)?)))
        else {
            return;
        };
        if inputs.iter().any(|input| nan_in(input).is_some()) {
            return;
        }
        let mut rest = position;
        let mut index: Vec<usize> = output
            .ty
            .shape
            .iter()
            .rev()
            .map(|&extent| {
                let here = rest % extent;
                rest /= extent;
                here
            })
            .collect();
        index.reverse();
        *found = Some(NanOrigin {
            op: eqn.op.mnemonic(),
            loc: eqn.loc,
            operands: inputs.iter().map(|input| input.ty.clone()).collect(),
            index,
        });
    });
}
