//! Tests of the commands, with a fake training. The devices are real: a plugin must be installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::fake::{podracer, short, with};
use crate::registry::Registry;

fn files(folder: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn a_run_leaves_all_of_it_behind() {
    let folder = tempfile::tempdir().unwrap();
    let printed = podracer(&short(folder.path(), &["--seed", "3", "--json"]));
    assert_eq!(printed.code, 0, "{}", printed.err);
    let result = printed.json();
    for key in [
        "experiment",
        "platform",
        "devices",
        "seed",
        "env_steps",
        "iterations",
        "compile_seconds",
        "run_seconds",
        "env_steps_per_second",
        "mean_return",
        "params_sha256",
        "run_dir",
    ] {
        assert!(!result[key].is_null(), "{key}: {result}");
    }
    assert_eq!(
        (&result["experiment"], &result["platform"]),
        (&"cartpole-ppo".into(), &"cpu".into())
    );
    assert_eq!((&result["devices"], &result["seed"]), (&1.into(), &3.into()));
    // 40,000 steps are 78 iterations of 512 steps, and so 5 calls of 16 iterations.
    assert_eq!((&result["env_steps"], &result["iterations"]), (&40_960.into(), &80.into()));
    assert_eq!((&result["mean_return"], &result["interrupted"]), (&5.0.into(), &false.into()));
    assert_eq!(result["evaluation"]["greedy_return"], 1.0);

    let mut names = files(folder.path());
    names.retain(|name| !name.starts_with("events.out.tfevents."));
    let expected = [
        "checkpoints",
        "config.toml",
        "learning_curve.svg",
        "messages.jsonl",
        "metrics.jsonl",
        "parameters.safetensors",
        "result.json",
    ];
    assert_eq!(names, expected.map(str::to_owned).into());
    let metrics = fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    assert_eq!(metrics.lines().count(), 80);
    let messages = fs::read_to_string(folder.path().join("messages.jsonl")).unwrap();
    for (line, part) in messages.lines().zip(["begins on ", "is done after 80 iterations"]) {
        let message: Value = serde_json::from_str(line).unwrap();
        assert!(message["kind"] == "run" && message["time"].as_f64() > Some(1e9), "{line}");
        assert!(message["text"].as_str().unwrap().starts_with(part), "{line}");
    }
    assert_eq!(messages.lines().count(), 2);
    let config = fs::read_to_string(folder.path().join("config.toml")).unwrap();
    for part in [
        "seed = 3",
        "steps = 40000",
        "xla_cpu_prefer_vector_width = 256",
        "[recorded]",
        "platform = \"cpu\"",
    ] {
        assert!(config.contains(part), "{part}: {config}");
    }
    let written: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("result.json")).unwrap())
            .unwrap();
    assert_eq!(written, result);
}

#[test]
fn a_runs_settings_are_an_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let printed = podracer(&short(&first, &["--set", "agent.clip=0.1", "--json"]));
    let config = first.join("config.toml");
    let arguments =
        ["train", config.to_str().unwrap(), "--run-dir", second.to_str().unwrap(), "--json"];
    let again = podracer(&arguments);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(again.json()["params_sha256"], printed.json()["params_sha256"]);
    let [first, second] =
        [first, second].map(|path| fs::read_to_string(path.join("config.toml")).unwrap());
    assert_eq!(first, second);
}

#[test]
fn people_get_progress_and_a_curve() {
    let folder = tempfile::tempdir().unwrap();
    let printed = podracer(&short(folder.path(), &[]));
    assert!(
        printed.out.contains('█') && printed.out.contains("mean return 5.00"),
        "{}",
        printed.out
    );
    assert!(printed.out.contains("run directory: "), "{}", printed.out);
    assert!(printed.err.contains("compiled in 0.25 s"), "{}", printed.err);
    assert!(printed.err.contains("41.0k of 41.0k steps, "), "{}", printed.err);
}

