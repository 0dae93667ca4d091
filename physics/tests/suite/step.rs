//! States of models, and the dynamics that mujoco 4.0.0 computes for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use podracer_dsl::prelude::*;
use podracer_physics::{Data, Forward, Model};
use podracer_test_support::python::run_mujoco;
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// Robots of Gymnasium and dm_control.
const ROBOTS: &str = "half_cheetah gymnasium/hopper walker2d_v5 ant gymnasium/humanoid humanoidstandup \
                      gymnasium/swimmer gymnasium/reacher inverted_pendulum inverted_double_pendulum dm_control/cartpole \
                      dm_control/pendulum dm_control/acrobot dm_control/cheetah dm_control/walker dm_control/hopper \
                      dm_control/reacher dm_control/finger dm_control/ball_in_cup dm_control/point_mass dm_control/humanoid \
                      dm_control/swimmer";

/// Models with a gap of the dynamics, and the message about it. Their fields are compared, and no steps.
const GAPS: &[(&str, &str)] = &[
    ("actuators", "a contact of this box with the capsule"),
    ("finger", "a contact of this cylinder with the cylinder"),
    ("joints", "the solver without slip is not covered"),
];

/// Models with contacts of MuJoCo's general collider, and the errors of a step: the collider's normals have errors of up to 1e-5.
const COLLIDERS: &[(&str, f64)] = &[("rods", 5e-4)];

/// Models with spatial tendons: MuJoCo's `cfrc_ext` has their forces on bodies, and ours does not.
const SPATIAL_TENDONS: [&str; 2] = ["tendons", "ball_in_cup"];

/// Quantities that follow from a state.
type Quantity = (&'static str, fn(&Forward) -> Tensor);

macro_rules! quantities {
    ($($method:ident)*) => { &[$((stringify!($method), |forward| forward.$method())),*] };
}

const QUANTITIES: &[Quantity] = quantities! {
    xpos xipos geom_xpos site_xpos subtree_com cinert cvel ten_length qM qfrc_bias qfrc_passive qfrc_actuator actuator_force qacc_smooth
    qfrc_constraint qacc cfrc_ext
};

/// The largest error of each quantity over all states, relative to its largest number in the state, or to 1.
fn errors(model: &Model, states: &Value, dtype: DType) -> BTreeMap<&'static str, f64> {
    let rows = |name: &str| -> Option<Vec<Vec<f64>>> {
        let rows = states[name].as_array()?;
        let numbers =
            |row: &Value| row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        Some(rows.iter().map(numbers).collect())
    };
    let count = rows("qpos").unwrap().len();
    let input = |name: &str, width: usize| {
        let flat = rows(name).unwrap_or_default().concat();
        Array::floats(dtype, [count, width], if flat.is_empty() { &[] } else { &flat })
    };
    let inputs = [
        input("qpos", model.nq),
        input("qvel", model.nv),
        input("act", model.na),
        input("qacc_warmstart", model.nv),
        input("ctrl", model.nu),
    ];
    let spec = |array: &Array| array.ty().clone();
    let [qpos, qvel, act, warm, ctrl] = &inputs;
    let wanted: Vec<&Quantity> =
        QUANTITIES.iter().filter(|(name, _)| !states[name].is_null()).collect();
    let traced = trace(
        (spec(qpos), spec(qvel), spec(act), spec(warm), spec(ctrl)),
        |(qpos, qvel, act, qacc_warmstart, ctrl)| {
            vmap(
                (qpos, qvel, act, qacc_warmstart, ctrl),
                |(qpos, qvel, act, qacc_warmstart, ctrl)| {
                    let data = Data { time: zeros(dtype, []), qpos, qvel, act, qacc_warmstart };
                    let derived = model.forward(&data, ctrl, |forward| {
                        wanted.iter().map(|(_, of)| of(forward).flatten()).collect::<Vec<_>>()
                    });
                    let next = model.step(&data, ctrl);
                    (derived, [next.qpos, next.qvel, next.act])
                },
            )
        },
    )
    .unwrap();
    let results = traced.eval(&inputs).unwrap();
    let names = wanted.iter().map(|(name, _)| *name).chain(["next_qpos", "next_qvel", "next_act"]);
    let mut errors = BTreeMap::new();
    for (name, ours) in names.zip(results) {
        let ours: Vec<f64> = ours.to_f64();
        let theirs = rows(name).unwrap_or_default();
        let width = ours.len() / count;
        for (state, theirs) in theirs.iter().enumerate() {
            let ours = &ours[state * width..][..width];
            let largest = theirs.iter().fold(1.0_f64, |largest, x| largest.max(x.abs()));
            let error = ours.iter().zip(theirs).map(|(x, y)| (x - y).abs() / largest);
            let error =
                error.fold(0.0, |a: f64, b| if b.is_nan() { f64::INFINITY } else { a.max(b) });
            let worst = errors.entry(name).or_insert(0.0_f64);
            *worst = worst.max(error);
            if std::env::var("SHOW").is_ok_and(|show| show == name) && error > 1e-8 {
                eprintln!("{name} state {state}: {ours:?}\n  {theirs:?}");
            }
        }
    }
    errors
}

