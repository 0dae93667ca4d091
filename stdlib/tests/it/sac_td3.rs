//! SAC and TD3: whole gradient steps against jax, flax, optax, distrax and rlax.

use crate::golden::{Named, Record, close, records_in, run};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::agents::{
    OffPolicySettings, Sac, SacActions, SacOptimizers, SacParams, SacSettings, SacState, Td3,
    Td3Networks, Td3Params, Td3Settings, Td3State, TorsoMlp, UnitBox,
};
use podracer_rl::learn::{
    AgentSettings, Axes, Cx, Input, LearnFromReplay, Mode, Optimized, ReplaySettings, Step, Task,
    Windows,
};
use podracer_rl::net::{Networks, TorsoNet};
use podracer_rl::nn::{Activation, Ensemble, Linear, Mlp};
use podracer_rl::optim::sgd;

/// Names of the inputs that are batches; the others are parameters.
const BATCH: [&str; 8] = [
    "observation",
    "action",
    "reward",
    "terminated",
    "truncated",
    "next_observation",
    "weight",
    "key",
];

fn net(x: &Named, name: &str) -> TorsoMlp {
    let layer = |layer: &str| Linear {
        weight: x.get(&format!("{name}.{layer}.weight")),
        bias: x.get(&format!("{name}.{layer}.bias")),
    };
    let layers = ["hidden", "last"].map(layer).to_vec();
    TorsoMlp {
        torso: TorsoNet::Flat,
        mlp: Mlp { layers, norms: vec![], activation: Activation::Relu },
    }
}

fn pair(x: &Named, name: &str, count: usize) -> Ensemble<TorsoMlp> {
    Ensemble { members: (0..count).map(|i| net(x, &format!("{name}.{i}"))).collect() }
}

/// The leaves of a network after the step, under the names of the record.
fn after(found: &mut Vec<(String, Tensor)>, name: &str, net: &TorsoMlp) {
    for (layer, linear) in ["hidden", "last"].iter().zip(&net.mlp.layers) {
        found.push((format!("after.{name}.{layer}.weight"), linear.weight));
        found.push((format!("after.{name}.{layer}.bias"), linear.bias));
    }
}

/// The space of the records with continuous actions.
fn space() -> Space {
    Space::bounded([2], [-2.0, -1.0], [2.0, 3.0])
}

/// The windows of a batch, and the other arguments of a gradient step.
fn windows(x: &Named) -> (Windows<Step>, Cx) {
    let steps = Step {
        observation: x.get("observation"),
        legal_actions: None,
        action: x.get("action"),
        reward: x.get("reward"),
        terminated: x.get("terminated"),
        truncated: Some(x.get("truncated")),
        skipped: None,
        next_observation: Some(x.get("next_observation")),
    };
    let key = Key::from_words(x.get("key"));
    let cx = Cx { key, iteration: scalar(0), axes: Axes::none() };
    (Windows { steps, starts: (), weights: x.get("weight") }, cx)
}

fn off_policy(record: &Record) -> OffPolicySettings {
    let number = |name: &str| record.number(name).expect("a number").into();
    let (discount, polyak) = (number("discount"), number("polyak"));
    OffPolicySettings { discount, polyak, n_step: 2, ..OffPolicySettings::default() }
}

fn with(networks: Networks) -> OffPolicySettings {
    OffPolicySettings { networks, ..OffPolicySettings::default() }
}

