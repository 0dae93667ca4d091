//! Searches of 200 random tabular models compared with mctx's, for all policies and Q-transforms.

use super::models::{Search, Settings, SettingsOf};
use super::trees::Trees;
use super::with_ways;
use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_tests::{golden, xla};
use serde_json::{Value, json};

/// Trees of a record that differ from mctx's.
#[derive(Default)]
struct Differences {
    /// A sentence for each tree that mctx finds again when its numbers change in the last places.
    complaints: Vec<String>,
    /// Number of the other searches, with nearly equal actions.
    undecided: usize,
}

/// Runs the searches of a record, its models by `vmap`, with ways of loops or (`launches`) without, and says where they differ from mctx's.
fn differences(record: &Value, launches: bool) -> Result<Differences> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attrs = &record["attrs"];
    let number = |name: &str| attrs[name].as_u64().unwrap_or_default() as usize;
    let (policy, qtransform) = (text(&record["op"]), text(&attrs["qtransform"]));
    let search = Search {
        policy: &policy,
        qtransform: &qtransform,
        actions: number("actions"),
        simulations: number("simulations"),
        max_depth: Some(number("max_depth")).filter(|&depth| depth > 0),
    };
    let list = |name: &str, dtype: &str| {
        let data = &attrs[name];
        let count = data.as_array().map_or(0, Vec::len);
        golden::array(&json!({ "dtype": dtype, "shape": [count], "data": data }))
    };
    let arguments = [
        list("seed", "i32")?,
        list("discount", "f32")?,
        list("levels", "f32")?,
        list("invalid", "bool")?,
    ];
    let models = arguments[0].ty().elements();
    let settings = Spec::<Settings>(SettingsOf {
        seed: i32([models]),
        discount: f32([models]),
        levels: f32([models]),
        invalid: bool([models]),
    });
    let traced = trace(settings, |settings| vmap(settings, |settings| search.run(settings)))?;
    let results = xla::run_quickly(&with_ways(traced.func(), launches), &arguments)?;
    let expected = Trees::of(&record["outputs"])?;
    let got = Trees::new(expected.count, &results)?;
    let unstable: Vec<u64> =
        record["unstable"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let mut found = Differences::default();
    for tree in 0..got.count {
        let unequal = got.unequal(tree, &expected, tree);
        if unequal.is_empty() {
            continue;
        }
        let complaint = format!("{search:?}: tree {tree} differs in {unequal:?}");
        if unstable.contains(&(tree as u64)) {
            eprintln!("{complaint}, where mctx differs from itself");
            found.undecided += 1;
        } else {
            found.complaints.push(complaint);
        }
    }
    Ok(found)
}

fn check(policy: &str, qtransform: &str) {
    let records = golden::records("mctx.json").expect("the file is sound").expect("it is there");
    let chosen =
        |record: &&Value| record["op"] == policy && record["attrs"]["qtransform"] == qtransform;
    // All records of a policy and a Q-transform take a minute of a core.
    let every = if std::env::var_os("PODRACER_ALL").is_some() { 1 } else { 4 };
    for launches in [false, true] {
        let (mut complaints, mut undecided, mut count) = (Vec::new(), 0, 0);
        for record in records.iter().filter(chosen).step_by(every) {
            match differences(record, launches) {
                Ok(found) => {
                    complaints.extend(found.complaints);
                    undecided += found.undecided;
                }
                Err(error) => complaints.push(format!("{error:#}")),
            }
            count += 1;
        }
        assert!(count > 0, "there are no records");
        assert!(complaints.is_empty(), "launches: {launches}\n{}", complaints.join("\n"));
        // Nearly all of them are mctx's all the same.
        assert!(
            undecided <= count,
            "launches: {launches}, {undecided} trees of {count} records differ where mctx differs from itself"
        );
    }
}

/// A test for each policy and Q-transform: the nodes, visits, actions and values are mctx's.
macro_rules! equal_to_mctx {
    ($($test:ident: $policy:literal, $qtransform:literal;)*) => {$(
        #[test]
        fn $test() {
            check($policy, $qtransform);
        }
    )*};
}
equal_to_mctx! {
    muzero_by_min_max: "muzero", "by_min_max";
    muzero_by_parent_and_siblings: "muzero", "by_parent_and_siblings";
    muzero_completed_by_mix_value: "muzero", "completed_by_mix_value";
    gumbel_by_min_max: "gumbel_muzero", "by_min_max";
    gumbel_by_parent_and_siblings: "gumbel_muzero", "by_parent_and_siblings";
    gumbel_completed_by_mix_value: "gumbel_muzero", "completed_by_mix_value";
    stochastic_by_min_max: "stochastic_muzero", "by_min_max";
    stochastic_by_parent_and_siblings: "stochastic_muzero", "by_parent_and_siblings";
    stochastic_completed_by_mix_value: "stochastic_muzero", "completed_by_mix_value";
}
