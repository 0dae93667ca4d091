//! Enums as trees: the variant is structure.

use crate::helpers::{errors, f32s};
use crate::trees::OnHost;
use podracer_dsl::prelude::*;

/// Statistics of the optimizer.
#[derive(Tree, Clone)]
pub enum Statistics<P> {
    /// None are kept.
    Nothing,
    /// One tree: the momentum.
    Momentum(P, #[tree(fixed)] bool),
    /// Two trees of moments.
    Moments {
        /// First moments.
        mu: P,
        /// Second moments.
        nu: Vec<P>,
        #[tree(fixed)]
        r#type: &'static str,
    },
}

#[derive(Tree, Clone, Copy, Debug, PartialEq)]
enum Phase {
    Warm,
    Hot,
}

#[derive(Tree, Clone)]
enum Level<T: 'static> {
    Only(#[tree(fixed)] Vec<T>),
}

#[derive(Tree, Clone)]
struct State {
    statistics: Statistics<(Tensor, Key)>,
    phase: Phase,
    r#loop: Option<Statistics<Tensor>>,
}

fn state(x: Tensor, phase: Phase) -> State {
    let moments = Statistics::Moments { mu: x, nu: vec![x * 2.0, x], r#type: "adam" };
    State {
        statistics: Statistics::Momentum((x, Key::new(1u64)), true),
        phase,
        r#loop: Some(moments),
    }
}

#[test]
fn a_variant_is_no_step_of_a_path() {
    let program = trace(f32([]), |x| {
        let state = scan(state(x, Phase::Hot), 0..3, |state, _| {
            let statistics = match state.statistics {
                Statistics::Momentum((x, key), nesterov) => {
                    Statistics::Momentum((x + 1.0, key), nesterov)
                }
                other => other,
            };
            (State { statistics, ..state }, ())
        });
        (state.0, Level::<String>::Only(vec!["easy".to_string()]))
    });
    let program = program.expect("it traces");
    assert_eq!(
        program.results().to_string(),
        "{0.statistics.0.0: f32[], 0.statistics.0.1: u32[2], 0.loop[0].mu: f32[], 0.loop[0].nu[0]: f32[], \
         0.loop[0].nu[1]: f32[]}"
    );
    let (state, level) = &program.results().0;
    assert!(
        matches!(&*state.statistics, StatisticsOf::Momentum(pair, true) if pair.0.0.rank() == 0)
    );
    assert!(matches!(&*state.phase, Phase::Hot));
    let Some(moments) = &*state.r#loop else { panic!("the variant was lost") };
    assert!(
        matches!(&**moments, StatisticsOf::Moments { nu, r#type: "adam", .. } if nu.len() == 2)
    );
    let Level::Only(names) = &**level;
    assert_eq!(names, &["easy"]);
}

#[test]
fn another_kind_keeps_the_variant() {
    let spec = eval_shape(f32([]), |x| state(x, Phase::Warm)).expect("it traces");
    let host = spec.build::<OnHost>(&mut |ty| match ty.rank() {
        0 => f32s(&[], &[7.0]),
        _ => Array::ints(DType::U32, [2], &[0, 5]),
    });
    let StatisticsOf::Momentum(pair, _) = &*host.statistics else { panic!("the variant was lost") };
    assert_eq!(pair.to_string(), "0=f32[](7.0) 1=u32[2](0, 5) ");
    let mut leaves = Vec::new();
    State::into_leaves::<OnHost>(OnHost::unwrap::<State>(host), &mut leaves);
    assert_eq!(leaves.len(), 5);
    let again = trace(&spec, |state| state).expect("it traces");
    assert_eq!(again.results(), &spec);
    assert_ne!(eval_shape(f32([]), |x| state(x, Phase::Hot)).expect("it traces"), spec);
}

#[test]
fn a_variant_that_changes_is_reported() {
    let message = |report: TraceErrors| {
        assert_eq!(report.errors.len(), 1, "{report}");
        report.errors[0].message.clone()
    };
    assert_eq!(
        message(errors(f32([]), |x| {
            scan(state(x, Phase::Warm), 0..3, |state, _| (State { phase: Phase::Hot, ..state }, ()))
        })),
        "carry changed structure at `carry.phase`: `Warm` going in, `Hot` coming out"
    );
    assert_eq!(
        message(errors((bool([]), f32([])), |(p, x)| {
            let nothing = State { statistics: Statistics::Nothing, ..state(x, Phase::Hot) };
            cond(p, || state(x, Phase::Hot), || nothing)
        })),
        "branches differ at `result.statistics`: `true` gives `Momentum`, `false` gives `Nothing`"
    );
}
