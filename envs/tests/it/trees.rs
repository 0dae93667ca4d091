//! Observations that are trees: their spaces, and what wrappers make of them.

use crate::run::{keys, run};
use podracer_dsl::prelude::*;
use podracer_envs::{
    AnyEnvironment, Bounds, Environment, Space, Spaces, TimeStep, check_environment, leaf_spaces,
};

/// Shows how many steps there were, in a leaf of each kind. An episode has no end.
#[derive(Clone)]
struct Shows;

#[derive(Tree, Clone, Copy)]
struct Shown {
    count: Tensor,
    inner: (Tensor, Tensor),
    image: Tensor,
}

impl Environment for Shows {
    type State = Tensor;
    type Observation = Shown;

    fn initial_state(&self, _: Key) -> Tensor {
        scalar(0)
    }
    fn step(&self, state: Tensor, action: Tensor, _: Key) -> (Tensor, TimeStep<Shown>) {
        let state = state + action;
        (state, TimeStep::new(self.observe(state), scalar(0.0), constant(false)))
    }
    fn observe(&self, state: Tensor) -> Shown {
        let digits = stack(&[state.rem(2), state / 2], 0);
        let number = state.astype(F32).broadcast_to([2, 1]);
        let image = full([1, 1, 2], 51).astype(U8);
        Shown { count: state, inner: (digits, number), image }
    }
    fn observation_space(&self) -> Spaces<Shown> {
        ShownOf {
            count: Space::discrete(4),
            inner: (Space::multi_discrete([2, 3]), Space::bounded([2, 1], -1.0, 9.0)),
            image: Space::pixels([1, 1, 2]),
        }
    }
    fn action_space(&self) -> Space {
        Space::discrete(2)
    }
    fn truncates(&self) -> bool {
        false
    }
}

#[test]
fn each_leaf_has_its_space_by_its_key_path() {
    check_environment(&Shows).expect("it keeps its word");
    let leaves = leaf_spaces::<Shown>(&Shows.observation_space());
    let shown: Vec<String> =
        leaves.iter().map(|(path, space)| format!("{path} {}", space.ty())).collect();
    assert_eq!(shown, ["count i32[]", "inner.0 i32[2]", "inner.1 f32[2,1]", "image u8[1,1,2]"]);
}

#[test]
fn a_flattened_observation_has_its_leaves_one_behind_the_other() {
    let env = Shows.flatten_observation();
    check_environment(&env).expect("it keeps its word");
    let Space::Box { shape, low, high: Bounds::Each(high), description } = env.observation_space()
    else {
        panic!("a box");
    };
    assert_eq!((shape, low.of(9), &high[8..]), (vec![13], -1.0, &[1.0, 9.0, 9.0, 1.0, 1.0][..]));
    assert_eq!(description, "count 0..4, inner.0 4..9, inner.1 9..11, image 11..13");
    let seen = |env: AnyEnvironment| {
        let of = |words: Tensor| {
            let state = env.initial_state(Key::from_words(words));
            let (state, first) = env.step(state, scalar(1), Key::new(0));
            let (state, _) = env.step(state, scalar(1), Key::new(1));
            (first.observation, env.observe(state))
        };
        run(u32([2]), &[keys(1).index_leading(0)], of)
    };
    let [after_one, after_two] = &seen(AnyEnvironment::new(env.clone()))[..] else {
        panic!("two observations");
    };
    let expected = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.2, 0.2];
    let near = |got: &Array, expected: &[f64]| {
        got.to_f64().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6)
    };
    assert!(near(after_one, &expected), "{after_one}");
    let expected = [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 2.0, 2.0, 0.2, 0.2];
    assert!(near(after_two, &expected), "{after_two}");
    // An environment of any type is flattened by itself.
    assert_eq!(seen(AnyEnvironment::new(Shows)), [after_one.clone(), after_two.clone()]);
}

#[test]
fn frames_of_a_tree_are_stacked_leaf_by_leaf() {
    let errors = check_environment(&Shows.frame_stack(2)).expect_err("two leaves are discrete");
    let errors = format!("{errors:?}");
    for name in ["observation.count", "observation.inner.0"] {
        assert!(errors.contains(&format!("`{name}` is discrete")), "{errors}");
    }
}
