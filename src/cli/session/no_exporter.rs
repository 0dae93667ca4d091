//! The exporter of a program that was built without the feature `prometheus`.

use anyhow::Result;

use super::totals::RunTotals;
use crate::cli::console::Console;
use crate::settings::UsageError;
use crate::training::{CallMetrics, Live};

/// No listener: this program was built without it.
pub(crate) enum Exporter {}

impl Exporter {
    /// Does nothing without an address.
    ///
    /// # Errors
    /// [`UsageError`] for any address.
    pub(crate) fn of(address: Option<&str>, _: &mut Console<'_>) -> Result<Option<Self>> {
        match address {
            None => Ok(None),
            Some(_) => Err(UsageError::new(
                "--metrics: this program was built without the feature `prometheus`; build it with `--features prometheus`".to_owned(),
            )
            .into()),
        }
    }

    pub(crate) fn call(&self, _: &CallMetrics, _: &RunTotals) {
        match *self {}
    }

    pub(crate) fn follow(&self, _: Live) -> Result<()> {
        match *self {}
    }
}
