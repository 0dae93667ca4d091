//! `AnyTree`: the program of the concrete tree, for a type that only the trace knows.

use crate::helpers::errors;
use podracer_dsl::prelude::*;
use std::any::type_name;

#[derive(Tree, Clone)]
struct Ball {
    position: Tensor,
    walls: Vec<(Tensor, Tensor)>,
    spin: Option<Tensor>,
    #[tree(fixed)]
    bounces: bool,
}

#[derive(Tree, Clone)]
struct Lane<S: Tree> {
    state: S,
    key: Key,
}

/// Access of a library to a tree that it is generic over.
trait Erased: Tree {
    fn ball(&self) -> Ball;
    fn of(ball: Ball) -> Self;
}

impl Erased for Ball {
    fn ball(&self) -> Ball {
        self.clone()
    }
    fn of(ball: Ball) -> Ball {
        ball
    }
}

impl Erased for AnyTree {
    fn ball(&self) -> Ball {
        self.get()
    }
    fn of(ball: Ball) -> AnyTree {
        AnyTree::new(ball)
    }
}

fn begin(x: Tensor) -> Ball {
    Ball { position: x, walls: vec![(x * 2.0, x + 1.0)], spin: Some(x.sin()), bounces: true }
}

fn step<S: Erased>(state: S) -> S {
    let ball = state.ball();
    let walls = ball.walls.iter().map(|&(a, b)| (b, a * ball.position)).collect();
    S::of(Ball { position: ball.position * 0.5, walls, ..ball })
}

/// The tree through every transform: scan, vmap along two axes, grad, cond, switch, while, subroutine, checks.
fn everything<S: Erased>(x: Tensor, argument: S, p: Tensor) -> impl IntoTree {
    let state = S::of(begin(x));
    let (scanned, stacked) = scan(state.clone(), 0..3, |state, _| {
        let next = step(state);
        (next.clone(), (next, ()))
    });
    let doubled = vmap(stacked.0.clone(), |state: S| step(step(state)));
    let columns = vmap(axis(stacked.0, 1), step);
    let (loss, slope) = value_and_grad(scanned.clone(), |state: S| {
        let ball = step(state).ball();
        ball.position.sum() + ball.walls[0].1.sum()
    });
    let chosen = cond(p, || step(argument.clone()), || slope.clone());
    let lane = Lane { state: chosen, key: Key::new(3u64) };
    let lane = while_loop(
        lane,
        |lane| lane.state.ball().position.sum().lt(1.0),
        |lane| Lane { state: step(lane.state), ..lane },
    );
    let called = subroutine("step", lane.state.clone(), step);
    let joined = called.zip_with(&state, |a, b| a + b);
    let state = expect_types("state", tree_select(p, &joined, &called), &state.spec());
    (doubled, columns, loss, lane, state)
}

#[test]
fn a_program_through_any_tree_is_that_of_the_concrete_tree() {
    let ball = eval_shape(f32([2]), begin).expect("it traces");
    let any = eval_shape(f32([2]), |x| AnyTree::new(begin(x))).expect("it traces");
    assert_eq!(ball.leaves(), any.leaves());
    let concrete = trace((f32([2]), &ball, bool([])), |(x, ball, p)| everything(x, ball, p));
    let concrete = concrete.expect("it traces");
    let erased = trace((f32([2]), &any, bool([])), |(x, any, p)| everything(x, any, p));
    let erased = erased.expect("it traces");
    assert_eq!(format!("{:#}", concrete.func()), format!("{:#}", erased.func()));
    assert_eq!(concrete.arguments().leaves(), erased.arguments().leaves());
    assert_eq!(concrete.results().leaves(), erased.results().leaves());
    assert_eq!(concrete.vmap(4).results().leaves(), erased.vmap(4).results().leaves());
    assert_eq!(erased.result_paths()[2].to_string(), "0.walls[0].1");
}

#[test]
fn the_structure_is_kept() {
    let program = trace(f32([2]), |x| {
        let any = AnyTree::new(begin(x));
        // Two trees that were made separately have one structure.
        let (any, again) = scan(any, 0..2, |_, _| (AnyTree::new(begin(x)), AnyTree::new(())));
        let ball: Ball = any.get();
        assert!(ball.bounces && any.downcast::<Tensor>().is_none());
        assert!(again.leaves().is_empty() && again.downcast::<()>().is_some());
        let outer = AnyTree::new(Lane { state: any, key: Key::new(1u64) });
        let lane: Lane<AnyTree> = tree_map(&outer, |leaf| leaf).get();
        assert!(lane.state.downcast::<Ball>().is_some());
        let twice = AnyTree::new(outer.clone());
        assert!(twice.downcast::<Lane<AnyTree>>().is_none());
        assert!(twice.get::<AnyTree>().downcast::<Lane<AnyTree>>().is_some());
        (outer, twice)
    });
    let program = program.expect("it traces");
    let (paths, count) = (program.result_paths(), 5);
    assert_eq!(paths.len(), 2 * count);
    assert_eq!(paths[2].to_string(), "0.state.walls[0].1");
    assert_eq!(paths[count - 1].to_string(), "0.key");
    assert_eq!(program.results().0.0.leaves(), program.results().0.1.leaves());
    // A spec of it is a spec again, across threads too.
    let spec = program.results().0.0.clone();
    let leaves = spec.leaves();
    let elsewhere = std::thread::spawn(move || {
        trace(&spec, |any| any.get::<Lane<AnyTree>>().state).map(|traced| traced.results().leaves())
    });
    let elsewhere = elsewhere.join().expect("no panic").expect("it traces");
    assert_eq!(elsewhere.len(), leaves.len() - 1);
}

#[test]
fn another_type_is_reported() {
    let one = |report: TraceErrors| {
        assert_eq!(report.errors.len(), 1, "{report}");
        report.errors[0].to_string().lines().next().map(str::to_string).unwrap_or_default()
    };
    assert_eq!(
        one(errors(f32([]), |x| AnyTree::new((x, x)).get::<Key>())),
        format!(
            "error: AnyTree::get: the tree has the type `{}`, not `{}`",
            type_name::<(Tensor, Tensor)>(),
            type_name::<Key>()
        )
    );
    // The leaves of the two have the same paths and types.
    let report =
        errors(f32([]), |x| scan(AnyTree::new(vec![x]), 0..3, |_, _| (AnyTree::new([x]), ())));
    assert_eq!(
        one(report),
        format!(
            "error: scan: carry changed structure at `carry`: `{}` going in, `{}` coming out",
            type_name::<Vec<Tensor>>(),
            type_name::<[Tensor; 1]>()
        )
    );
    assert_eq!(
        one(errors((bool([]), f32([])), |(p, x)| {
            cond(p, || (x, AnyTree::new(Some(x))), || (x, AnyTree::new(None::<Tensor>)))
        })),
        "error: cond: branches differ at `result.1`: `true` gives `Some`, `false` gives `None`"
    );
    assert_eq!(
        one(errors(f32([]), |x| scan(AnyTree::new(x), 0..3, |_, _| (
            AnyTree::new(x.reshape([1])),
            ()
        )))),
        "error: scan: carry changed type at `carry`: f32[] going in, f32[1] coming out"
    );
    let (one, other) = (AnyTree::new(()), AnyTree::new([(); 2]));
    let (one, other) = (eval_shape((), |()| one), eval_shape((), |()| other));
    assert_ne!(one.expect("it traces"), other.expect("it traces"));
}
