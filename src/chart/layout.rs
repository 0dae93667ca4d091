//! The sizes of a figure's parts. The legend is below the panels, where it covers no line.

use super::{Figure, Font};

/// Width and height of a panel if it is alone, and next to others, in pixels.
const ALONE: (u32, u32) = (720, 440);
const IN_GRID: (u32, u32) = (440, 320);
/// Height of letters in pixels in a figure with one column, and with several.
const LETTERS: (u32, u32) = (16, 14);
/// Pixels around a panel.
pub(super) const MARGIN: u32 = 14;
/// Pixels of the line sample next to each name, and between two columns of the legend.
pub(super) const PIECE: u32 = 30;
const BETWEEN: u32 = 24;

/// Sizes in pixels.
pub(super) struct Layout {
    /// Width and height of the figure.
    pub(super) size: (u32, u32),
    /// Height of the letters of labels.
    pub(super) letters: u32,
    /// Height of the title; 0 without a title.
    pub(super) title: u32,
    /// Height of the panels together.
    pub(super) panels: u32,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) legend: Legend,
    /// Lines of the note.
    pub(super) note: Vec<String>,
}

/// Size of a legend.
#[derive(Debug, Default)]
pub(super) struct Legend {
    /// Names, shortened to the width of the figure.
    pub(super) names: Vec<String>,
    /// Number of columns; 0 for a figure without a legend.
    pub(super) columns: u32,
    /// Pixels from one column to the next.
    pub(super) step: u32,
}

impl Layout {
    pub(super) fn of(figure: &Figure) -> Self {
        let columns = figure.columns.clamp(1, figure.panels.len().max(1));
        let rows = figure.panels.len().div_ceil(columns).max(1);
        let (panel, letters) = if columns == 1 { (ALONE, LETTERS.0) } else { (IN_GRID, LETTERS.1) };
        let letters = figure.style.letters.unwrap_or(letters);
        let width = figure.style.size.map_or(panel.0 * columns as u32, |(width, _)| width);
        let title = if figure.title.is_empty() { 0 } else { 2 * letters + 8 };
        let legend = Legend::of(figure, (width, letters));
        let font = &figure.style.font;
        let note = wrapped(&figure.note, |text| font.width(text, letters) <= width - 2 * MARGIN);
        let below = (legend.rows() + note.len() as u32) * row(letters);
        let below = if below > 0 { below + MARGIN } else { 0 };
        let least = rows as u32 * 8 * letters;
        let panels = match figure.style.size {
            Some((_, height)) => height.saturating_sub(title + below).max(least),
            None => panel.1 * rows as u32,
        };
        let size = (width, title + panels + below);
        Layout { size, letters, title, panels, rows, columns, legend, note }
    }
}

/// Height of a line of the legend or of the note.
pub(super) fn row(letters: u32) -> u32 {
    letters + 6
}

impl Legend {
    fn of(figure: &Figure, (width, letters): (u32, u32)) -> Self {
        let names = figure.names();
        if names.len() < 2 && names.iter().all(|name| name.is_empty()) {
            return Legend::default();
        }
        let font = &figure.style.font;
        let most = width.saturating_sub(2 * MARGIN + PIECE + BETWEEN);
        let names: Vec<String> =
            names.into_iter().map(|name| shortened(name, font, letters, most)).collect();
        let widest = names.iter().map(|name| PIECE + font.width(name, letters) + BETWEEN).max();
        let step = widest.unwrap_or(1).min(width - 2 * MARGIN).max(1);
        Legend { columns: ((width - 2 * MARGIN) / step).max(1), step, names }
    }

    pub(super) fn rows(&self) -> u32 {
        if self.columns == 0 { 0 } else { (self.names.len() as u32).div_ceil(self.columns) }
    }
}

/// The name with an ellipsis in its middle if it is wider than `most` pixels: its beginning and its
/// end distinguish it from others.
fn shortened(name: &str, font: &Font, letters: u32, most: u32) -> String {
    let all: Vec<char> = name.chars().collect();
    let mut kept = all.len();
    let mut text = name.to_owned();
    while kept > 8 && font.width(&text, letters) > most {
        kept -= 2;
        let end = &all[all.len() - kept / 2..];
        text = all[..kept - kept / 2].iter().chain(&['…']).chain(end).collect();
    }
    text
}

/// The words in lines that fit.
fn wrapped(text: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if fits(&longer) || line.is_empty() {
                line = longer;
            } else {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            }
        }
        lines.push(line);
    }
    lines
}
