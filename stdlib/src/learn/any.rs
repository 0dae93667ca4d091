//! Agents with types that are known only while tracing.

use super::{
    Act, Agent, AnyHostReplay, Axes, Cx, Input, Iterated, LaneId, Learn, Mode, Rollout, RolloutOf,
    Staleness, View,
};
use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use std::any::Any;
use std::rc::Rc;

/// An agent of any type with tensors as observations. All of its trees are [`AnyTree`]s, with the
/// key paths of the agent's own trees, and its programs are the same. Registries hold erased
/// agents, so that each agent and each loop is compiled once, instead of every loop for every
/// agent.
#[derive(Clone)]
pub struct AnyAgent(Rc<dyn Erased>);

impl AnyAgent {
    /// Erases the types of an agent. An agent with erased types stays as it is.
    pub fn new<A: Learn<Observation = Tensor>>(agent: A) -> AnyAgent {
        let erased = (&agent as &dyn Any).downcast_ref::<AnyAgent>();
        erased.cloned().unwrap_or_else(|| AnyAgent(Rc::new(agent)))
    }
}

/// Argument `act` of [`Learn::iterate`]: from parameters to the rollout acted with them, and a tree
/// for the loop.
type ErasedAct<'a> = Box<dyn FnOnce(&AnyTree) -> (Rollout<AnyAgent>, AnyTree) + 'a>;

/// Object-safe form of [`Agent`] and [`Learn`], with [`AnyTree`]s as trees.
trait Erased {
    fn init_memory(&self, lane: LaneId) -> AnyTree;
    fn begin_episode(&self, memory: AnyTree) -> AnyTree;
    fn act(
        &self,
        params: &AnyTree,
        memory: AnyTree,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<AnyTree, AnyTree>;
    fn view(&self, params: &AnyTree, memory: AnyTree, input: Input, mode: Mode, key: Key) -> View;
    fn init(&self, key: Key) -> AnyTree;
    fn init_store(&self, rollout: &Spec<Rollout<AnyAgent>>, axes: &Axes) -> AnyTree;
    fn params(&self, state: &AnyTree) -> AnyTree;
    fn learn(
        &self,
        state: AnyTree,
        store: AnyTree,
        rollout: Rollout<AnyAgent>,
        cx: Cx,
    ) -> (AnyTree, AnyTree, AnyTree);
    fn iterate(
        &self,
        state: AnyTree,
        store: AnyTree,
        act: ErasedAct<'_>,
        cx: Cx,
    ) -> Iterated<AnyAgent, AnyTree>;
    fn staleness(&self) -> Staleness;
    fn host_replay(&self) -> Option<AnyHostReplay<Tensor>>;
}

/// The rollout with the types of the inner agent.
pub(super) fn typed<A: Agent>(rollout: RolloutOf<A::Observation, AnyTree, AnyTree>) -> Rollout<A> {
    RolloutOf {
        input: rollout.input,
        action: rollout.action,
        reward: rollout.reward,
        terminated: rollout.terminated,
        truncated: rollout.truncated,
        skipped: rollout.skipped,
        next_observation: rollout.next_observation,
        next_input: rollout.next_input,
        taken_over: rollout.taken_over,
        memory: rollout.memory.get(),
        extras: rollout.extras.get(),
    }
}

impl<A: Learn<Observation = Tensor>> Erased for A {
    fn init_memory(&self, lane: LaneId) -> AnyTree {
        AnyTree::new(Agent::init_memory(self, lane))
    }
    fn begin_episode(&self, memory: AnyTree) -> AnyTree {
        AnyTree::new(Agent::begin_episode(self, memory.get()))
    }
    fn act(
        &self,
        params: &AnyTree,
        memory: AnyTree,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<AnyTree, AnyTree> {
        let params = params.get();
        let Act { action, memory, extras } =
            Agent::act(self, &params, memory.get(), input, mode, key);
        Act { action, memory: AnyTree::new(memory), extras: AnyTree::new(extras) }
    }
    fn view(&self, params: &AnyTree, memory: AnyTree, input: Input, mode: Mode, key: Key) -> View {
        Agent::view(self, &params.get(), memory.get(), input, mode, key)
    }
    fn init(&self, key: Key) -> AnyTree {
        AnyTree::new(Learn::init(self, key))
    }
    fn init_store(&self, rollout: &Spec<Rollout<AnyAgent>>, axes: &Axes) -> AnyTree {
        let rollout = eval_shape(rollout, typed::<A>).expect("types alone change");
        AnyTree::new(Learn::init_store(self, &rollout, axes))
    }
    fn params(&self, state: &AnyTree) -> AnyTree {
        AnyTree::new(Learn::params(self, &state.get()))
    }
    fn learn(
        &self,
        state: AnyTree,
        store: AnyTree,
        rollout: Rollout<AnyAgent>,
        cx: Cx,
    ) -> (AnyTree, AnyTree, AnyTree) {
        let (state, store, metrics) =
            Learn::learn(self, state.get(), store.get(), typed::<A>(rollout), cx);
        (AnyTree::new(state), AnyTree::new(store), AnyTree::new(metrics))
    }
    fn iterate(
        &self,
        state: AnyTree,
        store: AnyTree,
        act: ErasedAct<'_>,
        cx: Cx,
    ) -> Iterated<AnyAgent, AnyTree> {
        let act = |params: &A::Params| {
            let (rollout, with) = act(&AnyTree::new(params.clone()));
            (typed::<A>(rollout), with)
        };
        let (state, store, metrics, with) = Learn::iterate(self, state.get(), store.get(), act, cx);
        (AnyTree::new(state), AnyTree::new(store), AnyTree::new(metrics), with)
    }
    fn staleness(&self) -> Staleness {
        Learn::staleness(self)
    }
    fn host_replay(&self) -> Option<AnyHostReplay<Tensor>> {
        Learn::host_replay(self)
    }
}

impl Agent for AnyAgent {
    type Observation = Tensor;
    type Params = AnyTree;
    type Memory = AnyTree;
    type Extras = AnyTree;

