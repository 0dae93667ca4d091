//! Pictures on the host, and their text.

use std::fmt::Write;

use podracer_dsl::prelude::TensorType;
use podracer_envs::Space;

use crate::evaluation::AgentView;

/// Greatest width of a picture as text, in columns.
const COLUMNS: usize = 80;
/// Greatest height of a picture as text, in lines.
const LINES: usize = 32;
/// Characters from dark to bright.
const BRIGHTNESS: &[u8] = b" .:-=+*#%@";

/// Colours that a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// None: characters stand for the brightness.
    None,
    /// The 256 colours of xterm.
    Indexed,
    /// Red, green and blue from 0 to 255 each.
    True,
}

/// A picture in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Height in pixels.
    pub height: usize,
    /// Width in pixels.
    pub width: usize,
    /// Red, green and blue of each pixel, row by row.
    pub pixels: Vec<[u8; 3]>,
    /// The state as text, if the environment has text:
    /// [`Environment::text`](podracer_envs::Environment::text).
    pub text: Option<String>,
}

impl Picture {
    /// A picture from bytes: u8 `[height, width, 3]`. `None` for another type or number of bytes.
    #[must_use]
    pub fn new(ty: &TensorType, bytes: &[u8]) -> Option<Self> {
        let &[height, width, 3] = &ty.shape[..] else { return None };
        let pixels = bytes.as_chunks::<3>().0.to_vec();
        (pixels.len() == height * width && !pixels.is_empty()).then_some(Picture {
            height,
            width,
            pixels,
            text: None,
        })
    }

    /// The same picture with text from bytes: u8 `[rows, columns]`.
    #[must_use]
    pub fn with_text(self, ty: &TensorType, bytes: &[u8]) -> Self {
        let &[_, columns] = &ty.shape[..] else { return self };
        let lines = bytes.chunks_exact(columns).map(String::from_utf8_lossy);
        let text = lines.map(|line| format!("{line}\n")).collect();
        Picture { text: Some(text), ..self }
    }

    /// The picture that the agent draws of its computation; `None` for an agent that draws none.
    #[must_use]
    pub fn of_agent(view: &AgentView) -> Option<Self> {
        let picture = view.picture.as_ref()?;
        Picture::new(picture.ty(), picture.bytes())
    }

    /// A picture from the bytes of one observation: an image, where a stack of frames shows its
    /// last frame, or a board of numbers. `None` for other observations.
    #[must_use]
    pub fn of_observation(space: &Space, bytes: &[u8]) -> Option<Self> {
        let (height, width, channels) = match *space.shape() {
            [height, width] => (height, width, 1),
            [height, width, channels] => (height, width, channels),
            _ => return None,
        };
        let image = matches!(space, Space::Pixels { .. });
        let values: Vec<f32> = match image {
            true => bytes.iter().map(|&byte| f32::from(byte) / 255.0).collect(),
            false => {
                let numbers = bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four));
                let scaled = numbers.enumerate().map(|(element, number)| {
                    let (low, high) = space.bounds(element);
                    let range = (high - low) as f32;
                    if range.is_finite() && range > 0.0 {
                        (number - low as f32) / range
                    } else {
                        number
                    }
                });
                scaled.collect()
            }
        };
        if values.len() != height * width * channels || values.is_empty() {
            return None;
        }
        let byte = |value: f32| (value.clamp(0.0, 1.0) * 255.0) as u8;
        let pixels = values.chunks_exact(channels).map(|channels| match *channels {
            [red, green, blue] if image => [red, green, blue].map(byte),
            _ if image => [byte(*channels.last().unwrap_or(&0.0)); 3],
            // For a board, the greatest channel of a cell is shown.
            _ => [byte(channels.iter().copied().fold(0.0, f32::max)); 3],
        });
        Some(Picture { height, width, pixels: pixels.collect(), text: None })
    }

    /// The pixel at a row and column, which must be inside the picture.
    pub(super) fn pixel(&self, row: usize, column: usize) -> [u8; 3] {
        self.pixels[row * self.width + column]
    }

    /// Each pixel `scale` times as high and wide.
    #[must_use]
    pub fn scaled(&self, scale: usize) -> Picture {
        let (height, width) = (self.height * scale, self.width * scale);
        let pixels = (0..height)
            .flat_map(|row| (0..width).map(move |column| (row / scale, column / scale)))
            .map(|(row, column)| self.pixel(row, column));
        Picture { height, width, pixels: pixels.collect(), text: self.text.clone() }
    }

    /// The picture in a smaller size: each pixel is the mean of the pixels that it covers.
    fn averaged(&self, (width, height): (usize, usize)) -> Picture {
        let covered = |place: usize, of: usize, to: usize| {
            let begin = place * of / to;
            begin..((place + 1) * of / to).max(begin + 1)
        };
        let mean = |row: usize, column: usize| {
            let mut sums = [0_usize; 3];
            let (rows, columns) =
                (covered(row, self.height, height), covered(column, self.width, width));
            let number = rows.len() * columns.len();
            for row in rows {
                for pixel in &self.pixels[row * self.width..][columns.clone()] {
                    sums.iter_mut().zip(pixel).for_each(|(sum, part)| *sum += usize::from(*part));
                }
            }
            sums.map(|sum| ((sum + number / 2) / number) as u8)
        };
        let places = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
        let pixels = places.map(|(row, column)| mean(row, column)).collect();
        Picture { height, width, pixels, text: self.text.clone() }
    }

    /// The picture in a size that fits into a width and a height: scaled up by an integer factor of
    /// at most `most`, or averaged.
    #[must_use]
    pub(super) fn fitting(&self, (width, height): (usize, usize), most: usize) -> Picture {
        match (width / self.width).min(height / self.height) {
            0 => {
                let share =
                    (width as f64 / self.width as f64).min(height as f64 / self.height as f64);
                let side = |pixels: usize| ((pixels as f64 * share).round() as usize).max(1);
                self.averaged((side(self.width), side(self.height)))
            }
            scale => self.scaled(scale.min(most)),
        }
    }

    /// The picture with a longer side of at most `side` pixels: scaled up by an integer factor, or
    /// averaged.
    #[must_use]
    pub fn sized(&self, side: usize) -> Picture {
        self.fitting((side, side), side)
    }

    /// The picture as lines of text. With colours a character is two pixels, one above the other.
    #[must_use]
    pub fn text(&self, colours: Colours) -> String {
        // A character is one pixel wide and two high. Cells larger than two by two characters are
        // no clearer.
        let picture = self.fitting((COLUMNS, 2 * LINES), 4);
        let mut text = String::new();
        for row in (0..picture.height).step_by(2) {
            for column in 0..picture.width {
                let upper = picture.pixel(row, column);
                let lower = picture.pixel((row + 1).min(picture.height - 1), column);
                match colours {
                    Colours::None => text.push(brightness(upper, lower)),
                    Colours::Indexed => {
                        let (upper, lower) = (indexed(upper), indexed(lower));
                        let _ = write!(text, "\x1b[38;5;{upper}m\x1b[48;5;{lower}m\u{2580}");
                    }
                    Colours::True => {
                        let ([r, g, b], [x, y, z]) = (upper, lower);
                        let _ =
                            write!(text, "\x1b[38;2;{r};{g};{b}m\x1b[48;2;{x};{y};{z}m\u{2580}");
                    }
                }
            }
            match colours {
                Colours::None => text.truncate(text.trim_end_matches(' ').len()),
                _ => text += "\x1b[0m",
            }
            text.push('\n');
        }
        text
    }
}

