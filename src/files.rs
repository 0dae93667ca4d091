//! Files that appear whole or not at all.

use std::path::Path;

use anyhow::{Context, Result};

/// Writes a file that is whole or as it was before: [`podracer_plugins::write_whole`].
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    podracer_plugins::write_whole(path, bytes).with_context(|| cannot_write(path))
}

pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}
