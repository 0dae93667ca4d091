//! An environment of one's own, and PPO on it: `cargo run --release --example own_environment`. README.md shows this program.
#![allow(clippy::print_stdout)]

use podracer::prelude::*;

/// A ship on a line, pushed left or right. Each step at the dock, which is at 0, pays 1; far away it is lost.
#[derive(Clone)]
struct Docking;

impl Environment for Docking {
    type State = (Tensor, Tensor); // position and velocity: any struct of tensors that derives Tree
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> (Tensor, Tensor) {
        (2.0 * key.uniform([]) - 1.0, scalar(0.0))
    }
    fn step(&self, (x, v): Self::State, action: Tensor, _key: Key) -> (Self::State, TimeStep) {
        let v = v + 0.05 * (action - 1).astype(F32);
        let x = x + v;
        let (reward, lost) = ((-10.0 * x.square()).exp(), x.abs().gt(3.0));
        ((x, v), TimeStep::new(self.observe((x, v)), reward, lost))
    }
    fn observe(&self, (x, v): Self::State) -> Tensor {
        stack(&[x, v], 0)
    }
    fn observation_space(&self) -> Space {
        Space::unbounded([2])
    }
    fn action_space(&self) -> Space {
        Space::discrete(3)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Ppo::new(Docking.observation_space(), Docking.action_space());
    // Episodes are cut off after 50 steps. 64 environments act for 32 steps before the agent learns from them.
    let anakin = Anakin::new(Docking.time_limit(50), agent).environments(64).unroll(32);
    let anakin = anakin.compile(&Client::cpu(ClientOptions::default())?)?;
    let mut state = anakin.init(0)?;
    for call in 1..=15 {
        let metrics;
        (state, metrics) = anakin.run(state)?;
        println!("call {call}: mean return {:.2}", metrics.episode_return);
    }
    Ok(anakin.save_parameters(&state, "docking.safetensors")?)
}
