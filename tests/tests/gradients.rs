//! The gradients that agents learn from, against differences and against derivatives written by hand.

use crate::loops::{self, Size};
use podracer_compiler::{Array, DType, Scalar, TensorType};
use podracer_dsl::prelude::*;
use podracer_envs::{Catch, Environment, Space, TimeStep};
use podracer_rl::agents::{OnlineActorCritic, OnlineSettings, Ppo, PpoBatch, PpoSettings};
use podracer_rl::learn::{Input, Learn};
use podracer_rl::net::{ActorCritic, Networks};
use podracer_rl::optim::{Optimizer, sgd};

/// Numbers between -1 and 1 that look random and are the same everywhere.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1 << 23) - 1.0
    }

    fn array(&mut self, ty: &TensorType, scale: f64) -> Array {
        let mut next = |_: &[usize]| Scalar::Float(scale * self.next());
        Array::from_fn(ty.clone(), &mut next)
    }
}

/// A tree's spec with f64 in place of f32, so that differences are exact enough to compare element
/// by element.
fn in_f64<T: Tree>(spec: &Spec<T>) -> Spec<T> {
    spec.build::<Types>(&mut |ty| match ty.dtype {
        DType::F32 => TensorType::new(DType::F64, ty.shape.clone()),
        _ => ty.clone(),
    })
}

/// The gradient by central differences of a function with the parameters as first arguments.
fn differences(f: impl Fn(&[Array]) -> f64, arguments: &[Array], params: usize) -> Vec<Vec<f64>> {
    const STEP: f64 = 1e-6;
    let mut moved = arguments.to_vec();
    let mut gradient = Vec::new();
    for i in 0..params {
        let mut of_leaf = Vec::new();
        for element in 0..arguments[i].ty().elements() {
            let at = arguments[i].get(element).float();
            let mut beside = |x: f64| {
                moved[i].put(element, Scalar::Float(x));
                f(&moved)
            };
            of_leaf.push((beside(at + STEP) - beside(at - STEP)) / (2.0 * STEP));
            moved[i].put(element, Scalar::Float(at));
        }
        gradient.push(of_leaf);
    }
    gradient
}

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        let close = (a - b).abs() <= tolerance * (1.0 + b.abs());
        assert!(close, "{what}[{i}]: {a} against {b}");
    }
}

/// PPO's loss at parameters that have moved away from those that acted, so that some ratios and values are clipped.
fn check_ppo(action: &Space) {
    const STEPS: usize = 12;
    let observation = Space::unbounded([3]);
    let settings = PpoSettings {
        networks: Networks { hidden: vec![4], ..Networks::default() },
        epochs: 1,
        minibatches: 2,
        ..PpoSettings::default()
    };
    let agent = Ppo::with(settings, observation, action.clone());
    let nets = trace(key(), |key| agent.init(key).params).expect("networks");
    let nets: Spec<ActorCritic> = in_f64(nets.results());
    let per_step = |ty: TensorType| Spec::<Tensor>(ty.stacked(STEPS));
    let action_ty = match action.ty() {
        ty if ty.dtype == DType::F32 => TensorType::new(DType::F64, ty.shape),
        ty => ty,
    };
    let spec = (nets.clone(), f64([STEPS, 3]), per_step(action_ty.clone()), f64([STEPS, 3]));
    let traced = trace(spec, |(nets, observation, action, drawn)| {
        let [log_prob, value, advantage] = [0, 1, 2].map(|i| drawn.index_axis(1, i));
        let columns = [-1.0 + log_prob * 0.5, value, advantage];
        let batch = PpoBatch {
            input: Input {
                observation,
                legal_actions: None,
                last_action: zeros(I32, [STEPS]),
                last_reward: zeros(F32, [STEPS]),
                first: zeros(BOOL, [STEPS]),
            },
            action,
            memory: None,
            begins: None,
            minibatch: arange(STEPS).reshape([2, STEPS / 2]),
            drawn: stack(&columns, 1).reshape([2, STEPS / 2, 3]),
            advantage_mean: full([2], 0.1).astype(F64),
            advantage_std: full([2], 0.7).astype(F64),
            weights: None,
            explained_variance: zeros(F32, []),
        };
        value_and_grad(nets, |nets| agent.settings.loss(nets, &batch, scalar(1)).0)
    });
    let traced = traced.expect("the loss has a gradient");
    let params = nets.leaves().len();
    let mut numbers = Numbers(7);
    let mut argument = |(i, ty): (usize, &TensorType)| {
        if i != params + 1 || ty.dtype.is_float() {
            return numbers.array(ty, 0.8);
        }
        let choices = action.elements();
        let counts = |i: usize| action.bounds(i % choices).1 as i128 + 1;
        let chosen = (0..ty.elements()).map(|i| (i / choices) as i128 % counts(i));
        Array::ints(ty.dtype, &ty.shape, &chosen.collect::<Vec<_>>())
    };
    let types = traced.arguments().types();
    let arguments: Vec<Array> = types.iter().enumerate().map(&mut argument).collect();
    let eval = |arguments: &[Array]| traced.eval(arguments).expect("arguments fit");
    let gradient = eval(&arguments).split_off(1);
    let expected = differences(|arguments| eval(arguments)[0].to_f64()[0], &arguments, params);
    for (((path, _), got), expected) in nets.leaves().iter().zip(&gradient).zip(&expected) {
        assert!(expected.iter().any(|x| *x != 0.0), "{path} does nothing");
        assert_close(&got.to_f64(), expected, 1e-7, &path.to_string());
    }
}

