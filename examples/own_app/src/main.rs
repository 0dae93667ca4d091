//! An environment of one's own with the whole command line of podracer: `cargo run --release -- train docking-ppo`.

use podracer::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A ship on a line, pushed left or right. Each step at the dock, which is at 0, pays 1; far away it is lost.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Docking {
    /// Speed that a push adds.
    push: f64,
    /// Steps after which an episode is cut off.
    #[schemars(range(min = 1))]
    time_limit: usize,
}

impl Default for Docking {
    fn default() -> Self {
        Docking { push: 0.05, time_limit: 50 }
    }
}

/// The ship's position and speed, and the steps since the episode began.
#[derive(Tree, Clone, Copy)]
struct Ship {
    x: Tensor,
    v: Tensor,
    time: Tensor,
}

impl Environment for Docking {
    type State = Ship;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Ship {
        Ship { x: 2.0 * key.uniform([]) - 1.0, v: scalar(0.0), time: scalar(0) }
    }
    fn step(&self, ship: Ship, action: Tensor, _key: Key) -> (Ship, TimeStep) {
        let v = ship.v + self.push * (action - 1).astype(F32);
        let ship = Ship { x: ship.x + v, v, time: ship.time + 1 };
        let terminated = ship.x.abs().gt(3.0);
        let truncated = ship.time.ge(self.time_limit) & !terminated;
        let reward = (-10.0 * ship.x.square()).exp();
        (ship, TimeStep { observation: self.observe(ship), reward, terminated, truncated })
    }
    fn observe(&self, ship: Ship) -> Tensor {
        stack(&[ship.x, ship.v], 0)
    }
    fn observation_space(&self) -> Space {
        Space::unbounded([2])
    }
    fn action_space(&self) -> Space {
        Space::discrete(3)
    }
}

fn main() -> std::process::ExitCode {
    podracer::App::new()
        .environment::<Docking>("docking")
        .experiment(include_str!("../docking-ppo.toml"))
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_fits_its_spaces() {
        check_environment(&Docking::default()).unwrap();
    }

    /// A change of the step shows here: `cargo insta review` accepts it.
    #[test]
    fn the_step_is_reviewed() {
        let program = podracer::testing::step_program(&Docking::default());
        insta::assert_snapshot!(program, @r"
        step(x: f32[], v: f32[], time: i32[], action: i32[], key: u32[2]) {
          add: f32[] = v + (0.05 * f32(action - 1))
          add_2: f32[] = x + add
          add_3: i32[] = time + 1
          compare: bool[] = abs(add_2) > 3.0
          concatenate: f32[2] = concatenate(reshape(add_2, [1]), reshape(add, [1]), dimension=0)
          return
            x: f32[] = add_2
            v: f32[] = add
            time: i32[] = add_3
            observation: f32[2] = concatenate
            reward: f32[] = exponential(-10.0 * (add_2 * add_2))
            terminated: bool[] = compare
            truncated: bool[] = (add_3 >= 50) & !compare
        }
        ");
    }
}
