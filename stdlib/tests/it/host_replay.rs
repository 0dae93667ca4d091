//! Learning from a replay on the host, by the reference semantics, against a list in the test that keeps every step.

use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use podracer_rl::learn::{
    Act, Agent, AnyAgent, Axes, Cx, HostReplayShape, Input, LaneId, Learn, LearnFromReplay, Mode,
    ReplaySettings, Replayed, Rollout, RolloutOf, RolloutShape, Window, Windows,
};
use std::collections::BTreeMap;

const LANES: usize = 2;
const UNROLL: usize = 2;

/// An agent with steps that are numbers: `time * LANES + lane`. It counts how often it learns from
/// each position of the ring. Its metrics are 0 if windows are whole and have their own starts.
#[derive(Clone)]
struct Counts {
    length: usize,
    period: usize,
    /// Steps of the ring of all lanes.
    places: usize,
}

idle_agent!(Counts);

impl LearnFromReplay for Counts {
    type State = Tensor;
    type Step = Tensor;
    type Start = Option<Tensor>;
    type Metrics = Tensor;
    fn init(&self, _: Key) -> Tensor {
        zeros(F32, [self.places])
    }
    fn params(&self, _: &Tensor) {}
    fn keep(&self, rollout: Rollout<Self>) -> (Tensor, Option<Tensor>) {
        let starts = self.period.is_multiple_of(UNROLL).then(|| rollout.reward.index(0));
        (rollout.reward, starts)
    }
    fn window(&self, _: &Spec<Tensor>) -> Window {
        Window { length: self.length, period: self.period, learnt: 1 }
    }
    fn gradient_step(
        &self,
        counts: Tensor,
        windows: Windows<Tensor, Option<Tensor>>,
        _: &Cx,
    ) -> (Tensor, Tensor, Tensor) {
        let first = windows.steps.index(0);
        let places = first.astype(I32).modulo(self.places as i32);
        let learnt = one_hot(places, self.places).sum_axis(0);
        let follow = (arange(self.length) * LANES as i32).astype(F32).expand_dims(1);
        let torn = (windows.steps - first.expand_dims(0) - follow).abs().sum();
        let begun = windows.starts.map_or(scalar(0.0), |starts| (starts - first).abs().sum());
        (counts + learnt, error(first), torn + begun + (windows.weights - 1.0).abs().sum())
    }
}

/// The error of windows with these numbers of first steps.
fn error(first: Tensor) -> Tensor {
    first.modulo(5.0) + 1.0
}

/// The rollout of an iteration, i32 `[]`.
fn rollout(iteration: Tensor) -> RolloutOf<Tensor, AnyTree, AnyTree> {
    let first = iteration * (UNROLL * LANES) as i32;
    let numbers = (arange(UNROLL * LANES) + first).astype(F32).reshape([UNROLL, LANES]);
    let input = |shape: &[usize]| Input {
        observation: zeros(F32, shape),
        legal_actions: None,
        last_action: zeros(I32, shape),
        last_reward: zeros(F32, shape),
        first: zeros(BOOL, shape),
    };
    let all = [UNROLL, LANES];
    RolloutOf {
        input: input(&all),
        action: zeros(I32, all),
        reward: numbers,
        terminated: zeros(BOOL, all),
        truncated: zeros(BOOL, all),
        skipped: None,
        next_observation: None,
        next_input: input(&[LANES]),
        taken_over: None,
        memory: AnyTree::new(()),
        extras: AnyTree::new(()),
    }
}

fn settings(replay_ratio: f64, prioritized: bool) -> ReplaySettings {
    ReplaySettings {
        capacity: 16,
        minimum: 6,
        batch: 4,
        replay_ratio,
        prioritized,
        priority_exponent: 1.0.into(),
        importance_exponent: 0.0.into(),
        anneal_importance: false,
    }
}

fn replayed(settings: ReplaySettings, length: usize, period: usize) -> AnyAgent {
    let places = settings.capacity;
    AnyAgent::new(Replayed { agent: Counts { length, period, places }, settings, iterations: 9 })
}