#[test]
fn ppo_with_discrete_actions_against_differences() {
    check_ppo(&Space::discrete(3));
}

#[test]
fn ppo_with_several_choices_against_differences() {
    check_ppo(&Space::multi_discrete([3, 2]));
}

#[test]
fn ppo_with_continuous_actions_against_differences() {
    check_ppo(&Space::bounded([2], -1.0, 1.0));
}

/// The value of a constant hyper-parameter.
fn of(number: podracer_rl::Number) -> f64 {
    number.constant().expect("a constant")
}

/// Writes down what happens in an environment, in its own state.
#[derive(Clone)]
struct Recorded<E> {
    environment: E,
    steps: usize,
}

#[derive(Tree, Clone)]
struct Record<S: Tree> {
    environment: S,
    time: Tensor,
    observation: Tensor,
    next_observation: Tensor,
    action: Tensor,
    reward: Tensor,
    terminated: Tensor,
}

impl<E: Environment<Observation = Tensor>> Environment for Recorded<E> {
    type State = Record<E::State>;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Self::State {
        let observations = zeros(F32, [self.steps, self.observation_space().elements()]);
        Record {
            environment: self.environment.initial_state(key),
            time: scalar(0),
            observation: observations,
            next_observation: observations,
            action: zeros(I32, [self.steps]),
            reward: zeros(F32, [self.steps]),
            terminated: zeros(F32, [self.steps]),
        }
    }

    fn step(&self, state: Self::State, action: Tensor, key: Key) -> (Self::State, TimeStep) {
        let seen = self.environment.observe(state.environment.clone());
        let (environment, timestep) = self.environment.step(state.environment, action, key);
        let at = state.time;
        let state = Record {
            environment,
            time: at + 1,
            observation: state.observation.set(at, seen.flatten()),
            next_observation: state.next_observation.set(at, timestep.observation.flatten()),
            action: state.action.set(at, action),
            reward: state.reward.set(at, timestep.reward),
            terminated: state.terminated.set(at, timestep.terminated.astype(F32)),
        };
        (state, timestep)
    }

    fn observe(&self, state: Self::State) -> Tensor {
        self.environment.observe(state.environment)
    }
    fn observation_space(&self) -> Space {
        self.environment.observation_space()
    }
    fn action_space(&self) -> Space {
        self.environment.action_space()
    }
    fn truncates(&self) -> bool {
        self.environment.truncates()
    }
    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        let environment = self.environment.next_episode(finished.environment.clone(), key);
        Record { environment, ..finished }
    }
}

/// A linear policy and a linear value, with gradients of their own.
struct ByHand {
    weight: Vec<Vec<f64>>,
    bias: Vec<f64>,
    value_weight: Vec<f64>,
    value_bias: f64,
}

impl ByHand {
    /// Probabilities, their logarithms, the entropy.
    fn policy(&self, x: &[f64]) -> (Vec<f64>, Vec<f64>, f64) {
        let logit = |a: usize| {
            self.bias[a] + x.iter().zip(&self.weight).map(|(x, row)| x * row[a]).sum::<f64>()
        };
        let logits: Vec<f64> = (0..self.bias.len()).map(logit).collect();
        let total: f64 = logits.iter().map(|l| l.exp()).sum();
        let log_probs: Vec<f64> = logits.iter().map(|l| l - total.ln()).collect();
        let probs: Vec<f64> = log_probs.iter().map(|l| l.exp()).collect();
        let entropy = -probs.iter().zip(&log_probs).map(|(p, l)| p * l).sum::<f64>();
        (probs, log_probs, entropy)
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.value_bias + x.iter().zip(&self.value_weight).map(|(x, w)| x * w).sum::<f64>()
    }
}

/// One environment's steps.
struct Lived {
    observation: Vec<Vec<f64>>,
    next_observation: Vec<Vec<f64>>,
    action: Vec<usize>,
    reward: Vec<f64>,
    terminated: Vec<bool>,
}

