//! Checks of the steps that a worker reports.

use bytes::Bytes;
use podracer_envs::host::{HostSpec, WorkerStep};

use super::ended;
use super::limits::Limits;
use super::observations::ObservationCheck;
use crate::packed::{unpack_flags, unpack_rewards};
use crate::proto;

/// Converts the messages of one worker into steps, or returns the problem.
pub(super) struct StepCheck {
    spec: HostSpec,
    /// Bytes of one observation.
    size: usize,
    observations: ObservationCheck,
    /// Greatest magnitude of a reward.
    reward_bound: f32,
    /// True if rewards and flags come [packed](crate::packed).
    packed: bool,
}

impl StepCheck {
    /// Checks for a worker of `spec.environments` environments.
    pub(super) fn new(spec: HostSpec, limits: &Limits) -> Self {
        let size = spec.observation.ty().bytes();
        let observations = ObservationCheck::new(spec.observation.clone(), limits.observation);
        StepCheck { spec, size, observations, reward_bound: limits.reward, packed: false }
    }

    /// Sets if the worker's rewards and flags are packed.
    pub(super) fn packed(self, packed: bool) -> Self {
        StepCheck { packed, ..self }
    }

    /// The bytes of the longest step: every environment has ended, and what frames and fields take.
    pub(super) fn most_bytes(&self) -> usize {
        let n = self.spec.environments;
        let arrays = n * (self.size * (1 + usize::from(self.spec.truncates)) + 10);
        arrays + arrays / 64 + (4 << 10)
    }

    /// The step in a message, which must have the number `sequence`.
    ///
    /// # Errors
    /// A sentence with the first mistake.
    pub(super) fn step(&self, step: proto::Step, sequence: u64) -> Result<WorkerStep, String> {
        if step.sequence != sequence {
            return Err(format!("expected step {sequence}, got step {}", step.sequence));
        }
        let (last, told) = (step.final_observations.clone(), step.success.clone());
        let mut step =
            self.arrays(step).map_err(|problem| format!("step {sequence}: {problem}"))?;
        let most = if sequence == 0 { 0.0 } else { self.reward_bound };
        let rewards = step.reward.chunks_exact(4).map(float);
        if let Some((environment, reward)) =
            rewards.enumerate().find(|(_, reward)| reward.is_nan() || reward.abs() > most)
        {
            let expected = match sequence {
                0 => "step 0 begins the episodes, and its rewards must be 0".to_owned(),
                _ => format!("rewards must be from -{most} to {most} (central.reward_bound)"),
            };
            return Err(format!(
                "step {sequence}: the reward of environment {environment} is {reward}: {expected}"
            ));
        }
        let ended = self.flags(&step, sequence)?;
        let shown = if self.spec.truncates { ended * self.size } else { 0 };
        if last.len() != shown {
            return Err(format!(
                "step {sequence}: `final_observations` must have {shown} bytes for {ended} environments that ended and has {}",
                last.len()
            ));
        }
        for (what, observations) in
            [("observation", &step.observation), ("final_observations", &last)]
        {
            self.observations.values(observations).map_err(|(environment, problem)| {
                format!("step {sequence}: `{what}`, row {environment}: {problem}")
            })?;
        }
        self.has_legal_actions(&step).map_err(|problem| format!("step {sequence}: {problem}"))?;
        step.success = ended::successes(&step, &told, ended)
            .map_err(|problem| format!("step {sequence}: {problem}"))?;
        if ended > 0 && self.spec.truncates {
            step.next_observation = ended::next_observation(&step, &last, self.size);
        }
        Ok(step)
    }

    /// The arrays of a step without ended episodes, unpacked, with checked lengths.
    fn arrays(&self, step: proto::Step) -> Result<WorkerStep, String> {
        let n = self.spec.environments;
        let named = |what: &str, unpacked: Result<Bytes, String>| {
            unpacked.map_err(|problem| format!("`{what}` {problem}"))
        };
        let (mut reward, mut terminated, mut truncated) =
            (step.reward, step.terminated, step.truncated);
        if self.packed {
            reward = named("reward", unpack_rewards(&reward, n))?;
            terminated = named("terminated", unpack_flags(&terminated, n))?;
            truncated = named("truncated", unpack_flags(&truncated, n))?;
        }
        let bits = step.legal_actions;
        let legal_actions = match self.spec.masks {
            true => {
                let flags = unpack_flags(&bits, self.spec.legal_actions_type().bytes());
                named("legal_actions", flags)?
            }
            false if bits.is_empty() => bits,
            false => return Err("`legal_actions` come, and `Spaces.masks` is false".to_owned()),
        };
        let step = WorkerStep {
            next_observation: match self.spec.truncates {
                true => step.observation.clone(),
                false => Bytes::new(),
            },
            observation: step.observation,
            reward,
            terminated,
            truncated,
            legal_actions,
            success: Bytes::new(),
        };
        step.check(&self.spec).map(|()| step)
    }

