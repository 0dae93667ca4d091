//! Agents with trees as observations, for environments that show the leaves as one vector.

use super::{Agent, Axes, Cx, Input, Iterated, Learn, Rollout, RolloutOf, Staleness, Wrapper};
use podracer_dsl::prelude::*;
use podracer_envs::wrappers::{flat_space, unflatten};
use podracer_envs::{Space, Spaces, leaf_spaces};
use std::rc::Rc;

/// An agent with a tree of observations, such as a struct, for an environment that shows one vector
/// f32 `[n]`. Such vectors come from
/// [`flatten_observation`](podracer_envs::Environment::flatten_observation), which the registry's
/// environments apply by themselves, and from a server of Gymnasium's `Dict` and `Tuple`. Loops,
/// workers' messages, replays on the host and exports have the vector; the agent acts and learns
/// with the tree.
///
/// It has no replay on the host.
#[derive(Clone)]
pub struct Unflatten<A: Agent> {
    agent: A,
    spaces: Rc<Spaces<A::Observation>>,
}

impl<A: Agent> Unflatten<A> {
    /// The agent in an environment with the observation space `shown`. `spaces` are the spaces of
    /// the agent's tree.
    ///
    /// # Errors
    /// Returns both lists of leaves if the vector has leaves other than the tree's, or another
    /// order.
    pub fn new(agent: A, spaces: Spaces<A::Observation>, shown: &Space) -> Result<Self, String> {
        let expected = flat_space(&leaf_spaces::<A::Observation>(&spaces));
        // A space received over the network has no names.
        let named = shown.description().is_some();
        if expected.ty() != shown.ty() || named && expected.description() != shown.description() {
            let [expected, shown] = [&expected, shown].map(|space| {
                let names = space.description().unwrap_or_else(|| "without names".to_owned());
                format!("{} ({names})", space.ty())
            });
            return Err(format!(
                "the agent's observations are a tree, flattened {expected}, and the environment shows {shown}"
            ));
        }
        Ok(Unflatten { agent, spaces: Rc::new(spaces) })
    }

    /// Observations f32 `[.., n]` as trees, with the same `leading` axes.
    #[track_caller]
    fn tree(&self, flat: Tensor, leading: usize) -> A::Observation {
        match leading {
            0 => unflatten::<A::Observation>(flat, &self.spaces),
            _ => vmap(flat, |flat| self.tree(flat, leading - 1)),
        }
    }

    #[track_caller]
    fn rollout(&self, rollout: RolloutOf<Tensor, A::Memory, A::Extras>) -> Rollout<A> {
        rollout.map_observations(|flat, leading| self.tree(flat, leading))
    }
}

impl<A: Agent> Wrapper for Unflatten<A> {
    type Inner = A;
    type Observation = Tensor;
    type Params = A::Params;

    fn inner(&self) -> &A {
        &self.agent
    }

    fn inner_params<'a>(&self, params: &'a A::Params) -> &'a A::Params {
        params
    }

    fn inner_input(&self, _: &A::Params, input: Input) -> Input<A::Observation> {
        input.map_observation(|flat| self.tree(flat, 0))
    }
}

impl<A: Learn> Learn for Unflatten<A> {
    type State = A::State;
    type Store = A::Store;
    type Metrics = A::Metrics;

    fn init(&self, key: Key) -> A::State {
        self.agent.init(key)
    }

    fn init_store(&self, rollout: &Spec<Rollout<Self>>, axes: &Axes) -> A::Store {
        let seen = eval_shape(rollout, |rollout| self.rollout(rollout));
        self.agent.init_store(&seen.expect("types alone change"), axes)
    }

    fn params(&self, state: &A::State) -> A::Params {
        self.agent.params(state)
    }

    fn learn(
        &self,
        state: A::State,
        store: A::Store,
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (A::State, A::Store, A::Metrics) {
        self.agent.learn(state, store, self.rollout(rollout), cx)
    }

    fn iterate<W: Tree>(
        &self,
        state: A::State,
        store: A::Store,
        act: impl FnOnce(&A::Params) -> (Rollout<Self>, W),
        cx: Cx,
    ) -> Iterated<Self, W> {
        let act = |params: &A::Params| {
            let (rollout, with) = act(params);
            (self.rollout(rollout), with)
        };
        self.agent.iterate(state, store, act, cx)
    }

    fn staleness(&self) -> Staleness {
        self.agent.staleness()
    }
}
