//! `podracer train X --seeds N`: runs with several seeds as one program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{podracer, text};

/// A short training with episodes that end: 4 environments, 512 steps in 2 calls.
const SHORT: [&str; 10] = [
    "train",
    "cartpole-ppo",
    "--set",
    "anakin.unroll=32",
    "--set",
    "anakin.iterations_per_call=2",
    "--set",
    "agent.minibatches=2",
    "--steps",
    "512",
];

fn json(output: &[u8]) -> Value {
    serde_json::from_slice(output).expect("one line of JSON")
}

/// The JSON that a command in a folder prints.
fn said(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = podracer(&[arguments, &["--json"]].concat());
    json(&command.current_dir(folder).assert().success().get_output().stdout)
}

#[test]
fn every_seed_is_a_run_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let several = [&SHORT[..], &["--seed", "5", "--seeds", "3", "--run-dir", "three"]].concat();
    let all = said(folder, &several);
    let runs = all["runs"].as_array().expect("runs");
    assert_eq!((runs.len(), all["failed"].as_array().map(Vec::len)), (3, Some(0)));
    let returns: Vec<f64> =
        runs.iter().map(|run| run["mean_return"].as_f64().expect("episodes ended")).collect();
    let mean = returns.iter().sum::<f64>() / 3.0;
    assert!(
        (all["settings"][0]["mean_return"]["value"].as_f64().expect("a mean") - mean).abs() < 1e-9
    );
    let written = fs::read_to_string(folder.join("three/population.json")).expect("it is written");
    assert_eq!(json(written.as_bytes()), all);

    for (seed, run) in [5, 6, 7].into_iter().zip(runs) {
        let alone = folder.join(format!("alone-{seed}")).display().to_string();
        let seed_text = seed.to_string();
        let alone =
            said(folder, &[&SHORT[..], &["--seed", &seed_text, "--run-dir", &alone]].concat());
        for key in ["seed", "env_steps", "iterations", "episodes", "mean_return"] {
            assert_eq!(run[key], alone[key], "{key} of seed {seed}");
        }
        // The commands recognise it.
        let own = format!("three/seed-{seed}");
        assert_eq!(run["run_dir"], own);
        let lines = fs::read_to_string(folder.join(&own).join("metrics.jsonl")).expect("metrics");
        assert!(lines.contains("\"iteration\":4"), "{lines}");
        let played = said(folder, &["eval", &own, "--episodes", "2"]);
        assert_eq!(played["iterations"], 4);
        let resumed = said(folder, &["resume", &own, "--steps", "768"]);
        assert_eq!(
            (&resumed["resumed_from_iteration"], &resumed["env_steps"]),
            (&4.into(), &768.into())
        );
        // It has its own messages: the population's messages, and the resumed run's.
        let messages = fs::read_to_string(folder.join(&own).join("messages.jsonl"));
        let messages: Vec<Value> =
            messages.expect("messages").lines().map(|line| json(line.as_bytes())).collect();
        let of_run = messages.iter().filter(|message| message["kind"] == "run");
        let texts = of_run.map(|message| message["text"].to_string()).collect::<Vec<_>>().join(" ");
        for part in ["begins", "is done after 4", "resumes after 4", "is done after 6 iterations"] {
            assert!(texts.contains(part), "{part}: {texts}");
        }
    }
}

/// Five runs on two devices: the second device has a place that no run is.
#[test]
fn devices_share_runs_that_do_not_divide() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let two = ["--seeds", "5", "--devices", "2", "--run-dir", "two"];
    let one = ["--seeds", "5", "--devices", "1", "--run-dir", "one"];
    let [two, one] = [two, one].map(|flags| said(folder, &[&SHORT[..], &flags].concat()));
    let runs = |all: &Value| all["runs"].as_array().expect("runs").clone();
    assert_eq!((runs(&two).len(), runs(&one).len()), (5, 5));
    for (two, one) in runs(&two).iter().zip(runs(&one)) {
        assert_eq!((&two["devices"], &two["together"]), (&2.into(), &5.into()));
        for key in ["seed", "env_steps", "episodes", "mean_return"] {
            assert_eq!(two[key], one[key], "{key}");
        }
    }
    assert_eq!(fs::read_dir(folder.join("two")).expect("a folder").count(), 7, "no other run");
}

