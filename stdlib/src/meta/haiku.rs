//! DiscoRL's rules from the arrays that the authors published, with the names and the order of
//! Haiku's modules.

use super::{DiscoRule, DiscoShape, KeptRule, UpdateRule};
use podracer_dsl::prelude::*;
use std::collections::BTreeMap;

/// The module of Haiku that corresponds to each of our modules, within its part.
const MODULES: [(&str, &str); 14] = [
    ("sight.y.layers[0]", "mlp/~/linear_0"),
    ("sight.y.layers[1]", "mlp/~/linear_1"),
    ("sight.z.layers[0]", "mlp_1/~/linear_0"),
    ("sight.z.layers[1]", "mlp_1/~/linear_1"),
    ("sight.actions[0]", "sequential/conv1_d"),
    ("sight.actions[1]", "sequential/conv1_d_1"),
    ("core", "lstm/linear"),
    ("gate", "linear"),
    ("summary", "linear_1"),
    ("y", "linear_2"),
    ("z", "linear_3"),
    ("policy", "sequential_1/conv1_d"),
    ("logit", "linear_4"),
    ("input", "mlp_2/~/linear_0"),
];

impl KeptRule<DiscoRule> {
    /// The arrays by name in the file of a rule of these sizes.
    #[must_use]
    pub fn haiku_types(shape: &DiscoShape) -> BTreeMap<String, TensorType> {
        let mut types = BTreeMap::<String, TensorType>::new();
        for (path, ty) in DiscoRule::spec_of(shape).leaves() {
            let (name, _) = array_of(&path.to_string());
            let mut extents = ty.shape.clone();
            // Weights of the input and of the state are one matrix in the file.
            if let Some(TensorType { shape: other, .. }) = types.get(&name) {
                extents[0] += other[0];
            } else if name.contains("conv1_d") && extents.len() == 2 {
                extents.insert(0, 1);
            }
            types.insert(name, ty.with_shape(extents));
        }
        types
    }

    /// The rule from arrays that are named as in the authors' published file `disco_103.npz`, in
    /// these or other sizes.
    ///
    /// # Errors
    /// Returns a sentence that names the first array that is missing or has another type, or the
    /// arrays that are not part of a rule.
    pub fn from_haiku(arrays: &BTreeMap<String, Array>) -> Result<KeptRule<DiscoRule>, String> {
        let find = |name: &str| arrays.get(name).ok_or_else(|| format!("it has no array `{name}`"));
        let extent = |name: &str, axis: usize| {
            let ty = find(name)?.ty();
            let extent = ty.shape.get(axis).copied();
            extent.ok_or_else(|| format!("`{name}` must have {} axes and is {ty}", axis + 1))
        };
        let shape = DiscoShape {
            predictions: extent("lstm/linear_2/b", 0)?,
            embedding: extent("lstm/mlp/~/linear_0/b", 0)?,
            channels: extent("lstm/sequential/conv1_d/b", 0)?,
            units: extent("lstm/linear/w", 1)?,
            life_units: extent("lstm/linear/w", 0)?,
        };
        let types = Self::haiku_types(&shape);
        for (name, ty) in &types {
            let is = find(name)?.ty();
            if is != ty {
                return Err(format!("`{name}` must be {ty} and is {is}"));
            }
        }
        if let Some(name) = arrays.keys().find(|name| !types.contains_key(*name)) {
            return Err(format!("a rule has no array `{name}`"));
        }
        let leaves = DiscoRule::spec_of(&shape).leaves().into_iter().map(|(path, ty)| {
            let path = path.to_string();
            let (name, kind) = array_of(&path);
            let numbers = arrays[&name].to_f64();
            let numbers = match kind {
                ArrayPart::Whole => numbers,
                ArrayPart::Bias => gates(&numbers, ty.shape[0], 1.0),
                ArrayPart::Input => gates(&numbers[..ty.elements()], ty.shape[1], 0.0),
                ArrayPart::Hidden => {
                    gates(&numbers[numbers.len() - ty.elements()..], ty.shape[1], 0.0)
                }
            };
            Array::floats(F32, &ty.shape, &numbers)
        });
        let leaves = leaves.collect();
        KeptRule::new(shape, leaves).ok_or_else(|| "its arrays do not fit each other".to_owned())
    }
}

/// The part of one of the file's arrays that corresponds to one of ours.
enum ArrayPart {
    Whole,
    /// Weights of an LSTM's input: the first rows.
    Input,
    /// Weights of an LSTM's state: the last rows.
    Hidden,
    /// Bias of an LSTM.
    Bias,
}

/// The array of the file that contains our array with this path, such as
/// `life.sight.y.layers[0].weight`.
fn array_of(path: &str) -> (String, ArrayPart) {
    let (module, leaf) = path.rsplit_once('.').unwrap_or((path, ""));
    let (part, ours) = match module.strip_prefix("life.") {
        Some(ours) => ("lstm/~/meta_lstm/~unroll", ours),
        None => ("lstm", module),
    };
    let known = MODULES.iter().find(|(known, _)| *known == ours);
    let (_, haiku) = known.expect("each module of a rule has a name in Haiku");
    let (leaf, kind) = match (ours, leaf) {
        ("core", "bias") => ("b", ArrayPart::Bias),
        ("core", "input") => ("w", ArrayPart::Input),
        ("core", _) => ("w", ArrayPart::Hidden),
        (_, "bias") => ("b", ArrayPart::Whole),
        _ => ("w", ArrayPart::Whole),
    };
    (format!("{part}/{haiku}/{leaf}"), kind)
}

/// Reorders the gates of Haiku's LSTM, i, g, f, o, to our order, i, f, g, o. Haiku adds 1 to the
/// input of the forget gate; here `to_forget` is added to the array.
fn gates(numbers: &[f64], columns: usize, to_forget: f64) -> Vec<f64> {
    let row = |row: &[f64]| {
        let [input, cell, forget, output] =
            [0, 1, 2, 3].map(|i| &row[i * columns / 4..(i + 1) * columns / 4]);
        let forget = forget.iter().map(|x| x + to_forget);
        let inputs = input.iter().copied().chain(forget);
        inputs.chain(cell.iter().chain(output).copied()).collect::<Vec<f64>>()
    };
    numbers.chunks(columns).flat_map(row).collect()
}
