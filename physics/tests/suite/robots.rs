//! The robots of Gymnasium's MuJoCo tasks: our files, compared with Gymnasium's.

use podracer_physics::Model;
use podracer_test_support::python::run_mujoco;
use serde_json::{Map, Value};

use crate::compare::{errors, names};

/// A robot's name and the text of our file.
macro_rules! robots {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../envs/src/mujoco/models/", $name, ".xml")))),*]
    };
}

const ROBOTS: &[(&str, &str)] = robots! {
    "half_cheetah" "hopper" "walker2d" "swimmer" "reacher" "inverted_pendulum" "inverted_double_pendulum" "ant" "humanoid"
    "humanoid_standup" "pusher"
};

/// Largest relative difference between two files for the same compiler: Gymnasium's files have lengths such as
/// 0.19999999999999996.
const ROUNDING: f64 = 1e-13;

/// The records of Gymnasium's compiled models.
fn records() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/mujoco_models.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file["records"].as_array().unwrap().clone()
}

/// The fields of a record as lists of numbers.
fn fields(record: &Value) -> Value {
    let number = |x: &Value| x.as_bool().map_or_else(|| x.clone(), |x| f64::from(x).into());
    let numbers =
        |array: &Value| array["data"].as_array().unwrap().iter().map(number).collect::<Value>();
    let fields = record["fields"].as_object().unwrap().iter();
    Value::Object(fields.map(|(name, array)| (name.clone(), numbers(array))).collect())
}

#[test]
fn robots_are_gymnasiums() {
    let records = records();
    let recorded: Vec<&str> =
        records.iter().map(|record| record["model"].as_str().unwrap()).collect();
    let ours: Vec<&str> = ROBOTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(ours, recorded);
    let mut complaints = Vec::new();
    for ((name, text), record) in ROBOTS.iter().zip(&records) {
        let model = match Model::fields_of_mjcf(text) {
            Ok(model) => model,
            Err(error) => {
                complaints.push(format!("{name}: {error}"));
                continue;
            }
        };
        match errors(&model, &fields(record)) {
            Err(error) => complaints.push(format!("{name}: {error}")),
            Ok(errors) => {
                eprintln!("{name}: {errors:?}");
                let wrong = errors.iter().filter(|(_, error)| **error > 1e-12);
                complaints.extend(wrong.map(|(field, error)| format!("{name}: {field} {error:e}")));
            }
        }
        for (kind, ours) in [
            ("body", &model.body_name),
            ("joint", &model.jnt_name),
            ("geom", &model.geom_name),
            ("site", &model.site_name),
            ("tendon", &model.tendon_name),
            ("actuator", &model.actuator_name),
        ] {
            let theirs = record["names"][kind].as_array().unwrap();
            let theirs: Vec<&str> = theirs.iter().map(|name| name.as_str().unwrap()).collect();
            if *ours != theirs {
                complaints.push(format!("{name}: {kind}: {ours:?}, Gymnasium has {theirs:?}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn mujoco_compiles_robots_as_gymnasiums() {
    let names = names();
    let arguments: Vec<&str> =
        ["gymnasium"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let texts: Map<String, Value> =
        ROBOTS.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text))).collect();
    let script = include_str!("../golden/make_model.py");
    let input = Value::Object(texts).to_string();
    let Some(output) = run_mujoco(script, &arguments, &input).unwrap() else { return };
    // The other lines are warnings of mujoco.
    let lines: Vec<&str> = output.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(lines.len(), ROBOTS.len(), "{output}");
    let mut complaints = Vec::new();
    for line in lines {
        let answer: Value = serde_json::from_str(line).unwrap();
        let name = &answer["model"];
        for (field, error) in answer["errors"].as_object().unwrap() {
            // Fields of different shapes have a text.
            if error.as_f64().is_none_or(|error| error > ROUNDING) {
                complaints.push(format!("{name}: {field} {error}"));
            }
        }
        if answer["renamed"] != Value::Array(Vec::new()) {
            complaints.push(format!("{name}: other names of {}", answer["renamed"]));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