/// One program has all learning rates, and each run equals the run of its own settings.
#[test]
fn a_sweep_is_ranked_and_its_runs_are_of_their_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rates =
        ["--set", "agent.learning_rate=log:1e-4..1e-2:3", "--set", "agent.entropy_cost=0,0.1"];
    let sweep = [&["sweep"], &SHORT[1..], &rates, &["--seeds", "2", "--run-dir", "all"]].concat();
    let all = said(folder, &sweep);
    let groups = all["settings"].as_array().expect("settings");
    assert_eq!((groups.len(), all["runs"].as_array().map(Vec::len)), (6, Some(12)));
    let mean = |group: &Value| group["mean_return"]["value"].as_f64();
    assert!(groups.is_sorted_by(|a, b| mean(a) >= mean(b)), "{groups:?}");
    assert!(groups.iter().all(|group| group["runs"] == 2), "{groups:?}");
    let own = "all/agent.learning_rate=1e-2,agent.entropy_cost=0.1,seed=1";
    let run = all["runs"].as_array().and_then(|runs| runs.iter().find(|run| run["run_dir"] == own));
    let set =
        ["--set", "agent.learning_rate=1e-2", "--set", "agent.entropy_cost=0.1", "--seed", "1"];
    let alone = said(folder, &[&SHORT[..], &set, &["--run-dir", "alone"]].concat());
    assert_eq!(run.map(|run| &run["mean_return"]), Some(&alone["mean_return"]));
    let config = |run: &str| {
        let text = fs::read_to_string(folder.join(run).join("config.toml")).expect("it is there");
        let table: toml::Table = text.parse().expect("TOML");
        (
            table["agent"].clone(),
            table["train"].clone(),
            table["anakin"].clone(),
            table["xla"].clone(),
        )
    };
    assert_eq!(config(own), config("alone"));
}

#[test]
fn sweeps_of_nothing_that_can_be_swept_are_mistakes() {
    for (arguments, expected) in [
        (&["agent.learning_rat=1e-3,1e-2"][..], "did you mean `learning_rate`"),
        (&["agent.learning_rate=log:0..1:3"], "two numbers greater than 0"),
        (&["agent.learning_rate=1e-3"], "a sweep needs a setting with several values"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sweep = podracer(&["sweep", "cartpole-ppo"]);
        arguments.iter().for_each(|set| {
            sweep.args(["--set", set]);
        });
        let output = sweep.current_dir(&folder).assert().code(2).get_output().clone();
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{said}");
        assert!(!folder.path().join("runs").exists(), "nothing was begun");
    }
}

#[test]
fn runs_that_fail_are_reported_and_the_table_has_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = podracer(&[&SHORT[..], &["--seeds", "2"]].concat());
    let output = command
        .args(["--set", "agent.learning_rate=1e38", "--set", "agent.max_gradient_norm=1e30"])
        .current_dir(&folder)
        .assert()
        .code(1)
        .get_output()
        .clone();
    let (table, warned) = (text(&output.stdout), text(&output.stderr));
    for seed in ["0", "1"] {
        assert!(warned.contains(&format!("seed-{seed}: ")), "{warned}");
        let failed = format!("failed: seed-{seed}: ");
        let row = table.lines().find(|line| line.starts_with(&failed)).expect("a row");
        assert!(row.contains("not finite"), "{row}");
    }
    assert!(table.contains("run directories: runs/cartpole-ppo-2seeds-1"), "{table}");
}

/// Two calls after a run had failed, the others failed as well.
#[test]
fn other_runs_continue_after_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sweep = podracer(&["sweep"]);
    sweep.args(&SHORT[1..8]).args(["--steps", "1280", "--seeds", "2", "--json"]);
    sweep.args(["--set", "agent.learning_rate=1e38,1e-3", "--set", "agent.max_gradient_norm=1e30"]);
    let output = sweep.current_dir(&folder).assert().code(1).get_output().clone();
    let all = json(&output.stdout);
    let failed = all["failed"].as_array().expect("those that failed");
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed.iter().all(|one| one["run"].to_string().contains("learning_rate=1e38")));
    let [group] = &all["settings"].as_array().expect("settings")[..] else { panic!("{all}") };
    assert_eq!(
        (&group["settings"]["agent.learning_rate"], &group["runs"]),
        (&"1e-3".into(), &2.into())
    );
    assert!(all["runs"].as_array().expect("runs").iter().all(|run| run["env_steps"] == 1280));
}

