//! Tiles: a tiled function equals the function, in each form that a platform runs.

use crate::helpers::close;
use podracer_compiler::Func;
use podracer_compiler::ops::Scan;
use podracer_compiler::simplify::{Options, simplify};
use podracer_compiler::stablehlo::{ModuleSpec, stablehlo};
use podracer_dsl::any_example;
use podracer_dsl::prelude::*;

const LANES: usize = 64;

/// A function of one example.
type One<'a> = &'a dyn Fn(Tensor) -> Tensor;

/// The program for a CPU, and the program for a platform that launches each kernel.
fn forms(func: &Func) -> [Func; 2] {
    [false, true].map(|launches| {
        let mut options = Options::default();
        options.launches = launches;
        simplify(func, &options)
    })
}

/// The number of loops over tiles.
fn loops(func: &Func) -> usize {
    func.eqns.iter().filter(|eqn| eqn.op.downcast::<Scan>().is_some()).count()
}

/// Numbers between -1 and 1.
fn numbers(ty: &TensorType) -> Array {
    let values: Vec<f64> = (0..ty.elements()).map(|i| (i as f64 * 0.61 + 0.2).sin()).collect();
    Array::floats(DType::F32, ty.shape.clone(), &values)
}

/// Checks that `program` has the same results with tiles as without, and that its CPU program has
/// this number of loops more.
#[track_caller]
fn check<S: ArgumentSpec + Clone, R: IntoTree>(
    spec: S,
    expected_loops: usize,
    program: impl Fn(S::Tree, &dyn Fn(Tensor, One<'_>) -> Tensor) -> R,
) {
    let trace = |tiled: bool| {
        let once = |x: Tensor, f: One<'_>| if tiled { tile(LANES, x, f) } else { f(x) };
        trace(spec.clone(), |arguments| program(arguments, &once)).expect("it traces")
    };
    let (plain, tiled) = (trace(false), trace(true));
    let arguments: Vec<Array> = plain.func().param_types().iter().map(numbers).collect();
    let expected = plain.eval(&arguments).expect("it fits");
    let [cpu, launched] = forms(tiled.func());
    for (form, func) in [("reference", tiled.func()), ("CPU", &cpu), ("launched", &launched)] {
        let results = func.eval(&arguments);
        assert_eq!(results.len(), expected.len(), "{form}");
        for (result, expected) in results.iter().zip(&expected) {
            assert_eq!(result.ty(), expected.ty(), "{form}");
            close(result, &expected.to_f64(), 1e-5);
        }
    }
    let [plain_cpu, _] = forms(plain.func());
    assert_eq!(loops(&cpu), loops(&plain_cpu) + expected_loops, "{cpu}");
    assert_eq!(loops(&launched), loops(&plain_cpu), "{launched}");
    let text = stablehlo(&cpu, &ModuleSpec::new("tiles", &cpu)).expect("a module").text;
    assert!(!text.is_empty());
}

#[test]
fn a_batch_of_any_size_is_as_without_tiles() {
    for (size, loops) in [(0, 0), (1, 0), (7, 0), (64, 0), (65, 1), (1000, 1), (1024, 1)] {
        check((f32([size, 3]), f32([3, 3])), loops, |(xs, w), once| {
            vmap(xs, |x| once(x, &|x| (x.matmul(w) + x).tanh()))
        });
    }
}

#[test]
fn tiles_are_filled_with_copies_of_the_last_example() {
    // 67 lanes are two tiles of 40, with 13 further lanes, which must not divide by zero for ever.
    let traced = trace(f32([67]), |xs| {
        vmap(xs, |x| {
            tile(LANES, x, |x| {
                while_loop(1.0, |y| any_example(y.lt(x)), |y| select(y.lt(x), y * 2.0, y))
            })
        })
    });
    let traced = traced.expect("it traces");
    let xs = Array::floats(DType::F32, [67], &(1..=67).map(f64::from).collect::<Vec<_>>());
    let expected: Vec<f64> = (1..=67_u32).map(|x| f64::from(x.next_power_of_two())).collect();
    for func in forms(traced.func()) {
        close(&func.eval(std::slice::from_ref(&xs))[0], &expected, 0.0);
    }
    let [cpu, _] = forms(traced.func());
    assert!(cpu.to_string().contains("f32[2,40]"), "{cpu}");
}

#[test]
fn gradients_are_tiled_and_sum_over_shared_operands() {
    for size in [7, 130] {
        let loops = usize::from(size > LANES) * 2;
        // The batch inside the gradient.
        check((f32([size, 3]), f32([3, 3])), loops, |(xs, w), once| {
            grad((xs, w), |(xs, w)| vmap(xs, |x| once(x, &|x| x.matmul(w).sin().sum())).mean())
        });
        // The gradient inside the batch.
        check((f32([size, 3]), f32([3, 3])), loops, |(xs, w), once| {
            vmap(xs, |x| grad((x, w), |(x, w)| once(x, &|x| x.matmul(w).sin().sum())))
        });
        // A residual that all examples share.
        check((f32([size, 3]), f32([3, 3])), loops, |(xs, w), once| {
            let one = |x: Tensor, w: Tensor| once(x, &|x| x.matmul(w.exp()).sin().sum());
            grad((xs, w), |(xs, w)| vmap(xs, |x| one(x, w)).mean())
        });
        check((f32([size, 3]), f32([3])), loops / 2, |(xs, w), once| {
            jvp(w, w.ones_like(), |w| vmap(xs, |x| once(x, &|x| (x * w).sin()))).1
        });
    }
}

#[test]
fn second_derivatives_are_as_without_tiles() {
    check((f32([70, 2]), f32([2])), 2, |(xs, w), once| {
        let loss = |w: Tensor| vmap(xs, |x| once(x, &|x| (x * w).sin().prod())).mean();
        jvp(w, w.ones_like(), |w| grad(w, loss)).1
    });
}

#[test]
fn a_result_of_no_example_is_computed_once() {
    let traced =
        trace((f32([100]), f32([])), |(xs, c)| vmap(xs, |x| tile(LANES, x, |x| (x + c, c.sin()))));
    let [cpu, _] = forms(traced.expect("it traces").func());
    let text = cpu.to_string();
    assert_eq!(text.matches("sine").count(), 1, "{text}");
    assert!(text.contains("f32[] = sine"), "{text}");
}

#[test]
fn batches_of_batches() {
    // A small inner batch: tiles of 16 outer examples. A large one: tiles of inner examples.
    let sizes = [(100, 4, 1), (3, 200, 1), (2, 64, 1), (5, 1, 0), (0, 70, 1), (70, 0, 1)];
    for (outer, inner, loops) in sizes {
        check((f32([outer, inner, 2]), f32([2])), loops, |(xss, w), once| {
            vmap(xss, |xs| vmap(xs, |x| once(x, &|x| (x * w).sin())))
        });
        check((f32([outer, 2]), f32([inner, 2])), loops, |(ws, xs), once| {
            vmap(ws, |w| vmap(xs, |x| once(x, &|x| (x * w).sin())))
        });
    }
}

#[test]
fn a_named_axis_is_not_divided() {
    check(f32([100]), 0, |xs, once| {
        vmap_named("batch", xs, |x| once(x, &|x| x - pmean(x, "batch")))
    });
}

#[test]
fn a_tile_in_a_loop_and_a_tile_in_a_tile() {
    check(f32([100, 2]), 0, |xs, once| {
        vmap(xs, |x| fori_loop(0..3, x, |_, x| once(x, &|x| x.sin())))
    });
    check(f32([100, 2]), 1, |xs, once| {
        vmap(xs, |x| once(x, &|x| once(x, &|x| x.sin()) + fence(x, |x| x.cos())))
    });
}
