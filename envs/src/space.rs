//! Spaces: types and bounds of observations and actions.

use podracer_dsl::prelude::*;
use std::ops::Range;

/// Greatest number of elements of a value.
pub(crate) const MOST_ELEMENTS: usize = 1 << 30;

/// Greatest number of values of a discrete element.
const MOST_VALUES: usize = i32::MAX as usize;

/// Set of the values that an observation or an action may take.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    /// One of `0..n`, `i32[]`.
    Discrete {
        /// Number of values, at least 1.
        n: usize,
        /// Names of the values: `"left, stay, right"`; may be empty.
        description: String,
    },
    /// Several discrete values, `i32[k]`: element `i` is one of `0..counts[i]`.
    MultiDiscrete {
        /// Number of values of each element, at least 1.
        counts: Vec<usize>,
        /// Names of the elements: `"shoulder, elbow"`.
        description: String,
    },
    /// An f32 array, each element within its bounds, which may be infinite.
    Box {
        /// Shape of the array.
        shape: Vec<usize>,
        /// Least values of the elements.
        low: Bounds,
        /// Greatest values of the elements.
        high: Bounds,
        /// Names of the elements with their units: `"torque (N m)"`.
        description: String,
    },
    /// Several parts, `f32[k]`: the parts are concatenated, with discrete values as integers. Only
    /// actions have such a space; an observation with several parts is a tree.
    Dict {
        /// The parts by name. No part is an image or has parts itself.
        parts: Vec<(String, Space)>,
    },
    /// An image: a u8 array of grey or colour values from 0 to 255, its channels last.
    Pixels {
        /// Height, width, channels.
        shape: Vec<usize>,
    },
}

/// One bound for all elements, or one for each in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Bounds {
    /// The same bound for all elements.
    Shared(f64),
    /// One bound for each element.
    Each(Vec<f64>),
}

impl From<f64> for Bounds {
    fn from(bound: f64) -> Self {
        Bounds::Shared(bound)
    }
}

impl<const N: usize> From<[f64; N]> for Bounds {
    fn from(bounds: [f64; N]) -> Self {
        Bounds::Each(bounds.to_vec())
    }
}

impl From<Vec<f64>> for Bounds {
    fn from(bounds: Vec<f64>) -> Self {
        Bounds::Each(bounds)
    }
}

impl Bounds {
    /// The bound of an element, by its row-major index.
    pub fn of(&self, element: usize) -> f64 {
        match self {
            Bounds::Shared(bound) => *bound,
            Bounds::Each(bounds) => bounds.get(element).copied().unwrap_or(f64::NAN),
        }
    }
}

/// Mistakes in a space, or in a value that should be in it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// A discrete space without elements.
    #[error("a discrete space needs at least one value, got n = 0")]
    Empty,
    /// A multi-discrete space without elements.
    #[error("a multi-discrete space needs at least one element, got no counts")]
    NoElements,
    /// An element of a multi-discrete space that has no values.
    #[error(
        "element {element}: each element of a multi-discrete space needs at least one value, got n = 0"
    )]
    EmptyElement {
        /// Index of the element.
        element: usize,
    },
    /// A dict without parts.
    #[error("a dict needs at least one part")]
    NoParts,
    /// A part that is an image or has parts itself.
    #[error("part `{name}`: the parts of a dict are discrete, multi-discrete or boxes")]
    PartKind {
        /// Name of the part.
        name: String,
    },
    /// A mistake in a part of a dict.
    #[error("part `{name}`: {error}")]
    Part {
        /// Name of the part.
        name: String,
        /// The mistake in the part.
        error: Box<SpaceError>,
    },
    /// The number of bounds is neither one nor the number of elements.
    #[error("{which}: a box of shape {shape:?} needs {} bounds or one shared, got {got}", shape.iter().product::<usize>())]
    BoundCount {
        /// `low` or `high`.
        which: &'static str,
        /// The box's shape.
        shape: Vec<usize>,
        /// Number of bounds given.
        got: usize,
    },
    /// A shape without elements, or with too many.
    #[error(
        "a value of shape {shape:?} has no elements, or too many: it must have 1 to {MOST_ELEMENTS}"
    )]
    Elements {
        /// Shape of the values.
        shape: Vec<usize>,
    },
    /// A choice with more values than i32 can number.
    #[error("element {element}: a choice has at most {MOST_VALUES} values, got n = {n}")]
    Values {
        /// Index of the element.
        element: usize,
        /// Number of its values.
        n: usize,
    },
    /// An image as the space of an action.
    #[error("an action is a choice, a box of numbers or a dict of these, and no image: use a box")]
    Acted,
    /// A lower bound above its upper bound.
    #[error("element {element}: no value lies between low {low} and high {high}")]
    Crossed {
        /// Row-major index of the element.
        element: usize,
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// Bounds without an f32 number between them.
    #[error(
        "element {element}: low {low:e} and high {high:e} leave no number of f32, which ends at {:e}",
        f32::MAX
    )]
    Beyond {
        /// Row-major index of the element.
        element: usize,
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// A value of another type than the space's.
    #[error("expected {expected}, got {got}")]
    Type {
        /// The space's type.
        expected: TensorType,
        /// The value's type.
        got: TensorType,
    },
    /// A value outside the bounds.
    #[error("element {element} is {value}, outside of [{low}, {high}]")]
    Outside {
        /// Row-major index of the element.
        element: usize,
        /// Value of the element.
        value: f64,
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// A dict as the space of an observation.
    #[error(
        "an observation of several parts is a tree, such as a struct with `#[derive(Tree)]`; a dict is for actions"
    )]
    Observed,
    /// A fractional number for a discrete value in a dict.
    #[error("element {element} is {value}: a choice is a whole number")]
    Fraction {
        /// Index of the element.
        element: usize,
        /// Value of the element.
        value: f64,
    },
}

