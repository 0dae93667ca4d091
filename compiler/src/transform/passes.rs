//! The transforms by name, for tools that work on the text of the IR.

use super::{
    TransformError, VmapContext, cse, dce, inline_calls, jvp, launch_less, linearize,
    settle_launched, vjp, vmap,
};
use crate::attributes::AttributeValue;
use crate::ir::{Builder, Func, Var};
use crate::ops::{Call, CallForm};
use crate::simplify::{Group, Options, simplify};
use crate::types::TensorType;
use std::fmt;
use std::sync::Arc;

/// A transform with its name.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name for [`run`].
    pub name: &'static str,
    /// A phrase that describes the pass.
    pub help: &'static str,
    run: PassFn,
}

#[derive(Clone, Copy, Debug)]
enum PassFn {
    Plain(fn(&Func) -> Func),
    /// A transform that takes the marked parameters.
    Marked(fn(&Func, &[bool]) -> Result<Func, PassError>),
    /// A transform that takes a batch's size and the marked parameters.
    Batch(fn(&Func, usize, &[bool]) -> Func),
    /// Simplification by some groups of rules.
    Simplify,
}

/// Every transform, in alphabetical order.
pub const PASSES: &[Pass] = &[
    Pass { name: "cse", help: "computes what is equal once", run: PassFn::Plain(cse) },
    Pass { name: "dce", help: "removes what no result needs", run: PassFn::Plain(dce) },
    Pass {
        name: "grad",
        help: "the gradient of the one result, a float scalar, in the parameters",
        run: PassFn::Marked(gradient),
    },
    Pass {
        name: "inline",
        help: "replaces calls by what is called",
        run: PassFn::Plain(inline_calls),
    },
    Pass {
        name: "jvp",
        help: "values and tangents of the results, from values and tangents of the parameters",
        run: PassFn::Marked(|func, wrt| Ok(jvp(func, wrt)?.0)),
    },
    Pass {
        name: "launches",
        help: "loops of fewer kernels and branches by platform, for platforms that launch each",
        run: PassFn::Plain(|func| launch_less(&settle_launched(func, true))),
    },
    Pass {
        name: "linearize",
        help: "as jvp, in two calls: of what computes values and residuals, and of what is linear in the tangents",
        run: PassFn::Marked(linearized),
    },
    Pass {
        name: "simplify",
        help: "fewer and cheaper equations for the same results, by all groups of rules or by some",
        run: PassFn::Simplify,
    },
    Pass {
        name: "transpose",
        help: "cotangents of the parameters, in which it is linear, from those of the results",
        run: PassFn::Marked(transposed),
    },
    Pass {
        name: "vmap",
        help: "over a batch, which is the leading axis of the parameters and of the results",
        run: PassFn::Batch(|func, size, batched| {
            let force = vec![true; func.results.len()];
            vmap(func, &VmapContext::new(size), batched, &force).0
        }),
    },
];

/// The reason why a pass does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// A name of no pass.
    #[error("there is no pass `{name}`: there are {known}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// The valid names.
        known: String,
    },
    /// The argument after the pass's name is invalid.
    #[error("{pass}: expected {expected}, got `{got}`")]
    Argument {
        /// The pass, in its argument form.
        pass: String,
        /// The valid arguments.
        expected: String,
        /// The actual argument.
        got: String,
    },
    /// The function does not have the kind that the pass requires.
    #[error("{pass}: expected {expected}, got {got}")]
    Function {
        /// The name of the pass.
        pass: &'static str,
        /// The kind of function that the pass requires.
        expected: &'static str,
        /// The kind of the given function.
        got: String,
    },
    /// An op without the rule that the pass needs.
    #[error(transparent)]
    Transform(#[from] TransformError),
}

