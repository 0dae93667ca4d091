//! Trajectories go from device to device. The host sees observations, actions and metrics.

use podracer_runtime::setters::*;
use podracer_runtime::{Count, SebulbaTransfers, process_transfers};

use super::{ENVIRONMENTS, UNROLL, small, spec, start};
use crate::anakin::{is_child, run_alone};

/// Alone in its process, since the process's counters count other tests too.
#[test]
fn no_trajectory_passes_through_the_host() {
    if !is_child() {
        run_alone("sebulba::transfers::no_trajectory_passes_through_the_host", &[]);
        return;
    }
    const UPDATES: u64 = 5;
    let threads = 2;
    let mut run = start(&small().learners(vec![1, 2]), 3, 1);
    let metrics = run.metric_names().len() as u64;
    assert_eq!(metrics, 9);
    run.run(UPDATES as usize).expect("some iterations");
    // The actors' work beyond the last iteration depends on timing: their threads are ended first.
    let parameters = run.parameters().expect("they are there").len() as u64;
    run.stop().expect("nothing has failed");
    let SebulbaTransfers { act, finish, learn } = run.transfers();
    let process = process_transfers();

    // Per step: one copy of each leaf up (of the last observations only if an episode ended), and
    // the actions down. Before each trajectory except the first: its dependencies, which are the
    // last actions, the keys and the times.
    let outcome = spec().outcome().types();
    let last = spec().observation_type().bytes() as u64;
    let always: u64 = outcome.iter().map(|ty| ty.bytes() as u64).sum::<u64>() - last;
    let steps = act.launches;
    assert!(steps >= UPDATES * threads * UNROLL as u64, "{act:?}");
    let carried = 3;
    let begun = (act.to_host.calls - steps) / carried;
    let acted = steps / UNROLL as u64;
    assert!((acted - threads..=acted).contains(&begun), "{act:?}");
    let each = ENVIRONMENTS as u64;
    let down = Count {
        calls: steps + carried * begun,
        bytes: steps * 4 * each + begun * (4 + 8 + 4) * each,
    };
    assert_eq!(act.to_host, down);
    // The first observations of each thread were put up before its first step.
    let calls = outcome.len() as u64 - 1;
    let is_of = |uploads: u64| {
        let ended = act.to_device.calls.checked_sub(calls * uploads);
        let bytes = ended.map(|ended| always * uploads + last * ended);
        ended.is_some_and(|ended| ended <= uploads) && bytes == Some(act.to_device.bytes)
    };
    assert!((steps..=steps + threads).any(is_of), "{act:?}");
    assert_eq!(act.between_devices, Count::default());

    // Trajectories: between devices only.
    assert_eq!((finish.to_host, finish.to_device), Default::default());
    assert!(finish.launches >= UPDATES * threads, "{finish:?}");
    // 3 of the step before the rollout, 7 of its steps with 2 of the agent's, and the last observation.
    let (learners, leaves) = (2, 12);
    let across = finish.launches * learners * leaves;
    assert_eq!(finish.between_devices.calls, across, "{finish:?}");

    // The learner: the metrics down, the parameters across.
    let metrics = Count { calls: metrics * UPDATES, bytes: 4 * metrics * UPDATES };
    assert_eq!((learn.to_host, learn.to_device), (metrics, Count::default()));
    assert_eq!(learn.between_devices.calls, parameters * UPDATES);

    // Nothing else in this process moved to the host, except the parameters read above and the
    // dependencies of the first trajectories.
    let others = process.to_host.calls - act.to_host.calls - learn.to_host.calls;
    assert_eq!(others, parameters + carried * threads);
    // Keys, first indices and whether steps follow: three for each actor thread, one for each learner.
    let others = process.to_device.calls - act.to_device.calls;
    assert_eq!(others, 3 * threads + 2);
}
