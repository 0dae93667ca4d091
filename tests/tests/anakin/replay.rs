//! A replay in the loop: it stays where it is, is not copied, and crosses to the host in checkpoints only.

use super::memory::addresses;
use super::{is_child, run_alone};
use crate::loops::{self, Compiled, Size};
use podracer_dsl::prelude::*;
use podracer_envs::CartPole;
use podracer_rl::learn::*;
use podracer_runtime::{CompileOptions, MemoryStats, ProgramOptions, RuntimeError};
use podracer_test_support::skip::{skip, skip_heavy};

/// Q-learning with a matrix of weights, from a replay of a few numbers and of a picture of `bytes`
/// bytes, which makes its store as large as needed.
#[derive(Clone)]
pub struct Pictures {
    bytes: usize,
}

/// The agent with a prioritized replay of `capacity` steps, over all devices. An iteration takes
/// two gradient steps.
pub fn replaying(capacity: usize, bytes: usize) -> Replayed<Pictures> {
    let settings = ReplaySettings {
        capacity,
        minimum: 32,
        batch: 32,
        replay_ratio: 1.0,
        prioritized: true,
        ..ReplaySettings::default()
    };
    Replayed { agent: Pictures { bytes }, settings, iterations: 1000 }
}

#[derive(Tree, Clone)]
pub struct Step {
    observation: Tensor,
    picture: Tensor,
    action: Tensor,
    reward: Tensor,
    terminated: Tensor,
}

impl Pictures {
    /// Errors of the windows, f32 `[B]`. Pictures are read, and change next to nothing.
    fn errors(weights: Tensor, steps: &Step) -> Tensor {
        let value = |i: usize| steps.observation.index(i).matmul(weights);
        let taken = (value(0) * one_hot(steps.action.index(0), 2)).sum_axis(1);
        let next = select(steps.terminated.index(0), 0.0, value(1).max_axis(1));
        let target = stop_gradient(steps.reward.index(0) + next * 0.9);
        let pictures = steps.picture.index(0).astype(F32).mean_axis(1);
        target - taken + pictures * 1e-9
    }
}

impl Agent for Pictures {
    type Observation = Tensor;
    type Params = Tensor;
    type Memory = ();
    type Extras = ();

    fn init_memory(&self, _: LaneId) {}
    fn begin_episode(&self, (): ()) {}
    fn act(&self, q: &Tensor, (): (), input: Input, _: Mode, key: Key) -> Act<(), ()> {
        let best = input.observation.matmul(*q).argmax(0);
        let (explore, draw) = key.split();
        let action = select(explore.bernoulli([], 0.3), draw.randint([], 0..2), best);
        Act { action, memory: (), extras: () }
    }
}

impl LearnFromReplay for Pictures {
    type State = Tensor;
    type Step = Step;
    type Start = ();
    type Metrics = Tensor;

    fn init(&self, key: Key) -> Tensor {
        key.normal([4, 2]) * 0.1
    }
    fn params(&self, weights: &Tensor) -> Tensor {
        *weights
    }
    fn keep(&self, rollout: Rollout<Self>) -> (Step, ()) {
        let observation = rollout.input.observation;
        let shade = (observation.index_axis(2, 0) * 50.0 + 128.0).clamp(0.0, 255.0).astype(U8);
        let shape = [&rollout.reward.shape()[..], &[self.bytes]].concat();
        let step = Step {
            observation,
            picture: shade.expand_dims(2).broadcast_to(shape),
            action: rollout.action,
            reward: rollout.reward,
            terminated: rollout.terminated,
        };
        (step, ())
    }
    fn window(&self, _: &Spec<Step>) -> Window {
        Window { length: 2, period: 1, learnt: 1 }
    }
    fn gradient_step(
        &self,
        weights: Tensor,
        windows: Windows<Step>,
        cx: &Cx,
    ) -> (Tensor, Tensor, Tensor) {
        let ((loss, errors), slope) = value_and_grad(weights, |weights| {
            let errors = Pictures::errors(weights, &windows.steps);
            ((windows.weights * errors.square()).mean(), errors.abs())
        });
        (weights - 0.01 * cx.mean(slope), errors, loss)
    }
}

/// Sixteen lanes, four steps, a hundred iterations a call.
const SIZE: Size = Size { replicas: 1, environments: 16, unroll: 4, iterations: 100 };

/// Bytes of the store's leaves on one device.
fn store_bytes(traced: &loops::Loop<CartPole, Replayed<Pictures>>) -> i64 {
    let leaves = traced.traced_init().results().sharded.store.leaves();
    leaves.iter().map(|(_, ty)| ty.bytes() as i64).sum()
}