fn sac(record: &Record, x: &Named) -> Vec<(String, Tensor)> {
    let number = |name: &str| record.number(name).expect("a number");
    let settings = SacSettings {
        off_policy: off_policy(record),
        target_entropy: number("target_entropy").into(),
        discrete_target_entropy: number("discrete_target_entropy").into(),
        ..SacSettings::default()
    };
    let actions = match record.word("actions").as_deref() {
        Some("box") => space(),
        _ => Space::discrete(3),
    };
    let agent = Sac {
        observation: Space::unbounded([2]),
        actions: SacActions::new(&actions).expect("a bounded box"),
        optimizers: SacOptimizers { actor: sgd(1.0), critics: sgd(1.0), temperature: sgd(1.0) },
        settings,
    };
    let state = SacState {
        actor: Optimized::new(&sgd(1.0), net(x, "actor")),
        critics: Optimized::new(&sgd(1.0), pair(x, "critics", 2)),
        targets: pair(x, "targets", 2),
        temperature: Optimized::new(&sgd(1.0), x.get("log_temperature")),
        steps: scalar(0),
    };
    let (windows, cx) = windows(x);
    let (state, priorities, metrics) = agent.gradient_step(state, windows, &cx);
    let mut found = vec![
        ("priorities".to_owned(), priorities),
        ("critic_loss".to_owned(), metrics.critic_loss),
        ("actor_loss".to_owned(), metrics.actor_loss),
        ("entropy".to_owned(), metrics.entropy),
        ("value".to_owned(), metrics.value),
        ("after.log_temperature".to_owned(), state.temperature.params),
    ];
    after(&mut found, "actor", &state.actor.params);
    for i in 0..2 {
        after(&mut found, &format!("critics.{i}"), &state.critics.params.members[i]);
        after(&mut found, &format!("targets.{i}"), &state.targets.members[i]);
    }
    found
}

fn td3(record: &Record, x: &Named) -> Vec<(String, Tensor)> {
    let number = |name: &str| record.number(name).expect("a number");
    let twin = record.flag("twin").expect("a switch");
    let settings = Td3Settings {
        off_policy: off_policy(record),
        twin,
        policy_period: record.count("policy_period").expect("a count"),
        target_noise: number("target_noise").into(),
        target_noise_clip: number("target_noise_clip").into(),
        ..Td3Settings::default()
    };
    let agent = Td3 {
        observation: Space::unbounded([2]),
        actions: UnitBox::new(&space()).expect("a bounded box"),
        actor_optimizer: sgd(1.0),
        critic_optimizer: sgd(1.0),
        settings,
    };
    let count = if twin { 2 } else { 1 };
    let targets = Td3Networks { actor: net(x, "target_actor"), critics: pair(x, "targets", count) };
    let state = Td3State {
        actor: Optimized::new(&sgd(1.0), net(x, "actor")),
        critics: Optimized::new(&sgd(1.0), pair(x, "critics", count)),
        targets,
        steps: scalar(record.count("steps").expect("a count") as i32),
    };
    let (windows, cx) = windows(x);
    let (state, priorities, metrics) = agent.gradient_step(state, windows, &cx);
    let mut found = vec![
        ("priorities".to_owned(), priorities),
        ("critic_loss".to_owned(), metrics.critic_loss),
        ("actor_loss".to_owned(), metrics.actor_loss),
        ("value".to_owned(), metrics.value),
    ];
    after(&mut found, "actor", &state.actor.params);
    after(&mut found, "target_actor", &state.targets.actor);
    for i in 0..count {
        after(&mut found, &format!("critics.{i}"), &state.critics.params.members[i]);
        after(&mut found, &format!("targets.{i}"), &state.targets.critics.members[i]);
    }
    found
}

/// Takes a gradient step from each batch of a record, and compares losses, priorities and all parameters after it. With learning rate
/// 1 the change of a parameter is its gradient.
fn check(record: &Record, step: impl Fn(&Named) -> Vec<(String, Tensor)>) -> usize {
    let (names, inputs): (Vec<String>, Vec<Array>) = record.named("inputs").into_iter().unzip();
    let (mut outputs, mut values) = (Vec::new(), Vec::new());
    let spec: Vec<TensorType> = inputs.iter().map(|array| array.ty().clone()).collect();
    values.extend(run(spec, &inputs, |tensors| {
        let of_batch = |name: &String| BATCH.contains(&name.as_str());
        let (batched, fixed): (Vec<usize>, Vec<usize>) =
            (0..names.len()).partition(|&i| of_batch(&names[i]));
        let order: Vec<String> = batched.iter().chain(&fixed).map(|&i| names[i].clone()).collect();
        let fixed: Vec<Tensor> = fixed.iter().map(|&i| tensors[i]).collect();
        let batched: Vec<Tensor> = batched.iter().map(|&i| tensors[i]).collect();
        vmap(batched, |batched| {
            let found = step(&Named::new(&order, [batched, fixed].concat()));
            outputs = found.iter().map(|(name, _)| name.clone()).collect();
            found.into_iter().map(|(_, value)| value).collect::<Vec<Tensor>>()
        })
    }));
    let expected = record.named("outputs");
    for (name, expected) in &expected {
        let position = outputs.iter().position(|own| own == name);
        let value = &values[position.unwrap_or_else(|| panic!("the step gives no {name}"))];
        close(name, value, expected, 1e-5);
    }
    expected[0].1.ty().shape[0]
}