impl Space {
    /// The space of `0..n`.
    pub fn discrete(n: usize) -> Space {
        Space::Discrete { n, description: String::new() }
    }

    /// The space of several discrete values, by the number of values of each: `multi_discrete([3,
    /// 2])` has the actions `[a, b]` with `a` in `0..3` and `b` in `0..2`. Gymnasium's
    /// `MultiDiscrete`.
    pub fn multi_discrete(counts: impl Into<Vec<usize>>) -> Space {
        Space::MultiDiscrete { counts: counts.into(), description: String::new() }
    }

    /// The space of several named parts, discrete or continuous: `dict([("gear",
    /// Space::discrete(3)), ("throttle", Space::bounded([1], 0.0, 1.0))])`. Gymnasium's `Dict`.
    pub fn dict<N: Into<String>>(parts: impl IntoIterator<Item = (N, Space)>) -> Space {
        Space::Dict { parts: parts.into_iter().map(|(name, space)| (name.into(), space)).collect() }
    }

    /// A box with one bound shared by all elements (`f64`) or one per element (arrays, `Vec`).
    pub fn bounded(
        shape: impl Into<Vec<usize>>,
        low: impl Into<Bounds>,
        high: impl Into<Bounds>,
    ) -> Space {
        Space::Box {
            shape: shape.into(),
            low: low.into(),
            high: high.into(),
            description: String::new(),
        }
    }

    /// A box without bounds.
    pub fn unbounded(shape: impl Into<Vec<usize>>) -> Space {
        Space::bounded(shape, f64::NEG_INFINITY, f64::INFINITY)
    }

    /// An image of this height, width and number of channels.
    pub fn pixels(shape: impl Into<Vec<usize>>) -> Space {
        Space::Pixels { shape: shape.into() }
    }

    /// The type of a value: `i32[]`, `i32[k]`, f32 of the box's shape, `f32[k]` for a dict, or u8
    /// of the image's shape.
    pub fn ty(&self) -> TensorType {
        match self {
            Space::Discrete { .. } => TensorType::scalar(I32),
            Space::MultiDiscrete { counts, .. } => TensorType::new(I32, [counts.len()]),
            Space::Box { shape, .. } => TensorType::new(F32, shape.clone()),
            Space::Dict { parts } => {
                TensorType::new(F32, [parts.iter().map(|(_, part)| part.elements()).sum::<usize>()])
            }
            Space::Pixels { shape } => TensorType::new(U8, shape.clone()),
        }
    }

    /// The shape of a value.
    pub fn shape(&self) -> Vec<usize> {
        self.ty().shape.to_vec()
    }

    /// Number of values of each discrete element; empty for numbers, pixels and dicts.
    #[must_use]
    pub fn counts(&self) -> &[usize] {
        match self {
            Space::Discrete { n, .. } => std::slice::from_ref(n),
            Space::MultiDiscrete { counts, .. } => counts,
            Space::Box { .. } | Space::Pixels { .. } | Space::Dict { .. } => &[],
        }
    }

    /// Number of values of a discrete element, by its row-major index; `None` for an element that
    /// is a number or a pixel.
    #[must_use]
    pub fn choice(&self, element: usize) -> Option<usize> {
        match self {
            Space::Dict { .. } => {
                self.part_of(element).and_then(|(part, element)| part.choice(element))
            }
            space => space.counts().get(element).copied(),
        }
    }

    /// Number of elements of a value.
    pub fn elements(&self) -> usize {
        self.shape().iter().product()
    }

    /// Least and greatest value of an element, by its row-major index.
    pub fn bounds(&self, element: usize) -> (f64, f64) {
        match self {
            Space::Discrete { n, .. } => (0.0, *n as f64 - 1.0),
            Space::MultiDiscrete { counts, .. } => {
                (0.0, counts.get(element).map_or(f64::NAN, |&n| n as f64 - 1.0))
            }
            Space::Box { low, high, .. } => (low.of(element), high.of(element)),
            Space::Dict { .. } => self
                .part_of(element)
                .map_or((f64::NAN, f64::NAN), |(part, element)| part.bounds(element)),
            Space::Pixels { .. } => (0.0, 255.0),
        }
    }

    /// Least and greatest values of the elements, in row-major order.
    #[must_use]
    pub fn all_bounds(&self) -> (Vec<f64>, Vec<f64>) {
        (0..self.elements()).map(|element| self.bounds(element)).unzip()
    }

