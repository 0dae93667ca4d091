//! Checks that lanes and minibatches divide evenly over the devices, and picks the learner devices if none are named.

use podracer_rl::learn::RolloutShape;

use crate::UsageError;
use crate::registry::Registry;
use crate::settings::{Settings, decide};

impl Settings {
    /// Picks the devices that act and the devices that learn, in an experiment with `[sebulba]` or
    /// `[central]`: the named devices, or by the rule if none is named. If no learners are named,
    /// the first are kept: as many as lanes and minibatches divide over. `devices` has the devices
    /// of the machine, and afterwards the devices of the run. Returns warnings.
    ///
    /// # Errors An error if only acting devices or only learners are named, and no device is left for the others.
    pub fn decide(
        &mut self,
        devices: &mut Vec<usize>,
        registry: &Registry,
    ) -> Result<Vec<String>, UsageError> {
        let Some(host) = self.training_loop.host_mut() else {
            return Ok(Vec::new());
        };
        let named = !host.learners.is_empty();
        let mut warnings = Vec::from_iter(decide(host, devices)?);
        if !named {
            warnings.extend(self.keep_divisible_learners(registry));
        }
        if let Some(host) = self.training_loop.host() {
            *devices = [host.acting(), host.learning()].concat();
            devices.sort_unstable();
            devices.dedup();
        }
        Ok(warnings)
    }

    /// Keeps the first learners, as many as lanes and minibatches divide over. Returns a warning if there were more.
    fn keep_divisible_learners(&mut self, registry: &Registry) -> Option<String> {
        let (section, environments) =
            (self.training_loop.section(), self.training_loop.environments());
        let learners = self.training_loop.host()?.learners.len();
        let divide = |&learners: &usize| self.divide_over(learners, registry).is_ok();
        let most = (1..=learners).rev().find(divide).unwrap_or(learners);
        self.training_loop.host_mut()?.learners.truncate(most);
        (most < learners).then(|| {
            format!(
                "{most} of {learners} devices learn, because {section}.environments = {environments} and its minibatches do not \
                 divide over more: a multiple of {learners} uses all"
            )
        })
    }

    /// Checks that the lanes divide over `devices` devices (with `[sebulba]` or `[central]` over
    /// the learners), and that the agent can learn from the rollout of each.
    ///
    /// # Errors Returns numbers that do not divide, with their settings' names.
    pub fn check_division(&self, devices: usize, registry: &Registry) -> Result<(), UsageError> {
        let learners = self.training_loop.host().map(|host| host.learning().len());
        self.divide_over(learners.unwrap_or(devices), registry)
    }

    fn divide_over(&self, devices: usize, registry: &Registry) -> Result<(), UsageError> {
        let (section, (key, number)) = (self.training_loop.section(), self.training_loop.divided());
        if devices == 0 || !number.is_multiple_of(devices) {
            return Err(UsageError::new(format!(
                "{section}.{key} = {number} does not divide over {devices} devices: it must be a multiple of {devices}"
            )));
        }
        let lanes = self.training_loop.lanes() / devices;
        let rollout = RolloutShape { lanes, unroll: self.training_loop.unroll() };
        let Some(agent) = registry.agent(self.agent_kind()) else {
            return Ok(());
        };
        (agent.check_rollout)(&self.agent, rollout, devices).map_err(UsageError::new)
    }
}

#[cfg(test)]
mod tests {
    use crate::loading::{Overrides, load};
    use crate::registry::Registry;
    use crate::settings::Settings;

    fn set(experiment: &str, set: &str) -> Settings {
        let overrides = Overrides { set: vec![set.to_owned()], ..Overrides::default() };
        load(experiment, &overrides).unwrap()
    }

    #[test]
    fn lanes_without_room_for_a_window_in_the_replay_are_an_error_that_names_the_settings() {
        for (experiment, setting, window) in [
            ("catch-central-r2d2", "central.environments=1000000", "25 steps"),
            ("memory-r2d2", "agent.sequence_length=100000", "100001 steps"),
            ("pendulum-sac", "anakin.environments=4000000", "2 steps"),
        ] {
            let registry = Registry::built_in();
            let error =
                set(experiment, setting).check_division(1, &registry).unwrap_err().to_string();
            assert!(error.contains("agent.capacity = ") && error.contains(window), "{error}");
        }
    }

    #[test]
    fn every_built_in_experiment_trains_on_machines_of_all_sizes() {
        let registry = Registry::built_in();
        for one in registry.experiments() {
            let settings = registry.load(&one.name, &Overrides::default()).unwrap();
            if settings.training_loop.host().is_none() {
                continue;
            }
            for devices in 1..=64 {
                let mut settings = settings.clone();
                settings
                    .decide(&mut Vec::from_iter(0..devices), &registry)
                    .and_then(|_| settings.check_division(devices, &registry))
                    .unwrap_or_else(|error| panic!("{} on {devices}: {error}", one.name));
            }
        }
    }

    #[test]
    fn as_many_devices_learn_as_environments_divide_over() {
        let registry = Registry::built_in();
        let mut settings = set("cartpole-sebulba-ppo", "sebulba.environments=8");
        let mut named = settings.clone();
        let mut devices = vec![0, 1, 2, 3];
        let warnings = settings.decide(&mut devices, &registry).unwrap();
        assert_eq!(
            warnings,
            [
                "2 of 3 devices learn, because sebulba.environments = 8 and its minibatches do not divide over more: a multiple of \
                 3 uses all"
            ]
        );
        assert_eq!(settings.training_loop.host().unwrap().learners, [1, 2]);
        assert_eq!(devices, [0, 1, 2]);
        // Learners that are named are kept.
        named.training_loop.host_mut().unwrap().learners = vec![1, 2, 3];
        assert!(named.decide(&mut vec![0, 1, 2, 3], &registry).unwrap().is_empty());
        let error = named.check_division(4, &registry).unwrap_err().to_string();
        assert_eq!(
            error,
            "sebulba.environments = 8 does not divide over 3 devices: it must be a multiple of 3"
        );
    }

    #[test]
    fn what_does_not_divide() {
        let registry = Registry::built_in();
        let settings = load("cartpole-ppo", &Overrides::default()).unwrap();
        settings.check_division(2, &registry).unwrap();
        let text = settings.check_division(3, &registry).unwrap_err().to_string();
        assert!(text.contains("= 4 does not divide over 3 devices"), "{text}");
        let settings = set("cartpole-ppo", "agent.minibatches=1000");
        let text = settings.check_division(1, &registry).unwrap_err().to_string();
        assert!(text.contains("512 steps per device"), "{text}");
        let settings = set("memory-ppo", "agent.minibatches=128");
        let text = settings.check_division(1, &registry).unwrap_err().to_string();
        assert!(text.contains("64 environments per device do not divide"), "{text}");
    }
}