#[test]
fn what_is_no_population_is_a_mistake() {
    for (arguments, expected) in [
        (&["train", "cartpole-ppo", "--seeds", "0"][..], "expected at least 1 seed"),
        (
            &["train", "cartpole-ppo", "--seeds", "2", "--metrics", "127.0.0.1:0"],
            "--metrics is for one run",
        ),
        (
            &[
                "sweep",
                "cartpole-ppo",
                "--set",
                "agent.learning_rate=1e-4,1e-3,1e-2",
                "--exploit-every",
                "2",
                "--devices",
                "2",
            ],
            "3 members do not divide over 2 devices",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let output = podracer(arguments).current_dir(&folder).assert().code(2).get_output().clone();
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{said}");
        assert!(!folder.path().join("runs").exists(), "nothing was begun");
    }
}

/// A short sweep over a setting that decides the program.
fn over_epochs(more: &[&str]) -> assert_cmd::Command {
    let mut sweep = podracer(&["sweep"]);
    sweep.args(&SHORT[1..]).args(["--set", "agent.epochs=1,2", "--seeds", "2"]).args(more);
    sweep
}

/// Such a sweep was refused.
#[test]
fn runs_that_are_programs_of_their_own_are_trained_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = over_epochs(&["--processes", "2", "--run-dir", "s", "--json"])
        .current_dir(&folder)
        .assert()
        .success()
        .get_output()
        .clone();
    let said = text(&all.stderr);
    assert!(said.contains("agent.epochs: it is not a number that a program takes"), "{said}");
    let all = json(&all.stdout);
    let runs = all["runs"].as_array().expect("runs");
    assert_eq!((runs.len(), all["settings"].as_array().map(Vec::len)), (4, Some(2)));
    assert!(runs.iter().all(|run| run["env_steps"] == 512), "{all}");

    // Completed runs stay; missing or unfinished runs are trained again, with the same result.
    let before = |run: &str| {
        let path = folder.path().join("s").join(run).join("result.json");
        fs::metadata(path).and_then(|file| file.modified()).expect("a result")
    };
    let (kept, gone) = ("agent.epochs=1,seed=0", "agent.epochs=2,seed=1");
    let at = before(kept);
    fs::remove_file(folder.path().join("s").join(gone).join("result.json")).expect("it is there");
    fs::remove_dir_all(folder.path().join("s").join(gone).join("checkpoints"))
        .expect("it is there");
    fs::remove_dir_all(folder.path().join("s/agent.epochs=2,seed=0")).expect("it is there");
    let again = over_epochs(&["--run-dir", "s", "--json"])
        .current_dir(&folder)
        .assert()
        .success()
        .get_output()
        .clone();
    let again = json(&again.stdout);
    assert_eq!(before(kept), at);
    let sums = |all: &Value| -> Vec<Value> {
        all["runs"]
            .as_array()
            .expect("runs")
            .iter()
            .map(|run| run["params_sha256"].clone())
            .collect()
    };
    assert_eq!(sums(&again), sums(&all));
    assert_eq!(again["settings"], all["settings"]);

    let other = over_epochs(&["--run-dir", "s", "--seed", "5"])
        .current_dir(&folder)
        .assert()
        .code(2)
        .get_output()
        .clone();
    let said = text(&other.stderr);
    assert!(said.contains("has the runs of another command"), "{said}");
}

#[test]
fn seeds_of_a_loop_with_environments_on_the_host_are_trained_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = [
        "--set=sebulba.environments=2",
        "--set=sebulba.unroll=8",
        "--set=sebulba.iterations_per_call=2",
        "--set=agent.minibatches=2",
    ];
    let several =
        ["train", "cartpole-sebulba-ppo", "--seeds", "2", "--steps", "128", "--run-dir", "two"];
    let all = said(folder.path(), &[&several[..], &small].concat());
    assert_eq!(all["runs"].as_array().map(Vec::len), Some(2), "{all}");

    // Every run uses the named devices.
    let named = ["--actors", "0", "--learners", "0", "--run-dir", "named"];
    said(folder.path(), &[&several[..6], &small, &named].concat());
    let config =
        fs::read_to_string(folder.path().join("named/seed-1/config.toml")).expect("it is there");
    let table: toml::Table = config.parse().expect("TOML");
    assert_eq!(table["sebulba"]["learners"], toml::Value::from(vec![0]));
}

