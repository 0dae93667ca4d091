//! Environments whose types are known only while tracing.

use std::rc::Rc;

use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use podracer_envs::{Environment, Space, TimeStep};

/// An environment of any type that shows tensors. Its state is an [`AnyTree`] with the key paths of the environment's own
/// state, and its programs are the same: loops are compiled once, and not once for each environment.
#[derive(Clone)]
pub struct AnyEnvironment(Rc<dyn Erased>);

impl AnyEnvironment {
    /// Erases the types of an environment.
    pub fn new<E: Environment<Observation = Tensor>>(environment: E) -> AnyEnvironment {
        AnyEnvironment(Rc::new(environment))
    }
}

/// [`Environment`] without type parameters.
trait Erased {
    fn initial_state(&self, key: Key) -> AnyTree;
    fn step(&self, state: AnyTree, action: Tensor, key: Key) -> (AnyTree, TimeStep);
    fn observe(&self, state: AnyTree) -> Tensor;
    fn observation_space(&self) -> Space;
    fn action_space(&self) -> Space;
    fn truncates(&self) -> bool;
    fn next_episode(&self, finished: AnyTree, key: Key) -> AnyTree;
}

impl<E: Environment<Observation = Tensor>> Erased for E {
    fn initial_state(&self, key: Key) -> AnyTree {
        AnyTree::new(Environment::initial_state(self, key))
    }
    fn step(&self, state: AnyTree, action: Tensor, key: Key) -> (AnyTree, TimeStep) {
        let (state, step) = Environment::step(self, state.get(), action, key);
        (AnyTree::new(state), step)
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
    fn truncates(&self) -> bool {
        Environment::truncates(self)
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
    fn observation_space(&self) -> Space {
        self.0.observation_space()
    }
    fn action_space(&self) -> Space {
        self.0.action_space()
    }
    fn truncates(&self) -> bool {
        self.0.truncates()
    }
    fn next_episode(&self, finished: AnyTree, key: Key) -> AnyTree {
        self.0.next_episode(finished, key)
    }
}
