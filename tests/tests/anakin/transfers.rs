//! A call moves the metrics and reports to the host and nothing else, in one dispatch.

use super::replay::replaying;
use super::{is_child, run_alone};
use crate::loops::{self, Size, TINY};
use podracer_dsl::prelude::{Path, TensorType, Tree};
use podracer_envs::{CartPole, Catch, Environment};
use podracer_rl::learn::Learn;
use podracer_rl::optim::{adam, sgd};
use podracer_runtime::{Count, Host, TransferCounts, process_transfers};

/// Copies that fetching these metrics and a log costs: one copy of each replicated leaf, one of each device's part of the others.
fn cost<R: Tree, S: Tree>(
    replicas: usize,
    replicated: &Host<R>,
    sharded: &Host<S>,
    log: &[(Path, TensorType)],
) -> Count {
    let mut cost = Count::default();
    for (_, ty) in log {
        cost.calls += replicas as u64;
        cost.bytes += (replicas * ty.bytes()) as u64;
    }
    replicated.visit(|_, leaf| {
        cost.calls += 1;
        cost.bytes += leaf.bytes().len() as u64;
    });
    sharded.visit(|_, leaf| {
        cost.calls += replicas as u64;
        cost.bytes += leaf.bytes().len() as u64;
    });
    cost
}

fn check<E: Environment, A: Learn<Observation = E::Observation>>(
    environment: &E,
    agent: &A,
    size: Size,
) {
    let client = loops::client(size.replicas);
    let traced = loops::traced(environment, agent, size);
    let (.., log) = &**traced.traced().results();
    let log = log.leaves();
    let anakin = traced.compile(&client, &loops::options(size.replicas)).expect("it compiles");
    let mut state = anakin.init(3).expect("a seed");
    for call in 0..3 {
        let (before, before_all) = (anakin.transfers().counts(), process_transfers());
        let metrics;
        (state, metrics) = anakin.run(state).expect("a call");
        let (after, after_all) = (anakin.transfers().counts(), process_transfers());
        let expected = TransferCounts {
            to_host: cost(size.replicas, &metrics.replicated, &metrics.sharded, &log),
            launches: 1,
            ..TransferCounts::default()
        };
        assert!(expected.to_host.calls >= 7, "{expected:?}");
        assert_eq!(after - before, expected, "call {call}");
        assert_eq!(after_all - before_all, expected, "the process, call {call}");
    }
    // The program itself has no infeed, no outfeed, no callback.
    let hlo = anakin.program().executable().compiled().optimized();
    let transfers = hlo.expect("XLA gives its program").host_transfers();
    assert_eq!(transfers, [] as [&str; 0]);
}

/// Alone in its process, since the process's counters count other tests too.
#[test]
fn a_call_moves_only_metrics() {
    if !is_child() {
        run_alone("anakin::transfers::a_call_moves_only_metrics", &[]);
        return;
    }
    let catch = Catch { rows: 4, columns: 3 };
    check(&catch, &loops::online(&catch, adam(1e-3)), TINY);
    let cartpole = CartPole::default();
    let size = Size { replicas: 2, environments: 4, iterations: 3, ..TINY };
    check(&cartpole, &loops::ppo(&cartpole, sgd(0.1)), size);
    // The store causes none either: next to the metrics are the reports of its `check`.
    check(&cartpole, &replaying(64, 16), size);
}
