//! GIF animations, with at most 256 colours per picture.

use std::collections::BTreeMap;
use std::io::Write;
use std::mem::replace;

use anyhow::Result;
use color_quant::NeuQuant;
use gif::{DisposalMethod, Encoder, Frame, Repeat};

use super::{Film, Look};
use crate::play::Picture;

/// Number of colours of a palette, except the transparent colour.
const PALETTE: usize = 255;
/// Number of the most frequent colours that a palette with other approximations has exactly.
const EXACT: usize = 128;

/// An animated GIF that repeats. A frame has the part of the picture that differs from the picture
/// before.
pub(super) struct Gif<W: Write> {
    encoder: Encoder<W>,
    /// Hundredths of a second between pictures.
    delay: u16,
    /// The pixels of the last picture; empty before the first.
    last: Vec<[u8; 3]>,
}

impl<W: Write> Gif<W> {
    pub(super) fn begin(to: W, look: &Look) -> Result<Self> {
        let mut encoder = Encoder::new(to, look.width, look.height, &[])?;
        encoder.set_repeat(Repeat::Infinite)?;
        let delay = (100.0 / look.per_second).round().clamp(1.0, f64::from(u16::MAX)) as u16;
        Ok(Gif { encoder, delay, last: Vec::new() })
    }
}

impl<W: Write> Film for Gif<W> {
    fn add(&mut self, picture: &Picture) -> Result<()> {
        let last = replace(&mut self.last, picture.pixels.clone());
        let changed = |place: usize| last.get(place) != Some(&picture.pixels[place]);
        let places = (0..picture.pixels.len()).filter(|&place| changed(place));
        let (mut left, mut right, mut top, mut bottom) = (picture.width, 0, picture.height, 0);
        for (row, column) in places.map(|place| (place / picture.width, place % picture.width)) {
            (left, right) = (left.min(column), right.max(column + 1));
            (top, bottom) = (top.min(row), bottom.max(row + 1));
        }
        if left >= right {
            // A frame that changes nothing lasts as long as the others.
            (left, right, top, bottom) = (0, 1, 0, 1);
        }
        let part: Vec<Option<[u8; 3]>> = (top..bottom)
            .flat_map(|row| (left..right).map(move |column| row * picture.width + column))
            .map(|place| changed(place).then_some(picture.pixels[place]))
            .collect();
        let (palette, indices, transparent) = with_palette(&part);
        let [left, top, width, height] =
            [left, top, right - left, bottom - top].map(|pixels| pixels as u16);
        let mut frame = Frame::from_palette_pixels(width, height, indices, palette, transparent);
        (frame.left, frame.top, frame.delay) = (left, top, self.delay);
        frame.dispose = DisposalMethod::Keep;
        Ok(self.encoder.write_frame(&frame)?)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self.encoder.into_inner()?.flush()?)
    }
}

/// The palette of the pixels that change, as bytes, and each pixel's index in it. If there are too
/// many colours, it has the most frequent colours and approximations of the others. If a pixel does
/// not change, one more colour at the end is transparent.
fn with_palette(pixels: &[Option<[u8; 3]>]) -> (Vec<u8>, Vec<u8>, Option<u8>) {
    let mut counts = BTreeMap::<[u8; 3], usize>::new();
    for &pixel in pixels.iter().flatten() {
        *counts.entry(pixel).or_default() += 1;
    }
    let mut colours: Vec<[u8; 3]> = counts.keys().copied().collect();
    if colours.len() > PALETTE {
        colours.sort_by_key(|colour| std::cmp::Reverse(counts[colour]));
        let others = colours.split_off(EXACT);
        let samples: Vec<u8> =
            others.iter().flat_map(|&[red, green, blue]| [red, green, blue, 255]).collect();
        let approximate = NeuQuant::new(1, PALETTE - EXACT, &samples);
        colours.extend(approximate.color_map_rgb().as_chunks::<3>().0);
    }
    let nearest = |colour: [u8; 3]| {
        let distance = |other: &[u8; 3]| -> u32 {
            let parts = colour.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2));
            parts.sum()
        };
        let places = 0..colours.len();
        places.min_by_key(|&place| distance(&colours[place])).unwrap_or_default() as u8
    };
    let indices: BTreeMap<[u8; 3], u8> =
        counts.keys().map(|&colour| (colour, nearest(colour))).collect();
    // Small pictures have small palettes, so that their indices are short.
    let behind = colours.len() as u8;
    let index = |pixel: &Option<[u8; 3]>| pixel.map_or(behind, |pixel| indices[&pixel]);
    let indices = pixels.iter().map(index).collect();
    let transparent = pixels.iter().any(Option::is_none).then_some(behind);
    colours.extend(transparent.map(|_| [0; 3]));
    (colours.concat(), indices, transparent)
}
