//! Over how many devices an experiment divides, and who of them learns where nobody says it.

use super::{AgentSettings, Settings, UsageError};

impl Settings {
    /// Decides who acts and who learns, in an experiment with `[sebulba]`, as
    /// [`SebulbaSettings::decide`](super::SebulbaSettings::decide) does. Of learners that nobody named it takes the first ones,
    /// as many as the environments and minibatches divide over. `devices` are those that there are, and then those of the run.
    /// Gives warnings.
    ///
    /// # Errors
    /// As there.
    pub fn decide(&mut self, devices: &mut Vec<usize>) -> Result<Vec<String>, UsageError> {
        let Some(sebulba) = &mut self.sebulba else {
            return Ok(Vec::new());
        };
        let named = !sebulba.learners.is_empty();
        let mut warnings = Vec::from_iter(sebulba.decide(devices)?);
        if !named {
            warnings.extend(self.divisible_learners());
        }
        if let Some(sebulba) = &self.sebulba {
            *devices = [&sebulba.actors[..], &sebulba.learners].concat();
            devices.sort_unstable();
            devices.dedup();
        }
        Ok(warnings)
    }

    /// Keeps the first learners, as many as the environments and minibatches divide over. Gives a warning where others were
    /// decided.
    fn divisible_learners(&mut self) -> Option<String> {
        let sebulba = self.sebulba.as_ref()?;
        let (learners, environments) = (sebulba.learners.len(), sebulba.environments);
        let most = (1..=learners).rev().find(|&n| self.divide_over(n).is_ok()).unwrap_or(learners);
        self.sebulba.as_mut()?.learners.truncate(most);
        (most < learners).then(|| {
            format!(
                "{most} of {learners} devices learn, because sebulba.environments = {environments} and its minibatches do not \
                 divide over more: a multiple of {learners} uses all"
            )
        })
    }

    /// That the environments divide over this many devices (of Sebulba: over the learners), and each device's batch into
    /// minibatches.
    ///
    /// # Errors
    /// What does not divide.
    pub fn check_division(&self, devices: usize) -> Result<(), UsageError> {
        let learners = self.sebulba.as_ref().map(|one| one.learners.len().max(1));
        self.divide_over(learners.unwrap_or(devices))
    }

    fn divide_over(&self, devices: usize) -> Result<(), UsageError> {
        let (name, environments) = match &self.sebulba {
            Some(sebulba) => ("sebulba.environments", sebulba.environments),
            None => ("anakin.environments", self.anakin.environments),
        };
        if devices == 0 || !environments.is_multiple_of(devices) {
            return Err(UsageError::new(format!(
                "{name} = {environments} does not divide over {devices} devices: it must be a multiple of {devices}"
            )));
        }
        let (all, unroll, _) = self.shape();
        let splits = self.sebulba.as_ref().map_or(1, |sebulba| sebulba.splits);
        let environments = all / devices / splits.max(1);
        let batch = environments * unroll;
        match &self.agent {
            AgentSettings::Ppo(ppo)
                if ppo.lstm > 0 && !environments.is_multiple_of(ppo.minibatches.max(1)) =>
            {
                Err(UsageError::new(format!(
                    "{environments} environments per device do not divide into agent.minibatches = {}: with agent.lstm = {} each \
                     minibatch has whole trajectories",
                    ppo.minibatches, ppo.lstm
                )))
            }
            AgentSettings::Ppo(ppo)
                if ppo.minibatches == 0 || !batch.is_multiple_of(ppo.minibatches) =>
            {
                Err(UsageError::new(format!(
                    "a batch of {batch} steps per device ({environments} environments, unroll {unroll}) does not divide into \
                     agent.minibatches = {}",
                    ppo.minibatches
                )))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::experiments::BUILT_IN;
    use crate::settings::{Overrides, Settings, load};

    fn set(experiment: &str, set: &str) -> Settings {
        let overrides = Overrides { set: vec![set.to_owned()], ..Overrides::default() };
        load(experiment, &overrides).unwrap()
    }

    #[test]
    fn every_built_in_experiment_trains_on_machines_of_all_sizes() {
        for one in &BUILT_IN {
            let settings = load(one.name, &Overrides::default()).unwrap();
            if settings.sebulba.is_none() {
                continue;
            }
            for devices in 1..=64 {
                let mut settings = settings.clone();
                settings
                    .decide(&mut Vec::from_iter(0..devices))
                    .and_then(|_| settings.check_division(devices))
                    .unwrap_or_else(|error| panic!("{} on {devices}: {error}", one.name));
            }
        }
    }

    #[test]
    fn as_many_devices_learn_as_environments_divide_over() {
        let mut settings = set("cartpole-sebulba-ppo", "sebulba.environments=8");
        let mut named = settings.clone();
        let mut devices = vec![0, 1, 2, 3];
        let warnings = settings.decide(&mut devices).unwrap();
        assert_eq!(
            warnings,
            [
                "2 of 3 devices learn, because sebulba.environments = 8 and its minibatches do not divide over more: a multiple of \
                 3 uses all"
            ]
        );
        assert_eq!(settings.sebulba.unwrap().learners, [1, 2]);
        assert_eq!(devices, [0, 1, 2]);
        // Those that are named are what was meant.
        named.sebulba.as_mut().unwrap().learners = vec![1, 2, 3];
        assert!(named.decide(&mut vec![0, 1, 2, 3]).unwrap().is_empty());
        let error = named.check_division(4).unwrap_err().to_string();
        assert_eq!(
            error,
            "sebulba.environments = 8 does not divide over 3 devices: it must be a multiple of 3"
        );
    }

    #[test]
    fn what_does_not_divide() {
        let settings = load("cartpole-ppo", &Overrides::default()).unwrap();
        settings.check_division(2).unwrap();
        let text = settings.check_division(3).unwrap_err().to_string();
        assert!(text.contains("= 4 does not divide over 3 devices"), "{text}");
        let settings = set("cartpole-ppo", "agent.minibatches=1000");
        let text = settings.check_division(1).unwrap_err().to_string();
        assert!(text.contains("512 steps per device"), "{text}");
        let settings = set("memory-ppo", "agent.minibatches=128");
        let text = settings.check_division(1).unwrap_err().to_string();
        assert!(text.contains("64 environments per device do not divide"), "{text}");
    }
}
