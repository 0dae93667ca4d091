//! Simplification of one region: through its e-graph and back.

use super::cost::Cost;
use super::extract::{Choice, extract};
use super::graph::{Class, Facts, Graph, Meaning, Node, Term, View};
use super::rules::{Rule, enabled};
use super::{Group, Options};
use crate::ir::{Builder, Eqn, Func, Loc, Var};
use crate::ops::Effect;
use egg::{EGraph, Id, Language};
use std::collections::HashMap;

/// The region with the cheapest equations that the rules find; the region itself if no equations
/// are cheaper.
pub(super) fn simplify(func: &Func, options: &Options) -> Func {
    simplify_by(func, options, &enabled(options))
}

/// [`simplify`] with these rules.
pub(super) fn simplify_by(func: &Func, options: &Options, rules: &[&'static Rule]) -> Func {
    // An effect without results would have no node to keep it alive.
    let lost = |eqn: &Eqn| eqn.outputs.is_empty() && eqn.op.effect() != Effect::Pure;
    let idle = rules.is_empty() && !options.has(Group::Fold);
    if idle || func.eqns.iter().any(lost) {
        return func.clone();
    }
    let mut region = Region::new(func, options);
    if !region.saturate(options, rules) {
        return func.clone();
    }
    let roots = region.roots();
    let originals = region.originals();
    let choice = extract(&region.graph, &roots, &originals);
    if choice.cost < region.cost() { region.emit(&choice) } else { func.clone() }
}

/// True if a rule finds a new equality in the region.
#[cfg(test)]
pub(super) fn applies(func: &Func, rule: &'static Rule) -> bool {
    Region::new(func, &Options::default()).saturate(&Options::default(), &[rule])
}

/// True if the equation becomes a node. Other equations are kept unchanged: their results are
/// separate nodes.
fn is_node(eqn: &Eqn) -> bool {
    eqn.outputs.len() == 1 && eqn.op.effect() == Effect::Pure && eqn.op.funcs().is_empty()
}

struct Region<'a> {
    func: &'a Func,
    graph: Graph,
    /// The node of each variable, by its own id.
    ids: Vec<Option<Id>>,
    /// For each equation, true if it is a node.
    plain: Vec<bool>,
}

impl<'a> Region<'a> {
    fn new(func: &'a Func, options: &Options) -> Self {
        let mut graph = EGraph::new(Facts::new(options.has(Group::Fold)));
        let mut ids: Vec<Option<Id>> = vec![None; func.types.len()];
        for &param in &func.params {
            let symbol = graph.analysis.define(Meaning::Param(func.ty(param).clone()));
            let children = Vec::new();
            ids[param.index()] = Some(graph.add(Node { symbol, children }));
        }
        let plain: Vec<bool> = func.eqns.iter().map(is_node).collect();
        // Effects keep their order: each effect is an operand of the next.
        let mut last_effect = None;
        for (number, eqn) in func.eqns.iter().enumerate() {
            graph.analysis.loc = eqn.loc;
            let mut children: Vec<Id> = (eqn.inputs.iter())
                .map(|var| ids[var.index()].expect("variables are defined before they are used"))
                .collect();
            if plain[number] {
                let symbol = graph.analysis.intern(&eqn.op);
                let id = graph.add_uncanonical(Node { symbol, children });
                ids[eqn.outputs[0].index()] = Some(id);
                continue;
            }
            let effect = eqn.op.effect() != Effect::Pure;
            if effect {
                children.extend(last_effect);
            }
            for &output in &eqn.outputs {
                let ty = func.ty(output).clone();
                let symbol = graph.analysis.define(Meaning::Result { eqn: number, ty });
                let children = children.clone();
                let id = graph.add(Node { symbol, children });
                ids[output.index()] = Some(id);
                if effect {
                    last_effect = Some(id);
                }
            }
        }
        graph.rebuild();
        Region { func, graph, ids, plain }
    }

    fn id(&self, var: Var) -> Id {
        self.ids[var.index()].expect("variables are defined before they are used")
    }

