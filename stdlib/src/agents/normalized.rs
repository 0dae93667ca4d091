//! Observations and rewards of about unit size, for any agent that learns from a batch: what MuJoCo's environments show
//! differs by orders of magnitude. The statistics are those of Gymnasium's `NormalizeObservation` and `NormalizeReward`.
//!
//! They are beside the networks: published, checkpointed and exported with them, and never changed by acting, so that an
//! evaluation sees what training saw. A cycle normalises with the statistics that it was acted with, and leaves those
//! that its own trajectory, on all devices, has been added to.

use super::{Agent, Learning, Trajectory, step_weights, steps_that_count, weighted};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// An agent that sees and is paid in normalised numbers.
#[derive(Clone, Debug)]
pub struct Normalized<A> {
    /// The agent.
    pub agent: A,
    /// What it observes.
    pub observation: Space,
    /// Whether observations become `(x - mean) / std`, element by element.
    pub observations: bool,
    /// Whether rewards are divided by the standard deviation of the return so far, discounted so; none leaves them.
    pub rewards: Option<f64>,
    /// Normalised numbers are cut off at this and at minus this.
    pub limit: f64,
}

impl<A> Normalized<A> {
    /// Observations and rewards normalised, and cut off at 10, as is common for PPO in MuJoCo's environments.
    pub fn new(agent: A, observation: Space, discount: f64) -> Self {
        Normalized { agent, observation, observations: true, rewards: Some(discount), limit: 10.0 }
    }
}

/// Running mean and variance.
#[derive(Tree, Clone, Copy, Debug)]
pub struct Moments {
    /// How many numbers they are of. f32 `[]`
    pub count: Tensor,
    /// f32 `[...]`
    pub mean: Tensor,
    /// f32 `[...]`
    pub variance: Tensor,
}

/// What is added to variances, and how much the first moments count for.
const EPSILON: f64 = 1e-8;
const FIRST_COUNT: f64 = 1e-4;

impl Moments {
    /// Mean 0 and variance 1, which the first numbers overrule.
    pub fn first(shape: &[usize]) -> Moments {
        Moments {
            count: full([], FIRST_COUNT),
            mean: zeros(F32, shape),
            variance: ones(F32, shape),
        }
    }

    /// With more numbers, f32 `[T, N, ...]` on each device, by the update of Chan et al. (1979); without those of the steps
    /// that were `skipped`, as in [`Trajectory`].
    #[track_caller]
    pub fn with(self, numbers: Tensor, skipped: &[Tensor]) -> Moments {
        let Moments { count, mean, variance } = self;
        let each = steps_that_count(skipped, numbers.dim(0) * numbers.dim(1));
        let more = psum(each, Replicas);
        let weights = skipped.iter().map(|&skipped| {
            let mut shape = vec![1; numbers.rank()];
            shape[..2].copy_from_slice(&skipped.shape());
            let weights = step_weights(!skipped).reshape(shape);
            weights.broadcast_to(numbers.shape())
        });
        let weights: Vec<Tensor> = weights.collect();
        let mean_of = |numbers| pmean(weighted(numbers, &weights).mean_axis([0, 1]), Replicas);
        let its_mean = mean_of(numbers);
        let its_variance = mean_of((numbers - its_mean).square());
        let total = count + more;
        let (delta, share) = (its_mean - mean, more / total);
        Moments {
            count: total,
            mean: mean + delta * share,
            variance: variance * (1.0 - share)
                + its_variance * share
                + delta.square() * share * (1.0 - share),
        }
    }
}

/// The networks, and what is known of the numbers that they see.
#[derive(Tree, Clone)]
pub struct NormalizedNets<N: Tree> {
    /// The agent's.
    pub nets: N,
    /// Of observations: one or none.
    pub observations: Vec<Moments>,
    /// Of discounted returns: one or none.
    pub returns: Vec<Moments>,
}

/// What outlives a cycle.
#[derive(Tree, Clone)]
pub struct NormalizedExperience<X: Tree> {
    /// The agent's.
    pub experience: X,
    /// The discounted return so far of each environment's episode: one or none. f32 `[N]`
    pub returns: Vec<Tensor>,
}

/// What the updates of a cycle read.
#[derive(Tree, Clone)]
pub struct NormalizedBatch<B: Tree> {
    /// The agent's.
    pub batch: B,
    /// With the cycle's trajectory.
    pub observations: Vec<Moments>,
    /// With the cycle's trajectory.
    pub returns: Vec<Moments>,
}

impl<A: Agent<Observation = Tensor>> Normalized<A> {
    /// What the agent is shown of observations `[..., S]`.
    #[track_caller]
    fn seen(&self, nets: &NormalizedNets<A::Nets>, observation: Tensor) -> Tensor {
        match nets.observations.first() {
            None => observation,
            Some(of) => {
                let scaled = (observation.astype(F32) - of.mean) / (of.variance + EPSILON).sqrt();
                scaled.clamp(-self.limit, self.limit)
            }
        }
    }
}

