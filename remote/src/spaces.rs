//! Spaces as messages, and the comparison of a worker's spaces with the run's spaces.

use podracer_dsl::prelude::*;
use podracer_envs::host::HostSpec;
use podracer_envs::{Bounds, Space};

use crate::proto::{self, SpaceKind};

/// Most elements of a space: more than any observation has.
const MOST_ELEMENTS: usize = 1 << 24;

pub(crate) fn spaces_to_wire(spec: &HostSpec) -> proto::Spaces {
    proto::Spaces {
        observation: Some(to_wire(&spec.observation)),
        action: Some(to_wire(&spec.action)),
        truncates: spec.truncates,
        skips: spec.skips,
        masks: spec.masks,
    }
}

fn to_wire(space: &Space) -> proto::Space {
    let bounds = |bounds: &Bounds| match bounds {
        Bounds::Shared(bound) => vec![*bound],
        Bounds::Each(bounds) => bounds.clone(),
    };
    let wide = |sizes: &[usize]| sizes.iter().map(|&size| size as u64).collect::<Vec<u64>>();
    let (kind, counts, low, high) = match space {
        Space::Discrete { n, .. } => (SpaceKind::Discrete, vec![*n as u64], vec![], vec![]),
        Space::MultiDiscrete { counts, .. } => {
            (SpaceKind::MultiDiscrete, wide(counts), vec![], vec![])
        }
        Space::Box { low, high, .. } => (SpaceKind::Box, vec![], bounds(low), bounds(high)),
        // A worker takes the numbers as they come; which of them are choices is between the agent and the environment.
        Space::Dict { .. } => {
            let (low, high) = space.all_bounds();
            (SpaceKind::Box, vec![], low, high)
        }
        Space::Pixels { .. } => (SpaceKind::Pixels, vec![], vec![], vec![]),
    };
    proto::Space {
        kind: kind.into(),
        dtype: dtype(space).into(),
        shape: wide(&space.shape()),
        counts,
        low,
        high,
    }
}

fn dtype(space: &Space) -> proto::DType {
    match space.ty().dtype {
        DType::F32 => proto::DType::F32,
        DType::U8 => proto::DType::U8,
        _ => proto::DType::I32,
    }
}

pub(crate) fn spaces_from_wire(
    spaces: &proto::Spaces,
    environments: usize,
) -> Result<HostSpec, String> {
    let space = |which: &str, space: &Option<proto::Space>| {
        let space = space.as_ref().ok_or_else(|| format!("there is no {which} space"))?;
        from_wire(space).map_err(|problem| format!("the {which} space: {problem}"))
    };
    let observation = space("observation", &spaces.observation)?;
    let action = space("action", &spaces.action)?;
    if spaces.masks && action.counts().is_empty() {
        return Err("`masks` are for discrete actions".to_owned());
    }
    Ok(HostSpec {
        truncates: spaces.truncates,
        skips: spaces.skips,
        masks: spaces.masks,
        // Successes are optional: the steps contain them or not.
        ..HostSpec::new(environments, observation, action)
    })
}

fn from_wire(space: &proto::Space) -> Result<Space, String> {
    let narrow = |given: &[u64]| {
        let sizes = given.iter().map(|&size| usize::try_from(size).ok());
        let sizes: Option<Vec<usize>> = sizes.collect();
        let fits = |sizes: &Vec<usize>| {
            let product = sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
            sizes.len() <= 8 && product.is_some_and(|elements| elements <= MOST_ELEMENTS)
        };
        sizes
            .filter(fits)
            .ok_or_else(|| format!("{given:?} is no shape of at most {MOST_ELEMENTS} elements"))
    };
    let counts = || -> Result<Vec<usize>, String> {
        if space.counts.len() > MOST_ELEMENTS {
            return Err("too many counts".to_owned());
        }
        let fits = |&n: &u64| usize::try_from(n).ok().filter(|&n| n <= i32::MAX as usize);
        let counts: Option<Vec<usize>> = space.counts.iter().map(fits).collect();
        counts.ok_or_else(|| "a count does not fit into an i32".to_owned())
    };
    let bounds = |which: &str, given: &[f64]| match given {
        [] => Err(format!("a box needs `{which}`: one number, or one for each element")),
        [one] => Ok(Bounds::Shared(*one)),
        each => Ok(Bounds::Each(each.to_vec())),
    };
    let read = match space.kind() {
        SpaceKind::Discrete => match counts()?[..] {
            [n] => Space::discrete(n),
            _ => return Err("a discrete space has one count".to_owned()),
        },
        SpaceKind::MultiDiscrete => Space::multi_discrete(counts()?),
        SpaceKind::Pixels => Space::pixels(narrow(&space.shape)?),
        SpaceKind::Box if space.low.is_empty() && space.high.is_empty() => {
            Space::unbounded(narrow(&space.shape)?)
        }
        SpaceKind::Box => Space::bounded(
            narrow(&space.shape)?,
            bounds("low", &space.low)?,
            bounds("high", &space.high)?,
        ),
        SpaceKind::Unspecified => return Err("it has no kind".to_owned()),
    };
    read.validate().map_err(|error| error.to_string())?;
    let shape: Vec<u64> = read.shape().iter().map(|&size| size as u64).collect();
    if space.shape != shape || space.dtype() != dtype(&read) {
        return Err(format!(
            "dtype {:?} and shape {:?} do not belong to its kind: expected {}",
            space.dtype(),
            space.shape,
            read.ty()
        ));
    }
    Ok(read)
}

