//! Environments whose Rust type is known only while tracing.

use crate::environment::{Environment, TimeStep};
use crate::forward;
use crate::space::Space;
use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use std::rc::Rc;

/// An environment of any type. It shows tensors: a tree of several leaves is flattened
/// ([`flatten_observation`](Environment::flatten_observation)), which is what the built-in agents read. Its state is an [`AnyTree`] with the leaves and key paths of
/// the concrete state, so that a program traced through it is the program of the concrete environment.
///
/// A loop that is generic over environments is compiled again for each of them; over `AnyEnvironment` it is compiled once.
///
/// ```
/// use podracer_envs::{AnyEnvironment, Catch, Environment, Pendulum};
///
/// let environments = [AnyEnvironment::new(Catch::default()), AnyEnvironment::new(Pendulum::default())];
/// assert_eq!(environments.map(|environment| environment.action_space().elements()), [1, 1]);
/// ```
#[derive(Clone)]
pub struct AnyEnvironment(Rc<dyn Erased>);

impl AnyEnvironment {
    /// Erases the type of an environment.
    pub fn new<E: Environment>(environment: E) -> Self {
        AnyEnvironment(Rc::new(environment.flatten_observation()))
    }
}

/// Object-safe form of [`Environment`], in which states are [`AnyTree`]s.
trait Erased {
    fn initial_state(&self, key: Key) -> AnyTree;
    fn step(&self, state: AnyTree, action: Tensor, key: Key) -> (AnyTree, TimeStep);
    fn observe(&self, state: AnyTree) -> Tensor;
    fn observation_space(&self) -> Space;
    fn action_space(&self) -> Space;
    fn legal_actions(&self, state: &AnyTree) -> Option<Tensor>;
    fn render(&self, state: &AnyTree) -> Option<Tensor>;
    fn text(&self, state: &AnyTree) -> Option<Tensor>;
    fn success(&self, state: &AnyTree) -> Option<Tensor>;
    fn players(&self) -> usize;
    fn state_of(&self, observation: Tensor) -> Option<AnyTree>;
    fn truncates(&self) -> bool;
    fn resets(&self) -> bool;
    fn next_episode(&self, finished: AnyTree, key: Key) -> AnyTree;
}

impl<E: Environment<Observation = Tensor>> Erased for E {
    fn initial_state(&self, key: Key) -> AnyTree {
        AnyTree::new(Environment::initial_state(self, key))
    }
    fn step(&self, state: AnyTree, action: Tensor, key: Key) -> (AnyTree, TimeStep) {
        let (state, timestep) = Environment::step(self, state.get(), action, key);
        (AnyTree::new(state), timestep)
    }
    fn observe(&self, state: AnyTree) -> Tensor {
        Environment::observe(self, state.get())
    }
    fn observation_space(&self) -> Space {
        Environment::observation_space(self)
    }
    fn action_space(&self) -> Space {
        Environment::action_space(self)
    }
    fn legal_actions(&self, state: &AnyTree) -> Option<Tensor> {
        Environment::legal_actions(self, &state.get())
    }
    fn render(&self, state: &AnyTree) -> Option<Tensor> {
        Environment::render(self, &state.get())
    }
    fn text(&self, state: &AnyTree) -> Option<Tensor> {
        Environment::text(self, &state.get())
    }
    fn success(&self, state: &AnyTree) -> Option<Tensor> {
        Environment::success(self, &state.get())
    }
    fn players(&self) -> usize {
        Environment::players(self)
    }
    fn state_of(&self, observation: Tensor) -> Option<AnyTree> {
        Environment::state_of(self, observation).map(AnyTree::new)
    }
    fn truncates(&self) -> bool {
        Environment::truncates(self)
    }

    fn resets(&self) -> bool {
        Environment::resets(self)
    }
    fn next_episode(&self, finished: AnyTree, key: Key) -> AnyTree {
        AnyTree::new(Environment::next_episode(self, finished.get(), key))
    }
}

impl Environment for AnyEnvironment {
    type State = AnyTree;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> AnyTree {
        self.0.initial_state(key)
    }
    fn step(&self, state: AnyTree, action: Tensor, key: Key) -> (AnyTree, TimeStep) {
        self.0.step(state, action, key)
    }
    fn observe(&self, state: AnyTree) -> Tensor {
        self.0.observe(state)
    }
    fn state_of(&self, observation: Tensor) -> Option<AnyTree> {
        self.0.state_of(observation)
    }

    fn next_episode(&self, finished: AnyTree, key: Key) -> AnyTree {
        self.0.next_episode(finished, key)
    }

    forward!(0, |state| state);
}
