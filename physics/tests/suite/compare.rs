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

/// Names of the fields of a model.
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
        if name == "body_iquat" {
            compare_axes(&ours, &theirs, expected, &mut errors);
            continue;
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

/// Principal axes are equal, sign and order included, unless two moments are: then every turn about the third axis has
/// the same inertia, rounding decides which one MuJoCo takes, and the inertias are compared.
fn compare_axes(
    ours: &[f64],
    theirs: &[f64],
    expected: &Value,
    errors: &mut BTreeMap<String, f64>,
) {
    let inertia = expected["body_inertia"].as_array().unwrap();
    for (body, (ours, theirs)) in ours.chunks(4).zip(theirs.chunks(4)).enumerate() {
        let moments: Vec<f64> = (0..3).map(|i| inertia[3 * body + i].as_f64().unwrap()).collect();
        let largest = moments.iter().fold(0.0_f64, |largest, x| largest.max(*x));
        let near = |i: usize, j: usize| (moments[i] - moments[j]).abs() < 1e-9 * largest;
        let differ =
            |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        let mut error = differ(ours, theirs);
        let mut name = "body_iquat";
        if error > 1e-12 && (near(0, 1) || near(1, 2)) {
            error = differ(&tensor(ours, &moments), &tensor(theirs, &moments)) / largest;
            name = "body_iquat, as inertia";
        }
        if error > 0.0 {
            let worst = errors.entry(name.to_owned()).or_insert(0.0);
            *worst = worst.max(error);
        }
    }
}

/// The inertia of a body in its own axes.
fn tensor(q: &[f64], moments: &[f64]) -> Vec<f64> {
    let (w, x, y, z) = (q[0], q[1], q[2], q[3]);
    let r = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ];
    let entry = |i: usize, j: usize| (0..3).map(|k| r[i][k] * moments[k] * r[j][k]).sum();
    (0..9).map(|n| entry(n / 3, n % 3)).collect()
}

/// Numbers of a vector; 1 for a field of numbers.
fn width(name: &str) -> usize {
    match name {
        _ if name.ends_with("_pos") || name.ends_with("_ipos") || name.ends_with("_axis") => 3,
        _ if name.ends_with("_quat") => 4,
        "body_inertia" => 3,
        "eq_data" => 12,
        _ => 1,
    }
}
