//! The upper bounds of integer settings: every setting has one, it is checked at once, and a
//! program of this size can be traced.

use std::panic::{AssertUnwindSafe, catch_unwind};

use toml::Value;

use super::Overrides;
use crate::cli::fake::podracer;
use crate::registry::Registry;
use crate::schema::{Kind, Schema};
use crate::settings::Settings;
use crate::training::Stage;

/// All tables of the program's settings, each with the prefix of its keys.
fn tables(registry: &Registry) -> Vec<(String, &Schema)> {
    let own = registry.tables.iter().map(|(name, schema)| ((*name).to_owned(), schema));
    let agents = registry.agents().iter();
    let agents = agents.map(|one| (format!("agent = {}: agent", one.name), &one.schema));
    let environments = registry
        .environments()
        .iter()
        .map(|one| (format!("environment = {}: environment", one.name), &one.schema));
    own.chain(agents).chain(environments).collect()
}

/// The ranges of integers without an upper bound in a type of values.
fn unbounded(kind: &Kind) -> bool {
    match kind {
        Kind::Integer { range, .. } => range.most.is_none(),
        Kind::List { element, .. } => unbounded(element),
        Kind::Any { kinds, .. } => kinds.iter().any(unbounded),
        Kind::Boolean | Kind::Number(_) | Kind::Text | Kind::OneOf(_) | Kind::Table => false,
    }
}

#[test]
fn every_whole_number_of_the_settings_has_a_greatest_value() {
    let registry = Registry::built_in();
    let mut without = Vec::new();
    for (table, schema) in tables(&registry) {
        let keys = schema.keys.iter().filter(|key| unbounded(&key.kind));
        without.extend(keys.map(|key| format!("{table}.{}", key.name)));
    }
    assert!(
        without.is_empty(),
        "these settings have no greatest value, `#[schemars(range(max = ..))]`:\n  {}",
        without.join("\n  ")
    );
}

/// Settings above their upper bound are rejected before anything is traced.
#[test]
fn settings_of_excessive_size_are_errors() {
    for (experiment, set, expected) in [
        (
            "cartpole-ppo",
            "train.devices=9223372036854775807",
            "train.devices must be at most 65536 and is 9223372036854775807",
        ),
        (
            "cartpole-ppo",
            "train.devices=4294967296",
            "train.devices must be at most 65536 and is 4294967296",
        ),
        (
            "cartpole-ppo",
            "train.devices=[65536]",
            "train.devices must be a list, and each of its elements must be at most 65535, and is [65536]",
        ),
        (
            "catch-muzero",
            "agent.reward_support=9223372036854775807",
            "agent.reward_support must be at most 10000 and is 9223372036854775807",
        ),
        (
            "catch-muzero",
            "agent.reward_support=1073741824",
            "agent.reward_support must be at most 10000 and is 1073741824",
        ),
        (
            "cartpole-rainbow",
            "agent.atoms=1073741824",
            "agent.atoms must be at most 10000 and is 1073741824",
        ),
        (
            "memory-impala",
            "environment.bits=4294967296",
            "environment.bits must be at most 10000 and is 4294967296",
        ),
        (
            "cartpole-dqn",
            "agent.frames=4294967295",
            "agent.frames must be at most 100 and is 4294967295",
        ),
        (
            "cartpole-dqn",
            "agent.n_step=1000000",
            "agent.n_step must be at most 1000 and is 1000000",
        ),
        (
            "cartpole-dqn",
            "agent.replay_ratio=1e18",
            "agent.replay_ratio must be a number above 0 and at most 1000000 and is 1e18",
        ),
        (
            "cartpole-ppo",
            "agent.hidden=[1099511627776]",
            "agent.hidden must name at most 64 layers of 1 to 65536 units each",
        ),
    ] {
        for command in [&["ir", "emit", experiment, "--stage=trace"][..], &["train", experiment]] {
            let printed = podracer(&[command, &["--set", set]].concat());
            assert_eq!(printed.code, 2, "--set {set}: {}", printed.err);
            assert!(printed.err.contains(expected), "--set {set}: {}", printed.err);
        }
    }
    let printed = podracer(&[
        "ir",
        "emit",
        "cartpole-ppo",
        "--stage=trace",
        "--devices=18446744073709551615",
    ]);
    let expected = "train.devices must be at most 65536 and is 9223372036854775807";
    assert!(printed.code == 2 && printed.err.contains(expected), "{}", printed.err);
}

#[test]
fn a_cpu_is_divided_into_at_most_1024_devices() {
    for devices in ["train.devices=65536", "sebulba.learners=[65535]"] {
        let printed = podracer(&["train", "cartpole-sebulba-ppo", "--set", devices]);
        let expected = "65536 devices are asked for, and a CPU is divided into at most 1024";
        assert!(printed.code == 2 && printed.err.contains(expected), "{}", printed.err);
    }
}

