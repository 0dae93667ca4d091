//! Random programs, large programs, and byte-identical output in every process.

use super::{Random, assert_same, check};
use crate::ir::{Builder, Func, Var};
use crate::ops::{Convert, Direction};
use crate::simplify::{Options, simplify};
use crate::types::{DType, TensorType};
use std::process::Command;

/// A program of `equations` equations over a few types, with much to simplify: few values, few
/// constants.
fn program(seed: u64, equations: usize) -> Func {
    let mut random = Random(seed);
    let mut b = Builder::new();
    let dtypes = [DType::F32, DType::I32, DType::U8, DType::Bool];
    let shapes: [&[usize]; 5] = [&[], &[2], &[2, 3], &[3, 2], &[2, 1, 3]];
    let mut values: Vec<Var> = Vec::new();
    for dtype in dtypes {
        values.push(b.param(TensorType::new(dtype, [2, 3])));
        values.push(b.param(TensorType::new(dtype, [2])));
        values.push(b.param(TensorType::scalar(dtype)));
    }
    while b.eqns().len() < equations {
        let recent = values.len().min(24);
        let x = if random.below(4) == 0 {
            values[random.below(values.len())]
        } else {
            values[values.len() - 1 - random.below(recent)]
        };
        let ty = b.ty(x).clone();
        let alike: Vec<Var> = values.iter().copied().filter(|&y| *b.ty(y) == ty).collect();
        let y = alike[random.below(alike.len())];
        let is_bool = ty.dtype == DType::Bool;
        let value = match random.below(18) {
            0 if !is_bool => b.add(x, y),
            1 if !is_bool => b.sub(x, y),
            2 if !is_bool => b.mul(x, y),
            3 if !is_bool => b.neg(x),
            4 if !is_bool => b.maximum(x, y),
            5 if !ty.dtype.is_float() => b.xor(x, y),
            6 if !ty.dtype.is_float() => b.and(x, y),
            7 if !ty.dtype.is_float() => b.not(x),
            8 => b.compare(Direction::ALL[random.below(6)], x, y),
            9 => {
                let predicate = ty.with_dtype(DType::Bool);
                match values.iter().rev().find(|&&p| *b.ty(p) == predicate) {
                    Some(&p) => b.select(p, x, y),
                    None => continue,
                }
            }
            10 => b.emit1(Convert { dtype: dtypes[random.below(4)] }, &[x]),
            11 | 12 => {
                let number = [0.0, -0.0, 1.0, -1.0, 2.0, 3.5][random.below(6)];
                b.full(&ty, number)
            }
            13 => {
                let shape = shapes[random.below(5)];
                if shape.iter().product::<usize>() != ty.elements() {
                    continue;
                }
                b.reshape(x, shape)
            }
            14 if ty.rank() == 2 => b.permute(x, &[1, 0]),
            15 if ty.shape[..] == [2] || ty.rank() == 0 => {
                b.broadcast_in_dim(x, &[2, 3], &[0][..ty.rank()])
            }
            16 if ty.rank() == 2 => b.slice_axis(x, 0, 0, 1 + random.below(ty.shape[0])),
            17 if ty.rank() > 0 => b.concatenate(&[x, y], 0),
            _ => continue,
        };
        if b.ty(value).elements() <= 24 {
            values.push(value);
        }
    }
    let results = (0..6).map(|_| values[values.len() - 1 - random.below(30)]).collect();
    b.finish("program", results)
}

#[test]
fn random_programs_keep_all_bits() {
    let mut fewer = 0;
    for seed in 0..300 {
        let func = program(seed, 60);
        let after = check(&func, &Options::all(), seed);
        let before = simplify(&func, &Options::default()).eqn_count();
        assert!(after.eqn_count() <= before + 8, "{before} equations became {}", after.eqn_count());
        fewer += usize::from(after.eqn_count() < before);
    }
    assert!(fewer > 200, "of 300 programs, only {fewer} became smaller");
}

/// A chain of rounds as in random number generators, on numbers; every other number is known.
fn chain(rounds: u64) -> Func {
    let mut b = Builder::new();
    let ty = TensorType::new(DType::U32, [2]);
    let (mut x, mut y) = (b.param(ty.clone()), b.param(ty.clone()));
    for i in 0..rounds {
        let constant = b.full(&ty, (i % 5) as f64);
        let sum = b.add(x, constant);
        let more = b.add(sum, constant);
        let mixed = b.xor(y, more);
        (x, y) = (mixed, b.add(mixed, x));
    }
    b.finish("chain", vec![x, y])
}

/// A graph that grows forever, or a walk that visits shared parts repeatedly, would not end.
#[test]
fn long_programs_end() {
    let func = chain(4000);
    let after = simplify(&func, &Options::all());
    assert!(after.eqn_count() <= simplify(&func, &Options::default()).eqn_count() - 3000);
    let short = chain(40);
    check(&short, &Options::all(), 5);
}

/// After a limit is reached, the rewrites found until then are used.
#[test]
fn limits_keep_all_bits() {
    for seed in 0..40 {
        let func = program(seed, 60);
        for (iterations, nodes_per_equation, rounds) in [(1, 8, 8), (8, 0, 8), (8, 8, 1), (0, 8, 8)]
        {
            let options = Options { iterations, nodes_per_equation, rounds, ..Options::all() };
            assert_same(&func, &simplify(&func, &options), seed);
        }
    }
}

/// Set in the child processes of the test below.
const CHILD: &str = "PODRACER_PRINT_SIMPLIFIED";

fn texts() -> String {
    let mut texts = simplify(&chain(50), &Options::all()).to_string();
    for seed in 0..20 {
        texts += &simplify(&program(seed, 80), &Options::all()).to_string();
    }
    texts
}

#[test]
fn every_process_gives_the_same_bytes() {
    if let Ok(path) = std::env::var(CHILD) {
        std::fs::write(path, texts()).expect("the parent made the folder");
        return;
    }
    let expected = texts();
    let test = std::env::current_exe().expect("a test has a file");
    for number in 0..3 {
        let name = format!("podracer-simplified-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let status = Command::new(&test)
            .args(["--exact", "simplify::tests::programs::every_process_gives_the_same_bytes"])
            .env(CHILD, &path)
            .status()
            .expect("the test's file can be run");
        assert!(status.success());
        let text = std::fs::read_to_string(&path).expect("the child wrote it");
        std::fs::remove_file(&path).expect("it is ours");
        assert!(text == expected, "process {number} gave another text");
    }
}

#[test]
fn an_option_is_on_or_off() {
    use crate::simplify::Group;
    let all = Options::all();
    for &group in Group::ALL {
        assert!(all.has(group) && !all.clone().without(group).has(group));
        assert_eq!(
            all.clone().without(group).with(group).has(group),
            Options::default().with(group).has(group)
        );
    }
}