#[test]
fn ctrl_c_keeps_what_was_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let printed = with(&short(folder.path(), &["--json"]), None, Some(2));
    assert_eq!(printed.code, 130, "{}", printed.err);
    assert!(printed.err.contains("stopped after 2 of 5 calls"), "{}", printed.err);
    let result = printed.json();
    assert_eq!((&result["calls"], &result["interrupted"]), (&2.into(), &true.into()));
    assert!(files(folder.path()).contains("parameters.safetensors"));
}

#[test]
fn a_training_that_fails_says_when() {
    let folder = tempfile::tempdir().unwrap();
    let printed = with(&short(folder.path(), &[]), Some(2), None);
    assert_eq!(printed.code, 1);
    let expected = "error: the training failed after 16 iterations (there is no checkpoint to resume from yet): the device is on fire";
    assert!(printed.err.contains(expected), "{}", printed.err);
}

#[test]
fn mistakes_have_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config.toml"), "").unwrap();
    let run_dir = folder.path().to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["train"], "<EXPERIMENT>"),
        (&["cost", "a", "--fps", "9", "--use", "cpu=1"], "cannot be used with"),
        (
            &["cost", "--fps", "9", "--use", "cpu=1", "--price", "gpu=2"],
            "--price gpu: nothing of that name is used",
        ),
        (&["train", "cartpole"], "did you mean `cartpole-ppo`"),
        (&["train", "cartpole-ppo", "--stes", "1"], "--steps"),
        (&["train", "cartpole-ppo", "--steps", "many"], "invalid value 'many'"),
        (&["train", "cartpole-ppo", "--seed", "-1"], "invalid value '-1'"),
        (&["train", "cartpole-ppo", "--devices", "some"], "a number of devices"),
        (&["train", "cartpole-ppo", "--devices", "0"], "train.devices must be at least 1"),
        (&["train", "cartpole-ppo", "--devices", "4096"], "4096 devices are asked for and there"),
        (&["train", "cartpole-ppo", "--devices", "[4096]"], "device 4096 does not exist"),
        (
            &["train", "cartpole-ppo", "--set", "anakin.environments=0"],
            "must be at least 1 and is 0",
        ),
        (
            &["train", "cartpole-ppo", "--set", "agent.minibatches=7"],
            "does not divide into agent.minibatches",
        ),
        (&["train", "cartpole-ppo", "--run-dir", run_dir], "holds a run already"),
        (
            &["ir", "emit", "cartpole-ppo", "--stage", "binary"],
            "trace, readable, simplified, stablehlo, hlo",
        ),
        (
            &["ir", "emit", "cartpole-ppo", "--stage", "trace", "--devices", "3"],
            "does not divide over 3 devices",
        ),
        (&["check", "cartpole-ppo", "--target", "tpu"], "such as tpu:v5e:2x4"),
        (&["plugins", "install", "gpu"], "there is no plugin `gpu`"),
        (
            &["envs", "install", "gym"],
            "there are no packages `gym` for environments: the known names are gymnasium, atari, box2d, mujoco, envpool",
        ),
    ];
    for (arguments, expected) in cases {
        let printed = podracer(arguments);
        assert_eq!(printed.code, 2, "{arguments:?}: {}", printed.err);
        assert!(printed.err.contains(expected), "{arguments:?}: {}", printed.err);
        assert!(printed.out.is_empty(), "{arguments:?}: {}", printed.out);
    }
}

#[test]
fn emit_prints_the_stage() {
    let printed = podracer(&["ir", "emit", "cartpole-ppo", "--stage", "trace", "--devices", "2"]);
    assert_eq!((printed.code, printed.out.as_str()), (0, "Trace for 2\n"));
    let printed = podracer(&["ir", "emit", "cartpole-ppo", "--stage", "readable"]);
    assert_eq!((printed.code, printed.out.as_str()), (0, "Readable for 1\n"));
    let printed = podracer(&["ir", "emit", "cartpole-ppo", "--stage", "hlo"]);
    assert_eq!(printed.code, 0, "{}", printed.err);
    assert!(
        printed.out.starts_with("HloModule ") && printed.out.contains("ENTRY"),
        "{}",
        printed.out
    );
    let printed = podracer(&[
        "ir",
        "emit",
        "cartpole-ppo",
        "--stage",
        "hlo",
        "--set",
        "xla.xla_no_such_option=1",
    ]);
    assert_eq!(printed.code, 1);
    assert!(printed.err.contains("xla_no_such_option"), "{}", printed.err);
}