/// The form of the pass as an argument.
impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match self.run {
            PassFn::Plain(_) => Ok(()),
            PassFn::Marked(_) => f.write_str("[=PARAMETER,...]"),
            PassFn::Batch(_) => f.write_str("=SIZE[:PARAMETER,...]"),
            PassFn::Simplify => f.write_str("[=GROUP,...]"),
        }
    }
}

/// Runs a pass, given as `dce`, `grad`, `grad=0,2`, `vmap=8`, `vmap=8:0,2` or
/// `simplify=algebra,fold`. The form is a name, a batch's size if the pass needs one, and the
/// numbers of the parameters or the groups of rules. Without numbers it applies to all parameters,
/// or to all float parameters; without groups it applies all groups.
pub fn run(func: &Func, pass: &str) -> Result<Func, PassError> {
    let (name, argument) = match pass.split_once('=') {
        Some((name, argument)) => (name, Some(argument)),
        None => (pass, None),
    };
    let Some(pass) = PASSES.iter().find(|pass| pass.name == name) else {
        let names: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
        let known = names.join(", ");
        let name = name.to_string();
        return Err(PassError::Unknown { name, known });
    };
    let wrong = |expected: String, got: &str| PassError::Argument {
        pass: pass.to_string(),
        expected,
        got: got.to_string(),
    };
    match (pass.run, argument) {
        (PassFn::Plain(run), None) => Ok(run(func)),
        (PassFn::Plain(_), Some(got)) => Err(wrong("nothing behind its name".to_string(), got)),
        (PassFn::Marked(run), argument) => {
            let float = |ty: &TensorType| ty.dtype.is_float();
            let marked = parameters(func, argument, float, "the number of a float parameter");
            run(func, &marked.map_err(|(expected, got)| wrong(expected, &got))?)
        }
        (PassFn::Simplify, argument) => {
            let options = argument.map_or_else(|| Ok(Options::all()), Options::parse);
            let options = options.map_err(|word| wrong(Group::expected(), &word))?;
            Ok(simplify(func, &options))
        }
        (PassFn::Batch(run), argument) => {
            let argument = argument.unwrap_or_default();
            let (size, list) = match argument.split_once(':') {
                Some((size, list)) => (size, Some(list)),
                None => (argument, None),
            };
            // A batch multiplies every extent: a size that no memory holds must not overflow
            // either.
            let fits = |size: &usize| (1..1 << 20).contains(size);
            let size = size.parse().ok().filter(fits);
            let size = size.ok_or_else(|| wrong("a size of at least 1".to_string(), argument))?;
            let batched = parameters(func, list, |_| true, "the number of a parameter");
            Ok(run(func, size, &batched.map_err(|(expected, got)| wrong(expected, &got))?))
        }
    }
}

/// Marks the parameters in a list such as `0,2`, or all that are eligible. The error is the
/// expected and the actual text.
fn parameters(
    func: &Func,
    list: Option<&str>,
    eligible: impl Fn(&TensorType) -> bool,
    expected: &str,
) -> Result<Vec<bool>, (String, String)> {
    let eligible: Vec<bool> = func.param_types().iter().map(eligible).collect();
    let Some(list) = list else {
        return Ok(eligible);
    };
    let mut marked = vec![false; eligible.len()];
    for number in list.split(',') {
        match number.parse::<usize>() {
            Ok(i) if eligible.get(i) == Some(&true) => marked[i] = true,
            _ => {
                let last = eligible.len().checked_sub(1);
                let range = last.map_or(", of which there are none".to_string(), |last| {
                    format!(" from 0 to {last}")
                });
                return Err((format!("{expected}{range}"), number.to_string()));
            }
        }
    }
    Ok(marked)
}