/// The gradient of the online actor-critic's loss, step by step.
fn gradient_by_hand(
    nets: &ByHand,
    lives: &[Lived],
    agent: &OnlineActorCritic<impl Optimizer>,
) -> ByHand {
    let actions = nets.bias.len();
    let mut grad = ByHand {
        weight: vec![vec![0.0; actions]; nets.weight.len()],
        bias: vec![0.0; actions],
        value_weight: vec![0.0; nets.value_weight.len()],
        value_bias: 0.0,
    };
    let samples = lives.iter().map(|life| life.reward.len()).sum::<usize>() as f64;
    for life in lives {
        let mut advantage = 0.0;
        for t in (0..life.reward.len()).rev() {
            let x = &life.observation[t];
            let follows = if life.terminated[t] { 0.0 } else { of(agent.settings.discount) };
            let delta =
                life.reward[t] + follows * nets.value(&life.next_observation[t]) - nets.value(x);
            advantage = delta + follows * of(agent.settings.lambda) * advantage;
            let (probs, log_probs, entropy) = nets.policy(x);
            // The derivative of the loss by each logit and by the value.
            let by_logit = |a: usize| {
                let chosen = f64::from(a == life.action[t]);
                let by_log_prob = -advantage * (chosen - probs[a]);
                let by_entropy = -probs[a] * (log_probs[a] + entropy);
                (by_log_prob - of(agent.settings.entropy_cost) * by_entropy) / samples
            };
            let by_logits: Vec<f64> = (0..actions).map(by_logit).collect();
            let by_value = -of(agent.settings.value_cost) * advantage / samples;
            for (i, &x) in x.iter().enumerate() {
                (0..actions).for_each(|a| grad.weight[i][a] += x * by_logits[a]);
                grad.value_weight[i] += x * by_value;
            }
            (0..actions).for_each(|a| grad.bias[a] += by_logits[a]);
            grad.value_bias += by_value;
        }
    }
    grad
}

/// Two environments, 7 steps: episodes of 3 steps end in between, and the last is cut by the end of the cycle.
#[test]
fn the_online_agents_gradient_through_the_loop_is_the_policy_gradient_by_hand() {
    const STEPS: usize = 7;
    const ENVIRONMENTS: usize = 2;
    let environment = Recorded { environment: Catch { rows: 4, columns: 3 }, steps: STEPS };
    let agent = OnlineActorCritic {
        settings: OnlineSettings {
            networks: Networks { hidden: vec![], ..Networks::default() },
            entropy_cost: 0.1.into(),
            ..OnlineSettings::default()
        },
        ..loops::online(&environment, sgd(1.0))
    };
    let size = Size { replicas: 1, environments: ENVIRONMENTS, unroll: STEPS, iterations: 1 };
    let anakin = loops::compiled(&loops::client(1), &environment, &agent, size);
    let before = anakin.init(4).expect("a seed");
    let begin = loops::named(&before);
    let (after, _) = anakin.run(before).expect("a call");
    let end = loops::named(&after);

    let leaf = |leaves: &[(String, Array)], path: &str| -> Array {
        let found = leaves.iter().find(|(name, _)| name.ends_with(path));
        found.unwrap_or_else(|| panic!("no {path}")).1.clone()
    };
    let rows = |array: &Array| -> Vec<Vec<f64>> {
        array.to_f64().chunks(array.ty().shape[1]).map(<[f64]>::to_vec).collect()
    };
    let nets = |leaves: &[_]| ByHand {
        weight: rows(&leaf(leaves, "actor.layers[0].weight")),
        bias: leaf(leaves, "actor.layers[0].bias").to_f64(),
        value_weight: leaf(leaves, "critic.layers[0].weight").to_f64(),
        value_bias: leaf(leaves, "critic.layers[0].bias").to_f64()[0],
    };
    let of = |name: &str, i: usize| {
        leaf(&end, &format!("environment.environment.{name}")).index_leading(i)
    };
    let life = |i: usize| Lived {
        observation: rows(&of("observation", i)),
        next_observation: rows(&of("next_observation", i)),
        action: of("action", i).to_f64().iter().map(|&action| action as usize).collect(),
        reward: of("reward", i).to_f64(),
        terminated: of("terminated", i).to_f64().iter().map(|&x| x == 1.0).collect(),
    };
    let lives: Vec<Lived> = (0..ENVIRONMENTS).map(life).collect();
    assert!(lives.iter().all(|life| life.terminated[2] && life.terminated[5]));
    assert!(lives.iter().all(|life| life.observation[3] != life.next_observation[2]));

    let (old, new) = (nets(&begin), nets(&end));
    let expected = gradient_by_hand(&old, &lives, &agent);
    let moved = |old: &[f64], new: &[f64]| -> Vec<f64> {
        old.iter().zip(new).map(|(a, b)| a - b).collect()
    };
    let pairs = [
        (moved(&old.weight.concat(), &new.weight.concat()), expected.weight.concat(), "weight"),
        (moved(&old.bias, &new.bias), expected.bias, "bias"),
        (moved(&old.value_weight, &new.value_weight), expected.value_weight, "value weight"),
        (vec![old.value_bias - new.value_bias], vec![expected.value_bias], "value bias"),
    ];
    for (got, expected, what) in pairs {
        assert!(expected.iter().any(|x| x.abs() > 1e-3), "{what}: {expected:?}");
        assert_close(&got, &expected, 1e-6, what);
    }
}
