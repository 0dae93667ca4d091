//! Spaces: their members, and the errors for other values.

use crate::run::{keys, run};
use podracer_dsl::prelude::*;
use podracer_envs::{Space, SpaceError};

fn floats(values: &[f64]) -> Array {
    Array::floats(DType::F32, [values.len()], values)
}

#[test]
fn values_within_bounds_belong() {
    let space = Space::bounded([2], -0.1, [0.1, 5.0]);
    assert_eq!(space.ty().to_string(), "f32[2]");
    assert_eq!(space.contains(&floats(&[0.1, 5.0])), Ok(()));
    // The bound itself, rounded to f32, belongs as well.
    assert_eq!(space.contains(&floats(&[-0.1, -0.1])), Ok(()));
    assert_eq!(Space::unbounded([1]).contains(&floats(&[f64::INFINITY])), Ok(()));
    assert_eq!(Space::discrete(3).contains(&Array::ints(DType::I32, Vec::new(), &[2])), Ok(()));
}

#[test]
fn values_outside_are_reported_with_their_place() {
    let space = Space::bounded([2], -1.0, 1.0);
    assert_eq!(
        space.contains(&floats(&[0.0, 1.5])).unwrap_err().to_string(),
        "element 1 is 1.5, outside of [-1, 1]"
    );
    assert!(matches!(
        space.contains(&floats(&[f64::NAN, 0.0])),
        Err(SpaceError::Outside { element: 0, .. })
    ));
    assert_eq!(
        space.contains(&floats(&[0.0])).unwrap_err().to_string(),
        "expected f32[2], got f32[1]"
    );
    let action = Array::ints(DType::I32, Vec::new(), &[3]);
    assert_eq!(
        Space::discrete(3).contains(&action).unwrap_err().to_string(),
        "element 0 is 3, outside of [0, 2]"
    );
}

#[test]
fn several_choices_belong_one_by_one() {
    let space = Space::multi_discrete([3, 2]).described("lift, grip");
    let chosen = |values: &[i128]| Array::ints(DType::I32, [values.len()], values);
    assert_eq!((space.ty().to_string().as_str(), space.elements()), ("i32[2]", 2));
    assert!(
        matches!(&space, Space::MultiDiscrete { description, .. } if description == "lift, grip")
    );
    assert_eq!(space.contains(&chosen(&[2, 1])), Ok(()));
    for (value, expected) in [
        (chosen(&[2, 2]), "element 1 is 2, outside of [0, 1]"),
        (chosen(&[-1, 0]), "element 0 is -1, outside of [0, 2]"),
        (chosen(&[0]), "expected i32[2], got i32[1]"),
        (floats(&[0.0, 1.0]), "expected i32[2], got f32[2]"),
    ] {
        assert_eq!(space.contains(&value).unwrap_err().to_string(), expected);
    }
    let clipped = run(Spec::<Tensor>(space.ty()), &[chosen(&[-4, 7])], |value| space.clip(value));
    assert_eq!(clipped[0], chosen(&[0, 1]));
    assert_eq!(Space::multi_discrete([]).validate(), Err(SpaceError::NoElements));
    let error = Space::multi_discrete([3, 0]).validate();
    assert_eq!(error, Err(SpaceError::EmptyElement { element: 1 }));
}

/// Chi squared of 2,400 draws over the six pairs is below its 0.9999 quantile of five degrees of freedom.
#[test]
fn all_choices_are_drawn_alike() {
    const DRAWS: usize = 2400;
    let space = Space::multi_discrete([3, 2]);
    let traced = trace(key(), |key| space.sample(key)).unwrap_or_else(|errors| panic!("{errors}"));
    let drawn = traced.vmap(DRAWS).eval(&[keys(DRAWS)]).expect("arguments fit").remove(0);
    let mut counts = [0.0; 6];
    for pair in drawn.to_vec::<i32>().expect("i32").chunks(2) {
        counts[(2 * pair[0] + pair[1]) as usize] += 1.0;
    }
    let expected = DRAWS as f64 / 6.0;
    let chi_squared: f64 = counts.iter().map(|n| (n - expected) * (n - expected) / expected).sum();
    assert!(chi_squared < 25.7, "{chi_squared}: {counts:?}");
}

#[test]
fn malformed_spaces_are_errors() {
    assert_eq!(Space::discrete(0).validate(), Err(SpaceError::Empty));
    let error = Space::bounded([2, 2], [0.0, 1.0, 2.0], 5.0).validate().unwrap_err();
    assert_eq!(error.to_string(), "low: a box of shape [2, 2] needs 4 bounds or one shared, got 3");
    let error = Space::bounded([2], [0.0, 3.0], [1.0, 2.0]).validate().unwrap_err();
    assert_eq!(error.to_string(), "element 1: no value lies between low 3 and high 2");
    assert!(Space::bounded([1], f64::NAN, 1.0).validate().is_err());
    assert_eq!(Space::bounded([1], 2.0, 2.0).validate(), Ok(()));
}

