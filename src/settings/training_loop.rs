//! The loop of an experiment, one of `[anakin]`, `[sebulba]`, `[central]` and `[meta]`.

use podracer_runtime::{AnakinSettings, CentralSettings, HostLoopSettings, SebulbaSettings};
use serde::{Deserialize, Serialize};

use super::devices::up_to;
use super::problems::Problems;
use super::{MetaLoopSettings, ReplayMemory, UsageError};

/// The loop of an experiment, by the name of its table.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainingLoop {
    /// Agent and environment on the same devices, in one program.
    Anakin(AnakinSettings),
    /// Actors and learners on different devices, with environments on the host.
    Sebulba(SebulbaSettings),
    /// Central inference: workers step environments and know no model.
    Central(CentralSettings),
    /// Agents in separate tasks: an update rule is trained through their updates, in one program.
    Meta(Box<MetaLoopSettings>),
}

impl TrainingLoop {
    /// The name of the loop's table.
    #[must_use]
    pub fn section(&self) -> &'static str {
        match self {
            TrainingLoop::Anakin(_) => "anakin",
            TrainingLoop::Sebulba(_) => "sebulba",
            TrainingLoop::Central(_) => "central",
            TrainingLoop::Meta(_) => "meta",
        }
    }

    /// The settings that both loops with environments on the host share; `None` for single-program
    /// loops.
    #[must_use]
    pub fn host(&self) -> Option<&HostLoopSettings> {
        match self {
            TrainingLoop::Anakin(_) | TrainingLoop::Meta(_) => None,
            TrainingLoop::Sebulba(sebulba) => Some(&sebulba.host),
            TrainingLoop::Central(central) => Some(&central.host),
        }
    }

    pub(crate) fn host_mut(&mut self) -> Option<&mut HostLoopSettings> {
        match self {
            TrainingLoop::Anakin(_) | TrainingLoop::Meta(_) => None,
            TrainingLoop::Sebulba(sebulba) => Some(&mut sebulba.host),
            TrainingLoop::Central(central) => Some(&mut central.host),
        }
    }

    /// The setting with the number that the learner devices divide, and the number: lanes, or the
    /// agents of `[meta]`.
    #[must_use]
    pub fn divided(&self) -> (&'static str, usize) {
        match self {
            TrainingLoop::Meta(meta) => ("agents", meta.agents),
            other => ("environments", other.environments()),
        }
    }

    /// Number of lanes that are together: all lanes in Anakin, or the lanes of an actor thread, of
    /// an inference device, or of an agent of `[meta]`.
    #[must_use]
    pub fn environments(&self) -> usize {
        match self {
            TrainingLoop::Anakin(anakin) => anakin.environments,
            TrainingLoop::Meta(meta) => meta.environments,
            TrainingLoop::Sebulba(sebulba) => sebulba.environments,
            TrainingLoop::Central(central) => central.environments,
        }
    }

    /// Number of lanes in total; before devices are picked, of one acting device.
    #[must_use]
    pub fn lanes(&self) -> usize {
        match self {
            TrainingLoop::Anakin(anakin) => anakin.environments,
            TrainingLoop::Meta(meta) => meta.agents.saturating_mul(meta.environments),
            TrainingLoop::Sebulba(sebulba) => {
                sebulba.actor_threads().saturating_mul(sebulba.environments)
            }
            TrainingLoop::Central(central) => {
                central.host.acting().len().saturating_mul(central.environments)
            }
        }
    }

    /// Number of environments that step together, in an actor thread or in a worker of the process.
    #[must_use]
    pub fn batch(&self) -> usize {
        match self {
            TrainingLoop::Central(central) => central.environments / central.workers.max(1),
            other => other.environments(),
        }
    }

    /// Number of steps of each lane per iteration.
    #[must_use]
    pub fn unroll(&self) -> usize {
        match self {
            TrainingLoop::Anakin(anakin) => anakin.unroll,
            TrainingLoop::Meta(meta) => meta.unroll,
            TrainingLoop::Sebulba(SebulbaSettings { host, .. })
            | TrainingLoop::Central(CentralSettings { host, .. }) => host.unroll,
        }
    }

    /// Number of rollouts of each lane per iteration: in `[meta]` one per update of an agent, and
    /// one for the rule's loss.
    #[must_use]
    pub fn rollouts(&self) -> usize {
        match self {
            TrainingLoop::Meta(meta) => meta.meta.inner_updates.saturating_add(1),
            _ => 1,
        }
    }

    /// Number of iterations per call.
    #[must_use]
    pub fn iterations_per_call(&self) -> usize {
        match self {
            TrainingLoop::Anakin(anakin) => anakin.iterations_per_call,
            TrainingLoop::Meta(meta) => meta.iterations_per_call,
            TrainingLoop::Sebulba(SebulbaSettings { host, .. })
            | TrainingLoop::Central(CentralSettings { host, .. }) => host.iterations_per_call,
        }
    }

    /// Least number of devices of a machine that has all named devices; 0 if none is named.
    #[must_use]
    pub fn devices_named(&self) -> usize {
        self.host().map_or(0, |host| up_to(host.actors.iter().chain(&host.learners)))
    }

    /// Checks that a machine with `devices` devices has the named devices.
    ///
    /// # Errors
    /// Returns a device that the machine does not have.
    pub fn check_named(&self, devices: usize, machine: &str) -> Result<(), UsageError> {
        let (named, section) = (self.devices_named(), self.section());
        if named <= devices {
            return Ok(());
        }
        Err(UsageError::new(format!(
            "{section}.actors and {section}.learners name device {}, and {machine} has {devices}: 0 to {}",
            named - 1,
            devices.saturating_sub(1)
        )))
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        let section = self.section();
        if let Some(host) = self.host() {
            for (role, named) in [("actors", &host.actors), ("learners", &host.learners)] {
                let twice = |position: usize| named[..position].contains(&named[position]);
                if let Some(position) = (0..named.len()).find(|&position| twice(position)) {
                    problems
                        .add(format!("{section}.{role} names device {} twice", named[position]));
                }
            }
            if let (ReplayMemory::Device, Some(folder)) = (host.replay, &host.replay_folder) {
                problems.add(format!(
                    "{section}.replay_folder is `{}` and {section}.replay is device: a folder is for {section}.replay = \"host\"",
                    folder.display()
                ));
            }
        }
        if let TrainingLoop::Meta(settings) = self
            && let [least, most] = settings.meta.lifetime
            && least > most
        {
            problems.add(format!("meta.lifetime is [{least}, {most}]: the least must come first"));
        }
        if let TrainingLoop::Central(central) = self {
            let CentralSettings { environments, workers, capacity, .. } = *central;
            if workers == 0 || !environments.is_multiple_of(workers) {
                problems.add(format!(
                    "central.environments = {environments} does not divide over central.workers = {workers}: it must be a multiple"
                ));
            }
            if let Some(capacity) = capacity.filter(|&capacity| capacity > environments) {
                problems.add(format!(
                    "central.capacity is {capacity} and must be at most central.environments = {environments}: a device that acts has \
                     no more lanes"
                ));
            }
        }
    }
}

