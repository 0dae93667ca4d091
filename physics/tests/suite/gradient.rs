//! Gradients of a step: finite, and equal to finite differences where no contact begins or ends.

use podracer_dsl::prelude::*;
use podracer_physics::{Data, Model};

const STATES: usize = 12;

/// A robot, and heights of its root for a robot on the floor or in it. The rod touches a cylinder.
const ROBOTS: &[(&str, &str, usize, [f64; 2])] = &[
    (
        "half_cheetah",
        include_str!("../../../envs/src/mujoco/models/half_cheetah.xml"),
        1,
        [-0.25, -0.1],
    ),
    ("hopper", include_str!("../../../envs/src/mujoco/models/hopper.xml"), 1, [1.1, 1.22]),
    ("ant", include_str!("../../../envs/src/mujoco/models/ant.xml"), 2, [0.2, 0.5]),
    ("rod", ROD, 2, [0.26, 0.29]),
];

/// A thick capsule on the end of a cylinder, which its segment does not enter.
const ROD: &str = r#"<mujoco>
  <worldbody>
    <geom name="drum" type="cylinder" size="0.15 0.2"/>
    <body euler="0 88 20"><freejoint/><geom name="rod" type="capsule" size="0.1 0.25"/></body>
  </worldbody>
</mujoco>"#;

/// Positions, velocities and controls, which a loss follows from.
type Inputs = (Tensor, Tensor, Tensor);

/// A sum of the next state's numbers with fixed weights.
fn loss(model: &Model, (qpos, qvel, ctrl): Inputs) -> Tensor {
    let data = Data { qpos, qvel, ..model.data(F64) };
    let next = model.step(&data, ctrl);
    let weighted = |x: Tensor| {
        let weights: Vec<f64> = (0..x.shape()[0]).map(|i| (1.3 * i as f64 + 0.4).sin()).collect();
        (x * constant_of(&Array::floats(F64, [weights.len()], &weights))).sum()
    };
    weighted(next.qpos) * 20.0 + weighted(next.qvel)
}

/// Random states, and a random direction for each.
fn states(model: &Model, height: usize, [low, high]: [f64; 2], seed: Tensor) -> (Inputs, Inputs) {
    let [a, b, c, d, e, f, g] = Key::from_words(seed).split_into();
    let draw = |key: Key, n: usize| (key.uniform([n]) * 2.0 - 1.0).astype(F64);
    let root = one_hot(scalar(height as i32), model.nq).astype(F64);
    let lowered = root * ((draw(g, 1).index(0) + 1.0) * (0.5 * (high - low)) + low);
    let start = model.data(F64).qpos * (root * -1.0 + 1.0);
    let qpos = start + draw(a, model.nq) * 0.1 * (root * -1.0 + 1.0) + lowered;
    let inputs = (qpos, draw(b, model.nv), draw(c, model.nu));
    (inputs, (draw(d, model.nq), draw(e, model.nv), draw(f, model.nu)))
}

#[test]
fn gradients_of_steps_are_finite_differences() {
    for &(name, text, height, range) in ROBOTS {
        let model = Model::from_mjcf(text).unwrap();
        let traced = trace((u32([STATES, 2]),), |(seeds,)| {
            vmap(seeds, |seed| {
                let (inputs, direction) = states(&model, height, range, seed);
                let along = |slopes: Inputs| {
                    let dot = |a: Tensor, b: Tensor| (a * b).sum();
                    dot(slopes.0, direction.0)
                        + dot(slopes.1, direction.1)
                        + dot(slopes.2, direction.2)
                };
                let slope = along(grad(inputs, |inputs| loss(&model, inputs)));
                let difference = |size: f64| {
                    let moved = |sign: f64| {
                        let add = |x: Tensor, d: Tensor| x + d * (sign * size);
                        let (a, b, c) = inputs;
                        loss(
                            &model,
                            (add(a, direction.0), add(b, direction.1), add(c, direction.2)),
                        )
                    };
                    (moved(1.0) - moved(-1.0)) / (2.0 * size)
                };
                let data = Data { qpos: inputs.0, qvel: inputs.1, ..model.data(F64) };
                let pushed = model.forward(&data, inputs.2, |forward| forward.qfrc_constraint());
                [slope, difference(1e-6), difference(3e-6), pushed.abs().sum()]
            })
        });
        let words: Vec<u32> = (0..2 * STATES as u32).collect();
        let seeds = Array::from_slice([STATES, 2], &words).unwrap();
        let results = traced.unwrap().eval(&[seeds]).unwrap();
        let [slopes, near, far, pushed] = [0, 1, 2, 3].map(|i| results[i].to_f64());
        let mut equal = 0;
        for state in 0..STATES {
            let (slope, near, far) = (slopes[state], near[state], far[state]);
            assert!(slope.is_finite(), "{name} {state}");
            let scale = near.abs().max(1.0);
            // Differences that depend on their size belong to a contact that begins or ends.
            if (near - far).abs() < 1e-5 * scale {
                equal += 1;
                assert!((slope - near).abs() < 1e-5 * scale, "{name} {state}: {slope} and {near}");
            }
        }
        assert!(equal > STATES * 3 / 4, "{name}: {equal} states are smooth");
        let touching = pushed.iter().filter(|force| **force > 1.0).count();
        assert!(touching > STATES / 2, "{name}: {touching} states have constraint forces");
    }
}
