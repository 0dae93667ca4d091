//! The reference semantics and the derivative rules against golden values of single operations, which JAX computed.

use anyhow::{Context as _, Result, anyhow, bail};
use podracer_compiler::attributes::AttributeValue;
use podracer_compiler::ops::{
    Combiner, Convolution, Gather, ReduceWindowMax, ReduceWindowSum, Scatter, Window, registry,
};
use podracer_compiler::transform::{jvp_with, vjp};
use podracer_compiler::{Array, Attribute, Attributes, DType, Func, OpRef, Scalar, TensorType};
use podracer_tests::cases::{one_op, types};
use podracer_tests::compare::difference;
use podracer_tests::{check_all, golden};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;

const FILES: [&str; 3] = ["ops_elementwise.json", "ops_axes.json", "ops_shape.json"];

/// Operations of the golden files that are no ops here: they are written with others.
const WRITTEN_WITH_OTHERS: &[&str] =
    &["integer_pow", "reduce_precision", "reduce_xor", "square", "take_along_axis"];

/// Differences from JAX on purpose: the beginning of a complaint's subject, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("jvp of abs {} (f32[2]), derivative at a kink", "0 between -1 and 1, where JAX takes 1"),
    ("vjp of abs {} (f32[2]), derivative at a kink", "as its jvp"),
    (
        "jvp of power {} (f32[4], f32[4]), derivative at edges",
        "0^0 does not change with its base, where JAX has 0 * inf",
    ),
    ("vjp of power {} (f32[4], f32[4]), derivative at edges", "as its jvp"),
    (
        "jvp of cummax {\"axis\":0,\"reverse\":false} (f32[5]), derivative at ties",
        "the later of equals, where JAX gives shares",
    ),
    ("vjp of cummax {\"axis\":0,\"reverse\":false} (f32[5]), derivative at ties", "as its jvp"),
    ("value of sign {} (u", "signs are for what has one"),
    ("value of maximum {} (bool", "`or` does it"),
    ("value of minimum {} (bool", "`and` does it"),
    ("value of argmax {\"axis\":0} (bool", "bools are converted first, by whoever means numbers"),
    ("value of argmin {\"axis\":0} (bool", "as argmax"),
    (
        "compare {\"compare_type\":\"TOTALORDER\"",
        "compare has IEEE's order only; sort has its own total one",
    ),
];

/// A record, read.
struct Record {
    name: String,
    op: OpRef,
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    tangents: Option<Derivative>,
    cotangents: Option<Derivative>,
}

/// Directions and their images; `None` if there is no derivative or none was requested.
struct Derivative {
    given: Vec<Option<Array>>,
    expected: Vec<Option<Array>>,
}

#[test]
fn ops_have_golden_values_and_derivatives() {
    let mut complaints = Vec::new();
    let mut left_out = BTreeSet::new();
    for (file, mut record) in
        FILES.iter().flat_map(|file| records(file).into_iter().map(move |record| (file, record)))
    {
        // The order of keys depends on how the whole workspace is built; a complaint's subject must not.
        record["attrs"].sort_all_objects();
        let mnemonic = record["op"].as_str().unwrap_or_default();
        if WRITTEN_WITH_OTHERS.contains(&mnemonic) {
            left_out.insert(mnemonic.to_string());
            continue;
        }
        // Denormals are XLA's own: it takes them for 0, the reference semantics do not.
        if record["note"] == "denormals" {
            continue;
        }
        match read(&record) {
            Ok(record) => complaints.extend(check(&record)),
            Err(error) => {
                complaints.push(format!("{mnemonic} {}: {error:#} ({file})", record["attrs"]))
            }
        }
    }
    for (subject, reason) in DIFFERENT {
        let before = complaints.len();
        complaints.retain(|complaint| !complaint.starts_with(subject));
        assert!(complaints.len() < before, "no difference any more in {subject}: {reason}");
    }
    let listed: BTreeSet<String> = WRITTEN_WITH_OTHERS.iter().map(ToString::to_string).collect();
    assert_eq!(left_out, listed, "the list of what is left out is not that of the files");
    check_all(&complaints);
}

