//! Many trainings as one program: the loop of an agent in an environment, under `vmap` over its members.
//!
//! # Invariants
//! - A member is a run of its own: it draws from the key of the run with its seed, and nothing of it crosses to another one.
//! - Devices share out the members in order; a member is whole on one device.

use crate::agents::{Axes, Learn};
use crate::anakin::{AgentLoop, Episodes, LoopState};
use podracer_dsl::prelude::*;
use podracer_envs::Environment;

/// A member of a population.
#[derive(Tree, Clone)]
pub struct Member<M: Tree, S: Tree> {
    /// Data in which the member differs from others: hyper-parameters, a map, anything.
    pub data: M,
    /// The state of its run.
    pub state: S,
}

/// The members of one device, `[P / n, ..]` of `P` on `n` devices.
pub type MembersFor<M, E, A> = Placed<(), Member<M, LoopState<E, A>>>;
/// The metrics of an iteration of the members of one device, `[P / n, ..]`.
pub type MemberMetrics<A> = Placed<(), Placed<<A as Learn>::Metrics, Episodes>>;

/// A population, whose members are made from their data by one function.
#[derive(Clone)]
pub struct Population<F> {
    /// Makes the loop of a member, of an axis for no device.
    make: F,
    /// Members of one device.
    members: usize,
    axes: Axes,
}

impl<F> Population<F> {
    /// A population of which each of so many devices has so many `members`. `make` makes the loop of a member from its data, whose
    /// lanes are all on the member's device ([`AgentLoop::spread`] over [`Axes::none`]).
    pub fn new(make: F, members: usize, devices: usize) -> Self {
        Population { make, members, axes: Axes::replicas(devices) }
    }

    /// The members of this device at the start of their runs. `keys` are those of all members' runs, u32 `[P, 2]`; `data` is `[P, ..]`.
    #[track_caller]
    pub fn init<M, E, A>(&self, keys: Tensor, data: M) -> MembersFor<M, E, A>
    where
        M: Tree,
        E: Environment,
        A: Learn<Observation = E::Observation>,
        F: Fn(M) -> AgentLoop<E, A>,
    {
        let first = self.axes.index() * self.members as i32;
        let rows = arange(self.members) + first;
        let (keys, data) = tree_map(&(keys, data), |all| all.take(rows, 0));
        let members = vmap((Keys::from_words(keys), data), |(key, data)| {
            let state = (self.make)(data.clone()).init(key);
            Member { data, state }
        });
        Placed { replicated: (), sharded: members }
    }

    /// One iteration of each member of this device.
    #[track_caller]
    pub fn iterate<M, E, A>(
        &self,
        members: MembersFor<M, E, A>,
    ) -> (MembersFor<M, E, A>, MemberMetrics<A>)
    where
        M: Tree,
        E: Environment,
        A: Learn<Observation = E::Observation>,
        F: Fn(M) -> AgentLoop<E, A>,
    {
        let (sharded, metrics) = vmap(members.sharded, |Member { data, state }| {
            let (state, metrics) = (self.make)(data.clone()).iterate(state);
            (Member { data, state }, metrics)
        });
        (Placed { replicated: (), sharded }, Placed { replicated: (), sharded: metrics })
    }
}
