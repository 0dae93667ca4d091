//! Animated PNG: every colour as it is.

use std::io::Write;

use anyhow::{Context, Result};
use png::{BitDepth, ColorType, Encoder};

use super::{Film, Look};
use crate::play::Picture;

/// Thousandths of a second, in which the time of a picture is counted.
const A_SECOND: u16 = 1000;

/// An animated PNG that repeats. Its head has the number of its pictures, so they are kept until the end, in their own size.
pub(super) struct Apng<W: Write> {
    to: W,
    size: (u16, u16),
    scale: usize,
    delay: u16,
    pictures: Vec<Picture>,
}

impl<W: Write> Apng<W> {
    pub(super) fn begin(to: W, look: &Look) -> Result<Self> {
        let delay = (f64::from(A_SECOND) / look.per_second).round().clamp(1.0, 65_535.0) as u16;
        Ok(Apng { to, size: look.size()?, scale: look.scale, delay, pictures: Vec::new() })
    }
}

impl<W: Write> Film for Apng<W> {
    fn add(&mut self, picture: &Picture) -> Result<()> {
        self.pictures.push(picture.clone());
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let (width, height) = self.size;
        let mut encoder = Encoder::new(&mut self.to, width.into(), height.into());
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        let number = u32::try_from(self.pictures.len()).context("too many pictures")?;
        encoder.set_animated(number, 0)?;
        encoder.set_frame_delay(self.delay, A_SECOND)?;
        let mut writer = encoder.write_header()?;
        for picture in &self.pictures {
            writer.write_image_data(picture.scaled(self.scale).pixels.as_flattened())?;
        }
        writer.finish()?;
        Ok(self.to.flush()?)
    }
}
