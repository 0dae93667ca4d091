//! R2D2: its loss against rlax and flax, its exploration, and the parameters of its network for Atari.

use crate::agent_loop::{End, Iteration, Tape};
use crate::golden::{Named, Of, Record, close, floats, records_in, run};
use podracer_dsl::prelude::*;
use podracer_envs::Environment;
use podracer_envs::Space;
use podracer_rl::agents::{R2d2, R2d2Memory, R2d2Settings, R2d2Start, R2d2Step, RecurrentQ};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{
    Act, Agent, Cx, Input, LaneId, LearnFromReplay, Mode, ReplaySettings, Replayed, Rollout,
    Window, Windows, epsilon_ladder, stack_frame, stack_window,
};
use podracer_rl::net::{Networks, Torso, TorsoNet};
use podracer_rl::nn::{Activation, DuelingHead, Linear, Lstm, LstmState, Mlp};
use podracer_rl::optim::{Sgd, sgd};
use podracer_rl::returns::signed_hyperbolic;

fn network(x: &Named, name: &str) -> RecurrentQ {
    let get = |leaf: String| x.get(&format!("{name}.{leaf}"));
    let stream = |stream: &str| Mlp {
        layers: [0, 1]
            .map(|layer| Linear {
                weight: get(format!("{stream}.{layer}.weight")),
                bias: get(format!("{stream}.{layer}.bias")),
            })
            .to_vec(),
        norms: Vec::new(),
        activation: Activation::Relu,
    };
    let [input, hidden, bias] = ["input", "hidden", "bias"].map(|leaf| get(format!("core.{leaf}")));
    RecurrentQ {
        torso: TorsoNet::Flat,
        core: Lstm { input, hidden, bias },
        head: DuelingHead { value: stream("value"), advantage: stream("advantage") },
        action: Space::discrete(2),
    }
}

fn settings(record: &Record) -> R2d2Settings {
    let count = |name: &str| record.count(name).expect("a count");
    let number = |name: &str| record.number(name).expect("a number").into();
    R2d2Settings {
        burn_in: count("burn_in"),
        sequence_length: count("burn_in") + count("trained"),
        n_step: count("n"),
        discount: number("discount"),
        priority_of_greatest: number("priority_of_greatest"),
        lstm: 2,
        ..R2d2Settings::default()
    }
}

/// Episodes end and are cut off in the burn-in, among the trained steps and behind them; windows begin within episodes and
/// with them; some steps are reset-only.
#[test]
fn losses_priorities_and_gradients_are_those_of_rlax_and_flax() {
    let mut batches = 0;
    for record in records_in("r2d2", "r2d2_loss") {
        batches += record.input("weights").ty().shape[0];
        let settings = settings(&record);
        record.check_of(Of::Sum, 1e-5, |x| {
            let (online, target) = (network(x, "online"), network(x, "target"));
            let steps = R2d2Step {
                input: Input {
                    observation: x.get("observation"),
                    legal_actions: None,
                    last_action: x.get("last_action"),
                    last_reward: x.get("last_reward"),
                    first: x.get("first"),
                },
                action: x.get("action"),
                reward: x.get("reward"),
                terminated: x.get("terminated"),
                truncated: x.get("truncated"),
                skipped: Some(x.get("skipped")),
            };
            let core = LstmState { c: x.get("start.c"), h: x.get("start.h") };
            let starts = R2d2Start { core, frames: None };
            let (loss, errors, priority, grads) =
                vmap((steps, starts, x.get("weights")), |(steps, starts, weights)| {
                    let loss = |net: RecurrentQ| {
                        let terms = vmap((axis(steps, 1), starts), |(steps, start)| {
                            settings.terms(&net, &target, steps, start)
                        });
                        ((weights * terms.loss).mean(), (terms.errors, terms.priority))
                    };
                    let ((loss, (errors, priority)), grads) = value_and_grad(online.clone(), loss);
                    (loss, errors.swap_axes(0, 1), priority, grads)
                });
            let stream = |mlp: &Mlp| mlp.layers.clone();
            let (value, advantage) = (stream(&grads.head.value), stream(&grads.head.advantage));
            vec![
                ("loss", loss),
                ("errors", errors),
                ("priority", priority),
                ("grad.core.input", grads.core.input),
                ("grad.core.hidden", grads.core.hidden),
                ("grad.core.bias", grads.core.bias),
                ("grad.value.0.weight", value[0].weight),
                ("grad.value.0.bias", value[0].bias),
                ("grad.value.1.weight", value[1].weight),
                ("grad.value.1.bias", value[1].bias),
                ("grad.advantage.0.weight", advantage[0].weight),
                ("grad.advantage.0.bias", advantage[0].bias),
                ("grad.advantage.1.weight", advantage[1].weight),
                ("grad.advantage.1.bias", advantage[1].bias),
            ]
        });
    }
    assert_eq!(batches, 200);
}

