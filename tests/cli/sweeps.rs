//! Reports of the runs of a sweep: settings, results and parameters.

use super::{podracer, text};

/// The error was `agent.sigma0: invalid type: string "column 0", expected f64`.
#[test]
fn a_swept_f64_is_answered_with_column_0() {
    let folder = tempfile::tempdir().expect("a folder");
    for (experiment, setting) in
        [("cartpole-dqn", "agent.sigma0=0.1,0.2"), ("cartpole-ppo", "agent.epochs=1,2")]
    {
        let sweep = ["sweep", experiment, "--set", setting, "--exploit-every=2", "--run-dir=s"];
        let refused = podracer(&sweep).current_dir(&folder).assert().code(2);
        let said = text(&refused.get_output().stderr);
        let key = setting.split('=').next().expect("a key");
        let expected = format!("{key}: it is not a number that a program takes as data");
        assert!(said.contains(&expected) && said.contains("has the type `Number`"), "{said}");
        assert!(!said.contains("column"), "{said}");
    }
}
