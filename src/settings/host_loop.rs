//! What `[sebulba]` and `[seed]` share: loops with environments on the host, and devices that act and devices that learn.

use super::devices::up_to;
use super::problems::Problems;
use super::{ReplayMemory, SebulbaSettings, SeedSettings, Settings, UsageError};

/// The parts of `[sebulba]` or `[seed]` that both have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLoop<'a> {
    /// Name of the table.
    pub section: &'static str,
    /// The setting that names the devices that act.
    pub role: &'static str,
    /// Devices that act.
    pub acting: &'a [usize],
    /// Devices that learn.
    pub learners: &'a [usize],
    /// Lanes that the learner devices divide: those of an actor thread, or of an inference device.
    pub environments: usize,
    /// Lanes in all; of one device that acts before devices are picked.
    pub all_environments: usize,
    /// Environments that step together.
    pub batch: usize,
    /// Steps of each lane in an iteration.
    pub unroll: usize,
    /// Iterations between two reports.
    pub iterations_per_call: usize,
    /// Seconds without progress after which the run is given up.
    pub patience: usize,
    /// The memory that has the replay of an agent that learns from one.
    pub replay: ReplayMemory,
    replay_folder: &'a str,
}

impl Settings {
    /// `[sebulba]` or `[seed]`, if the experiment has one of them.
    #[must_use]
    pub fn host_loop(&self) -> Option<HostLoop<'_>> {
        let sebulba = self.sebulba.as_ref().map(SebulbaSettings::host_loop);
        sebulba.or(self.seed.as_ref().map(SeedSettings::host_loop))
    }

    /// Picks the devices that act and learn in a loop with environments on the host. Returns a warning if a device does both.
    pub(super) fn decide_roles(&mut self, devices: &[usize]) -> Result<Option<String>, UsageError> {
        match (&mut self.sebulba, &mut self.seed) {
            (Some(SebulbaSettings { actors, learners, .. }), _) => {
                decide(("actors", actors), learners, devices)
            }
            (None, Some(SeedSettings { inference, learners, .. })) => {
                decide(("inference", inference), learners, devices)
            }
            (None, None) => Ok(None),
        }
    }

    /// Keeps the first so many learner devices.
    pub(super) fn keep_learners(&mut self, most: usize) {
        let sebulba = self.sebulba.as_mut().map(|sebulba| &mut sebulba.learners);
        if let Some(learners) = sebulba.or(self.seed.as_mut().map(|seed| &mut seed.learners)) {
            learners.truncate(most);
        }
    }
}

impl SebulbaSettings {
    fn host_loop(&self) -> HostLoop<'_> {
        HostLoop {
            section: "sebulba",
            role: "actors",
            acting: &self.actors,
            learners: &self.learners,
            environments: self.environments,
            all_environments: (self.actors.len().max(1))
                .saturating_mul(self.threads)
                .saturating_mul(self.environments),
            batch: self.environments,
            unroll: self.unroll,
            iterations_per_call: self.iterations_per_call,
            patience: self.patience,
            replay: self.replay,
            replay_folder: &self.replay_folder,
        }
    }
}

impl SeedSettings {
    fn host_loop(&self) -> HostLoop<'_> {
        HostLoop {
            section: "seed",
            role: "inference",
            acting: &self.inference,
            learners: &self.learners,
            environments: self.environments,
            all_environments: self.inference.len().max(1).saturating_mul(self.environments),
            batch: self.environments_of_worker(),
            unroll: self.unroll,
            iterations_per_call: self.iterations_per_call,
            patience: self.patience,
            replay: self.replay,
            replay_folder: &self.replay_folder,
        }
    }
}

