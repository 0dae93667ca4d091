//! Agents that learn by a rule in a file: `agent.kind = "learned"`.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use podracer_envs::Space;
use podracer_rl::Number;
use podracer_rl::agents::LearnedAgent;
use podracer_rl::learn::{
    AgentSettings, AnyAgent, DescribesOptimizer, OptimizerDefaults, OptimizerKind,
    OptimizerSettings, Task,
};
use podracer_rl::meta::{KeptRule, LpgRule, LpgShape, Rule, UpdateRule};
use podracer_rl::net::Networks;
use podracer_runtime::{Array, Host};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{UsageError, parameters};

/// An agent that learns by a learned rule: LPG (Oh et al. 2020).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct LearnedSettings {
    /// File of the rule, safetensors.
    pub rule: Option<PathBuf>,
    /// The optimizer of policy and predictions, with separate states.
    #[serde(flatten)]
    pub optimizer: OptimizerSettings<LearnedSettings>,
    /// Learning rate of the predictions. None: `learning_rate`.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub prediction_learning_rate: Option<Number>,
    /// Weight of the loss of the predictions.
    #[schemars(range(min = 0.0))]
    pub prediction_cost: Number,
    /// The networks of policy and predictions; tables if observations are integers.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for LearnedSettings {
    fn default() -> Self {
        LearnedSettings {
            rule: None,
            optimizer: OptimizerSettings::default(),
            prediction_learning_rate: None,
            prediction_cost: 0.5.into(),
            networks: Networks::default(),
        }
    }
}

impl OptimizerDefaults for LearnedSettings {
    const EPSILON_IN_ROOT: bool = false;
    const ADAM_EPSILON_IN_ROOT: f64 = 1e-12;

    fn optimizer() -> OptimizerSettings<Self> {
        OptimizerSettings {
            optimizer: OptimizerKind::Adam,
            learning_rate: 1e-3.into(),
            anneal_learning_rate: false,
            epsilon: 1e-5.into(),
            rmsprop_decay: 0.99.into(),
            max_gradient_norm: 0.5.into(),
            agent: PhantomData,
        }
    }
}

/// An agent described by settings.
pub(crate) type Learner =
    LearnedAgent<<OptimizerSettings<LearnedSettings> as DescribesOptimizer>::Optimizer>;

impl LearnedSettings {
    /// The agent for a task that learns by this rule; `factor` multiplies its learning rates.
    ///
    /// # Errors
    /// Returns settings that do not fit the task.
    pub(crate) fn learner(
        &self,
        task: &Task,
        rule: Rule<LpgRule>,
        factor: Number,
    ) -> Result<Learner, String> {
        let Space::Discrete { n: actions, .. } = task.action else {
            return Err("agent.kind = learned: a rule of LPG is for discrete actions".to_owned());
        };
        self.networks.check(&task.observation)?;
        let optimizer = |rate: Number| {
            let described =
                OptimizerSettings { learning_rate: rate * factor, ..self.optimizer.clone() };
            described.optimizer(described.schedule(Some(task.iterations)))
        };
        let rate = self.optimizer.learning_rate;
        Ok(LearnedAgent {
            observation: task.observation.clone(),
            actions,
            networks: self.networks.clone(),
            rule,
            policy_optimizer: optimizer(rate),
            prediction_optimizer: optimizer(self.prediction_learning_rate.unwrap_or(rate)),
            prediction_cost: self.prediction_cost,
        })
    }
}

impl AgentSettings for LearnedSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        let Some(path) = &self.rule else {
            return Err(
                "agent.rule is missing: the file of a rule that the agent learns by".to_owned()
            );
        };
        let rule = read_rule(path).map_err(|error| format!("agent.rule: {error}"))?;
        Ok(AnyAgent::new(self.learner(task, Rule::Kept(rule), 1.0.into())?))
    }
}

/// The prefix of a rule's arrays in the state of its training
/// ([`MetaState`](podracer_rl::meta::MetaState)).
const TRAINED: &str = "rule.params.";

