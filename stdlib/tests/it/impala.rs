//! IMPALA: its loss against jax, and that learning goes through a trajectory as acting went.

use crate::agent_loop::{Iteration, Tape, input, linear as linear_networks, tape};
use crate::golden::{Named, Of, Record, records, run};
use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space};
use podracer_rl::agents::{ActorCriticLoss, Impala, ImpalaSettings, RewardClipping};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{Axes, Input, RolloutOf};
use podracer_rl::net::{ActorCritic, Core, Memory, Networks, Torso, TorsoNet};
use podracer_rl::nn::{Activation, Conv2d, ConvNet, Initializer, Linear, Lstm, LstmState, Mlp};
use podracer_rl::optim::{Sgd, sgd};
use podracer_rl::returns::PgAdvantage;

fn linear(x: &Named, name: &str) -> Linear {
    Linear { weight: x.get(&format!("{name}.weight")), bias: x.get(&format!("{name}.bias")) }
}

/// The networks of a record, and the memory at the start of its trajectories.
fn nets(record: &Record, x: &Named) -> (ActorCritic, Memory) {
    let mlp = |name: &str| Mlp {
        layers: ["hidden", "last"].map(|layer| linear(x, &format!("{name}.{layer}"))).to_vec(),
        norms: Vec::new(),
        activation: Activation::Tanh,
    };
    let mut nets = ActorCritic {
        torso: TorsoNet::Flat,
        core: None,
        feedback: false,
        action: Space::discrete(2),
        agents: None,
        actor: mlp("actor"),
        critic: mlp("critic"),
        log_std: None,
    };
    let mut memory = None;
    if record.has("conv.kernel") {
        let conv = Conv2d {
            kernel: x.get("conv.kernel"),
            bias: x.get("conv.bias"),
            strides: [2, 2],
            padding: Padding::Valid,
        };
        let conv = ConvNet { convs: vec![conv], dense: linear(x, "dense"), norms: Vec::new() };
        nets.torso = TorsoNet::Conv { conv };
    }
    if record.has("core.input") {
        let [input, hidden, bias] = x.all(["core.input", "core.hidden", "core.bias"]);
        nets.core = Some(Lstm { input, hidden, bias });
        let [c, h] = x.all(["memory.c", "memory.h"]);
        memory = Some(LstmState { c, h });
    }
    (nets, memory)
}

/// The agent of a record. The record itself has the sizes of its networks.
fn agent(record: &Record) -> Impala {
    let number = |name: &str| record.number(name).expect("a coefficient").into();
    let settings = ImpalaSettings {
        discount: number("discount"),
        lambda: number("lambda"),
        clip_rho: number("clip_rho"),
        clip_c: number("clip_c"),
        clip_pg_rho: number("clip_pg_rho"),
        advantage: match record.word("advantage").as_deref() {
            Some("rlax") => PgAdvantage::Rlax,
            _ => PgAdvantage::Impala,
        },
        entropy_cost: number("entropy_cost"),
        value_cost: number("value_cost"),
        reward_clipping: match record.flag("clip_rewards").expect("a switch") {
            true => RewardClipping::AbsOne,
            false => RewardClipping::None,
        },
        ..ImpalaSettings::default()
    };
    Impala::with(settings, Space::unbounded([3]), Space::discrete(3))
}

/// Episodes end and are cut off within the trajectories, at their beginnings and at their ends.
#[test]
fn the_loss_and_its_gradient_are_those_of_one_episode_at_a_time() {
    let parts = |record: &Record, x: &Named| {
        let (nets, memory) = nets(record, x);
        let rollout = RolloutOf {
            input: input(x.get("observation"), 2),
            action: x.get("action"),
            reward: x.get("reward"),
            terminated: x.get("terminated"),
            truncated: x.get("truncated"),
            skipped: None,
            next_observation: Some(x.get("next_observation")),
            next_input: input(x.get("last_observation"), 1),
            taken_over: None,
            memory,
            extras: x.get("log_prob"),
        };
        agent(record).settings.loss(nets, &rollout, &Axes::none())
    };
    for record in records("impala_loss") {
        record.check_of(Of::Sum, 5e-6, |x| vec![("loss", parts(&record, x).0)]);
        record.check_of(Of::Sum, 5e-6, |x| {
            let (loss, metrics) = parts(&record, x);
            let still = stop_gradient;
            vec![
                ("loss", loss),
                ("policy_loss", still(metrics.policy_loss)),
                ("value_loss", still(metrics.value_loss)),
                ("entropy", still(metrics.entropy)),
                ("importance", still(metrics.importance)),
            ]
        });
    }
}

fn in_tape(tape: &Tape, lstm: Option<usize>) -> Impala<Sgd> {
    Impala {
        observation: tape.observation_space(),
        action: tape.action_space(),
        optimizer: sgd(0.0),
        iterations: None,
        settings: ImpalaSettings {
            networks: linear_networks(),
            core: Core { lstm, ..Core::default() },
            discount: 0.9.into(),
            entropy_cost: 0.0.into(),
            ..ImpalaSettings::default()
        },
    }
}

/// With constant networks, the learning policy equals the acting policy at every step, in any part
/// of an episode where a trajectory begins.
#[test]
fn learning_remembers_what_acting_remembered() {
    let tape = tape();
    for unroll in [1, 2, 3, 8] {
        let agent_loop = AgentLoop::new(tape.clone(), in_tape(&tape, Some(4)), 2, unroll);
        for iteration in Iteration::several(&agent_loop, tape.steps() / unroll) {
            let importance = iteration.metric("importance")[0];
            assert!(
                (importance - 1.0).abs() < 1e-5,
                "trajectories of {unroll} steps: {importance}"
            );
        }
    }
}