fn compare(name: &str, path: &Path, states: &Value, complaints: &mut Vec<String>) {
    let gap = GAPS.iter().find(|(model, _)| *model == name).map(|(_, gap)| gap);
    let model = match (Model::from_file(path), gap) {
        (Ok(model), None) => model,
        (Ok(_), Some(gap)) => return complaints.push(format!("{name}: no longer a gap: {gap}")),
        (Err(error), Some(gap)) if error.to_string().contains(gap) => return,
        (Err(error), _) => return complaints.push(format!("{name}: {error}")),
    };
    let errors = errors(&model, states, DType::F64);
    eprintln!(
        "{name}: {}",
        errors
            .iter()
            .map(|(name, error)| format!("{name} {error:.0e}"))
            .collect::<Vec<_>>()
            .join(" ")
    );
    let compared = |quantity: &str| quantity != "cfrc_ext" || !SPATIAL_TENDONS.contains(&name);
    let most = COLLIDERS.iter().find(|(model, _)| *model == name).map_or(1e-9, |(_, most)| *most);
    let wrong = errors.iter().filter(|(name, error)| **error > most && compared(name));
    complaints.extend(wrong.map(|(quantity, error)| format!("{name}: {quantity} {error:.1e}")));
}

#[test]
fn steps_of_models_are_mujocos() {
    let text = fs::read_to_string(Path::new(FOLDER).join("golden/step.json")).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let mut complaints = Vec::new();
    for (name, states) in golden["models"].as_object().unwrap() {
        let path = Path::new(FOLDER).join("models").join(format!("{name}.xml"));
        compare(name, &path, states, &mut complaints);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn steps_of_packages_are_mujocos() {
    let all = std::env::var_os("PODRACER_ALL").is_some();
    let count = if all { "1000" } else { "24" };
    let quantities: Vec<&str> = QUANTITIES.iter().map(|(name, _)| *name).collect();
    let fields = [quantities, vec!["next_qpos", "next_qvel", "next_act"]].concat().join(",");
    let arguments: Vec<&str> = ["packages", count]
        .into_iter()
        .chain(ROBOTS.split_whitespace())
        .chain(["--fields", &fields])
        .collect();
    let script = include_str!("../golden/make_step.py");
    let Some(output) = run_mujoco(script, &arguments, "").unwrap() else { return };
    let answer: Value = serde_json::from_str(&output).unwrap();
    let mut complaints = Vec::new();
    for model in answer["models"].as_array().unwrap() {
        let path = Path::new(model["path"].as_str().unwrap());
        let name = path.file_stem().unwrap().to_string_lossy();
        compare(&name, path, &model["states"], &mut complaints);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
