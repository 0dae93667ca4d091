//! Agents that learn by a rule of DiscoRL in a file: `agent.kind = "disco"`.

use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use npyz::npz::array_name_from_file_name;
use npyz::{NpyFile, Order};
use podracer_envs::Space;
use podracer_plugins::read_regular;
use podracer_rl::Number;
use podracer_rl::agents::DiscoAgent;
use podracer_rl::learn::{AgentSettings, AnyAgent, Task};
use podracer_rl::meta::{DiscoRule, KeptRule, Rule};
use podracer_rl::net::Networks;
use podracer_rl::nn::Activation;
use podracer_rl::optim::{adam, chain, clip, flatten, sgd};
use podracer_runtime::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zip::ZipArchive;

use crate::{UsageError, parameters};

/// An agent that learns by a rule of DiscoRL, such as Disco103 (Oh et al. 2025), with the authors' settings.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct DiscoSettings {
    /// File of the rule: `disco_103.npz` as its authors published it, or a file with arrays of the
    /// same names.
    pub rule: Option<PathBuf>,
    /// Adam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// Greatest change of a parameter per step, in units of the learning rate.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_update: Number,
    /// Discount of the values that the rule reads.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of the returns that the rule reads.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Weight of the loss of the action values.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// Step size of an update of the target network towards the network.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub target_step: Number,
    /// Units of the network's model of actions, and of the hidden layer of each head after it.
    #[schemars(range(min = 1, max = 65_536))]
    pub model_units: usize,
    /// Torso, and hidden layers after it.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for DiscoSettings {
    fn default() -> Self {
        DiscoSettings {
            rule: None,
            learning_rate: 3e-4.into(),
            max_update: 1.0.into(),
            discount: 0.997.into(),
            lambda: 0.95.into(),
            value_cost: 0.2.into(),
            target_step: 0.1.into(),
            model_units: 128,
            networks: Networks {
                hidden: vec![512, 512],
                activation: Activation::Relu,
                ..Networks::default()
            },
        }
    }
}

impl AgentSettings for DiscoSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        let Some(path) = &self.rule else {
            return Err(
                "agent.rule is missing: the file of a rule of DiscoRL, such as disco_103.npz"
                    .to_owned(),
            );
        };
        let Space::Discrete { n: actions, .. } = task.action else {
            return Err("agent.kind = disco: a rule of DiscoRL is for discrete actions".to_owned());
        };
        self.networks.check(&task.observation)?;
        let rule = read_rule(path).map_err(|error| format!("agent.rule: {error}"))?;
        // Adam's step with a positive sign, clipped to a multiple of the learning rate, and then
        // with a negative sign.
        let bounded = chain(adam(-1.0), clip(self.max_update));
        Ok(AnyAgent::new(DiscoAgent {
            observation: task.observation.clone(),
            actions,
            networks: self.networks.clone(),
            model_units: self.model_units,
            rule: Rule::Kept(rule),
            optimizer: flatten(chain(bounded, sgd(self.learning_rate))),
            discount: self.discount,
            lambda: self.lambda,
            value_cost: self.value_cost,
            target_step: self.target_step,
        }))
    }
}

/// Greatest length of a rule's file in bytes.
const LARGEST: u64 = 1 << 30;

/// Reads a rule with the array names of the authors' published file.
///
/// # Errors
/// [`UsageError`] if the file cannot be read, is truncated, or has no such rule.
pub fn read_rule(path: &Path) -> anyhow::Result<KeptRule<DiscoRule>> {
    let problem = |problem: String| {
        UsageError::new(format!("`{}` is no rule of DiscoRL: {problem}", path.display()))
    };
    let arrays = read_arrays(path).map_err(|error| problem(error.to_string()))?;
    let named: Vec<(String, Array)> = arrays.clone().into_iter().collect();
    if let Some(not_finite) = parameters::not_finite(&named) {
        return Err(problem(not_finite).into());
    }
    Ok(KeptRule::from_haiku(&arrays).map_err(problem)?)
}

/// The arrays of an archive of NumPy, by name; they are f32.
fn read_arrays(path: &Path) -> io::Result<BTreeMap<String, Array>> {
    let bytes = read_regular(path, LARGEST)?;
    let mut archive = ZipArchive::new(Cursor::new(bytes))?;
    let mut arrays = BTreeMap::new();
    for i in 0..archive.len() {
        let file = archive.by_index(i)?;
        let Some(name) = array_name_from_file_name(&file.name()?).map(str::to_owned) else {
            continue;
        };
        let array = read_array(file)
            .map_err(|error| io::Error::new(error.kind(), format!("array `{name}`: {error}")))?;
        arrays.insert(name, array);
    }
    Ok(arrays)
}

fn read_array(file: impl io::Read) -> io::Result<Array> {
    let invalid = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem);
    let file = NpyFile::new(file)?;
    if file.order() != Order::C {
        return Err(invalid("it is stored by columns"));
    }
    let shape: Vec<usize> = file.shape().iter().map(|&extent| extent as usize).collect();
    let numbers: Vec<f32> = file.into_vec()?;
    let array = Array::from_slice(shape, &numbers);
    array.map_err(|error| invalid(&error.to_string()))
}