/// Arguments, temporaries, and results that take no argument's memory.
fn peak(stats: &MemoryStats) -> i64 {
    stats.arguments + stats.beside_arguments()
}

fn stats(anakin: &Compiled<CartPole, Replayed<Pictures>>) -> MemoryStats {
    anakin.program().executable().compiled().memory_stats().expect("XLA tells")
}

/// Bytes of this process, by a line of its status.
fn status(name: &str) -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says it");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the line");
    line.split_whitespace().next().and_then(|kib| kib.parse::<i64>().ok()).expect("KiB") * 1024
}

/// A thousand iterations, over which the ring goes round almost four times, on one device and on two.
#[test]
fn a_store_stays_where_it_is_for_a_thousand_iterations() {
    for replicas in [1, 2] {
        let size = Size { replicas, ..SIZE };
        let agent = replaying(16_384, 4096);
        let traced = loops::traced(&CartPole::default(), &agent, size);
        let store = store_bytes(&traced);
        let client = loops::client(replicas);
        // As in users' programs: XLA's buffers are reported, and a thousand iterations take longer
        // than compiling.
        let compile = CompileOptions { replicas, ..CompileOptions::default() };
        let options = ProgramOptions { compile, ..loops::options(replicas) };
        let anakin = traced.compile(&client, &options).expect("it compiles");
        let mut state = anakin.init(0).expect("a seed");
        let before = addresses(&state);
        for call in 0..10 {
            (state, _) = anakin.run(state).expect("a call");
            assert_eq!(addresses(&state), before, "call {call} of {replicas} device(s)");
        }
        // Within a call the same: a copy of the store would be an intermediate value.
        let stats = stats(&anakin);
        assert!(stats.beside_arguments() < store / 10, "{store} bytes of a store: {stats:?}");
        let position = state.sharded.store.replay.position.to_host().expect("it is there");
        assert_eq!(position.to_vec::<i32>().expect("i32"), vec![4000 % 1024; replicas]);
    }
}

/// A store of two gigabytes: the bytes that XLA counts for the loop, and with PODRACER_ALL the
/// growth of a process that makes the state and runs two hundred iterations.
#[test]
#[allow(clippy::print_stdout, reason = "what a child says")]
fn a_loop_takes_its_store_once() {
    let agent = replaying(1 << 17, 1 << 14);
    let traced = loops::traced(&CartPole::default(), &agent, SIZE);
    let store = store_bytes(&traced);
    assert!(store > 2 << 30, "{store}");
    let most = store / 10 * 11;
    let anakin = match traced.compile(&loops::client(1), &loops::options(1)) {
        Err(RuntimeError::OutOfMemory(why)) => {
            return skip(&format!("2 GB of memory are needed and not free: {why}"));
        }
        compiled => compiled.expect("it compiles"),
    };
    let stats = stats(&anakin);
    assert!(peak(&stats) < most, "{store} bytes of a store: {stats:?}");
    if is_child() {
        let before = status("VmRSS:");
        let (mut state, _) = anakin.run(anakin.init(0).expect("a seed")).expect("a call");
        (state, _) = anakin.run(state).expect("a call");
        drop(state);
        println!("RESULT {}", status("VmHWM:") - before);
        return;
    }
    if skip_heavy("2 GB of memory") {
        return;
    }
    let said = run_alone("anakin::replay::a_loop_takes_its_store_once", &[("PODRACER_ALL", "1")]);
    let result = said.split_once("RESULT ").and_then(|(_, rest)| rest.lines().next());
    let taken: i64 = result.unwrap_or_else(|| panic!("{said}")).parse().expect("a number");
    eprintln!(
        "a store of {store} bytes, {} by XLA's count, {taken} more in the process",
        peak(&stats)
    );
    assert!(taken < most, "{store} bytes of a store, and {taken} more in the process");
}

/// Compiled is nothing: the types are enough to know.
#[test]
fn a_store_that_does_not_fit_is_refused_before_compiling() {
    let agent = replaying(1 << 24, 1 << 20);
    let traced = loops::traced(&CartPole::default(), &agent, SIZE);
    let refused = traced.compile(&loops::client(1), &loops::options(1)).err();
    let said = refused.expect("16 TiB do not fit").to_string();
    for part in [
        "not enough memory: the training takes at least 16384",
        " GiB are free: 16384.00 GiB for u8[1048576,16,1048576] of the state's `sharded.store.replay.steps.step.picture`, ",
        "; smaller batches, replays or networks, or shorter trajectories need less",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
