//! Agents learn: short trainings with returns far above an untrained agent's. `make learn` has the
//! full trainings, over seeds and compared with published returns.
//!
//! The seeds are fixed, so that a machine repeats a result bit-identically. Other processors round
//! differently and train a different agent, as another seed does. The required returns are below
//! the least of ten seeds, by a tenth of the distance from an untrained agent. Trainings of a
//! minute or more were run with only four or five seeds, and have a larger margin.

use serde_json::Value;

use super::{QUICK, podracer, text};
use podracer_test_support::skip::skip_heavy;

/// Reason to leave out agents with gradient steps that other tests compare with a reference's.
const HALF_A_MINUTE: &str = "half a minute of a core each";

/// Trains an experiment, shortened, on two devices where there are as many, and returns the result.
fn trained(experiment: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = podracer(&["train", experiment, "--seed=1", "--json"]);
    // Training takes longer than compiling here.
    command.env_remove(QUICK.0);
    let assert = command.args(more).current_dir(&folder).assert().success();
    let printed = text(&assert.get_output().stdout);
    serde_json::from_str(printed.lines().last().unwrap_or_default()).expect("a JSON object")
}

/// Checks that the mean return of the last episodes is at least `wanted`.
#[track_caller]
fn check(result: &Value, wanted: f64) {
    let mean = result["mean_return"].as_f64();
    assert!(
        mean.is_some_and(|mean| mean >= wanted),
        "the return is to be {wanted} or more: {result}"
    );
}

/// An agent that does not learn keeps the pole up for about 22 steps, and one that pushes to one side for 9.
#[test]
fn ppo_learns_cartpole() {
    check(&trained("cartpole-ppo", &["--steps=400000"]), 420.0);
}

/// As [`ppo_learns_cartpole`]. A twentieth of the actions are random at the end, too.
#[test]
fn dqn_learns_cartpole() {
    check(&trained("cartpole-dqn", &["--steps=250000"]), 230.0);
}

/// Random actions find the treasure of this sea once in 1,024 episodes, and there are 800 episodes.
/// A network that has found it repeats it, and a network that has not pays for each step to the
/// right.
#[test]
fn bootstrapped_dqn_finds_the_treasure() {
    let more = ["--steps=8000", "--set=environment.size=10", "--set=agent.ensemble=8"];
    check(&trained("deep-sea-bootstrapped", &more), 0.9);
}

/// As [`ppo_learns_cartpole`].
#[test]
fn ppo_learns_cartpole_on_the_host() {
    check(&trained("cartpole-sebulba-ppo", &["--steps=200000"]), 250.0);
}

/// As [`ppo_learns_cartpole`].
#[test]
fn a2c_learns_cartpole() {
    check(&trained("cartpole-a2c", &["--steps=200000"]), 380.0);
}

/// As [`ppo_learns_cartpole`]. One action in five is random.
#[test]
fn pqn_learns_cartpole() {
    if skip_heavy(HALF_A_MINUTE) {
        return;
    }
    check(&trained("cartpole-pqn", &["--steps=200000"]), 250.0);
}

/// Without learning, or without a memory, every other answer is right, and the mean is 0.
#[test]
fn ppo_learns_to_remember() {
    check(&trained("memory-ppo", &["--steps=100000"]), 0.87);
}

/// As [`ppo_learns_to_remember`], with a cue three steps ago: with one ten steps ago the time that IMPALA takes varies by seed.
#[test]
fn impala_learns_to_remember() {
    let more = ["--steps=100000", "--set=environment.length=3"];
    check(&trained("memory-impala", &more), 0.89);
}

/// An agent that does not learn, whether it draws actions or keeps one, has about -1200.
#[test]
fn sac_learns_to_swing_up() {
    if skip_heavy(HALF_A_MINUTE) {
        return;
    }
    let more = [
        "--steps=20000",
        "--set=agent.hidden=[32, 32]",
        "--set=agent.batch=64",
        "--set=agent.replay_ratio=64",
    ];
    check(&trained("pendulum-sac", &more), -600.0);
}

/// As [`sac_learns_to_swing_up`].
#[test]
fn td3_learns_to_swing_up() {
    if skip_heavy(HALF_A_MINUTE) {
        return;
    }
    let more = [
        "--steps=20000",
        "--set=agent.hidden=[32, 32]",
        "--set=agent.batch=64",
        "--set=agent.replay_ratio=64",
    ];
    check(&trained("pendulum-td3", &more), -600.0);
}

/// As [`impala_learns_to_remember`]. Random actions of the lanes that explore keep the mean below 0.95.
#[test]
fn r2d2_learns_to_remember() {
    if skip_heavy(HALF_A_MINUTE) {
        return;
    }
    let more = ["--steps=200000", "--set=environment.length=3"];
    check(&trained("memory-r2d2", &more), 0.7);
}

/// An agent that does not learn catches one ball in five, which is a mean of -0.6. Actions are explored.
#[test]
fn muzero_learns_to_catch() {
    check(&trained("catch-muzero", &["--steps=150000"]), 0.5);
}