fn cx(seed: Tensor, iteration: Tensor) -> Cx {
    Cx { key: Key::new(3).fold_in(seed), iteration, axes: Axes::none() }
}

/// An iteration's results.
struct Iteration {
    /// Priorities by window: the time of its first step, and its lane.
    priorities: BTreeMap<(usize, usize), f64>,
    /// The agent's state.
    counts: Vec<f64>,
    learning: f64,
    replay_ratio: f64,
    size: f64,
    age: f64,
    /// The windows of its gradient steps.
    learnt: Vec<Vec<(usize, usize)>>,
    /// The windows that it drew.
    drawn: Vec<Vec<(usize, usize)>>,
}

/// The host of a test: all steps are in its memory, and a step follows from its number.
struct Host {
    sizes: HostReplayShape,
}

impl Host {
    /// Time and lane of the first step of a window that was drawn when each lane had `steps` steps.
    fn window(&self, index: usize, steps: usize) -> (usize, usize) {
        let place = index / LANES * self.sizes.period;
        let age = (steps + self.sizes.steps - 1 - place) % self.sizes.steps + 1;
        (steps - age, index % LANES)
    }

    /// The leaves of the windows of an iteration: steps, and starts if there are any.
    fn gather(&self, drawn: &[Vec<(usize, usize)>], starts: bool) -> Vec<Array> {
        let HostReplayShape { length, gradient_steps, batch, .. } = self.sizes;
        let mut steps = vec![-1.0; gradient_steps * length * batch];
        let mut begun = vec![-1.0; gradient_steps * batch];
        for (g, windows) in drawn.iter().enumerate() {
            for (b, &(time, lane)) in windows.iter().enumerate() {
                for step in 0..length {
                    let number = (time + step) * LANES + lane;
                    steps[(g * length + step) * batch + b] = number as f64;
                }
                begun[g * batch + b] = (time * LANES + lane) as f64;
            }
        }
        let mut leaves = vec![Array::floats(F32, [gradient_steps, length, batch], &steps)];
        if starts {
            leaves.push(Array::floats(F32, [gradient_steps, batch], &begun));
        }
        leaves
    }
}

/// Iterations of the agent, each with the state, the store and the metrics after it.
fn on_host(agent: &AnyAgent, iterations: usize) -> (HostReplayShape, Vec<Iteration>) {
    let replay = agent.host_replay().expect("it learns from a replay");
    let types = eval_shape(i32([]), rollout).expect("the rollout traces");
    let sizes = replay.sizes(&types, &Axes::none()).expect("it traces");
    let host = Host { sizes };
    let init = trace((), |()| (agent.init(Key::new(1)), replay.init_store(&types, &Axes::none())));
    let init = init.expect("the beginning traces");
    let kept = eval_shape(i32([]), |k| replay.keep(rollout(k))).expect("it traces");
    let windows = sizes.windows(&kept);
    let starts = windows.types().len() > 1;
    let shape = RolloutShape { lanes: LANES, unroll: UNROLL };
    let learn =
        trace((init.results(), &windows, i32([])), |((state, store), windows, iteration)| {
            let cx = cx(iteration, iteration);
            let (state, store, metrics, requests) = replay.learn(state, store, windows, shape, cx);
            ((state, store), metrics, requests)
        });
    let learn = learn.expect("the iteration traces");
    let paths: Vec<String> = learn.result_paths().iter().map(ToString::to_string).collect();
    let mut state = init.eval(&[]).expect("it evaluates");
    let mut waiting = vec![Vec::new(); sizes.ahead];
    let iteration = |iteration: usize| {
        let drawn = waiting.remove(0);
        let mut arguments = state.clone();
        arguments.extend(host.gather(&drawn, starts));
        arguments.push(Array::ints(I32, [], &[iteration as i128]));
        let results = learn.eval(&arguments).expect("the types fit");
        let leaf = |name: &str| {
            let found = paths.iter().position(|path| path == name);
            results[found.unwrap_or_else(|| panic!("{name} among {paths:?}"))].to_f64()
        };
        let steps = (iteration + 1) * UNROLL;
        let (count, indices) = (leaf("2.count")[0] as usize, leaf("2.indices"));
        let batches = indices.chunks(sizes.batch).take(count);
        let window = |&index: &f64| host.window(index as usize, steps);
        waiting.push(batches.map(|batch| batch.iter().map(window).collect()).collect());
        let tree = "0.1.replay.priorities[0].tree.nodes";
        let nodes = if paths.iter().any(|path| path == tree) { leaf(tree) } else { Vec::new() };
        let leaves = sizes.steps / sizes.period * LANES;
        let present = nodes.iter().take(leaves).enumerate().filter(|(_, value)| **value > 0.0);
        state = results[..state.len()].to_vec();
        Iteration {
            priorities: present.map(|(i, value)| (host.window(i, steps), *value)).collect(),
            counts: leaf("0.0.agent"),
            learning: leaf("1.learning")[0],
            replay_ratio: leaf("1.replay.replay_ratio")[0],
            size: leaf("1.replay.size")[0],
            age: leaf("1.replay.age")[0],
            learnt: drawn,
            drawn: waiting.last().expect("it was pushed").clone(),
        }
    };
    (sizes, (0..iterations).map(iteration).collect())
}

