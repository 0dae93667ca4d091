//! Training of update rules, compiled: agents of many tasks on one device and on two.

use podracer_dsl::prelude::Key;
use podracer_envs::Environment;
use podracer_envs::Tasks;
use podracer_envs::grid_tasks::{Distribution, GridTask, GridTasks, TaskWorld};
use podracer_rl::Number;
use podracer_rl::agents::LearnedAgent;
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::Axes;
use podracer_rl::meta::{LpgRule, LpgShape, MetaSettings, MetaTraining};
use podracer_rl::net::Networks;
use podracer_rl::optim::{Adam, Sgd, adam, sgd};
use podracer_runtime::{AnakinLoop, Array};
use podracer_tests::compare::difference;

use crate::loops;

const AGENTS: usize = 4;

fn tasks(distribution: Distribution) -> GridTasks {
    GridTasks { distribution, ..GridTasks::default() }
}

fn agent(
    tasks: GridTasks,
    task: GridTask,
    rule: LpgRule,
    factor: Number,
) -> AgentLoop<TaskWorld, LearnedAgent<Sgd>> {
    let world = tasks.world(task);
    let agent = LearnedAgent {
        observation: world.observation_space(),
        actions: 9,
        networks: Networks { hidden: vec![8], ..Networks::default() },
        rule: rule.into(),
        policy_optimizer: sgd(4.0 * factor),
        prediction_optimizer: sgd(0.4 * factor),
        prediction_cost: 0.5.into(),
    };
    AgentLoop::new(world, agent, 3, 5).spread(Axes::none())
}

/// The parameters of the rule after some iterations, with the metrics of the last.
fn trained(
    distribution: Distribution,
    settings: MetaSettings,
    devices: usize,
) -> (Vec<Array>, Vec<f64>) {
    let tasks = tasks(distribution);
    let draw = move |key: Key| tasks.draw(key);
    let make =
        move |task: GridTask, rule: LpgRule, factor: Number| agent(tasks, task, rule, factor);
    let training: MetaTraining<_, _, Adam> =
        MetaTraining::new(draw, make, adam(1e-2), (AGENTS / devices, devices), settings);
    let traced = AnakinLoop::trace(
        "meta",
        devices,
        3,
        |key| training.init(key),
        |state| training.iterate(state),
    )
    .expect("it traces");
    let client = loops::client(devices);
    let program = traced.compile(&client, &loops::options(devices)).expect("it compiles");
    let state = program.init(5).expect("a seed");
    let (state, metrics) = program.run(state).expect("a call");
    let metrics = metrics.replicated.clone().into_leaves();
    let metrics = metrics.iter().map(|leaf| leaf.to_f64()[2]).collect();
    let arrays = state.named_arrays().expect("on the host");
    let rule = arrays.into_iter().filter(|(path, _)| path.contains("rule.params"));
    (rule.map(|(_, array)| array).collect(), metrics)
}

fn small() -> MetaSettings {
    MetaSettings {
        rule: LpgShape { predictions: 4, embedding: 3, units: 6 },
        inner_updates: 2,
        lifetime: [3, 5],
        value_networks: Networks { hidden: vec![8], ..Networks::default() },
        ..MetaSettings::default()
    }
}

#[test]
fn agents_of_two_devices_train_the_rule_of_one() {
    let (one, metrics) = trained(Distribution::Small, small(), 1);
    let (two, _) = trained(Distribution::Small, small(), 2);
    assert!(metrics.iter().all(|metric| metric.is_finite()), "{metrics:?}");
    assert_eq!(one.len(), 11);
    for (one, two) in one.iter().zip(&two) {
        assert_eq!(difference(one, two, 1e-5), None);
    }
}

#[test]
fn what_is_computed_again_is_the_same() {
    let again = trained(Distribution::RandomSmall, small(), 1);
    let kept = trained(Distribution::RandomSmall, MetaSettings { checkpoint: false, ..small() }, 1);
    for (again, kept) in again.0.iter().zip(&kept.0) {
        assert_eq!(difference(again, kept, 1e-5), None);
    }
}
