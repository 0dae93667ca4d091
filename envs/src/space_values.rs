//! Values of spaces as tensors: the nearest value, a random value, parts, and a single vector.

use crate::space::{Bounds, Space};
use podracer_dsl::prelude::*;
use std::ops::Range;

impl Space {
    /// Least and greatest values as tensors of the space's type; scalars if all elements share
    /// them.
    #[track_caller]
    fn bound_tensors(&self) -> (Tensor, Tensor) {
        let tensor = |bounds: &Bounds| match bounds {
            Bounds::Shared(bound) => scalar(*bound),
            Bounds::Each(bounds) => constant_of(&Array::floats(F32, self.shape(), bounds)),
        };
        match self {
            Space::Discrete { n, .. } => (scalar(0), scalar(*n as i32 - 1)),
            Space::MultiDiscrete { counts, .. } => {
                (scalar(0), constant(counts.iter().map(|&n| n as i32 - 1).collect::<Vec<_>>()))
            }
            // Every u8 is in the space.
            Space::Pixels { .. } => (zeros(U8, []), full([], 255).astype(U8)),
            Space::Box { low, high, .. } => (tensor(low), tensor(high)),
            Space::Dict { .. } => {
                let (low, high) = self.all_bounds();
                (tensor(&Bounds::Each(low)), tensor(&Bounds::Each(high)))
            }
        }
    }

    /// The value of the space that is nearest to `value`.
    #[track_caller]
    pub fn clip(&self, value: Tensor) -> Tensor {
        let (low, high) = self.bound_tensors();
        clamp(value, low, high)
    }

    /// The action that an environment gets for the action of an agent: numbers are clipped to their
    /// bounds, as by Gymnasium's `ClipAction`. A choice stays as it is. The loops apply it; agents learn
    /// from the action that they drew.
    #[track_caller]
    pub fn clip_action(&self, action: Tensor) -> Tensor {
        let (low, high) = match self {
            Space::Box { .. } | Space::Dict { .. } => self.all_bounds(),
            _ => return action,
        };
        let bounded = low.iter().chain(&high).any(|bound| bound.is_finite());
        if bounded { self.clip(action) } else { action }
    }

    /// A random value. Discrete elements and elements with two finite bounds are uniform between
    /// them; others are standard normal, clipped.
    #[track_caller]
    pub fn sample(&self, key: Key) -> Tensor {
        let shape = self.shape().to_vec();
        if let Space::Discrete { n, .. } = self {
            return key.randint(shape, 0..*n as i32);
        }
        if let Space::MultiDiscrete { counts, .. } = self {
            let counts: Vec<i32> = counts.iter().map(|&n| n as i32).collect();
            return key.randint_between(shape, scalar(0), constant(counts));
        }
        if let Space::Pixels { .. } = self {
            return key.randint(shape, 0..256).astype(U8);
        }
        if let Space::Dict { parts } = self {
            let keys = key.split_n(parts.len());
            let values = parts.iter().enumerate().map(|(i, (_, part))| part.sample(keys.at(i)));
            return Space::join(&values.collect::<Vec<_>>());
        }
        let finite: Vec<bool> = (0..self.elements())
            .map(|element| self.bounds(element))
            .map(|(low, high)| low.is_finite() && high.is_finite())
            .collect();
        let (low, high) = self.bound_tensors();
        if finite.iter().all(|&finite| finite) {
            return low + (high - low) * key.uniform(shape);
        }
        if !finite.contains(&true) {
            return self.clip(key.normal(shape));
        }
        let (uniform_key, normal_key) = key.split();
        let mask = constant_of(&Array::bools(shape.clone(), &finite));
        // An infinite bound would give NaN in the branch not taken, and the gradient reads both.
        let (low, high) = (select(mask, low, 0.0), select(mask, high, 0.0));
        let uniform = low + (high - low) * uniform_key.uniform(shape.clone());
        select(mask, uniform, self.clip(normal_key.normal(shape)))
    }

