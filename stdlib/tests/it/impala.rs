//! IMPALA: its loss against jax, and that learning goes through a trajectory as acting went.

use crate::agent_loop::{Cycle, Tape, tape};
use crate::golden::{Named, Of, Record, records, run};
use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space};
use podracer_stdlib::agents::{ActorCritic, Agent, Impala, Ppo, Torso, Trajectory};
use podracer_stdlib::anakin::AgentLoop;
use podracer_stdlib::nn::{Activation, Conv2d, ConvNet, Linear, Lstm, LstmState, Mlp};
use podracer_stdlib::optim::{Sgd, sgd};
use podracer_stdlib::returns::{PgAdvantage, Vtrace};

fn linear(x: &Named, name: &str) -> Linear {
    Linear { weight: x.get(&format!("{name}.weight")), bias: x.get(&format!("{name}.bias")) }
}

/// The networks of a record, and the memory at the start of its trajectories.
fn nets(record: &Record, x: &Named) -> (ActorCritic, Vec<LstmState>) {
    let mlp = |name: &str| Mlp {
        layers: ["hidden", "last"].map(|layer| linear(x, &format!("{name}.{layer}"))).to_vec(),
        activation: Activation::Tanh,
    };
    let mut nets = ActorCritic {
        conv: Vec::new(),
        residual: Vec::new(),
        core: Vec::new(),
        actor: mlp("actor"),
        critic: mlp("critic"),
        log_std: Vec::new(),
    };
    let mut memory = Vec::new();
    if record.has("conv.kernel") {
        let conv = Conv2d {
            kernel: x.get("conv.kernel"),
            bias: x.get("conv.bias"),
            strides: [2, 2],
            padding: Padding::Valid,
        };
        nets.conv.push(ConvNet { convs: vec![conv], dense: linear(x, "dense") });
    }
    if record.has("core.input") {
        let [input, hidden, bias] = x.all(["core.input", "core.hidden", "core.bias"]);
        nets.core.push(Lstm { input, hidden, bias });
        let [c, h] = x.all(["memory.c", "memory.h"]);
        memory.push(LstmState { c, h });
    }
    (nets, memory)
}

/// The agent of a record. What its networks are made of is in the record itself.
fn agent(record: &Record) -> Impala {
    let number = |name: &str| record.number(name).expect("a coefficient");
    Impala {
        discount: number("discount"),
        vtrace: Vtrace {
            lambda: number("lambda"),
            clip_rho: number("clip_rho"),
            clip_c: number("clip_c"),
            clip_pg_rho: number("clip_pg_rho"),
            advantage: match record.word("advantage").as_deref() {
                Some("rlax") => PgAdvantage::Rlax,
                _ => PgAdvantage::Impala,
            },
        },
        entropy_cost: number("entropy_cost"),
        value_cost: number("value_cost"),
        clip_rewards: record.flag("clip_rewards").expect("a switch"),
        ..Impala::new(Space::unbounded([3]), Space::discrete(3))
    }
}

