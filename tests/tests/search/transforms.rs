//! Searches of every policy, batched twice, simplified in a training loop, compiled for TPUs that
//! are not present, and with gradients.

use super::models::{Search, Settings, found};
use super::with_ways;
use crate::loops::{self, TINY};
use podracer::experiments::build;
use podracer::loading::{Overrides, load};
use podracer::training::{LoopModule, Stage, Training};
use podracer_compiler::simplify::{Options, simplify};
use podracer_compiler::{Array, DType};
use podracer_dsl::prelude::*;
use podracer_envs::boards::TicTacToe;
use podracer_envs::{AnyEnvironment, Catch, Environment};
use podracer_rl::agents::{AlphaZeroSettings, MuZeroSettings, SearchKind};
use podracer_rl::learn::AnyAgent;
use podracer_rl::search::*;
use podracer_runtime::{CompileOptions, Plugin, Topology};
use podracer_test_support::python;
use podracer_test_support::skip::skip;
use podracer_tests::compare::{difference, differences};
use podracer_tests::{check_all, xla};
use serde_json::{Value, json};

const SIMULATIONS: usize = 24;

/// Numbers that depend on a board alone: logits f32 `[B, 9]` and values f32 `[B]` of observations `[B, 3, 3, 2]`.
fn evaluated(observation: Tensor) -> (Tensor, Tensor) {
    let cells = observation.reshape([observation.dim(0), 18]);
    let mixed = (cells * (arange(18).astype(F32) + 1.0)).sum_axis(-1).expand_dims(1);
    let logits = (mixed * (arange(9).astype(F32) + 1.0)).sin();
    (logits, (mixed.index_axis(1, 0) * 0.7).cos())
}

/// AlphaZero's search of tic-tac-toe after a first move of each player, f32 leaves and visits.
fn board_search(options: &SearchOptions, key: Key, first: Tensor) -> impl IntoTree {
    let game = TicTacToe::default();
    let state = game.initial_state(key.again());
    let (state, _) = game.step(state, first, key.again());
    let (state, _) = game.step(state, (first + 4).rem(9), key.again());
    let states = tree_map(&state, |leaf| leaf.expand_dims(0));
    let output = alphazero_policy(key, &game, states, evaluated, -1.0, SIMULATIONS, options);
    found(&output)
}

