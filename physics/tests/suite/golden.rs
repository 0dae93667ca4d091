//! Models of `tests/models`, compared with the golden fields of mujoco 4.0.0.

use std::fs;
use std::path::Path;

use podracer_physics::Model;
use serde_json::Value;

use crate::compare::{errors, names};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

#[test]
fn golden_fields_are_all_fields() {
    let wanted: String = names().iter().map(|name| format!("{name}\n")).collect();
    let path = Path::new(FOLDER).join("golden/fields.txt");
    if std::env::var_os("PODRACER_BLESS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == wanted,
        "PODRACER_BLESS=1 writes fields.txt"
    );
}

#[test]
fn models_are_mujocos() {
    let text = fs::read_to_string(Path::new(FOLDER).join("golden/model.json")).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let mut complaints = Vec::new();
    let models = golden["models"].as_object().unwrap();
    for (name, expected) in models {
        let path = Path::new(FOLDER).join("models").join(format!("{name}.xml"));
        let errors = match Model::fields_of_file(&path) {
            Ok(model) => errors(&model, expected),
            Err(error) => Err(error.to_string()),
        };
        match errors {
            Err(error) => complaints.push(format!("{name}: {error}")),
            Ok(errors) => {
                eprintln!("{name}: {errors:?}");
                let wrong = errors.iter().filter(|(_, error)| **error > 1e-12);
                complaints.extend(wrong.map(|(field, error)| format!("{name}: {field} {error:e}")));
            }
        }
    }
    let files = fs::read_dir(Path::new(FOLDER).join("models")).unwrap().count();
    assert_eq!(files, models.len(), "make_model.py writes the fields of every model");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
