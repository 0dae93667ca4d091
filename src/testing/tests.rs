//! Snapshots of programs, their budgets, and the size of a text's changes when a program changes.

use podracer_compiler::ops::{Add, Negate, Scan};
use podracer_compiler::{Eqn, Func, Loc, OpRef, Var};
use podracer_envs::{Acrobot, CartPole, Catch};

use super::{Program, gradient_program, initial_state_program, program_summary, step_program};
use crate::prelude::*;

#[test]
fn calls_and_numbers_stand_where_they_are_read() {
    let traced = trace((f32([3]), key()), |(logits, key)| {
        let noise = 0.5 * key.normal([3]);
        (logits + noise).softmax(-1)
    });
    insta::assert_snapshot!(Program::from(traced.unwrap()), @r"
    main(arg0: f32[3], arg1: u32[2]) {
      normal: f32[3] = normal(arg1)
      softmax: f32[3] = softmax(arg0 + (0.5 * normal))
      return result: f32[3] = softmax
    }
    ");
}

#[test]
fn a_step_names_the_fields() {
    let catch = Catch::default();
    let text = step_program(&catch).to_string();
    for expected in ["step(", "ball_row: i32[]", "action: i32[]", "reward: f32[]"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(initial_state_program(&catch).to_string().contains("randint("));
}

#[test]
fn the_macros_compare_with_files() {
    let catch = Catch::default();
    assert_program_snapshot!(catch.observe);
    assert_gradient_snapshot!(f32([3]), |x: Tensor| (x.softmax(-1) * 2.0).square().sum());
    assert_program_snapshot!(&trace(f32([2]), |x| x + 1.0).unwrap());
}

#[test]
fn a_summary_counts_what_a_program_does() {
    let spec = (f32([8, 4]), f32([4, 3]));
    let program = trace(spec, |(x, w)| (x.matmul(w).tanh() * 2.0).sum()).unwrap();
    let summary = program_summary(&program);
    assert_eq!(summary.ops["tanh"], 1);
    // The product, the sum, and the elementwise equations.
    assert_eq!(summary.kernels, 3);
    assert_eq!(summary.bytes, (32 + 12 + 1) * 4);
    // Product, tanh, multiplication, sum.
    let elementwise = summary.flops - 2 * 8 * 4 * 3;
    assert!((3 * 24..=4 * 24).contains(&elementwise), "{summary}");
    let slope = program_summary(gradient_program(f32([3]), |x: Tensor| x.square().sum()));
    assert!(slope.kernels <= 2, "{slope}");
    let looped = |rounds: usize| {
        let traced =
            trace(f32([rounds, 4]), |rows| scan(0.0, rows, |sum, row| (sum + row.sum(), sum)).1);
        program_summary(traced.unwrap())
    };
    assert_eq!(looped(2).kernels, looped(20).kernels);
    assert!(looped(20).flops >= 9 * looped(2).flops);
}

/// Pseudorandom numbers: Lehmer's multiplicative generator with the constants of Park and Miller.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        (self.0 % end as u64) as usize
    }
}

/// The indices of equations that belong to no library function and have operands.
fn own(func: &Func) -> Vec<usize> {
    let is_own = |&position: &usize| {
        let eqn = &func.eqns[position];
        eqn.loc.call().is_none() && !eqn.inputs.is_empty()
    };
    (0..func.eqns.len()).filter(is_own).collect()
}

fn body(func: &Func, position: usize) -> Option<&Scan> {
    func.eqns[position].op.downcast::<Scan>()
}

/// The number of equations that belong to no library function, including those in loops.
fn count(func: &Func) -> usize {
    let of = |&position: &usize| 1 + body(func, position).map_or(0, |scan| count(&scan.body));
    own(func).iter().map(of).sum()
}

/// The function with one more equation, inserted before the equation with this number: one of its
/// operands, negated or doubled. The equation reads it in place of the operand, and half of the
/// time all later readers do too. `None` for a bool.
fn inserted(func: &Func, mut number: usize, random: &mut Random) -> Option<Func> {
    let mut func = func.clone();
    for position in own(&func) {
        if number == 0 {
            let inputs = &func.eqns[position].inputs;
            let value = inputs[random.below(inputs.len())];
            let ty = func.ty(value).clone();
            if ty.dtype == DType::Bool {
                return None;
            }
            let new = Var(u32::try_from(func.types.len()).unwrap());
            func.types.push(ty);
            let readers = if random.below(2) == 0 { 1 } else { func.eqns.len() };
            for eqn in func.eqns[position..].iter_mut().take(readers) {
                eqn.inputs.iter_mut().filter(|var| **var == value).for_each(|var| *var = new);
            }
            let (op, inputs) = match random.below(2) {
                0 => (OpRef::new(Negate {}), vec![value]),
                _ => (OpRef::new(Add {}), vec![value, value]),
            };
            let (inputs, outputs) = (inputs[..].into(), [new][..].into());
            func.eqns.insert(position, Eqn { op, inputs, outputs, loc: Loc::NONE });
            return Some(func);
        }
        number -= 1;
        let Some(scan) = body(&func, position).cloned() else { continue };
        let inside = count(&scan.body);
        if number < inside {
            let body = inserted(&scan.body, number, random)?.into();
            func.eqns[position].op = OpRef::new(Scan { body, ..scan });
            return Some(func);
        }
        number -= inside;
    }
    None
}

/// The number of lines that were inserted, deleted or changed.
fn changed_lines(before: &str, after: &str) -> usize {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[same..], &after[same..]);
    let same = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[..before.len() - same], &after[..after.len() - same]);
    // The edit distance by lines.
    let mut row: Vec<usize> = (0..=after.len()).collect();
    for (i, a) in before.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in after.iter().enumerate() {
            let best = (diagonal + usize::from(a != b)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[after.len()]
}

/// The medians of the number of lines that an inserted equation changes, in the readable and in the
/// canonical text.
fn medians(programs: &[Program]) -> (usize, usize) {
    let mut random = Random(7);
    let (mut readable, mut canonical) = (Vec::new(), Vec::new());
    for program in programs {
        let texts = |program: &Program| (program.to_string(), program.func.to_string());
        let before = texts(program);
        let mut insertions = 0;
        while insertions < 50 {
            let number = random.below(count(&program.func));
            let Some(func) = inserted(&program.func, number, &mut random) else { continue };
            insertions += 1;
            let after = texts(&Program { func, ..program.clone() });
            readable.push(changed_lines(&before.0, &after.0));
            canonical.push(changed_lines(&before.1, &after.1));
        }
    }
    let median = |mut counts: Vec<usize>| {
        counts.sort_unstable();
        counts[counts.len() / 2]
    };
    (median(readable), median(canonical))
}

#[test]
fn an_inserted_equation_changes_few_lines() {
    let (catch, cartpole) = (Catch::default(), CartPole::default());
    let online = OnlineActorCritic::new(catch.observation_space(), catch.action_space());
    let ppo = Ppo::new(cartpole.observation_space(), cartpole.action_space());
    let online = Anakin::new(catch.flatten_observation(), online).environments(8).unroll(4);
    let ppo = Anakin::new(cartpole, ppo).environments(8).unroll(4);
    let (online, ppo) = (online.trace().unwrap(), ppo.trace().unwrap());
    let programs = [online.traced().into(), ppo.traced().into(), step_program(&Acrobot::default())];
    let (readable, canonical) = medians(&programs);
    assert!(readable <= 5, "{readable}");
    // The canonical text renumbers everything that follows.
    assert!(canonical >= 5 * readable, "readable {readable}, canonical {canonical}");
}
