//! Animated GIFs.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result, ensure};
use gif::{Encoder, Frame, Repeat};

use super::Picture;

/// Pixels of the longer side that small pictures are scaled up to.
const SIDE: usize = 320;
/// Colours of a palette.
const PALETTE: usize = 256;

/// An animated GIF that repeats, written picture by picture.
pub struct Animation<W: Write> {
    /// Where to write, until the first picture says the size.
    to: Option<W>,
    encoder: Option<Encoder<W>>,
    /// Height and width of each picture.
    size: (usize, usize),
    /// Hundredths of a second between pictures.
    delay: u16,
    pictures: usize,
}

impl<W: Write> Animation<W> {
    /// An animation of so many pictures a second, without any yet.
    pub fn new(to: W, per_second: f64) -> Self {
        let delay = (100.0 / per_second).round().clamp(1.0, f64::from(u16::MAX)) as u16;
        Animation { to: Some(to), encoder: None, size: (0, 0), delay, pictures: 0 }
    }

    /// Adds a picture, which has the size of the first one.
    ///
    /// # Errors
    /// A picture of another size, or one that is too large for the format; errors in writing.
    pub fn add(&mut self, picture: &Picture) -> Result<()> {
        let scale = (SIDE / picture.height.max(picture.width)).max(1);
        let side =
            |pixels: usize| u16::try_from(pixels * scale).context("the picture is too large");
        let (width, height) = (side(picture.width)?, side(picture.height)?);
        if let Some(to) = self.to.take() {
            let mut encoder = Encoder::new(to, width, height, &[])?;
            encoder.set_repeat(Repeat::Infinite)?;
            self.size = (picture.height, picture.width);
            self.encoder = Some(encoder);
        }
        ensure!(self.size == (picture.height, picture.width), "the pictures have different sizes");
        let (palette, indices) = with_palette(&picture.scaled(scale));
        let mut frame = Frame::from_palette_pixels(width, height, indices, palette, None);
        frame.delay = self.delay;
        let encoder = self.encoder.as_mut().context("an earlier picture failed")?;
        encoder.write_frame(&frame)?;
        self.pictures += 1;
        Ok(())
    }

    /// Ends the animation. Returns the number of its pictures.
    ///
    /// # Errors
    /// An animation without pictures; errors in writing.
    pub fn finish(self) -> Result<usize> {
        let encoder = self.encoder.context("there is no picture to write")?;
        encoder.into_inner()?.flush()?;
        Ok(self.pictures)
    }
}

/// The palette of a picture, as bytes, and each pixel's index in it: its own colours, or, if they are too many, those of three
/// bits of red, three of green and two of blue.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pictures: &[Picture], per_second: f64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut animation = Animation::new(&mut bytes, per_second);
        pictures.iter().try_for_each(|picture| animation.add(picture))?;
        assert_eq!(animation.finish()?, pictures.len());
        Ok(bytes)
    }

    fn read(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(bytes).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            frames.push((frame.delay, frame.buffer.to_vec()));
        }
        frames
    }

    #[test]
    fn an_animation_has_the_pictures_in_order() {
        let pictures: Vec<Picture> = [[250, 0, 0], [0, 250, 10]]
            .map(|colour| Picture { height: 4, width: 2, pixels: vec![colour; 8] })
            .to_vec();
        let frames = read(&written(&pictures, 20.0).unwrap());
        assert_eq!(frames.len(), 2);
        for ((delay, pixels), colour) in frames.iter().zip([[250, 0, 0, 255], [0, 250, 10, 255]]) {
            assert_eq!((*delay, pixels.len()), (5, 320 * 160 * 4));
            assert!(pixels.as_chunks::<4>().0.iter().all(|pixel| *pixel == colour));
        }
    }

    #[test]
    fn many_colours_are_reduced_to_a_palette() {
        let pixels = (0..1024u32).map(|i| [(i % 256) as u8, (i / 4) as u8, 255]).collect();
        let picture = Picture { height: 32, width: 32, pixels };
        let bytes = written(std::slice::from_ref(&picture), 10.0).unwrap();
        let (_, shown) = &read(&bytes)[0];
        let expected = picture.scaled(10);
        for (shown, [r, g, b]) in shown.as_chunks::<4>().0.iter().zip(expected.pixels) {
            let far = |a: u8, b: u8| a.abs_diff(b) > 37;
            assert!(!far(shown[0], r) && !far(shown[1], g) && shown[2] == b, "{shown:?}");
        }
    }

    #[test]
    fn pictures_that_are_no_animation_are_refused() {
        let one = Picture { height: 1, width: 1, pixels: vec![[0; 3]] };
        let other = Picture { height: 1, width: 2, pixels: vec![[0; 3]; 2] };
        let refused = |pictures: &[Picture]| written(pictures, 10.0).unwrap_err().to_string();
        assert_eq!(refused(&[]), "there is no picture to write");
        assert_eq!(refused(&[one, other]), "the pictures have different sizes");
    }
}