fn records(file: &str) -> Vec<Value> {
    match golden::records(file) {
        Ok(Some(records)) => records,
        Ok(None) => panic!("{file} is missing"),
        Err(error) => panic!("{file}: {error:#}"),
    }
}

fn read(record: &Value) -> Result<Record> {
    let inputs = golden::arrays(&record["inputs"])?;
    let outputs = golden::arrays(&record["outputs"])?;
    let op = op(record, &types(&inputs), &types(&outputs))?;
    let shown: Vec<String> = inputs.iter().map(|input| input.ty().to_string()).collect();
    let note = record["note"].as_str().map(|note| format!(", {note}")).unwrap_or_default();
    let name = format!(
        "{} {} ({}){note}",
        record["op"].as_str().unwrap_or_default(),
        record["attrs"],
        shown.join(", ")
    );
    let derivative = |given: &str, expected: &str| -> Result<Option<Derivative>> {
        if record.get(given).is_none() {
            return Ok(None);
        }
        Ok(Some(Derivative {
            given: optional(&record[given])?,
            expected: optional(&record[expected])?,
        }))
    };
    let record = Record {
        name,
        op,
        inputs,
        outputs,
        tangents: derivative("tangents", "out_tangents")?,
        cotangents: derivative("cotangents", "in_cotangents")?,
    };
    Ok(if record.op.mnemonic() == "cholesky" { of_lower_triangle(record) } else { record })
}

/// Records of `cholesky` are for `(x + x^T) / 2`, but the op reads the lower triangle. So the
/// tangent is made symmetric, and an element below the diagonal gets the cotangents of both
/// elements that it represents.
fn of_lower_triangle(mut record: Record) -> Record {
    let changed = |array: &Array, f: &dyn Fn(f64, f64, Ordering) -> f64| {
        Array::from_fn(array.ty().clone(), |index| {
            let [here, there] = [[index[0], index[1]], [index[1], index[0]]];
            let [here, there] = [here, there].map(|index| array.at(&index).float());
            Scalar::Float(f(here, there, index[0].cmp(&index[1])))
        })
    };
    let tangent = record.tangents.iter_mut();
    for tangent in tangent.flat_map(|derivative| derivative.given.iter_mut().flatten()) {
        *tangent = changed(tangent, &|x, y, _| (x + y) / 2.0);
    }
    let cotangent = record.cotangents.iter_mut();
    for cotangent in cotangent.flat_map(|derivative| derivative.expected.iter_mut().flatten()) {
        *cotangent = changed(cotangent, &|x, y, row| match row {
            Ordering::Less => 0.0,
            Ordering::Equal => x,
            Ordering::Greater => x + y,
        });
    }
    record
}

fn optional(value: &Value) -> Result<Vec<Option<Array>>> {
    let list = value.as_array().ok_or_else(|| anyhow!("no list: {value}"))?;
    list.iter()
        .map(|array| if array.is_null() { Ok(None) } else { golden::array(array).map(Some) })
        .collect()
}

/// The op of a record. Most have the golden file's names; the rest are the few lines here.
fn op(record: &Value, inputs: &[TensorType], outputs: &[TensorType]) -> Result<OpRef> {
    let mnemonic = record["op"].as_str().context("no op")?;
    let attrs = record["attrs"].as_object().context("no attrs")?;
    let mut attributes = Attributes::none();
    for (name, value) in attrs {
        // Lists of pairs are taken apart below; an op of one triangle has it in its documentation.
        if name != "padding" && mnemonic != "cholesky" {
            attributes = attributes.with(renamed(mnemonic, name), attribute(name, value)?);
        }
    }
    let axis = attrs.get("axis").and_then(Value::as_u64).unwrap_or(0) as usize;
    match mnemonic {
        "take" => return Ok(OpRef::new(Gather::take(&inputs[0], &inputs[1], axis))),
        "convolution" => attributes = convolution(attrs)?,
        "reduce_window" => return reduce_window(attrs),
        "argmax" | "argmin" => attributes = attributes.with("dtype", outputs[0].dtype),
        "gather" => attributes = attributes.with("index_vector_dim", inputs[1].rank() - 1),
        "scatter" => {
            attributes = attributes
                .with("index_vector_dim", inputs[1].rank() - 1)
                .with("unique_indices", false)
        }
        _ => {}
    }
    if let Some(word) = mnemonic.strip_prefix("scatter_") {
        let word = if word == "mul" { "multiply" } else { word };
        let combiner = Combiner::ALL
            .iter()
            .copied()
            .find(|combiner| combiner.word() == word)
            .context("no such combiner")?;
        return Ok(OpRef::new(Scatter::at(inputs[0].rank(), inputs[1].rank(), axis, combiner)));
    }
    let entry = registry::find(mnemonic).ok_or_else(|| anyhow!("the registry has no such op"))?;
    let op = (entry.parse)(&attributes).map_err(|problem| anyhow!(problem))?;
    // An attribute that the op does not know would be passed over in silence.
    let known = op.attributes();
    match attributes.0.iter().find(|(name, _)| known.get(name).is_none()) {
        Some((name, _)) => bail!("{mnemonic} has no attribute {name}"),
        None => Ok(op),
    }
}