    /// The parts of a dict with their ranges in its value, `f32[k]`; none for other spaces.
    pub fn parts(&self) -> impl Iterator<Item = (Range<usize>, &Space)> {
        let parts = match self {
            Space::Dict { parts } => &parts[..],
            _ => &[],
        };
        parts.iter().scan(0, |begin, (_, part)| {
            let place = *begin..*begin + part.elements();
            *begin = place.end;
            Some((place, part))
        })
    }

    /// The part of a dict that contains an element of its value, and the element's index in the
    /// part.
    fn part_of(&self, element: usize) -> Option<(&Space, usize)> {
        let mut parts = self.parts();
        let (place, part) = parts.find(|(place, _)| place.contains(&element))?;
        Some((part, element - place.start))
    }

    /// Checks that the space has values, and bounds that fit its shape.
    ///
    /// # Errors
    /// Returns the first mistake.
    pub fn validate(&self) -> Result<(), SpaceError> {
        if let Space::Box { shape, .. } | Space::Pixels { shape } = self {
            let elements = shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis));
            if !elements.is_some_and(|elements| (1..=MOST_ELEMENTS).contains(&elements)) {
                return Err(SpaceError::Elements { shape: shape.clone() });
            }
        }
        if let Some(element) = self.counts().iter().position(|&n| n > MOST_VALUES) {
            return Err(SpaceError::Values { element, n: self.counts()[element] });
        }
        match self {
            Space::Discrete { n: 0, .. } => Err(SpaceError::Empty),
            Space::Discrete { .. } | Space::Pixels { .. } => Ok(()),
            Space::MultiDiscrete { counts, .. } if counts.is_empty() => Err(SpaceError::NoElements),
            Space::MultiDiscrete { counts, .. } => match counts.iter().position(|&n| n == 0) {
                Some(element) => Err(SpaceError::EmptyElement { element }),
                None => Ok(()),
            },
            Space::Dict { parts } if parts.is_empty() => Err(SpaceError::NoParts),
            Space::Dict { parts } => parts.iter().try_for_each(|(name, part)| match part {
                Space::Dict { .. } | Space::Pixels { .. } => {
                    Err(SpaceError::PartKind { name: name.clone() })
                }
                part => part.validate().map_err(|error| SpaceError::Part {
                    name: name.clone(),
                    error: Box::new(error),
                }),
            }),
            Space::Box { shape, low, high, .. } => {
                for (which, bounds) in [("low", low), ("high", high)] {
                    if let Bounds::Each(bounds) = bounds
                        && bounds.len() != self.elements()
                    {
                        return Err(SpaceError::BoundCount {
                            which,
                            shape: shape.clone(),
                            got: bounds.len(),
                        });
                    }
                }
                let crossed = |&element: &usize| {
                    let (low, high) = self.bounds(element);
                    low.is_nan() || high.is_nan() || low > high
                };
                let beyond = |&element: &usize| {
                    let (low, high) = self.bounds(element);
                    low > f64::from(f32::MAX) || high < f64::from(f32::MIN)
                };
                let shared = matches!((low, high), (Bounds::Shared(_), Bounds::Shared(_)));
                let elements = if shared { 1 } else { self.elements() };
                if let Some(element) = (0..elements).find(crossed) {
                    let (low, high) = self.bounds(element);
                    return Err(SpaceError::Crossed { element, low, high });
                }
                if let Some(element) = (0..elements).find(beyond) {
                    let (low, high) = self.bounds(element);
                    return Err(SpaceError::Beyond { element, low, high });
                }
                Ok(())
            }
        }
    }

    /// Checks that the space is well formed, and that a policy can choose from it: it must not be
    /// an image.
    ///
    /// # Errors
    /// Returns the first mistake.
    pub fn validate_action(&self) -> Result<(), SpaceError> {
        match self {
            Space::Pixels { .. } => Err(SpaceError::Acted),
            space => space.validate(),
        }
    }

    /// Checks that `ty` is the type of this space's values.
    ///
    /// # Errors
    /// [`SpaceError::Type`].
    pub fn check_type(&self, ty: &TensorType) -> Result<(), SpaceError> {
        let expected = self.ty();
        if expected == *ty { Ok(()) } else { Err(SpaceError::Type { expected, got: ty.clone() }) }
    }

    /// Checks that a value is in this space. NaN is in no space.
    ///
    /// # Errors
    /// [`SpaceError::Type`], [`SpaceError::Outside`].
    pub fn contains(&self, value: &Array) -> Result<(), SpaceError> {
        self.check_type(value.ty())?;
        for (element, scalar) in value.scalars().enumerate() {
            let ((low, high), value) = (self.bounds(element), scalar.float());
            // A bound that f32 cannot represent exactly includes its nearest f32.
            let (low32, high32) = (f64::from(low as f32), f64::from(high as f32));
            if !(low.min(low32) <= value && value <= high.max(high32)) {
                return Err(SpaceError::Outside { element, value, low, high });
            }
            if self.choice(element).is_some() && value.fract() != 0.0 {
                return Err(SpaceError::Fraction { element, value });
            }
        }
        Ok(())
    }
}
