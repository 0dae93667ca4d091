//! An environment of several choices at once that shows a tree of observations: built-in agents learn it flattened, and an
//! agent of one's own reads the tree.

use podracer::envs::{AnyEnvironment, EnvironmentError};
use podracer::prelude::*;
use podracer::rl::agents::PpoSettings;
use podracer::rl::learn::{AdamSettings, AnyAgent, Unflatten};

/// Three dials, to be set to the values shown in the same step.
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

/// Episodes of eight steps; each dial that is set right pays 1.
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

/// Sets the dials to the values in the tree, and learns nothing.
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
    assert_eq!(metrics.per_iteration()?[0].0, "metric");
    Ok(())
}

/// The tree as its flattened vector: what loops on the host and registries have.
fn reads_the_vector() -> Unflatten<Copies> {
    let shown = dials().flatten_observation().observation_space();
    Unflatten::new(Copies, Dials.observation_space(), &shown).expect("the leaves are the agent's")
}

#[test]
fn an_agent_of_ones_own_reads_the_tree_of_a_vector() -> anyhow::Result<()> {
    let client = Client::cpu(ClientOptions::default())?;
    let anakin = Anakin::new(AnyEnvironment::new(dials()), AnyAgent::new(reads_the_vector()));
    let anakin = anakin.environments(4).unroll(8).compile(&client)?;
    let (_, metrics) = anakin.run(anakin.init(0)?)?;
    assert_eq!((metrics.episode_return, metrics.episodes > 0), (24.0, true));

    Ok(())
}

#[test]
fn an_agents_tree_of_other_leaves_is_reported() {
    let told = |shown: &Space| {
        let error = Unflatten::new(Copies, Dials.observation_space(), shown).err();
        error.expect("the leaves are others")
    };
    assert_eq!(
        told(&Space::unbounded([3])),
        "the agent's observations are a tree, flattened f32[11] (first 0..3, rest 3..9, noise 9..11), and the environment shows f32[3] (without names)"
    );
    let other = Space::unbounded([11]).described("first 0..3, noise 3..5, rest 5..11");
    assert!(told(&other).ends_with("shows f32[11] (first 0..3, noise 3..5, rest 5..11)"));
    assert!(Unflatten::new(Copies, Dials.observation_space(), &Space::unbounded([11])).is_ok());
}

/// A lever and a wheel, to be set to the values shown in the same step.
#[derive(Clone)]
struct Levers;

/// The wheel's angle by the lever's position.
const ANGLES: [f64; 3] = [-0.5, 0.0, 0.75];

impl Environment for Levers {
    type State = Tensor;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Tensor {
        Space::discrete(ANGLES.len()).sample(key)
    }
    fn step(&self, state: Tensor, action: Tensor, key: Key) -> (Tensor, TimeStep) {
        let parts = self.action_space().split(action);
        let angle = constant(ANGLES.map(|angle| angle as f32)).at(state);
        let reward = parts[0].eq(state).astype(F32) - (parts[1].index(0) - angle).abs();
        let next = self.initial_state(key);
        (next, TimeStep::new(next, reward, constant(false)))
    }
    fn observe(&self, state: Tensor) -> Tensor {
        state
    }
    fn observation_space(&self) -> Space {
        Space::discrete(ANGLES.len())
    }
    fn action_space(&self) -> Space {
        Space::dict([("lever", Space::discrete(3)), ("angle", Space::bounded([1], -1.0, 1.0))])
    }
    fn truncates(&self) -> bool {
        false
    }
}

/// In the same loop with the names of the registry, which erases types, and with an LSTM that sees the last action.
#[test]
fn ppo_learns_a_choice_and_a_number_at_once() -> anyhow::Result<()> {
    check_environment(&Levers)?;
    let client = Client::cpu(ClientOptions::default())?;
    let mut settings = PpoSettings {
        optimizer: AdamSettings::new(0.01),
        discount: 0.5.into(),
        ..PpoSettings::default()
    };
    settings.networks.hidden = vec![16];
    for lstm in [None, Some(8)] {
        let mut settings = settings.clone();
        (settings.core.lstm, settings.minibatches) = (lstm, 4);
        let environment = AnyEnvironment::new(Levers.time_limit(8));
        let (observation, action) = (environment.observation_space(), environment.action_space());
        let agent = AnyAgent::new(Ppo::with(settings, observation, action));
        let shape = Anakin::new(environment, agent).environments(64).unroll(16);
        let anakin = shape.iterations_per_call(1).compile(&client)?;
        let mut state = anakin.init(0)?;
        let mut returns = Vec::new();
        for _ in 0..40 {
            let metrics;
            (state, metrics) = anakin.run(state)?;
            returns.push(metrics.episode_return);
        }
        // 8 at most. By chance 8 (1/3 - 1), about.
        assert!(returns[0] < 0.0 && returns[39] > 6.0, "{lstm:?}: {returns:?}");
    }
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
fn a_mistake_in_a_leaf_names_its_key_path() {
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