/// An attribute that is a list of counts.
fn counts(attrs: &serde_json::Map<String, Value>, name: &str) -> Result<Vec<usize>> {
    Vec::from_attribute(&attribute(name, &attrs[name])?).context("negative numbers")
}

fn reduce_window(attrs: &serde_json::Map<String, Value>) -> Result<OpRef> {
    let [low, high] = padding(attrs)?.map(|side| side.iter().map(|&n| n as usize).collect());
    let window = Window {
        dimensions: counts(attrs, "window")?,
        strides: counts(attrs, "strides")?,
        low,
        high,
    };
    match attrs["computation"].as_str() {
        Some("max") => Ok(OpRef::new(ReduceWindowMax::new(window))),
        Some("sum") => Ok(OpRef::new(ReduceWindowSum::new(window))),
        other => bail!("no window is folded by {other:?}"),
    }
}

/// The attributes of a convolution with the layout of [`Convolution::new`] throughout.
fn convolution(attrs: &serde_json::Map<String, Value>) -> Result<Attributes> {
    let list = |name: &str| counts(attrs, name);
    let strides = list("strides")?;
    let [low, high] = padding(attrs)?;
    let groups = attrs["feature_group_count"].as_u64().context("no groups")?;
    let op = Convolution {
        low,
        high,
        lhs_dilation: list("lhs_dilation")?,
        rhs_dilation: list("rhs_dilation")?,
        feature_group_count: groups as usize,
        ..Convolution::new(strides.len())
    };
    Ok(OpRef::new(Convolution { strides, ..op }).attributes())
}

/// The padding in front and behind, which is recorded in pairs.
fn padding(attrs: &serde_json::Map<String, Value>) -> Result<[Vec<i64>; 2]> {
    let pairs = attrs["padding"].as_array().context("no padding")?;
    let side = |i: usize| -> Result<Vec<i64>> {
        let amounts = pairs.iter().map(|pair| pair[i].as_i64());
        amounts.collect::<Option<_>>().context("padding is pairs of integers")
    };
    Ok([side(0)?, side(1)?])
}

/// Our name of an attribute.
fn renamed(mnemonic: &str, name: &str) -> &'static str {
    let name = match (mnemonic, name) {
        ("broadcast_in_dim", "dimensions") => "broadcast_dimensions",
        ("sort", "is_stable") => "stable",
        ("scatter", "computation") => "combiner",
        (_, name) => name,
    };
    // Ops name their attributes by literals; a test may lose some bytes.
    Box::leak(name.to_string().into_boxed_str())
}

fn attribute(name: &str, value: &Value) -> Result<Attribute> {
    let int = |value: &Value| {
        value.as_i64().ok_or_else(|| anyhow!("attribute {name}: {value} is no integer"))
    };
    match value {
        Value::Bool(flag) => Ok((*flag).into()),
        Value::Number(_) => Ok(int(value)?.into()),
        Value::Array(list) => Ok(list.iter().map(int).collect::<Result<Vec<i64>>>()?.into()),
        Value::String(word) if name == "dtype" => {
            Ok(DType::parse(word).ok_or_else(|| anyhow!("no dtype {word}"))?.into())
        }
        Value::String(word) => Ok(word.clone().into()),
        _ => bail!("attribute {name}: {value} is of no kind of ours"),
    }
}

