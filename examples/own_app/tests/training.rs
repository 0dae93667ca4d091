//! A short training leaves a run that can be played.

use std::process::Command;

#[test]
fn a_short_training_leaves_a_run_that_plays() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_own_app"));
        command.args(arguments.split(' ')).current_dir(folder.path());
        let output = command.output().expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {error}");
        String::from_utf8(output.stdout).expect("what is printed is UTF-8")
    };
    let printed = run(
        "train docking-ppo --steps=4096 --set=anakin.iterations_per_call=1 --run-dir=run --json",
    );
    let result: serde_json::Value = serde_json::from_str(&printed).expect("a JSON object");
    assert_eq!(result["env_steps"], 4096);
    // A step pays 1 at most, and an episode has 50.
    let mean = result["mean_return"].as_f64().expect("episodes have ended");
    assert!((0.0..=50.0).contains(&mean), "{result}");
    assert!(run("eval run --episodes=3").contains("docking-ppo"));
}
