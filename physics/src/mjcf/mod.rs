//! MJCF text as a tree of checked elements.
//!
//! The reader stands on `roxmltree`. The crate `mjcf-rs` 0.36 was read and is not used: it skips elements that it does
//! not know, has no places for errors, and resolves the angles and classes that MuJoCo resolves in another order.
//!
//! Every element and attribute of MuJoCo 4.0.0 is listed in `schema.txt`, as read, ignored or not covered. After
//! [`read`] and [`read_file`], a tree has only elements and attributes that are listed as read or ignored.

mod include;
mod schema;
mod value;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::{Error, ModelResult, XmlPlace};

pub(crate) use schema::near;

/// Deepest nesting of elements.
const DEEPEST: usize = 200;

/// An attribute with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Name, as written.
    pub name: String,
    /// Text of the value.
    pub value: String,
    /// Position of the name.
    pub place: XmlPlace,
}

/// An element with its attributes, in the order of the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Name, as written.
    pub name: String,
    /// Attributes, in order.
    pub attributes: Vec<Attribute>,
    /// Child elements, also from included files.
    pub children: Vec<Element>,
    /// Position of the opening bracket.
    pub place: XmlPlace,
}

/// The root `mujoco` of a text, which may include no files.
///
/// # Errors
/// Malformed XML, unknown elements and attributes, and dynamics that are not covered.
pub fn read(text: &str) -> ModelResult<Element> {
    checked(parse(text, &Arc::from("<text>"))?, None)
}

/// The root `mujoco` of a file. Its includes are files of the same folder, or of folders in it.
///
/// # Errors
/// As of [`read`], and files that cannot be read.
pub fn read_file(path: &Path) -> ModelResult<Element> {
    let text = include::text_of(path)?;
    let name = path.display().to_string();
    checked(parse(&text, &Arc::from(name.as_str()))?, Some(path))
}

fn checked(mut root: Element, path: Option<&Path>) -> ModelResult<Element> {
    if root.name != "mujoco" {
        return Err(root.invalid(format!("the root is `{}`: expected `mujoco`", root.name)));
    }
    include::expand(&mut root, path)?;
    schema::check(&root)?;
    Ok(root)
}

/// The root element of a text.
fn parse(text: &str, file: &Arc<str>) -> ModelResult<Element> {
    // Entities multiply text; no model needs them.
    let options = roxmltree::ParsingOptions { allow_dtd: false, ..Default::default() };
    let at = |position: roxmltree::TextPos| XmlPlace {
        file: file.clone(),
        line: position.row,
        column: position.col,
    };
    let document = roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| Error::Xml { place: at(error.pos()), reason: error.to_string() })?;
    let lines = LineStarts::new(text, file);
    element(document.root_element(), &lines, 0)
}

/// Beginnings of the lines of a text.
struct LineStarts<'a> {
    text: &'a str,
    starts: Vec<usize>,
    file: &'a Arc<str>,
}

impl<'a> LineStarts<'a> {
    fn new(text: &'a str, file: &'a Arc<str>) -> Self {
        let after = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i + 1);
        Self { text, starts: [0].into_iter().chain(after).collect(), file }
    }

    fn place(&self, at: usize) -> XmlPlace {
        let line = self.starts.partition_point(|&start| start <= at);
        let start = self.starts[line - 1];
        let column = self.text.get(start..at).map_or(at - start, |before| before.chars().count());
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        XmlPlace { file: self.file.clone(), line: number(line), column: number(column + 1) }
    }
}

fn element(
    node: roxmltree::Node<'_, '_>,
    lines: &LineStarts<'_>,
    depth: usize,
) -> ModelResult<Element> {
    let mut made = Element {
        name: node.tag_name().name().to_owned(),
        attributes: Vec::new(),
        children: Vec::new(),
        place: lines.place(node.range().start),
    };
    if depth > DEEPEST {
        return Err(made.invalid(format!("elements nest deeper than {DEEPEST}")));
    }
    let attribute = |a: roxmltree::Attribute<'_, '_>| Attribute {
        name: a.name().to_owned(),
        value: a.value().to_owned(),
        place: lines.place(a.range().start),
    };
    made.attributes = node.attributes().map(attribute).collect();
    for child in node.children().filter(roxmltree::Node::is_element) {
        made.children.push(element(child, lines, depth + 1)?);
    }
    Ok(made)
}

/// MJCF text of the element and its children.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Element {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = 2 * depth;
        write!(f, "{:indent$}<{}", "", self.name)?;
        for Attribute { name, value, .. } in &self.attributes {
            let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            write!(f, " {name}=\"{value}\"")?;
        }
        if self.children.is_empty() {
            return writeln!(f, "/>");
        }
        writeln!(f, ">")?;
        for child in &self.children {
            child.write(f, depth + 1)?;
        }
        writeln!(f, "{:indent$}</{}>", "", self.name)
    }

    /// The attribute of a name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// The text of an attribute.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.attribute(name).map(|attribute| attribute.value.as_str())
    }

    /// Children of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    pub(crate) fn invalid(&self, message: String) -> Error {
        Error::Invalid { place: self.place.clone(), message }
    }
}
