//! Animations as files: GIF, and YUV4MPEG2 for video encoders and the page of `podracer watch`; and
//! the text of the last state.

mod gif;
mod text;
mod y4m;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::Picture;
use gif::Gif;
use text::Text;
use y4m::Y4m;

/// A format of animations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Animated GIF, with at most 256 colours per picture.
    Gif,
    /// YUV4MPEG2 for video encoders.
    Y4m,
    /// The text of the last state, for an environment that has text.
    Text,
}

impl Format {
    /// The file endings, for messages.
    pub const ENDINGS: &str = ".gif, .y4m or .txt, or be `-`";

    /// The format of a file by the ending of its name; `None` for another ending. It is YUV4MPEG2 for `-`, standard output.
    #[must_use]
    pub fn of(path: &Path) -> Option<Format> {
        if path == Path::new("-") {
            return Some(Format::Y4m);
        }
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "gif" => Some(Format::Gif),
            "y4m" => Some(Format::Y4m),
            "txt" => Some(Format::Text),
            _ => None,
        }
    }
}

/// A writer of an animation's format.
trait Film {
    /// Adds a picture.
    fn add(&mut self, picture: &Picture) -> Result<()>;

    /// Writes the rest.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// The size of an animation's pictures, and their number per second.
struct Look {
    per_second: f64,
    width: u16,
    height: u16,
}

/// An animation, written picture by picture.
pub struct Animation<'a> {
    format: Format,
    /// The output, until the first picture determines the size.
    to: Option<Box<dyn Write + 'a>>,
    film: Option<Box<dyn Film + 'a>>,
    /// Width and height of each picture.
    size: (usize, usize),
    per_second: f64,
    pictures: usize,
}

impl<'a> Animation<'a> {
    /// An animation with `per_second` pictures per second, empty so far.
    pub fn new(to: impl Write + 'a, format: Format, per_second: f64) -> Self {
        let to: Option<Box<dyn Write + 'a>> = Some(Box::new(to));
        Animation { format, to, film: None, size: (0, 0), per_second, pictures: 0 }
    }

    /// Adds a picture, which must have the size of the first picture.
    ///
    /// # Errors
    /// Rejects a picture of another size, or a picture that is too large for the format; errors in
    /// writing.
    pub fn add(&mut self, picture: &Picture) -> Result<()> {
        let size = (picture.width, picture.height);
        if let Some(to) = self.to.take() {
            let side = |pixels| u16::try_from(pixels).context("the picture is too large");
            let (width, height) = (side(size.0)?, side(size.1)?);
            let look = Look { per_second: self.per_second, width, height };
            self.size = size;
            self.film = Some(match self.format {
                Format::Gif => Box::new(Gif::begin(to, &look)?),
                Format::Y4m => Box::new(Y4m::begin(to, &look)?),
                Format::Text => Box::new(Text::begin(to)),
            });
        }
        ensure!(self.size == size, "the pictures have different sizes");
        self.film.as_mut().context("an earlier picture failed")?.add(picture)?;
        self.pictures += 1;
        Ok(())
    }

    /// True after the first picture.
    pub fn has_pictures(&self) -> bool {
        self.pictures > 0
    }