    /// Checks that each environment, and each element of its action, has a legal one.
    fn has_legal_actions(&self, step: &WorkerStep) -> Result<(), String> {
        if !self.spec.masks {
            return Ok(());
        }
        let mut masks = &step.legal_actions[..];
        for environment in 0..self.spec.environments {
            for (element, &count) in self.spec.action.counts().iter().enumerate() {
                let (mask, rest) = masks.split_at(count);
                if !mask.contains(&1) {
                    return Err(format!(
                        "environment {environment} has no legal action: none of the {count} values of element {element}"
                    ));
                }
                masks = rest;
            }
        }
        Ok(())
    }

    /// Checks the flags, and counts the environments that have one.
    fn flags(&self, step: &WorkerStep, sequence: u64) -> Result<usize, String> {
        let mut ended = 0;
        let flags = step.terminated.iter().zip(&step.truncated).enumerate();
        for (environment, (&terminated, &truncated)) in flags {
            let flags = (terminated, truncated);
            let problem = match flags {
                (0, 0) => continue,
                (0 | 1, 0 | 1) if sequence == 0 => "step 0 begins the episodes and ends none",
                (1, 1) if !self.spec.skips => {
                    "an episode is terminated or truncated, and not both: these environments have no reset-only steps"
                }
                (0, 1) if !self.spec.truncates => "these environments never truncate",
                (0 | 1, 0 | 1) => {
                    ended += 1;
                    continue;
                }
                _ => "a flag is 0 or 1",
            };
            return Err(format!(
                "step {sequence}: (terminated, truncated) of environment {environment} are {flags:?}: {problem}"
            ));
        }
        Ok(ended)
    }
}

