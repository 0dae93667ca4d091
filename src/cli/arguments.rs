//! The arguments that several commands share.

use clap::Args;

use crate::loading::Overrides;
use crate::settings::Devices;

/// An experiment, and changes of its settings.
#[derive(Args, Debug)]
pub(super) struct ExperimentArguments {
    /// A built-in experiment (see `podracer list`) or the path of a TOML file
    pub(super) experiment: String,
    /// The devices: a number (`2`), `all`, or indices (`0,3`)
    #[arg(long, value_parser = Devices::parse, allow_negative_numbers = true)]
    pub(super) devices: Option<Devices>,
    /// Change a setting, such as agent.learning_rate=1e-3 [repeatable]
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
}

impl ExperimentArguments {
    /// The arguments of one run of a command that trains several runs: the shared arguments
    /// (`common`), without those for the folder.
    pub(super) fn again(
        &self,
        command: &str,
        common: &[String],
        (seed, seeds): (Option<u64>, usize),
    ) -> Vec<String> {
        let sets = self.set.iter().map(|set| format!("--set={set}"));
        let seed = seed.map(|seed| format!("--seed={seed}"));
        let first = [command.to_owned()].into_iter().chain(common.iter().cloned());
        first.chain(sets).chain(seed).chain([format!("--seeds={seeds}")]).collect()
    }

    /// The experiment as arguments of `train`, without `--set`.
    pub(super) fn common(&self, steps: Option<u64>) -> Vec<String> {
        let mut all = vec![self.experiment.clone()];
        if let Some(devices) = &self.devices {
            all.push(format!("--set=train.devices={}", toml::Value::from(devices.clone())));
        }
        all.extend(self.trust.then(|| "--trust".to_owned()));
        all.extend(steps.map(|steps| format!("--steps={steps}")));
        all
    }

    /// `--devices`, `--set` and `--trust`.
    pub(super) fn overrides(&self) -> Overrides {
        let &ExperimentArguments { ref devices, ref set, trust, .. } = self;
        Overrides { devices: devices.clone(), set: set.clone(), trust, ..Overrides::default() }
    }
}
