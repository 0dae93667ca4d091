//! The models that Gymnasium and dm_control install.

use std::path::Path;

use podracer_physics::Model;
use podracer_test_support::python::run_mujoco;
use serde_json::Value;

use crate::compare::{errors, names};

/// Models with dynamics that are not covered, and the first element of these.
const NOT_COVERED: &[(&str, &str)] =
    &[("quadruped.xml", "element `hfield` is not covered"), ("dog.xml", "is not covered")];

#[test]
fn models_of_packages_are_mujocos() {
    let names = names();
    let arguments: Vec<&str> =
        ["packages"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let script = include_str!("../golden/make_model.py");
    let Some(output) = run_mujoco(script, &arguments, "").unwrap() else { return };
    let answer: Value = serde_json::from_str(&output).unwrap();
    let mut complaints = Vec::new();
    for model in answer["models"].as_array().unwrap() {
        let path = Path::new(model["path"].as_str().unwrap());
        let name = path.display();
        match Model::fields_of_file(path).map_err(|error| error.to_string()) {
            Err(error) => {
                let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let known = NOT_COVERED
                    .iter()
                    .any(|(name, message)| *name == file && error.contains(message));
                if !known {
                    complaints.push(error);
                }
            }
            Ok(ours) => match errors(&ours, &model["fields"]) {
                Err(error) => complaints.push(format!("{name}: {error}")),
                Ok(errors) => {
                    eprintln!("{name}: {errors:?}");
                    let wrong = errors.iter().filter(|(_, error)| **error > 1e-12);
                    complaints
                        .extend(wrong.map(|(field, error)| format!("{name}: {field} {error:e}")));
                }
            },
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
