//! Names of the values and elements of spaces, for users.

use std::ops::Range;

use crate::space::Space;

impl Space {
    /// Names the elements of a box, with their units, or of a multi-discrete space, or the values of
    /// a discrete space.
    pub fn described(mut self, text: &str) -> Space {
        if let Space::Box { description, .. }
        | Space::MultiDiscrete { description, .. }
        | Space::Discrete { description, .. } = &mut self
        {
            *description = text.to_string();
        }
        self
    }

    /// Names each value of a discrete space, or each element of another space, in order:
    /// `Space::discrete(3).named(["left", "stay", "right"])`. `podracer play --values` shows the
    /// names.
    ///
    /// # Panics
    /// Panics if there is not one name for each value or element.
    #[track_caller]
    pub fn named<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> Space {
        let names: Vec<S> = names.into_iter().collect();
        let (expected, got) = (self.number_of_names(), names.len());
        assert_eq!(got, expected, "expected a name for each of {expected} values, got {got} names");
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        self.described(&names.join(", "))
    }

    /// Number of values of a discrete space, or of elements of another space.
    fn number_of_names(&self) -> usize {
        match self {
            Space::Discrete { n, .. } => *n,
            space => space.elements(),
        }
    }

    /// The names of the values of a discrete space, or of the elements of another space; empty if
    /// they have none.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let names: Vec<String> = match self {
            Space::Box { description, .. }
            | Space::MultiDiscrete { description, .. }
            | Space::Discrete { description, .. } => {
                description.split(',').map(|name| name.trim().to_owned()).collect()
            }
            Space::Dict { .. } | Space::Pixels { .. } => Vec::new(),
        };
        if names.len() == self.number_of_names() { names } else { Vec::new() }
    }

    /// The names of the elements, if they have names: from [`described`](Space::described), or for
    /// a dict its parts with their ranges, `gear 0..1, throttle 1..2`.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        let text = match self {
            Space::Box { description, .. }
            | Space::MultiDiscrete { description, .. }
            | Space::Discrete { description, .. } => description.clone(),
            Space::Dict { parts } => {
                let places = parts.iter().zip(self.parts());
                let named = places
                    .map(|((name, _), (Range { start, end }, _))| format!("{name} {start}..{end}"));
                named.collect::<Vec<_>>().join(", ")
            }
            Space::Pixels { .. } => String::new(),
        };
        Some(text).filter(|text| !text.is_empty())
    }
}