#[test]
fn samples_and_clipped_values_belong() {
    let spaces = [
        Space::discrete(5),
        Space::multi_discrete([3, 1, 7]),
        Space::bounded([2, 2], [-1.0, 0.0, 3.0, -0.5], [1.0, 0.0, 4.0, 7.0]),
        Space::unbounded([3]),
        Space::pixels([2, 3, 1]),
        Space::bounded([3], [0.0, -1.0, f64::NEG_INFINITY], [f64::INFINITY, 1.0, 0.0]),
        Space::dict([
            ("gear", Space::discrete(3)),
            ("wheels", Space::bounded([2, 1], -1.0, 1.0)),
            ("lamps", Space::multi_discrete([2, 4])),
        ]),
    ];
    for space in spaces {
        let traced =
            trace(key(), |key| space.sample(key)).unwrap_or_else(|errors| panic!("{errors}"));
        let samples = traced.vmap(64).eval(&[keys(64)]).expect("arguments fit").remove(0);
        for i in 0..64 {
            space
                .contains(&samples.index_leading(i))
                .unwrap_or_else(|error| panic!("{space:?}: {error}"));
        }
        let far = match &space {
            Space::Discrete { .. } => Array::ints(DType::I32, Vec::new(), &[99]),
            Space::MultiDiscrete { .. } => Array::ints(DType::I32, [3], &[99, -99, 3]),
            Space::Pixels { shape } => {
                Array::ints(DType::U8, shape.clone(), &vec![99; space.elements()])
            }
            Space::Dict { .. } => Array::floats(DType::F32, [5], &[99.0, -99.0, 99.0, 3.0, -1.0]),
            Space::Box { shape, .. } => {
                Array::floats(DType::F32, shape.clone(), &vec![99.0; space.elements()])
            }
        };
        let clipped = run(Spec::<Tensor>(space.ty()), &[far], |value| space.clip(value)).remove(0);
        space.contains(&clipped).unwrap_or_else(|error| panic!("{space:?}: {error}"));
    }
}

#[test]
fn a_product_of_extents_wrapped_round_to_zero() {
    for (shape, fits) in [
        (vec![0], false),
        (vec![0, 0, 0], false),
        (vec![1 << 32, 1 << 32], false),
        (vec![1 << 31], false),
        (vec![1 << 30], true),
        (vec![], true),
    ] {
        for space in [Space::unbounded(shape.clone()), Space::pixels(shape.clone())] {
            let error = space.validate();
            let expected =
                if fits { Ok(()) } else { Err(SpaceError::Elements { shape: shape.clone() }) };
            assert_eq!(error, expected, "{space:?}");
        }
        let bounds = Space::bounded(shape.clone(), [0.0, 1.0], 2.0);
        assert!(bounds.validate().is_err(), "{shape:?}");
    }
    let told = Space::unbounded([0]).validate().unwrap_err().to_string();
    assert_eq!(
        told,
        "a value of shape [0] has no elements, or too many: it must have 1 to 1073741824"
    );
}

#[test]
fn bounds_between_which_f32_has_no_value_are_errors() {
    let bounded = |low: f64, high: f64| Space::bounded([4], low, high).validate();
    let told = bounded(1e39, 1e40).unwrap_err().to_string();
    assert!(told.starts_with("element 0: low 1e39 and high 1e40 leave no number of f32"), "{told}");
    assert!(bounded(-1e40, -1e39).is_err());
    // As wide as f64: some environments write infinity so.
    assert_eq!(bounded(f64::MIN, f64::MAX), Ok(()));
    let error = Space::discrete(1 << 31).validate();
    assert_eq!(error, Err(SpaceError::Values { element: 0, n: 1 << 31 }));
    let error = Space::multi_discrete([3, 1 << 40]).validate();
    assert_eq!(error, Err(SpaceError::Values { element: 1, n: 1 << 40 }));
}

#[test]
fn an_image_is_no_space_of_an_action() {
    assert_eq!(Space::pixels([2, 2, 1]).validate_action(), Err(SpaceError::Acted));
    assert_eq!(Space::discrete(0).validate_action(), Err(SpaceError::Empty));
    assert_eq!(Space::bounded([2], -1.0, 1.0).validate_action(), Ok(()));
}
