//! Numbers that are no longer finite: a run that makes them ends with an error, and its results are
//! never used silently.

use std::path::Path;

use super::resume::{has_checkpoint, result, resume, train};
use super::{command, text};

/// A command's standard error, and its exit code.
fn said(arguments: &[impl AsRef<std::ffi::OsStr>]) -> (String, Option<i32>) {
    let output = command(arguments).output().expect("the program runs");
    (text(&output.stderr), output.status.code())
}

/// Catch with a learning rate that no network bears, and checkpoints after every call.
fn diverge(run: &Path, more: &[&str]) -> (String, Option<i32>) {
    let experiment = [
        "catch-ppo",
        "--steps=16384",
        "--set=agent.hidden=[8]",
        "--set=agent.learning_rate=1e30",
        "--set=train.checkpoint_every=1",
    ];
    said(&train(&[&experiment[..], more].concat(), run))
}

#[test]
fn a_run_of_nan_ends_with_an_error_and_keeps_no_checkpoint_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let (said, code) = diverge(&run, &[]);
    assert_eq!(code, Some(1), "{said}");
    for part in [
        " is not finite in iteration ",
        " parameters are not finite, and the run ends (",
        "explain ",
        "train.on_nan=",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!has_checkpoint(&run) && !run.join("result.json").exists());
}

/// An experiment of each kind of agent, with the settings of its learning rates and those that make it small. Agents with priorities, and
/// those that search, make and check numbers of their networks that may be NaN. The first two are those that always run.
const AGENTS: [(&str, &[&str], &[&str]); 12] = [
    ("cartpole-dqn", &["learning_rate"], &["prioritized=true", "minimum=64", "batch=16"]),
    (
        "catch-muzero",
        &["learning_rate"],
        &[
            "prioritized=true",
            "simulations=4",
            "minimum=64",
            "batch=16",
            "embedding=4",
            "head_hidden=[8]",
        ],
    ),
    ("cartpole-rainbow", &["learning_rate"], &["minimum=64", "batch=16"]),
    (
        "memory-r2d2",
        &["learning_rate"],
        &["minimum=64", "batch=4", "sequence_length=8", "burn_in=2", "period=8", "lstm=4"],
    ),
    ("deep-sea-bootstrapped", &["learning_rate"], &["minimum=64", "batch=16"]),
    ("pendulum-sac", &["actor_learning_rate", "critic_learning_rate"], &["minimum=64", "batch=16"]),
    ("pendulum-td3", &["actor_learning_rate", "critic_learning_rate"], &["minimum=64", "batch=16"]),
    ("tictactoe-alphazero", &["learning_rate"], &["simulations=4", "gradient_steps=2"]),
    ("cartpole-a2c", &["learning_rate"], &[]),
    ("cartpole-pqn", &["learning_rate"], &["minibatches=2"]),
    ("memory-impala", &["learning_rate"], &["lstm=4"]),
    ("catch-online", &["learning_rate"], &[]),
];

#[test]
fn the_reaction_to_numbers_that_are_not_finite_is_the_same_for_every_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    // All of them take minutes of a core.
    let count = if std::env::var_os("PODRACER_ALL").is_some() { AGENTS.len() } else { 2 };
    for (experiment, rates, small) in &AGENTS[..count] {
        let agent = small.iter().map(|set| format!("--set=agent.{set}"));
        let rates = rates.iter().map(|rate| format!("--set=agent.{rate}=1e30"));
        let sizes = ["environments=8", "unroll=8", "iterations_per_call=4"];
        let sizes = sizes.iter().map(|set| format!("--set=anakin.{set}"));
        let small: Vec<String> = agent.chain(rates).chain(sizes).collect();
        let react = |reaction: &str| {
            let on_nan = format!("--set=train.on_nan=\"{reaction}\"");
            let mut arguments =
                vec![*experiment, "--steps=2048", "--set=agent.hidden=[8]", &on_nan];
            arguments.extend(small.iter().map(String::as_str));
            said(&train(&arguments, &folder.path().join(format!("{experiment}-{reaction}"))))
        };
        let (said, code) = react("stop");
        assert_eq!(code, Some(1), "{experiment}: {said}");
        for part in [" parameters are not finite, and the run ends (", "explain ", "train.on_nan="]
        {
            assert!(said.contains(part), "{experiment}: {part}: {said}");
        }
        let (said, code) = react("warn");
        assert_eq!(code, Some(0), "{experiment}: {said}");
        assert_eq!(said.matches(" parameters are not finite").count(), 1, "{experiment}: {said}");
        let (said, code) = react("ignore");
        assert_eq!(code, Some(0), "{experiment}: {said}");
        assert!(!said.contains("not finite"), "{experiment}: {said}");
    }
}

