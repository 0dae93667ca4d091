//! Tests of mistakes in the registration of agents, environments and experiments.

use podracer_envs::Catch;
use podracer_rl::agents::PpoSettings;
use podracer_rl::learn::{AgentSettings, AnyAgent, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentEntry, EnvironmentEntry, Registry};

/// Settings with a default that TOML cannot represent as a number.
#[derive(Clone, Deserialize, JsonSchema, Serialize)]
struct Wide {
    seed: u64,
}

impl Default for Wide {
    fn default() -> Self {
        Wide { seed: u64::MAX }
    }
}

impl AgentSettings for Wide {
    fn agent(&self, _: &Task) -> Result<AnyAgent, String> {
        Err("there is none".to_owned())
    }
}

fn mistakes(register: impl FnOnce(&mut Registry)) -> String {
    let mut registry = Registry::without_experiments();
    register(&mut registry);
    registry.check().unwrap_err().to_string()
}

#[test]
fn names_are_taken_once() {
    let text = mistakes(|registry| {
        registry.add_environment(EnvironmentEntry::dsl::<Catch>("catch"));
        registry.add_environment(EnvironmentEntry::dsl::<Catch>("mine"));
        registry.add_environment(EnvironmentEntry::dsl::<Catch>("mine"));
        registry.add_agent(AgentEntry::new::<PpoSettings>("ppo"));
    });
    for expected in [
        "there are two environments of the name `catch`: give one another name",
        "there are two environments of the name `mine`",
        "there are two agents of the name `ppo`",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let one = "experiment = 'one'\n[agent]\nkind = 'ppo'\n[environment]\nname = 'catch'\n";
    let text = mistakes(|registry| {
        registry.add_named_experiment(one);
        registry.add_named_experiment(one);
    });
    assert_eq!(text, "there are two experiments of the name `one`: give one another name");
}

#[test]
fn experiments_are_read_before_anything_runs() {
    for (text, expected) in [
        (
            "experiment = 'one'\n[agent]\nkind = 'pppo'\n[environment]\nname = 'catch'\n",
            "experiment one: `agent.kind` is the string \"pppo\" and must be one of: ppo, online, impala, ",
        ),
        (
            "# Mine\n[agent]\nkind = 'ppo'\n[environment]\nname = 'catch'\n",
            "the experiment that begins `# Mine` has no name: begin it with `experiment = \"...\"`",
        ),
        ("experiment = 'one\n", "the experiment that begins `experiment = 'one`: TOML parse error"),
        (
            "base = 'two'\nexperiment = 'one'\n",
            "in the base of experiment one: there is no experiment `two`",
        ),
    ] {
        let message = mistakes(|registry| registry.add_named_experiment(text));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn defaults_that_cannot_be_written_are_a_mistake() {
    let text = mistakes(|registry| registry.add_agent(AgentEntry::new::<Wide>("wide")));
    assert!(text.starts_with("agent `wide`: the defaults of `"), "{text}");
    assert!(text.contains("::Wide` cannot be written as TOML"), "{text}");
}

/// An environment chosen only by its name has the struct's defaults, even without
/// `#[serde(default)]`.
#[test]
fn an_environment_named_alone_lacked_its_defaults() {
    let registry = Registry::built_in();
    let table = |set: &str| registry.environment_table("catch", &[set.to_owned()]);
    let complete = table("environment.rows=6").unwrap();
    let number = |key: &str| complete[key].as_integer();
    assert_eq!((number("rows"), number("columns")), (Some(6), Some(5)));
    let wrong = table("environment.rows=x").unwrap_err().to_string();
    assert!(wrong.contains("`environment.rows` must be an integer"), "{wrong}");
    let other = table("agent.clip=0.1").unwrap_err().to_string();
    assert!(other.contains("`catch` is an environment"), "{other}");
}
