//! Whole episodes, played with networks with known actions.

use std::sync::atomic::{AtomicBool, Ordering};

use podracer::evaluation::{Play, Played, play};
use podracer_dsl::prelude::{eval_shape, key};
use podracer_envs::CartPole;
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, HostStep, NativeCartPole, Pool};
use podracer_rl::learn::Learn;
use podracer_rl::optim::sgd;
use podracer_runtime::{Array, Checkpoint};

use crate::loops;
use crate::sebulba::skipped::NextStep;

/// Networks that push to one side, for every observation, by a logit of this size.
fn pushing(logit: f32) -> Checkpoint<'static> {
    let agent = loops::ppo(&CartPole::default(), sgd(0.1));
    let state = eval_shape((key(),), |(key,)| agent.init(key)).expect("it traces");
    let mut checkpoint = Checkpoint::default();
    for (path, ty) in state.leaves() {
        let path = path.to_string();
        let array = if path == "params.actor.layers[1].bias" {
            Array::from_slice([2], &[logit, 0.0]).expect("two actions")
        } else {
            Array::zeros(ty)
        };
        checkpoint.insert("state.replicated.agent.", [(path, array)]);
    }
    checkpoint
}

/// CartPoles that interrupt at a step.
struct Interrupting<'a> {
    inner: Pool<NativeCartPole>,
    left: usize,
    interrupt: &'a AtomicBool,
}

impl HostEnvironment for Interrupting<'_> {
    fn spec(&self) -> &HostSpec {
        self.inner.spec()
    }
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.inner.reset(seed, first, step)
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.left = self.left.saturating_sub(1);
        self.interrupt.store(self.left == 0, Ordering::Relaxed);
        self.inner.send(actions)
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.inner.receive(step)
    }
}

/// The episodes, in batches of this size, interrupted after `steps` steps.
fn episodes(nets: &Checkpoint, order: Play, batch: usize, steps: usize) -> Vec<Played> {
    let interrupt = AtomicBool::new(false);
    let mut environments = Interrupting {
        inner: Pool::new(&NativeCartPole::new(30), batch),
        left: steps,
        interrupt: &interrupt,
    };
    let agent = loops::ppo(&CartPole::default(), sgd(0.1));
    let on = (&loops::client(1), 0);
    play(&agent, nets, &mut environments, &order, on, &interrupt).expect("it plays")
}

#[test]
fn as_many_whole_episodes_are_played_as_asked_for() {
    let order = |episodes, seed, sampled| Play { episodes, seed, sampled, ..Play::default() };
    // A pole that is always pushed to one side falls within a dozen steps.
    let pushed = episodes(&pushing(1.0), order(7, 0, false), 3, usize::MAX);
    assert_eq!(pushed.len(), 7);
    for episode in &pushed {
        assert!((7..=12).contains(&episode.length), "{pushed:?}");
        assert_eq!(episode.episode_return, episode.length as f32);
    }
    // One environment of the batch plays none.
    let fewer = episodes(&pushing(1.0), order(2, 0, false), 3, usize::MAX);
    assert_eq!(fewer.len(), 2);
    // Drawn from a policy that is nearly even, actions go both ways and the pole stays up for longer.
    let drawn = episodes(&pushing(0.01), order(12, 0, true), 4, usize::MAX);
    let mean =
        |all: &[Played]| all.iter().map(|one| one.length).sum::<u32>() as f32 / all.len() as f32;
    assert!(mean(&drawn) > mean(&pushed) + 2.0, "{drawn:?}");
    assert_eq!(episodes(&pushing(0.01), order(12, 0, true), 4, usize::MAX), drawn);
    assert_ne!(episodes(&pushing(0.01), order(12, 1, true), 4, usize::MAX), drawn);
}

/// Episodes that begin in a step of their own are no longer by it.
#[test]
fn steps_that_are_none_are_of_no_episode() {
    let order = Play { episodes: 12, ..Play::default() };
    let mut environments = NextStep::new([1, 2, 5, 5]);
    let agent = loops::ppo(&CartPole::default(), sgd(0.1));
    let on = (&loops::client(1), 0);
    let interrupt = AtomicBool::new(false);
    let played = play(&agent, &pushing(1.0), &mut environments, &order, on, &interrupt);
    let played = played.expect("it plays");
    let mut lengths: Vec<u32> = played.iter().map(|episode| episode.length).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 1, 1, 2, 2, 2, 5, 5, 5, 5, 5, 5]);
    for episode in played {
        assert_eq!(episode.episode_return, episode.length as f32);
    }
}

#[test]
fn what_has_ended_before_an_interruption_counts() {
    let order = Play { episodes: 1_000, ..Play::default() };
    let played = episodes(&pushing(1.0), order, 2, 25);
    assert!((2..=6).contains(&played.len()), "{played:?}");
}
