//! Tiles through XLA: a batch is a loop over tiles, with the values of the reference semantics.

use podracer_compiler::simplify::{Options, simplify};
use podracer_compiler::stablehlo::{ModuleSpec, stablehlo};
use podracer_dsl::prelude::*;
use podracer_runtime::{Array, CompileOptions, Module, XlaOptions};

use crate::programs::{buffer, client, device, kept, values};

#[test]
fn a_batch_is_one_loop_over_tiles() {
    for (size, tiled) in [(64, false), (1000, true)] {
        let traced = trace(f32([size]), |xs| {
            grad(xs, |xs| vmap(xs, |x| tile(64, x, |x| (x.sin() * 0.3).exp())).sum())
        });
        let traced = traced.expect("it traces");
        for launches in [false, true] {
            let mut options = Options::default();
            options.launches = launches;
            let func = simplify(traced.func(), &options);
            let text = stablehlo(&func, &ModuleSpec::new("tiles", &func)).expect("a module").text;
            // One loop for the values, and one for the gradient.
            let loops = if tiled && !launches { 2 } else { 0 };
            assert_eq!(text.matches("stablehlo.while").count(), loops, "{text}");

            let module = Module::new(text, func.param_types(), func.result_types());
            let xla = XlaOptions::for_platform("cpu").whole_loop().pairs();
            let options = CompileOptions { xla, ..CompileOptions::default() };
            let executable = client().compile(&module, &options).expect("it compiles");
            let numbers: Vec<f32> = (0..size).map(|i| (i as f32 * 0.37).sin()).collect();
            let x = buffer(&[size], &numbers, &device(0));
            let results = executable.execute(vec![kept([&x])]).expect("it runs").remove(0);
            let argument = Array::from_slice([size], &numbers).expect("as many numbers");
            let expected = traced.eval(&[argument]).expect("it fits").remove(0).to_f64();
            for (got, expected) in values(&results[0]).into_iter().zip(expected) {
                assert!((f64::from(got) - expected).abs() < 1e-5, "{got} against {expected}");
            }
        }
    }
}
