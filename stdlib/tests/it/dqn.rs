//! DQN: its loss against rlax, its exploration, and its stacks of frames.

use crate::agent_loop::Iteration;
use crate::golden::{Record, close, records, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::{CartPole, Environment, Space};
use podracer_rl::agents::{Dqn, DqnExploration, DqnLoss, DqnSettings, DqnValues};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{
    Agent, Axes, Cx, Exploration, Input, LaneId, LearnFromReplay, Mode, ReplaySettings, Replayed,
    Step, Task, Windows,
};
use podracer_rl::net::{Networks, QDense, QNetwork};
use podracer_rl::nn::{Activation, Linear};

const SEEDS: usize = 25;
const LENGTH: usize = 4;
const BATCH: usize = 4;
const SEEN: usize = 3;
const ACTIONS: usize = 3;

/// One hidden layer with this number of units.
fn networks(units: usize) -> Networks {
    Networks { hidden: vec![units], activation: Activation::Relu, ..Networks::default() }
}

pub fn dqn(settings: DqnSettings) -> Dqn {
    let task = Task {
        observation: Space::unbounded([SEEN]),
        action: Space::discrete(ACTIONS),
        iterations: 10,
        model: None,
    };
    Dqn::for_task(&task, &settings)
}

/// The settings of a record.
pub fn settings(record: &Record) -> DqnSettings {
    let number = |name: &str| record.number(name).expect("a coefficient");
    let values = match record.word("values").as_deref() {
        Some("categorical") => DqnValues::Categorical,
        Some("quantile") => DqnValues::Quantile,
        _ => DqnValues::Expected,
    };
    DqnSettings {
        values,
        double: record.flag("double").expect("a switch"),
        dueling: record.flag("dueling").expect("a switch"),
        n_step: record.count("n_step").expect("a count"),
        discount: number("discount").into(),
        huber: Some(number("huber")).filter(|&huber| huber > 0.0),
        kappa: number("kappa"),
        atoms: 5,
        quantiles: 5,
        v_min: -2.0,
        v_max: 3.0,
        networks: networks(4),
        ..DqnSettings::default()
    }
}

/// The uniform numbers that the record's script draws, by their number.
pub fn draw(key: &Key, i: usize, shape: &[usize], low: f64, high: f64) -> Tensor {
    key.fold_in(i as i32).uniform_range(shape, low, high)
}

/// The windows of one batch, as the record's script draws them.
pub fn windows(record: &Record, key: &Key) -> Windows<Step> {
    let flag = |name: &str| record.flag(name).expect("a switch");
    let steps = [LENGTH, BATCH];
    let ends = draw(key, 0, &steps, 0.0, 1.0);
    let (terminated, truncated) = (ends.lt(0.15), ends.ge(0.15) & ends.lt(0.3));
    let over = terminated | truncated;
    let before = over.slice_axis(0, 0..LENGTH - 1);
    let begins = concatenate(&[full([1, BATCH], true), before], 0);
    let skips = flag("skips");
    let skipped = begins & draw(key, 1, &steps, 0.0, 1.0).lt(0.4) & skips;
    let legal = draw(key, 6, &[LENGTH, BATCH, ACTIONS], 0.0, 1.0).lt(0.6);
    let seen = [LENGTH, BATCH, SEEN];
    Windows {
        steps: Step {
            observation: draw(key, 2, &seen, -1.0, 1.0),
            legal_actions: flag("legal").then(|| legal | arange(ACTIONS).eq(0)),
            action: key.fold_in(4).randint(steps, 0..ACTIONS as i32),
            reward: draw(key, 5, &steps, -2.0, 2.0),
            terminated: terminated | skipped,
            truncated: Some(truncated | skipped),
            skipped: skips.then_some(skipped),
            next_observation: flag("keeps_after").then(|| draw(key, 3, &seen, -1.0, 1.0)),
        },
        starts: (),
        weights: draw(key, 7, &[BATCH], 0.2, 1.0),
    }
}

/// A network with uniform numbers as weights and biases, layer by layer.
fn network(agent: &Dqn, key: &Key) -> QNetwork {
    let mut network = agent.init(Key::new(0)).target;
    let mut at = 0;
    let head = &mut network.head;
    let value = head.value.iter_mut().flatten();
    for layer in head.shared.iter_mut().chain(&mut head.advantage).chain(value) {
        let QDense::Linear(linear) = &layer.dense else { unreachable!("layers have no noise") };
        let [weight, bias] = [linear.weight, linear.bias].map(|leaf| {
            at += 1;
            draw(key, at - 1, &leaf.shape(), -1.0, 1.0)
        });
        layer.dense = QDense::Linear(Linear { weight, bias });
    }
    network
}

/// The batches' windows have ends, cuts and reset-only steps.
#[test]
fn the_loss_and_its_gradient_are_those_of_rlax_window_by_window() {
    for record in records("dqn_loss") {
        let agent = dqn(settings(&record));
        let seed = record.count("key").expect("a key") as i128;
        let found = run(key(), &[words(seed)], |key| {
            vmap((arange(SEEDS), whole(key)), |(i, key)| {
                let keys = key.fold_in(i).split_n(4);
                let [online, target] = [0, 1].map(|i| network(&agent, &keys.at(i)));
                let windows = windows(&record, &keys.at(2));
                let ((loss, priorities), grads) = value_and_grad(online, |online| {
                    let DqnLoss { loss, priorities, .. } =
                        agent.loss(&online, &target, &windows, &keys.at(3));
                    (loss, priorities)
                });
                let slopes: Vec<Tensor> = (grads.leaves().into_iter().enumerate())
                    .map(|(i, grad)| (grad * draw(&keys.at(3), i, &grad.shape(), -1.0, 1.0)).sum())
                    .collect();
                (loss, priorities, stack(&slopes, 0))
            })
        });
        for (name, found) in ["loss", "priority", "slope"].into_iter().zip(&found) {
            close(&format!("{:?}: {name}", agent.settings), found, &record.output(name), 1e-5);
        }
    }
}

fn lanes(agent: &Dqn, count: usize) -> Vec<f64> {
    let found = run((), &[], |()| {
        vmap(arange(count), |index| {
            agent.init_memory(LaneId { index, lanes: count }).epsilon.expect("a ladder")
        })
    });
    found[0].to_f64()
}

#[test]
fn a_ladder_gives_every_lane_its_own_exploration() {
    let ladder = DqnSettings { exploration: DqnExploration::Ladder, ..DqnSettings::default() };
    let epsilons = lanes(&dqn(ladder), 8);
    assert!((epsilons[0] - 0.4).abs() < 1e-6, "{epsilons:?}");
    assert!((epsilons[7] - 0.4f64.powi(8)).abs() < 1e-7, "{epsilons:?}");
    assert!(epsilons.is_sorted_by(|one, next| one > next), "{epsilons:?}");
}

/// An iteration's learning context, of one device.
fn cx(key: Key, iteration: i32) -> Cx {
    Cx { key, iteration: scalar(iteration), axes: Axes::replicas(1) }
}

#[test]
fn a_schedule_falls_in_a_straight_line_over_its_part_of_the_run() {
    let settings = DqnSettings {
        epsilon: Exploration {
            epsilon_start: 1.0.into(),
            epsilon_end: 0.2.into(),
            epsilon_fraction: 0.5,
        },
        ..DqnSettings::default()
    };
    // A run of ten iterations: five of the schedule.
    let agent = dqn(settings);
    let found = run(key(), &[words(1)], |key| {
        let state = agent.init(key.again());
        let begun = agent.params(&state).epsilon;
        let after = [0, 1, 3, 4, 9].map(|iteration| {
            let cx = cx(key.again(), iteration);
            let next = agent.next_iteration(state.clone(), constant(true), &cx);
            agent.params(&next).epsilon
        });
        (begun, stack(&after, 0))
    });
    assert_eq!(found[0].to_f64(), [1.0]);
    for (got, expected) in found[1].to_f64().iter().zip([0.84, 0.68, 0.36, 0.2, 0.2]) {
        assert!((got - expected).abs() < 1e-6, "{found:?}");
    }
}

/// A schedule that begins and ends with one rate.
fn constant_rate(epsilon: f64) -> Exploration {
    Exploration {
        epsilon_start: epsilon.into(),
        epsilon_end: epsilon.into(),
        epsilon_fraction: 0.0,
    }
}

fn input(observation: Tensor, legal: Option<[bool; ACTIONS]>) -> Input {
    Input {
        observation,
        legal_actions: legal.map(|legal| constant(&legal[..])),
        last_action: scalar(0),
        last_reward: scalar(0.0),
        first: constant(false),
    }
}

/// The actions of a new network for one observation, with 400 keys.
fn actions(settings: DqnSettings, mode: Mode, legal: Option<[bool; ACTIONS]>) -> Vec<f64> {
    let agent = dqn(DqnSettings { networks: networks(6), ..settings });
    let found = run(key(), &[words(3)], |key| {
        let [init, draws] = key.split_into();
        let params = agent.params(&agent.init(init));
        let seen = constant([0.3, -0.2, 0.5]);
        vmap(draws.split_n(400), |key| {
            let memory = agent.init_memory(LaneId { index: scalar(0), lanes: 2 });
            agent.act(&params, memory, input(seen, legal), mode, key).action
        })
    });
    found[0].to_f64()
}

fn times(actions: &[f64], action: usize) -> usize {
    actions.iter().filter(|&&taken| taken == action as f64).count()
}

#[test]
fn actions_are_explored_as_often_as_the_settings_say_and_always_legal() {
    let rate =
        |epsilon: f64| DqnSettings { epsilon: constant_rate(epsilon), ..DqnSettings::default() };
    let greedy = actions(rate(1.0), Mode::Greedy, None);
    let best = greedy[0] as usize;
    assert_eq!(times(&greedy, best), 400);
    // Any of three actions, so that the best one comes in a third of these steps too.
    let explored = 400 - times(&actions(rate(0.3), Mode::Explore, None), best);
    assert!((50..=110).contains(&explored), "{explored}");
    let mut legal = [true; ACTIONS];
    legal[best] = false;
    for epsilon in [0.0, 0.5, 1.0] {
        let taken = actions(rate(epsilon), Mode::Explore, Some(legal));
        assert_eq!(times(&taken, best), 0, "epsilon {epsilon}");
    }
    assert_eq!(times(&actions(rate(1.0), Mode::Greedy, Some(legal)), best), 0);
    let evaluated = DqnSettings { evaluation_epsilon: 0.3, ..rate(0.0) };
    let explored = 400 - times(&actions(evaluated, Mode::Greedy, None), best);
    assert!((50..=110).contains(&explored), "{explored}");
}

fn noisy() -> DqnSettings {
    let exploration = DqnExploration::Noise;
    DqnSettings { noisy: true, sigma0: 2.0, exploration, ..DqnSettings::default() }
}

#[test]
fn noise_is_drawn_anew_by_every_step_of_a_lane_and_left_out_of_greedy_actions() {
    let explored = actions(noisy(), Mode::Explore, None);
    let most = (0..ACTIONS).map(|action| times(&explored, action)).max();
    assert!(most < Some(390), "{most:?}");
    let greedy = actions(noisy(), Mode::Greedy, None);
    assert!(greedy.iter().all(|&action| action == greedy[0]));
}

#[test]
fn a_gradient_step_draws_one_noise_for_all_of_its_windows() {
    let agent = dqn(DqnSettings { networks: networks(6), ..noisy() });
    let found = run(key(), &[words(4)], |key| {
        let keys = key.split_n(4);
        let network = agent.init(keys.at(0)).target;
        let one = |leaf: Tensor| leaf.slice_axis(1, 0..1).broadcast_to(leaf.shape());
        let of = |dtype| zeros(dtype, [1, BATCH]);
        let step = Step {
            observation: keys.at(1).normal([1, BATCH, SEEN]),
            legal_actions: None,
            action: of(I32),
            reward: of(F32),
            terminated: of(BOOL),
            truncated: None,
            skipped: None,
            next_observation: Some(keys.at(1).normal([1, BATCH, SEEN])),
        };
        let steps = tree_map(&step, one);
        let windows = Windows { steps, starts: (), weights: ones(F32, [BATCH]) };
        [2, 3].map(|i| agent.loss(&network, &network, &windows, &keys.at(i)).priorities)
    });
    let [one, other] = [&found[0], &found[1]].map(Array::to_f64);
    assert!(one.iter().all(|error| *error == one[0]) && one[0] > 0.0, "{one:?}");
    assert!(one[0] != other[0], "{one:?} {other:?}");
}

/// DQN on CartPole that does not learn, so that it only acts and keeps.
fn keeps(observation: Space, frames: usize) -> Replayed<Dqn> {
    let replay = ReplaySettings { capacity: 64, minimum: 64, ..ReplaySettings::default() };
    let settings = DqnSettings {
        frames,
        n_step: 2,
        epsilon: constant_rate(0.3),
        networks: networks(6),
        replay: replay.clone(),
        ..DqnSettings::default()
    };
    let task = Task { observation, action: Space::discrete(2), iterations: 10, model: None };
    Replayed { agent: Dqn::for_task(&task, &settings), settings: replay, iterations: 10 }
}

/// A leaf of the stored steps, in windows of `length` steps from every start, of both lanes. `[L,
/// B, ..]`
fn kept(
    iteration: &Iteration,
    name: &str,
    length: usize,
    starts: std::ops::Range<usize>,
) -> Tensor {
    let path = format!("store.replay.steps.step.{name}");
    let found = iteration.paths.iter().position(|one| one.ends_with(&path));
    let all = constant_of(&iteration.after[found.unwrap_or_else(|| panic!("no {path}"))]);
    let one = |start: usize| all.slice_axis(0, start..start + length);
    concatenate(&starts.map(one).collect::<Vec<_>>(), 1)
}

/// Episodes are cut off after five steps, so that they begin within the frames, and windows have cuts.
#[test]
fn frames_stacked_by_the_agent_are_those_of_the_environments_wrapper() {
    let environment = CartPole { time_limit: 5, ..CartPole::default() };
    let wrapped = environment.frame_stack(3);
    let (unroll, frames) = (24, 3);
    let own = keeps(environment.observation_space(), frames);
    let others = keeps(wrapped.observation_space(), 1);
    let ours = Iteration::run(&AgentLoop::new(environment, own.clone(), 2, unroll));
    let theirs = Iteration::run(&AgentLoop::new(wrapped, others.clone(), 2, unroll));
    // The same network saw the same, and did the same.
    for name in ["action", "reward", "terminated"] {
        let path = format!("store.replay.steps.step.{name}");
        assert_eq!(ours.leaf(&ours.after, &path), theirs.leaf(&theirs.after, &path), "{name}");
    }
    let ends = ours.leaf(&ours.after, "store.replay.steps.step.truncated[0]");
    assert!(ends.iter().sum::<f64>() >= 6.0);
    let found = run(key(), &[words(7)], |key| {
        let [online, target] = key.split_into().map(|key| own.agent.init(key).target);
        let windows = |iteration: &Iteration, length: usize, starts: std::ops::Range<usize>| {
            let leaf = |name: &str| kept(iteration, name, length, starts.clone());
            let step = Step {
                observation: leaf("observation"),
                legal_actions: None,
                action: leaf("action"),
                reward: leaf("reward"),
                terminated: leaf("terminated"),
                truncated: Some(leaf("truncated[0]")),
                skipped: None,
                next_observation: None,
            };
            Windows { steps: step, starts: (), weights: ones(F32, [2 * starts.len()]) }
        };
        // A window of the agent's begins with the two steps before.
        let mut mine = windows(&ours, 4, 0..20);
        mine.steps.next_observation = Some(kept(&ours, "next_observation[0]", 4, 0..20));
        // The wrapper's next stack is its last stack without the oldest frame, plus the next frame.
        let mut seen = windows(&theirs, 2, 2..22);
        let follows = kept(&ours, "next_observation[0]", 2, 2..22).expand_dims(2);
        let rest = seen.steps.observation.slice_axis(2, 1..);
        seen.steps.next_observation = Some(concatenate(&[rest, follows], 2));
        let key = Key::new(0);
        let mine = own.agent.loss(&online, &target, &mine, &key);
        (mine, others.agent.loss(&online, &target, &seen, &key))
    });
    let [loss, priorities, value] = [0, 1, 2].map(|i| &found[i]);
    assert_eq!((loss, priorities, value), (&found[3], &found[4], &found[5]));
    assert!(loss.to_f64()[0] > 0.0);
}
