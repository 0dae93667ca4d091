//! `podracer report`: one page of runs.

use std::fs;

use serde_json::Value;

use super::{podracer, text};

/// The settings of a training of 4 iterations.
const SMALL: [&str; 4] = [
    "--set=anakin.unroll=32",
    "--set=anakin.iterations_per_call=2",
    "--set=agent.minibatches=2",
    "--steps=512",
];

#[test]
fn a_page_says_of_runs_what_the_commands_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = podracer(arguments).current_dir(&folder).assert().success();
        text(&output.get_output().stdout)
    };
    let rates = ["--set=agent.learning_rate=1e-3,1e-2", "--set=agent.entropy_cost=0,0.5"];
    let small = &SMALL[..];
    run(&[&["sweep", "cartpole-ppo"], small, &rates, &["--seeds=2", "--run-dir=s"]].concat());
    let named = ["train", "cartpole-ppo", "--run-dir=<b>", "--set=train.record_every=4"];
    run(&[&named, small].concat());
    let listed: Value = serde_json::from_str(&run(&["runs", "--in=s", "--json"])).expect("JSON");
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 8);
    let names: Vec<&str> = listed.iter().filter_map(|one| one["run"].as_str()).collect();
    assert_eq!(run(&[&["report"], &names[..]].concat()), "report.html\n");
    let page = fs::read_to_string(folder.path().join("report.html")).expect("a page");
    for one in listed {
        let (run, seed) = (one["run"].as_str().expect("a run"), &one["seed"]);
        let mean = one["mean_return"].as_f64().expect("a mean");
        let row = format!(
            "<tr><td>{run}</td><td class=\"number\">{seed}</td><td class=\"number\">512</td><td class=\"number\">{mean:.2}</td>"
        );
        assert!(page.contains(&row), "{row}");
        let result = fs::read_to_string(folder.path().join(run).join("result.json"));
        let result: Value = serde_json::from_str(&result.expect("a result")).expect("JSON");
        assert!(page.contains(&result["params_sha256"].as_str().expect("a hash")[..16]));
    }
    // Of both settings, with a colour of its own for each mean.
    assert!(page.contains(
        "Mean return by <code>agent.entropy_cost</code> and <code>agent.learning_rate</code>"
    ));
    assert_eq!(page.matches("<td style=\"background: rgb(").count(), 4);
    assert_eq!(page.matches("<svg").count(), 4, "returns and three losses");
    assert_eq!(page.matches("<details>").count(), 4, "a configuration for each setting");

    run(&["report", "<b>", "-o", "one.html"]);
    let page = fs::read_to_string(folder.path().join("one.html")).expect("a page");
    assert!(page.len() < 2_000_000 && page.contains("src=\"data:image/gif;base64,R0lGOD"));
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"), "names are text");
    // Nothing is fetched: the only addresses are in SVG's name.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http"), "{addresses}");

    // A folder of runs stands for its runs.
    run(&["report", "s", "-o", "all.html"]);
    let all = fs::read_to_string(folder.path().join("all.html")).expect("a page");
    assert_eq!(all.matches("<details>").count(), 4, "a configuration for each setting");
    fs::create_dir(folder.path().join("none")).expect("a folder");
    let wrong = podracer(&["report", "none"]).current_dir(&folder).assert().code(2);
    let said = text(&wrong.get_output().stderr);
    assert!(said.contains("`none` holds no run"), "{said}");
}
