//! `podracer check` and `podracer ir emit` of loops that are several programs.

use serde_json::Value;

use crate::{QUICK, podracer, text};
use podracer_test_support::skip::skip;

#[test]
fn actors_and_learners_are_compiled_for_a_machine_that_is_not_there() {
    let check = |more: &[&str]| {
        let target = ["check", "cartpole-sebulba-ppo", "--target=tpu:v5e:2x4", "--json"];
        // XLA's options are for a CPU: the TPU's plugin does not know them.
        podracer(&target)
            .env_remove(QUICK.0)
            .arg("--set=agent.hidden=[8]")
            .args(more)
            .output()
            .expect("the program runs")
    };
    let output = check(&["--set=sebulba.learners=[4,5,6,7]"]);
    let said = text(&output.stderr);
    if said.contains("podracer plugins install tpu") {
        skip("no plugin `tpu`: `podracer plugins install tpu`");
        return;
    }
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    assert_eq!(report["actors"], Value::from(vec![0, 1, 2, 3]));
    assert_eq!(report["learners"], Value::from(vec![4, 5, 6, 7]));
    assert_eq!(report["modules"], 3);
    let programs = report["programs"].as_array().expect("programs");
    for (program, (name, replicas)) in
        programs.iter().zip([("act", 1), ("finish", 1), ("learn", 4)])
    {
        assert_eq!(program["program"], name);
        assert_eq!(program["replicas"], replicas);
        assert_eq!(program["host_transfers"], 0);
        assert_eq!(program["all_reduces"].as_u64() > Some(0), name == "learn");
        let bytes = |key: &str| program[key].as_i64().expect("bytes");
        assert!(bytes("bytes_per_device") > bytes("peak_bytes"));
        assert!(bytes("peak_bytes") > 0);
    }
    // The default split of eight devices is 2 and 6; as many of the 6 learn as 8 environments
    // divide over.
    let output = check(&[]);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("4 of 6 devices learn"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    assert_eq!(report["learners"], Value::from(vec![2, 3, 4, 5]));
    let output = check(&["--set=sebulba.environments=12"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("6 of the 8 devices of v5e:2x4 cannot reduce among themselves")
            && said.contains("--set sebulba.learners=[...] says which devices do what"),
        "{said}"
    );
}

#[test]
fn the_update_that_is_emitted_is_that_of_all_learners() {
    let emitted = |devices: &str| {
        let output =
            podracer(&["ir", "emit", "cartpole-sebulba-ppo", "--stage=stablehlo", devices])
                .output()
                .expect("the program runs");
        (text(&output.stdout), text(&output.stderr))
    };
    let (alone, said) = emitted("--devices=2");
    assert!(alone.contains("// learn") && said.is_empty(), "{said}");
    assert!(!alone.contains("stablehlo.all_reduce"));
    let (shared, said) = emitted("--devices=4");
    assert!(said.contains("2 of 3 devices learn"), "{said}");
    assert!(shared.contains("stablehlo.all_reduce"));
}
