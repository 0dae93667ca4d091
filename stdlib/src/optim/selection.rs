//! Selected leaves of a tree, under their original key paths.

use podracer_dsl::prelude::*;
use podracer_dsl::tree::{Items, Sources, tree_item, tree_sources};
use std::sync::Arc;

/// Leaves of a tree of parameters that a predicate on key paths selected: a tree that keeps their
/// key paths.
#[derive(Clone)]
pub struct Selection {
    paths: Arc<[Path]>,
    leaves: Vec<Tensor>,
}

/// [`Selection`] with its leaves in the kind `K`.
pub struct SelectionOf<K: Kind> {
    paths: Arc<[Path]>,
    leaves: Vec<K::Leaf>,
}

impl Selection {
    /// The leaves of a tree with a key path that fulfils a predicate, and the remaining leaves.
    pub(super) fn divide<P: Tree>(tree: &P, chosen: impl Fn(&Path) -> bool) -> [Selection; 2] {
        let mut parts = [const { (Vec::new(), Vec::new()) }; 2];
        tree.visit(&mut Path::root(), &mut |path, leaf| {
            let (paths, leaves) = &mut parts[usize::from(!chosen(path))];
            paths.push(path.clone());
            leaves.push(leaf);
        });
        parts.map(|(paths, leaves)| Selection { paths: paths.into(), leaves })
    }

    /// The tree, with the structure of `like`, that [`Selection::divide`] divides into these parts.
    #[track_caller]
    pub(super) fn join<P: Tree>(
        parts: [Selection; 2],
        like: &P,
        chosen: impl Fn(&Path) -> bool,
    ) -> P {
        let mut next = parts.map(|part| part.leaves.into_iter());
        let mut leaves = Vec::new();
        like.visit(&mut Path::root(), &mut |path, leaf| {
            leaves.push(next[usize::from(!chosen(path))].next().unwrap_or(leaf));
        });
        like.with_leaves(&leaves)
    }
}

fn visit<L>(
    paths: &[Path],
    leaves: impl Iterator<Item = L>,
    path: &mut Path,
    f: &mut dyn FnMut(&Path, L),
) {
    for (below, leaf) in paths.iter().zip(leaves) {
        path.through(below, |path| f(path, leaf));
    }
}

impl Over for Selection {
    type Item = Selection;
    fn sources(&self, sources: &mut Sources) {
        tree_sources(self, sources);
    }
    fn item(self, items: &mut Items<'_>) -> Selection {
        tree_item(&self, items)
    }
}

impl IntoTree for Selection {
    type Tree = Selection;
    fn into_tree(self) -> Selection {
        self
    }
}

impl Tree for Selection {
    type Of<K: Kind> = SelectionOf<K>;

    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Tensor)) {
        visit(&self.paths, self.leaves.iter().copied(), path, f);
    }
    fn map(&self, f: &mut dyn FnMut(Tensor) -> Tensor) -> Selection {
        let leaves = self.leaves.iter().map(|&leaf| f(leaf)).collect();
        Selection { paths: Arc::clone(&self.paths), leaves }
    }
    fn to_kind<K: Kind>(&self, f: &mut dyn FnMut(Tensor) -> K::Leaf) -> SelectionOf<K> {
        let leaves = self.leaves.iter().map(|&leaf| f(leaf)).collect();
        SelectionOf { paths: Arc::clone(&self.paths), leaves }
    }
    fn from_kind<K: Kind>(of: &SelectionOf<K>, f: &mut dyn FnMut(&K::Leaf) -> Tensor) -> Selection {
        let leaves = of.leaves.iter().map(f).collect();
        Selection { paths: Arc::clone(&of.paths), leaves }
    }
    fn convert<J: Kind, K: Kind>(
        of: &SelectionOf<J>,
        f: &mut dyn FnMut(&J::Leaf) -> K::Leaf,
    ) -> SelectionOf<K> {
        let leaves = of.leaves.iter().map(f).collect();
        SelectionOf { paths: Arc::clone(&of.paths), leaves }
    }
    fn visit_kind<'a, K: Kind>(
        of: &'a SelectionOf<K>,
        path: &mut Path,
        f: &mut dyn FnMut(&Path, &'a K::Leaf),
    ) {
        visit(&of.paths, of.leaves.iter(), path, f);
    }
    fn into_leaves<K: Kind>(of: SelectionOf<K>, leaves: &mut Vec<K::Leaf>) {
        leaves.extend(of.leaves);
    }
}