#[test]
fn gradient_steps_of_sac_are_those_of_jax() {
    let batches: Vec<usize> = records_in("sac_td3", "sac_step")
        .iter()
        .map(|record| check(record, |x| sac(record, x)))
        .collect();
    assert_eq!(batches, [200, 50]);
}

#[test]
fn gradient_steps_of_td3_and_ddpg_are_those_of_jax() {
    let batches: Vec<usize> = records_in("sac_td3", "td3_step")
        .iter()
        .map(|record| check(record, |x| td3(record, x)))
        .collect();
    assert_eq!(batches, [200, 20, 50]);
}

fn input(observation: Tensor, legal_actions: Option<Tensor>) -> Input {
    Input {
        observation,
        legal_actions,
        last_action: scalar(0),
        last_reward: scalar(0.0),
        first: constant(false),
    }
}

/// An agent's actions, `[1000, ..]`: exploring before and after its first gradient step, and greedily.
fn acted<A: LearnFromReplay<Observation = Tensor, Memory = ()>>(
    agent: &A,
    params: impl Fn(A::Params, Tensor) -> A::Params,
    legal: Option<[bool; 3]>,
) -> Vec<Vec<f64>> {
    let results = run((key(),), &[crate::golden::words(5)], |(key,)| {
        let [init, act] = key.split_into();
        let given = agent.params(&agent.init(init));
        let input = input(constant([0.3, -0.7]), legal.map(constant));
        let keys = act.split_n(1000);
        vmap(keys, |key| {
            let cases = [(0, Mode::Explore), (1, Mode::Explore), (1, Mode::Greedy)];
            cases.map(|(steps, mode)| {
                let params = params(given.clone(), scalar(steps));
                agent.act(&params, (), input.clone(), mode, key.again()).action
            })
        })
    });
    results.iter().map(Array::to_f64).collect()
}

