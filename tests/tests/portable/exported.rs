//! Programs that `podracer export` writes run in Python with jaxlib alone, and here, and compute what training does.

use podracer::experiments::build;
use podracer::export::{Export, Parameters, write};
use podracer::loading::{Overrides, load};
use podracer::settings::Settings;
use podracer::training::Start;
use podracer_runtime::{Array, Client};
use podracer_test_support::python;
use podracer_tests::compare::difference;
use podracer_tests::xla::client;
use podracer_tests::{check_all, golden};
use std::collections::BTreeMap;
use std::path::Path;

const SEED: u64 = (7 << 32) + 11;

/// Runs `init`, `train` and the policy without jax, which may not be imported, and prints their
/// results in the form of golden files.
const SCRIPT: &str = r#"
import json, sys
sys.modules["jax"] = None
sys.path.insert(0, sys.argv[1])
import numpy as np
from load import DTYPES, Export
names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
export = Export(sys.argv[1])
shape = next(one["shape"] for one in export.manifest["programs"]["act"]["arguments"] if one["name"] == "observation")
inputs = {"observation": np.array(json.load(sys.stdin), np.float32).reshape(shape)}
key = np.array([7, 11], np.uint32)
state = export.run("init", {"key": key})
trained = export.run("train", state)
state = {name: array for name, array in trained.items() if name.startswith("state.")}
given = {"init": export.run("init", {"key": key}), "train": trained, "again": export.run("train", state)}
given["act"] = export.run("act", inputs | {"key": key})
given["act_greedily"] = export.run("act_greedily", inputs)
for wrong in [{}, {"observation": np.zeros(77, np.float32)}, {"observatio": 1}]:
    try:
        export.run("act_greedily", wrong)
    except ValueError as error:
        print(error, file=sys.stderr)
    else:
        sys.exit(f"{wrong} was taken")
def element(x):
    return x if not isinstance(x, float) or np.isfinite(x) else str(x)
def record(x):
    return {"dtype": names[x.dtype], "shape": x.shape, "data": [element(one) for one in x.reshape(-1).tolist()]}
print(json.dumps({program: {name: record(x) for name, x in results.items()} for program, results in given.items()}))
"#;

fn settings(experiment: &str, set: &[&str]) -> Settings {
    let overrides = Overrides {
        seed: Some(SEED),
        set: set.iter().map(ToString::to_string).collect(),
        ..Overrides::default()
    };
    load(experiment, &overrides).expect("the settings are good")
}

const SMALL: &[&str] = &[
    "anakin.environments=4",
    "anakin.unroll=8",
    "anakin.iterations_per_call=1",
    "agent.hidden=[16]",
];

fn export(experiment: &str, settings: &Settings, client: &Client, folder: &Path) -> Export {
    export_batch(experiment, settings, None, client, folder)
}

fn export_batch(
    experiment: &str,
    settings: &Settings,
    batch: Option<usize>,
    client: &Client,
    folder: &Path,
) -> Export {
    let programs = build(settings).and_then(|training| training.programs(batch));
    let programs = programs.expect("the programs are traced");
    let initial = Parameters::Initial { client, seed: SEED };
    write(folder, experiment, &programs, initial).expect("the folder is written");
    Export::open(folder).expect("the folder is read")
}

type Named = BTreeMap<String, Array>;

fn key() -> (String, Array) {
    let words = [(SEED >> 32) as u32, SEED as u32];
    ("key".to_owned(), Array::from_slice([2], &words).expect("two words"))
}

fn state_of(results: &Named) -> Named {
    let state = results.iter().filter(|(name, _)| name.starts_with("state."));
    state.map(|(name, array)| (name.clone(), array.clone())).collect()
}

fn complain(what: &str, expected: &Array, got: &Array, tolerance: f64) -> Option<String> {
    let problem = difference(expected, got, tolerance)?;
    Some(format!("{what}: {problem}"))
}