/// Checks that six searches in two batches of three are bit-identical to the six searches one after another, with and without
/// launches.
#[track_caller]
fn same_in_batches<X: Tree, Y: IntoTree>(xs: impl Fn() -> X, search: impl Fn(X) -> Y) {
    let traced = trace((), |()| {
        let nested = tree_map(&xs(), |leaf| leaf.reshape([&[2, 3], &leaf.shape()[1..]].concat()));
        let batched = vmap(nested, |xs| vmap(xs, &search));
        let alone = map(xs(), &search);
        (batched, alone)
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    for launches in [false, true] {
        let results = xla::run(&with_ways(traced.func(), launches), &[]).expect("it runs");
        let names = traced.results().leaves();
        let (batched, alone) = results.split_at(results.len() / 2);
        for ((batched, alone), (path, _)) in batched.iter().zip(alone).zip(names) {
            let numbers = batched.to_f64();
            assert_eq!(numbers, alone.to_f64(), "{path}");
            // The searches differ, so that equality says something.
            let one = numbers.len() / 6;
            let differ = numbers.chunks(one).any(|other| other != &numbers[..one]);
            assert!(differ, "{path}: {numbers:?}");
        }
    }
}

/// Indices of six tabular models: all discounts, and every second model with invalid actions.
fn models() -> Settings {
    let number = arange(6);
    Settings {
        seed: number + 7,
        discount: number.rem(3).astype(F32) - 1.0,
        levels: full([6], f64::from(1 << 20)),
        invalid: number.rem(2).eq(1),
    }
}

fn tabular_search(policy: &'static str, settings: Settings) -> impl IntoTree {
    let search = Search {
        policy,
        qtransform: "by_parent_and_siblings",
        actions: 5,
        simulations: SIMULATIONS,
        max_depth: None,
    };
    search.run(settings)
}

#[test]
fn tabular_searches_under_vmap_of_vmap_are_the_searches_one_by_one() {
    for policy in ["muzero", "gumbel_muzero", "stochastic_muzero"] {
        same_in_batches(models, |settings| tabular_search(policy, settings));
    }
}

#[test]
fn searches_of_a_game_under_vmap_of_vmap_are_the_searches_one_by_one() {
    for options in kinds() {
        let xs = || (Key::new(5u64).split_n(6).words(), arange(6));
        same_in_batches(xs, |(words, first)| board_search(&options, Key::from_words(words), first));
    }
}

/// Both searches of AlphaZero.
fn kinds() -> [SearchOptions; 2] {
    let gumbel = SearchOptions::Gumbel(GumbelMuZeroOptions::default());
    [SearchOptions::MuZero(MuZeroOptions::default()), gumbel]
}

/// Checks that an iteration of Anakin gives equal results with and without all simplifications:
/// equal integers and bools, and floats that are at most `tolerance` apart.
#[track_caller]
fn same_simplified<E: Environment<Observation = Tensor>>(
    environment: &E,
    agent: &AnyAgent,
    tolerance: f64,
) {
    let traced = loops::traced(environment, agent, TINY);
    let seed = Array::key(3);
    let state = traced.traced_init().eval(&[seed]).expect("a seed");
    let func = traced.traced().func();
    let plain = xla::run_quickly(func, &state).expect("it runs");
    let simplified = simplify(func, &Options::all());
    assert_ne!(simplified.to_string(), func.to_string());
    let got = xla::run_quickly(&simplified, &state).expect("it runs");
    assert_eq!(differences(&plain, &got, tolerance), None);
}

#[test]
fn agents_that_search_are_the_same_simplified_and_not() {
    let catch = Catch { rows: 4, columns: 3 };
    for search in [SearchKind::Muzero, SearchKind::Gumbel] {
        let mut muzero = loops::muzero_settings(2);
        muzero.planning.search.search = search;
        same_simplified(&catch, &loops::agent(&catch, &muzero), 1e-6);
        let game = AnyEnvironment::new(TicTacToe::default());
        let mut planning = muzero.planning.clone();
        planning.search.simulations = 8;
        let alphazero = AlphaZeroSettings {
            planning,
            networks: loops::networks(),
            ..AlphaZeroSettings::default()
        };
        same_simplified(&game, &loops::agent(&game, &alphazero), 1e-6);
    }
    let muzero = MuZeroSettings { chance_outcomes: Some(3), ..loops::muzero_settings(2) };
    same_simplified(&catch, &loops::agent(&catch, &muzero), 1e-6);
}

/// Small experiments with agents that search.
const EXPERIMENTS: [(&str, &str); 5] = [
    ("catch-muzero", "muzero"),
    ("catch-muzero", "gumbel"),
    ("tictactoe-alphazero", "muzero"),
    ("tictactoe-alphazero", "gumbel"),
    ("2048-stochastic-muzero", "muzero"),
];

fn experiments() -> impl Iterator<Item = (String, Box<dyn Training>)> {
    EXPERIMENTS.into_iter().map(|(name, search)| {
        // Lanes of eight devices that divide into the gradient steps.
        let lanes = "anakin.environments=128";
        let search = format!("agent.search={search}");
        let set = [&search, lanes, "agent.simulations=8", "agent.hidden=[16]"];
        let set = set.map(str::to_owned).to_vec();
        let settings = load(name, &Overrides { set, ..Overrides::default() }).expect("settings");
        (format!("{name} with {search}"), build(&settings).expect("a training"))
    })
}

#[test]
fn the_verifier_takes_training_programs_with_searches() {
    let text = |(name, training): (String, Box<dyn Training>)| {
        let text = training.emit(Stage::StableHlo, 1).expect("it is emitted");
        format!("{}\n", json!({ "name": name, "text": text }))
    };
    let lines: String = experiments().map(text).collect();
    let said = python::run(include_str!("../../src/verify.py"), &[], &lines);
    let Some(said) = said.expect("the script runs") else { return };
    let mut complaints: Vec<String> = said.lines().map(str::to_owned).collect();
    let counts: Option<Value> = complaints.pop().and_then(|line| serde_json::from_str(&line).ok());
    assert_eq!(counts.map(|counts| counts["modules"].clone()), Some(EXPERIMENTS.len().into()));
    check_all(&complaints);
}

#[test]
fn training_programs_with_searches_are_compiled_for_tpus_without_transfers_to_the_host() {
    if podracer_plugins::find("tpu").is_err() {
        skip("no plugin `tpu`: `podracer plugins install tpu`");
        return;
    }
    let plugin = Plugin::load("tpu").expect("it is installed");
    let topology = Topology::new(plugin, "v5e:2x4", &[]).expect("v5e has it");
    for (name, training) in experiments() {
        for LoopModule { replicas, module, .. } in training.modules(8).expect("it is lowered") {
            let options = CompileOptions { replicas, ..CompileOptions::default() };
            let compiled = topology.compile(&module, &options);
            let compiled = compiled.unwrap_or_else(|error| panic!("{name}: {error}"));
            let optimized = compiled.optimized().expect("it has a text");
            assert_eq!(replicas, 8, "{name}");
            assert!(optimized.host_transfers().is_empty(), "{name}");
            // The gradients of all devices are added up: it is the training that was compiled.
            assert!(!optimized.collectives().is_empty(), "{name}");
        }
    }
}

/// The sum of a search's results.
fn sum<E: Tree>(output: &PolicyOutput<E>) -> Tensor {
    let tree = &output.search_tree;
    let embeddings = tree.embeddings.leaves().into_iter().filter(|leaf| leaf.dtype() == F32);
    let numbers = [output.action_weights, tree.node_values, tree.raw_values, tree.qvalues()];
    numbers.into_iter().chain(embeddings).fold(scalar(0.0), |sum, leaf| sum + leaf.sum())
}

/// The sum of a search's results for numbers `f32[4]`, which root and model read.
fn read_everywhere(policy: &str, key: Key, numbers: Tensor) -> Tensor {
    let actions = 3;
    let embedding = numbers.expand_dims(0);
    let logits = |x: Tensor| (x.slice((.., ..actions)) * numbers.index(0)).sin();
    let value = |x: Tensor| (x * numbers).sum_axis(-1);
    let root = RootFnOutput { prior_logits: logits(embedding), value: value(embedding), embedding };
    let next = |action: Tensor, x: Tensor| {
        (x * numbers + action.astype(F32).expand_dims(1) + numbers.index(1)).tanh()
    };
    let model = |_: Key, action: Tensor, x: Tensor| {
        let x = next(action, x);
        let output = RecurrentFnOutput {
            reward: x.index_axis(1, 2) * numbers.index(2),
            discount: x.index_axis(1, 3).sigmoid() * numbers.index(3),
            prior_logits: logits(x),
            value: value(x),
        };
        (output, x)
    };
    let muzero = MuZeroOptions::default();
    match policy {
        "muzero" => sum(&muzero_policy(key, root, model, 8, None, &muzero)),
        "gumbel_muzero" => {
            let options = GumbelMuZeroOptions::default();
            sum(&gumbel_muzero_policy(key, root, model, 8, None, &options))
        }
        "stochastic_muzero" => {
            let decide = |_: Key, action: Tensor, x: Tensor| {
                let x = next(action, x);
                let chance_logits = x.slice((.., ..2));
                (DecisionRecurrentFnOutput { chance_logits, afterstate_value: value(x) }, x)
            };
            let happen = |key: Key, outcome: Tensor, x: Tensor| {
                let (output, x) = model(key, outcome, x);
                let RecurrentFnOutput { reward, discount, prior_logits, value } = output;
                let action_logits = prior_logits;
                (ChanceRecurrentFnOutput { action_logits, value, reward, discount }, x)
            };
            sum(&stochastic_muzero_policy(key, root, decide, happen, 8, None, &muzero))
        }
        "alphazero" => {
            let states = TicTacToe::default().initial_state(key.again());
            let states = tree_map(&states, |leaf| leaf.expand_dims(0));
            let evaluate = |seen| {
                let (logits, value) = evaluated(seen);
                (logits * numbers.index(0), value * numbers.index(1))
            };
            let game = TicTacToe::default();
            sum(&alphazero_policy(key, &game, states, evaluate, -1.0, 8, &kinds()[0]))
        }
        other => panic!("no policy is called {other}"),
    }
}

#[test]
fn a_loss_with_a_search_in_it_has_no_gradient_through_the_search() {
    for policy in ["muzero", "gumbel_muzero", "stochastic_muzero", "alphazero"] {
        let traced = trace(f32([4]), |numbers| {
            let searched = |numbers: Tensor| read_everywhere(policy, Key::new(1u64), numbers);
            let gradient = grad(numbers, |numbers| searched(numbers) + numbers.square().sum());
            (gradient, searched(numbers), searched(numbers * 1.25))
        });
        let traced = traced.unwrap_or_else(|errors| panic!("{policy}: {errors}"));
        let numbers = [0.5, -0.25, 1.5, 0.75];
        let results = traced.eval(&[Array::floats(DType::F32, [4], &numbers)]).expect("it runs");
        // Only the squares' gradient remains.
        assert_eq!(results[0].to_f64(), numbers.map(|x| 2.0 * x), "{policy}");
        // The search does depend on them.
        assert!(difference(&results[1], &results[2], 1e-3).is_some(), "{policy}");
    }
}