#[test]
fn a_greatest_value_of_many_digits_is_not_described() {
    for (experiment, expected) in [
        ("cartpole-ppo", ["integer, at least 1", "integer, 1 to 1000000"]),
        ("memory-impala", ["integer, 1 to 10000", "integer, 1 to 2147483647"]),
        ("cartpole-dqn", ["number, above 0, at most 1000000", "list of at most 64 ("]),
    ] {
        for flags in [&[][..], &["--json"]] {
            let printed = podracer(&[&["describe", experiment][..], flags].concat());
            for one in expected {
                assert!(printed.out.contains(one), "{one}: {}", printed.out);
            }
            let digits = |text: &str| text.len() > 10 && text.bytes().all(|b| b.is_ascii_digit());
            let long =
                printed.out.split(|one: char| !one.is_ascii_digit()).find(|text| digits(text));
            assert_eq!(long, None, "{}", printed.out);
        }
    }
}

/// An integer setting at its upper bound: the experiment, and the changes as for `--set`.
struct Edge {
    experiment: String,
    sets: Vec<String>,
}

/// The greatest value of a type of values; for a list, of one element. `None` if the type has no
/// integers.
fn greatest(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::Integer { range, .. } => range.most.map(|most| Value::Integer(most as i64)),
        Kind::List { element, length } => {
            let element = greatest(element)?;
            let number = if length.0 == length.1 { length.0 } else { 1 };
            Some(Value::Array(vec![element; number]))
        }
        _ => None,
    }
}

/// The settings that make an agent use its key, if the agent's defaults do not use it.
fn with(agent: &str, key: &str) -> &'static [&'static str] {
    let plans = ["muzero", "alphazero"].contains(&agent);
    match key {
        "atoms" => &["agent.values=categorical"],
        "quantiles" => &["agent.values=quantile"],
        "considered_actions" => &["agent.search=gumbel", "agent.simulations=100000"],
        "convs" => &["environment.name=minatar-breakout", "agent.torso=conv"],
        "planes" | "blocks" => {
            &["environment.name=minatar-breakout", "agent.torso=residual", "agent.model=planes"]
        }
        "sections" | "features" => &["environment.name=minatar-breakout", "agent.torso=residual"],
        "minimum" if plans => &["agent.learn_from=replay", "agent.capacity=1000000000"],
        "batch" if plans => {
            &["agent.learn_from=replay", "agent.capacity=1000000000", "agent.minimum=1000000000"]
        }
        "minimum" => &["agent.capacity=1000000000"],
        "batch" => &["agent.capacity=1000000000", "agent.minimum=1000000000"],
        "capacity" if plans => &["agent.learn_from=replay"],
        "n_step" if plans => &["agent.learn_from=replay", "agent.capacity=1000000000"],
        _ => &[],
    }
}

/// Every integer setting of every agent and of every compiled environment, at its upper bound.
fn edges(registry: &Registry) -> Vec<Edge> {
    let mut edges = Vec::new();
    for agent in registry.agents() {
        let fits = |settings: &Settings| {
            settings.agent_kind() == agent.name && settings.training_loop.host().is_none()
        };
        let experiment = registry.experiments().iter().find(|one| {
            registry.load(&one.name, &Overrides::default()).is_ok_and(|settings| fits(&settings))
        });
        let base = experiment.map_or("catch-ppo", |one| one.name.as_str());
        for key in &agent.schema.keys {
            let Some(value) = greatest(&key.kind) else { continue };
            let mut sets = vec![format!("agent.kind={}", agent.name)];
            sets.extend(with(&agent.name, &key.name).iter().map(|&one| one.to_owned()));
            sets.push(format!("agent.{}={value}", key.name));
            edges.push(Edge { experiment: base.to_owned(), sets });
        }
    }
    // Servers report the number of elements themselves: nothing is traced before.
    let compiled = |name: &str| {
        let set = vec![format!("environment.name={name}")];
        let settings = registry.load("catch-ppo", &Overrides { set, ..Overrides::default() });
        settings.is_ok_and(|settings| registry.build(&settings).is_ok())
    };
    for environment in registry.environments().iter().filter(|one| compiled(&one.name)) {
        for key in &environment.schema.keys {
            let Some(value) = greatest(&key.kind) else { continue };
            let name = format!("environment.name={}", environment.name);
            let sets = vec![name, format!("environment.{}={value}", key.name)];
            edges.push(Edge { experiment: "catch-ppo".to_owned(), sets });
        }
    }
    edges
}

/// The greatest memory that the process has used, in bytes; 0 if the system does not report it.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// Greatest memory of the process after all traces.
const MOST_MEMORY: u64 = 2 << 30;

#[test]
fn greatest_values_are_traced_or_refused() {
    let registry = Registry::built_in();
    let mut wrong = Vec::new();
    // Each takes a fraction of a second; all of them together take too long for every run of the
    // tests.
    let every = if std::env::var_os("PODRACER_ALL").is_some() { 1 } else { 11 };
    for Edge { experiment, sets } in edges(&registry).into_iter().step_by(every) {
        let overrides = Overrides { set: sets.clone(), ..Overrides::default() };
        let trace = || -> anyhow::Result<String> {
            let settings = registry.load(&experiment, &overrides)?;
            settings.check_division(1, &registry)?;
            registry.build(&settings)?.emit(Stage::Trace, 1)
        };
        let traced = catch_unwind(AssertUnwindSafe(trace));
        if traced.is_err() {
            wrong.push(format!("{experiment} with {sets:?} panics"));
        }
        if peak_memory() > MOST_MEMORY {
            wrong.push(format!("{experiment} with {sets:?} took {} bytes", peak_memory()));
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