/// The character for the mean brightness of two pixels; black is a space.
fn brightness(upper: [u8; 3], lower: [u8; 3]) -> char {
    let weight = |[r, g, b]: [u8; 3]| 3 * u32::from(r) + 6 * u32::from(g) + u32::from(b);
    // At most 2 * 2550.
    let bright = (weight(upper) + weight(lower)) as usize;
    char::from(BRIGHTNESS[bright * BRIGHTNESS.len() / 5101])
}

/// The nearest colour in xterm's cube of six shades per channel, which starts at index 16.
fn indexed(colour: [u8; 3]) -> u32 {
    let [r, g, b] = colour.map(|value| (u32::from(value) * 5 + 127) / 255);
    16 + 36 * r + 6 * g + b
}

#[cfg(test)]
mod tests {
    use podracer_dsl::prelude::U8;

    use super::*;

    /// Black and white above, red and green below.
    fn four() -> Picture {
        let ty = TensorType::new(U8, [2, 2, 3]);
        let bytes = [0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 255, 0];
        Picture::new(&ty, &bytes).unwrap()
    }

    #[test]
    fn without_colours_characters_say_the_brightness() {
        // Each pixel is four characters wide and two lines high.
        let expected = "    @@@@\n    @@@@\n::::++++\n::::++++\n";
        assert_eq!(four().text(Colours::None), expected);
    }

    #[test]
    fn with_colours_a_character_has_two_pixels() {
        let two =
            Picture { height: 2, width: 1, pixels: vec![[255, 0, 0], [0, 0, 255]], text: None };
        let line = "\x1b[38;2;255;0;0m\x1b[48;2;255;0;0m\u{2580}";
        assert!(two.text(Colours::True).starts_with(line));
        let indexed = two.text(Colours::Indexed);
        assert!(indexed.contains("\x1b[38;5;196m") && indexed.contains("\x1b[48;5;21m"));
        assert!(indexed.ends_with("\x1b[0m\n"));
    }

    #[test]
    fn large_pictures_are_thinned_to_a_terminal() {
        let large =
            Picture { height: 210, width: 160, pixels: vec![[9; 3]; 210 * 160], text: None };
        let text = large.text(Colours::None);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(COLUMNS) && text.lines().count() <= LINES);
    }

    #[test]
    fn observations_of_boards_and_images_are_pictures() {
        let board = Space::bounded([1, 2], 0.0, 2.0);
        let bytes = [2.0f32, 0.0].map(f32::to_le_bytes).concat();
        let picture = Picture::of_observation(&board, &bytes).unwrap();
        assert_eq!(picture.pixels, [[255; 3], [0; 3]]);
        // The last of four frames.
        let frames = Picture::of_observation(&Space::pixels([1, 1, 4]), &[1, 2, 3, 7]).unwrap();
        assert_eq!(frames.pixels, [[7; 3]]);
        let colours = Picture::of_observation(&Space::pixels([1, 1, 3]), &[1, 2, 3]).unwrap();
        assert_eq!(colours.pixels, [[1, 2, 3]]);
        assert_eq!(Picture::of_observation(&Space::unbounded([4]), &[0; 16]), None);
        assert_eq!(Picture::of_observation(&board, &[0; 4]), None);
    }
}
