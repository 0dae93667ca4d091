//! Warnings of traced programs reach the user, wherever the program is compiled: once, with the user's line.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use podracer::anakin::Anakin;
use podracer::sebulba::Sebulba;
use podracer_dsl::prelude::*;
use podracer_envs::{CartPole, Catch, Environment};
use podracer_rl::agents::Ppo;
use podracer_rl::optim::sgd;
use podracer_runtime::TypedPrograms;
use podracer_runtime::setters::*;
use podracer_runtime::{ExecutableCache, ProgramOptions};

use super::bodies::{Bodies, Body, still};
use crate::loops;

/// The log as text.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").write(text)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that are logged as warnings while `f` runs and that name this file.
fn logged(f: impl FnOnce()) -> Vec<String> {
    let log = Logged::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, f);
    let bytes = log.0.lock().expect("nobody panics with it").clone();
    let text = String::from_utf8(bytes).expect("a log is text");
    text.lines().filter(|line| line.contains(file!())).map(str::to_owned).collect()
}

#[test]
fn a_function_that_is_called_says_it_once() {
    let client = loops::client(1);
    let line = line!() + 2;
    let branch = client
        .jit(|(p, x): (Tensor, Tensor)| vmap((p, x), |(p, x)| cond(p, || x.sin(), || -x)).sum());
    let told = logged(|| {
        for lanes in [2, 3, 3] {
            let arguments = (vec![true; lanes], vec![0f32; lanes]);
            branch.call(arguments).expect("it runs");
        }
    });
    let warnings = branch.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].message.contains("`cond(p.both(), ..)` marks an intended select"));
    let place = format!("{}:{line}:", file!());
    assert!(warnings[0].to_string().contains(&place), "{}", warnings[0]);
    assert!(told.len() == 1 && told[0].contains(&place), "{told:?}");
}

#[test]
fn a_training_loop_of_ones_own_says_it() {
    let line = line!() + 2;
    let step = |state: Body, _: Tensor, _: Key| {
        let velocity = cond(state.velocity.gt(1.0), || scalar(0.0), || state.velocity + 0.1);
        (Body { velocity, ..state }, still(state))
    };
    let environment = Bodies { step };
    let agent = loops::ppo(&environment, sgd(0.1));
    let anakin = Anakin::new(environment, agent).environments(4).unroll(4);
    let traced = anakin.trace().expect("no mistake");
    assert_eq!(traced.warnings().count(), 1);
    let told = logged(|| {
        let options = ProgramOptions { cache: ExecutableCache::disabled(), ..loops::options(1) };
        anakin.compile_with(&loops::client(1), &options).expect("it compiles");
    });
    assert!(told.len() == 1 && told[0].contains(&format!("{}:{line}:", file!())), "{told:?}");
}

/// A warning that a user can do nothing about is not printed: the library has no such branch.
#[test]
fn the_library_has_no_warnings() {
    fn of<E: Environment<Observation = Tensor>>(environment: E) {
        let agent = loops::ppo(&environment, sgd(0.1));
        let traced = Anakin::new(environment.clone(), agent).environments(4).unroll(4).trace();
        let warnings = traced.expect("no mistake").warnings().cloned().collect::<Vec<_>>();
        assert_eq!(warnings, []);
        let online = loops::online(&environment, sgd(0.1));
        let traced = Anakin::new(environment.clone(), online).environments(4).unroll(4).trace();
        assert_eq!(traced.expect("no mistake").warnings().count(), 0);
        let spec = podracer_rl::host_loop::HostLoop::new(environment.clone(), 4, 4).spec();
        let agent: Ppo<_> = loops::ppo(&environment, sgd(0.1));
        let programs = Sebulba::new(agent).trace(&spec).expect("no mistake");
        assert_eq!(programs.warnings(), []);
    }
    of(CartPole::default());
    of(Catch::default());
}
