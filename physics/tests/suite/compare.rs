//! Comparison of a model with MuJoCo's fields.

use std::collections::BTreeMap;

use podracer_physics::Model;
use serde_json::Value;

/// All fields, with MuJoCo's paths of those in `opt` and `stat`.
pub(crate) fn fields(model: &Model) -> BTreeMap<String, Vec<f64>> {
    let own = model.fields().into_iter().map(|(name, values)| (name.to_owned(), values));
    let options = model.opt.fields().into_iter();
    let options = options.map(|(name, values)| (format!("opt.{name}"), values));
    let mean = ("stat.meaninertia".to_owned(), vec![model.stat_meaninertia]);
    own.chain(options).chain([mean]).collect()
}

/// Names of all fields.
pub(crate) fn names() -> Vec<String> {
    fields(&Model::default()).into_keys().collect()
}

/// Largest error of each field that is not equal, relative to the largest number of the field's row of three or four,
/// or of the number itself.
pub(crate) fn errors(model: &Model, expected: &Value) -> Result<BTreeMap<String, f64>, String> {
    let mut errors = BTreeMap::new();
    for (name, ours) in fields(model) {
        let theirs = expected[&name].as_array().ok_or(format!("{name} is missing"))?;
        let theirs: Vec<f64> = theirs.iter().map(|x| x.as_f64().unwrap()).collect();
        if ours.len() != theirs.len() {
            return Err(format!("{name}: {} numbers, MuJoCo has {}", ours.len(), theirs.len()));
        }
        let width = width(&name);
        for (row, (ours, theirs)) in ours.chunks(width).zip(theirs.chunks(width)).enumerate() {
            let largest = theirs.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
            for (&x, &y) in ours.iter().zip(theirs) {
                if x == y {
                    continue;
                }
                // Numbers that should be 0 are compared with 1.
                let error = (x - y).abs() / if largest < 1e-10 { 1.0 } else { largest };
                let worst = errors.entry(name.clone()).or_insert(0.0_f64);
                if error > 1e-6 {
                    eprintln!("{name}[{row}]: {ours:?}, MuJoCo has {theirs:?}");
                }
                *worst = worst.max(error);
            }
        }
    }
    Ok(errors)
}

/// Numbers of a vector; 1 for a field of numbers.
fn width(name: &str) -> usize {
    match name {
        _ if name.ends_with("_pos") || name.ends_with("_ipos") || name.ends_with("_axis") => 3,
        _ if name.ends_with("_quat") || name.ends_with("_iquat") => 4,
        "body_inertia" => 3,
        "eq_data" => 12,
        _ => 1,
    }
}