#[test]
fn an_export_computes_here_and_in_python_what_training_does() {
    let client = client().expect("a client");
    let mut complaints = Vec::new();
    let experiment = "pendulum-ppo";
    let settings = settings(experiment, SMALL);
    let folder = tempfile::tempdir().expect("a folder");
    let export = export(experiment, &settings, &client, folder.path());
    let mut arguments = export.manifest().programs["act"].arguments.iter();
    let observed = arguments.find(|argument| argument.name == "observation");
    let observed = observed.expect("it is an argument").ty().expect("a type");
    let values: Vec<f32> = (0..observed.elements()).map(|i| 0.1 * (i % 7) as f32).collect();
    let input = Array::from_slice(&observed.shape[..], &values).expect("it fits");
    let input = ("observation".to_owned(), input);

    let run = |program: &str, inputs: &Named| {
        let compiled = export.compile(&client, program).expect("it compiles");
        compiled.run(inputs).expect("it runs")
    };
    let init = run("init", &Named::from([key()]));
    let train = run("train", &init);
    let mut ours = BTreeMap::from([("again", run("train", &state_of(&train)))]);
    ours.insert("act", run("act", &Named::from([input.clone(), key()])));
    ours.insert("act_greedily", run("act_greedily", &Named::from([input])));

    // As `podracer train` does it: the first parameters are those exported, and one iteration makes the same of them.
    let training = build(&settings).expect("it is one");
    let (xla, scratch) = (training.xla_options("cpu"), std::env::temp_dir());
    let start = Start {
        client: &client,
        devices: &[0],
        xla: &xla,
        seed: SEED,
        folder: &scratch,
        from: None,
    };
    let mut started = training.start(start).expect("it starts");
    let before = started.parameters().expect("they are there");
    started.advance().expect("it runs");
    let parameters = export.parameters().iter().cloned().collect::<Named>();
    for (name, array) in before {
        let what = format!("exported {name}");
        complaints.extend(complain(&what, &array, &parameters[&name], 1e-6));
    }
    for (name, array) in started.parameters().expect("they are there") {
        let got = &train[&format!("state.replicated.agent.params.{name}")];
        let what = format!("trained {name}");
        complaints.extend(complain(&what, &array, got, 1e-6));
    }
    ours.extend([("init", init), ("train", train)]);

    let folder = folder.path().to_str().expect("UTF-8");
    let observation = serde_json::json!(values).to_string();
    let said = python::run(SCRIPT, &[folder], &observation).expect("the script runs");
    let Some(said) = said else {
        return check_all(&complaints);
    };
    let theirs: serde_json::Value = serde_json::from_str(&said).expect("it printed JSON");
    for (program, results) in &ours {
        let count = theirs[program].as_object().map_or(0, |all| all.len());
        assert_eq!(count, results.len(), "{program}");
        for (name, array) in results {
            let got = golden::array(&theirs[program][name]).expect("an array");
            let what = format!("in Python: {program}: {name}");
            complaints.extend(complain(&what, array, &got, 1e-4));
        }
    }
    check_all(&complaints);
}

/// Runs the policy on a batch, from the text and from portable bytecode of it.
const BATCH: &str = r#"
import json, sys
sys.modules["jax"] = None
sys.path.insert(0, sys.argv[1])
import numpy as np
from load import Export
export = Export(sys.argv[1])
inputs = {"observation": np.array(json.load(sys.stdin), np.float32).reshape(3, 3)}
given = [export.run("act_greedily", inputs)["action"].tolist()]
bytecode = export.portable("act_greedily")
assert bytecode.startswith(b"ML\xefR") and b"StableHLO_v" in bytecode[:40], bytecode[:40]
for program in export.manifest["programs"]:
    export.portable(program)
(export.folder / "portable.mlir").write_bytes(bytecode)
other = Export(sys.argv[1])
other.manifest["programs"]["act_greedily"]["file"] = "portable.mlir"
given.append(other.run("act_greedily", inputs)["action"].tolist())
print(json.dumps(given))
"#;

