//! Many trainings as one program: the loop of an agent in an environment, under `vmap` over its members.
//!
//! # Invariants
//! - A member is an independent run: it uses the key of the run with its seed. No data passes
//!   between members, unless the population [`Exploit`]s its best members.
//! - Devices divide the members in order; each member is on one device.

mod exploit;

pub use exploit::{Contest, Exploit, Rounds};

use crate::anakin::{AgentLoop, Episodes, LoopState};
use crate::learn::{Axes, Learn};
use podracer_dsl::prelude::*;
use podracer_envs::Environment;

/// A member of a population.
#[derive(Tree, Clone)]
pub struct Member<M: Tree, S: Tree> {
    /// Data that distinguishes the member: hyper-parameters, a map, or any other data.
    pub data: M,
    /// The state of its run.
    pub state: S,
    /// The member's results, for comparison with others; `None` if no member is exploited.
    pub contest: Option<Contest>,
}

/// A member that is the loop of an agent.
pub type LoopMember<M, E, A> = Member<M, LoopState<E, A>>;
/// The members of one device, `[P / n, ..]` of `P` on `n` devices.
pub type MembersFor<M, E, A> = Placed<Option<Rounds>, LoopMember<M, E, A>>;
/// The metrics of an iteration of the members of one device, `[P / n, ..]`.
pub type MemberMetrics<A> = Placed<(), Placed<<A as Learn>::Metrics, Episodes>>;

/// A population; a function makes its members from their data.
#[derive(Clone)]
pub struct Population<F> {
    /// Makes the loop of a member, for an axis without devices.
    make: F,
    /// Number of members on each device.
    members: usize,
    axes: Axes,
    exploit: Option<Exploit>,
}

impl<F> Population<F> {
    /// A population with `members` members on each of `devices` devices. `make` makes the loop of a
    /// member from its data; its lanes are all on the member's device ([`AgentLoop::spread`] over
    /// [`Axes::none`]).
    pub fn new(make: F, members: usize, devices: usize) -> Self {
        Population { make, members, axes: Axes::replicas(devices), exploit: None }
    }

    /// The population with this rule: the worst members take over the agents of the best.
    #[must_use]
    pub fn exploiting(self, exploit: Option<Exploit>) -> Self {
        Population { exploit, ..self }
    }

    /// The indices of this device's members among all members. i32 `[P / n]`
    #[track_caller]
    fn rows(&self) -> Tensor {
        arange(self.members) + self.axes.index() * self.members as i32
    }

    /// The members of this device at the start of their runs. `keys` has the keys of every member's
    /// run, u32 `[P, 2]`; `data` is `[P, ..]`.
    #[track_caller]
    pub fn init<M, E, A>(&self, keys: Tensor, data: M) -> MembersFor<M, E, A>
    where
        M: Tree,
        E: Environment,
        A: Learn<Observation = E::Observation>,
        F: Fn(M) -> AgentLoop<E, A>,
    {
        let rows = self.rows();
        let rounds = self.exploit.as_ref().map(|_| Rounds::new(Key::from_words(keys.index(0))));
        let (keys, data) = tree_map(&(keys, data), |all| all.take(rows, 0));
        let members = vmap((Keys::from_words(keys), data, rows), |(key, data, row)| {
            let state = (self.make)(data.clone()).init(key);
            Member { data, state, contest: self.exploit.as_ref().map(|_| Contest::new(row)) }
        });
        Placed { replicated: rounds, sharded: members }
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
        let Placed { replicated: rounds, sharded: members } = members;
        let (members, metrics) = vmap(members, |Member { data, state, contest }| {
            let (state, metrics) = (self.make)(data.clone()).iterate(state);
            let contest = contest.map(|contest| contest.after(&metrics.sharded));
            (Member { data, state, contest }, metrics)
        });
        let (rounds, members) = match (&self.exploit, rounds) {
            (Some(exploit), Some(rounds)) => {
                let (rounds, members) = exploit.round(rounds, members, self.rows(), &self.axes);
                (Some(rounds), members)
            }
            (_, rounds) => (rounds, members),
        };
        let metrics = Placed { replicated: (), sharded: metrics };
        (Placed { replicated: rounds, sharded: members }, metrics)
    }
}
