//! The text of programs for people: an equation more changes a few of its lines.

use podracer_compiler::ops::{Add, Multiply, Not};
use podracer_compiler::{DType, Eqn, Func, Loc, OpRef, Var};
use podracer_dsl::prelude::*;
use podracer_envs::boards::Snake;
use podracer_envs::minatar::Breakout;
use podracer_envs::{CartPole, Environment};

/// The most lines of the text that an insertion may change, as a median.
const MOST: usize = 5;

/// A step of an environment, from an initial state.
fn step<E: Environment>(env: &E) -> Func {
    let actions = env.action_space();
    let traced = trace(key(), |key| {
        let [reset, action, step] = key.split_into();
        env.step(env.initial_state(reset), actions.sample(action), step)
    });
    traced.unwrap_or_else(|errors| panic!("{errors}")).func().clone()
}

/// Numbers that look drawn (xorshift).
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// The function with one equation more, whose result the next reader of its operand reads; `None` where the draw falls into a call.
fn inserted(func: &Func, draws: &mut Draws) -> Option<Func> {
    let at = 1 + draws.below(func.eqns.len() - 1);
    let whole = |at: usize| func.eqns[at].loc.call().map(|call| call.whole());
    if whole(at).is_some() && whole(at) == whole(at - 1) {
        return None;
    }
    let reader = &func.eqns[at];
    let operand = draws.below(reader.inputs.len().max(1));
    let &value = reader.inputs.get(operand)?;
    let (op, inputs) = match (func.ty(value).dtype, draws.below(2)) {
        (DType::Bool, _) => (OpRef::new(Not {}), vec![value]),
        (_, 0) => (OpRef::new(Add {}), vec![value; 2]),
        _ => (OpRef::new(Multiply {}), vec![value; 2]),
    };
    let mut func = func.clone();
    let new = Var(func.types.len() as u32);
    func.types.push(func.types[value.index()].clone());
    func.eqns[at].inputs[operand] = new;
    let eqn = Eqn { op, inputs: inputs.into(), outputs: vec![new].into(), loc: Loc::NONE };
    func.eqns.insert(at, eqn);
    Some(func)
}

/// Lines that either text has beyond the longest common part of both, the greater of both numbers.
fn changed(before: &str, after: &str) -> usize {
    let [before, after]: [Vec<&str>; 2] = [before, after].map(|text| text.lines().collect());
    let mut row = vec![0; after.len() + 1];
    for line in &before {
        let mut diagonal = 0;
        for (j, other) in after.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if line == other { diagonal + 1 } else { above.max(row[j]) };
            diagonal = above;
        }
    }
    before.len().max(after.len()) - row[after.len()]
}

#[test]
fn an_equation_more_changes_a_few_lines() {
    let programs =
        [step(&CartPole::default()), step(&Breakout::default()), step(&Snake::default())];
    let mut draws = Draws(20_261_128);
    let (mut readable, mut canonical) = (Vec::new(), Vec::new());
    while readable.len() < 50 {
        let func = &programs[readable.len() % programs.len()];
        let Some(longer) = inserted(func, &mut draws) else { continue };
        readable.push(changed(&func.readable().to_string(), &longer.readable().to_string()));
        canonical.push(changed(&func.to_string(), &longer.to_string()));
    }
    readable.sort_unstable();
    canonical.sort_unstable();
    assert!(readable[25] <= MOST, "lines that change: {readable:?}");
    assert!(canonical[25] > 10 * MOST, "lines of the canonical text that change: {canonical:?}");
}

#[test]
fn calls_of_helpers_are_lines() {
    let text = step(&CartPole::default()).readable().to_string();
    assert!(text.contains("split(") && text.contains("uniform_range("), "{text}");
    for hidden in ["xor", "shift_left", "= constant"] {
        assert!(!text.contains(hidden), "{hidden} is in\n{text}");
    }
}
