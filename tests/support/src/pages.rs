//! The pages of `docs/` and their parts: blocks of code, headings, links.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A block of code between two fences.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Number of the opening fence's line, from 1.
    pub line: usize,
    /// The words behind the opening fence, such as `rust,no_run`; empty for a block without.
    pub info: &'a str,
    /// The lines between the fences.
    pub lines: Vec<&'a str>,
}

/// A page's blocks of code, and its other lines with their numbers from 1.
pub fn parts(text: &str) -> (Vec<Block<'_>>, Vec<(usize, &str)>) {
    let (mut blocks, mut prose) = (Vec::<Block>::new(), Vec::new());
    let mut inside = false;
    for (line, number) in text.lines().zip(1..) {
        match (line.trim_start().strip_prefix("```"), blocks.last_mut()) {
            (Some(_), Some(_)) if inside => inside = false,
            (Some(info), _) => {
                inside = true;
                blocks.push(Block { line: number, info: info.trim(), lines: Vec::new() });
            }
            (None, Some(block)) if inside => block.lines.push(line),
            (None, _) => prose.push((number, line)),
        }
    }
    (blocks, prose)
}

/// The targets of a page's links and pictures, with the numbers of their lines. Code between backticks has none.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let (_, prose) = parts(text);
    let mut found = Vec::new();
    for (number, line) in prose {
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            let target = &line[at + 2..];
            if let Some(end) = target.find(')') {
                found.push((number, target[..end].to_owned()));
            }
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub and mdBook name them.
pub fn anchors(text: &str) -> Vec<String> {
    let (_, prose) = parts(text);
    let mut found = Vec::<String>::new();
    for (_, line) in prose {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let again = |taken: &&String| {
            **taken == anchor
                || taken
                    .strip_prefix(&format!("{anchor}-"))
                    .is_some_and(|n| n.parse::<u32>().is_ok())
        };
        match found.iter().filter(again).count() {
            0 => found.push(anchor),
            before => found.push(format!("{anchor}-{before}")),
        }
    }
    found
}

/// The pages in a folder and the folders below, in order.
///
/// # Errors
/// Where a folder cannot be read.
pub fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            pages.extend(below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// A line without the code between its backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}