    /// The values of a dict's parts, from `f32[k]`, each with its own type: discrete values as i32,
    /// boxes in their shapes.
    ///
    /// ```
    /// use podracer_dsl::prelude::*;
    /// use podracer_envs::Space;
    ///
    /// let space = Space::dict([("gear", Space::discrete(3)), ("wheels", Space::unbounded([2, 1]))]);
    /// let traced = trace(f32([3]), |action| space.split(action))?;
    /// assert_eq!(traced.results().to_string(), "{[0]: i32[], [1]: f32[2,1]}");
    /// # Ok::<(), TraceErrors>(())
    /// ```
    #[track_caller]
    pub fn split(&self, value: Tensor) -> Vec<Tensor> {
        let typed = |(place, part): (Range<usize>, &Space)| {
            let ty = part.ty();
            value.slice_axis(0, place).reshape(ty.shape.to_vec()).astype(ty.dtype)
        };
        self.parts().map(typed).collect()
    }

    /// The value of a dict from its parts' values: the inverse of [`split`](Space::split). `f32[k]`
    #[track_caller]
    pub fn join(values: &[Tensor]) -> Tensor {
        let flat: Vec<Tensor> = values.iter().map(|value| value.astype(F32).flatten()).collect();
        concatenate(&flat, 0)
    }

    /// Number of elements of [`flatten`](Space::flatten). Gymnasium's `flatdim`.
    #[must_use]
    pub fn flatdim(&self) -> usize {
        match self {
            Space::Discrete { n, .. } => *n,
            Space::MultiDiscrete { counts, .. } => counts.iter().sum(),
            Space::Dict { .. } => self.parts().map(|(_, part)| part.flatdim()).sum(),
            Space::Box { .. } | Space::Pixels { .. } => self.elements(),
        }
    }

    /// A value as one vector f32 `[flatdim]`. A box is flattened, a discrete value is one-hot, and
    /// so is each element of a multi-discrete value. An image is scaled to `[0, 1]`, and the parts
    /// of a dict are concatenated. Gymnasium's `flatten`, which leaves images unscaled.
    #[track_caller]
    pub fn flatten(&self, value: Tensor) -> Tensor {
        match self {
            Space::Discrete { n, .. } => one_hot(value, *n),
            Space::MultiDiscrete { counts, .. } => {
                let element = |(i, &n): (usize, &usize)| one_hot(value.index(i), n);
                concatenate(&counts.iter().enumerate().map(element).collect::<Vec<_>>(), 0)
            }
            Space::Dict { .. } => {
                let values = self.split(value).into_iter().zip(self.parts());
                let flat = values.map(|(value, (_, part))| part.flatten(value));
                concatenate(&flat.collect::<Vec<_>>(), 0)
            }
            Space::Box { .. } => value.flatten(),
            Space::Pixels { .. } => value.flatten().astype(F32) / 255.0,
        }
    }

    /// The value with the vector `flat`: the inverse of [`flatten`](Space::flatten).
    #[track_caller]
    pub fn unflatten(&self, flat: Tensor) -> Tensor {
        let mut begin = 0;
        let mut next = |elements: usize| {
            begin += elements;
            flat.slice_axis(0, begin - elements..begin)
        };
        match self {
            Space::Discrete { .. } => flat.argmax(0),
            Space::MultiDiscrete { counts, .. } => {
                stack(&counts.iter().map(|&n| next(n).argmax(0)).collect::<Vec<_>>(), 0)
            }
            Space::Dict { .. } => {
                let values = self.parts().map(|(_, part)| part.unflatten(next(part.flatdim())));
                Space::join(&values.collect::<Vec<_>>())
            }
            Space::Box { shape, .. } => flat.reshape(shape.clone()),
            Space::Pixels { shape } => {
                (flat * 255.0 + 0.5).floor().astype(U8).reshape(shape.clone())
            }
        }
    }
}
