//! Mistakes in settings: collected, so that all of a file's are reported at once.

use crate::UsageError;

/// The mistakes of a layer of settings.
#[derive(Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    pub(super) fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    /// All mistakes as one error; `Ok` without any.
    pub(super) fn into_result(self) -> Result<(), UsageError> {
        match self.0.as_slice() {
            [] => Ok(()),
            [one] => Err(UsageError::new(one)),
            many => {
                Err(UsageError::new(format!("{} mistakes:\n  {}", many.len(), many.join("\n  "))))
            }
        }
    }
}

/// `; did you mean ...?` with at most three names that are similar to `wrong`, the most similar first; empty without any.
pub(crate) fn suggestion<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let lower = wrong.to_lowercase();
    let mut near: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&lower, name), name))
        .filter(|(score, name)| *score > 0.8 || name.contains(&lower))
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    let near: Vec<String> = near.iter().take(3).map(|(_, name)| format!("`{name}`")).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}
