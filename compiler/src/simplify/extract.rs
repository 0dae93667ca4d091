//! Chooses the computed node of each class.
//!
//! Choosing one node of a class may make others unnecessary, and several classes share operands, so
//! choosing the cheapest set is hard. The extraction starts from the region's own nodes. It
//! replaces one class's node by another as long as that makes the whole cheaper. It counts exactly
//! the additional cost of a change and the cost that is no longer needed. (Logic synthesis calls it
//! area recovery: Mishchenko, Chatterjee and Brayton, "DAG-aware AIG rewriting", 2006.) So the cost
//! only falls.
//!
//! A choice must not depend on itself. This is possible only within a strongly connected component
//! of classes. Within a component, a node may therefore use only classes of lower rank; a class's
//! rank is the depth of its shallowest node.

use super::cost::Cost;
use super::graph::{Graph, Meaning, Node};
use egg::Id;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The most passes over all classes.
const PASSES: usize = 8;

/// A node for each class, and the number of its uses.
pub(super) struct Choice {
    /// The position of each class in `node` and `uses`; looked up, never iterated.
    index: HashMap<Id, usize>,
    node: Vec<usize>,
    uses: Vec<u32>,
    /// The total cost of the needed nodes.
    pub cost: Cost,
}

impl Choice {
    /// True if the class is needed.
    pub fn is_live(&self, class: Id) -> bool {
        self.uses[self.index[&class]] > 0
    }

    /// The chosen node of a class.
    pub fn node<'g>(&self, graph: &'g Graph, class: Id) -> &'g Node {
        &graph[class].nodes[self.node[self.index[&class]]]
    }
}

/// Chooses the nodes that compute `roots`. `originals` are the region's own nodes, in order, with their classes.
pub(super) fn extract(graph: &Graph, roots: &[Id], originals: &[(Id, Node)]) -> Choice {
    let dense = Dense::new(graph);
    let rank = dense.ranks();
    let component = dense.components();
    let allowed = |class: usize, node: usize| {
        let fits =
            |&child: &usize| component[child] != component[class] || rank[child] < rank[class];
        dense.nodes[class][node].children.iter().all(fits)
    };
    // The first of the region's own nodes, otherwise the shallowest.
    let mut start: Vec<Option<usize>> = vec![None; dense.nodes.len()];
    for (class, node) in originals {
        let position = graph[*class].nodes.binary_search(node).ok();
        let class = dense.index[class];
        if let (None, Some(position)) = (start[class], position)
            && allowed(class, position)
        {
            start[class] = Some(position);
        }
    }
    let shallowest = |class: usize| {
        let nodes = 0..dense.nodes[class].len();
        let depth =
            |&node: &usize| (dense.depth(&rank, class, node), dense.nodes[class][node].cost, node);
        nodes.filter(|&node| allowed(class, node)).min_by_key(depth)
    };
    let node = (0..start.len())
        .map(|class| {
            start[class].or_else(|| shallowest(class)).expect("the shallowest node is allowed")
        })
        .collect();
    let mut search = Search { uses: vec![0; dense.nodes.len()], node, dense: &dense };
    let mut cost = Cost::default();
    for &root in roots {
        cost = cost + search.add(&[dense.index[&graph.find(root)]]);
    }
    let mut order: Vec<usize> =
        (0..dense.nodes.len()).filter(|&class| dense.nodes[class].len() > 1).collect();
    order.sort_by_key(|&class| (Reverse(rank[class]), class));
    for _ in 0..PASSES {
        let mut changed = false;
        for &class in &order {
            if search.uses[class] == 0 {
                continue;
            }
            for node in (0..dense.nodes[class].len()).filter(|&node| allowed(class, node)) {
                let depth = |node| dense.depth(&rank, class, node);
                if let Some(next) = search.try_node(class, node, cost, depth) {
                    (cost, changed) = (next, true);
                }
            }
        }
        if !changed {
            break;
        }
    }
    let Search { node, uses, .. } = search;
    Choice { index: dense.index, node, uses, cost }
}

/// A node with classes by number.
struct DenseNode {
    children: Vec<usize>,
    cost: Cost,
}

/// The graph with its classes numbered in the order of their ids.
struct Dense {
    index: HashMap<Id, usize>,
    nodes: Vec<Vec<DenseNode>>,
}

impl Dense {
    fn new(graph: &Graph) -> Self {
        let mut classes: Vec<Id> = graph.classes().map(|class| class.id).collect();
        classes.sort_unstable();
        let index: HashMap<Id, usize> =
            classes.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let cost = |node: &Node, class: Id| match &graph.analysis.symbols[node.symbol as usize] {
            Meaning::Op(op) => Cost::of(op, &graph[class].data.ty),
            _ => Cost::default(),
        };
        let nodes = classes.iter().map(|&class| {
            let nodes = graph[class].nodes.iter().map(|node| DenseNode {
                children: node.children.iter().map(|child| index[child]).collect(),
                cost: cost(node, class),
            });
            nodes.collect()
        });
        Dense { nodes: nodes.collect(), index }
    }