/// The expected draws and windows come from a plain list of windows with their priorities.
#[test]
fn an_iteration_learns_from_what_was_drawn_two_iterations_before() {
    for (ratio, length, period) in [(1.0, 1, 1), (2.5, 3, 1), (0.5, 2, 2), (1.0, 5, 4)] {
        let about = format!("ratio {ratio}, length {length}, period {period}");
        let settings = settings(ratio, true);
        let (sizes, iterations) = on_host(&replayed(settings, length, period), 14);
        assert_eq!((sizes.steps, sizes.ahead), (8, 2), "{about}");
        let (mut priorities, mut greatest) = (BTreeMap::<(usize, usize), f64>::new(), 1.0f64);
        let (mut owed, mut counts) = (0.0, vec![0.0; 16]);
        let mut kept_back = 0;
        for (number, iteration) in iterations.iter().enumerate() {
            // The gradient steps, with the errors as priorities of the windows that are still there.
            let before = number * UNROLL;
            let steps = before + UNROLL;
            for &(time, lane) in iteration.learnt.iter().flatten() {
                let first = time * LANES + lane;
                let error = (first % 5 + 1) as f64;
                counts[first % 16] += 1.0;
                greatest = greatest.max(error);
                match priorities.get_mut(&(time, lane)) {
                    Some(priority) => *priority = error,
                    None => kept_back += 1,
                }
            }
            // The rollout: windows begin that are whole now, and those that lost a step are gone.
            for time in (0..steps).filter(|time| time % period == 0) {
                if time + length <= steps && time + length > before {
                    priorities.extend((0..LANES).map(|lane| ((time, lane), greatest)));
                }
            }
            priorities.retain(|(time, _), _| time + sizes.steps >= steps);
            assert_eq!(iteration.priorities, priorities, "{about}, iteration {number}");
            assert_eq!(iteration.counts, counts, "{about}, iteration {number}");
            assert_eq!(iteration.learning, 0.0, "{about}, iteration {number}");
            // The draws.
            let size = (steps.min(sizes.steps) * LANES) as f64;
            let mut due = 0.0;
            if size >= 6.0 && !priorities.is_empty() {
                owed += ratio;
                due = f64::floor(owed);
                owed -= due;
            }
            assert_eq!(iteration.drawn.len(), due as usize, "{about}, iteration {number}");
            let whole = |window: &(usize, usize)| priorities.contains_key(window);
            assert!(iteration.drawn.iter().flatten().all(whole), "{about}, iteration {number}");
            // An iteration acts 4 steps, and a gradient step learns from 4.
            assert_eq!(iteration.replay_ratio, iteration.learnt.len() as f64, "{about}");
            assert_eq!(iteration.size, size, "{about}");
            if let Some(last) = iteration.learnt.last() {
                let ages = last.iter().map(|(time, _)| (steps - time) as f64);
                assert_eq!(iteration.age, ages.sum::<f64>() / 4.0, "{about}, {number}");
            }
        }
        assert!(
            kept_back > 0,
            "{about}: some windows were overwritten before they were learnt from"
        );
    }
}