fn networks() -> Networks {
    Networks { hidden: vec![8], ..Networks::default() }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Numbers of the two elements of an action.
fn elements(actions: &[f64]) -> [Vec<f64>; 2] {
    [0, 1].map(|i| actions.iter().skip(i).step_by(2).copied().collect())
}

fn check_continuous(acted: &[Vec<f64>]) {
    let [random, explored, greedy] = [0, 1, 2].map(|i| elements(&acted[i]));
    for (element, (low, high)) in [(-2.0, 2.0), (-1.0, 3.0)].into_iter().enumerate() {
        for actions in [&random, &explored, &greedy] {
            assert!(actions[element].iter().all(|x| (low..=high).contains(x)), "{element}");
        }
        let best = greedy[element][0];
        assert!(greedy[element].iter().all(|&x| x == best));
        // Uniform numbers of width 4 have a mean that is known to 0.04, and reach the ends.
        assert!((mean(&random[element]) - f64::midpoint(low, high)).abs() < 0.15);
        let near = |end: f64| random[element].iter().any(|x| (x - end).abs() < 0.05);
        assert!(near(low) && near(high));
        let spread = explored[element].iter().map(|x| (x - best).abs()).fold(0.0, f64::max);
        assert!(spread > 0.01, "{spread}");
    }
}

#[test]
fn continuous_actions_are_uniform_first_and_stay_within_their_bounds() {
    let (observation, actions) = (Space::unbounded([2]), space());
    let settings = SacSettings { off_policy: with(networks()), ..SacSettings::default() };
    let sac = Sac {
        observation: observation.clone(),
        actions: SacActions::new(&actions).expect("a bounded box"),
        optimizers: settings.optimizers(),
        settings,
    };
    check_continuous(&acted(&sac, |params, steps| SacParams { steps, ..params }, None));
    let td3 = Td3 {
        observation,
        actions: UnitBox::new(&actions).expect("a bounded box"),
        actor_optimizer: sgd(1.0),
        critic_optimizer: sgd(1.0),
        settings: Td3Settings { off_policy: with(networks()), ..Td3Settings::default() },
    };
    check_continuous(&acted(&td3, |params, steps| Td3Params { steps, ..params }, None));
}

/// The settings of networks count for each of them.
#[test]
fn networks_are_those_of_the_settings() {
    let networks = Networks {
        hidden: vec![8, 6],
        layer_norm: true,
        activation: Activation::Elu,
        ..Networks::default()
    };
    let settings = SacSettings { off_policy: with(networks), ..SacSettings::default() };
    let sac = Sac {
        observation: Space::unbounded([2]),
        actions: SacActions::new(&space()).expect("a bounded box"),
        optimizers: settings.optimizers(),
        settings,
    };
    let traced = trace(key(), |key| {
        let state = sac.init(key);
        let members = &state.critics.params.members;
        for net in [&state.actor.params, &members[0], &members[1]] {
            assert_eq!((net.mlp.norms.len(), net.mlp.activation), (2, Activation::Elu));
        }
        state.actor.params
    });
    let results = traced.expect("it traces").results().to_string();
    assert!(results.contains("f32[2,8]") && results.contains("f32[6,4]"), "{results}");
}

#[test]
fn discrete_actions_are_uniform_first_and_always_legal() {
    let settings = SacSettings { off_policy: with(networks()), ..SacSettings::default() };
    let sac = Sac {
        observation: Space::unbounded([2]),
        actions: SacActions::Discrete(3),
        optimizers: settings.optimizers(),
        settings,
    };
    let legal = [true, false, true];
    let acted = acted(&sac, |params, steps| SacParams { steps, ..params }, Some(legal));
    for actions in &acted {
        assert!(actions.iter().all(|&action| legal[action as usize]));
    }
    // Half of the draws, known to 0.016.
    assert!((mean(&acted[0]) - 1.0).abs() < 0.15, "{}", mean(&acted[0]));
    assert!(acted[2].iter().all(|&action| action == acted[2][0]));
}

#[test]
fn actions_that_the_agents_do_not_have_are_errors() {
    let task = |action: Space| Task {
        observation: Space::unbounded([2]),
        action,
        iterations: 1,
        model: None,
    };
    let sac = |action| SacSettings::default().agent(&task(action)).err();
    let td3 = |action| Td3Settings::default().agent(&task(action)).err();
    for (message, expected) in [
        (
            td3(Space::discrete(3)),
            "agent.kind = td3: expected actions of a box with bounds, got a choice of one in 3",
        ),
        (
            sac(Space::multi_discrete([2, 3])),
            "agent.kind = sac: expected actions of a box with bounds, got choices among [2, 3]",
        ),
        (
            sac(Space::bounded([2], [0.0, 0.0], [1.0, f64::INFINITY])),
            "element 1 of an action lies in [0, inf]",
        ),
        (td3(Space::bounded([1], 2.0, 2.0)), "element 0 of an action lies in [2, 2]"),
    ] {
        let message = message.expect("no such agent");
        assert!(message.contains(expected), "{message}");
    }
    let few = ReplaySettings { capacity: 100, ..ReplaySettings::default() };
    let off_policy = OffPolicySettings { replay: few, ..OffPolicySettings::default() };
    let message = SacSettings { off_policy, ..SacSettings::default() }.agent(&task(space())).err();
    assert!(message.is_some_and(|text| text.contains("agent.capacity = 100")));
    assert!(sac(Space::discrete(2)).is_none() && td3(space()).is_none());
}
