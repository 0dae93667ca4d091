//! A trained agent in another implementation of its environment.

use podracer_test_support::skip::skip;
use serde_json::Value;

use super::{podracer, text};

#[test]
fn an_agent_plays_in_gymnasium() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let run = run.to_str().expect("UTF-8");
    let train = ["train", "cartpole-ppo", "--steps=100000", "--set=environment.time_limit=60"];
    podracer(&[&train[..], &["--run-dir", run]].concat()).assert().success();
    let against = podracer(&["eval", run, "--in=gymnasium", "--against=random"]).assert().code(2);
    assert!(text(&against.get_output().stderr).contains("cannot be used with"));
    let set = podracer_plugins::package_set("gymnasium").expect("the set is known");
    if let Err(error) = set.find() {
        return skip(&error.to_string());
    }
    let eval = ["eval", run, "--episodes=10", "--json"];
    let played = |more: &[&str]| -> Value {
        let assert = podracer(&[&eval[..], more].concat()).assert().success();
        serde_json::from_str(&text(&assert.get_output().stdout)).expect("a JSON object")
    };
    let [here, there] = [&[][..], &["--in=gymnasium"]].map(played);
    assert_eq!((&here["in"], &there["in"]), (&Value::Null, &"gymnasium".into()));
    // Gymnasium has the run's time limit, and the poles stay up until then.
    for result in [&here, &there] {
        assert_eq!(result["episode_length"]["max"], 60.0, "{result}");
        assert!(result["episode_return"]["mean"].as_f64() > Some(50.0), "{result}");
    }
}