/// A run that fails leaves the others alone.
#[test]
fn a_run_that_fails_by_itself_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sweep = podracer(&["sweep"]);
    sweep.args(&SHORT[1..]).args([
        "--set",
        "agent.epochs=1,2",
        "--set",
        "agent.learning_rate=1e38",
        "--set",
        "agent.max_gradient_norm=1e30",
    ]);
    let output = sweep.current_dir(&folder).assert().code(1).get_output().clone();
    let table = text(&output.stdout);
    assert!(table.contains("failed: agent.epochs=1,seed=0: "), "{table}");
    assert!(table.contains("not finite"), "{table}");
}

/// A script stands in for `sbatch`, and writes down its input.
#[test]
fn an_array_job_has_a_task_for_each_run() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = fs::canonicalize(folder.path()).expect("it is there");
    let programs = folder.join("programs");
    fs::create_dir(&programs).expect("a folder");
    let sbatch = programs.join("sbatch");
    fs::write(&sbatch, "#!/bin/sh\necho \"$@\" > submitted\n").expect("a file");
    fs::set_permissions(&sbatch, fs::Permissions::from_mode(0o755)).expect("a file");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let launch = ["--launch", "slurm", "--submit", "--processes", "3", "--run-dir", "s"];
    over_epochs(&launch).current_dir(&folder).env("PATH", path).assert().success();
    let script = folder.join("s/sweep.sbatch");
    let submitted = fs::read_to_string(folder.join("submitted")).expect("sbatch was called");
    assert_eq!(submitted.trim(), script.display().to_string());
    let text = fs::read_to_string(&script).expect("a script");
    let here = folder.display().to_string();
    let program = env!("CARGO_BIN_EXE_podracer");
    let expected = format!(
        "#!/bin/bash\n\
         # A task for each of 4 runs. Afterwards the same `sweep` with --run-dir, without --launch, prints the table.\n\
         #SBATCH --job-name=cartpole-ppo-sweep\n\
         #SBATCH --array=0-3%3\n\
         #SBATCH --output={here}/s/task-%a.out\n\
         set -euo pipefail\n\
         cd '{here}'\n\
         exec '{program}' 'sweep' 'cartpole-ppo' '--steps=512' '--set=anakin.unroll=32' '--set=anakin.iterations_per_call=2' \
         '--set=agent.minibatches=2' '--set=agent.epochs=1,2' '--seeds=2' --run-dir '{here}/s' --only \"$SLURM_ARRAY_TASK_ID\"\n"
    );
    assert_eq!(text, expected);

    // The tasks, as Slurm would run two of them, and then the rest.
    for task in ["3", "0"] {
        let mut bash = std::process::Command::new("bash");
        let ended = bash.arg(&script).env("SLURM_ARRAY_TASK_ID", task).status().expect("it runs");
        assert!(ended.success());
    }
    assert!(folder.join("s/agent.epochs=2,seed=1/result.json").is_file());
    assert!(!folder.join("s/agent.epochs=1,seed=1").exists());
    let all = over_epochs(&["--run-dir", "s", "--json"])
        .current_dir(&folder)
        .assert()
        .success()
        .get_output()
        .clone();
    assert_eq!(json(&all.stdout)["runs"].as_array().map(Vec::len), Some(4));
    over_epochs(&["--submit"]).current_dir(&folder).assert().code(2);
}

