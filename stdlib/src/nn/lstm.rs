//! A recurrent layer.

use super::initializer::Initializer;
use podracer_dsl::prelude::*;

/// Long short-term memory: Hochreiter and Schmidhuber, 1997, with forget gates (Gers et al., "Learning to forget", 2000).
///
/// ```text
/// i, f, o = sigmoid, g = tanh   of   x input + h hidden + bias
/// c' = f c + i g
/// h' = o tanh(c')
/// ```
#[derive(Tree, Clone, Copy)]
pub struct Lstm {
    /// Weights of the input, `f32[in, 4 size]`: for `i`, `f`, `g`, `o` in this order.
    pub input: Tensor,
    /// Weights of the state, `f32[size, 4 size]`.
    pub hidden: Tensor,
    /// Bias, `f32[4 size]`.
    pub bias: Tensor,
}

/// The state of an [`Lstm`] between steps.
#[derive(Tree, Clone, Copy)]
pub struct LstmState {
    /// The cell, `f32[size]`.
    pub c: Tensor,
    /// The output, `f32[size]`.
    pub h: Tensor,
}

impl LstmState {
    /// The initial state: zeros.
    #[track_caller]
    pub fn zeros(size: usize) -> LstmState {
        LstmState { c: zeros(F32, [size]), h: zeros(F32, [size]) }
    }
}

impl Lstm {
    /// A layer with weights drawn as in flax: LeCun normal for the input, orthogonal for the state,
    /// each gate separately; bias 0.
    #[track_caller]
    pub fn init(key: Key, inputs: usize, size: usize) -> Lstm {
        let keys = key.split_n(8);
        let gates = |first: usize, rows: usize, weight: Initializer| {
            let gate = |i: usize| weight.init(keys.at(first + i), &[rows, size]);
            concatenate(&[0, 1, 2, 3].map(gate), 1)
        };
        Lstm {
            input: gates(0, inputs, Initializer::lecun_normal()),
            hidden: gates(4, size, Initializer::orthogonal(1.0)),
            bias: zeros(F32, [4 * size]),
        }
    }

    /// One step: the state after `x`; its `h` is the output. `x` is `f32[in]`.
    #[track_caller]
    pub fn step(&self, state: LstmState, x: Tensor) -> LstmState {
        self.gated(state, dot(x, self.input) + self.bias)
    }

    /// Steps through a trajectory: the state after every step, `f32[T, size]`; its `h` is the
    /// output. `xs` is `f32[T, in]`. `reset` is `bool[T]`, true if `xs[t]` begins an episode; the
    /// state is then reset to zeros before the step.
    #[track_caller]
    pub fn unroll(&self, state: LstmState, xs: Tensor, reset: Tensor) -> LstmState {
        let _scope = scope("Lstm::unroll");
        // The input's contribution is one product for all steps.
        let driven = dot(xs, self.input) + self.bias;
        let (_, states) = scan(state, (driven, reset), |state, (driven, reset)| {
            let begun = LstmState::zeros(self.hidden.len());
            let state = self.gated(tree_select(reset, &begun, &state), driven);
            (state, state)
        });
        states
    }

    #[track_caller]
    fn gated(&self, state: LstmState, driven: Tensor) -> LstmState {
        let gates = (driven + dot(state.h, self.hidden)).split(4, 0);
        let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate]);
        let c = f.sigmoid() * state.c + i.sigmoid() * g.tanh();
        LstmState { c, h: o.sigmoid() * c.tanh() }
    }
}
