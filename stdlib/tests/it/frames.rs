//! Stacks of frames in an agent's memory: the inputs of acting, and the windows of the replay.

use crate::golden::run;
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::learn::{no_frames, stack_frame, stack_window, stacked_space};

const STEPS: usize = 9;
const FRAMES: usize = 4;
/// Steps that begin an episode: one at the start, two close to each other.
const FIRST: [usize; 4] = [0, 2, 3, 7];

/// The stack that [`FrameStack`](podracer_envs::FrameStack) shows at a step: the last frames of the
/// episode, oldest first, with copies of its first frame before it.
fn expected(step: usize) -> Vec<f64> {
    let begun = FIRST.iter().copied().filter(|&first| first <= step).max().expect("the first step");
    (0..FRAMES).map(|i| ((step + i + 1).saturating_sub(FRAMES)).max(begun) as f64).collect()
}

#[test]
fn windows_show_the_stacks_that_acting_saw() {
    let first: Vec<bool> = (0..STEPS).map(|step| FIRST.contains(&step)).collect();
    for image in [true, false] {
        // A frame holds the number of its step, in each of its elements.
        let shape: &[usize] = if image { &[1, 2, 1] } else { &[2] };
        let space = match image {
            true => Space::pixels([1, 2, 1]),
            false => Space::unbounded([2]),
        };
        let dtype = space.ty().dtype;
        let results = run(
            (i32([STEPS]), bool([STEPS])),
            &[
                Array::ints(I32, [STEPS], &(0..STEPS as i128).collect::<Vec<_>>()),
                Array::bools([STEPS], &first),
            ],
            |(number, first)| {
                let frame = |number: Tensor| number.astype(dtype).broadcast_to(shape);
                let observations = vmap(number, frame);
                let begin = no_frames(&space, FRAMES);
                let (_, (acted, memories)) =
                    scan(begin, (observations, first), |before, (observation, first)| {
                        let (stacked, after) = stack_frame(before, observation, first);
                        (after, (stacked, before))
                    });
                let windows: Vec<Tensor> = (0..STEPS)
                    .map(|start| {
                        let before = tree_map(&memories, |leaf| leaf.index(start));
                        let from = |leaf: Tensor| leaf.slice_axis(0, start..);
                        stack_window(before, from(observations), from(first))
                    })
                    .collect();
                (acted, windows)
            },
        );
        assert_eq!(results[0].ty().shape[1..], stacked_space(&space, FRAMES).shape()[..]);
        let acted = results[0].to_f64();
        let size = acted.len() / STEPS;
        for step in 0..STEPS {
            // Two pixels of one frame stand side by side: channels last, or frames first.
            let seen = &acted[step * size..][..size];
            let frames: Vec<f64> = match image {
                true => seen[..FRAMES].to_vec(),
                false => seen.iter().copied().step_by(2).collect(),
            };
            assert_eq!(frames, expected(step), "step {step}, image {image}");
        }
        for (start, window) in results[1..].iter().enumerate() {
            assert_eq!(window.to_f64(), acted[start * size..], "a window from {start} on");
        }
    }
}

#[test]
fn a_single_frame_is_the_observation() {
    let space = Space::unbounded([2]);
    assert_eq!(stacked_space(&space, 1), space);
    let results = run(f32([2]), &[crate::golden::floats(&[2], &[3.0, 4.0])], |observation| {
        let (stacked, memory) = stack_frame(no_frames(&space, 1), observation, constant(true));
        assert!(memory.is_none());
        stacked
    });
    assert_eq!(results[0].to_f64(), [3.0, 4.0]);
}
