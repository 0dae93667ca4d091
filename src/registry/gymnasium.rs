//! Environments of the DSL with a twin in Gymnasium: `podracer eval --in gymnasium` plays in the twin.

use anyhow::Result;
use podracer_envs::host::HostEnvironment;
use toml::{Table, Value};

use super::Registry;
use crate::settings::UsageError;

/// Names of environments here and in Gymnasium. The settings have the names of Gymnasium's arguments,
/// except `time_limit`.
const TWINS: [(&str, &str); 16] = [
    ("cartpole", "CartPole-v1"),
    ("pendulum", "Pendulum-v1"),
    ("acrobot", "Acrobot-v1"),
    ("mountain-car", "MountainCar-v0"),
    ("mountain-car-continuous", "MountainCarContinuous-v0"),
    ("mujoco-half-cheetah", "HalfCheetah-v5"),
    ("mujoco-hopper", "Hopper-v5"),
    ("mujoco-walker2d", "Walker2d-v5"),
    ("mujoco-swimmer", "Swimmer-v5"),
    ("mujoco-reacher", "Reacher-v5"),
    ("mujoco-pusher", "Pusher-v5"),
    ("mujoco-inverted-pendulum", "InvertedPendulum-v5"),
    ("mujoco-inverted-double-pendulum", "InvertedDoublePendulum-v5"),
    ("mujoco-ant", "Ant-v5"),
    ("mujoco-humanoid", "Humanoid-v5"),
    ("mujoco-humanoid-standup", "HumanoidStandup-v5"),
];

/// The number that stands for "inf", which JSON does not have. No quantity of a simulation reaches it.
const INFINITY: f64 = 1e300;

impl Registry {
    /// A batch of Gymnasium's environments with the rules of an environment of the DSL, from its complete table
    /// `[environment]`.
    ///
    /// # Errors
    /// [`UsageError`] for an environment that Gymnasium does not have, or not with these settings; errors of the
    /// packages.
    pub(crate) fn in_gymnasium(
        &self,
        table: &Table,
        lanes: usize,
    ) -> Result<Box<dyn HostEnvironment>> {
        let twin = self.gymnasium_table(table).map_err(UsageError::new)?;
        let entry = self.environment("gymnasium").ok_or_else(|| {
            UsageError::new("this program has no environment `gymnasium`".to_owned())
        })?;
        (entry.batches)(&twin, lanes, 1)?.make()
    }

    /// The settings of `gymnasium` for an environment of the DSL.
    fn gymnasium_table(&self, table: &Table) -> Result<Table, String> {
        let name = table.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some((_, id)) = TWINS.iter().find(|(ours, _)| *ours == name) else {
            let names = TWINS.map(|(ours, _)| ours).join(", ");
            return Err(format!(
                "--in gymnasium: Gymnasium does not have `{name}`; it has {names}"
            ));
        };
        let schema = self.schema("environment", Some(name));
        let default = |key: &str| schema.and_then(|schema| schema.defaults.get(key));
        let changed =
            table.iter().filter(|(key, value)| *key != "name" && default(key) != Some(value));
        let mut kwargs = Table::new();
        for (key, value) in changed {
            let argument = if key == "time_limit" { "max_episode_steps" } else { key };
            kwargs.insert(argument.to_owned(), finite(value));
        }
        let mut twin =
            self.environment_table("gymnasium", &[]).map_err(|error| error.to_string())?;
        let packages = if name.starts_with("mujoco-") { "mujoco" } else { "gymnasium" };
        for (key, value) in [("id", Value::from(*id)), ("packages", packages.into())] {
            twin.insert(key.to_owned(), value);
        }
        twin.insert("kwargs".to_owned(), Value::Table(kwargs));
        Ok(twin)
    }
}

/// A setting with numbers in place of `"inf"` and `"-inf"`.
fn finite(value: &Value) -> Value {
    match value {
        Value::String(text) if text == "inf" => INFINITY.into(),
        Value::String(text) if text == "-inf" => (-INFINITY).into(),
        Value::Array(values) => Value::Array(values.iter().map(finite).collect()),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, sets: &[&str]) -> Result<Table, String> {
        let registry = Registry::built_in();
        let sets: Vec<String> = sets.iter().map(|set| format!("environment.{set}")).collect();
        registry.gymnasium_table(&registry.environment_table(name, &sets).unwrap())
    }

    #[test]
    fn settings_are_arguments_of_gymnasium() {
        let twin = table("mujoco-hopper", &["time_limit=200", "healthy_z_range=[0.5, 'inf']"]);
        let twin = twin.unwrap();
        assert_eq!(twin["id"].as_str(), Some("Hopper-v5"));
        assert_eq!(twin["packages"].as_str(), Some("mujoco"));
        let kwargs = twin["kwargs"].as_table().unwrap();
        assert_eq!(kwargs.len(), 2, "{kwargs:?}");
        assert_eq!(kwargs["max_episode_steps"].as_integer(), Some(200));
        let range = kwargs["healthy_z_range"].as_array().unwrap();
        assert_eq!(range[..], [Value::Float(0.5), Value::Float(INFINITY)]);
        let twin = table("cartpole", &[]).unwrap();
        assert_eq!(twin["packages"].as_str(), Some("gymnasium"));
        assert!(twin["kwargs"].as_table().unwrap().is_empty());

        let error = table("catch", &[]).unwrap_err();
        assert!(error.contains("Gymnasium does not have `catch`; it has cartpole, "), "{error}");
    }
}
