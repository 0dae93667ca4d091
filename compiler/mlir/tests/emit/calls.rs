//! Functions that are called: emitted once each, privately, under readable names.

use crate::double::{CallDouble, Lower, check, func, module, ty};
use podracer_compiler::lower::hlo_simple;
use podracer_compiler::{Builder, DType, Func};
use std::sync::Arc;

const NEGATE: Lower = |hlo, inputs, _| vec![hlo_simple(hlo, "stablehlo.negate", inputs)];

fn negate(name: &'static str) -> Arc<Func> {
    let x = ty(DType::F32, &[]);
    let mut func = func("negate", std::slice::from_ref(&x), std::slice::from_ref(&x), NEGATE);
    func.name = name.to_string();
    Arc::new(func)
}

fn calling(funcs: &[Arc<Func>]) -> Func {
    let mut b = Builder::new();
    let mut x = b.param(ty(DType::F32, &[]));
    for func in funcs {
        x = b.emit1(CallDouble { body: func.clone() }, &[x]);
    }
    b.finish("calling", vec![x])
}

#[test]
fn shared_and_equal_functions_are_emitted_once() {
    let shared = negate("negate");
    let text = module(&calling(&[shared.clone(), shared, negate("equal")])).text;
    assert_eq!(text.matches("func.func private").count(), 1, "{text}");
    assert_eq!(text.matches("call @negate(").count(), 3, "{text}");
}

#[test]
fn calls_nest() {
    let inner = negate("inner");
    let outer = Arc::new(calling(&[inner.clone(), inner.clone()]));
    insta::assert_snapshot!(module(&calling(&[outer.clone(), inner, outer])).text);
}

#[test]
fn names_are_readable_and_distinct() {
    let twice = {
        let mut b = Builder::new();
        let x = b.param(ty(DType::F32, &[]));
        let y = b.emit1(CallDouble { body: negate("main") }, &[x]);
        b.finish("main", vec![y])
    };
    let text = module(&calling(&[negate("main"), Arc::new(twice)])).text;
    check(&text, &["call @main_1(", "call @main_2(", "@main("]);
    let text = module(&calling(&[negate("main::{closure#0}")])).text;
    check(&text, &["func.func private @main___closure_0_("]);
    let text = module(&calling(&[negate("")])).text;
    check(&text, &["func.func private @f("]);
}