#[test]
fn the_rescaling_of_three_is_that_of_the_paper() {
    let results = run((), &[], |()| signed_hyperbolic(constant([3.0, -3.0]), 1e-3));
    close("h", &results[0], &floats(&[2], &[1.003, -1.003]), 1e-7);
}

#[test]
fn lanes_explore_with_powers_from_one_to_eight() {
    let R2d2Settings { ladder_base, ladder_power, .. } = R2d2Settings::default();
    let ladder = |lane: LaneId| epsilon_ladder(lane, ladder_base, ladder_power);
    for lanes in [2, 8, 610] {
        let results =
            run((), &[], |()| vmap(arange(lanes), |index| ladder(LaneId { index, lanes })));
        let explored = results[0].to_f64();
        for (i, &epsilon) in explored.iter().enumerate() {
            let power = 1.0 + 7.0 * i as f64 / (lanes - 1) as f64;
            assert!(
                (epsilon / 0.4f64.powf(power) - 1.0).abs() < 1e-5,
                "lane {i} of {lanes}: {epsilon}"
            );
        }
        assert!((explored[lanes - 1] / 0.4f64.powi(8) - 1.0).abs() < 1e-5);
    }
    let one = run((), &[], |()| ladder(LaneId { index: scalar(0), lanes: 1 }));
    assert!((one[0].to_f64()[0] - 0.4).abs() < 1e-7);
}

#[test]
fn the_network_for_atari_has_the_sizes_of_the_paper() {
    let networks = Networks { torso: Torso::Conv, ..R2d2Settings::default().networks };
    let lstm = R2d2Settings::default().lstm;
    let traced = trace(key(), |key| {
        RecurrentQ::init(key, &Space::pixels([84, 84, 4]), &Space::discrete(18), &networks, lstm)
    });
    let types = traced.expect("the network").func().result_types();
    let count: usize = types.iter().map(TensorType::elements).sum();
    let convs = (8 * 8 * 4 * 32 + 32) + (4 * 4 * 32 * 64 + 64) + (3 * 3 * 64 * 64 + 64);
    let dense = 7 * 7 * 64 * 512 + 512;
    // Features, the last reward and one of 18 last actions; four gates.
    let core = (512 + 1 + 18) * 4 * 512 + 512 * 4 * 512 + 4 * 512;
    let value = (512 * 512 + 512) + (512 + 1);
    let advantage = (512 * 512 + 512) + (512 * 18 + 18);
    assert_eq!(count, convs + dense + core + value + advantage);
}

/// R2D2 with a replay that also keeps, for each step, the memory of acting before it. Gradient
/// steps change nothing, and measure the distance of learning from acting.
#[derive(Clone)]
struct Watched(R2d2<Sgd>);