/// Picks the devices that act and learn: the named devices, or by the rule if none is named.
/// `devices` has the devices of the run. Returns a warning if a device does both.
pub(crate) fn decide(
    host: &mut HostLoopSettings,
    devices: &[usize],
) -> Result<Option<String>, UsageError> {
    let HostLoopSettings { actors, learners, .. } = host;
    let others = |named: &[usize]| -> Vec<usize> {
        let free = devices.iter().filter(|device| !named.contains(device));
        free.copied().collect()
    };
    match (actors.is_empty(), learners.is_empty()) {
        (true, true) => {
            let quarter = (devices.len() / 4).max(1).min(devices.len());
            *actors = devices[..quarter].to_vec();
            *learners = others(actors);
            if learners.is_empty() {
                learners.clone_from(actors);
            }
        }
        (false, true) => *learners = others(actors),
        (true, false) => *actors = others(learners),
        (false, false) => {}
    }
    for (role, named) in [("learners", &*learners), ("actors", &*actors)] {
        if named.is_empty() {
            return Err(UsageError::new(format!(
                "no device is left for the {role}: name them with --{role}, or more devices with --devices"
            )));
        }
    }
    let both: Vec<String> = (actors.iter())
        .filter(|device| learners.contains(device))
        .map(ToString::to_string)
        .collect();
    Ok((!both.is_empty()).then(|| {
        format!("device {} both acts and learns: acting waits for learning there", both.join(", "))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sebulba(host: HostLoopSettings) -> TrainingLoop {
        TrainingLoop::Sebulba(SebulbaSettings { host, ..SebulbaSettings::default() })
    }

    fn decided(actors: &[usize], learners: &[usize], devices: &[usize]) -> HostLoopSettings {
        let mut settings = HostLoopSettings {
            actors: actors.to_vec(),
            learners: learners.to_vec(),
            ..HostLoopSettings::default()
        };
        assert_eq!(decide(&mut settings, devices).unwrap(), None);
        settings
    }

    #[test]
    fn a_quarter_of_the_devices_acts() {
        for (devices, actors) in [(2, 1), (4, 1), (7, 1), (8, 2), (16, 4)] {
            let devices: Vec<usize> = (0..devices).collect();
            let settings = decided(&[], &[], &devices);
            assert_eq!(settings.actors, devices[..actors]);
            assert_eq!(settings.learners, devices[actors..]);
        }
    }

    #[test]
    fn devices_that_are_named_are_taken() {
        assert_eq!(decided(&[3], &[], &[0, 1, 3]).learners, [0, 1]);
        assert_eq!(decided(&[], &[0], &[0, 1]).actors, [1]);
        // In the order of the names.
        let settings = decided(&[3, 0], &[2, 1], &[0]);
        assert_eq!((&settings.actors[..], &settings.learners[..]), (&[3, 0][..], &[2, 1][..]));
        let settings = decided(&[5], &[6, 7], &[0]);
        assert_eq!(
            (sebulba(settings.clone()).devices_named(), &settings.learners[..]),
            (8, &[6, 7][..])
        );
    }

    #[test]
    fn devices_that_a_machine_does_not_have_are_an_error() {
        let settings = HostLoopSettings { learners: vec![3, 8], ..HostLoopSettings::default() };
        let error = sebulba(settings.clone()).check_named(8, "tpu:v5e:2x4").unwrap_err();
        assert_eq!(
            error.to_string(),
            "sebulba.actors and sebulba.learners name device 8, and tpu:v5e:2x4 has 8: 0 to 7"
        );
        sebulba(settings).check_named(9, "nine").unwrap();
        let settings = decided(&[], &[3, 8], &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(settings.actors, [0, 1, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn one_device_does_both_with_a_warning() {
        let mut settings = HostLoopSettings::default();
        let warning = decide(&mut settings, &[0]).unwrap();
        assert_eq!((&settings.actors[..], &settings.learners[..]), (&[0][..], &[0][..]));
        assert!(warning.unwrap().contains("device 0 both acts and learns"));
        let mut named = HostLoopSettings {
            actors: vec![0],
            learners: vec![0, 1],
            ..HostLoopSettings::default()
        };
        let warning = decide(&mut named, &[0, 1]).unwrap().unwrap();
        assert!(warning.contains("device 0 both acts and learns"));
        settings.learners = Vec::new();
        let error = decide(&mut settings, &[0]).unwrap_err().to_string();
        assert!(error.contains("no device is left for the learners"), "{error}");
    }
}
