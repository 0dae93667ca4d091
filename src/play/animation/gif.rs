//! GIF animations, with at most 256 colours per picture.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use gif::{Encoder, Frame, Repeat};

use super::{Film, Look};
use crate::play::Picture;

/// Number of colours of a palette.
const PALETTE: usize = 256;

/// An animated GIF that repeats.
pub(super) struct Gif<W: Write> {
    encoder: Encoder<W>,
    scale: usize,
    /// Hundredths of a second between pictures.
    delay: u16,
}

impl<W: Write> Gif<W> {
    pub(super) fn begin(to: W, look: &Look) -> Result<Self> {
        let (width, height) = look.size()?;
        let mut encoder = Encoder::new(to, width, height, &[])?;
        encoder.set_repeat(Repeat::Infinite)?;
        let delay = (100.0 / look.per_second).round().clamp(1.0, f64::from(u16::MAX)) as u16;
        Ok(Gif { encoder, scale: look.scale, delay })
    }
}

impl<W: Write> Film for Gif<W> {
    fn add(&mut self, picture: &Picture) -> Result<()> {
        let scaled = picture.scaled(self.scale);
        let (palette, indices) = with_palette(&scaled);
        let (width, height) = (scaled.width as u16, scaled.height as u16);
        let mut frame = Frame::from_palette_pixels(width, height, indices, palette, None);
        frame.delay = self.delay;
        Ok(self.encoder.write_frame(&frame)?)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self.encoder.into_inner()?.flush()?)
    }
}

/// The palette of a picture, as bytes, and each pixel's index in it. It has the picture's own
/// colours, or, if there are too many, all colours with three bits of red, three of green and two
/// of blue.
fn with_palette(picture: &Picture) -> (Vec<u8>, Vec<u8>) {
    let mut indices = BTreeMap::new();
    for &pixel in &picture.pixels {
        let next = indices.len();
        indices.entry(pixel).or_insert(next);
        if indices.len() > PALETTE {
            return reduced(picture);
        }
    }
    let mut palette = vec![0; 3 * indices.len()];
    for (colour, &index) in &indices {
        palette[3 * index..3 * index + 3].copy_from_slice(colour);
    }
    (palette, picture.pixels.iter().map(|pixel| indices[pixel] as u8).collect())
}

fn reduced(picture: &Picture) -> (Vec<u8>, Vec<u8>) {
    let palette = (0..=u8::MAX).flat_map(|index| {
        let shade = |bits: u8, levels: u32| (u32::from(bits) * 255 / levels) as u8;
        [shade(index >> 5, 7), shade((index >> 2) & 7, 7), shade(index & 3, 3)]
    });
    let index = |&[r, g, b]: &[u8; 3]| (r & 0xe0) | ((g & 0xe0) >> 3) | (b >> 6);
    (palette.collect(), picture.pixels.iter().map(index).collect())
}
