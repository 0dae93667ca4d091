//! Rules of agents: tensors of a program, or stored arrays.

use podracer_dsl::prelude::*;
use std::fmt;
use std::sync::Arc;

/// An update rule: a network with sizes that follow from its arrays.
pub trait UpdateRule: Tree {
    /// The sizes of the rule.
    type Shape: Clone + 'static;

    /// A new rule, before any training.
    fn init(key: Key, shape: &Self::Shape) -> Self;

    /// The sizes of the rule.
    fn shape(&self) -> Self::Shape;

    /// The types of a rule of these sizes.
    ///
    /// # Panics
    /// Never: a rule of any sizes can be traced.
    #[must_use]
    fn spec_of(shape: &Self::Shape) -> Spec<Self> {
        eval_shape((key(),), |(key,)| Self::init(key, shape)).expect("a rule of any sizes")
    }
}

/// The rule of an agent.
#[derive(Clone)]
pub enum Rule<R: UpdateRule> {
    /// Tensors of the program, such as the parameters of a rule in training.
    Traced(Box<R>),
    /// Arrays, which become constants of the program.
    Kept(KeptRule<R>),
}

/// A rule outside of any program.
#[derive(Clone)]
pub struct KeptRule<R: UpdateRule> {
    shape: R::Shape,
    leaves: Arc<[Array]>,
}

impl<R: UpdateRule<Shape: fmt::Debug>> fmt::Debug for KeptRule<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptRule").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl<R: UpdateRule> KeptRule<R> {
    /// A rule of these sizes, from the arrays of its leaves in order; `None` if their types differ.
    #[must_use]
    pub fn new(shape: R::Shape, leaves: Vec<Array>) -> Option<KeptRule<R>> {
        let types = R::spec_of(&shape).types();
        let fits = types.len() == leaves.len()
            && types.iter().zip(&leaves).all(|(ty, leaf)| ty == leaf.ty());
        fits.then(|| KeptRule { shape, leaves: leaves.into() })
    }
}

impl<R: UpdateRule> Rule<R> {
    /// The sizes of the rule.
    #[must_use]
    pub fn shape(&self) -> R::Shape {
        match self {
            Rule::Traced(rule) => rule.shape(),
            Rule::Kept(kept) => kept.shape.clone(),
        }
    }

    /// The rule as tensors of the program.
    #[track_caller]
    #[must_use]
    pub fn tensors(&self) -> R {
        match self {
            Rule::Traced(rule) => R::clone(rule),
            Rule::Kept(KeptRule { shape, leaves }) => {
                let constants: Vec<Tensor> = leaves.iter().map(constant_of).collect();
                R::init(Key::new(0), shape).with_leaves(&constants)
            }
        }
    }
}

impl<R: UpdateRule> From<R> for Rule<R> {
    fn from(rule: R) -> Self {
        Rule::Traced(Box::new(rule))
    }
}