#[test]
fn a_policy_of_a_batch_does_what_that_of_one_does() {
    let client = client().expect("a client");
    let settings = settings("pendulum-ppo", SMALL);
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let one = export("pendulum-ppo", &settings, &client, folders[0].path());
    let many = export_batch("pendulum-ppo", &settings, Some(3), &client, folders[1].path());
    let values: Vec<f32> = (0..9).map(|i| 0.3 * i as f32 - 1.0).collect();
    let act = |export: &Export, program: &str, shape: &[usize], values: &[f32]| {
        let seen = Array::from_slice(shape, values).expect("it fits");
        let mut inputs = Named::from([("observation".to_owned(), seen)]);
        inputs.extend((program == "act").then(key));
        let compiled = export.compile(&client, program).expect("it compiles");
        let actions = compiled.run(&inputs).expect("it runs")["action"].clone();
        (actions.ty().shape.to_vec(), actions.to_f64())
    };
    let (shape, batch) = act(&many, "act_greedily", &[3, 3], &values);
    assert_eq!(shape, [3, 1]);
    let rows = values.chunks(3);
    let each: Vec<f64> = rows.flat_map(|row| act(&one, "act_greedily", &[3], row).1).collect();
    let close = |got: &[f64]| {
        let near = got.iter().zip(&each).all(|(x, y)| (x - y).abs() < 1e-5);
        assert!(near && got.len() == 3, "{got:?} and one by one {each:?}");
    };
    close(&batch);
    // Drawn with keys of their own: the same observation thrice is not the same action.
    let (_, drawn) = act(&many, "act", &[3, 3], &[0.5; 9]);
    assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2], "{drawn:?}");

    let folder = folders[1].path().to_str().expect("UTF-8");
    let observation = serde_json::json!(values).to_string();
    let said = python::run(BATCH, &[folder], &observation).expect("the script runs");
    let given: Vec<Vec<[f64; 1]>> = match said {
        Some(said) => serde_json::from_str(&said).expect("it printed JSON"),
        None => return,
    };
    for actions in given {
        close(&actions.concat());
    }
}

#[test]
fn a_learner_of_sebulba_is_exported_for_one_device() {
    let client = client().expect("a client");
    let settings =
        settings("cartpole-sebulba-ppo", &["sebulba.learners=[1,2]", "agent.hidden=[16]"]);
    let folder = tempfile::tempdir().expect("a folder");
    let export = export("sebulba", &settings, &client, folder.path());
    let learn = &export.manifest().programs["learn"];
    let start =
        |name: &str| learn.arguments.iter().filter(|one| one.name.starts_with(name)).count();
    let state = learn.results.iter().filter(|one| one.name.starts_with("state.")).count();
    assert_eq!(start("state."), state);
    assert!(start("shards[0].steps.") > 0 && start("shards[1].steps.") > 0);
    export.compile(&client, "learn").expect("it compiles");
}