pub(super) fn float(bytes: &[u8]) -> f32 {
    bytes.try_into().map_or(f32::NAN, f32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use podracer_envs::Space;

    use super::*;

    fn floats(values: &[f32]) -> Bytes {
        values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>().into()
    }

    /// Two environments that show one number each, truncate and do not skip.
    fn spec() -> HostSpec {
        HostSpec {
            environments: 2,
            observation: Space::unbounded([]),
            action: Space::discrete(2),
            truncates: true,
            skips: false,
            masks: false,
            succeeds: false,
        }
    }

    fn step() -> proto::Step {
        proto::Step {
            sequence: 3,
            observation: floats(&[1.0, 2.0]),
            reward: floats(&[0.5, -1.0]),
            terminated: Bytes::from_static(&[0, 0]),
            truncated: Bytes::from_static(&[0, 1]),
            final_observations: floats(&[7.0]),
            legal_actions: Bytes::new(),
            success: Bytes::new(),
        }
    }

    #[test]
    fn an_environment_that_is_done_shows_its_last_observation() {
        let read = StepCheck::new(spec(), &Limits::default()).step(step(), 3).expect("it is right");
        assert_eq!(read.observation, floats(&[1.0, 2.0]));
        assert_eq!(read.next_observation, floats(&[1.0, 7.0]));
    }

    #[test]
    fn observations_are_not_copied_where_nothing_ended() {
        let quiet = proto::Step {
            truncated: Bytes::from_static(&[0, 0]),
            final_observations: Bytes::new(),
            ..step()
        };
        let sent = quiet.observation.as_ptr();
        let read = StepCheck::new(spec(), &Limits::default()).step(quiet, 3).expect("it is right");
        assert_eq!(read.observation.as_ptr(), sent);
        assert_eq!(read.next_observation.as_ptr(), sent);
    }

    /// An infinite observation, or a reward of 3e38, made the loss infinite and ended the run.
    #[test]
    fn numbers_that_nobody_can_learn_from_are_refused() {
        let said = |space: &Space, shown: &[f32], rewards: [f32; 2]| {
            let spec = HostSpec { observation: space.clone(), ..spec() };
            let step = proto::Step {
                observation: floats(shown),
                reward: floats(&rewards),
                truncated: Bytes::from_static(&[0, 0]),
                final_observations: Bytes::new(),
                ..step()
            };
            StepCheck::new(spec, &Limits::default()).step(step, 3).map(drop)
        };
        let any = Space::unbounded([1]);
        let shared = Space::bounded([2], -1.0, 1.0);
        let each = Space::bounded([2], [-1.0, 0.0], [1.0, f64::INFINITY]);
        for (space, shown) in [
            (&any, &[1e6, -1e6][..]),
            (&shared, &[-1.0, 1.0, 1.000_001, 0.0]),
            (&each, &[1.0, 0.0, -1.0, 1e6]),
        ] {
            assert_eq!(said(space, shown, [1e6, -1e6]), Ok(()), "{shown:?}");
        }
        for (space, shown, expected) in [
            (&any, &[0.0, f32::INFINITY][..], "row 1: element 0 is inf: expected a finite number"),
            (
                &shared,
                &[0.0, 0.0, 0.0, 1.1],
                "row 1: element 1 is 1.1: expected a number from -1 to 1",
            ),
            (
                &shared,
                &[f32::NEG_INFINITY, 0.0, 0.0, 0.0],
                "row 0: element 0 is -inf: expected a finite number",
            ),
            (
                &each,
                &[0.0, -0.5, 0.0, 0.0],
                "row 0: element 1 is -0.5: expected a number from 0 to 1000000",
            ),
            (
                &each,
                &[0.0, 0.0, 0.0, f32::INFINITY],
                "row 1: element 1 is inf: expected a finite number",
            ),
        ] {
            let problem = said(space, shown, [0.0; 2]).expect_err(expected);
            assert_eq!(problem, format!("step 3: `observation`, {expected}"));
        }
        for reward in [3e38, -1.1e6, f32::NEG_INFINITY, f32::NAN] {
            let problem = said(&any, &[0.0; 2], [0.0, reward]).expect_err("it is too much");
            assert!(problem.contains("the reward of environment 1 is"), "{problem}");
        }
    }

    #[test]
    fn masks_have_a_legal_action_for_each_environment() {
        let spec = HostSpec { action: Space::multi_discrete([2, 1]), masks: true, ..spec() };
        let read = |bits: &'static [u8]| {
            let step = proto::Step { legal_actions: Bytes::from_static(bits), ..step() };
            let read = StepCheck::new(spec.clone(), &Limits::default()).step(step, 3);
            read.map(|step| step.legal_actions.to_vec())
        };
        assert_eq!(read(&[0b11_0110]), Ok(vec![0, 1, 1, 0, 1, 1]));
        for (bits, expected) in [
            (
                &[0b01_1110][..],
                "environment 1 has no legal action: none of the 1 values of element 1",
            ),
            (&[], "environment 0 has no legal action: none of the 2 values of element 0"),
            (&[0b100_0000], "`legal_actions` has a bit for more than 6 flags"),
            (
                &[0, 0],
                "`legal_actions` must have 1 bytes, a bit for each of 6 flags, or none, and has 2",
            ),
        ] {
            assert_eq!(read(bits), Err(format!("step 3: {expected}")));
        }
        let unasked = proto::Step { legal_actions: Bytes::from_static(&[1]), ..step() };
        let told = StepCheck::new(HostSpec { masks: false, ..spec.clone() }, &Limits::default())
            .step(unasked, 3);
        let expected = "step 3: `legal_actions` come, and `Spaces.masks` is false";
        assert_eq!(told, Err(expected.to_owned()));
    }

    /// ReLU's networks have no finite values for finite observations of 1e37, and their gradients ended the run of every worker.
    #[test]
    fn a_finite_observation_that_would_end_the_run_is_refused() {
        let told = |space: Space, value: f32| {
            let spec = HostSpec { observation: space, ..spec() };
            let observation = floats(&[0.0, value]);
            StepCheck::new(spec, &Limits::default())
                .step(proto::Step { observation, ..step() }, 3)
                .map_err(|problem| problem.replace("step 3: `observation`, row 1: ", ""))
                .map(drop)
        };
        let any = Space::unbounded([]);
        assert_eq!(told(any.clone(), 1e6), Ok(()));
        let bound = "expected a number from -1000000 to 1000000 (central.observation_bound)";
        assert_eq!(
            told(any.clone(), 1e37),
            Err(format!("element 0 is 1e37: {bound}").replace("1e37", &1e37_f32.to_string()))
        );
        assert_eq!(told(any, -2e6), Err(format!("element 0 is -2000000: {bound}")));
        // As Gymnasium's CartPole has it.
        let greatest = f64::from(f32::MAX);
        let gymnasium = Space::bounded([], -greatest, greatest);
        assert_eq!(told(gymnasium, 2e6), Err(format!("element 0 is 2000000: {bound}")));
        assert_eq!(told(Space::bounded([], -1e7, 1e7), 2e6), Ok(()), "the space says so");
    }

    #[test]
    fn nonsense_is_an_error() {
        let check = |expected: &str, spec: HostSpec, change: &dyn Fn(&mut proto::Step)| {
            let mut step = step();
            change(&mut step);
            let sequence = if expected.starts_with("step 0") { 0 } else { 3 };
            assert_eq!(
                StepCheck::new(spec, &Limits::default()).step(step, sequence).map(drop),
                Err(expected.to_owned())
            );
        };
        check("expected step 3, got step 4", spec(), &|step| step.sequence = 4);
        check(
            "step 3: `observation` must have 8 bytes for 2 environments and has 9",
            spec(),
            &|step| {
                step.observation = vec![0; 9].into();
            },
        );
        check("step 3: `reward` must have 8 bytes for 2 environments and has 0", spec(), &|step| {
            step.reward = Bytes::new();
        });
        check(
            "step 3: `terminated` must have 2 bytes for 2 environments and has 3",
            spec(),
            &|step| {
                step.terminated = vec![0; 3].into();
            },
        );
        check(
            "step 3: the reward of environment 1 is NaN: rewards must be from -1000000 to 1000000 (central.reward_bound)",
            spec(),
            &|step| {
                step.reward = floats(&[0.0, f32::NAN]);
            },
        );
        check(
            "step 3: the reward of environment 0 is inf: rewards must be from -1000000 to 1000000 (central.reward_bound)",
            spec(),
            &|step| {
                step.reward = floats(&[f32::INFINITY, 0.0]);
            },
        );
        check(
            "step 3: (terminated, truncated) of environment 1 are (2, 1): a flag is 0 or 1",
            spec(),
            &|step| step.terminated = vec![0, 2].into(),
        );
        check(
            "step 3: (terminated, truncated) of environment 1 are (1, 1): an episode is terminated or truncated, and not both: \
             these environments have no reset-only steps",
            spec(),
            &|step| step.terminated = vec![0, 1].into(),
        );
        check(
            "step 3: (terminated, truncated) of environment 1 are (0, 1): these environments never truncate",
            HostSpec { truncates: false, ..spec() },
            &|_| (),
        );
        check(
            "step 0: (terminated, truncated) of environment 1 are (0, 1): step 0 begins the episodes and ends none",
            spec(),
            &|step| (step.sequence, step.reward) = (0, floats(&[0.0, 0.0])),
        );
        check(
            "step 0: the reward of environment 1 is -1: step 0 begins the episodes, and its rewards must be 0",
            spec(),
            &|step| (step.sequence, step.reward) = (0, floats(&[0.0, -1.0])),
        );
        check(
            "step 3: `final_observations` must have 4 bytes for 1 environments that ended and has 0",
            spec(),
            &|step| step.final_observations = Bytes::new(),
        );
        check(
            "step 3: `observation`, row 0: element 0 is NaN: expected a finite number",
            spec(),
            &|step| {
                step.observation = floats(&[f32::NAN, 0.0]);
            },
        );
        check(
            "step 3: `final_observations`, row 0: 5 is not one of 0..3",
            HostSpec { observation: Space::discrete(3), ..spec() },
            &|step| {
                step.observation = [1i32, 2].iter().flat_map(|i| i.to_le_bytes()).collect();
                step.final_observations = 5i32.to_le_bytes().to_vec().into();
            },
        );
    }
}
