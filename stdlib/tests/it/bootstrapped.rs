//! Bootstrapped DQN: which network acts, the data that each network learns from, and the effect of
//! priors.

use crate::golden::{run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::agents::{
    BootstrappedDqn, BootstrappedSettings, BootstrappedStep, DqnLoss, DqnSettings, PriorNetwork,
};
use podracer_rl::learn::{
    Agent, Exploring, Input, LaneId, LearnFromReplay, Mode, Step, Task, Windows,
};
use podracer_rl::net::{Networks, QDense};

const NETWORKS: usize = 3;
const BATCH: usize = 4;
const SEEN: usize = 3;
const ACTIONS: usize = 3;

fn agent(prior_scale: f64, mask_probability: f64) -> BootstrappedDqn {
    let task = Task {
        observation: Space::unbounded([SEEN]),
        action: Space::discrete(ACTIONS),
        iterations: 10,
        model: None,
    };
    let base = BootstrappedSettings::default();
    let networks = Networks { hidden: vec![6], ..base.dqn.networks };
    let settings = BootstrappedSettings {
        ensemble: NETWORKS,
        prior_scale: prior_scale.into(),
        mask_probability,
        dqn: DqnSettings { networks, double: true, ..base.dqn },
    };
    BootstrappedDqn::for_task(&task, &settings)
}

/// Windows of one step that does not end its episode; the networks of `mask` (bool `[K]`) learn
/// from them.
fn windows(key: Key, mask: Option<Tensor>) -> Windows<BootstrappedStep> {
    let keys = key.split_n(4);
    let steps = [1, BATCH];
    let step = Step {
        observation: keys.at(0).normal([1, BATCH, SEEN]),
        legal_actions: None,
        action: keys.at(1).randint(steps, 0..ACTIONS as i32),
        reward: keys.at(2).normal(steps),
        terminated: zeros(BOOL, steps),
        truncated: None,
        skipped: None,
        next_observation: Some(keys.at(3).normal([1, BATCH, SEEN])),
    };
    let mask = mask.map(|mask| mask.broadcast_to([1, BATCH, NETWORKS]));
    Windows {
        steps: BootstrappedStep { step, mask },
        starts: (),
        weights: constant([0.5f32, 1.0, 0.2, 0.7]),
    }
}

/// One of the networks along the leading axis.
fn one<T: Tree>(networks: &T, k: usize) -> T {
    tree_map(networks, |leaf| leaf.index(k as isize))
}

#[test]
fn without_priors_the_loss_is_the_mean_of_what_dqn_loses_with_each_network() {
    let agent = agent(0.0, 1.0);
    let found = run(key(), &[words(1)], |key| {
        let keys = key.split_n(3);
        let [state, target] = [0, 1].map(|i| agent.init(keys.at(i)));
        let (online, target) = (state.dqn.online.params, target.dqn.target);
        let windows = windows(keys.at(2), None);
        let whole = agent.loss(&online, &target, &state.prior, &windows);
        let of_dqn = Windows { steps: windows.steps.step, starts: (), weights: windows.weights };
        let each: Vec<DqnLoss> = (0..NETWORKS)
            .map(|k| agent.dqn.loss(&one(&online, k), &one(&target, k), &of_dqn, &keys.at(0)))
            .collect();
        let mean = |of: fn(&DqnLoss) -> Tensor| {
            stack(&each.iter().map(of).collect::<Vec<_>>(), 0).mean_axis(0)
        };
        (whole, mean(|loss| loss.loss), mean(|loss| loss.priorities), mean(|loss| loss.value))
    });
    for (got, expected) in found[..3].iter().zip(&found[3..]) {
        for (got, expected) in got.to_f64().iter().zip(expected.to_f64()) {
            assert!((got - expected).abs() < 1e-6, "{found:?}");
        }
    }
    assert!(found[0].to_f64()[0] > 0.0, "{found:?}");
}

/// The values are the network's and the scaled prior's, and no gradient reaches the prior.
#[test]
fn a_prior_is_added_to_its_network_and_does_not_learn() {
    let agent = agent(5.0, 1.0);
    let found = run(key(), &[words(2)], |key| {
        let keys = key.split_n(3);
        let state = agent.init(keys.at(0));
        let pair = PriorNetwork { network: state.dqn.target.clone(), prior: state.prior.clone() };
        let pair = one(&pair, 1);
        let seen = keys.at(1).normal([SEEN]);
        let both = pair.apply(seen, 5.0.into());
        let apart = pair.network.apply(seen, None) + 5.0 * pair.prior.apply(seen, None);
        let windows = windows(keys.at(2), None);
        let learnt = [&state.dqn.online.params, &state.prior].map(ToOwned::to_owned);
        let grads = grad(learnt, |[online, prior]| {
            agent.loss(&online, &state.dqn.target, &prior, &windows).loss
        });
        let [online, prior] = grads.map(|grads| {
            let sizes: Vec<Tensor> = grads.leaves().iter().map(|leaf| leaf.abs().sum()).collect();
            stack(&sizes, 0).sum()
        });
        ((both - apart).abs().sum(), online, prior)
    });
    let found: Vec<f64> = found.iter().map(|array| array.to_f64()[0]).collect();
    assert!(found[0] < 1e-6 && found[1] > 0.0 && found[2] == 0.0, "{found:?}");
}

#[test]
fn a_network_learns_from_the_steps_of_its_mask_alone() {
    let agent = agent(1.0, 0.5);
    let found = run(key(), &[words(3)], |key| {
        let [init, draws] = key.split_into();
        let state = agent.init(init);
        let windows = windows(draws, Some(constant([true, false, true])));
        let grads = grad(state.dqn.online.params.clone(), |online| {
            agent.loss(&online, &state.dqn.target, &state.prior, &windows).loss
        });
        let sizes: Vec<Tensor> = (grads.leaves().iter())
            .map(|leaf| vmap(*leaf, |of_network: Tensor| of_network.abs().sum()))
            .collect();
        stack(&sizes, 0).sum_axis(0)
    });
    let sizes = found[0].to_f64();
    assert!(sizes[0] > 0.0 && sizes[1] == 0.0 && sizes[2] > 0.0, "{sizes:?}");
}

/// The networks that 400 lanes follow in their first step, and in the steps after it.
#[test]
fn an_episode_follows_one_network_and_the_next_draws_anew() {
    let agent = agent(5.0, 0.25);
    let found = run(key(), &[words(4)], |key| {
        let [init, draws] = key.split_into();
        let params = agent.params(&agent.init(init));
        let each = params.network.clone();
        let seen = constant([0.3, -0.2, 0.5]);
        let best = vmap(each, |network: PriorNetwork| network.apply(seen, 5.0.into()).argmax(-1));
        let (follows, later, right, mask) = vmap(draws.split_n(400), |key| {
            let [one, two] = key.split_into();
            let memory = agent.init_memory(LaneId { index: scalar(0), lanes: 2 });
            let act = |memory, first: bool, key| {
                let input = Input {
                    observation: seen,
                    legal_actions: None,
                    last_action: scalar(0),
                    last_reward: scalar(0.0),
                    first: constant(first),
                };
                agent.act(&params, memory, input, Mode::Explore, key)
            };
            let began = act(memory, true, one);
            let follows = began.memory.follows;
            let then = act(began.memory, false, two);
            let right = best.at(follows).eq(began.action) & best.at(follows).eq(then.action);
            (follows, then.memory.follows, right, began.extras.expect("a mask"))
        });
        (follows, later, right.all(), mask.astype(F32).mean())
    });
    let (follows, later) = (found[0].to_f64(), found[1].to_f64());
    assert_eq!(follows, later);
    for network in 0..NETWORKS {
        let times = follows.iter().filter(|&&one| one == network as f64).count();
        assert!((95..=170).contains(&times), "network {network}: {times} of 400");
    }
    assert_eq!(found[2].to_f64(), [1.0], "all actions are those of the network that is followed");
    let share = found[3].to_f64()[0];
    assert!((0.2..0.3).contains(&share), "{share}");
}

/// Networks with zero weights, so that their last biases are the actions' values.
fn voters(agent: &BootstrappedDqn, values: [[f32; ACTIONS]; NETWORKS]) -> Exploring<PriorNetwork> {
    let mut params = agent.params(&agent.init(Key::new(0)));
    params.network = tree_map(&params.network, |leaf| leaf.zeros_like());
    let last = params.network.network.head.advantage.last_mut().expect("a layer");
    let QDense::Linear(linear) = &mut last.dense else { unreachable!("layers have no noise") };
    linear.bias = constant(values);
    params
}

#[test]
fn greedy_actions_are_those_that_most_networks_think_best_and_legal() {
    let agent = agent(1.0, 1.0);
    let found = run((), &[], |()| {
        let params = voters(&agent, [[0.0, 0.1, 0.0], [0.0, 0.2, 0.1], [9.0, 0.0, 8.0]]);
        let act = |legal: Option<[bool; ACTIONS]>| {
            let input = Input {
                observation: zeros(F32, [SEEN]),
                legal_actions: legal.map(|legal| constant(&legal[..])),
                last_action: scalar(0),
                last_reward: scalar(0.0),
                first: constant(true),
            };
            let memory = agent.init_memory(LaneId { index: scalar(0), lanes: 2 });
            agent.act(&params, memory, input, Mode::Greedy, Key::new(1)).action
        };
        (act(None), act(Some([true, false, true])))
    });
    // The third network's values are the greatest by far, and it has one vote. Without action 1, two of three vote for action 0.
    let actions: Vec<f64> = found.iter().map(|array| array.to_f64()[0]).collect();
    assert_eq!(actions, [1.0, 0.0]);
}