/// The greatest difference that chance makes of two histograms in one of a million tests, about: the mean of chi-squared, and
/// five of its standard deviations.
fn by_chance(bins: usize) -> f64 {
    let degrees = (bins - 1) as f64;
    degrees + 5.0 * (2.0 * degrees).sqrt()
}

/// A replay on the host and one on the device learn equally often from each place of the ring.
#[test]
fn host_and_device_draw_from_the_same_distribution() {
    const ITERATIONS: usize = 60;
    let agent = replayed(ReplaySettings { batch: 8, ..settings(16.0, false) }, 1, 1);
    let (_, iterations) = on_host(&agent, ITERATIONS);
    let host = &iterations.last().expect("there are some").counts;
    let device = on_device(&agent, ITERATIONS);
    let (all_host, all_device) = (host.iter().sum::<f64>(), device.iter().sum::<f64>());
    assert!(all_host > 3000.0 && all_device > 3000.0, "{all_host} {all_device}");
    let (a, b) = ((all_device / all_host).sqrt(), (all_host / all_device).sqrt());
    let terms = host.iter().zip(&device).map(|(h, d)| (a * h - b * d).powi(2) / (h + d));
    let chi_squared: f64 = terms.sum();
    assert!(chi_squared < by_chance(16), "{chi_squared}: {host:?}, {device:?}");
    let each = all_host / 16.0;
    let chi_squared: f64 = host.iter().map(|h| (h - each).powi(2) / each).sum();
    assert!(chi_squared < by_chance(16), "{chi_squared}: {host:?}");
}

/// Windows are drawn in proportion to the priorities that they have then.
#[test]
fn draws_are_in_proportion_to_priorities() {
    let agent = replayed(ReplaySettings { batch: 8, ..settings(16.0, true) }, 1, 1);
    let (_, iterations) = on_host(&agent, 60);
    let (mut expected, mut drawn) = ([0.0; 6], [0.0; 6]);
    for iteration in &iterations {
        let windows = iteration.drawn.iter().flatten();
        let total: f64 = iteration.priorities.values().sum();
        for priority in iteration.priorities.values() {
            expected[*priority as usize] += priority / total * windows.clone().count() as f64;
        }
        windows.for_each(|window| drawn[iteration.priorities[window] as usize] += 1.0);
    }
    let present = (1..6).filter(|&class| expected[class] > 50.0).collect::<Vec<_>>();
    assert!(present.len() > 3, "{expected:?}");
    let terms = present.iter().map(|&i| (drawn[i] - expected[i]).powi(2) / expected[i]);
    let chi_squared: f64 = terms.sum();
    assert!(chi_squared < by_chance(6), "{chi_squared}: {drawn:?}, {expected:?}");
}

/// Number of times that the agent learns from each place with the replay on the device.
fn on_device(agent: &AnyAgent, iterations: usize) -> Vec<f64> {
    let types = eval_shape(i32([]), rollout).expect("the rollout traces");
    let init = trace((), |()| (agent.init(Key::new(1)), agent.init_store(&types, &Axes::none())));
    let init = init.expect("the beginning traces");
    let learn = trace((init.results(), i32([])), |((state, store), iteration)| {
        let cx = cx(iteration + 1_000_000, iteration);
        let (state, store, metrics) = agent.learn(state, store, rollout(iteration), cx);
        ((state, store), metrics)
    });
    let learn = learn.expect("the iteration traces");
    let mut state = init.eval(&[]).expect("it evaluates");
    for iteration in 0..iterations {
        let mut arguments = state.clone();
        arguments.push(Array::ints(I32, [], &[iteration as i128]));
        let results = learn.eval(&arguments).expect("the types fit");
        state = results[..state.len()].to_vec();
    }
    state[0].to_f64()
}