/// The function of the gradients: parameters -> gradients of the parameters in `wrt`.
fn gradient(func: &Func, wrt: &[bool]) -> Result<Func, PassError> {
    let types = func.result_types();
    match types.as_slice() {
        [ty] if ty.rank() == 0 && ty.dtype.is_float() => {}
        _ => {
            let types: Vec<String> = types.iter().map(ToString::to_string).collect();
            return Err(PassError::Function {
                pass: "grad",
                expected: "a function of one result, a float scalar",
                got: format!("({})", types.join(", ")),
            });
        }
    }
    let vjp = vjp(func, wrt)?;
    let mut b = Builder::new();
    let params = declare(&mut b, func);
    let mut primal = b.inline(&vjp.primal, &params);
    let mut operands = primal.split_off(1);
    operands.push(b.full_like(primal[0], 1.0));
    let gradients = b.inline(&vjp.pullback, &operands);
    Ok(dce(&b.finish(func.name.clone(), gradients)))
}

/// The function of values and tangents: parameters ++ tangents -> results ++ tangents.
fn linearized(func: &Func, wrt: &[bool]) -> Result<Func, PassError> {
    let split = linearize(func, wrt)?;
    let mut b = Builder::new();
    let params = declare(&mut b, func);
    let tangents: Vec<Var> = func
        .param_types()
        .into_iter()
        .zip(&split.wrt)
        .filter(|(_, is)| **is)
        .map(|(ty, _)| b.param(ty))
        .collect();
    let call = |body| Call { body: Arc::new(body), form: CallForm::Inlined };
    let mut results = b.emit(call(split.primal), &params);
    let mut operands = results.split_off(func.results.len());
    operands.extend(tangents);
    results.extend(b.emit(call(split.linear), &operands));
    Ok(b.finish(func.name.clone(), results))
}

/// The other parameters ++ cotangents of the float results -> cotangents. A linear function is its
/// own derivative. If the derivative depends on the point, the function is not linear.
fn transposed(func: &Func, linear: &[bool]) -> Result<Func, PassError> {
    let vjp = vjp(func, linear)?;
    let depends = vjp.primal.depends_on(linear);
    let residuals = &vjp.primal.results[func.results.len()..];
    if residuals.iter().any(|var| depends[var.index()]) {
        return Err(PassError::Function {
            pass: "transpose",
            expected: "a function that is linear in the parameters",
            got: "one whose derivative depends on them".to_string(),
        });
    }
    let mut b = Builder::new();
    let params = declare(&mut b, func);
    let mut operands = b.inline(&vjp.primal, &params).split_off(func.results.len());
    let floats = func.result_types().into_iter().filter(|ty| ty.dtype.is_float());
    operands.extend(floats.map(|ty| b.param(ty)));
    let results = b.inline(&vjp.pullback, &operands);
    let joint = dce(&b.finish(func.name.clone(), results));
    let mut unused = linear.iter().copied().chain(std::iter::repeat(false));
    let kept: Vec<Var> =
        joint.params.iter().copied().filter(|_| !unused.next().unwrap_or_default()).collect();
    Ok(joint.subset(&kept, &joint.eqns, &joint.results))
}