/// Compares a worker's spaces with the run's spaces.
///
/// # Errors
/// A sentence with the first difference.
pub(crate) fn compare(run: &HostSpec, worker: &proto::Spaces) -> Result<(), String> {
    let given = spaces_from_wire(worker, run.environments)?;
    for (which, run, worker, reported) in [
        ("observation", &run.observation, &given.observation, &worker.observation),
        ("action", &run.action, &given.action, &worker.action),
    ] {
        let claims = reported
            .as_ref()
            .is_some_and(|reported| !reported.low.is_empty() || !reported.high.is_empty());
        let same = match (run, worker) {
            (Space::Box { .. }, Space::Box { .. }) if run.ty() == worker.ty() => {
                let bounds = |space: &Space, element| {
                    let (low, high) = space.bounds(element);
                    (low as f32, high as f32)
                };
                !claims || (0..run.elements()).all(|i| bounds(run, i) == bounds(worker, i))
            }
            // A worker does not send the names of actions.
            (Space::Discrete { n: run, .. }, Space::Discrete { n: worker, .. }) => run == worker,
            (
                Space::MultiDiscrete { counts: run, .. },
                Space::MultiDiscrete { counts: worker, .. },
            ) => run == worker,
            (Space::Dict { .. }, worker) => from_wire(&to_wire(run)).as_ref() == Ok(worker),
            _ => run == worker,
        };
        if !same {
            return Err(format!(
                "the {which} space of the run is {} and the worker's is {}",
                shown(run),
                shown(worker)
            ));
        }
    }
    for (which, run, worker) in [
        ("truncates", run.truncates, given.truncates),
        ("skips", run.skips, given.skips),
        ("masks", run.masks, given.masks),
    ] {
        if run != worker {
            return Err(format!("`{which}` is {run} for the run and {worker} for the worker"));
        }
    }
    Ok(())
}

/// A space in a message: a long list of bounds is cut.
fn shown(space: &Space) -> String {
    match space {
        Space::Discrete { n, .. } => format!("{} of {n} values", space.ty()),
        Space::MultiDiscrete { counts, .. } => format!("{} of {counts:?} values", space.ty()),
        Space::Pixels { .. } => space.ty().to_string(),
        Space::Box { .. } | Space::Dict { .. } => {
            let (low, high) = space.bounds(0);
            format!(
                "{} from {low} to {high}{}",
                space.ty(),
                if space.elements() > 1 { ", .." } else { "" }
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> HostSpec {
        HostSpec {
            environments: 8,
            observation: Space::bounded([2], [-1.0, f64::NEG_INFINITY], [1.0, f64::INFINITY]),
            action: Space::discrete(3),
            truncates: true,
            skips: false,
            masks: false,
            succeeds: false,
        }
    }

    #[test]
    fn spaces_cross_the_wire() {
        for space in [
            Space::discrete(3),
            Space::multi_discrete([3, 2]),
            Space::bounded([2], [-1.0, 0.0], [1.0, 2.0]),
            Space::unbounded([2, 3]),
            Space::pixels([84, 84, 4]),
        ] {
            assert_eq!(from_wire(&to_wire(&space)), Ok(space));
        }
        let parts = [("gear", Space::discrete(3)), ("throttle", Space::bounded([1], 0.0, 0.5))];
        let numbers = Space::bounded([2], [0.0, 0.0], [2.0, 0.5]);
        assert_eq!(from_wire(&to_wire(&Space::dict(parts))), Ok(numbers), "a box of numbers");
    }

    #[test]
    fn differences_of_spaces_are_reported() {
        let check = |expected: &str, change: &dyn Fn(&mut HostSpec)| {
            let mut other = spec();
            change(&mut other);
            let reported = compare(&spec(), &spaces_to_wire(&other));
            assert_eq!(
                reported,
                if expected.is_empty() { Ok(()) } else { Err(expected.to_owned()) }
            );
        };
        check("", &|_| ());
        check(
            "the action space of the run is i32[] of 3 values and the worker's is i32[] of 4 values",
            &|spec| {
                spec.action = Space::discrete(4);
            },
        );
        check(
            "the observation space of the run is f32[2] from -1 to 1, .. and the worker's is u8[2]",
            &|spec| spec.observation = Space::pixels([2]),
        );
        check("`truncates` is true for the run and false for the worker", &|spec| {
            spec.truncates = false
        });
        check("`masks` is false for the run and true for the worker", &|spec| spec.masks = true);
        let mut silent = spaces_to_wire(&spec());
        if let Some(space) = &mut silent.observation {
            (space.low, space.high) = (vec![], vec![]);
        }
        assert_eq!(compare(&spec(), &silent), Ok(()), "no bounds are claimed");
    }

    #[test]
    fn impossible_spaces_are_errors() {
        let pixels = to_wire(&Space::pixels([84, 84, 1]));
        let wrong = [
            proto::Space { shape: vec![u64::MAX, 2], ..pixels.clone() },
            proto::Space { shape: vec![1; 9], ..pixels.clone() },
            proto::Space { kind: 77, ..pixels.clone() },
            proto::Space { dtype: proto::DType::F32.into(), ..pixels.clone() },
            proto::Space { kind: SpaceKind::Discrete.into(), ..pixels },
            proto::Space { counts: vec![0], ..to_wire(&Space::discrete(1)) },
            proto::Space { high: vec![], ..to_wire(&Space::unbounded([1])) },
            proto::Space { low: vec![f64::NAN], ..to_wire(&Space::unbounded([1])) },
        ];
        for space in wrong {
            assert!(from_wire(&space).is_err(), "{space:?}");
        }
    }
}