impl Agent for Watched {
    type Observation = Tensor;
    type Params = RecurrentQ;
    type Memory = R2d2Memory;
    type Extras = ();
    fn init_memory(&self, lane: LaneId) -> R2d2Memory {
        self.0.init_memory(lane)
    }
    fn begin_episode(&self, memory: R2d2Memory) -> R2d2Memory {
        self.0.begin_episode(memory)
    }
    fn act(
        &self,
        params: &RecurrentQ,
        memory: R2d2Memory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<R2d2Memory, ()> {
        self.0.act(params, memory, input, mode, key)
    }
}

#[derive(Tree, Clone)]
struct Differences {
    core: Tensor,
    frames: Tensor,
    greatest: Tensor,
}

impl LearnFromReplay for Watched {
    type State = RecurrentQ;
    type Step = (R2d2Step, R2d2Start);
    type Start = R2d2Start;
    type Metrics = Differences;
    fn init(&self, key: Key) -> RecurrentQ {
        LearnFromReplay::init(&self.0, key).online.params
    }
    fn params(&self, state: &RecurrentQ) -> RecurrentQ {
        state.clone()
    }
    fn keep(&self, rollout: Rollout<Self>) -> ((R2d2Step, R2d2Start), R2d2Start) {
        // Rollouts have one step each: the memory before it is that at their start.
        let (step, start) = self.0.keep(rollout);
        ((step, tree_map(&start, |leaf| leaf.expand_dims(0))), start)
    }
    fn window(&self, _: &Spec<(R2d2Step, R2d2Start)>) -> Window {
        self.0.settings.window()
    }
    fn gradient_step(
        &self,
        net: RecurrentQ,
        windows: Windows<(R2d2Step, R2d2Start), R2d2Start>,
        _: &Cx,
    ) -> (RecurrentQ, Tensor, Differences) {
        let measured = vmap((axis(windows.steps, 1), windows.starts), |((steps, had), start)| {
            let input = steps.input;
            let observation = stack_window(start.frames, input.observation, input.first);
            let seen =
                vmap((had.frames, input.observation, input.first), |(before, now, first)| {
                    stack_frame(before, now, first).0
                });
            let states = net.remember(start.core, Input { observation, ..input });
            let before = start.core.zip_with(&states, |first, states| {
                concatenate(&[first.expand_dims(0), states.slice(..-1)], 0)
            });
            // Acting resets the memory at the end of an episode, learning at the beginning of the
            // next.
            let begun = vmap((before, input.first), |(before, first): (LstmState, Tensor)| {
                tree_select(first, &LstmState::zeros(3), &before)
            });
            let far = |a: Tensor, b: Tensor| (a - b).abs().max();
            Differences {
                core: far(begun.c, had.core.c).maximum(far(begun.h, had.core.h)),
                frames: far(observation, seen),
                greatest: had.core.h.abs().max(),
            }
        });
        let priorities = ones(F32, measured.core.shape());
        (net, priorities, tree_map(&measured, |each| each.max()))
    }
}

/// With a constant network, a window's memory equals the memory of acting at each of its steps,
/// wherever the window begins.
#[test]
fn learning_remembers_what_acting_remembered() {
    let rewards: Vec<f64> = (0..14).map(|time| f64::from(time % 3) - 0.5).collect();
    let ends = [(3, End::Terminated), (4, End::Truncated), (9, End::Truncated)];
    let tape = Tape::new(&rewards, &ends);
    let settings = R2d2Settings {
        frames: 3,
        lstm: 3,
        sequence_length: 5,
        burn_in: 2,
        period: 1,
        networks: Networks { hidden: vec![4], ..Networks::default() },
        ..R2d2Settings::default()
    };
    let agent = R2d2 {
        observation: tape.observation_space(),
        action: tape.action_space(),
        optimizer: sgd(0.0),
        settings,
    };
    let replay = ReplaySettings {
        capacity: 2 * tape.steps(),
        minimum: 8,
        batch: 8,
        replay_ratio: 4.0,
        ..ReplaySettings::default()
    };
    let agent = Replayed { agent: Watched(agent), settings: replay, iterations: 1 };
    let agent_loop = AgentLoop::new(tape.clone(), agent, 2, 1);
    let mut learnt = 0;
    for iteration in Iteration::several(&agent_loop, tape.steps()) {
        let [core, frames, greatest] =
            ["core", "frames", "greatest"].map(|name| iteration.metric(name)[0]);
        assert!(core < 1e-6 && frames == 0.0, "core {core}, frames {frames}");
        learnt += usize::from(greatest > 0.01);
    }
    assert!(learnt > 6, "{learnt} iterations learnt from a memory");
}