impl<A: Agent<Observation = Tensor>> Agent for Normalized<A> {
    type Observation = Tensor;
    type Actor = A::Actor;
    type Nets = NormalizedNets<A::Nets>;
    type Opt = A::Opt;
    type Experience = NormalizedExperience<A::Experience>;
    type Output = A::Output;
    type Batch = NormalizedBatch<A::Batch>;
    type Metrics = A::Metrics;

    fn init_nets(&self, key: Key) -> Self::Nets {
        let of = |wanted: bool, shape: &[usize]| {
            let moments = wanted.then(|| Moments::first(shape));
            moments.into_iter().collect()
        };
        NormalizedNets {
            nets: self.agent.init_nets(key),
            observations: of(self.observations, self.observation.shape()),
            returns: of(self.rewards.is_some(), &[]),
        }
    }

    fn init_opt(&self, nets: &Self::Nets) -> A::Opt {
        self.agent.init_opt(&nets.nets)
    }

    fn init_actor(&self) -> A::Actor {
        self.agent.init_actor()
    }

    fn init_experience(&self, environments: usize) -> Self::Experience {
        let returns = self.rewards.map(|_| zeros(F32, [environments]));
        NormalizedExperience {
            experience: self.agent.init_experience(environments),
            returns: returns.into_iter().collect(),
        }
    }

    fn act(
        &self,
        nets: &Self::Nets,
        actor: A::Actor,
        observation: Tensor,
        key: Key,
    ) -> (Tensor, A::Actor, A::Output) {
        let seen = self.seen(nets, observation);
        self.agent.act(&nets.nets, actor, seen, key)
    }

    fn act_greedily(
        &self,
        nets: &Self::Nets,
        actor: A::Actor,
        observation: Tensor,
    ) -> (Tensor, A::Actor) {
        let seen = self.seen(nets, observation);
        self.agent.act_greedily(&nets.nets, actor, seen)
    }

    fn update_experience(
        &self,
        nets: &Self::Nets,
        experience: Self::Experience,
        actor: A::Actor,
        trajectory: Trajectory<Tensor, A::Output>,
        key: Key,
    ) -> (Self::Experience, Self::Batch) {
        let _scope = scope("Normalized::update_experience");
        let shown = trajectory.observation.astype(F32);
        let skipped = &trajectory.skipped;
        let observations = nets.observations.iter();
        let observations = observations.map(|of| of.with(shown, skipped)).collect();
        let (mut reward, mut returns, mut carried) = (trajectory.reward, Vec::new(), Vec::new());
        if let (Some(discount), Some(&before), Some(of)) =
            (self.rewards, experience.returns.first(), nets.returns.first())
        {
            let ended = trajectory.terminated | trajectory.truncated;
            let steps = (reward, trajectory.terminated, ended);
            let (last, all) = scan(before, steps, |so_far, (reward, terminated, ended)| {
                let so_far = so_far * select(terminated, 0.0, discount) + reward;
                (select(ended, 0.0, so_far), so_far)
            });
            let of = of.with(all, skipped);
            reward = (reward / (of.variance + EPSILON).sqrt()).clamp(-self.limit, self.limit);
            returns.push(of);
            carried.push(last);
        }
        let next = trajectory.next_observation.iter();
        let trajectory = Trajectory {
            observation: self.seen(nets, trajectory.observation),
            reward,
            next_observation: next.map(|&next| self.seen(nets, next)).collect(),
            last_observation: self.seen(nets, trajectory.last_observation),
            ..trajectory
        };
        let (experience, batch) =
            self.agent.update_experience(&nets.nets, experience.experience, actor, trajectory, key);
        let experience = NormalizedExperience { experience, returns: carried };
        let batch = NormalizedBatch { batch, observations, returns };
        (experience, batch)
    }

    fn loss(
        &self,
        nets: Self::Nets,
        batch: &Self::Batch,
        update: Tensor,
    ) -> (Tensor, Self::Metrics) {
        self.agent.loss(nets.nets, &batch.batch, update)
    }

    fn optimize_from_grads(
        &self,
        nets: Self::Nets,
        opt: A::Opt,
        grads: Self::Nets,
    ) -> (Self::Nets, A::Opt) {
        let (learnt, opt) = self.agent.optimize_from_grads(nets.nets, opt, grads.nets);
        let nets = NormalizedNets { nets: learnt, ..nets };
        (nets, opt)
    }

    fn settle(&self, nets: Self::Nets, batch: &Self::Batch) -> Self::Nets {
        NormalizedNets {
            nets: self.agent.settle(nets.nets, &batch.batch),
            observations: batch.observations.clone(),
            returns: batch.returns.clone(),
        }
    }

    fn learning(&self) -> Learning {
        self.agent.learning()
    }
}
