//! Loops that are not compiled, calls that are refused, and that a refused call gives the state back.

use crate::loops::{self, Compiled, Size, TINY};
use podracer_dsl::prelude::Tree;
use podracer_envs::Catch;
use podracer_rl::agents::OnlineActorCritic;
use podracer_rl::optim::{Sgd, sgd};
use podracer_runtime::{AnakinProgram, AnakinState, Buffer, ExecuteError};

const CATCH: Catch = Catch { rows: 3, columns: 3 };

fn agent() -> OnlineActorCritic<Sgd> {
    loops::online(&CATCH, sgd(0.1))
}

/// Runs with a state that must be refused. Gives the message; all of the state must come back, alive.
#[track_caller]
fn refused<R: Tree, S: Tree, M: Tree, E: Tree>(
    anakin: &AnakinProgram<R, S, M, E>,
    state: AnakinState<R, S>,
) -> String {
    let mut buffers = 0;
    state.visit(|_, leaf| buffers += leaf.buffers().len());
    let Err(ExecuteError { error, donated }) = anakin.run(state) else {
        panic!("a state that does not fit was taken");
    };
    assert_eq!(donated.len(), buffers, "{error}");
    let live = |(_, buffer): &((usize, usize), Buffer)| buffer.to_host().is_ok();
    assert!(donated.iter().all(live));
    error.to_string()
}

#[test]
fn states_of_other_programs_are_refused_and_come_back() {
    let client = loops::client(2);
    let compile = |size| loops::compiled(&client, &CATCH, &agent(), size);
    let (small, large) = (compile(TINY), compile(Size { environments: 6, ..TINY }));
    let both = compile(Size { replicas: 2, environments: 4, ..TINY });
    let state = |anakin: &Compiled<Catch, OnlineActorCritic<Sgd>>| anakin.init(0).expect("a seed");

    // The environments of one device are 2, 6 and 2.
    let message = refused(&large, state(&small));
    assert!(
        message.starts_with("argument ") && message.contains("of replica 0 must be"),
        "{message}"
    );
    assert!(
        message.contains("[6") && message.contains("and is") && message.contains("[2"),
        "{message}"
    );
    assert_eq!(
        refused(&both, state(&small)),
        "the program runs on 2 replica(s) and arguments for 1 were given: one execute takes every replica's arguments"
    );
    assert_eq!(
        refused(&small, state(&both)),
        "the program runs on 1 replica(s) and arguments for 2 were given: one execute takes every replica's arguments"
    );
    let elsewhere = loops::compiled(&loops::client(1), &CATCH, &agent(), TINY);
    let message = refused(&small, state(&elsewhere));
    assert!(message.contains("of another client"), "{message}");
    // Nothing of this hurt the programs.
    small.run(state(&small)).expect("a call");
    both.run(state(&both)).expect("a call");
}

#[test]
fn devices_that_do_not_exist() {
    let client = loops::client(2);
    let traced = loops::traced(&CATCH, &agent(), TINY);
    let refusal = |replicas: usize, devices: Option<&[usize]>| {
        let mut options = loops::options(replicas);
        options.compile.device_assignment = devices.map(<[usize]>::to_vec);
        traced.compile(&client, &options).err().expect("a refusal").to_string()
    };
    assert_eq!(refusal(0, None), "a program needs at least one replica and 0 were asked for");
    assert_eq!(refusal(3, None), "3 replicas need as many devices and there are 2");
    assert_eq!(refusal(1, Some(&[7])), "replica 0 is to run on device 7 and there are 2 device(s)");
    assert_eq!(refusal(2, Some(&[1, 1])), "device 1 is assigned to two replicas");
    assert_eq!(
        refusal(2, Some(&[1])),
        "2 replica(s) need as many devices and the device assignment names 1"
    );
}

#[test]
fn a_loop_runs_on_the_chosen_device() {
    let client = loops::client(2);
    let traced = loops::traced(&CATCH, &agent(), TINY);
    let mut options = loops::options(1);
    options.compile.device_assignment = Some(vec![1]);
    let anakin = traced.compile(&client, &options).expect("it compiles");
    let (state, _) = anakin.run(anakin.init(0).expect("a seed")).expect("a call");
    state.visit(|path, leaf| assert_eq!(leaf.buffers()[0].device().index(), 1, "{path}"));
}

#[test]
fn a_client_without_devices() {
    let options = podracer_runtime::ClientOptions {
        cpu_devices: Some(0),
        ..podracer_runtime::ClientOptions::default()
    };
    let Err(error) = podracer_runtime::Client::cpu(options) else {
        panic!("a client without devices was made");
    };
    assert_eq!(error.to_string(), "a client needs at least one device and 0 were asked for");
}