/// Writes the rule among the arrays of a training's state as safetensors, atomically.
///
/// # Errors
/// An error if there is no rule, or if the file cannot be written.
pub fn save_rule(state: &[(String, Array)], path: &Path) -> anyhow::Result<()> {
    let of_rule = state.iter().filter_map(|(name, array)| {
        let (_, name) = name.split_once(TRAINED)?;
        Some((name.to_owned(), array.clone()))
    });
    let arrays: Vec<_> = of_rule.collect();
    rule_of(arrays.clone()).map_err(UsageError::new)?;
    parameters::save(&arrays, path)
}

/// Reads a rule that [`save_rule`] wrote.
///
/// # Errors
/// [`UsageError`] if the file cannot be read, is truncated, or has no LPG rule.
pub fn read_rule(path: &Path) -> anyhow::Result<KeptRule<LpgRule>> {
    let arrays = parameters::read(path)?;
    let not_finite = parameters::not_finite(&arrays);
    let rule = not_finite.map_or_else(|| rule_of(arrays), Err);
    let problem =
        |problem| UsageError::new(format!("`{}` is no rule of LPG: {problem}", path.display()));
    Ok(rule.map_err(problem)?)
}

/// The rule from these arrays, by name.
fn rule_of(arrays: Vec<(String, Array)>) -> Result<KeptRule<LpgRule>, String> {
    let extent = |name: &str, axis: usize| {
        let array = arrays.iter().find(|(known, _)| known == name);
        let extent = array.and_then(|(_, array)| array.ty().shape.get(axis).copied());
        extent.ok_or_else(|| format!("it has no array `{name}`"))
    };
    let shape = LpgShape {
        predictions: extent("prediction.bias", 0)?,
        embedding: extent("embedding.layers[0].bias", 0)?,
        units: extent("core.hidden", 0)?,
    };
    let spec = LpgRule::spec_of(&shape);
    let leaves = Host::from_named(&spec, arrays).map_err(|error| error.to_string())?.into_leaves();
    KeptRule::new(shape, leaves).ok_or_else(|| "its arrays do not fit each other".to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use podracer_dsl::prelude::{DType, TensorType, trace};

    use super::*;

    fn arrays(shape: &LpgShape) -> Vec<(String, Array)> {
        let leaves = LpgRule::spec_of(shape).leaves().into_iter();
        leaves.map(|(path, ty)| (format!("[0].rule.params.{path}"), Array::zeros(ty))).collect()
    }

    const SHAPE: LpgShape = LpgShape { predictions: 4, embedding: 3, units: 5 };

    #[test]
    fn a_rule_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rule.safetensors");
        save_rule(&arrays(&SHAPE), &path).unwrap();
        let rule = Rule::Kept(read_rule(&path).unwrap());
        assert_eq!(rule.shape(), SHAPE);
        let traced = trace((), |()| rule.tensors()).unwrap();
        assert_eq!(traced.results().types(), LpgRule::spec_of(&SHAPE).types());
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rule.safetensors");
        let problem = |path: &Path| format!("{:#}", read_rule(path).unwrap_err());
        assert!(problem(&path).contains("cannot read parameters from"), "{}", problem(&path));
        assert!(save_rule(&[], &path).is_err());
        assert!(!path.exists());

        save_rule(&arrays(&SHAPE), &path).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(problem(&path).contains("cannot read parameters from"), "{}", problem(&path));

        let mut others = arrays(&SHAPE);
        others.iter_mut().for_each(|(name, _)| *name = name.replace("[0].rule.params.", ""));
        let at = |name: &str| arrays(&SHAPE).iter().position(|(known, _)| known.ends_with(name));
        others[at("core.bias").unwrap()].1 = Array::zeros(TensorType::new(DType::F32, [7]));
        parameters::save(&others, &path).unwrap();
        assert!(
            problem(&path).contains("`core.bias` must be f32[20] and is f32[7]"),
            "{}",
            problem(&path)
        );

        others.retain(|(name, _)| name != "core.hidden");
        parameters::save(&others, &path).unwrap();
        assert!(problem(&path).contains("it has no array `core.hidden`"), "{}", problem(&path));

        let mut wild = arrays(&SHAPE);
        let nan = Array::floats(DType::F32, [4], &[f64::NAN; 4]);
        wild[at("prediction.bias").unwrap()].1 = nan;
        save_rule(&wild, &path).unwrap();
        assert!(problem(&path).contains("4 of"), "{}", problem(&path));
    }
}
