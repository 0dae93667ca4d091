//! Random programs of some size, with loops, branches and batches in them: XLA against the reference semantics.
//!
//! `PODRACER_XLA_PROGRAMS` is how many (a few hundred without it), `PODRACER_SEED` which.

#[path = "../../compiler/tests/programs/generate.rs"]
mod generate;
#[path = "../../compiler/tests/conformance/random.rs"]
mod random;
#[path = "../../compiler/tests/programs/regions.rs"]
mod regions;

use podracer_compiler::simplify::{Options, simplify};
use podracer_compiler::{Array, DType, Eqn, Func};
use podracer_tests::check_all;
use podracer_tests::compare::differences;
use podracer_tests::xla::{Case, run, run_all};
use random::Random;

/// The least number of equations that compute something, including bodies.
const LEAST_EQUATIONS: usize = 30;

/// Error that f64 is allowed: XLA's functions are good to a few units in the last place, and programs are short. Of 200 programs the
/// farthest is 8e-14 off.
const TOLERANCE: f64 = 1e-11;

/// Number of programs that are in memory at a time.
const TOGETHER: usize = 1000;

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// A program of the requested size, after the passes that every program goes through.
pub fn program(seed: u64) -> Option<(Func, Vec<Array>)> {
    // splitmix64
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    };
    let numbers: Vec<u32> = (0..400).map(|_| next()).collect();
    let (func, arguments) = generate::program(&numbers, 10);
    let func = simplify(&func, &Options::default());
    let region = |eqn: &Eqn| ["scan", "while", "cond"].contains(&eqn.op.mnemonic());
    let fits = func.eqn_count() >= LEAST_EQUATIONS && func.eqns.iter().any(region);
    fits.then_some((func, arguments))
}

#[test]
fn xla_computes_random_programs_as_eval_does() {
    let count = number("PODRACER_XLA_PROGRAMS", 200) as usize;
    let first = number("PODRACER_SEED", 0) << 32;
    let mut programs = (first..).filter_map(program).take(count).peekable();
    let mut complaints = Vec::new();
    let mut equations = 0;
    while programs.peek().is_some() {
        let cases: Vec<Case> = programs
            .by_ref()
            .take(TOGETHER)
            .map(|(func, arguments)| Case { name: String::new(), func, arguments })
            .collect();
        equations += cases.iter().map(|case| case.func.eqn_count()).sum::<usize>();
        for (case, outcome) in cases.iter().zip(run_all(&cases)) {
            let problem = match outcome {
                Ok(got) => differences(&case.func.eval(&case.arguments), &got, TOLERANCE),
                Err(error) => Some(format!("{error:#}")),
            };
            let arguments: Vec<String> = case.arguments.iter().map(Array::to_string).collect();
            complaints.extend(
                problem.map(|problem| {
                    format!("{problem}\n{}\nof {}", case.func, arguments.join(", "))
                }),
            );
        }
    }
    eprintln!("{count} programs, {equations} equations");
    check_all(&complaints);
}

#[test]
fn the_only_branch_of_a_switch_may_call_functions() {
    let text = "func f(%0: i32[], %1: f64[]) -> (f64[]) {
  %2: f64[] = cond[branches={func only(%0: f64[]) -> (f64[]) {
    %1: f64[] = call[body=func negated(%0: f64[]) -> (f64[]) {
      %1: f64[] = negate %0
      return %1
    }, form=INLINED] %0
    return %1
  }}, rarely=false] %0 %1
  return %2
}";
    let func = podracer_compiler::text::parse(text).expect("the text of a program");
    let arguments = [Array::ints(DType::I32, [], &[1]), Array::floats(DType::F64, [], &[2.5])];
    let got = run(&func, &arguments).expect("it runs");
    assert_eq!(differences(&func.eval(&arguments), &got, 0.0), None);
}
