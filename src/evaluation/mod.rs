//! Evaluation: whole episodes in environments on the host, with networks that no longer learn.

mod view;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_envs::host::{HostEnvironment, StepMemory, StepResult};
use podracer_rl::anakin::Feedback;
use podracer_rl::learn::{
    Act, Agent, LaneId, Learn, Mode, View, checked_act, checked_begin_episode, checked_view,
};
use podracer_runtime::{Array, ArraySource, Checkpoint, Client, Host, Placement, Program};

use crate::builder::on_device;
use crate::parameters;
use crate::training::Evaluator;

pub use view::AgentView;

/// Prefix of the agent's state in a checkpoint of Anakin or Sebulba.
pub(crate) const AGENT: &str = "state.replicated.agent.";

/// True for the name of an array of the agent's state in a checkpoint: `state.replicated.agent.params..`, `state.replicated.agent[0]`, or
/// `state.replicated.agent` for a state that is one tensor.
pub(crate) fn is_of_agent(name: &str) -> bool {
    let rest = name.strip_prefix(AGENT.trim_end_matches('.'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The episodes to play.
#[derive(Clone, Copy, Debug, Default)]
pub struct Play {
    /// Number of episodes.
    pub episodes: usize,
    /// Seed of all randomness in the episodes.
    pub seed: u64,
    /// True if actions are drawn from the policy, as in training. Otherwise they are the actions
    /// that the agent values most.
    pub sampled: bool,
    /// True if parameters may be NaN or infinite.
    pub allow_nan: bool,
    /// True if the watcher also gets the agent's view of each state.
    pub views: bool,
}

/// Return, length and success of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Played {
    /// Undiscounted sum of the rewards.
    pub episode_return: f32,
    /// Number of steps.
    pub length: u32,
    /// Share of its task that was done, from 0 to 1; `None` for an environment that does not report
    /// it.
    pub success: Option<f32>,
}

/// Plays episodes with the parameters of a checkpoint, on a device by its index in [`Client::devices`].
///
/// Every environment of the batch plays the same number of episodes, or one more: its first
/// episodes. So short episodes are not over-represented. None of them is an episode of the
/// training, even with its seed. If `interrupt` is set, it ends early and returns the episodes
/// completed so far.
///
/// # Errors
/// The mistakes of the agent, with the user's lines; [`CheckpointError`](podracer_runtime::CheckpointError) for a
/// checkpoint of another agent; errors of the environments and of the runtime.
pub fn play<A: Learn<Observation = Tensor>>(
    agent: &A,
    checkpoint: &Checkpoint,
    environments: &mut dyn HostEnvironment,
    play: &Play,
    device: (&Client, usize),
    interrupt: &AtomicBool,
) -> Result<Vec<Played>> {
    let player = Player::compile(agent, environments, play, device)?;
    player.play(checkpoint, environments, play, interrupt, &mut |_, _| Ok(()))
}

/// A function that is called after the first reset and after each step, with the outcome. If
/// [`Play::views`] is set, it also gets the agent's view of the first environment's state; the
/// state after the last step has none. An error ends the episodes.
pub type Watch<'a> = &'a mut dyn FnMut(&StepMemory, Option<AgentView>) -> Result<()>;

/// Memory and last action of each lane.
type EvaluatedLanes<A> = (<A as Agent>::Memory, Tensor);

/// Program that acts: it returns the action of each lane, the memory after it, and optionally the
/// view of the state before it.
type ActProgram<A> = Program<
    (<A as Learn>::State, EvaluatedLanes<A>, Seen),
    (Tensor, EvaluatedLanes<A>, Option<View>),
>;

/// The compiled programs that act for a batch of environments, to use [`play`] for several
/// checkpoints.
pub struct Player<A: Learn<Observation = Tensor>> {
    state: Spec<A::State>,
    /// Index and path of each parameter among the leaves of the state.
    parameters: Vec<(usize, String)>,
    seen: Spec<Seen>,
    first: Program<(A::State,), EvaluatedLanes<A>>,
    act: ActProgram<A>,
}

impl<A: Learn<Observation = Tensor>> Player<A> {
    /// Compiles the agent's acting for these environments, on a device by its index in
    /// [`Client::devices`], with [`Play::sampled`] and [`Play::views`] from `play`.
    ///
    /// # Errors
    /// The mistakes of the agent, with the user's lines; errors of the runtime.
    pub fn compile(
        agent: &A,
        environments: &dyn HostEnvironment,
        play: &Play,
        (client, device): (&Client, usize),
    ) -> Result<Self> {
        let spec = environments.spec();
        let n = spec.environments;
        let mode = if play.sampled { Mode::Explore } else { Mode::Greedy };
        let action_type = spec.action.ty();
        let state = eval_shape((key(),), |(key,)| agent.init(key))?;
        // Before the first step every lane begins an episode.
        let first = trace((&state,), |(_,)| {
            vmap(0..n, |index| {
                let memory = agent.init_memory(LaneId { index, lanes: n });
                (memory, Feedback::begin(&action_type).last_action)
            })
        })?;
        let lanes = first.results().clone();
        let per_lane = |dtype| Spec(TensorType::new(dtype, [n]));
        let words = Spec(TensorType::new(DType::U32, [2]));
        let outcome = spec.outcome();
        let seen: Spec<Seen> = Spec(SeenOf {
            observation: outcome.observation.clone(),
            legal_actions: outcome.legal_actions.clone(),
            reward: per_lane(DType::F32),
            done: per_lane(DType::Bool),
            words,
        });
        let traced = trace((&state, &lanes, &seen), |(state, lanes, seen)| {
            let (memory, last_action) = lanes;
            let Seen { observation, legal_actions, reward, done, words } = seen;
            let params = agent.params(&state);
            let lanes = (arange(n), whole(Key::from_words(words)), memory, last_action);
            let outcome = (observation, legal_actions, reward, done);
            vmap((lanes, outcome), |((index, key, memory, last_action), outcome)| {
                let (observation, legal_actions, reward, done) = outcome;
                let begun = checked_begin_episode(agent, memory.clone());
                let memory = tree_select(done, &begun, &memory);
                let input =
                    Feedback::after(last_action, reward, done).input(observation, legal_actions);
                let key = key.fold_in(index);
                let view = play.views.then(|| {
                    checked_view(agent, &params, memory.clone(), input.clone(), mode, key.again())
                });
                let Act { action, memory, .. } =
                    checked_act(agent, &params, memory, input, mode, key, &action_type);
                (spec.action.clip_action(action), (memory, action), view)
            })
        })?;
        let results = traced.results().leaves().len();
        let options = on_device(device);
        let placements = vec![Placement::Replicated; results];
        let act = Program::compile(client, "play", &traced, placements, &options)?;
        let placements = vec![Placement::Replicated; lanes.leaves().len()];
        let first = Program::compile(client, "play_first", &first, placements, &options)?;
        let parameters = parameters::positions(agent, &state)?;
        Ok(Player { state, parameters, seen, first, act })
    }

    /// Plays episodes like [`play`]. `play.sampled` and `play.views` must equal those in
    /// [`Player::compile`].
    ///
    /// # Errors
    /// [`CheckpointError`](podracer_runtime::CheckpointError) for a checkpoint of another agent; parameters that are not finite;
    /// errors of the environments, of the runtime and of `watch`.
    pub fn play(
        &self,
        checkpoint: &Checkpoint,
        environments: &mut dyn HostEnvironment,
        play: &Play,
        interrupt: &AtomicBool,
        watch: Watch<'_>,
    ) -> Result<Vec<Played>> {
        let spec = environments.spec().clone();
        let n = spec.environments;
        let state = read_state(checkpoint, &self.state, &self.parameters, play.allow_nan)?;
        let state = self.act.upload(state)?;
        let mut lanes = self.first.run((&state,))?;

        // A seed that differs from every seed of the training.
        let seed = play.seed ^ u64::from_le_bytes(*b"evaluate");
        let mut memory = StepMemory::try_new(&spec)?;
        environments.reset(seed, 0, &mut memory.step())?;
        let mut record = EpisodeRecord::new(play.episodes, n);
        let mut done = vec![true; n];
        let mut draws = podracer_envs::host::Random::from_state(seed);
        while record.is_wanting() && !interrupt.load(Ordering::Relaxed) {
            let observation =
                Array::from_bytes(spec.observation_type(), memory.observation().to_vec())?;
            let masks = spec.masks.then(|| {
                Array::from_bytes(spec.legal_actions_type(), memory.legal_actions().to_vec())
            });
            let arrays = [
                ("observation", observation),
                ("reward", Array::from_slice([n], memory.reward())?),
                ("done", Array::from_slice([n], &done)?),
                ("words", Array::key(draws.bits())),
            ];
            let arrays = arrays
                .into_iter()
                .chain(masks.transpose()?.map(|masks| ("legal_actions[0]", masks)));
            let seen = self.act.upload(Host::from_named(&self.seen, arrays)?)?;
            let (action, next, view) = self.act.run((&state, lanes, seen))?.split();
            lanes = next;
            let action = action.to_host()?;
            let view = play.views.then(|| AgentView::read(&view, action.bytes(), &spec));
            watch(&memory, view.transpose()?)?;
            environments.step(action.bytes(), &mut memory.step())?;
            done = (0..n).map(|i| record.step(&memory, i)).collect();
        }
        watch(&memory, None)?;
        Ok(record.played)
    }
}

/// The state in a checkpoint, for an agent with a state of this type and with parameters at these
/// indices among its leaves.
fn read_state<S: Tree>(
    checkpoint: &Checkpoint,
    state: &Spec<S>,
    parameters: &[(usize, String)],
    allow_nan: bool,
) -> Result<Host<S>> {
    let leaves = state.leaves().into_iter();
    let expected: Vec<_> = leaves.map(|(path, ty)| (path.to_string(), ty)).collect();
    let found = checkpoint.part(AGENT, &expected)?;
    let arrays: Vec<_> = found.into_iter().map(ArraySource::to_host).collect::<Result<_, _>>()?;
    if !allow_nan {
        let parameters = parameters.iter();
        let parameters = parameters.map(|(leaf, path)| (path.clone(), arrays[*leaf].clone()));
        parameters::check_finite(&parameters.collect::<Vec<_>>())?;
    }
    let names = expected.into_iter().map(|(path, _)| path);
    Ok(Host::from_named(state, names.zip(arrays))?)
}

/// The state of an agent in a checkpoint.
///
/// # Errors
/// [`CheckpointError`](podracer_runtime::CheckpointError) for a checkpoint of another agent; parameters that are not finite, unless
/// `allow_nan`.
pub(crate) fn agent_state<A: Learn>(
    agent: &A,
    checkpoint: &Checkpoint,
    allow_nan: bool,
) -> Result<Host<A::State>> {
    let state = eval_shape((key(),), |(key,)| agent.init(key))?;
    read_state(checkpoint, &state, &parameters::positions(agent, &state)?, allow_nan)
}

/// Programs that act, their environments, and the episodes to play: one evaluation of many
/// checkpoints.
pub(crate) struct Evaluation<A: Learn<Observation = Tensor>> {
    pub(crate) player: Player<A>,
    pub(crate) environments: Box<dyn HostEnvironment>,
    pub(crate) play: Play,
}

impl<A: Learn<Observation = Tensor>> Evaluation<A> {
    /// Compiles the agent's acting for these environments.
    pub(crate) fn boxed(
        agent: &A,
        environments: Box<dyn HostEnvironment>,
        play: &Play,
        device: (&Client, usize),
    ) -> Result<Box<dyn Evaluator>> {
        let player = Player::compile(agent, &*environments, play, device)?;
        Ok(Box::new(Evaluation { player, environments, play: *play }))
    }
}

impl<A: Learn<Observation = Tensor>> Evaluator for Evaluation<A> {
    fn play(
        &mut self,
        checkpoint: &Checkpoint,
        interrupt: &AtomicBool,
        watch: Watch<'_>,
    ) -> Result<Vec<Played>> {
        self.player.play(checkpoint, &mut *self.environments, &self.play, interrupt, watch)
    }
}

/// The outcome of the environments' last step, and the words of a key.
#[derive(Tree, Clone)]
struct Seen {
    observation: Tensor,
    legal_actions: Option<Tensor>,
    reward: Tensor,
    done: Tensor,
    words: Tensor,
}

/// The episodes of a batch.
struct EpisodeRecord {
    /// Number of remaining episodes of each environment.
    left: Vec<usize>,
    running: Vec<Played>,
    played: Vec<Played>,
}

impl EpisodeRecord {
    fn new(episodes: usize, n: usize) -> Self {
        EpisodeRecord {
            left: (0..n).map(|i| episodes / n + usize::from(i < episodes % n)).collect(),
            running: vec![Played::default(); n],
            // Without capacity for all episodes: the user may stop before there are more than fit
            // into memory.
            played: Vec::new(),
        }
    }

    fn is_wanting(&self) -> bool {
        self.left.iter().any(|&left| left > 0)
    }

    /// Adds the last step of an environment. Returns true if it ended an episode.
    fn step(&mut self, memory: &StepMemory, i: usize) -> bool {
        if memory.skipped(i) {
            // A reset-only step belongs to no episode.
            return true;
        }
        let StepResult { reward, done, success } = memory.result(i);
        self.running[i].episode_return += reward;
        self.running[i].length += 1;
        let done = done.0 || done.1;
        if done {
            let episode = Played { success, ..std::mem::take(&mut self.running[i]) };
            if self.left[i] > 0 {
                self.left[i] -= 1;
                self.played.push(episode);
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use podracer_envs::boards::ConnectFour;
    use podracer_envs::host::{HostError, HostSpec, HostStep};
    use podracer_envs::{AnyEnvironment, Environment};
    use podracer_rl::agents::{Ppo, PpoSettings};
    use podracer_runtime::ClientOptions;

    use super::*;
    use crate::sebulba::compiled_environments;

    #[test]
    fn memory_for_episodes_is_not_taken_in_advance() {
        let record = EpisodeRecord::new(usize::MAX, 2);
        assert!(record.is_wanting());
        assert_eq!(record.left, [usize::MAX / 2 + 1, usize::MAX / 2]);
    }

    /// Environments that do not report which actions are legal.
    struct Silent {
        game: Box<dyn HostEnvironment>,
        spec: HostSpec,
        masks: Vec<u8>,
    }

    impl Silent {
        fn new(game: Box<dyn HostEnvironment>) -> Self {
            let masks = vec![0; game.spec().legal_actions_type().bytes()];
            Silent { spec: HostSpec { masks: false, ..game.spec().clone() }, game, masks }
        }
    }

    /// The memory of a step combined with memory for masks.
    fn with_masks<'a>(step: &'a mut HostStep<'_>, masks: &'a mut [u8]) -> HostStep<'a> {
        HostStep {
            observation: step.observation,
            next_observation: step.next_observation,
            reward: step.reward,
            terminated: step.terminated,
            truncated: step.truncated,
            legal_actions: masks,
            success: step.success,
        }
    }

    impl HostEnvironment for Silent {
        fn spec(&self) -> &HostSpec {
            &self.spec
        }
        fn reset(
            &mut self,
            seed: u64,
            first: usize,
            step: &mut HostStep<'_>,
        ) -> Result<(), HostError> {
            self.game.reset(seed, first, &mut with_masks(step, &mut self.masks))
        }
        fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
            self.game.send(actions)
        }
        fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
            self.game.receive(&mut with_masks(step, &mut self.masks))
        }
    }

    #[test]
    fn agents_get_the_mask_of_legal_actions() {
        let game = AnyEnvironment::new(ConnectFour::default());
        let agent =
            Ppo::with(PpoSettings::default(), game.observation_space(), game.action_space());
        // A network that prefers the first column for every observation.
        let state = eval_shape((key(),), |(key,)| agent.init(key)).expect("it traces");
        let (mut checkpoint, mut outputs) = (Checkpoint::default(), 0);
        for (path, ty) in state.leaves() {
            let path = path.to_string();
            let array = match path.starts_with("params.") && ty.shape[..] == [7] {
                true => {
                    outputs += 1;
                    Array::from_slice([7], &[1.0f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).expect("seven")
                }
                false => Array::zeros(ty),
            };
            checkpoint.insert(AGENT, [(path, array)]);
        }
        assert_eq!(outputs, 1, "the bias of the policy");
        let client =
            Client::cpu(ClientOptions { cpu_devices: Some(1), ..ClientOptions::default() })
                .expect("a device");
        let order = Play { episodes: 2, ..Play::default() };
        let played = |silent: bool| {
            let game = compiled_environments(&client, 0, game.clone(), 2, 1).expect("it compiles");
            let mut game: Box<dyn HostEnvironment> = Box::new(game);
            if silent {
                game = Box::new(Silent::new(game));
            }
            let interrupt = AtomicBool::new(false);
            play(&agent, &checkpoint, &mut *game, &order, (&client, 0), &interrupt)
                .expect("it plays")
        };
        // Without masks it puts a seventh stone into the first column. With masks it continues with
        // the next columns, until the first player has four in a row.
        assert_eq!(played(true), [Played { episode_return: -1.0, length: 7, success: None }; 2]);
        assert_eq!(played(false), [Played { episode_return: 1.0, length: 19, success: None }; 2]);
    }
}
