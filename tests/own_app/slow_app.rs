//! A program with an environment with one slow line, which `profile` must find.

use podracer::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point that is moved left or right, and drifts by a sum of sines.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
struct Drift {}

impl Environment for Drift {
    type State = Tensor;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Tensor {
        2.0 * key.uniform([]) - 1.0
    }
    fn step(&self, x: Tensor, action: Tensor, _key: Key) -> (Tensor, TimeStep) {
        let drift = (0..80).fold(scalar(0.0), |sum, i| sum + (x * (1.0 + i as f64)).sin()); // The slow line.
        let x = x + 0.1 * (action - 1).astype(F32) + 1e-4 * drift;
        let terminated = x.abs().gt(3.0);
        let step = TimeStep {
            observation: x.reshape([1]),
            reward: -x.abs(),
            terminated,
            truncated: constant(false),
        };
        (x, step)
    }
    fn observe(&self, x: Tensor) -> Tensor {
        x.reshape([1])
    }
    fn observation_space(&self) -> Space {
        Space::unbounded([1])
    }
    fn action_space(&self) -> Space {
        Space::discrete(3)
    }
}

/// PPO in it, with a network that takes less time than the slow line.
const EXPERIMENT: &str = r#"
experiment = "drift-ppo"
[environment]
name = "drift"
[agent]
kind = "ppo"
hidden = [4]
[anakin]
environments = 64
[train]
steps = 1_000_000
"#;

fn main() -> std::process::ExitCode {
    podracer::App::new().environment::<Drift>("drift").experiment(EXPERIMENT).run()
}