fn check(record: &Record) -> Vec<String> {
    // A rule that panics is a complaint like another; the message of the panic goes to standard error.
    let guarded = |what: &str, run: &dyn Fn() -> Result<Option<String>>| {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err(anyhow!("panicked")));
        let problem = outcome.unwrap_or_else(|error| Some(format!("{error:#}")))?;
        Some(format!("{what} of {}: {problem}", record.name))
    };
    let value = guarded("value", &|| check_value(record));
    let forward = record
        .tangents
        .as_ref()
        .and_then(|derivative| guarded("jvp", &|| check_jvp(record, derivative)));
    let reverse = record
        .cotangents
        .as_ref()
        .and_then(|derivative| guarded("vjp", &|| check_vjp(record, derivative)));
    [value, forward, reverse].into_iter().flatten().collect()
}

fn check_value(record: &Record) -> Result<Option<String>> {
    record.op.infer(&types(&record.inputs))?;
    let got = record.op.eval(&record.inputs);
    let expected: Vec<Option<&Array>> = record.outputs.iter().map(Some).collect();
    compare(&expected, &got.iter().collect::<Vec<_>>(), 2e-6)
}

fn check_jvp(record: &Record, derivative: &Derivative) -> Result<Option<String>> {
    let func = one_op(&record.op, &types(&record.inputs));
    let wrt: Vec<bool> = derivative.given.iter().map(Option::is_some).collect();
    let (joint, present) = jvp_with(&func, &wrt, &vec![true; func.results.len()])?;
    let arguments: Vec<Array> =
        record.inputs.iter().cloned().chain(derivative.given.iter().flatten().cloned()).collect();
    let got = joint.eval(&arguments).split_off(func.results.len());
    let expected: Vec<Option<&Array>> = derivative
        .expected
        .iter()
        .zip(&present)
        .filter(|(_, present)| **present)
        .map(|(expected, _)| expected.as_ref())
        .collect();
    compare(&expected, &got.iter().collect::<Vec<_>>(), 5e-6)
}

fn check_vjp(record: &Record, derivative: &Derivative) -> Result<Option<String>> {
    let func = one_op(&record.op, &types(&record.inputs));
    let wrt: Vec<bool> = derivative.expected.iter().map(Option::is_some).collect();
    let parts = vjp(&func, &wrt)?;
    let residuals = parts.primal.eval(&record.inputs).split_off(func.results.len());
    let cotangents = float_results(&func).map(|(i, ty)| {
        let given = derivative.given.get(i).cloned().flatten();
        given.unwrap_or_else(|| Array::splat(ty.clone(), Scalar::Float(0.0)))
    });
    let arguments: Vec<Array> = residuals.into_iter().chain(cotangents).collect();
    let got = parts.pullback.eval(&arguments);
    let expected: Vec<Option<&Array>> = derivative
        .expected
        .iter()
        .filter(|expected| expected.is_some())
        .map(Option::as_ref)
        .collect();
    compare(&expected, &got.iter().collect::<Vec<_>>(), 5e-6)
}

fn float_results(func: &Func) -> impl Iterator<Item = (usize, TensorType)> {
    func.result_types().into_iter().enumerate().filter(|(_, ty)| ty.dtype.is_float())
}

/// Compares arrays with the expected arrays, with the tolerance for `f32` or for the dtype.
fn compare(
    expected: &[Option<&Array>],
    got: &[&Array],
    f32_tolerance: f64,
) -> Result<Option<String>> {
    if expected.len() != got.len() {
        bail!("expected {} arrays, got {}", expected.len(), got.len());
    }
    let one = |(expected, got): (&Option<&Array>, &&Array)| {
        let expected = (*expected)?;
        let tolerance = match expected.ty().dtype {
            DType::F16 => 1e-3,
            DType::BF16 => 8e-3,
            DType::F64 => 1e-14,
            _ => f32_tolerance,
        };
        difference(expected, got, tolerance)
    };
    Ok(expected.iter().zip(got).find_map(one))
}
