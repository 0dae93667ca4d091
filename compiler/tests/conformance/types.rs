//! Inference and the reference semantics agree.

use super::{cases, check_all, func_of, types_of};
use podracer_compiler::{Scalar, ops::registry};

#[test]
fn every_op_has_samples_and_a_mnemonic_of_its_own() {
    let mut seen: Vec<&str> = Vec::new();
    for entry in registry::all() {
        // Over a batch it has one result, and not one for each example, which the tests of samples compare.
        let without = entry.mnemonic == "any_example";
        assert_eq!((entry.samples)().is_empty(), without, "samples of {}", entry.mnemonic);
        assert!(!seen.contains(&entry.mnemonic), "{} stands twice in the registry", entry.mnemonic);
        assert!(registry::find(entry.mnemonic).is_some(), "{} is not found", entry.mnemonic);
        seen.push(entry.mnemonic);
    }
}

#[test]
fn eval_gives_what_infer_says() {
    check_all(cases(), |case| {
        let inferred = case
            .sample
            .op
            .infer(&types_of(&case.sample.inputs))
            .map_err(|error| error.to_string())?;
        let results = case.sample.op.eval(&case.sample.inputs);
        let evaluated = types_of(&results);
        if inferred != evaluated {
            return Err(format!("infer says {inferred:?}, eval gives {evaluated:?}"));
        }
        for result in &results {
            let kind_fits = |value: Scalar| match value {
                Scalar::Bool(_) => result.ty().dtype == podracer_compiler::DType::Bool,
                Scalar::Int(_) => result.ty().dtype.is_integer(),
                Scalar::Float(_) => result.ty().dtype.is_float(),
            };
            if let Some(value) = result.scalars().find(|&value| !kind_fits(value)) {
                return Err(format!("{value:?} is not a value of {}", result.ty().dtype));
            }
        }
        func_of(&case.sample.op, &types_of(&case.sample.inputs)).map(|_| ())
    });
}

#[test]
fn infer_rejects_one_operand_too_many() {
    check_all(cases(), |case| {
        // An additional operand, of a type that no n-ary op accepts next to the sample's operands.
        let mut types = types_of(&case.sample.inputs);
        types.push(podracer_compiler::TensorType::new(
            podracer_compiler::DType::Bool,
            [7, 7, 7, 7, 7],
        ));
        match case.sample.op.infer(&types) {
            Ok(_) => Err("infer accepts one operand too many, of type bool[7,7,7,7,7]".to_string()),
            Err(error) if error.message.is_empty() => {
                Err("infer rejects without a reason".to_string())
            }
            Err(_) => Ok(()),
        }
    });
}

#[test]
fn infer_never_panics() {
    check_all(cases(), |case| {
        let types = types_of(&case.sample.inputs);
        let _ = case.sample.op.infer(&[]);
        for i in 0..types.len() {
            let mut fewer = types.clone();
            fewer.remove(i);
            let _ = case.sample.op.infer(&fewer);
            for dtype in podracer_compiler::DType::ALL {
                let mut other = types.clone();
                other[i] = types[i].with_dtype(dtype);
                let _ = case.sample.op.infer(&other);
            }
            for shape in [vec![], vec![0], vec![1], vec![2, 3], vec![5, 1, 4], vec![1; 7]] {
                let mut other = types.clone();
                other[i] = types[i].with_shape(shape);
                let _ = case.sample.op.infer(&other);
            }
        }
        Ok(())
    });
}
