//! `vmap` of an op is the op on each example.

use super::{Case, cases, check_all, close, func_of, rounding, types_of};
use podracer_compiler::transform::{VmapContext, vmap};
use podracer_compiler::{Array, Func, Scalar, ir};

/// Another operand of the same type: its elements rolled, floats drawn towards zero, lone integers
/// incremented.
fn variant(array: &Array, number: usize) -> Array {
    let mut data: Vec<Scalar> = array.scalars().collect();
    if data.is_empty() {
        return array.clone();
    }
    let steps = number % data.len();
    data.rotate_left(steps);
    let lone = data.len() == 1;
    let data = data.into_iter().map(|value| match value {
        Scalar::Float(value) => Scalar::Float(value * (1.0 - 0.125 * number as f64)),
        Scalar::Int(value) if lone => Scalar::Int(value + number as i128),
        Scalar::Bool(value) if lone => Scalar::Bool(value ^ (number % 2 == 1)),
        value => value,
    });
    Array::new(array.ty().clone(), data)
}

/// The choices of operands to batch: all choices of a few operands, some choices of many.
fn choices(operands: usize) -> Vec<Vec<bool>> {
    if operands <= 4 {
        return (1..1usize << operands)
            .map(|bits| (0..operands).map(|i| bits >> i & 1 == 1).collect())
            .collect();
    }
    let one = |i: usize| (0..operands).map(|j| i == j).collect::<Vec<bool>>();
    let but_one = |i: usize| (0..operands).map(|j| i != j).collect::<Vec<bool>>();
    let mut choices = vec![vec![true; operands]];
    (0..operands).for_each(|i| choices.extend([one(i), but_one(i)]));
    choices
}

/// Checks `func`, batched in some parameters, against its results for each example.
pub fn check_batch(
    func: &Func,
    inputs: &[Array],
    batched: &[bool],
    size: usize,
) -> Result<(), String> {
    let what = format!("batch of {size} in {batched:?}");
    let (wide, flags) =
        vmap(func, &VmapContext::new(size), batched, &vec![false; func.results.len()]);
    ir::verify(&wide).map_err(|error| format!("{what}: {error}"))?;
    for ((got, ty), flag) in wide.result_types().iter().zip(func.result_types()).zip(&flags) {
        let expected = if *flag { ty.stacked(size) } else { ty };
        if *got != expected {
            return Err(format!("{what}: expected a result of type {expected}, got {got}"));
        }
    }
    if size == 0 {
        return Ok(());
    }
    let examples: Vec<Vec<Array>> = (0..size)
        .map(|number| {
            inputs
                .iter()
                .zip(batched)
                .map(|(input, &is)| if is { variant(input, number) } else { input.clone() })
                .collect()
        })
        .collect();
    let stacked: Vec<Array> = (0..inputs.len())
        .map(|i| {
            let column: Vec<Array> = examples.iter().map(|example| example[i].clone()).collect();
            if batched[i] { Array::stack(inputs[i].ty(), &column) } else { inputs[i].clone() }
        })
        .collect();
    let results = wide.eval(&stacked);
    for (number, example) in examples.iter().enumerate() {
        for (i, expected) in func.eval(example).iter().enumerate() {
            let got = if flags[i] { results[i].index_leading(number) } else { results[i].clone() };
            close(
                &format!("{what}, example {number}, result {i}"),
                &got,
                expected,
                rounding(expected.ty().dtype),
            )?;
        }
    }
    Ok(())
}

fn check_case(case: &Case, size: usize) -> Result<(), String> {
    let func = func_of(&case.sample.op, &types_of(&case.sample.inputs))?;
    choices(case.sample.inputs.len())
        .iter()
        .try_for_each(|batched| check_batch(&func, &case.sample.inputs, batched, size))
}

#[test]
fn vmap_is_the_op_on_each_example() {
    check_all(cases(), |case| check_case(case, 3));
}

#[test]
fn vmap_of_a_batch_of_one() {
    check_all(cases(), |case| check_case(case, 1));
}

#[test]
fn vmap_of_an_empty_batch_has_its_type() {
    check_all(cases(), |case| check_case(case, 0));
}

#[test]
fn vmap_of_vmap_is_the_op_on_each_example() {
    check_all(cases(), |case| {
        let func = func_of(&case.sample.op, &types_of(&case.sample.inputs))?;
        // The inner batch is in every second operand, so that the outer batch meets batched and
        // unbatched operands.
        for odd in [0, 1] {
            let inner: Vec<bool> = (0..case.sample.inputs.len()).map(|i| i % 2 == odd).collect();
            if !inner.contains(&true) {
                continue;
            }
            let (wide, _) =
                vmap(&func, &VmapContext::new(2), &inner, &vec![true; func.results.len()]);
            let inputs: Vec<Array> =
                (case.sample.inputs.iter().zip(&inner))
                    .map(|(x, &is)| {
                        if is {
                            Array::stack(x.ty(), &[variant(x, 1), x.clone()])
                        } else {
                            x.clone()
                        }
                    })
                    .collect();
            choices(inputs.len())
                .iter()
                .try_for_each(|batched| check_batch(&wide, &inputs, batched, 2))?;
        }
        Ok(())
    });
}