    fn init_memory(&self, lane: LaneId) -> AnyTree {
        self.0.init_memory(lane)
    }
    fn begin_episode(&self, memory: AnyTree) -> AnyTree {
        self.0.begin_episode(memory)
    }
    fn act(
        &self,
        params: &AnyTree,
        memory: AnyTree,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<AnyTree, AnyTree> {
        self.0.act(params, memory, input, mode, key)
    }
    fn view(&self, params: &AnyTree, memory: AnyTree, input: Input, mode: Mode, key: Key) -> View {
        self.0.view(params, memory, input, mode, key)
    }
}

impl Learn for AnyAgent {
    type State = AnyTree;
    type Store = AnyTree;
    type Metrics = AnyTree;

    fn init(&self, key: Key) -> AnyTree {
        self.0.init(key)
    }
    fn init_store(&self, rollout: &Spec<Rollout<Self>>, axes: &Axes) -> AnyTree {
        self.0.init_store(rollout, axes)
    }
    fn params(&self, state: &AnyTree) -> AnyTree {
        self.0.params(state)
    }
    fn learn(
        &self,
        state: AnyTree,
        store: AnyTree,
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (AnyTree, AnyTree, AnyTree) {
        self.0.learn(state, store, rollout, cx)
    }
    fn iterate<W: Tree>(
        &self,
        state: AnyTree,
        store: AnyTree,
        act: impl FnOnce(&AnyTree) -> (Rollout<Self>, W),
        cx: Cx,
    ) -> Iterated<Self, W> {
        let act = |params: &AnyTree| {
            let (rollout, with) = act(params);
            (rollout, AnyTree::new(with))
        };
        let (state, store, metrics, with) = self.0.iterate(state, store, Box::new(act), cx);
        (state, store, metrics, with.get())
    }
    fn staleness(&self) -> Staleness {
        self.0.staleness()
    }
    fn host_replay(&self) -> Option<AnyHostReplay<Tensor>> {
        self.0.host_replay()
    }
}
