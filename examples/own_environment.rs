//! An environment of one's own, and PPO on it: `cargo run --release --example own_environment`. README.md shows this program.
#![allow(clippy::print_stdout)]

use podracer::prelude::*;

/// A ship on a line, pushed left or right. Each step at the dock, which is at 0, pays 1; far away it is lost.
#[derive(Clone)]
struct Docking;

#[derive(Tree, Clone, Copy)]
struct Ship {
    position: Tensor,
    velocity: Tensor,
}

impl Environment for Docking {
    type State = Ship;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Ship {
        let position = 2.0 * key.uniform([]) - 1.0;
        let velocity = scalar(0.0);
        Ship { position, velocity }
    }
    fn step(&self, ship: Ship, action: Tensor, _key: Key) -> (Ship, TimeStep) {
        let velocity = ship.velocity + 0.05 * (action - 1).astype(F32);
        let position = ship.position + velocity;
        let ship = Ship { position, velocity };
        let timestep = TimeStep {
            observation: self.observe(ship),
            reward: (-10.0 * position.square()).exp(),
            terminated: position.abs().gt(3.0),
            truncated: constant(false),
        };
        (ship, timestep)
    }
    fn observe(&self, ship: Ship) -> Tensor {
        stack(&[ship.position, ship.velocity], 0)
    }
    fn observation_space(&self) -> Space {
        Space::unbounded([2])
    }
    fn action_space(&self) -> Space {
        Space::discrete(3)
    }
    fn truncates(&self) -> bool {
        false
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Episodes are cut off after 50 steps. 64 environments act for 32 steps before they learn from them.
    let agent = Ppo::new(Docking.observation_space(), Docking.action_space());
    let ppo = AgentLoop::new(Docking.time_limit(50), agent, 64, 32);
    let (init, update) = (|key| ppo.init(key), |state| ppo.update(state));
    // One device, and ten updates in each call of the compiled program.
    let traced = AnakinLoop::trace("docking", 1, 10, init, update)?;
    let anakin = traced.compile_on(&Client::cpu(ClientOptions::default())?)?;
    let mut state = anakin.init(0)?;
    for call in 1..=15 {
        let metrics;
        (state, metrics) = anakin.run(state)?;
        let returns: f32 = metrics.sharded.return_sum.to_vec::<f32>()?.iter().sum();
        let episodes: i32 = metrics.sharded.count.to_vec::<i32>()?.iter().sum();
        println!("call {call}: mean return {:.2}", returns / episodes as f32);
    }
    Ok(())
}