/// Episodes end and are cut off within the trajectories, at their beginnings and at their ends.
#[test]
fn the_loss_and_its_gradient_are_those_of_one_episode_at_a_time() {
    let parts = |record: &Record, x: &Named| {
        let (nets, memory) = nets(record, x);
        let trajectory = Trajectory {
            observation: x.get("observation"),
            action: x.get("action"),
            reward: x.get("reward"),
            terminated: x.get("terminated"),
            truncated: x.get("truncated"),
            skipped: vec![],
            next_observation: vec![x.get("next_observation")],
            last_observation: x.get("last_observation"),
            output: x.get("log_prob"),
        };
        let agent = agent(record);
        let key = Key::new(0u32);
        let ((), batch) = agent.update_experience(&nets, (), memory, trajectory, key);
        agent.loss(nets, &batch, scalar(0))
    };
    for record in records("impala_loss") {
        record.check_of(Of::Sum, 2e-5, |x| vec![("loss", parts(&record, x).0)]);
        record.check_of(Of::Sum, 2e-5, |x| {
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
    let defaults = Impala::new(tape.observation_space(), tape.action_space());
    Impala {
        observation: defaults.observation,
        action: defaults.action,
        torso: Torso::None,
        lstm,
        hidden: vec![],
        optimizer: sgd(0.0),
        discount: 0.9,
        vtrace: Vtrace::default(),
        entropy_cost: 0.0,
        value_cost: 0.5,
        clip_rewards: false,
    }
}

/// With networks that do not change, the policy that learns is the one that acted, at every step, in whatever part of an
/// episode a trajectory begins.
#[test]
fn learning_remembers_what_acting_remembered() {
    let tape = tape();
    for unroll in [1, 2, 3, 8] {
        let agent_loop = AgentLoop::new(tape.clone(), in_tape(&tape, Some(4)), 2, unroll);
        for cycle in Cycle::several(&agent_loop, tape.steps() / unroll) {
            let importance = cycle.metric("importance")[0];
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
        let cycle = Cycle::run(&agent_loop);
        let of_memory = |path: &&String| path.contains(".actor[0].");
        let memory: Vec<_> = cycle.paths.iter().filter(of_memory).collect();
        assert_eq!(memory.len(), leaves, "{:?}", cycle.paths);
    }
}

/// The loss is a sum: twice the environments, twice the gradient.
#[test]
fn the_loss_is_summed_over_the_batch() {
    let tape = tape();
    let moved = |environments: usize| {
        let agent = Impala { optimizer: sgd(1e-3), ..in_tape(&tape, None) };
        let agent_loop = AgentLoop::new(tape.clone(), agent, environments, 8);
        let cycle = Cycle::run(&agent_loop);
        let path = "critic.layers[0].weight";
        let (before, after) = (cycle.leaf(&cycle.before, path), cycle.leaf(&cycle.after, path));
        after[0] - before[0]
    };
    let (one, two) = (moved(1), moved(2));
    assert!(one.abs() > 1e-4 && (two - 2.0 * one).abs() < 1e-3 * one.abs(), "{one} and {two}");
}

/// Every agent sees images through a torso, in steps of 1/255.
#[test]
fn torsos_see_images() {
    let image = Space::pixels([12, 12, 2]);
    let torso = Torso::Conv { convs: vec![(8, 4, 2), (8, 2, 1)], features: 16 };
    let agent = Ppo { torso, hidden: vec![], ..Ppo::new(image.clone(), Space::discrete(3)) };
    let pixels = Array::ints(DType::U8, [12, 12, 2], &[255; 288]);
    let results = run(
        (key(), Spec::<Tensor>(image.ty())),
        &[crate::golden::words(3), pixels],
        |(key, pixels)| {
            let nets = agent.init_nets(key);
            let of_floats = nets.features(ones(F32, [12, 12, 2]));
            (nets.features(pixels), of_floats)
        },
    );
    assert_eq!(results[0].ty.shape[..], [16]);
    assert_eq!(results[0], results[1]);
    assert!(results[0].to_f64().iter().any(|&feature| feature != 0.0));
}

#[test]
fn torsos_refuse_what_they_cannot_see() {
    for (torso, shape, expected) in [
        (Torso::impala(), vec![4], "observations are [4]"),
        (Torso::impala_deep(), vec![4, 4], "observations are [4, 4]"),
        (
            Torso::dqn(),
            vec![20, 30, 1],
            "layer 2 has windows of 3 by 3, and what it sees is 1 by 2",
        ),
    ] {
        let observation = Space::bounded(shape, 0.0, 1.0);
        let message = torso.check(&observation).unwrap_err();
        assert!(message.contains(expected), "{message}");
        let agent = Impala { torso, ..Impala::new(observation, Space::discrete(2)) };
        let errors = trace(key(), |key| agent.init_nets(key)).err();
        let text = errors.expect("no such network").to_string();
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(Torso::dqn().check(&Space::pixels([36, 36, 1])), Ok(()));
    assert_eq!(Torso::None.check(&Space::unbounded([3])), Ok(()));
}
