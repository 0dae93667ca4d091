//! Lanes with their own time: inference for any of them, in any order, acts as inference for all of them at once.

use crate::golden::{run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_envs::host::{HostSpec, StepOutcome};
use podracer_rl::agents::{Impala, ImpalaSettings};
use podracer_rl::net::{Core, Networks};
use podracer_rl::sebulba::{ActorFor, ActorLearner};

const LANES: usize = 3;
const UNROLL: usize = 2;
/// Inferences of each lane: rollouts end in between.
const STEPS: usize = 5;

fn actor() -> ActorLearner<Impala> {
    let settings = ImpalaSettings {
        core: Core { lstm: Some(4), ..Core::default() },
        networks: Networks { hidden: vec![], ..Networks::default() },
        ..ImpalaSettings::default()
    };
    let (observation, action) = (Space::unbounded([2]), Space::discrete(3));
    ActorLearner {
        agent: Impala::with(settings, observation.clone(), action.clone()),
        environments: HostSpec { truncates: true, ..HostSpec::new(LANES, observation, action) },
        threads: 1,
        unroll: UNROLL,
        learners: 1,
        processes: 1,
        keeps_lanes: false,
    }
}

/// The outcome of a step of some lanes; the second lane's episode ends after its second step.
fn outcome(lanes: &[usize], step: usize) -> StepOutcome {
    let each = |f: &dyn Fn(usize) -> f64| {
        let numbers: Vec<f64> = lanes.iter().map(|&lane| f(lane)).collect();
        constant_of(&Array::floats(F32, [lanes.len()], &numbers))
    };
    let observation = stack(
        &[
            each(&|lane| (lane as f64 + 0.3 * step as f64).sin()),
            each(&|lane| (1.0 + lane as f64 * step as f64).cos()),
        ],
        1,
    );
    StepOutcome {
        observation,
        reward: each(&|lane| lane as f64 + 0.1 * step as f64),
        terminated: each(&|lane| f64::from(u8::from((lane, step) == (1, 2)))).gt(0.5),
        truncated: zeros(BOOL, [lanes.len()]),
        next_observation: Some(observation + 1.0),
        legal_actions: None,
    }
}

type State = ActorFor<Impala>;

#[test]
fn any_order_of_lanes_acts_the_same() {
    let results = run(key(), &[words(5)], |key| {
        let actor = actor();
        let (init, start) = key.split();
        let state = actor.init(init);
        let params = state.replicated.agent.params;
        let first: State = actor.start(start, scalar(0), constant(false));
        let mut together = first.clone();
        let mut actions = Vec::new();
        for step in 0..STEPS {
            let (action, next) = actor.act(&params, together, outcome(&[0, 1, 2], step), None);
            actions.push(action);
            together = next;
        }
        // Lane 2 runs ahead; lanes 0 and 1 come in either order, and one at a time.
        let mut apart = first;
        let mut alone = vec![vec![None; LANES]; STEPS];
        let batches: [(&[usize], usize); 8] = [
            (&[2], 0),
            (&[2], 1),
            (&[1, 0], 0),
            (&[0], 1),
            (&[2], 2),
            (&[1], 1),
            (&[2], 3),
            (&[2], 4),
        ];
        let rest = [2, 3, 4].into_iter().flat_map(|step| [(&[1, 0][..], step)]);
        for (lanes, step) in batches.into_iter().chain(rest) {
            let numbers: Vec<i128> = lanes.iter().map(|&lane| lane as i128).collect();
            let ids = constant_of(&Array::ints(I32, [lanes.len()], &numbers));
            let (action, next) = actor.act(&params, apart, outcome(lanes, step), Some(ids));
            for (i, &lane) in lanes.iter().enumerate() {
                alone[step][lane] = Some(action.index(i as isize));
            }
            apart = next;
        }
        let alone: Vec<Tensor> = alone
            .into_iter()
            .map(|lanes| {
                let lanes: Vec<Tensor> = lanes.into_iter().map(|one| one.expect("acted")).collect();
                stack(&lanes, 0)
            })
            .collect();
        ((stack(&actions, 0), together), (stack(&alone, 0), apart))
    });
    let (together, apart) = results.split_at(results.len() / 2);
    assert!(together.len() > 10);
    for (i, (together, apart)) in together.iter().zip(apart).enumerate() {
        assert_eq!(together, apart, "result {i}");
    }
}
