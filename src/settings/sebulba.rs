//! `[sebulba]`: the shape of a run whose actors and learners are on different devices. An experiment that has it has no
//! `[anakin]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UsageError;
use super::devices::up_to;
use super::problems::Problems;

/// The loop whose actors and learners are on different devices, with environments on the host.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct SebulbaSettings {
    /// Devices that act, by index. Empty: the first quarter of `train.devices`, at least one.
    pub actors: Vec<usize>,
    /// Devices that learn, by index. Empty: those of `train.devices` that do not act, as many as the lanes divide over.
    pub learners: Vec<usize>,
    /// Actor threads on each actor device.
    #[schemars(range(min = 1))]
    pub threads: usize,
    /// Lanes of each actor thread.
    #[schemars(range(min = 1))]
    pub environments: usize,
    /// Steps of each lane in an iteration.
    #[schemars(range(min = 1))]
    pub unroll: usize,
    /// The rule by which actors take new parameters.
    pub schedule: Schedule,
    /// Iterations by which the parameters of the deterministic schedule are behind.
    pub lag: usize,
    /// Rollouts of each actor thread that may wait for the learner.
    #[schemars(range(min = 1))]
    pub queue: usize,
    /// The memory that has the replay of an agent that learns from one.
    pub replay: ReplayMemory,
    /// The folder whose disk has a replay on the host. Empty: the run directory.
    pub replay_folder: String,
    /// Iterations between two reports.
    #[schemars(range(min = 1))]
    pub iterations_per_call: usize,
    /// Seconds without progress in any thread after which the run is given up.
    #[schemars(range(min = 1))]
    pub patience: usize,
}

/// Rules by which actors take new parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Every rollout is acted with the parameters of a fixed number of iterations before: runs repeat to the bit.
    #[default]
    Deterministic,
    /// Every rollout is acted with the newest parameters.
    FreeRunning,
}

/// Memories that a replay may be in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayMemory {
    /// The learner devices' memory: each has the steps of its own lanes.
    #[default]
    Device,
    /// The disk of the host, and as much of its memory as is free. The learner devices have the priorities; an iteration learns from
    /// windows that were drawn two iterations before.
    Host,
}

impl Default for SebulbaSettings {
    fn default() -> Self {
        SebulbaSettings {
            actors: Vec::new(),
            learners: Vec::new(),
            threads: 2,
            environments: 32,
            unroll: 32,
            schedule: Schedule::default(),
            lag: 1,
            queue: 2,
            replay: ReplayMemory::default(),
            replay_folder: String::new(),
            iterations_per_call: 16,
            patience: 120,
        }
    }
}

impl SebulbaSettings {
    /// Lanes in all; on one actor device before devices are picked.
    #[must_use]
    pub fn all_environments(&self) -> usize {
        (self.actors.len().max(1)).saturating_mul(self.threads).saturating_mul(self.environments)
    }

    /// Least number of devices of a machine that has all that are named; 0 if none is.
    #[must_use]
    pub fn devices_named(&self) -> usize {
        up_to(self.actors.iter().chain(&self.learners))
    }

    /// Picks the devices that act and learn: those that are named, and by the rule if none is. `devices` are those of the
    /// run. Returns a warning if a device does both.
    ///
    /// # Errors
    /// Only actors or only learners are named, and no device is left for the others.
    pub fn decide(&mut self, devices: &[usize]) -> Result<Option<String>, UsageError> {
        let others = |named: &[usize]| -> Vec<usize> {
            let free = devices.iter().filter(|device| !named.contains(device));
            free.copied().collect()
        };
        match (self.actors.is_empty(), self.learners.is_empty()) {
            (true, true) => {
                let quarter = (devices.len() / 4).max(1).min(devices.len());
                self.actors = devices[..quarter].to_vec();
                self.learners = others(&self.actors);
                if self.learners.is_empty() {
                    self.learners = self.actors.clone();
                }
            }
            (false, true) => self.learners = others(&self.actors),
            (true, false) => self.actors = others(&self.learners),
            (false, false) => {}
        }
        for (role, named) in [("learners", &self.learners), ("actors", &self.actors)] {
            if named.is_empty() {
                return Err(UsageError::new(format!(
                    "no device is left for the {role}: name them with --{role}, or more devices with --devices"
                )));
            }
        }
        let both: Vec<String> = (self.actors.iter())
            .filter(|device| self.learners.contains(device))
            .map(ToString::to_string)
            .collect();
        Ok((!both.is_empty()).then(|| {
            format!(
                "device {} both acts and learns: acting waits for learning there",
                both.join(", ")
            )
        }))
    }