    /// Ends the animation. Returns its number of pictures.
    ///
    /// # Errors
    /// Rejects an animation without pictures; errors in writing.
    pub fn finish(self) -> Result<usize> {
        self.film.context("there is no picture to write")?.finish()?;
        Ok(self.pictures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pictures: &[Picture], format: Format, per_second: f64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut animation = Animation::new(&mut bytes, format, per_second);
        pictures.iter().try_for_each(|picture| animation.add(picture))?;
        assert_eq!(animation.finish()?, pictures.len());
        Ok(bytes)
    }

    /// A red picture and a green one.
    fn two() -> Vec<Picture> {
        let picture = |colour| Picture { height: 4, width: 2, pixels: vec![colour; 8], text: None };
        [[250, 0, 0], [0, 250, 10]].map(picture).to_vec()
    }

    fn read(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut options = ::gif::DecodeOptions::new();
        options.set_color_output(::gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(bytes).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            frames.push((frame.delay, frame.buffer.to_vec()));
        }
        frames
    }

    #[test]
    fn an_animation_has_the_pictures_in_order() {
        let frames = read(&written(&two(), Format::Gif, 20.0).unwrap());
        assert_eq!(frames.len(), 2);
        for ((delay, pixels), colour) in frames.iter().zip([[250, 0, 0, 255], [0, 250, 10, 255]]) {
            assert_eq!((*delay, pixels.len()), (5, 4 * 2 * 4));
            assert!(pixels.as_chunks::<4>().0.iter().all(|pixel| *pixel == colour));
        }
    }

    #[test]
    fn many_colours_are_reduced_to_a_palette() {
        let pixels = (0..1024u32).map(|i| [(i % 256) as u8, (i / 4) as u8, 255]).collect();
        let picture = Picture { height: 32, width: 32, pixels, text: None };
        let bytes = written(std::slice::from_ref(&picture), Format::Gif, 10.0).unwrap();
        let (_, shown) = &read(&bytes)[0];
        for (shown, [r, g, b]) in shown.as_chunks::<4>().0.iter().zip(picture.pixels) {
            let far = |a: u8, b: u8| a.abs_diff(b) > 37;
            assert!(!far(shown[0], r) && !far(shown[1], g) && !far(shown[2], b), "{shown:?}");
        }
    }

    /// A picture that differs in one pixel is a frame of this pixel.
    #[test]
    fn frames_have_what_changes() {
        let first = Picture { height: 9, width: 9, pixels: vec![[7; 3]; 81], text: None };
        let mut second = first.clone();
        second.pixels[9 * 4 + 5] = [200, 0, 0];
        let bytes = written(&[first, second.clone(), second], Format::Gif, 10.0).unwrap();
        let mut decoder = ::gif::DecodeOptions::new().read_info(&bytes[..]).unwrap();
        let mut places = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            places.push((frame.left, frame.top, frame.width, frame.height));
        }
        assert_eq!(places, [(0, 0, 9, 9), (5, 4, 1, 1), (0, 0, 1, 1)]);
    }

    #[test]
    fn pictures_that_are_no_animation_are_refused() {
        let one = Picture { height: 1, width: 1, pixels: vec![[0; 3]], text: None };
        let other = Picture { height: 1, width: 2, pixels: vec![[0; 3]; 2], text: None };
        for format in [Format::Gif, Format::Y4m] {
            let refused =
                |pictures: &[Picture]| written(pictures, format, 10.0).unwrap_err().to_string();
            assert_eq!(refused(&[]), "there is no picture to write");
            let both = [one.clone(), other.clone()];
            assert_eq!(refused(&both), "the pictures have different sizes");
        }
    }

    /// White, black and pure colours in the numbers of BT.601.
    #[test]
    fn a_film_for_encoders_has_brightness_and_colour() {
        let colours = [[255; 3], [0; 3], [255, 0, 0], [0, 255, 0], [0, 0, 255]];
        let expected: [[u8; 3]; 5] =
            [[235, 128, 128], [16, 128, 128], [81, 90, 240], [145, 54, 34], [41, 240, 110]];
        let pictures = colours.map(|colour| Picture {
            height: 1,
            width: 2,
            pixels: vec![colour; 2],
            text: None,
        });
        let mut bytes = Vec::new();
        let mut animation = Animation::new(&mut bytes, Format::Y4m, 29.97);
        pictures.iter().try_for_each(|picture| animation.add(picture)).unwrap();
        animation.finish().unwrap();
        let head = b"YUV4MPEG2 W2 H1 F29970:1000 Ip A1:1 C444\n";
        let frames = bytes.strip_prefix(&head[..]).unwrap().chunks_exact(6 + 6);
        let planes = |frame: &[u8]| {
            let frame = frame.strip_prefix(b"FRAME\n").unwrap();
            [frame[0], frame[2], frame[4]]
        };
        assert_eq!(frames.map(planes).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_ending_of_a_name_is_the_format() {
        let of = |name: &str| Format::of(Path::new(name));
        assert_eq!(of("a.GIF"), Some(Format::Gif));
        assert_eq!([of("a.b.txt"), of("a.y4m")], [Some(Format::Text), Some(Format::Y4m)]);
        assert_eq!([of("a.png"), of("gif")], [None; 2]);
    }
}