#[test]
fn mistakes_with_exports_say_what_is_there() {
    let client = client().expect("a client");
    let settings = settings("cartpole-ppo", SMALL);
    let folder = tempfile::tempdir().expect("a folder");
    let export = export("cartpole-ppo", &settings, &client, folder.path());
    let policy = export.compile(&client, "act").expect("it compiles");
    let named = |name: &str, array: Array| Named::from([(name.to_owned(), array), key()]);
    let f32s = |n: usize| Array::from_slice([n], &vec![0.0f32; n]).expect("it fits");
    let takes = "; it takes observation: f32[4], key: u32[2]";
    let programs = build(&settings).and_then(|training| training.programs(None));
    let programs = programs.expect("the programs are traced");
    let other = Parameters::Trained(vec![("actor.layers[0].weight".to_owned(), f32s(3))]);
    let empty = folder.path().join("empty");
    let messages = [
        policy.run(&named("observations", f32s(4))).map(|_| ()),
        policy.run(&named("observation", f32s(5))).map(|_| ()),
        policy.run(&Named::from([key()])).map(|_| ()),
        export.compile(&client, "step").map(|_| ()),
        write(&empty, "cartpole-ppo", &programs, other).map(|_| ()),
        write(folder.path(), "cartpole-ppo", &programs, Parameters::Trained(Vec::new()))
            .map(|_| ()),
        Export::open(&empty).map(|_| ()),
    ]
    .map(|result| result.expect_err("a mistake").to_string());
    let expected = [
        format!("the program `act` takes no `observations`{takes}"),
        format!("the program `act` takes `observation` as f32[4] and was given f32[5]{takes}"),
        format!("the program `act` takes `observation`, f32[4], too{takes}"),
        "there is no program `step` in this export: there are act, act_greedily, init, train"
            .to_owned(),
        "the parameter `actor.layers[0].weight` must be f32[4,16] and is f32[3]".to_owned(),
        "holds an export already: name another folder, or remove it".to_owned(),
        "manifest.json`: `podracer export` makes such a folder".to_owned(),
    ];
    for (message, expected) in messages.iter().zip(expected) {
        assert!(message.contains(&expected), "{message}");
    }

    // A module that is not the manifest's is never run.
    let path = folder.path().join("act_greedily.mlir");
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, text.replace("tensor<4xf32>", "tensor<5xf32>")).expect("it is written");
    let error = export.compile(&client, "act_greedily").map(|_| ()).expect_err("a mistake");
    assert!(format!("{error:#}").contains("act_greedily.mlir` is damaged: it has"), "{error:#}");
    // An export of an earlier version has no sha256 of its files.
    let path = folder.path().join("manifest.json");
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, text.replace("\"sha256\"", "\"of_old\"")).expect("it is written");
    let export = Export::open(folder.path()).expect("it is read");
    let error = export.compile(&client, "act_greedily").map(|_| ()).expect_err("a mistake");
    assert!(format!("{error:#}").contains("not those that the manifest says"), "{error:#}");
}

/// Opens the export, and prints why that cannot be.
const OPENED: &str = r#"
import sys
sys.path.insert(0, sys.argv[1])
from load import Export
for line in sys.stdin:
    try:
        Export(line.strip())
        print("taken")
    except ValueError as error:
        print(error)
"#;

#[test]
fn a_bit_flip_in_exported_parameters_is_found_here_and_in_python() {
    let client = client().expect("a client");
    let settings = settings("cartpole-ppo", SMALL);
    let folder = tempfile::tempdir().expect("a folder");
    export("cartpole-ppo", &settings, &client, folder.path());
    let path = folder.path().join("parameters.safetensors");
    let whole = std::fs::read(&path).expect("it is there");
    let mut copies = Vec::new();
    // In the numbers, which are the last part of the file.
    for at in [whole.len() / 2, whole.len() - 5, whole.len() - 1] {
        let copy = tempfile::tempdir().expect("a folder");
        for name in ["manifest.json", "load.py"] {
            let from = folder.path().join(name);
            std::fs::copy(from, copy.path().join(name)).expect("it is copied");
        }
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        std::fs::write(copy.path().join("parameters.safetensors"), flipped).expect("written");
        let error = Export::open(copy.path()).expect_err("it is damaged").to_string();
        let expected = "parameters.safetensors` is damaged: it has the sha256 ";
        assert!(error.contains(expected), "{error}");
        copies.push(copy);
    }
    let names = copies.iter().map(|copy| format!("{}\n", copy.path().display()));
    let names = names.collect::<String>() + folder.path().to_str().expect("UTF-8");
    let first = folder.path().to_str().expect("UTF-8");
    let Some(said) = python::run(OPENED, &[first], &names).expect("the script runs") else {
        return;
    };
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[..3].iter().all(|line| line.contains("is damaged: it has")), "{said:?}");
    assert_eq!(said[3], "taken");
}
