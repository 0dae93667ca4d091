//! The memory that XLA gives searches, compared with the size of their trees.

use podracer_compiler::stablehlo::{ModuleSpec, stablehlo};
use podracer_dsl::prelude::*;
use podracer_rl::search::*;
use podracer_runtime::{CompileOptions, Module, OptionValue};
use podracer_tests::xla;

/// Bytes of the trees as in `docs/search.md`, for a model with embeddings of one number.
fn stated(batch: usize, simulations: usize, actions: usize) -> usize {
    batch * (simulations + 1) * (4 * (11 + 5 * actions) + 4)
}

/// Bytes of a compiled search of one policy in addition to its arguments. It is not run.
fn taken(batch: usize, simulations: usize, actions: usize) -> usize {
    let spec = (key(), f32([batch, actions]), f32([batch]));
    let traced = trace(spec, |(key, prior_logits, value)| {
        let root = RootFnOutput { prior_logits, value, embedding: value };
        let model = |_: Key, action: Tensor, state: Tensor| {
            let state = (state + action.astype(F32)).sin();
            let output = RecurrentFnOutput {
                reward: state,
                discount: full([batch], 0.99),
                prior_logits: state.expand_dims(1).broadcast_to([batch, actions]),
                value: state,
            };
            (output, state)
        };
        let options = GumbelMuZeroOptions::default();
        let output = gumbel_muzero_policy(key, root, model, simulations, None, &options);
        (output.action, output.action_weights)
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    let func = traced.func();
    let text = stablehlo(func, &ModuleSpec::new("search", func)).expect("it is emitted").text;
    let module = Module::new(text, func.param_types(), func.result_types());
    let xla = vec![("xla_llvm_disable_expensive_passes".to_owned(), OptionValue::Bool(true))];
    let options = CompileOptions { xla, ..CompileOptions::default() };
    let executable = xla::client().expect("the plugin").compile(&module, &options);
    let stats = executable.expect("it compiles").compiled().memory_stats().expect("XLA tells");
    stats.beside_arguments() as usize
}

/// A search takes its trees once, and the large search matches its computed bytes: XLA reserves no
/// second array of trees.
#[test]
fn a_compiled_search_takes_the_memory_of_its_trees_and_no_copy() {
    for (batch, simulations, actions) in [(256, 50, 18), (1024, 800, 362)] {
        let (stated, taken) =
            (stated(batch, simulations, actions), taken(batch, simulations, actions));
        eprintln!("{batch} x {simulations} x {actions}: {stated} bytes stated, {taken} taken");
        assert!(taken * 10 > stated * 7 && taken * 10 < stated * 15, "{stated} {taken}");
    }
}
