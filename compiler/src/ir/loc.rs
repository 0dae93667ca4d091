//! The line of the user's source that an equation came from.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

/// A place in the user's source, and the part of the program that it was reached from; [`Loc::NONE`] for equations that the
/// compiler adds. Two are equal if the places are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loc(Option<SourcePlace>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct SourcePlace {
    file: &'static str,
    line: u32,
    column: u32,
    part: ProgramPart,
}

/// The number of a part of a program among the names of [`PARTS`], from 1; 0 for none. It says how a place was reached, and
/// is not compared.
#[derive(Clone, Copy, Debug, Default)]
struct ProgramPart(u16);

/// Names of parts of programs, such as `the environment's step`.
static PARTS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

impl PartialEq for ProgramPart {
    fn eq(&self, _: &ProgramPart) -> bool {
        true
    }
}

impl Eq for ProgramPart {}

impl Hash for ProgramPart {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl PartialOrd for ProgramPart {
    fn partial_cmp(&self, other: &ProgramPart) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ProgramPart {
    fn cmp(&self, _: &ProgramPart) -> Ordering {
        Ordering::Equal
    }
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
        Loc(Some(SourcePlace { file, line, column, part: ProgramPart(0) }))
    }

    /// The place, reached from the part of the program with this name.
    pub fn within(self, part: &'static str) -> Loc {
        let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = parts.iter().position(|known| *known == part);
        let position = known.unwrap_or_else(|| {
            parts.push(part);
            parts.len() - 1
        });
        let part = ProgramPart(u16::try_from(position + 1).unwrap_or(0));
        Loc(self.0.map(|place| SourcePlace { part, ..place }))
    }

    /// The part of the program from which the place was reached, where [`Loc::within`] has named one.
    pub fn part(self) -> Option<&'static str> {
        let position = usize::from(self.0?.part.0).checked_sub(1)?;
        PARTS.lock().unwrap_or_else(PoisonError::into_inner).get(position).copied()
    }

    /// File, line and column, where known.
    pub fn parts(self) -> Option<(&'static str, u32, u32)> {
        self.0.map(|place| (place.file, place.line, place.column))
    }
}

impl From<&'static Location<'static>> for Loc {
    fn from(location: &'static Location<'static>) -> Loc {
        Loc(Some(SourcePlace {
            file: location.file(),
            line: location.line(),
            column: location.column(),
            part: ProgramPart(0),
        }))
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(SourcePlace { file, line, column, .. }) => write!(f, "{file}:{line}:{column}"),
            None => f.write_str("unknown place"),
        }
    }
}
