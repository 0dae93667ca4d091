//! The line of the user's source that an equation came from.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

/// A place in the user's source; [`Loc::NONE`] for equations that the compiler adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loc(Option<Place>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    file: &'static str,
    line: u32,
    column: u32,
}

impl Loc {
    /// No place in the source.
    pub const NONE: Loc = Loc(None);

    /// The caller's place.
    #[track_caller]
    pub fn caller() -> Loc {
        Location::caller().into()
    }

    /// A place that was read from a text. The file's name is kept until the process ends, once however often it is read:
    /// places are copied freely, and those that rustc gives have names of that kind.
    pub fn read(file: &str, line: u32, column: u32) -> Loc {
        static FILES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let file = files.get(file).copied().unwrap_or_else(|| {
            let kept: &'static str = Box::leak(file.into());
            files.insert(kept);
            kept
        });
        Loc(Some(Place { file, line, column }))
    }

    /// File, line and column, where known.
    pub fn parts(self) -> Option<(&'static str, u32, u32)> {
        self.0.map(|place| (place.file, place.line, place.column))
    }
}

impl From<&'static Location<'static>> for Loc {
    fn from(location: &'static Location<'static>) -> Loc {
        Loc(Some(Place { file: location.file(), line: location.line(), column: location.column() }))
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Place { file, line, column }) => write!(f, "{file}:{line}:{column}"),
            None => f.write_str("unknown place"),
        }
    }
}
