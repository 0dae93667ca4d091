//! Episodes that begin in a reset-only step.

use podracer_envs::host::server::Servers;
use podracer_envs::host::{HostEnvironment, StepMemory};
use serde_json::json;

use super::{LENGTH, actions, begun, fake, kill, place, shown};

/// Observation before the step, reward, end flags and observation after it, of all steps that are not reset-only.
type Lane = Vec<([f32; 2], f32, (bool, bool), [f32; 2])>;

/// Takes steps with one fixed action for each environment.
fn lanes(batch: &mut Servers, memory: &mut StepMemory, steps: usize) -> Vec<Lane> {
    let mut lanes = vec![Lane::new(); 5];
    for _ in 0..steps {
        let before = shown(memory.observation());
        batch.step(&actions(0), &mut memory.step()).unwrap();
        let last = shown(memory.next_observation());
        for (i, lane) in lanes.iter_mut().enumerate() {
            if !memory.skipped(i) {
                lane.push((before[i], memory.reward()[i], memory.done(i), last[i]));
            }
        }
    }
    lanes
}

#[test]
fn episodes_that_begin_in_a_step_of_their_own_are_the_same() {
    let (mut batch, mut memory) = begun(&fake(&json!({})).servers(2));
    let expected = lanes(&mut batch, &mut memory, 20);
    let (mut batch, mut memory) = begun(&fake(&json!({"skips": true})).servers(2));
    assert!(batch.spec().skips);
    let got = lanes(&mut batch, &mut memory, 20);
    for (i, (expected, got)) in expected.iter().zip(&got).enumerate() {
        // Four episodes of four steps, and as many steps that are none.
        let steps = if place(i) == 2 { 20 } else { 16 };
        assert_eq!((got.len(), &expected[..steps]), (steps, &got[..]));
    }
}

#[test]
fn a_server_that_is_killed_after_an_end_cuts_nothing_off() {
    let (mut batch, mut memory) = begun(&fake(&json!({"skips": true})));
    lanes(&mut batch, &mut memory, LENGTH);
    kill(batch.processes().next().unwrap());
    batch.step(&actions(0), &mut memory.step()).unwrap();
    let (none, cut_off) = ((true, true), (false, true));
    let ends: Vec<_> = (0..5).map(|i| memory.done(i)).collect();
    assert_eq!(ends, [none, none, cut_off, none, none]);
    // All episodes have begun already.
    batch.step(&actions(0), &mut memory.step()).unwrap();
    assert!((0..5).all(|i| memory.done(i) == (false, false)));
}

#[test]
fn a_step_after_an_end_that_is_some_is_nonsense() {
    let options = fake(&json!({"skips": true, "fault": "flags", "at": LENGTH + 1}));
    let (mut batch, mut memory) = begun(&options.restarts(0));
    lanes(&mut batch, &mut memory, LENGTH);
    let error = batch.step(&actions(0), &mut memory.step()).unwrap_err();
    let expected = "terminated = 7 and truncated = 1, which both are 1 in the step after an end";
    assert!(error.to_string().contains(expected), "{error}");
}