impl HostLoop<'_> {
    /// Least number of devices of a machine that has all that are named; 0 if none is.
    #[must_use]
    pub fn devices_named(&self) -> usize {
        up_to(self.acting.iter().chain(self.learners))
    }

    /// Checks that a machine of so many devices has those that are named.
    ///
    /// # Errors
    /// A device that the machine does not have.
    pub fn check_named(&self, devices: usize, machine: &str) -> Result<(), UsageError> {
        let (named, HostLoop { section, role, .. }) = (self.devices_named(), self);
        if named <= devices {
            return Ok(());
        }
        Err(UsageError::new(format!(
            "{section}.{role} and {section}.learners name device {}, and {machine} has {devices}: 0 to {}",
            named - 1,
            devices.saturating_sub(1)
        )))
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        let section = self.section;
        for (role, named) in [(self.role, self.acting), ("learners", self.learners)] {
            let twice = |position: usize| named[..position].contains(&named[position]);
            if let Some(position) = (0..named.len()).find(|&position| twice(position)) {
                problems.add(format!("{section}.{role} names device {} twice", named[position]));
            }
        }
        if self.replay == ReplayMemory::Device && !self.replay_folder.is_empty() {
            problems.add(format!(
                "{section}.replay_folder is `{}` and {section}.replay is device: a folder is for {section}.replay = \"host\"",
                self.replay_folder
            ));
        }
    }
}

/// Picks the devices that act and learn: those that are named, and by the rule if none is. `devices` are those of the run.
/// Returns a warning if a device does both.
fn decide(
    (role, acting): (&str, &mut Vec<usize>),
    learners: &mut Vec<usize>,
    devices: &[usize],
) -> Result<Option<String>, UsageError> {
    let others = |named: &[usize]| -> Vec<usize> {
        let free = devices.iter().filter(|device| !named.contains(device));
        free.copied().collect()
    };
    match (acting.is_empty(), learners.is_empty()) {
        (true, true) => {
            let quarter = (devices.len() / 4).max(1).min(devices.len());
            *acting = devices[..quarter].to_vec();
            *learners = others(acting);
            if learners.is_empty() {
                learners.clone_from(acting);
            }
        }
        (false, true) => *learners = others(acting),
        (true, false) => *acting = others(learners),
        (false, false) => {}
    }
    for (role, named) in [("learners", &learners), (role, &acting)] {
        if named.is_empty() {
            let flag = if role == "inference" { "actors" } else { role };
            return Err(UsageError::new(format!(
                "no device is left for the {role}: name them with --{flag}, or more devices with --devices"
            )));
        }
    }
    let both: Vec<String> = (acting.iter())
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

    fn decide_for(
        settings: &mut SebulbaSettings,
        devices: &[usize],
    ) -> Result<Option<String>, UsageError> {
        let SebulbaSettings { actors, learners, .. } = settings;
        decide(("actors", actors), learners, devices)
    }

    fn decided(actors: &[usize], learners: &[usize], devices: &[usize]) -> SebulbaSettings {
        let mut settings = SebulbaSettings {
            actors: actors.to_vec(),
            learners: learners.to_vec(),
            ..SebulbaSettings::default()
        };
        assert_eq!(decide_for(&mut settings, devices).unwrap(), None);
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
        assert_eq!(
            (settings.host_loop().devices_named(), &settings.learners[..]),
            (8, &[6, 7][..])
        );
    }

    #[test]
    fn devices_that_a_machine_does_not_have_are_an_error() {
        let settings = SebulbaSettings { learners: vec![3, 8], ..SebulbaSettings::default() };
        let error = settings.host_loop().check_named(8, "tpu:v5e:2x4").unwrap_err();
        assert_eq!(
            error.to_string(),
            "sebulba.actors and sebulba.learners name device 8, and tpu:v5e:2x4 has 8: 0 to 7"
        );
        settings.host_loop().check_named(9, "nine").unwrap();
        let settings = decided(&[], &[3, 8], &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(settings.actors, [0, 1, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn one_device_does_both_with_a_warning() {
        let mut settings = SebulbaSettings::default();
        let warning = decide_for(&mut settings, &[0]).unwrap();
        assert_eq!((&settings.actors[..], &settings.learners[..]), (&[0][..], &[0][..]));
        assert!(warning.unwrap().contains("device 0 both acts and learns"));
        let mut named =
            SebulbaSettings { actors: vec![0], learners: vec![0, 1], ..SebulbaSettings::default() };
        let warning = decide_for(&mut named, &[0, 1]).unwrap().unwrap();
        assert!(warning.contains("device 0 both acts and learns"));
        settings.learners = Vec::new();
        let error = decide_for(&mut settings, &[0]).unwrap_err().to_string();
        assert!(error.contains("no device is left for the learners"), "{error}");
    }
}
