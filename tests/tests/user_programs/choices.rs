//! An environment of several choices at once that shows a tree of observations: built-in agents learn it flattened, and an
//! agent of one's own reads the tree.

use podracer::envs::EnvironmentError;
use podracer::prelude::*;
use podracer::rl::agents::{AdamSettings, PpoSettings};

/// Three dials, to be set to what is shown in the same step.
#[derive(Clone)]
struct Dials;

/// The values of the dials.
const VALUES: [usize; 3] = [3, 2, 4];

#[derive(Tree, Clone, Copy)]
struct Shown {
    /// The first value. i32 `[]`
    first: Tensor,
    /// The second and third value. i32 `[2]`
    rest: Tensor,
    /// Random numbers. f32 `[2]`
    noise: Tensor,
}

impl Environment for Dials {
    type State = Shown;
    type Observation = Shown;

    fn initial_state(&self, key: Key) -> Shown {
        let (dials, noise) = key.split();
        let shown = Space::multi_discrete(VALUES).sample(dials);
        Shown { first: shown.index(0), rest: shown.slice(1..), noise: noise.normal([2]) }
    }
    fn step(&self, state: Shown, action: Tensor, key: Key) -> (Shown, TimeStep<Shown>) {
        let shown = concatenate(&[state.first.expand_dims(0), state.rest], 0);
        let reward = action.eq(shown).astype(F32).sum();
        let next = self.initial_state(key);
        (next, TimeStep::new(next, reward, constant(false)))
    }
    fn observe(&self, state: Shown) -> Shown {
        state
    }
    fn observation_space(&self) -> Spaces<Shown> {
        ShownOf {
            first: Space::discrete(VALUES[0]),
            rest: Space::multi_discrete([VALUES[1], VALUES[2]]),
            noise: Space::unbounded([2]),
        }
    }
    fn action_space(&self) -> Space {
        Space::multi_discrete(VALUES)
    }
    fn truncates(&self) -> bool {
        false
    }
}

/// Episodes of eight steps, in each of which a dial that is set right gives 1.
fn dials() -> TimeLimit<Dials> {
    Dials.time_limit(8)
}

#[test]
fn ppo_learns_several_choices_at_once_from_a_tree() -> anyhow::Result<()> {
    let environment = dials().flatten_observation();
    check_environment(&environment)?;
    let mut settings = PpoSettings {
        optimizer: AdamSettings::new(0.01),
        discount: 0.5.into(),
        ..PpoSettings::default()
    };
    settings.networks.hidden = vec![16];
    let agent = Ppo::with(settings, environment.observation_space(), environment.action_space());
    let client = Client::cpu(ClientOptions::default())?;
    let shape = Anakin::new(environment, agent).environments(64).unroll(16);
    let anakin = shape.iterations_per_call(5).compile(&client)?;
    let mut state = anakin.init(0)?;
    let mut returns = Vec::new();
    for _ in 0..6 {
        let metrics;
        (state, metrics) = anakin.run(state)?;
        returns.push(metrics.episode_return);
    }
    // By chance 8 (1/3 + 1/2 + 1/4), and 24 at most.
    assert!(returns[0] < 16.0 && returns[5] > 22.0, "{returns:?}");
    Ok(())
}

/// Sets the dials to what it sees in the tree, and learns nothing.
#[derive(Clone)]
struct Copies;

impl Agent for Copies {
    type Observation = Shown;
    type Params = Tensor;
    type Memory = ();
    type Extras = ();

    fn init_memory(&self, _: LaneId) {}
    fn begin_episode(&self, (): ()) {}
    fn act(&self, _: &Tensor, (): (), input: Input<Shown>, _: Mode, _: Key) -> Act<(), ()> {
        let Shown { first, rest, .. } = input.observation;
        Act { action: concatenate(&[first.expand_dims(0), rest], 0), memory: (), extras: () }
    }
}

impl Learn for Copies {
    type State = Tensor;
    type Store = ();
    type Metrics = Tensor;

    fn init(&self, _: Key) -> Tensor {
        scalar(0.0)
    }
    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}
    fn params(&self, state: &Tensor) -> Tensor {
        *state
    }
    fn learn(&self, state: Tensor, (): (), rollout: Rollout<Self>, _: Cx) -> (Tensor, (), Tensor) {
        (state, (), rollout.reward.sum())
    }
}

#[test]
fn an_agent_of_ones_own_reads_the_tree() -> anyhow::Result<()> {
    let client = Client::cpu(ClientOptions::default())?;
    let anakin = Anakin::new(dials(), Copies).environments(4).unroll(8).compile(&client)?;
    let (_, metrics) = anakin.run(anakin.init(0)?)?;
    assert_eq!((metrics.episode_return, metrics.episodes > 0), (24.0, true));
    Ok(())
}

/// Dials with a mistake in one leaf of their observation.
#[derive(Clone)]
struct Wrong(Space);

impl Environment for Wrong {
    type State = Shown;
    type Observation = Shown;

    fn initial_state(&self, key: Key) -> Shown {
        Dials.initial_state(key)
    }
    fn step(&self, state: Shown, action: Tensor, key: Key) -> (Shown, TimeStep<Shown>) {
        Dials.step(state, action, key)
    }
    fn observe(&self, state: Shown) -> Shown {
        state
    }
    fn observation_space(&self) -> Spaces<Shown> {
        ShownOf { rest: self.0.clone(), ..Dials.observation_space() }
    }
    fn action_space(&self) -> Space {
        Dials.action_space()
    }
}

#[test]
fn a_mistake_in_a_leaf_is_told_by_its_key_path() {
    let error = |space: Space| check_environment(&Wrong(space)).expect_err("a mistake");
    assert_eq!(
        error(Space::multi_discrete([2, 0])).to_string(),
        "`observation_space.rest` of the environment: element 1: each element of a multi-discrete space needs at least one \
         value, got n = 0"
    );
    let told = |space: Space| {
        let error = error(space);
        let EnvironmentError::Trace(errors) = error else { panic!("{error}") };
        assert!(errors.errors.iter().all(|error| error.loc.to_string().starts_with(file!())));
        errors.to_string()
    };
    let errors = told(Space::multi_discrete([2, 4, 5]));
    assert!(errors.contains("`observe(..).rest` must be i32[3], got i32[2]"), "{errors}");
    let errors = told(Space::unbounded([2]));
    assert!(errors.contains("`observe(..).rest` must be f32[2], got i32[2]"), "{errors}");
}
