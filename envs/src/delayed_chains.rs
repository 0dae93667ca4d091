//! Delayed chains as data: the first action determines a reward at the end of the episode, after a
//! delay that differs between tasks.
//!
//! Oh et al., "Discovering Reinforcement Learning Algorithms", 2020, trains a learned update rule
//! on such chains, with and without noise and distractors. The paper describes them but does not
//! publish the numbers that it draws; the numbers here are podracer's.

use crate::environment::{Environment, TimeStep};
use crate::render::{Align, Canvas, Colour, Shape};
use crate::space::Space;
use crate::tasks::Tasks;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of the actions.
const ACTIONS: usize = 2;

/// Chains with lengths between two numbers.
///
/// An episode has as many steps as its task is long. The first action decides the last reward, 1 or
/// -1; other actions do nothing. The agent sees the number of the state: the position, the choice,
/// and meaningless bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DelayedChains {
    /// Least length of a chain.
    #[schemars(range(min = 2, max = 1_000))]
    pub shortest: usize,
    /// Greatest length of a chain.
    #[schemars(range(min = 2, max = 1_000))]
    pub longest: usize,
    /// True for a random reward of 1 or -1 in each step except the last.
    pub noisy: bool,
    /// Number of meaningless bits in the observation.
    #[schemars(range(max = 8))]
    pub distractors: usize,
    /// Seed of the task, which all episodes share. Equal seeds are equal tasks.
    #[schemars(range(max = u32::MAX))]
    pub task_seed: u32,
}

/// Chains of 5 to 30 steps, without noise and distractors, with task 0.
impl Default for DelayedChains {
    fn default() -> Self {
        DelayedChains { shortest: 5, longest: 30, noisy: false, distractors: 0, task_seed: 0 }
    }
}

/// A task: the numbers that differ between chains.
#[derive(Tree, Clone, Copy)]
pub struct ChainTask {
    /// Steps of an episode. `i32[]`
    pub length: Tensor,
    /// The first action that is rewarded at the end. `i32[]`
    pub better: Tensor,
}

/// A chain with one task. The task is data: it may differ in each element of a batch.
#[derive(Clone, Copy)]
pub struct Chain {
    task: ChainTask,
    chains: DelayedChains,
}

/// The state of an episode.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Steps since the episode began. `i32[]`
    pub position: Tensor,
    /// The first action, or 2 before it. `i32[]`
    pub choice: Tensor,
    /// Meaningless bits, as a number. `i32[]`
    pub bits: Tensor,
}

impl Tasks for DelayedChains {
    type Task = ChainTask;
    type World = Chain;

    fn draw(&self, key: Key) -> ChainTask {
        let (length_key, better_key) = key.split();
        let (least, most) = (self.shortest.min(self.longest), self.longest);
        ChainTask {
            length: length_key.randint([], least as i32..most as i32 + 1),
            better: better_key.randint([], 0..ACTIONS as i32),
        }
    }

    fn world(&self, task: ChainTask) -> Chain {
        Chain { task, chains: *self }
    }
}

impl DelayedChains {
    fn own(&self) -> Chain {
        self.world(self.draw(Key::new(self.task_seed)))
    }

    fn draw_bits(&self, key: Key) -> Tensor {
        key.randint([], 0..1 << self.distractors)
    }
}

/// The chain of [`DelayedChains::task_seed`], with the task as a constant of the program.
impl Environment for DelayedChains {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        self.own().initial_state(key)
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        self.own().step(state, action, key)
    }

    fn observe(&self, state: State) -> Tensor {
        self.own().observe(state)
    }

    fn observation_space(&self) -> Space {
        let states = (self.longest + 1) * (ACTIONS + 1);
        Space::discrete(states << self.distractors).described("position, choice and distractors")
    }

    /// Actions 0 and 1; ignored after the first step.
    fn action_space(&self) -> Space {
        Space::discrete(ACTIONS)
    }

    fn truncates(&self) -> bool {
        false
    }

    fn render(&self, state: &State) -> Option<Tensor> {
        self.own().render(state)
    }
}

impl Environment for Chain {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        State {
            position: scalar(0),
            choice: scalar(ACTIONS as i32),
            bits: self.chains.draw_bits(key),
        }
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        let (noise_key, bits_key) = key.split();
        let choice = select(state.position.eq(0), action, state.choice);
        let position = state.position + 1;
        let state = State { position, choice, bits: self.chains.draw_bits(bits_key) };
        let terminated = position.ge(self.task.length);
        let sign = |positive: Tensor| select(positive, 1.0, -1.0);
        let between = match self.chains.noisy {
            true => sign(noise_key.bernoulli([], 0.5)),
            false => scalar(0.0),
        };
        let reward = select(terminated, sign(choice.eq(self.task.better)), between);
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The number of the state: `((position * 3 + choice) << distractors) + bits`. `i32[]`
    fn observe(&self, state: State) -> Tensor {
        let place = state.position * (ACTIONS as i32 + 1) + state.choice;
        place * (1 << self.chains.distractors) + state.bits
    }

    fn observation_space(&self) -> Space {
        self.chains.observation_space()
    }

    /// As in [`DelayedChains`].
    fn action_space(&self) -> Space {
        self.chains.action_space()
    }

    fn truncates(&self) -> bool {
        false
    }

    /// A lane for each choice with a flag at its end, green in the better lane and red in the other. The walker is in the chosen lane, or in
    /// both lanes before the choice.
    fn render(&self, state: &State) -> Option<Tensor> {
        let step = 8.6 / self.chains.longest as f64;
        let at = |position: Tensor| 0.7 + position.astype(F32) * step;
        let (x, end) = (at(state.position), at(self.task.length));
        let mut canvas = Canvas::new(3.2, 10.0, Colour::BOARD);
        for lane in 0..ACTIONS {
            let y = 1.0 + 1.4 * lane as f64;
            let colour = select(
                self.task.better.eq(lane as i32),
                Colour::GREEN.tensor(),
                Colour::RED.tensor(),
            );
            let cloth = Shape::polygon(&[(0.0, -0.8), (0.45, -0.62), (0.0, -0.44)]);
            let chosen = state.choice.eq(lane as i32) | state.choice.eq(ACTIONS as i32);
            canvas = canvas
                .fill(&Shape::line((0.7, y), (end, y), 0.08), Colour::LINE)
                .fill(&Shape::line((end, y), (end, y - 0.8), 0.06), Colour::TEXT)
                .fill(&cloth.translate(end, y), colour)
                .fill(&Shape::disc(x, y, 0.22).when(chosen), Colour::BLUE)
                .text(&lane.to_string(), (0.3, y), 0.32, Align::Center, Colour::TEXT);
        }
        Some(canvas.finish())
    }
}