fn declare(b: &mut Builder, func: &Func) -> Vec<Var> {
    func.param_types().into_iter().map(|ty| b.param(ty)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;
    use crate::{Array, DType};

    const LOSS: &str = "func loss(%0: f32[2], %1: f32[2], %2: i32[]) -> (f32[]) {
  %3: f32[2] = multiply %0 %1
  %4: f32[2] = multiply %3 %3
  %5: f32[] = reduce_sum[axes=[0]] %4
  return %5
}";

    #[track_caller]
    fn passed(text: &str, passes: &[&str]) -> Func {
        let func = parse(text).expect("it is right");
        passes
            .iter()
            .fold(func, |func, pass| run(&func, pass).unwrap_or_else(|error| panic!("{error}")))
    }

    fn arguments() -> Vec<Array> {
        vec![
            Array::floats(DType::F32, [2], &[1.0, 2.0]),
            Array::floats(DType::F32, [2], &[3.0, 0.5]),
            Array::ints(DType::I32, [], &[7]),
        ]
    }

    #[track_caller]
    fn check(passes: &[&str], extra: &[Array], expected: &[&[f64]]) {
        let results: Vec<Vec<f64>> = passed(LOSS, passes)
            .eval(&[&arguments(), extra].concat())
            .iter()
            .map(Array::to_f64)
            .collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn a_gradient_in_all_or_some_parameters() {
        check(&["grad"], &[], &[&[18.0, 1.0], &[6.0, 4.0]]);
        check(&["grad=1"], &[], &[&[6.0, 4.0]]);
        check(&["grad=1", "cse", "dce", "inline"], &[], &[&[6.0, 4.0]]);
    }

    #[test]
    fn tangents_in_one_function_or_two_calls() {
        let tangent = [Array::floats(DType::F32, [2], &[1.0, -1.0])];
        check(&["jvp=0"], &tangent, &[&[10.0], &[17.0]]);
        check(&["linearize=0"], &tangent, &[&[10.0], &[17.0]]);
        assert!(passed(LOSS, &["linearize"]).to_string().contains("= call["));
        assert!(!passed(LOSS, &["linearize", "inline"]).to_string().contains("= call["));
    }

    #[test]
    fn a_batch_of_all_or_some_parameters() {
        let stacked = |array: &Array| Array::stack(array.ty(), &[array.clone(), array.clone()]);
        let [x, y, n] = arguments().try_into().expect("there are three");
        let all = passed(LOSS, &["vmap=2"]).eval(&[stacked(&x), stacked(&y), stacked(&n)]);
        assert_eq!(all[0].to_f64(), [10.0, 10.0]);
        let one = passed(LOSS, &["grad=1", "vmap=2:0"]).eval(&[stacked(&x), y, n]);
        assert_eq!(one[0].to_f64(), [6.0, 4.0, 6.0, 4.0]);
    }

    #[test]
    fn a_linear_function_is_transposed_and_no_other_is() {
        let linear = "func(%0: f32[2], %1: f32[2]) -> (f32[]) {
  %2: f32[2] = multiply %0 %1
  %3: f32[] = reduce_sum[axes=[0]] %2
  return %3
}";
        let back = passed(linear, &["transpose=1"]);
        let scalar = Array::floats(DType::F32, [], &[2.0]);
        let results = back.eval(&[arguments()[0].clone(), scalar]);
        assert_eq!(results[0].to_f64(), [2.0, 4.0]);
        let message = run(&parse(linear).expect("it is right"), "transpose")
            .map_err(|error| error.to_string());
        assert_eq!(
            message.err().as_deref(),
            Some(
                "transpose: expected a function that is linear in the parameters, got one whose derivative depends on them"
            )
        );
    }

    #[test]
    fn orders_that_do_not_fit_say_what_would() {
        let func = parse(LOSS).expect("it is right");
        let vector = passed("func(%0: f32[2]) -> (f32[2]) { return %0 }", &[]);
        for (func, pass, expected) in [
            (
                &func,
                "grand",
                "there is no pass `grand`: there are cse, dce, grad, inline, jvp, launches, linearize, simplify, transpose, vmap",
            ),
            (&func, "dce=1", "dce: expected nothing behind its name, got `1`"),
            (&func, "vmap", "vmap=SIZE[:PARAMETER,...]: expected a size of at least 1, got ``"),
            (&func, "vmap=0", "vmap=SIZE[:PARAMETER,...]: expected a size of at least 1, got `0`"),
            (
                &func,
                "vmap=4:0,3",
                "vmap=SIZE[:PARAMETER,...]: expected the number of a parameter from 0 to 2, got `3`",
            ),
            (
                &func,
                "grad=2",
                "grad[=PARAMETER,...]: expected the number of a float parameter from 0 to 2, got `2`",
            ),
            (
                &vector,
                "grad",
                "grad: expected a function of one result, a float scalar, got (f32[2])",
            ),
        ] {
            let error = run(func, pass).expect_err(pass);
            assert_eq!(error.to_string(), expected);
        }
    }
}
