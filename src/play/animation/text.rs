//! The text of the last state, for environments that have one.

use std::io::Write;

use anyhow::{Context, Result};

use super::{Film, Picture};

/// The text of the last picture.
pub(super) struct Text<W: Write> {
    to: W,
    last: Option<String>,
}

impl<W: Write> Text<W> {
    pub(super) fn begin(to: W) -> Self {
        Text { to, last: None }
    }
}

impl<W: Write> Film for Text<W> {
    fn add(&mut self, picture: &Picture) -> Result<()> {
        let missing = "the environment has no text (`Environment::text`), only pictures: write a .gif or .y4m";
        self.last = Some(picture.text.clone().context(missing)?);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.to.write_all(self.last.unwrap_or_default().as_bytes())?;
        Ok(self.to.flush()?)
    }
}
