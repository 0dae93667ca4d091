//! Where in the user's source an equation came from.

use std::fmt;
use std::panic::Location;

/// A place in the user's source, or nothing where the compiler made the equation up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loc(Option<&'static Location<'static>>);

impl Loc {
    /// No place in the source.
    pub const NONE: Loc = Loc(None);

    /// The caller's place.
    #[track_caller]
    pub fn caller() -> Loc {
        Loc(Some(Location::caller()))
    }

    /// File, line and column, where known.
    pub fn parts(self) -> Option<(&'static str, u32, u32)> {
        self.0
            .map(|location| (location.file(), location.line(), location.column()))
    }
}

impl From<&'static Location<'static>> for Loc {
    fn from(location: &'static Location<'static>) -> Loc {
        Loc(Some(location))
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(location) => write!(f, "{location}"),
            None => f.write_str("unknown place"),
        }
    }
}