/// Ctrl-C of a terminal goes to a whole group of processes, and the sweep passes it on: a run that heard it twice would end without a
/// checkpoint.
#[test]
fn a_sweep_that_is_stopped_leaves_checkpoints() {
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().expect("a folder");
    let sweep = |steps: &str| {
        let mut sweep = super::command(&["sweep"]);
        sweep.args(&SHORT[1..8]).args([
            "--steps",
            steps,
            "--set",
            "agent.epochs=1,2",
            "--run-dir",
            "s",
            "--json",
        ]);
        sweep.current_dir(&folder).process_group(0);
        sweep
    };
    let child = sweep("100M").stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let run = folder.path().join("s/agent.epochs=1,seed=0");
    let calls = || fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    super::signals::wait_for("a third call", || calls().lines().count() >= 3);
    let group = format!("-{}", child.id());
    let killed = std::process::Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(killed.expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let all = json(&output.stdout);
    assert_eq!(
        (&all["interrupted"], all["runs"].as_array().map(Vec::len)),
        (&true.into(), Some(1))
    );
    assert!(fs::read_dir(run.join("checkpoints")).expect("checkpoints").next().is_some());
    assert!(!folder.path().join("s/agent.epochs=2,seed=0").exists());
}

/// The worst runs continue with the agents and settings of the best; metrics and checkpoints show
/// it.
#[test]
fn a_sweep_exploits_its_best_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rates = ["--set", "agent.learning_rate=1e-4,1e-3,1e-2,1e-1", "--exploit-every", "2"];
    let sweep = [&["sweep"], &SHORT[1..], &rates].concat();
    let all = said(folder, &[&sweep[..], &["--run-dir", "sweep"]].concat());
    assert_eq!(all["runs"].as_array().map(Vec::len), Some(4));
    let (mut changed, mut rates) = (Vec::new(), BTreeMap::new());
    for rate in ["1e-4", "1e-3", "1e-2", "1e-1"] {
        let run = format!("sweep/agent.learning_rate={rate},seed=0");
        let lines = fs::read_to_string(folder.join(&run).join("metrics.jsonl")).expect("metrics");
        let last = json(lines.lines().last().expect("a line").as_bytes());
        let now = last["agent.learning_rate"].as_f64().expect("the present rate");
        let before: f64 = rate.parse().expect("a rate");
        if (now / before - 1.0).abs() > 1e-5 {
            changed.push(run.clone());
        }
        rates.insert(run, now);
    }
    assert!(!changed.is_empty(), "no run took over from another");
    // A run of its own again, it keeps them.
    for steps in ["768", "1024"] {
        said(folder, &["resume", &changed[0], "--steps", steps]);
    }
    let latest =
        podracer_runtime::Checkpoints::new(folder.join(&changed[0]).join("checkpoints"), 2);
    let found = latest.latest().expect("a checkpoint");
    let kept = found.checkpoint.array("exploited.agent.learning_rate").expect("the rate");
    let kept: f64 = kept.item().expect("a number");
    assert!((kept / rates[&changed[0]] - 1.0).abs() < 1e-6, "{kept}");

    let refused = [&sweep[..], &["--set", "agent.epochs=1,2"]].concat();
    let refused = podracer(&refused).current_dir(folder).assert().code(2);
    let told = text(&refused.get_output().stderr);
    assert!(told.contains("--exploit-every is for runs of one program"), "{told}");
}

/// A population that was ended resumes with the same command, and ends with the same table.
#[test]
fn a_population_goes_on_with_the_same_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rates = ["--set", "agent.learning_rate=1e-3,1e-2", "--run-dir", "sweep"];
    let sweep = [&["sweep"], &SHORT[1..], &rates].concat();
    let whole = said(folder, &sweep);
    fs::remove_dir_all(folder.join("sweep/agent.learning_rate=1e-2,seed=0")).expect("a run");
    let again = said(folder, &sweep);
    let returns = |all: &Value| {
        let settings = all["settings"].as_array().expect("settings").iter();
        settings.map(|row| row["mean_return"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(returns(&again), returns(&whole));
    let other = [&["sweep"], &SHORT[1..], &rates, &["--seeds", "2"]].concat();
    let refused = podracer(&other).current_dir(folder).assert().code(2);
    let told = text(&refused.get_output().stderr);
    assert!(told.contains("has the runs of another command"), "{told}");
}

/// Runs of several programs have one table, equal to their joint result.
#[test]
fn a_population_is_trained_part_by_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let seeds = |more: &[&str]| said(folder, &[&SHORT[..], &["--seeds", "3"], more].concat());
    let together = seeds(&["--run-dir", "all", "--devices", "1"]);
    let parts = seeds(&["--run-dir", "parts", "--devices", "1", "--together", "2"]);
    let of_runs = |all: &Value, key: &str| {
        let runs = all["runs"].as_array().expect("runs").iter();
        runs.map(|run| run[key].clone()).collect::<Vec<_>>()
    };
    for key in ["seed", "env_steps", "episodes", "mean_return"] {
        assert_eq!(of_runs(&together, key), of_runs(&parts, key), "{key}");
    }
}