#[test]
fn parameters_that_are_not_finite_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let (trained, code) = diverge(&run, &["--set=train.on_nan=\"warn\""]);
    assert_eq!(code, Some(0), "{trained}");
    assert_eq!(trained.matches(" parameters are not finite").count(), 1, "{trained}");
    let folder = folder.path().join("export").display().to_string();
    let run = run.display().to_string();
    for command in [
        vec!["eval", &run, "--episodes=1"],
        vec!["export", "catch-ppo", "--set=agent.hidden=[8]", "--run", &run, "--output", &folder],
    ] {
        let (refused, code) = said(&command);
        assert_eq!(code, Some(2), "{refused}");
        assert!(
            refused.contains(" parameters are not finite; --allow-nan takes them"),
            "{refused}"
        );
        let (allowed, code) = said(&[command, vec!["--allow-nan"]].concat());
        assert_eq!(code, Some(0), "{allowed}");
    }
    let config = Path::new(&run).join("config.toml");
    let settings = std::fs::read_to_string(&config).expect("the settings");
    std::fs::write(&config, settings.replace("on_nan = \"warn\"", "on_nan = \"stop\""))
        .expect("a file");
    let (refused, code) = said(&resume(run.as_ref()));
    assert_eq!(code, Some(1), "{refused}");
    assert!(refused.contains("in the checkpoint: "), "{refused}");
}

/// Output of `explain` for a run that was trained with these settings and has ended with an error.
fn explained(experiment: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let (trained, code) = said(&train(experiment, &run));
    assert_eq!(code, Some(1), "{trained}");
    let (_, advice) = trained.split_once("podracer explain ").expect("the command is named");
    assert!(advice.starts_with(&run.display().to_string()), "{trained}");
    let output =
        command(&["explain".as_ref(), run.as_os_str()]).output().expect("the program runs");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    (out, err)
}

#[test]
fn the_line_at_which_numbers_stopped_being_finite_is_named() {
    let (out, err) = explained(&[
        "catch-ppo",
        "--steps=4096",
        "--set=agent.hidden=[8]",
        "--set=agent.learning_rate=1e30",
        "--set=anakin.environments=16",
        "--set=anakin.unroll=8",
        "--set=anakin.iterations_per_call=2",
    ]);
    for part in [
        "catch-ppo: `",
        "is not finite after iteration ",
        "The first NaN that it depends on, in the agent's learning:\n",
        " gave NaN",
        "  --> stdlib/src/",
        "  in scan --> stdlib/src/agents/ppo/loss.rs:",
        "An infinity that was given to it, in the agent's learning:\n",
        " gave infinity",
    ] {
        assert!(out.contains(part), "{part}: {out}{err}");
    }
    assert!(err.contains("making the run's iterations again, from its beginning"), "{err}");
}

#[test]
fn the_line_of_a_run_with_actors_and_learners_is_named() {
    let (out, err) = explained(&[
        "cartpole-sebulba-ppo",
        "--steps=4096",
        "--set=agent.hidden=[8]",
        "--set=agent.learning_rate=1e30",
        "--actors=0",
        "--learners=1,2",
        "--set=sebulba.environments=4",
        "--set=sebulba.unroll=8",
        "--set=sebulba.iterations_per_call=2",
        "--set=train.checkpoint_every=2",
    ]);
    for part in ["that it depends on, in the agent's learning:\n", "  --> stdlib/src/"] {
        assert!(out.contains(part), "{part}: {out}{err}");
    }
}

#[test]
fn a_run_that_is_fine_has_nothing_to_explain_and_free_running_is_not_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, experiment, loop_of, expected, code) in [
        ("fine", "catch-ppo", "anakin", "there is nothing to explain", 1),
        ("free", "cartpole-sebulba-ppo", "sebulba", "cannot be made again", 2),
    ] {
        let run = folder.path().join(name);
        let [environments, unroll] =
            ["environments=4", "unroll=4"].map(|set| format!("--set={loop_of}.{set}"));
        let mut settings =
            vec![experiment, "--steps=256", "--set=agent.hidden=[8]", &environments, &unroll];
        if name == "free" {
            settings.extend([
                "--set=sebulba.schedule=\"free-running\"",
                "--actors=0",
                "--learners=1",
            ]);
        }
        result(&mut command(&train(&settings, &run)));
        // From the beginning: the checkpoint at the end has nothing after it.
        std::fs::remove_dir_all(run.join("checkpoints")).expect("they are there");
        let (err, got) = said(&["explain".as_ref(), run.as_os_str()]);
        assert_eq!(got, Some(code), "{err}");
        assert!(err.contains(expected), "{err}");
    }
}
