//! A table as CSV.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::columns::Columns;
use super::{Exported, Written};

/// Writes a row for each line of the runs' metrics.
///
/// # Errors
/// A folder without a run, and files that cannot be read or written.
pub(crate) fn write(runs: &[PathBuf], path: &Path) -> Result<Vec<Written>> {
    let columns = Columns::of(runs)?;
    let cannot = || format!("cannot write `{}`", path.display());
    let mut writer = csv::Writer::from_path(path).with_context(cannot)?;
    writer.write_record(columns.names()).with_context(cannot)?;
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
            writer.write_record(cells.chain(metrics)).with_context(cannot)?;
        }
    }
    writer.flush().with_context(cannot)?;
    Ok(vec![Written { path: path.to_owned(), advice: None }])
}
