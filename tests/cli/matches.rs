//! Games of a trained agent against fixed opponents.

use serde_json::Value;

use super::{podracer, text};

fn json(arguments: &[&str]) -> Value {
    let assert = podracer(arguments).assert().success();
    serde_json::from_str(&text(&assert.get_output().stdout)).expect("a JSON object")
}

/// A tiny agent by self-play, with games at the end of its training.
#[test]
fn an_agent_is_measured_against_fixed_opponents() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let run = run.to_str().expect("UTF-8");
    let shape = ["--set=anakin.environments=4", "--set=anakin.unroll=4"];
    let agent =
        ["--set=agent.simulations=2", "--set=agent.hidden=[4]", "--set=agent.gradient_steps=1"];
    let train = ["train", "tictactoe-alphazero", "--steps=80", "--json", "--run-dir", run];
    let result = json(&[&train[..], &shape, &agent].concat());
    for opponent in ["random", "perfect"] {
        for order in ["first", "second"] {
            let games = ["won", "drawn", "lost"].map(|what| {
                let name = format!("{what}_against_{opponent}_moving_{order}");
                result["evaluation"][name].as_f64().expect("a number of games")
            });
            assert_eq!(games.iter().sum::<f64>(), 500.0, "{result}");
            assert!(opponent == "random" || games[0] == 0.0, "nobody beats it: {result}");
        }
    }

    let played = json(&["eval", run, "--against=perfect", "--episodes=25", "--json"]);
    let games = |side: &str| {
        ["won", "drawn", "lost"].map(|what| played[side][what].as_u64().expect("a number of games"))
    };
    let [first, second] = ["moving_first", "moving_second"].map(games);
    assert_eq!((first.iter().sum::<u64>(), second.iter().sum::<u64>()), (13, 12), "{played}");
    assert_eq!((first[0], second[0]), (0, 0), "nobody beats it: {played}");
    let mean = -((first[2] + second[2]) as f64) / 25.0;
    let told = played["episode_return"]["mean"].as_f64().expect("a mean");
    assert!((told - mean).abs() < 1e-6, "{played}");
    let most = played["episode_length"]["max"].as_f64().expect("a length");
    assert!((3.0..=5.0).contains(&most), "moves of the agent: {played}");
    assert_eq!(played["opponent"], "perfect");

    // The agent has two simulations.
    let shown = podracer(&["eval", run, "--against=mcts", "--episodes=4"]).assert().success();
    let shown = text(&shown.get_output().stdout);
    assert!(shown.contains("against mcts:2, moving second: won "), "{shown}");

    let wrong = podracer(&["eval", run, "--against=nobody"]).assert().code(2);
    let wrong = text(&wrong.get_output().stderr);
    let expected =
        "there is no opponent `nobody`: expected `random`, `careful`, `perfect`, or `mcts:N`";
    assert!(wrong.contains(expected), "{wrong}");
}
