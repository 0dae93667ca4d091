//! The e-graph of one region: a node is an op applied to classes of equal values.
//!
//! A class knows its type, which all its nodes share, and its value if all elements are one known
//! constant. Parameters, results of equations with several results, and results of equations with
//! an effect are nodes that are equal only to themselves.

use super::{LARGEST_CONSTANT, constant_op};
use crate::array::Array;
use crate::ir::Loc;
use crate::ops::{BroadcastInDim, Constant, Op, OpRef};
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use egg::{Analysis, DidMerge, EGraph, Id, Language};
use std::collections::HashMap;

/// The op of a node, or its stand-in: an index into [`Facts::symbols`].
pub(super) type Symbol = u32;

/// A symbol applied to classes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    pub symbol: Symbol,
    pub children: Vec<Id>,
}

impl Language for Node {
    type Discriminant = Symbol;

    fn discriminant(&self) -> Symbol {
        self.symbol
    }

    fn matches(&self, other: &Self) -> bool {
        self.symbol == other.symbol && self.children.len() == other.children.len()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

/// The meaning of a symbol.
#[derive(Debug)]
pub(super) enum Meaning {
    /// A pure op with one result.
    Op(OpRef),
    /// A parameter of the region.
    Param(TensorType),
    /// A result of the region's equation `eqn`, which stays unchanged. Its operands are the node's
    /// operands.
    Result { eqn: usize, ty: TensorType },
}

/// The type, known value and location of a class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// The common type of its nodes.
    pub ty: TensorType,
    /// The value of every element, if it is a single known value.
    pub splat: Option<Scalar>,
    /// The user's line of its first node.
    pub loc: Loc,
}

/// The symbols of the graph, and the settings of its analysis.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub symbols: Vec<Meaning>,
    /// The symbol of each op that has one; looked up, never iterated.
    numbers: HashMap<OpRef, Symbol>,
    /// The line that new classes get.
    pub loc: Loc,
    /// True to compute known values.
    pub fold: bool,
}

/// The e-graph of a region.
pub(super) type Graph = EGraph<Node, Facts>;

impl Facts {
    /// The facts of an empty graph. With `fold`, known values are computed.
    pub fn new(fold: bool) -> Self {
        Facts { fold, ..Facts::default() }
    }

    /// The symbol of an op.
    pub fn intern(&mut self, op: &OpRef) -> Symbol {
        if let Some(&symbol) = self.numbers.get(op) {
            return symbol;
        }
        let symbol = self.define(Meaning::Op(op.clone()));
        self.numbers.insert(op.clone(), symbol);
        symbol
    }

    /// Makes a new symbol with this meaning.
    pub fn define(&mut self, meaning: Meaning) -> Symbol {
        self.symbols.push(meaning);
        u32::try_from(self.symbols.len() - 1).expect("fewer than 2^32 symbols")
    }

    /// The op of a node, if rules may inspect it.
    pub fn op(&self, node: &Node) -> Option<&OpRef> {
        match &self.symbols[node.symbol as usize] {
            Meaning::Op(op) => Some(op),
            _ => None,
        }
    }
}

impl Analysis<Node> for Facts {
    type Data = Class;

    fn make(graph: &mut Graph, node: &Node, _: Id) -> Class {
        let facts = &graph.analysis;
        let op = match &facts.symbols[node.symbol as usize] {
            Meaning::Param(ty) | Meaning::Result { ty, .. } => {
                return Class { ty: ty.clone(), splat: None, loc: facts.loc };
            }
            Meaning::Op(op) => op,
        };
        let operands: Vec<&Class> = node.children.iter().map(|&id| &graph[id].data).collect();
        let types: Vec<TensorType> = operands.iter().map(|class| class.ty.clone()).collect();
        let mut result = op
            .infer(&types)
            .unwrap_or_else(|error| panic!("a rule made an ill-typed {}: {error}", op.mnemonic()));
        assert_eq!(result.len(), 1, "nodes of ops have one result");
        let ty = result.remove(0);
        let splat = value(op, &operands, &ty, facts.fold);
        Class { ty, splat, loc: facts.loc }
    }

    fn merge(&mut self, a: &mut Class, b: Class) -> DidMerge {
        assert_eq!(a.ty, b.ty, "a rule equated values of two types");
        if let (Some(a), Some(b)) = (a.splat, b.splat) {
            assert_eq!(a, b, "a rule equated two constants");
        }
        let gained = a.splat.is_none() && b.splat.is_some();
        let lost = a.splat.is_some() && b.splat.is_none();
        a.splat = a.splat.or(b.splat);
        DidMerge(gained, lost)
    }

    fn modify(graph: &mut Graph, id: Id) {
        if !graph.analysis.fold {
            return;
        }
        if let Class { ty, splat: Some(value), .. } = graph[id].data.clone() {
            let constant = add_constant(graph, &ty, value);
            graph.union(id, constant);
        }
    }
}