#[test]
fn check_reports_on_a_machine_that_is_not_there() {
    let printed = podracer(&["check", "cartpole-ppo", "--target", "tpu:v5e:2x4", "--json"]);
    if podracer_plugins::find("tpu").is_err() {
        assert_eq!(printed.code, 1);
        assert!(printed.err.contains("podracer plugins install tpu"), "{}", printed.err);
        podracer_test_support::skip::skip("no plugin `tpu`: `podracer plugins install tpu`");
        return;
    }
    assert_eq!(printed.code, 0, "{}", printed.err);
    let report = printed.json();
    for (key, expected) in [
        ("target", Value::from("tpu:v5e:2x4")),
        ("devices", 8.into()),
        ("environments", 8.into()),
        ("modules", 1.into()),
        ("host_transfers", 0.into()),
        ("all_reduces", 0.into()),
        ("while_loops", 0.into()),
        ("donated_inputs", 1.into()),
    ] {
        assert_eq!(report[key], expected, "{key}: {report}");
    }
    assert!(report["peak_bytes"].is_i64() && report["compile_seconds"].is_f64(), "{report}");

    let printed = podracer(&[
        "check",
        "cartpole-ppo",
        "--target",
        "tpu:v5e:2x4",
        "--set",
        "anakin.environments=67108864",
        "--set",
        "anakin.unroll=4",
    ]);
    assert_eq!(printed.code, 1, "{}", printed.out);
    let expected = "cannot compile cartpole-ppo for tpu:v5e:2x4: out of memory: the program needs";
    assert!(
        printed.err.contains(expected) && printed.err.contains("tpu:v5e:2x4 has 15."),
        "{}",
        printed.err
    );
}

#[test]
fn list_names_every_experiment_agent_and_environment() {
    let printed = podracer(&["list"]);
    assert_eq!(printed.code, 0);
    let registry = Registry::built_in();
    let names = registry.experiments().iter().map(|one| one.name.as_str());
    for name in names.chain(registry.names("agent")).chain(registry.names("environment")) {
        let named = |line: &str| line.trim_start().starts_with(&format!("{name} "));
        assert!(printed.out.lines().any(named), "{name}: {}", printed.out);
    }
    let ppo = printed.out.lines().find(|line| line.starts_with("  ppo ")).unwrap();
    assert!(ppo.ends_with("  Proximal policy optimization (Schulman et al. 2017)"), "{ppo}");
    let printed = podracer(&["plugins", "list"]);
    assert!(printed.out.lines().any(|line| line.starts_with("cpu ")), "{}", printed.out);
}

/// Names of more than 21 letters keep the other columns of their line aligned.
#[test]
fn columns_of_the_list_are_as_wide_as_their_longest_name() {
    let printed = podracer(&["list"]);
    for part in printed.out.split("\n\n") {
        let lines: Vec<&str> = part.lines().skip(1).collect();
        let name = |line: &str| line.split_whitespace().next().unwrap().len();
        let next = 2 + lines.iter().map(|line| name(line)).max().unwrap() + 2;
        assert!(lines.len() > 5, "{part}");
        for line in lines {
            let between = &line[2 + name(line)..next];
            assert!(between.trim().is_empty() && !line[next..].starts_with(' '), "{line}");
        }
    }
}

#[test]
fn no_links_of_rustdoc_are_in_descriptions() {
    let registry = Registry::built_in();
    let tables = registry.tables.iter().map(|(name, _)| *name);
    let parts = tables.chain(registry.names("agent")).chain(registry.names("environment"));
    let commands = parts.map(|name| vec!["describe", name]).chain([vec!["list"]]);
    for command in commands {
        let printed = podracer(&command);
        assert_eq!(printed.code, 0, "{}", printed.err);
        for leak in ["[`", "`]", "](", "`(crate", "`(super", "`(Self", "`(podracer"] {
            let line = printed.out.lines().find(|line| line.contains(leak));
            assert_eq!(line, None, "{command:?}");
        }
    }
}

