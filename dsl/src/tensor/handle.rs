//! The handle of a tensor, apart from all methods that need a trace: the trace itself holds handles.

use podracer_compiler::Loc;

/// A tensor of the program being traced. `Copy`: it is a name for a value that will exist when the program runs.
///
/// It has neither `PartialEq` nor `PartialOrd`: `x == y` and `if x < y` cannot know the values, and
/// fail to compile. Use [`Tensor::eq`], [`select`](super::select) and [`cond`](crate::cond).
///
/// A handle belongs to the trace that made it. Using it in another trace is an error that names the
/// line that made it.
#[derive(Clone, Copy)]
#[must_use = "a tensor that is not used computes nothing"]
pub struct Tensor {
    trace: u32,
    slot: u32,
    made: Loc,
}

impl Tensor {
    pub(crate) fn of(trace: u32, slot: u32, made: Loc) -> Tensor {
        Tensor { trace, slot, made }
    }

    /// A handle made outside of any trace: using it in a trace is an error that names this place.
    pub(crate) fn dead(made: Loc) -> Tensor {
        Tensor { trace: 0, slot: 0, made }
    }

    pub(crate) fn trace_id(self) -> u32 {
        self.trace
    }

    pub(crate) fn slot(self) -> u32 {
        self.slot
    }

    /// The place in the user's source that made the tensor.
    pub fn made(self) -> Loc {
        self.made
    }
}
