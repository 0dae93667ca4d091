//! Included files: their children take the place of the `include`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Element, parse};
use crate::{Error, ModelResult};

/// Largest file, in bytes.
const LARGEST: u64 = 16 << 20;

/// The text of a file of moderate size.
pub(super) fn text_of(path: &Path) -> ModelResult<String> {
    let fault = |reason: String| Error::File { path: path.display().to_string(), reason };
    let length = fs::metadata(path).map_err(|error| fault(error.to_string()))?.len();
    if length > LARGEST {
        return Err(fault(format!("{length} bytes: expected at most {LARGEST}")));
    }
    fs::read_to_string(path).map_err(|error| fault(error.to_string()))
}

/// Replaces the includes of a tree that was read from a path.
pub(super) fn expand(root: &mut Element, path: Option<&Path>) -> ModelResult<()> {
    let folder = path.map(|path| path.parent().unwrap_or(Path::new("")).to_path_buf());
    let mut seen = Vec::new();
    seen.extend(path.and_then(|path| fs::canonicalize(path).ok()));
    expand_in(root, folder.as_deref(), &mut seen)
}

fn expand_in(
    element: &mut Element,
    folder: Option<&Path>,
    seen: &mut Vec<PathBuf>,
) -> ModelResult<()> {
    let children = std::mem::take(&mut element.children);
    for mut child in children {
        if child.name == "include" {
            let mut included = included(&child, folder, seen)?;
            expand_in(&mut included, folder, seen)?;
            element.children.append(&mut included.children);
        } else {
            expand_in(&mut child, folder, seen)?;
            element.children.push(child);
        }
    }
    Ok(())
}

fn included(
    include: &Element,
    folder: Option<&Path>,
    seen: &mut Vec<PathBuf>,
) -> ModelResult<Element> {
    if let Some(other) = include.attributes.iter().find(|attribute| attribute.name != "file") {
        return Err(Error::Unknown {
            place: other.place.clone(),
            what: format!("attribute `{}` of `include`", other.name),
            hint: "; `include` has the attribute `file`".to_owned(),
        });
    }
    let Some(file) = include.attribute("file") else {
        return Err(include.invalid("`include` needs the attribute `file`".to_owned()));
    };
    let Some(folder) = folder else {
        let message = "a text includes no files; read the model from a file".to_owned();
        return Err(include.invalid(message));
    };
    let fault = |expected: &str| Error::Value {
        place: file.place.clone(),
        what: "`file` of `include`".to_owned(),
        expected: expected.to_owned(),
        got: file.value.clone(),
    };
    let path = folder.join(&file.value);
    let real = fs::canonicalize(&path).map_err(|_| fault("a file that exists"))?;
    let inside =
        fs::canonicalize(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
            .is_ok_and(|folder| real.starts_with(folder));
    if !inside {
        return Err(fault("a file in the folder of the model"));
    }
    if seen.contains(&real) {
        return Err(fault("a file that is not included yet"));
    }
    seen.push(real);
    parse(&text_of(&path)?, &Arc::from(path.display().to_string().as_str()))
}
