//! Agents around other agents.

use super::{Act, Agent, Input, LaneId, Mode, View};
use podracer_dsl::prelude::*;

/// An agent that acts through an inner agent. It may change the observations of the inner agent,
/// and keep parameters of its own. Every wrapper is an [`Agent`] with the memory and the extras of
/// the inner agent; it has its own way of learning.
///
/// [`Normalized`](super::Normalized) and [`Unflatten`](super::Unflatten) change the observations;
/// [`Replayed`](super::Replayed) and [`Split`](super::Split) only learn differently.
pub trait Wrapper: Clone + 'static {
    /// The inner agent.
    type Inner: Agent;
    /// Observations on which the wrapper acts.
    type Observation: Tree;
    /// Parameters that acting reads.
    type Params: Tree;

    /// The inner agent.
    fn inner(&self) -> &Self::Inner;

    /// The inner agent's part of the parameters.
    fn inner_params<'a>(&self, params: &'a Self::Params) -> &'a <Self::Inner as Agent>::Params;

    /// The input for the inner agent.
    fn inner_input(
        &self,
        params: &Self::Params,
        input: Input<Self::Observation>,
    ) -> Input<<Self::Inner as Agent>::Observation>;
}

impl<W: Wrapper> Agent for W {
    type Observation = W::Observation;
    type Params = W::Params;
    type Memory = <W::Inner as Agent>::Memory;
    type Extras = <W::Inner as Agent>::Extras;

    fn init_memory(&self, lane: LaneId) -> Self::Memory {
        self.inner().init_memory(lane)
    }

    fn begin_episode(&self, memory: Self::Memory) -> Self::Memory {
        self.inner().begin_episode(memory)
    }

    fn act(
        &self,
        params: &W::Params,
        memory: Self::Memory,
        input: Input<W::Observation>,
        mode: Mode,
        key: Key,
    ) -> Act<Self::Memory, Self::Extras> {
        let input = self.inner_input(params, input);
        self.inner().act(self.inner_params(params), memory, input, mode, key)
    }

    fn view(
        &self,
        params: &W::Params,
        memory: Self::Memory,
        input: Input<W::Observation>,
        mode: Mode,
        key: Key,
    ) -> View {
        let input = self.inner_input(params, input);
        self.inner().view(self.inner_params(params), memory, input, mode, key)
    }
}
