//! Joining of ops that each wait: as many as do not need each other's results become one.

use super::cse::map_bodies;
use crate::ir::{Eqn, Func};
use crate::ops::OpRef;

/// The function in which equal ops that can be one ([`Op::joins`](crate::Op::joins)) are one where none needs another's result, inside
/// bodies too. An all-reduce costs about as much for many values as for one, for it waits for all replicas.
///
/// Every replica has the same program, so that collectives are in one order on all of them afterwards as well.
pub fn join(func: &Func) -> Func {
    // The number of ops to be joined that come before, one after another's result.
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
    // What is joined comes after all that any of them needs, and before all that needs any of them.
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
