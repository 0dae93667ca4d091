//! The agent's view of a state, drawn next to the state's picture.

use anyhow::{Result, anyhow};
use plotters::prelude::{
    Color, DrawingBackend, IntoDrawingArea, RGBColor, Rectangle, SVGBackend, Text,
};
use podracer_envs::render::Colour;

use super::Picture;
use super::rows::rows;
use crate::chart::{Font, pixels};
use crate::evaluation::AgentView;
use crate::format::count;

/// Width of the panel and its least height, in pixels.
const SIZE: (usize, usize) = (280, 200);
/// Height of a row, and margin around the panel.
const ROW: usize = 20;
const MARGIN: usize = 10;
/// Height of the letters.
const LETTERS: u32 = 15;
/// Pixels of the longest bar, between bars and the text next to them, and of the numbers.
const BAR: i32 = 72;
const GAP: i32 = 8;
const NUMBER: i32 = 42;

/// Panels next to pictures, all with the size of the first.
pub struct Panel {
    /// Greatest number of pixels of the longer side when pictures are scaled up.
    side: usize,
    /// Height of the part below for the agent's own picture; `None` before the first view.
    below: Option<usize>,
}

impl Panel {
    /// Panels next to pictures with `side` pixels of the longer side.
    pub fn new(side: usize) -> Self {
        Panel { side, below: None }
    }

    /// A picture with the agent's view of the state to its right; the panel is empty for a state
    /// without a view.
    ///
    /// # Errors
    /// An error if text cannot be drawn.
    pub fn beside(&mut self, picture: &Picture, view: Option<&AgentView>) -> Result<Picture> {
        let left = picture.fitting((self.side, self.side), self.side);
        let height = left.height.max(SIZE.1);
        let (width, most) = (SIZE.0, (SIZE.0 - 2 * MARGIN, (height - 2 * MARGIN) / 2));
        let own = view.and_then(Picture::of_agent).map(|own| own.fitting(most, 8));
        let below = own.as_ref().map_or(0, |own| own.height + MARGIN);
        let below = *self.below.get_or_insert(below);

        let mut svg = String::new();
        let backend = SVGBackend::with_string(&mut svg, (width as u32, height as u32));
        let rows = (height - below - 2 * MARGIN) / ROW;
        write(backend, view, rows).map_err(|error| anyhow!("{error}"))?;
        let panel = pixels(&svg, &Font::default())?;

        let mut pixels = Vec::with_capacity((left.width + width) * height);
        for row in 0..height {
            match row < left.height {
                true => pixels.extend(&left.pixels[row * left.width..][..left.width]),
                false => pixels.resize(pixels.len() + left.width, Colour::BLACK.0),
            }
            pixels.extend(&panel[row * width..][..width]);
        }
        let mut all =
            Picture { height, width: left.width + width, pixels, text: left.text.clone() };
        if let Some(own) = own {
            let at = (height.saturating_sub(below), left.width + MARGIN);
            paste(&own, &mut all, at);
        }
        Ok(all)
    }
}

/// Least width of a picture with a caption, in pixels.
const LEAST_WIDTH: usize = 140;

/// The picture above a bar with the number of steps and the return so far; the picture alone if it
/// is too narrow for the text.
///
/// # Errors
/// An error if text cannot be drawn.
pub fn captioned(picture: &Picture, steps: u64, episode_return: f32) -> Result<Picture> {
    let Picture { width, height, .. } = *picture;
    if width < LEAST_WIDTH {
        return Ok(picture.clone());
    }
    let Colour([red, green, blue]) = Colour::BLACK;
    let Colour([r, g, b]) = Colour::WHITE;
    let bar = ROW + 6;
    let svg = format!(
        "<svg width=\"{width}\" height=\"{bar}\" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"{LETTERS}\">\
         <rect width=\"{width}\" height=\"{bar}\" fill=\"rgb({red},{green},{blue})\"/>\
         <g fill=\"rgb({r},{g},{b})\"><text x=\"{MARGIN}\" y=\"18\">step {steps}</text>\
         <text x=\"{}\" y=\"18\" text-anchor=\"end\">return {episode_return}</text></g></svg>",
        width - MARGIN
    );
    let mut all = picture.clone();
    all.pixels.extend(pixels(&svg, &Font::default())?);
    Ok(Picture { height: height + bar, ..all })
}