/// The class of a constant with all elements equal.
pub(super) fn add_constant(graph: &mut Graph, ty: &TensorType, value: Scalar) -> Id {
    let small = ty.elements() <= LARGEST_CONSTANT;
    let held = if small { ty.clone() } else { TensorType::scalar(ty.dtype) };
    let constant = add_op(graph, &constant_op(Array::splat(held, value)), Vec::new());
    if small {
        return constant;
    }
    let broadcast = BroadcastInDim { shape: ty.shape.to_vec(), broadcast_dimensions: Vec::new() };
    add_op(graph, &OpRef::new(broadcast), vec![constant])
}

/// The class of an op applied to classes.
pub(super) fn add_op(graph: &mut Graph, op: &OpRef, children: Vec<Id>) -> Id {
    let symbol = graph.analysis.intern(op);
    graph.add(Node { symbol, children })
}

/// The value of every element of an op's result of type `ty`, if it is known, or if it can be
/// computed and `fold` allows it.
fn value(op: &OpRef, operands: &[&Class], ty: &TensorType, fold: bool) -> Option<Scalar> {
    if ty.elements() == 0 {
        return None;
    }
    if let Some(constant) = op.downcast::<Constant>() {
        return constant.value.splat_value();
    }
    let values: Vec<Scalar> = operands.iter().map(|class| class.splat).collect::<Option<_>>()?;
    match values[..] {
        [] => None,
        [value] if op.recompute() => Some(value),
        _ if fold && op.pointwise() && op.exact() => {
            let scalars: Vec<Array> = (operands.iter().zip(values))
                .map(|(class, value)| Array::single(class.ty.dtype, value))
                .collect();
            let result = op.eval(&scalars).remove(0);
            let plain = scalars.iter().chain([&result]).all(is_plain);
            plain.then(|| result.get(0))
        }
        _ => None,
    }
}

/// True if XLA treats a scalar as the reference semantics do on every platform. It may compute
/// narrow floats in wider types, and may flush subnormal floats to zero.
fn is_plain(scalar: &Array) -> bool {
    match (scalar.ty().dtype, scalar.get(0)) {
        (DType::F16 | DType::BF16, _) => false,
        (DType::F32, Scalar::Float(x)) => !(x as f32).is_subnormal(),
        (_, Scalar::Float(x)) => !x.is_subnormal(),
        _ => true,
    }
}

/// The graph as rules see it: read-only.
#[derive(Clone, Copy)]
pub struct View<'a>(pub(super) &'a Graph);

impl<'a> View<'a> {
    /// The applications of a `T` among the nodes of a class, with their operands.
    pub(super) fn all<T: Op>(self, class: Id) -> impl Iterator<Item = (&'a T, &'a [Id])> {
        let graph = self.0;
        graph[class].nodes.iter().filter_map(move |node| {
            let op = graph.analysis.op(node)?.downcast()?;
            Some((op, &node.children[..]))
        })
    }

    /// The ops of a class that rules may inspect, with their operands.
    pub(super) fn ops(self, class: Id) -> impl Iterator<Item = (&'a OpRef, &'a [Id])> {
        let graph = self.0;
        graph[class].nodes.iter().filter_map(move |node| {
            let op = graph.analysis.op(node)?;
            Some((op, &node.children[..]))
        })
    }

    /// The type of a class.
    pub(super) fn ty(self, class: Id) -> &'a TensorType {
        &self.0[class].data.ty
    }

    /// The common value of a class's elements, if it is known.
    pub(super) fn splat(self, class: Id) -> Option<Scalar> {
        self.0[class].data.splat
    }

    /// True if two classes are one.
    pub(super) fn same(self, a: Id, b: Id) -> bool {
        self.0.find(a) == self.0.find(b)
    }

    /// True if all elements of a class are this number.
    pub(super) fn is_number(self, class: Id, number: i64) -> bool {
        self.splat(class) == Some(Scalar::number(self.ty(class).dtype, number))
    }
}

/// An expression over classes, as a rule produces it.
#[derive(Clone, Debug)]
pub(super) enum Term {
    /// A class of the graph.
    Class(Id),
    /// An op applied to terms.
    Op(OpRef, Vec<Term>),
    /// A constant with all elements equal.
    Splat(TensorType, Scalar),
}

impl From<Id> for Term {
    fn from(class: Id) -> Self {
        Term::Class(class)
    }
}

impl Term {
    /// An op applied to terms.
    pub fn new<const N: usize>(op: impl Op, operands: [Term; N]) -> Term {
        Term::Op(OpRef::new(op), operands.into())
    }

    /// The term's class, which is created if it is new.
    pub fn add(&self, graph: &mut Graph) -> Id {
        match self {
            Term::Class(class) => *class,
            Term::Splat(ty, value) => add_constant(graph, ty, *value),
            Term::Op(op, operands) => {
                let children = operands.iter().map(|term| term.add(graph)).collect();
                add_op(graph, op, children)
            }
        }
    }
}
