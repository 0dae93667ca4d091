//! Programs in the tests of a user's crate: snapshots of their text, and budgets of their cost.
//!
//! ```
//! use podracer::prelude::*;
//! use podracer::testing::{program_summary, step_program};
//!
//! let summary = program_summary(step_program(&podracer::envs::Catch::default()));
//! assert!(summary.kernels <= 12, "{summary}");
//! ```
//!
//! The macros expand to `insta::assert_snapshot!` in the user's crate, which needs insta as a
//! development dependency.

mod summary;

use std::fmt;

use podracer_compiler::Func;
use podracer_dsl::prelude::{
    ArgumentSpec, IntoTree, Loss, TraceErrors, Traced, Tree, eval_shape, grad, key, trace,
};
use podracer_envs::Environment;

pub use summary::{ProgramSummary, program_summary};

/// A traced program with the names of its parameters and results. Prints as the readable text,
/// without source lines.
#[derive(Clone, Debug)]
pub struct Program {
    func: Func,
    arguments: Vec<String>,
    results: Vec<String>,
}

impl Program {
    /// The program in the compiler's IR.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The program with a name for each argument and each result instead of its index.
    fn with_roots(self, arguments: &[&str], results: &[&str]) -> Program {
        let named = |paths: Vec<String>, roots: &[&str]| {
            let name = |path: String| {
                let (position, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
                let root = position.parse().ok().and_then(|position: usize| roots.get(position));
                root.map_or_else(|| path.clone(), |root| format!("{root}{rest}"))
            };
            paths.into_iter().map(name).collect()
        };
        Program {
            arguments: named(self.arguments, arguments),
            results: named(self.results, results),
            ..self
        }
    }

    fn named(mut self, name: &str) -> Program {
        name.clone_into(&mut self.func.name);
        self
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readable = self.func.readable().params(self.arguments.iter().cloned());
        readable.results(self.results.iter().cloned()).fmt(f)
    }
}

impl<A: Tree, R: Tree> From<&Traced<A, R>> for Program {
    fn from(traced: &Traced<A, R>) -> Program {
        let arguments = traced.arguments().leaves();
        Program {
            func: traced.func().clone(),
            arguments: arguments.iter().map(|(path, _)| path.or("argument")).collect(),
            results: traced.result_paths().iter().map(|path| path.or("result")).collect(),
        }
    }
}

impl<A: Tree, R: Tree> From<Traced<A, R>> for Program {
    fn from(traced: Traced<A, R>) -> Program {
        Program::from(&traced)
    }
}

impl From<&Program> for Program {
    fn from(program: &Program) -> Program {
        program.clone()
    }
}

/// The program of [`Environment::initial_state`] for one environment.
///
/// # Panics
/// Panics on mistakes of the environment, with the user's lines.
pub fn initial_state_program<E: Environment>(environment: &E) -> Program {
    let traced = trace((key(),), |(key,)| environment.initial_state(key));
    Program::from(or_panic(traced)).named("initial_state").with_roots(&["key"], &[])
}

/// The program of [`Environment::step`] for one environment: from the state, the action and the key
/// to the next state and the time step.
///
/// # Panics
/// As [`initial_state_program`].
pub fn step_program<E: Environment>(environment: &E) -> Program {
    let state = or_panic(eval_shape((key(),), |(key,)| environment.initial_state(key)));
    let traced = trace((state, environment.action_space().ty(), key()), |(state, action, key)| {
        environment.step(state, action, key)
    });
    let program = Program::from(or_panic(traced)).named("step");
    program.with_roots(&["state", "action", "key"], &["state", "time_step"])
}

/// The program of [`Environment::observe`] for one environment.
///
/// # Panics
/// As [`initial_state_program`].
pub fn observe_program<E: Environment>(environment: &E) -> Program {
    let state = or_panic(eval_shape((key(),), |(key,)| environment.initial_state(key)));
    let traced = trace((state,), |(state,)| environment.observe(state));
    Program::from(or_panic(traced)).named("observe").with_roots(&["state"], &[])
}

/// The program of a loss's gradient at parameters of these types.
///
/// # Panics
/// Panics on mistakes of the loss, with the user's lines.
pub fn gradient_program<S: ArgumentSpec, V: Loss>(
    params: S,
    loss: impl FnOnce(S::Tree) -> V,
) -> Program
where
    S::Tree: IntoTree<Tree = S::Tree>,
{
    Program::from(or_panic(trace(params, |params| grad(params, loss)))).named("gradient")
}

fn or_panic<T>(traced: Result<T, TraceErrors>) -> T {
    traced.unwrap_or_else(|errors| panic!("{errors}"))
}

/// Compares the readable text of a program with a snapshot file, using the `insta` of the calling
/// crate.
///
/// A function of an environment is named as `environment.step`, `environment.initial_state` or `environment.observe`. Anything else is a
/// [`Program`](crate::testing::Program) or a reference to a [`Traced`](crate::prelude::Traced) function:
///
/// ```ignore
/// assert_program_snapshot!(docking.step);
/// assert_program_snapshot!(&trace(f32([3]), |x| x.softmax(-1)).unwrap());
/// ```
#[macro_export]
macro_rules! assert_program_snapshot {
    ($environment:ident . step) => {
        insta::assert_snapshot!($crate::testing::step_program(&$environment))
    };
    ($environment:ident . initial_state) => {
        insta::assert_snapshot!($crate::testing::initial_state_program(&$environment))
    };
    ($environment:ident . observe) => {
        insta::assert_snapshot!($crate::testing::observe_program(&$environment))
    };
    ($program:expr $(,)?) => {
        insta::assert_snapshot!($crate::testing::Program::from($program))
    };
}

/// Compares the readable text of a loss's gradient with a snapshot file: the types of the parameters, and the loss.
///
/// ```ignore
/// assert_gradient_snapshot!(f32([3]), |x: Tensor| x.square().sum());
/// ```
#[macro_export]
macro_rules! assert_gradient_snapshot {
    ($params:expr, $loss:expr $(,)?) => {
        insta::assert_snapshot!($crate::testing::gradient_program($params, $loss))
    };
}

pub use crate::{assert_gradient_snapshot, assert_program_snapshot};

#[cfg(test)]
mod tests;
