//! [`AnyTree`]: a tree with a Rust type that is known only while tracing.

use super::structure::choices;
use super::{Choice, IntoTree, Items, Kind, Over, Path, Sources, Tree, tree_item, tree_sources};
use crate::tensor::Tensor;
use crate::trace::{TraceError, state};
use podracer_compiler::Loc;
use std::any::{Any, TypeId, type_name};
use std::panic::resume_unwind;
use std::sync::Arc;

/// A tree of any type, made from a concrete tree. Its leaves have the order and key paths of the
/// concrete tree. A program that is traced through it equals the program of the concrete tree.
///
/// rustc compiles code that is generic over a tree once for each tree. A trait with methods that
/// take and return `AnyTree`s can be a trait object, and code that calls it is compiled once.
/// Combinators accept an `AnyTree` like any other tree. Changing its concrete type in a carry, or
/// between branches, is an error.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// #[derive(Tree, Clone)]
/// struct Ball { position: Tensor, velocity: Tensor }
///
/// fn step(state: AnyTree) -> AnyTree {
///     let ball: Ball = state.get();
///     AnyTree::new(Ball { position: ball.position + ball.velocity, ..ball })
/// }
/// let program = trace((f32([]), f32([])), |(position, velocity)| {
///     scan(AnyTree::new(Ball { position, velocity }), 0..10, |state, _| (step(state), ())).0
/// })?;
/// assert_eq!(program.results().to_string(), "{position: f32[], velocity: f32[]}");
/// # Ok::<(), TraceErrors>(())
/// ```
#[derive(Clone)]
pub struct AnyTree {
    structure: Arc<Structure>,
    leaves: Vec<Tensor>,
}

/// [`AnyTree`] with its leaves in the kind `K`.
pub struct AnyTreeOf<K: Kind> {
    structure: Arc<Structure>,
    leaves: Vec<K::Leaf>,
}

/// The type and structure of the concrete tree, shared by all trees that are derived from it.
struct Structure {
    /// The concrete tree. Only its structure is used: the leaves are replaced.
    tree: Box<dyn Any + Send + Sync>,
    /// The type of the concrete tree.
    choice: Choice,
    paths: Vec<Path>,
    choices: Vec<(Path, Choice)>,
}

impl AnyTree {
    /// Erases the type of a tree. Specs and host trees that are derived from it share its
    /// structure, between threads too.
    pub fn new<T: Tree>(tree: T) -> AnyTree {
        let (leaves, paths, choices) = (tree.leaves(), tree.paths(), choices(&tree));
        let choice = Choice::Type(TypeId::of::<T>(), type_name::<T>());
        AnyTree {
            structure: Arc::new(Structure { tree: Box::new(tree), choice, paths, choices }),
            leaves,
        }
    }

    /// The tree with its original type; `None` if that is not `T`.
    pub fn downcast<T: Tree>(&self) -> Option<T> {
        self.structure.tree.downcast_ref::<T>().map(|tree| tree.with_leaves(&self.leaves))
    }

    /// The tree with its original type. If `T` is another type, the trace ends with an error at the
    /// caller's line, because there is no `T` to return.
    ///
    /// # Panics
    /// If it is called with another type outside a trace.
    #[track_caller]
    pub fn get<T: Tree>(&self) -> T {
        self.downcast().unwrap_or_else(|| self.other_type(type_name::<T>(), Loc::caller()))
    }

    fn other_type(&self, wanted: &str, loc: Loc) -> ! {
        let message = format!("the tree has the type `{}`, not `{wanted}`", self.structure.choice);
        let error = TraceError::new("AnyTree::get", message.clone(), loc);
        match state::with(|trace| trace.error(error)) {
            // `trace` catches the panic and returns the error that was just recorded.
            Some(()) => resume_unwind(Box::new(message)),
            None => panic!("{message}"),
        }
    }
}

impl Structure {
    fn visit<L>(
        &self,
        leaves: impl Iterator<Item = L>,
        path: &mut Path,
        f: &mut dyn FnMut(&Path, L),
    ) {
        for (below, leaf) in self.paths.iter().zip(leaves) {
            path.through(below, |path| f(path, leaf));
        }
    }
}

impl Over for AnyTree {
    type Item = AnyTree;
    fn sources(&self, sources: &mut Sources) {
        tree_sources(self, sources);
    }
    fn item(self, items: &mut Items<'_>) -> AnyTree {
        tree_item(&self, items)
    }
}

impl IntoTree for AnyTree {
    type Tree = AnyTree;
    fn into_tree(self) -> AnyTree {
        self
    }
}

impl Tree for AnyTree {
    type Of<K: Kind> = AnyTreeOf<K>;

    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Tensor)) {
        self.structure.visit(self.leaves.iter().copied(), path, f);
    }
    fn map(&self, f: &mut dyn FnMut(Tensor) -> Tensor) -> AnyTree {
        let leaves = self.leaves.iter().map(|&leaf| f(leaf)).collect();
        AnyTree { structure: Arc::clone(&self.structure), leaves }
    }
    fn choices(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Choice)) {
        f(path, self.structure.choice);
        for (below, choice) in &self.structure.choices {
            path.through(below, |path| f(path, *choice));
        }
    }
    fn to_kind<K: Kind>(&self, f: &mut dyn FnMut(Tensor) -> K::Leaf) -> AnyTreeOf<K> {
        let leaves = self.leaves.iter().map(|&leaf| f(leaf)).collect();
        AnyTreeOf { structure: Arc::clone(&self.structure), leaves }
    }
    fn from_kind<K: Kind>(of: &AnyTreeOf<K>, f: &mut dyn FnMut(&K::Leaf) -> Tensor) -> AnyTree {
        let leaves = of.leaves.iter().map(f).collect();
        AnyTree { structure: Arc::clone(&of.structure), leaves }
    }
    fn convert<J: Kind, K: Kind>(
        of: &AnyTreeOf<J>,
        f: &mut dyn FnMut(&J::Leaf) -> K::Leaf,
    ) -> AnyTreeOf<K> {
        let leaves = of.leaves.iter().map(f).collect();
        AnyTreeOf { structure: Arc::clone(&of.structure), leaves }
    }
    fn visit_kind<'a, K: Kind>(
        of: &'a AnyTreeOf<K>,
        path: &mut Path,
        f: &mut dyn FnMut(&Path, &'a K::Leaf),
    ) {
        of.structure.visit(of.leaves.iter(), path, f);
    }
    fn into_leaves<K: Kind>(of: AnyTreeOf<K>, leaves: &mut Vec<K::Leaf>) {
        leaves.extend(of.leaves);
    }
}
