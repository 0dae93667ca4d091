//! Trees: the derive, forms in a kind, a kind of another crate, paths.

use crate::helpers::{f32s, run_on};
use podracer_dsl::prelude::*;
use std::fmt;
use std::ops::Deref;

#[derive(Tree, Clone)]
pub struct Layer {
    pub weight: Tensor,
    pub bias: Tensor,
    #[tree(fixed)]
    pub activation: &'static str,
}

#[derive(Tree, Clone)]
pub struct Params {
    pub layers: Vec<Layer>,
    pub heads: [Tensor; 2],
    pub pair: (Tensor, Key),
}

#[derive(Tree, Clone, Copy)]
pub struct Wrapped(pub Tensor, #[tree(fixed)] pub usize);

#[derive(Tree, Clone, Copy)]
pub struct Nothing;

/// A trait in the style of agents: a type parameter names another type through it.
pub trait Environment: 'static {
    type State: Tree;
}

#[derive(Clone)]
pub struct Pendulum;

impl Environment for Pendulum {
    type State = Wrapped;
}

#[derive(Tree)]
pub struct TrainState<E: Environment, P> {
    pub environment: E::State,
    pub params: P,
    pub steps: Tensor,
}

// Deriving `Clone` would require `E: Clone`.
impl<E: Environment, P: Clone> Clone for TrainState<E, P> {
    fn clone(&self) -> Self {
        TrainState {
            environment: self.environment.clone(),
            params: self.params.clone(),
            steps: self.steps,
        }
    }
}

/// A kind like the runtime's: leaves that are host values.
pub enum OnHost {}

pub struct Host<T: Tree>(T::Of<OnHost>);

impl<T: Tree> Deref for Host<T> {
    type Target = T::Of<OnHost>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Kind for OnHost {
    type Leaf = Array;
    type View<T: Tree> = Host<T>;
    fn wrap<T: Tree>(of: T::Of<Self>) -> Host<T> {
        Host(of)
    }
    fn unwrap<T: Tree>(view: Host<T>) -> T::Of<Self> {
        view.0
    }
    fn peek<T: Tree>(view: &Host<T>) -> &T::Of<Self> {
        &view.0
    }
}

impl<T: Tree> fmt::Display for Host<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        T::visit_kind::<OnHost>(&self.0, &mut Path::root(), &mut |path, array| {
            text += &format!("{path}={array} ")
        });
        f.write_str(&text)
    }
}

fn params() -> Params {
    let layer =
        |n: usize| Layer { weight: zeros(F32, [n, n]), bias: ones(F32, [n]), activation: "tanh" };
    Params {
        layers: vec![layer(2), layer(1)],
        heads: [scalar(1.0), scalar(2)],
        pair: (scalar(true), Key::new(5u64)),
    }
}

#[test]
fn paths_and_types() {
    let spec = eval_shape((), |()| params()).expect("it traces");
    assert_eq!(
        spec.to_string(),
        "{layers[0].weight: f32[2,2], layers[0].bias: f32[2], layers[1].weight: f32[1,1], layers[1].bias: f32[1], \
         heads[0]: f32[], heads[1]: i32[], pair.0: bool[], pair.1: u32[2]}"
    );
    // A field of a form is a form.
    let first: &Spec<Layer> = &spec.layers[0];
    assert_eq!((first.activation, first.weight.shape.as_slice()), ("tanh", [2, 2].as_slice()));
    assert_eq!(spec.clone(), spec);
    assert_eq!(spec.stacked(3).layers[1].bias.shape[..], [3, 1]);
}

#[test]
fn another_kind_keeps_the_structure() {
    let traced = trace((), |()| params()).expect("it traces");
    let mut arrays = traced.eval(&[]).expect("no arguments").into_iter();
    let host: Host<Params> = traced.results().build::<OnHost>(&mut |ty| {
        let array = arrays.next().expect("one for each leaf");
        assert_eq!(array.ty(), ty);
        array
    });
    let layer: &Host<Layer> = &host.layers[1];
    assert_eq!(layer.to_string(), "weight=f32[1,1](0.0) bias=f32[1](1.0) ");
    assert_eq!((layer.activation, layer.bias.0.to_f64()), ("tanh", vec![1.0]));
    let mut leaves = Vec::new();
    Params::into_leaves::<OnHost>(host.0, &mut leaves);
    assert_eq!(leaves.len(), 8);
    assert_eq!(leaves[7], Array::ints(DType::U32, [2], &[0, 5]));
}

#[test]
fn generic_trees() {
    let state = |x: Tensor| TrainState::<Pendulum, Params> {
        environment: Wrapped(x, 3),
        params: params(),
        steps: scalar(0),
    };
    let traced = trace(f32([]), |x| {
        let state = state(x);
        let counted = scan(state.clone(), 0..2, |state, i| {
            (TrainState { steps: state.steps + i, ..state }, ())
        });
        (counted.0, Nothing)
    })
    .expect("it traces");
    assert_eq!(traced.result_paths()[0].to_string(), "0.environment.0");
    assert_eq!(traced.result_paths()[9].to_string(), "0.steps");
    let spec: &Spec<TrainState<Pendulum, Params>> = &traced.results().0.0;
    assert_eq!(spec.environment.1, 3);
    // A spec can be an argument again.
    let again = trace((spec, ()), |(state, ())| tree_map(&state, |leaf| leaf)).expect("it traces");
    assert_eq!(again.arguments().types(), again.results().types());
}

#[test]
fn trees_select_and_zip() {
    let results = run_on(
        (bool([]), f32([2])),
        &[Array::bools([], &[false]), f32s(&[2], &[1.0, 2.0])],
        |(p, x)| {
            let (a, b) = ((x, scalar(1)), (x * 2.0, scalar(2)));
            (tree_select(p, &a, &b), a.zip_with(&b, |a, b| a + b))
        },
    );
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    assert_eq!(values, [vec![2.0, 4.0], vec![2.0], vec![3.0, 6.0], vec![3.0]]);
}

#[test]
fn eval_reports_arguments_that_it_does_not_take() {
    let traced = trace((f32([2]), i32([])), |(x, _)| x).expect("it traces");
    assert_eq!(
        traced.eval(&[]).unwrap_err().to_string(),
        "the arguments have 2 leaves, got 0 arrays"
    );
    let wrong = [f32s(&[2], &[1.0, 2.0]), f32s(&[], &[1.0])];
    assert_eq!(traced.eval(&wrong).unwrap_err().to_string(), "`arguments.1` is i32[], got f32[]");
}

#[test]
fn a_traced_function_goes_over_a_batch() {
    let traced = trace((f32([2]), f32([])), |(x, y)| (x * y).sum()).expect("it traces");
    let batched = traced.vmap(3);
    assert_eq!(
        batched.arguments().types(),
        [TensorType::new(DType::F32, [3, 2]), TensorType::new(DType::F32, [3])]
    );
    let x = f32s(&[3, 2], &[1., 2., 3., 4., 5., 6.]);
    let results = batched.eval(&[x, f32s(&[3], &[1., 0., 2.])]).expect("it fits");
    assert_eq!(results[0].to_f64(), [3.0, 0.0, 22.0]);
}

#[test]
fn rustc_reports_mistakes_well() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("compile_fail/*.rs");
}