    /// Runs the rules until they find nothing new or a limit is reached. Returns true if they found
    /// anything.
    fn saturate(&mut self, options: &Options, rules: &[&'static Rule]) -> bool {
        let limit = options.nodes_per_equation * self.func.eqns.len().max(64);
        let mut by_symbol: Vec<Option<Vec<&'static Rule>>> = Vec::new();
        let mut found = self.graph.total_number_of_nodes() > self.graph.number_of_classes();
        for _ in 0..options.iterations {
            let mut terms: Vec<(Id, Term)> = Vec::new();
            by_symbol.resize(self.graph.analysis.symbols.len(), None);
            let view = View(&self.graph);
            let mut classes: Vec<Id> = self.graph.classes().map(|class| class.id).collect();
            classes.sort_unstable();
            let mut new = Vec::new();
            for &class in &classes {
                for node in &self.graph[class].nodes {
                    let Some(op) = self.graph.analysis.op(node) else {
                        continue;
                    };
                    let known = by_symbol[node.symbol as usize].get_or_insert_with(|| {
                        rules.iter().copied().filter(|rule| (rule.root)(op)).collect()
                    });
                    for rule in known {
                        (rule.apply)(view, class, op, &node.children, &mut new);
                        terms.extend(new.drain(..).map(|term| (class, term)));
                    }
                }
            }
            let mut changed = false;
            for (class, term) in terms {
                if self.graph.total_size() > limit {
                    break;
                }
                self.graph.analysis.loc = self.graph[class].data.loc;
                let equal = term.add(&mut self.graph);
                changed |= self.graph.union(class, equal);
            }
            self.graph.rebuild();
            found |= changed;
            if !changed || self.graph.total_size() > limit {
                break;
            }
        }
        found
    }

    /// The classes that must be computed: results, operands of equations with an effect, the
    /// effects themselves.
    fn roots(&self) -> Vec<Id> {
        let mut roots: Vec<Id> = self.func.results.iter().map(|&var| self.id(var)).collect();
        for eqn in &self.func.eqns {
            if eqn.op.effect() != Effect::Pure {
                roots.extend(eqn.inputs.iter().chain(&eqn.outputs).map(|&var| self.id(var)));
            }
        }
        roots
    }

    /// The nodes of the region's own equations, in order, with their classes.
    fn originals(&self) -> Vec<(Id, Node)> {
        let canonical = |var: &Var| {
            let id = self.id(*var);
            let mut node = self.graph.id_to_node(id).clone();
            node.update_children(|child| self.graph.find(child));
            (self.graph.find(id), node)
        };
        let outputs = self.func.eqns.iter().flat_map(|eqn| &eqn.outputs);
        self.func.params.iter().chain(outputs).map(canonical).collect()
    }

    /// The cost of the region's own equations.
    fn cost(&self) -> Cost {
        let plain = self.func.eqns.iter().zip(&self.plain);
        let cost = |eqn: &Eqn| Cost::of(&eqn.op, self.func.ty(eqn.outputs[0]));
        plain.filter(|(_, plain)| **plain).fold(Cost::default(), |sum, (eqn, _)| sum + cost(eqn))
    }

    /// The function of the chosen nodes, in the order of the region's equations; each new node
    /// comes before its first use.
    fn emit(&self, choice: &Choice) -> Func {
        let mut emitter = Emitter { region: self, choice, b: Builder::new(), vars: HashMap::new() };
        for &param in &self.func.params {
            let var = emitter.b.param(self.func.ty(param).clone());
            let class = self.graph.find(self.id(param));
            emitter.vars.insert(class, var);
        }
        for eqn in &self.func.eqns {
            for &output in &eqn.outputs {
                let class = self.graph.find(self.id(output));
                if choice.is_live(class) {
                    emitter.emit(class);
                }
            }
        }
        let results =
            self.func.results.iter().map(|&var| emitter.emit(self.graph.find(self.id(var))));
        let results = results.collect();
        emitter.b.finish(self.func.name.clone(), results)
    }
}

struct Emitter<'a> {
    region: &'a Region<'a>,
    choice: &'a Choice,
    b: Builder,
    /// The variable of each emitted class; looked up, never iterated.
    vars: HashMap<Id, Var>,
}

impl Emitter<'_> {
    /// The variable of a class, with everything that it needs. No recursion: a region may be deep.
    fn emit(&mut self, class: Id) -> Var {
        let graph = &self.region.graph;
        let mut stack = vec![class];
        while let Some(&top) = stack.last() {
            if self.vars.contains_key(&top) {
                stack.pop();
                continue;
            }
            let node = self.choice.node(graph, top);
            let missing =
                node.children.iter().copied().filter(|child| !self.vars.contains_key(child));
            let before = stack.len();
            stack.extend(missing);
            if stack.len() == before {
                stack.pop();
                self.define(top, node);
            } else {
                // The first operand first.
                stack[before..].reverse();
            }
        }
        self.vars[&class]
    }

    fn define(&mut self, class: Id, node: &Node) {
        let region = self.region;
        let mut inputs: Vec<Var> = node.children.iter().map(|child| self.vars[child]).collect();
        let Class { loc, .. } = region.graph[class].data;
        match &region.graph.analysis.symbols[node.symbol as usize] {
            Meaning::Op(op) => {
                self.b.set_loc(loc);
                let var = self.b.emit_ref(op.clone(), &inputs)[0];
                self.vars.insert(class, var);
            }
            Meaning::Result { eqn, .. } => {
                let eqn = &region.func.eqns[*eqn];
                // The last operand may be the previous effect.
                inputs.truncate(eqn.inputs.len());
                self.b.set_loc(eqn.loc);
                let outputs = self.b.emit_ref(eqn.op.clone(), &inputs);
                for (&output, var) in eqn.outputs.iter().zip(outputs) {
                    self.vars.insert(region.graph.find(region.id(output)), var);
                }
            }
            Meaning::Param(_) => unreachable!("parameters are there from the beginning"),
        }
        self.b.set_loc(Loc::NONE);
    }
}