#[test]
fn the_memory_is_there_only_with_a_core() {
    let tape = tape();
    for (lstm, leaves) in [(None, 0), (Some(4), 2)] {
        let agent_loop = AgentLoop::new(tape.clone(), in_tape(&tape, lstm), 3, 2);
        let iteration = Iteration::run(&agent_loop);
        let of_memory = |path: &&String| path.contains(".memory[0].");
        let memory: Vec<_> = iteration.paths.iter().filter(of_memory).collect();
        assert_eq!(memory.len(), leaves, "{:?}", iteration.paths);
    }
}

/// The loss is a sum: twice the environments, twice the gradient.
#[test]
fn the_loss_is_summed_over_the_batch() {
    let tape = tape();
    let moved = |environments: usize| {
        let agent = Impala { optimizer: sgd(1e-3), ..in_tape(&tape, None) };
        let agent_loop = AgentLoop::new(tape.clone(), agent, environments, 8);
        let iteration = Iteration::run(&agent_loop);
        let path = "critic.layers[0].weight";
        let (before, after) =
            (iteration.leaf(&iteration.before, path), iteration.leaf(&iteration.after, path));
        after[0] - before[0]
    };
    let (one, two) = (moved(1), moved(2));
    assert!(one.abs() > 1e-4 && (two - 2.0 * one).abs() < 1e-3 * one.abs(), "{one} and {two}");
}

/// Every agent sees images through a torso, in steps of 1/255.
#[test]
fn torsos_see_images() {
    let image = Space::pixels([12, 12, 2]);
    let convs = vec![[8, 4, 2], [8, 2, 1]];
    let networks = Networks { torso: Torso::Conv, convs, features: 16, ..bare() };
    let shape = networks.shape(Initializer::lecun_normal(), Core::default(), false);
    let pixels = Array::ints(DType::U8, [12, 12, 2], &[255; 288]);
    let results = run(
        (key(), Spec::<Tensor>(image.ty())),
        &[crate::golden::words(3), pixels],
        |(key, pixels)| {
            let nets = ActorCritic::init(key, &image, &Space::discrete(3), &shape);
            let of_floats = nets.features(&input(ones(F32, [12, 12, 2]), 0));
            (nets.features(&input(pixels, 0)), of_floats)
        },
    );
    assert_eq!(results[0].ty().shape[..], [16]);
    assert_eq!(results[0], results[1]);
    assert!(results[0].to_f64().iter().any(|&feature| feature != 0.0));
}

#[test]
fn torsos_refuse_what_they_cannot_see() {
    let dqn = Networks { torso: Torso::Conv, convs: ConvNet::DQN.to_vec(), ..bare() };
    for (networks, shape, expected) in [
        (Networks { torso: Torso::Conv, ..bare() }, vec![4], "observations are [4]"),
        (Networks { torso: Torso::Residual, ..bare() }, vec![4, 4], "observations are [4, 4]"),
        (dqn.clone(), vec![20, 30, 1], "layer 2 has windows of 3 by 3, and its input is 1 by 2"),
    ] {
        let observation = Space::bounded(shape, 0.0, 1.0);
        let message = networks.check(&observation).unwrap_err();
        assert!(message.contains(expected), "{message}");
        let shape = networks.shape(Initializer::lecun_normal(), Core::default(), false);
        let action = Space::discrete(2);
        let errors =
            trace(key(), |key| ActorCritic::init(key, &observation, &action, &shape)).err();
        let text = errors.expect("no such network").to_string();
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(dqn.check(&Space::pixels([36, 36, 1])), Ok(()));
    assert_eq!(bare().check(&Space::unbounded([3])), Ok(()));
}

/// No torso, and no hidden layers.
fn bare() -> Networks {
    Networks { hidden: vec![], ..Networks::default() }
}

/// The last action is one-hot, and nothing at an episode's first step; rewards are clipped.
#[test]
fn the_core_sees_the_last_action_and_reward() {
    let shape =
        bare().shape(Initializer::lecun_normal(), Core { lstm: Some(4), ..Core::default() }, true);
    let features = run((key(),), &[crate::golden::words(3)], |(key,)| {
        let (seen, action) = (Space::unbounded([2]), Space::discrete(3));
        let nets = ActorCritic::init(key, &seen, &action, &shape);
        let step = |action: i32, reward: f64, first: bool| Input {
            observation: constant([0.5, -0.5]),
            legal_actions: None,
            last_action: scalar(action),
            last_reward: scalar(reward),
            first: scalar(first),
        };
        let core = nets.core.expect("a core");
        let features = [step(2, -3.0, false), step(0, 0.25, false), step(0, 0.0, true)]
            .map(|input| nets.features(&input));
        (features, core.input)
    });
    assert_eq!(features[0].to_f64(), [0.5, -0.5, -1.0, 0.0, 0.0, 1.0]);
    assert_eq!(features[1].to_f64(), [0.5, -0.5, 0.25, 1.0, 0.0, 0.0]);
    assert_eq!(features[2].to_f64(), [0.5, -0.5, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(features[3].ty().shape[..], [6, 16]);
}