/// Pastes a picture over another, with its upper left corner at a row and column. Parts outside are
/// cut off.
fn paste(picture: &Picture, over: &mut Picture, (row, column): (usize, usize)) {
    let width = picture.width.min(over.width.saturating_sub(column));
    for (line, pixels) in picture.pixels.chunks_exact(picture.width).enumerate() {
        let start = (row + line) * over.width + column;
        if let Some(place) = over.pixels.get_mut(start..start + width) {
            place.copy_from_slice(&pixels[..width]);
        }
    }
}

/// Writes value and rows of a view.
fn write<B: DrawingBackend>(
    to: B,
    view: Option<&AgentView>,
    most: usize,
) -> Result<(), Box<dyn std::error::Error>>
where
    B::ErrorType: 'static,
{
    let colour = |Colour([r, g, b])| RGBColor(r, g, b);
    let area = to.into_drawing_area();
    area.fill(&colour(Colour::BLACK))?;
    let Some(view) = view else { return Ok(area.present()?) };
    let mut line = MARGIN as i32;
    let next = |line: &mut i32| std::mem::replace(line, *line + ROW as i32);
    let letters = Font::default();
    let font = |of| letters.letters(LETTERS).color(&colour(of));
    if let Some(value) = view.value {
        let text = format!("value {}", count(value));
        let place = (MARGIN as i32, next(&mut line));
        area.draw(&Text::new(text, place, font(Colour::WHITE)))?;
    }
    let left = most.saturating_sub(usize::from(view.value.is_some()));
    let rows = rows(view, left);
    // Bars begin behind the longest label, and leave room for two numbers.
    let widest = rows.iter().map(|row| letters.width(&row.label, LETTERS) as i32).max();
    let bars = (MARGIN as i32 + widest.unwrap_or(0) + GAP).min(SIZE.0 as i32 - BAR - 10 * GAP);
    for row in rows {
        let top = next(&mut line);
        let of = if row.taken { Colour::ORANGE } else { Colour::WHITE };
        area.draw(&Text::new(row.label, (MARGIN as i32, top), font(of)))?;
        for (column, number) in row.number.split("  ").enumerate() {
            let left = bars + BAR + GAP + column as i32 * NUMBER;
            area.draw(&Text::new(number, (left, top), font(of)))?;
        }
        let of = if row.taken { Colour::ORANGE } else { Colour::BLUE };
        let length = row.bar.clamp(0.0, 1.0) * f64::from(BAR);
        let corners = [(bars, top + 1), (bars + length as i32, top + 12)];
        area.draw(&Rectangle::new(corners, colour(of).filled()))?;
    }
    Ok(area.present()?)
}

#[cfg(test)]
mod tests {
    use podracer_dsl::prelude::{TensorType, U8};
    use podracer_runtime::Array;

    use super::*;

    #[test]
    fn the_panel_is_beside_the_picture_and_has_the_agents_own_below() {
        let picture = Picture { height: 10, width: 10, pixels: vec![[9; 3]; 100], text: None };
        let green = Array::from_bytes(TensorType::new(U8, [1, 2, 3]), [0, 255, 0, 0, 255, 0]);
        let view = AgentView {
            action: vec![1.0],
            discrete: true,
            value: Some(1.0),
            probabilities: vec![0.0, 1.0],
            picture: green.ok(),
            ..AgentView::default()
        };
        let mut panel = Panel::new(240);
        let with = panel.beside(&picture, Some(&view)).unwrap();
        let without = panel.beside(&picture, None).unwrap();
        assert_eq!((with.height, with.width), (240, 240 + SIZE.0));
        assert_eq!((without.height, without.width), (with.height, with.width));
        assert_eq!(with.pixel(239, 239), [9; 3]);
        assert_eq!(without.pixel(0, 240), Colour::BLACK.0);
        let count = |colour: [u8; 3], of: &Picture| {
            of.pixels.iter().filter(|&&pixel| pixel == colour).count()
        };
        // The whole bar of the action taken; the other bar has length 0.
        let bar = BAR as usize * 10;
        assert!(count(Colour::ORANGE.0, &with) >= bar, "{}", count(Colour::ORANGE.0, &with));
        assert_eq!(count(Colour::ORANGE.0, &without), 0);
        // Two pixels, eight times as high and wide.
        assert_eq!(count([0, 255, 0], &with), 2 * 64);
    }
}