#[test]
fn arguments_that_count_say_what_they_take() {
    let cases: &[(&[&str], &str)] = &[
        (&["eval", "run", "--episodes=0"], "'--episodes <EPISODES>': expected at least 1 episode"),
        (&["eval", "run", "--episodes=-3"], "expected at least 1 episode"),
        (&["play", "catch", "--random", "--episodes=0"], "expected at least 1 episode"),
        (&["play", "catch", "--random", "--episodes=all"], "expected a whole number, at least 1"),
        (&["export", "catch-ppo", "-o", "out", "--batch=0"], "expected at least 1 observation"),
        (&["work", "--connect=unix:no", "--environments=0"], "expected at least 1 environment"),
        (
            &["work", "--connect=unix:no", "--environments=1", "--batches=0"],
            "expected at least 1 batch",
        ),
        (&["train", "catch-ppo", "--steps=0"], "expected at least 1 step"),
        (&["train", "catch-ppo", "--steps=1.5"], "such as 300000, 1_000_000, 300k, 2.5M"),
        (&["resume", "run", "--steps=1e30"], "expected at most 9223372036854775807 steps"),
    ];
    for (arguments, expected) in cases {
        let printed = podracer(arguments);
        assert_eq!(printed.code, 2, "{arguments:?}: {}", printed.err);
        assert!(printed.err.contains(expected), "{arguments:?}: {}", printed.err);
    }
}

#[test]
fn steps_have_units() {
    let folder = tempfile::tempdir().unwrap();
    for (number, steps) in ["40k", "4e4", "0.04M", "40_000"].into_iter().enumerate() {
        let run = folder.path().join(number.to_string());
        let name = run.to_str().unwrap();
        let printed = podracer(&["train", "cartpole-ppo", "--steps", steps, "--run-dir", name]);
        assert_eq!(printed.code, 0, "{steps}: {}", printed.err);
        let config = fs::read_to_string(run.join("config.toml")).unwrap();
        assert!(config.contains("steps = 40000\n"), "{steps}: {config}");
        let printed = podracer(&["resume", name, "--steps", "5e4", "--json"]);
        assert_eq!(printed.json()["env_steps"], 57_344, "{steps}: {}", printed.err);
    }
}

#[test]
fn a_film_is_not_written_into_a_file_with_another_ending() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.mp4", "gif"] {
        let file = folder.path().join(name);
        let printed = podracer(&["play", "catch", "--random", "--gif", file.to_str().unwrap()]);
        assert_eq!(printed.code, 2, "{}", printed.err);
        assert!(printed.err.contains("must end in .gif, .y4m or .txt"), "{}", printed.err);
        assert!(!file.exists());
    }
}

#[test]
fn names_of_gym_get_ours() {
    for (arguments, expected) in [
        (
            &["train", "CartPole-v1"][..],
            "experiment `CartPole-v1`; did you mean `cartpole-ppo` or ",
        ),
        (&["describe", "CartPole-v1"], "did you mean `cartpole`?"),
        (&["play", "MountainCar-v0", "--random"], "did you mean `mountain-car`?"),
        (&["play", "cartpole-pp", "--random"], "did you mean `cartpole-ppo`"),
    ] {
        let printed = podracer(arguments);
        assert_eq!(printed.code, 2, "{}", printed.err);
        assert!(printed.err.contains(expected), "{arguments:?}: {}", printed.err);
    }
}