    /// Checks that a machine of so many devices has those that are named.
    ///
    /// # Errors
    /// A device that the machine does not have.
    pub fn check_named(&self, devices: usize, machine: &str) -> Result<(), UsageError> {
        let named = self.devices_named();
        if named <= devices {
            return Ok(());
        }
        Err(UsageError::new(format!(
            "sebulba.actors and sebulba.learners name device {}, and {machine} has {devices}: 0 to {}",
            named - 1,
            devices.saturating_sub(1)
        )))
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        for (role, named) in [("actors", &self.actors), ("learners", &self.learners)] {
            let twice = |position: usize| named[..position].contains(&named[position]);
            if let Some(position) = (0..named.len()).find(|&position| twice(position)) {
                problems.add(format!("sebulba.{role} names device {} twice", named[position]));
            }
        }
        if self.replay == ReplayMemory::Device && !self.replay_folder.is_empty() {
            problems.add(format!(
                "sebulba.replay_folder is `{}` and sebulba.replay is device: a folder is for sebulba.replay = \"host\"",
                self.replay_folder
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(actors: &[usize], learners: &[usize], devices: &[usize]) -> SebulbaSettings {
        let mut settings = SebulbaSettings {
            actors: actors.to_vec(),
            learners: learners.to_vec(),
            ..SebulbaSettings::default()
        };
        assert_eq!(settings.decide(devices).unwrap(), None);
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
        // In the order in which they are named.
        let settings = decided(&[3, 0], &[2, 1], &[0]);
        assert_eq!((&settings.actors[..], &settings.learners[..]), (&[3, 0][..], &[2, 1][..]));
        let settings = decided(&[5], &[6, 7], &[0]);
        assert_eq!((settings.devices_named(), &settings.learners[..]), (8, &[6, 7][..]));
    }

    #[test]
    fn devices_that_a_machine_does_not_have_are_an_error() {
        let settings = SebulbaSettings { learners: vec![3, 8], ..SebulbaSettings::default() };
        let error = settings.check_named(8, "tpu:v5e:2x4").unwrap_err();
        assert_eq!(
            error.to_string(),
            "sebulba.actors and sebulba.learners name device 8, and tpu:v5e:2x4 has 8: 0 to 7"
        );
        settings.check_named(9, "nine").unwrap();
        let settings = decided(&[], &[3, 8], &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(settings.actors, [0, 1, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn one_device_does_both_with_a_warning() {
        let mut settings = SebulbaSettings::default();
        let warning = settings.decide(&[0]).unwrap();
        assert_eq!((&settings.actors[..], &settings.learners[..]), (&[0][..], &[0][..]));
        assert!(warning.unwrap().contains("device 0 both acts and learns"));
        let mut named =
            SebulbaSettings { actors: vec![0], learners: vec![0, 1], ..SebulbaSettings::default() };
        let warning = named.decide(&[0, 1]).unwrap().unwrap();
        assert!(warning.contains("device 0 both acts and learns"));
        settings.learners = Vec::new();
        let error = settings.decide(&[0]).unwrap_err().to_string();
        assert!(error.contains("no device is left for the learners"), "{error}");
    }
}
