//! Lines of the user's source, for tables that name them.

use std::collections::BTreeMap;
use std::fs;

use podracer_runtime::SourceLine;

/// Texts of source files read so far.
#[derive(Default)]
pub(crate) struct Sources(BTreeMap<String, Option<String>>);

impl Sources {
    /// The beginning of a source line; empty if the file does not exist here.
    pub(crate) fn line(&mut self, line: &SourceLine) -> String {
        const WIDTH: usize = 60;
        let read = || fs::read_to_string(&line.file).ok();
        let file = self.0.entry(line.file.clone()).or_insert_with(read);
        let text = file.as_ref().and_then(|file| file.lines().nth(line.line as usize - 1));
        text.unwrap_or_default().trim().chars().take(WIDTH).collect()
    }
}
