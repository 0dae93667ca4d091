//! The pictures of episodes in order, with the data of each state.

use podracer_envs::host::StepMemory;

use super::{Picture, Pictures};
use crate::evaluation::AgentView;

/// The episodes of one environment, step by step.
pub struct Reel {
    pictures: Pictures,
    /// True after the first reset.
    begun: bool,
    steps: u64,
    episode_return: f64,
}

/// A state to be shown.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The state's picture.
    pub picture: Picture,
    /// The agent's view of the state; `None` for an episode's last state, and if views are not
    /// requested.
    pub view: Option<AgentView>,
}

/// A reset or a step.
#[derive(Debug, Default)]
pub struct Shown {
    /// The state, if the environment has its picture: some environments lack it for an episode's
    /// last state.
    pub frame: Option<Frame>,
    /// Steps of the episode so far.
    pub steps: u64,
    /// Return of the episode so far.
    pub episode_return: f32,
    /// The end of the episode, after its last step.
    pub end: Option<End>,
}

/// The end of an episode.
#[derive(Debug)]
pub struct End {
    /// True if the episode ended by itself, and not by a limit on its length.
    pub terminated: bool,
    /// The first state of the next episode.
    pub next: Option<Frame>,
}

impl Reel {
    /// The episodes of the environment that draws these pictures, starting with its first reset.
    #[must_use]
    pub fn new(pictures: Pictures) -> Self {
        Reel { pictures, begun: false, steps: 0, episode_return: 0.0 }
    }

    /// The last reset or step, with the agent's view of the state after it; `None` for a step that the environment skipped.
    pub fn show(&mut self, memory: &StepMemory, view: Option<AgentView>) -> Option<Shown> {
        let mut pictures = self.pictures.take().into_iter();
        let frame = |picture: Option<Picture>, view| picture.map(|picture| Frame { picture, view });
        if !self.begun {
            self.begun = true;
            return Some(Shown { frame: frame(pictures.next(), view), ..Shown::default() });
        }
        if memory.skipped(0) {
            return None;
        }
        self.steps += 1;
        self.episode_return += f64::from(memory.reward()[0]);
        let (terminated, truncated) = memory.done(0);
        let over = terminated || truncated;
        // An environment without the episode's last observation has only the picture of the next
        // episode's first state.
        let picture = if over && pictures.len() == 1 { None } else { pictures.next() };
        // Rewards are f32: further digits of their sum are noise.
        let (steps, episode_return) = (self.steps, self.episode_return as f32);
        if !over {
            return Some(Shown { frame: frame(picture, view), steps, episode_return, end: None });
        }
        (self.steps, self.episode_return) = (0, 0.0);
        let end = Some(End { terminated, next: frame(pictures.next(), view) });
        Some(Shown { frame: frame(picture, None), steps, episode_return, end })
    }
}
