//! A table as CSV.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::columns::Columns;
use super::{Exported, Written};
use crate::files::{Unfinished, cannot_write};

/// Writes a row for each line of the runs' metrics.
///
/// # Errors
/// A folder without a run, and files that cannot be read or written.
pub(crate) fn write(runs: &[PathBuf], path: &Path) -> Result<Vec<Written>> {
    let columns = Columns::of(runs)?;
    let cannot = || cannot_write(path);
    let (file, unfinished) = Unfinished::create(path).with_context(cannot)?;
    let mut writer = csv::Writer::from_writer(file);
    writer.write_record(columns.names().map(plain)).with_context(cannot)?;
    for run in runs {
        let Exported { overview, series, name, .. } = Exported::read(run)?;
        let setting = |key: &String| overview.settings.get(key).cloned().unwrap_or_default();
        let settings: Vec<String> = columns.settings.iter().map(setting).collect();
        for row in series.rows() {
            let number = |name: &str| row.number(name).map_or_else(String::new, |x| x.to_string());
            let first = [name.clone(), overview.experiment.clone(), overview.seed.to_string()];
            let place = [number("iteration"), number("env_steps"), row.seconds.to_string()];
            let metrics = columns.metrics.iter().map(|name| number(name));
            let cells = first.into_iter().chain(place).chain(settings.iter().cloned());
            writer.write_record(cells.chain(metrics).map(plain)).with_context(cannot)?;
        }
    }
    writer.flush().with_context(cannot)?;
    unfinished.finish().with_context(cannot)?;
    Ok(vec![Written { path: path.to_owned(), advice: None }])
}

/// A cell that no spreadsheet interprets as a formula: text that begins like a formula gets an
/// apostrophe in front of it.
fn plain(cell: impl Into<String>) -> String {
    let cell = cell.into();
    let formula =
        cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if formula { format!("'{cell}") } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_a_formula_is_text() {
        assert_eq!(plain("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
        assert_eq!(plain("@SUM(1)"), "'@SUM(1)");
        for number in ["-1.5", "+1e-3", "-inf", "3", "", "text"] {
            assert_eq!(plain(number), number);
        }
    }
}
