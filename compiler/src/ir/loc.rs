//! The line of the user's source that caused an equation.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A place in the user's source, with the part of the program that reached it, and the library
/// function that was being called. [`Loc::NONE`] is for equations that the compiler adds. Locations
/// are equal if their places are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loc(Option<SourcePlace>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct SourcePlace {
    file: &'static str,
    line: u32,
    column: u32,
    part: Label<PartNumber>,
    call: Label<Option<Call>>,
}

/// A fact about a place that comparisons ignore: how it was reached.
#[derive(Clone, Copy, Debug, Default)]
struct Label<T>(T);

/// The number of a part of a program among the names of [`PARTS`], from 1; 0 for none.
type PartNumber = u16;

/// Names of parts of programs, such as `the environment's step`.
static PARTS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Names of called functions, such as `softmax`.
static CALLS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// One invocation of a library function, such as `softmax`. Two calls are equal if they are the
/// same invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    /// The position of the name among [`CALLS`].
    name: u16,
    invocation: u32,
}

impl Call {
    /// A new invocation of the function with this name. `None` if the table of names is full.
    pub fn new(name: &str) -> Option<Call> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        let position = calls.iter().position(|known| *known == name).unwrap_or_else(|| {
            calls.push(Box::leak(name.into()));
            calls.len() - 1
        });
        let name = u16::try_from(position).ok()?;
        Some(Call { name, invocation: NEXT.fetch_add(2, Relaxed) })
    }

    /// The same invocation, inside internal constants that mean nothing to a caller, such as the
    /// rotations of a cipher.
    pub fn opaque(self) -> Call {
        Call { invocation: self.invocation | 1, ..self }
    }

    /// True for the internals that [`Call::opaque`] marks.
    pub fn is_opaque(self) -> bool {
        self.invocation & 1 == 1
    }

    /// The invocation itself, without the mark of internals.
    pub fn whole(self) -> Call {
        Call { invocation: self.invocation & !1, ..self }
    }

    /// The name of the called function.
    pub fn name(self) -> &'static str {
        let calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        calls.get(usize::from(self.name)).copied().unwrap_or_default()
    }
}

impl<T> PartialEq for Label<T> {
    fn eq(&self, _: &Label<T>) -> bool {
        true
    }
}

impl<T> Eq for Label<T> {}

impl<T> Hash for Label<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<T> PartialOrd for Label<T> {
    fn partial_cmp(&self, other: &Label<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Label<T> {
    fn cmp(&self, _: &Label<T>) -> Ordering {
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

    /// A place that was read from a text. The file's name is kept until the process ends, once per
    /// distinct name: locations are `Copy`, and rustc's names are static.
    pub fn read(file: &str, line: u32, column: u32) -> Loc {
        static FILES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let file = files.get(file).copied().unwrap_or_else(|| {
            let kept: &'static str = Box::leak(file.into());
            files.insert(kept);
            kept
        });
        Loc(Some(SourcePlace { file, line, column, part: Label(0), call: Label(None) }))
    }

    /// The place, reached from the part of the program with this name.
    pub fn within(self, part: &'static str) -> Loc {
        let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = parts.iter().position(|known| *known == part);
        let position = known.unwrap_or_else(|| {
            parts.push(part);
            parts.len() - 1
        });
        let part = Label(u16::try_from(position + 1).unwrap_or(0));
        Loc(self.0.map(|place| SourcePlace { part, ..place }))
    }

    /// The part of the program from [`Loc::within`], if it was named.
    pub fn part(self) -> Option<&'static str> {
        let position = usize::from(self.0?.part.0).checked_sub(1)?;
        PARTS.lock().unwrap_or_else(PoisonError::into_inner).get(position).copied()
    }

    /// The place, reached within the invocation of a library function.
    pub fn called(self, call: Option<Call>) -> Loc {
        Loc(self.0.map(|place| SourcePlace { call: Label(call), ..place }))
    }

    /// The invocation of a library function from [`Loc::called`], if there was one.
    pub fn call(self) -> Option<Call> {
        self.0?.call.0
    }

    /// File, line and column, if known.
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
            part: Label(0),
            call: Label(None),
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
