//! LPG: the loss of a rule and its gradient through an agent's updates, against jax and finite differences.

use crate::golden::{Named, Record, floats, records_in, run};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::agents::{LearnedAgent, LearnedState, Predictor};
use podracer_rl::distributions::{Categorical, Distribution};
use podracer_rl::learn::{Axes, Cx, Input, Learn, Optimized, Rollout, RolloutOf};
use podracer_rl::meta::LpgRule;
use podracer_rl::net::{Networks, TorsoNet};
use podracer_rl::nn::{Activation, Embedding, Linear, Lstm, Mlp};
use podracer_rl::optim::{Sgd, sgd};

fn linear(x: &Named, name: &str) -> Linear {
    Linear { weight: x.get(&format!("{name}.weight")), bias: x.get(&format!("{name}.bias")) }
}

fn rule(x: &Named) -> LpgRule {
    let layers = ["embedding.0", "embedding.1"].map(|name| linear(x, name)).to_vec();
    let [input, hidden, bias] = x.all(["core.input", "core.hidden", "core.bias"]);
    // Gates i, f, g, o in both.
    LpgRule {
        embedding: Mlp { layers, norms: Vec::new(), activation: Activation::Relu },
        core: Lstm { input, hidden, bias },
        policy: linear(x, "to_policy"),
        prediction: linear(x, "to_prediction"),
    }
}

fn predictor(x: &Named, record: &Record, name: &str) -> Predictor {
    if record.word("kind").as_deref() == Some("table") {
        return Predictor::Table { table: Embedding { weight: x.get(&format!("{name}.table")) } };
    }
    let layers = ["hidden", "last"].map(|layer| linear(x, &format!("{name}.{layer}"))).to_vec();
    let layers = Mlp { layers, norms: Vec::new(), activation: Activation::Tanh };
    Predictor::Network { torso: TorsoNet::Flat, layers }
}

/// The loss of the record's rule, after the agent's updates by it.
fn loss(record: &Record, x: &Named, again: bool) -> Tensor {
    let rate = |name: &str| sgd(record.number(name).expect("a rate"));
    let table = record.word("kind").as_deref() == Some("table");
    let agent = LearnedAgent {
        observation: if table { Space::discrete(5) } else { Space::unbounded([2]) },
        actions: 3,
        networks: Networks::default(),
        rule: rule(x).into(),
        policy_optimizer: rate("policy_rate"),
        prediction_optimizer: rate("prediction_rate"),
        prediction_cost: 0.5.into(),
    };
    let optimized =
        |optimizer: &Sgd, name: &str| Optimized::new(optimizer, predictor(x, record, name));
    let state = LearnedState {
        policy: optimized(&agent.policy_optimizer, "policy"),
        prediction: optimized(&agent.prediction_optimizer, "prediction"),
    };
    let steps = ["observation", "next_observation", "action", "reward", "terminated"];
    let (state, metrics) = scan(state, x.all(steps).to_vec(), |state, steps| {
        let update = |(state, steps): (LearnedState<_>, Vec<Tensor>)| {
            let cx = Cx { key: Key::new(0), iteration: scalar(0), axes: Axes::none() };
            let (state, (), metrics) = agent.learn(state, (), rollout(&steps), cx);
            (state, metrics)
        };
        if again {
            checkpoint(Save::Nothing, (state, steps), update)
        } else {
            update((state, steps))
        }
    });
    let [seen, action, advantage] = x.all(["last.observation", "last.action", "advantage"]);
    let policy = Categorical::new(state.policy.params.apply_all(seen));
    let metrics = tree_map(&metrics, |updates| updates.mean());
    -(policy.log_prob(action) * advantage).mean()
        - 0.05 * metrics.entropy
        - 1e-3 * metrics.prediction_entropy
        + 5e-3 * metrics.policy_target_square
        + 1e-3 * metrics.prediction_target_square
}

fn rollout(steps: &[Tensor]) -> Rollout<LearnedAgent<Sgd>> {
    let &[observation, next_observation, action, reward, terminated] = steps else {
        panic!("five arrays");
    };
    let input = Input {
        observation,
        legal_actions: None,
        last_action: action.zeros_like(),
        last_reward: reward.zeros_like(),
        first: zeros(BOOL, reward.shape()),
    };
    RolloutOf {
        next_input: tree_map(&input, |leaf| leaf.index(-1)),
        input,
        action,
        reward,
        terminated,
        truncated: zeros(BOOL, terminated.shape()),
        skipped: None,
        next_observation: Some(next_observation),
        taken_over: None,
        memory: (),
        extras: (),
    }
}

#[test]
fn meta_gradients_are_those_of_jax() {
    for record in records_in("lpg", "lpg_meta_loss") {
        for again in [true, false] {
            record.check(|x| vec![("loss", loss(&record, x, again))]);
        }
    }
}

/// The slope of the loss in a random direction of the rule's parameters.
#[test]
fn meta_gradients_are_those_of_finite_differences() {
    for record in records_in("lpg", "lpg_meta_loss") {
        let (names, inputs): (Vec<String>, Vec<_>) = record.named("inputs").into_iter().unzip();
        let gradients = record.named("gradients");
        let spec = || inputs.iter().map(|array| array.ty().clone()).collect::<Vec<TensorType>>();
        // Rectifiers bend the loss: a step that is eight times as long crosses more of their corners, and misses slopes of other seeds by 5 %.
        let step = 2.5e-4;
        let at = |sign: f64| {
            let moved = names.iter().zip(&inputs).map(|(name, input)| {
                let Some((_, slope)) = gradients.iter().find(|(wrt, _)| wrt == name) else {
                    return input.clone();
                };
                let along = input.to_f64().into_iter().zip(slope.to_f64());
                floats(
                    &input.ty().shape,
                    &along.map(|(x, g)| x + sign * step * g.signum()).collect::<Vec<_>>(),
                )
            });
            let moved: Vec<_> = moved.collect();
            run(spec(), &moved, |tensors| loss(&record, &Named::new(&names, tensors), true))[0]
                .to_f64()[0]
        };
        let slope: f64 = gradients.iter().flat_map(|(_, slope)| slope.to_f64()).map(f64::abs).sum();
        let found = (at(1.0) - at(-1.0)) / (2.0 * step);
        assert!((found / slope - 1.0).abs() < 0.02, "{found} for {slope}");
    }
}
