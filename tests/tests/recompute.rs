//! Programs that XLA makes of `checkpoint`: nothing is merged, memory is saved, values stay.

use podracer_dsl::prelude::*;
use podracer_runtime::{CompileOptions, Executable, lower};
use podracer_tests::compare::differences;
use podracer_tests::xla::{client, run};

fn executable<A: Tree, R: Tree>(traced: &Traced<A, R>) -> Executable {
    let lowered = lower("recompute", traced, 1).expect("StableHLO");
    let client = client().expect("the plugin");
    client.compile(&lowered.module, &CompileOptions::default()).expect("it compiles")
}

fn layer(x: Tensor) -> Tensor {
    x.sin().exp().tanh()
}

#[test]
fn xla_does_not_merge_what_is_computed_again() {
    let exponentials = |save: Option<Save>| {
        let traced = trace(f32([64, 64]), |x| {
            value_and_grad(x, |x| match &save {
                Some(save) => checkpoint(save.clone(), x, layer).sum(),
                None => layer(x).sum(),
            })
        });
        let optimized = executable(&traced.expect("no mistake")).compiled().optimized();
        let instructions = optimized.expect("HLO").instructions();
        instructions.get("exponential").copied().unwrap_or(0)
    };
    assert_eq!((exponentials(None), exponentials(Some(Save::Nothing))), (1, 2));
}

/// The gradient through 200 steps of a network.
fn through_a_scan(save: Save) -> Traced<(Tensor, Tensor), Tensor> {
    let traced = trace((f32([16, 16]), f32([64, 16])), |(w, h)| {
        grad(w, |w| {
            let step = |h: Tensor| checkpoint(save.clone(), h, |h| layer(dot(layer(dot(h, w)), w)));
            scan(h, 0..200, |h, _| (step(h), ())).0.square().mean()
        })
    });
    traced.expect("no mistake")
}

#[test]
fn a_loop_needs_less_memory_and_gives_the_same() {
    let memory = |save| {
        let stats = executable(&through_a_scan(save)).compiled().memory_stats();
        stats.expect("statistics").temporary
    };
    let (everything, dots, nothing) =
        (memory(Save::Everything), memory(Save::Dots), memory(Save::Nothing));
    assert!(2 * dots < everything, "{dots} against {everything}");
    assert!(2 * nothing < dots, "{nothing} against {dots}");
    let traced = through_a_scan(Save::Nothing);
    let mut next = 0.0;
    let mut arguments = Vec::new();
    for ty in traced.arguments().types() {
        arguments.push(Array::from_fn(ty, |_| {
            next += 1.0;
            podracer_compiler::Scalar::Float(0.3 * f64::sin(next))
        }));
    }
    let got = run(traced.func(), &arguments).expect("it runs");
    let plain = run(through_a_scan(Save::Everything).func(), &arguments).expect("it runs");
    assert_eq!(differences(&plain, &got, 1e-6), None);
}
