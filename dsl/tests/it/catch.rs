//! The environment and the loss of the design page, as users write them.

use crate::helpers::{f32s, i32s, run_on};
use podracer_dsl::prelude::*;

#[derive(Clone)]
struct Catch {
    rows: usize,
    columns: usize,
}

#[derive(Tree, Clone, Copy)]
struct State {
    ball_row: Tensor,
    ball_column: Tensor,
    paddle: Tensor,
}

impl Catch {
    fn initial_state(&self, key: Key) -> State {
        State {
            ball_row: zeros(I32, []),
            ball_column: key.randint([], 0..self.columns),
            paddle: scalar(self.columns as i32 / 2),
        }
    }

    fn step(&self, state: State, action: Tensor) -> (State, Tensor, Tensor, Tensor) {
        let paddle = (state.paddle + action - 1).clamp(0, self.columns as i32 - 1);
        let ball_row = state.ball_row + 1;
        let landed = ball_row.eq(self.rows as i32 - 1);
        let reward = select(landed, select(paddle.eq(state.ball_column), 1.0, -1.0), 0.0);
        let state = State { ball_row, paddle, ..state };
        (state, self.observe(state), reward, landed)
    }

    fn observe(&self, state: State) -> Tensor {
        let cells = self.rows * self.columns;
        one_hot(state.ball_row * self.columns + state.ball_column, cells)
            + one_hot(state.paddle + (self.rows - 1) * self.columns, cells)
    }
}

#[test]
fn a_batch_of_environments_runs_in_a_scan() {
    let env = Catch { rows: 4, columns: 3 };
    let results = run_on(key(), &[Array::ints(DType::U32, [2], &[0, 42])], |key| {
        let states = vmap(key.split_n(5), |key| env.initial_state(key));
        let (states, rewards) = scan(states, 0..3, |states, _| {
            let actions = full([5], 1);
            let (states, _, reward, _) =
                vmap((states, actions), |(state, action)| env.step(state, action));
            (states, reward)
        });
        (states, rewards)
    });
    assert_eq!(results[0], i32s(&[5], &[3; 5]));
    assert_eq!(results[3].ty().shape[..], [3, 5]);
    let rewards = results[3].to_f64();
    assert!(
        rewards[..10].iter().all(|&reward| reward == 0.0)
            && rewards[10..].iter().all(|&reward| reward.abs() == 1.0)
    );
}

/// Generalized advantage estimation, by a scan from the end.
fn gae(r_t: Tensor, discount_t: Tensor, v_tm1: Tensor, v_t: Tensor, lambda: f64) -> Tensor {
    let delta_t = r_t + discount_t * v_t - v_tm1;
    scan(0.0, rev((delta_t, discount_t)), |advantage, (delta, discount)| {
        let advantage = delta + lambda * discount * advantage;
        (advantage, advantage)
    })
    .1
}

#[test]
fn a_loss_with_a_reverse_scan_has_a_gradient() {
    let spec = (f32([3]), f32([3]), f32([3]), f32([3]));
    let inputs = [
        f32s(&[3], &[1.0, 0.0, 2.0]),
        f32s(&[3], &[0.9, 0.9, 0.0]),
        f32s(&[3], &[0.5, 0.25, 1.0]),
        f32s(&[3], &[0.25, 1.0, 0.0]),
    ];
    let results = run_on(spec, &inputs, |(r, d, v_tm1, v_t)| {
        let ((loss, advantage), grads) = value_and_grad((v_tm1, v_t), |(v_tm1, v_t)| {
            let advantage = gae(r, d, v_tm1, v_t, 0.5);
            (advantage.square().sum(), advantage)
        });
        (loss, advantage, grads)
    });
    // delta = [0.725, 0.65, 1.0]; A2 = 1, A1 = 0.65 + 0.45 = 1.1, A0 = 0.725 + 0.495 = 1.22
    crate::helpers::close(&results[1], &[1.22, 1.1, 1.0], 1e-6);
    crate::helpers::close(&results[0], &[1.22f64.powi(2) + 1.21 + 1.0], 1e-6);
    // dL/dA0 = 2.44, dL/dA1 = 2.2 + 0.45 * 2.44, dL/dA2 = 2 + 0.45 * that
    let (a0, a1) = (2.44, 2.2 + 0.45 * 2.44);
    let a2 = 2.0 + 0.45 * a1;
    crate::helpers::close(&results[2], &[-a0, -a1, -a2], 1e-6);
    crate::helpers::close(&results[3], &[0.9 * a0, 0.9 * a1, 0.0], 1e-6);
}
