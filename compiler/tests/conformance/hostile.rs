//! For any attributes and any operands in a text, an op is rejected or typed, without a panic.

use super::{cases, check_all, types_of};
use podracer_compiler::ops::registry;
use podracer_compiler::{Attribute, Attributes, DType, TensorType};

const NUMBERS: [i64; 9] = [0, 1, 2, 7, -1, 1 << 40, i64::MAX - 1, i64::MAX, i64::MIN];

/// The extents that a text can have at most.
const EXTENTS: [usize; 4] = [0, 1, 5, 1 << 40];

fn other_values(value: &Attribute) -> Vec<Attribute> {
    match value {
        Attribute::Bool(value) => vec![Attribute::Bool(!value)],
        Attribute::Int(_) => NUMBERS.map(Attribute::Int).to_vec(),
        Attribute::Ints(values) => {
            let at = |i: usize, number: i64| {
                let mut values = values.clone();
                values[i] = number;
                values
            };
            let mut others: Vec<Vec<i64>> =
                (0..values.len()).flat_map(|i| NUMBERS.map(|number| at(i, number))).collect();
            others.extend((0..values.len()).map(|count| values[..count].to_vec()));
            others.extend(NUMBERS.map(|number| [&values[..], &[number]].concat()));
            others.extend(NUMBERS.map(|number| vec![number; values.len()]));
            others.into_iter().map(Attribute::Ints).collect()
        }
        Attribute::DType(_) => DType::ALL.map(Attribute::DType).to_vec(),
        Attribute::Funcs(funcs) => {
            (0..funcs.len()).map(|count| Attribute::Funcs(funcs[..count].to_vec())).collect()
        }
        Attribute::Word(_) | Attribute::Array(_) | Attribute::Func(_) => Vec::new(),
    }
}

fn other_attributes(attributes: &Attributes) -> Vec<Attributes> {
    let mut others = vec![attributes.clone()];
    for (i, (_, value)) in attributes.0.iter().enumerate() {
        for value in other_values(value) {
            let mut other = attributes.clone();
            other.0[i].1 = value;
            others.push(other);
        }
    }
    others
}

fn other_operands(types: &[TensorType]) -> Vec<Vec<TensorType>> {
    let mut others = vec![types.to_vec(), Vec::new()];
    for (i, ty) in types.iter().enumerate() {
        let mut changed = vec![ty.with_shape([&[2][..], &ty.shape[..]].concat())];
        changed.extend(DType::ALL.map(|dtype| ty.with_dtype(dtype)));
        changed.extend((0..ty.rank()).map(|rank| ty.with_shape(&ty.shape[..rank])));
        for axis in 0..ty.rank() {
            for extent in EXTENTS {
                let mut ty = ty.clone();
                ty.shape[axis] = extent;
                changed.push(ty);
            }
        }
        for ty in changed {
            let mut types = types.to_vec();
            types[i] = ty;
            others.push(types);
        }
        others.push(types[..i].to_vec());
        others.push([types, &[ty.clone()][..]].concat());
    }
    // Sums of extents, which no memory holds.
    let huge = |ty: &TensorType| ty.with_shape(vec![1 << 40; ty.rank()]);
    others.push(types.iter().map(huge).collect());
    others
}

#[test]
fn no_attributes_and_no_operands_make_an_op_panic() {
    check_all(cases(), |case| {
        let entry = registry::find(case.mnemonic).ok_or("not in the registry")?;
        let types = types_of(&case.sample.inputs);
        for attributes in other_attributes(&case.sample.op.attributes()) {
            let Ok(op) = (entry.parse)(&attributes) else {
                continue;
            };
            for operands in other_operands(&types) {
                let infer = || op.infer(&operands).is_ok();
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(infer)).is_err() {
                    return Err(format!("{op:?} panics for {operands:?}"));
                }
            }
        }
        Ok(())
    });
}
