//! Checks of observations that a worker sends: finite, within their space, and within a limit if the space has no bound.

use podracer_envs::{Bounds, Space};

/// Relative tolerance of a bound: sums and casts of f32 round that much off.
const ROUNDING: f64 = 1e-5;
/// A bound of at least this magnitude counts as no bound: Gymnasium's spaces write the greatest f32 for an unbounded element.
const NO_BOUND: f32 = 1e30;

/// The values that an observation of a space may have.
pub(super) struct ObservationCheck {
    space: Space,
    /// Bytes of one observation.
    size: usize,
    /// The least and the greatest value of each element of an observation of f32, or one for all, with room for rounding.
    bounds: Vec<(f32, f32)>,
    /// Greatest magnitude of an element on each side on which the space has no bound.
    most: f32,
}

impl ObservationCheck {
    pub(super) fn new(space: Space, most: f32) -> Self {
        let (size, bounds) = (space.ty().bytes(), bounds(&space, most));
        ObservationCheck { space, size, bounds, most }
    }

    /// Checks that observations can be learnt from: finite, and within their space.
    pub(super) fn values(&self, observations: &[u8]) -> Result<(), (usize, String)> {
        let elements_of_one = (self.size / 4).max(1);
        let check = |wrong: &dyn Fn(usize, [u8; 4]) -> Option<String>| {
            let elements = observations.as_chunks::<4>().0;
            let found = elements.iter().enumerate();
            let mut found = found.filter_map(|(i, &bytes)| {
                Some((i / elements_of_one, wrong(i % elements_of_one, bytes)?))
            });
            found.next().map_or(Ok(()), Err)
        };
        let within = |value: [u8; 4], n: usize| {
            let value = i32::from_le_bytes(value);
            let outside = !usize::try_from(value).is_ok_and(|value| value < n);
            outside.then(|| format!("{value} is not one of 0..{n}"))
        };
        match &self.space {
            Space::Pixels { .. } => Ok(()),
            Space::Box { .. } | Space::Dict { .. } => {
                let inside = |bytes: &[u8; 4], (low, high): (f32, f32)| {
                    let value = f32::from_le_bytes(*bytes);
                    (value >= low) & (value <= high) & value.is_finite()
                };
                // Loops without exits are four times as fast.
                let all = observations.as_chunks::<4>().0;
                let good = match self.bounds[..] {
                    [shared] => all.iter().fold(true, |good, bytes| good & inside(bytes, shared)),
                    _ => all
                        .chunks_exact(elements_of_one)
                        .flat_map(|one| one.iter().zip(&self.bounds))
                        .fold(true, |good, (bytes, &bounds)| good & inside(bytes, bounds)),
                };
                if good {
                    return Ok(());
                }
                check(&|i, bytes| {
                    let bounds = self.bounds[if self.bounds.len() == 1 { 0 } else { i }];
                    let value = f32::from_le_bytes(bytes);
                    let expected = |bound: f64, most: f32| match bound.abs() < f64::from(NO_BOUND) {
                        true => (bound, ""),
                        false => (f64::from(most), " (central.observation_bound)"),
                    };
                    let (low, high) = self.space.bounds(i);
                    let (low, of_low) = expected(low, -self.most);
                    let (high, of_high) = expected(high, self.most);
                    (!inside(&bytes, bounds)).then(|| match value.is_finite() {
                        false => format!("element {i} is {value}: expected a finite number"),
                        true => format!(
                            "element {i} is {value}: expected a number from {low} to {high}{}",
                            if value < 0.0 { of_low } else { of_high }
                        ),
                    })
                })
            }
            Space::Discrete { n, .. } => check(&|_, bytes| within(bytes, *n)),
            Space::MultiDiscrete { counts, .. } => check(&|i, bytes| within(bytes, counts[i])),
        }
    }
}

/// The bounds of each element of an f32 observation, or one pair for all elements. `most` stands for a bound that the space does not have.
fn bounds(space: &Space, most: f32) -> Vec<(f32, f32)> {
    let wider = |(low, high): (f64, f64)| {
        let room = |bound: f64| ROUNDING * (1.0 + bound.abs());
        let [low, high] = [low - room(low), high + room(high)].map(|bound| bound as f32);
        let finite = |bound: f32, other: f32| if bound.abs() < NO_BOUND { bound } else { other };
        (finite(low, -most), finite(high, most))
    };
    match space {
        Space::Box { low: Bounds::Shared(_), high: Bounds::Shared(_), .. } => {
            vec![wider(space.bounds(0))]
        }
        Space::Box { .. } | Space::Dict { .. } => {
            (0..space.elements()).map(|i| wider(space.bounds(i))).collect()
        }
        _ => Vec::new(),
    }
}
