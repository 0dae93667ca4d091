//! `podracer list`

use anyhow::Result;

use super::Console;
use crate::experiments::BUILT_IN;
use crate::format::count;
use crate::settings::{Overrides, load};

pub(super) fn list(console: &mut Console<'_>) -> Result<u8> {
    let mut text = String::new();
    for one in &BUILT_IN {
        let settings = load(one.name, &Overrides::default())?;
        text += &format!(
            "{:<20} {:<7} {:<10} {:>4} environments, {:>4} steps   {}\n",
            one.name,
            settings.agent.kind(),
            settings.environment.name(),
            settings.shape().0,
            count(settings.train.steps as f64),
            settings.description,
        );
    }
    console.print(&text)?;
    Ok(0)
}