#[test]
fn describe_says_all_of_a_setting() {
    let printed = podracer(&["describe", "ppo"]);
    assert_eq!(printed.code, 0, "{}", printed.err);
    for part in [
        "# Proximal policy optimization (Schulman et al. 2017).",
        "[agent]\nkind = \"ppo\"",
        "learning_rate = 0.00025           # number, above 0: Adam's step size.\n",
        "torso = \"none\"                    # choice: The network",
        "  #   conv: Layers of convolutions, for images.\n",
    ] {
        assert!(printed.out.contains(part), "{part}: {}", printed.out);
    }
    // The output is an experiment's table.
    toml::from_str::<toml::Table>(&printed.out).unwrap();
    let json = podracer(&["describe", "sebulba", "--json"]).json();
    let schedule = json[0]["settings"].as_array().unwrap();
    let schedule = schedule.iter().find(|setting| setting["key"] == "schedule").unwrap();
    assert_eq!(schedule["default"], "deterministic");
    assert!(schedule["values"]["free-running"].as_str().is_some_and(|doc| !doc.is_empty()));
    let printed = podracer(&["describe", "gridworld-ppo"]);
    assert!(
        printed.out.contains("# number, 0 to 1; default 0.99: Discount of future rewards."),
        "{}",
        printed.out
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fast.toml");
    fs::write(&file, "base = 'catch-ppo'\nxla.xla_cpu_use_onednn = true\n").unwrap();
    let json = podracer(&["describe", file.to_str().unwrap(), "--json"]).json();
    assert_eq!(json["xla"], serde_json::json!({ "xla_cpu_use_onednn": true }));
    assert!(podracer(&["describe", "catch-ppo", "--json"]).json()["xla"].is_null());
    let printed = podracer(&["describe", "pppo"]);
    assert_eq!(printed.code, 2);
    assert!(printed.err.contains("experiment `pppo`; did you mean `ppo`"), "{}", printed.err);
}

#[test]
fn help_is_no_error() {
    let printed = podracer(&["--help"]);
    assert_eq!(printed.code, 0);
    assert!(printed.out.contains("train") && printed.err.is_empty());
}

/// The author of the file, or of the run, could otherwise have a program of theirs run here.
#[test]
fn a_program_that_a_file_names_runs_only_with_trust() {
    let folder = tempfile::tempdir().unwrap();
    let (file, run) = (folder.path().join("theirs.toml"), folder.path().join("run"));
    let text = "base = 'cartpole-sebulba-ppo'\ntrain.steps = 40000\n\
                [environment]\nname = 'gymnasium'\npython = '/opt/theirs'\n";
    fs::write(&file, text).unwrap();
    let (file, run) = (file.to_str().unwrap(), run.to_str().unwrap());
    let output = folder.path().join("export");
    let output = output.to_str().unwrap();
    let refused = |arguments: &[&str], source: &str| {
        let printed = podracer(arguments);
        assert_eq!(printed.code, 2, "{arguments:?}: {}", printed.err);
        let problem =
            format!("{source}: `environment.python` is `/opt/theirs`: its programs and folders");
        assert!(printed.err.contains(&problem), "{arguments:?}: {}", printed.err);
        assert!(printed.err.contains("add --trust"), "{}", printed.err);
    };
    let of_files: [&[&str]; 5] = [
        &["train", file, "--run-dir", run],
        &["ir", "emit", file, "--stage=trace"],
        &["export", file, "--output", output],
        &["check", file, "--target=tpu:v5e:2x2"],
        &["tune", file],
    ];
    for arguments in of_files {
        refused(arguments, file);
    }
    let trained = podracer(&["train", file, "--run-dir", run, "--trust"]);
    assert_eq!(trained.code, 0, "{}", trained.err);
    let config = format!("{run}/config.toml");
    for arguments in [&["resume", run][..], &["eval", run], &["export", &config, "-o", output]] {
        refused(arguments, &config);
    }
    for arguments in [["resume", run, "--trust"], ["eval", run, "--trust"]] {
        let printed = podracer(&arguments);
        assert_eq!(printed.code, 0, "{arguments:?}: {}", printed.err);
    }
    // Settings from the user need no flag.
    for set in ["environment.python=/usr/bin/mine", "environment.python=none"] {
        let printed = podracer(&["ir", "emit", file, "--stage=trace", "--set", set]);
        assert_eq!(printed.code, 0, "{}", printed.err);
    }
}
