//! Merging of ops that each wait: ops that are independent of each other become one.

use super::cse::map_bodies;
use crate::ir::{Eqn, Func};
use crate::ops::OpRef;

/// The function with mergeable equal ops ([`Op::joins`](crate::Op::joins)) merged if neither needs
/// the other's result, including ops in bodies. An all-reduce takes about as long for many values
/// as for one, because it waits for all replicas.
///
/// Every replica has the same program, so afterwards collectives still have the same order on all
/// replicas.
pub fn join(func: &Func) -> Func {
    // The length of the longest chain of mergeable ops before each value.
    let mut depth = vec![0_usize; func.types.len()];
    let mut placed: Vec<(usize, bool, Eqn)> = Vec::with_capacity(func.eqns.len());
    for eqn in &func.eqns {
        let at = eqn.inputs.iter().map(|var| depth[var.index()]).max().unwrap_or(0);
        let joins = eqn.op.joins();
        eqn.outputs.iter().for_each(|var| depth[var.index()] = at + usize::from(joins));
        let op = map_bodies(&eqn.op, join);
        placed.push((at, joins, Eqn { op, ..eqn.clone() }));
    }
    let key = |(at, joins, eqn): &(usize, bool, Eqn)| joins.then(|| (*at, eqn.op.clone()));
    let keys: Vec<(usize, OpRef)> = placed.iter().filter_map(key).collect();
    let alone = |(i, key)| !keys[..i].contains(key);
    if keys.iter().enumerate().all(alone) {
        let eqns: Vec<Eqn> = placed.into_iter().map(|(_, _, eqn)| eqn).collect();
        return func.subset(&func.params, &eqns, &func.results);
    }
    // A merged op comes after everything that any of its parts needs, and before everything that
    // needs any of them.
    placed.sort_by_key(|(at, joins, _)| (*at, *joins));
    let mut joined: Vec<Eqn> = Vec::with_capacity(placed.len());
    let mut first: Vec<((usize, OpRef), usize)> = Vec::new();
    for (at, joins, eqn) in placed {
        let known = |((there, op), _): &&((usize, OpRef), usize)| *there == at && *op == eqn.op;
        if let Some(&(_, place)) = first.iter().find(known).filter(|_| joins) {
            let one = &mut joined[place];
            one.inputs = one.inputs.iter().chain(&eqn.inputs).copied().collect();
            one.outputs = one.outputs.iter().chain(&eqn.outputs).copied().collect();
            continue;
        }
        if joins {
            first.push(((at, eqn.op.clone()), joined.len()));
        }
        joined.push(eqn);
    }
    func.subset(&func.params, &joined, &func.results)
}
