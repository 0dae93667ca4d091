//! Finds the equation that a NaN comes from: the reference semantics look at the results of every equation, those of
//! bodies too.

use super::Loc;
use crate::array::Array;
use crate::types::TensorType;
use std::cell::RefCell;
use std::fmt;

/// The first equation that gave a NaN and was given none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NanOrigin {
    /// The op's mnemonic.
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

/// Runs `eval`, and gives with its result the first NaN that [`look`] saw meanwhile.
pub(super) fn watched<T>(eval: impl FnOnce() -> T) -> (T, Option<NanOrigin>) {
    let outer = FOUND.replace(Some(None));
    let result = eval();
    (result, FOUND.replace(outer).flatten())
}

/// Looks for a NaN in the results of an op that has been evaluated.
pub(super) fn look(op: &'static str, loc: Loc, inputs: &[Array], outputs: &[Array]) {
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
            op,
            loc,
            operands: inputs.iter().map(|input| input.ty.clone()).collect(),
            index,
        });
    });
}