    /// The depth of a node: one more than the greatest rank of its children.
    fn depth(&self, rank: &[u32], class: usize, node: usize) -> u32 {
        self.nodes[class][node].children.iter().map(|&child| rank[child] + 1).max().unwrap_or(0)
    }

    /// The depth of each class's shallowest node.
    fn ranks(&self) -> Vec<u32> {
        let mut parents: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.nodes.len()];
        let mut missing: Vec<Vec<usize>> = Vec::with_capacity(self.nodes.len());
        let mut queue = BinaryHeap::new();
        for (class, nodes) in self.nodes.iter().enumerate() {
            for (i, node) in nodes.iter().enumerate() {
                node.children.iter().for_each(|&child| parents[child].push((class, i)));
                if node.children.is_empty() {
                    queue.push(Reverse((0, class)));
                }
            }
            missing.push(nodes.iter().map(|node| node.children.len()).collect());
        }
        let mut rank = vec![u32::MAX; self.nodes.len()];
        // Classes come in the order of their ranks: a node's depth comes from its last child.
        while let Some(Reverse((depth, class))) = queue.pop() {
            if rank[class] != u32::MAX {
                continue;
            }
            rank[class] = depth;
            for &(parent, node) in &parents[class] {
                missing[parent][node] -= 1;
                if missing[parent][node] == 0 {
                    queue.push(Reverse((depth + 1, parent)));
                }
            }
        }
        rank
    }

    /// The strongly connected component of each class (Tarjan 1972, without recursion).
    fn components(&self) -> Vec<usize> {
        const NONE: usize = usize::MAX;
        let successors: Vec<Vec<usize>> = (self.nodes.iter())
            .map(|nodes| nodes.iter().flat_map(|node| node.children.iter().copied()).collect())
            .collect();
        let count = successors.len();
        let (mut number, mut low, mut component) =
            (vec![NONE; count], vec![0; count], vec![NONE; count]);
        let (mut open, mut calls) = (Vec::new(), Vec::new());
        let (mut next, mut components) = (0, 0);
        for start in 0..count {
            if number[start] != NONE {
                continue;
            }
            calls.push((start, 0));
            while let Some((class, position)) = calls.pop() {
                if position == 0 {
                    (number[class], low[class]) = (next, next);
                    next += 1;
                    open.push(class);
                } else {
                    low[class] = low[class].min(low[successors[class][position - 1]]);
                }
                let rest = &successors[class][position..];
                let unseen = rest.iter().position(|&child| {
                    let on_stack = number[child] != NONE && component[child] == NONE;
                    if on_stack {
                        low[class] = low[class].min(number[child]);
                    }
                    number[child] == NONE
                });
                if let Some(offset) = unseen {
                    calls.push((class, position + offset + 1));
                    calls.push((rest[offset], 0));
                } else if low[class] == number[class] {
                    while let Some(member) = open.pop() {
                        component[member] = components;
                        if member == class {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        component
    }
}

struct Search<'a> {
    dense: &'a Dense,
    node: Vec<usize>,
    uses: Vec<u32>,
}

impl Search<'_> {
    /// Counts one more use of each class; returns the cost of the classes that were not needed
    /// before.
    fn add(&mut self, classes: &[usize]) -> Cost {
        let mut cost = Cost::default();
        let mut stack = classes.to_vec();
        while let Some(class) = stack.pop() {
            self.uses[class] += 1;
            if self.uses[class] == 1 {
                let node = &self.dense.nodes[class][self.node[class]];
                cost = cost + node.cost;
                stack.extend(&node.children);
            }
        }
        cost
    }

    /// Counts one use less of each class; returns the cost of the classes that are no longer
    /// needed.
    fn remove(&mut self, classes: &[usize]) -> Cost {
        let mut cost = Cost::default();
        let mut stack = classes.to_vec();
        while let Some(class) = stack.pop() {
            self.uses[class] -= 1;
            if self.uses[class] == 0 {
                let node = &self.dense.nodes[class][self.node[class]];
                cost = cost + node.cost;
                stack.extend(&node.children);
            }
        }
        cost
    }

    /// Tries another node for a class. It is kept if the total then costs less than `cost`, or
    /// equally much with a shallower node. Returns the new cost.
    fn try_node(
        &mut self,
        class: usize,
        node: usize,
        cost: Cost,
        depth: impl Fn(usize) -> u32,
    ) -> Option<Cost> {
        let old = self.node[class];
        if node == old {
            return None;
        }
        let dense = self.dense;
        let (before, after) = (&dense.nodes[class][old], &dense.nodes[class][node]);
        // Add first: a class that both nodes need is not visited.
        let added = self.add(&after.children) + after.cost;
        let removed = self.remove(&before.children) + before.cost;
        let next = cost + added - removed;
        if (next, depth(node)) < (cost, depth(old)) {
            self.node[class] = node;
            return Some(next);
        }
        self.add(&before.children);
        self.remove(&after.children);
        None
    }
}
