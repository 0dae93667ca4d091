//! Key paths: the names of leaves in a tree, such as `params.layers[0].weight`.

use std::fmt;

/// A step of a key path, from a tree to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A field of a struct: `.weight`.
    Field(&'static str),
    /// A position in a tuple: `.0`.
    Position(usize),
    /// A position in an array or `Vec`: `[0]`. The inside of `Some` is `[0]` too.
    Index(usize),
}

/// A key path: the steps from the root of a tree to a leaf. Prints as a Rust expression, without
/// the leading dot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(pub Vec<Step>);

impl Path {
    /// The empty path, of the root.
    pub fn root() -> Path {
        Path::default()
    }

    /// Runs `f` with the path extended by a step.
    pub fn within<R>(&mut self, step: Step, f: impl FnOnce(&mut Path) -> R) -> R {
        self.0.push(step);
        let result = f(self);
        self.0.pop();
        result
    }

    /// Runs `f` with the path extended by another path.
    pub fn through<R>(&mut self, below: &Path, f: impl FnOnce(&mut Path) -> R) -> R {
        let here = self.0.len();
        self.0.extend(&below.0);
        let result = f(self);
        self.0.truncate(here);
        result
    }

    /// The path as text, or the name `root` if the path is empty.
    pub fn or(&self, root: &str) -> String {
        if self.0.is_empty() { root.to_owned() } else { self.to_string() }
    }

    /// The path as text with the root's name before it: `carry.0.velocity`.
    pub fn under(&self, root: &str) -> String {
        match self.0.first() {
            None => root.to_string(),
            Some(Step::Index(_)) => format!("{root}{self}"),
            Some(_) => format!("{root}.{self}"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) => write!(f, "{}{name}", if i > 0 { "." } else { "" })?,
                Step::Position(position) => {
                    write!(f, "{}{position}", if i > 0 { "." } else { "" })?
                }
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
