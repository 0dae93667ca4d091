//! Named scopes: an error inside says `in gae called at ...`.

use super::state;
use podracer_compiler::Loc;
use podracer_compiler::ir::Call;

/// The guard of a named scope, which ends when the guard is dropped.
#[must_use = "the scope ends when the guard is dropped"]
#[derive(Debug)]
pub struct Scope {
    depth: Option<usize>,
    _called: Option<Called>,
}

/// Enters a scope until the guard is dropped. In a function that is `#[track_caller]`, errors inside name that
/// function's caller:
///
/// ```
/// # use podracer_dsl::prelude::*;
/// #[track_caller]
/// pub fn gae(rewards: Tensor) -> Tensor {
///     let _scope = scope("gae");
///     scan_reverse(0.0, rewards, |sum, reward| (sum + reward, sum)).1
/// }
/// ```
///
/// A scope with the name of a function (`gae`) is a [`called`] function, which the readable text of
/// a program shows as one line. A scope with the name of a method (`Ppo::loss`) is not, and its
/// equations stay visible.
#[track_caller]
pub fn scope(name: &str) -> Scope {
    called_from(name, Loc::caller())
}

/// [`scope`] with the caller's line given: for use inside a closure, which `#[track_caller]` does
/// not reach.
pub fn called_from(name: &str, loc: Loc) -> Scope {
    let depth = state::with(|trace| trace.push_scope(name, loc));
    Scope { depth, _called: (!name.contains("::")).then(|| called(name)) }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(depth) = self.depth {
            // A panic may drop this after its trace has ended.
            let _ = state::with(|trace| trace.pop_scope(depth));
        }
    }
}

/// The guard of a named part of a program, which ends when the guard is dropped.
#[must_use = "the part ends when the guard is dropped"]
#[derive(Debug)]
pub struct Part {
    around: Option<Option<&'static str>>,
}

/// Names the part of a program that is traced until the guard is dropped, such as
/// `the environment's step`. Messages about an equation of the part, such as the origin of a NaN,
/// include the name with the line.
pub fn part(name: &'static str) -> Part {
    Part { around: state::with(|trace| trace.set_part(Some(name))) }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(around) = self.around {
            let _ = state::with(|trace| trace.set_part(around));
        }
    }
}

/// The guard of a helper, which ends when the guard is dropped.
#[must_use = "the helper ends when the guard is dropped"]
#[derive(Debug)]
pub struct Helper {
    around: Option<Option<Loc>>,
}

/// Gives the equations that are traced until the guard is dropped the line of the helper's caller.
/// Use it for `#[track_caller]` helpers that call closures, because the attribute does not reach
/// closures. `podracer profile` and reports of NaN then name the line that called the helper.
#[track_caller]
pub fn helper() -> Helper {
    let caller = Loc::caller();
    // If helpers are nested, the caller of the outermost helper counts.
    let around = state::with(|trace| {
        let around = trace.set_line(None);
        trace.set_line(around.or(Some(caller)));
        around
    });
    Helper { around }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(around) = self.around {
            let _ = state::with(|trace| trace.set_line(around));
        }
    }
}

/// The guard of a called library function, which ends when the guard is dropped.
#[must_use = "the call ends when the guard is dropped"]
#[derive(Debug)]
pub struct Called {
    around: Option<Option<Call>>,
}

/// Marks the equations that are traced until the guard is dropped as one call of a library
/// function, such as `softmax`. The readable text of a program shows one line in their place. If
/// calls are nested, it shows the outermost call.
pub fn called(name: &str) -> Called {
    let around = state::with(|trace| {
        let call = trace.call().or_else(|| Call::new(name));
        trace.set_call(call)
    });
    Called { around }
}

/// [`called`] for a function with constants that mean nothing to a caller, such as the rotations of
/// a cipher: the line does not list them.
pub(crate) fn called_opaquely(name: &str) -> Called {
    let called = called(name);
    let _ = state::with(|trace| {
        let opaque = trace.call().map(Call::opaque);
        trace.set_call(opaque)
    });
    called
}

impl Drop for Called {
    fn drop(&mut self) {
        if let Some(around) = self.around {
            let _ = state::with(|trace| trace.set_call(around));
        }
    }
}
