//! Charts as SVG, PNG or PDF: lines over environment steps or seconds, with bands around them, in
//! panels with one legend.
//!
//! # Invariants
//! - Lines with the same name have the same colour in every panel.
//! - No text or line is cut off: a figure is as high as its legend and its note require.
//! - All formats show the same figure: PDF and PNG are made from the SVG.

mod clock;
mod cut;
mod draw;
mod font;
mod layout;
mod look;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use plotters::prelude::SVGBackend;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

pub(crate) use clock::time_of_day;
pub(crate) use font::Font;
use layout::Layout;

use crate::axis::Point;
use crate::format::last_episodes;

/// A line with a band around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Name in the legend; empty for a line that needs no name.
    pub(crate) name: String,
    /// Positions on the horizontal axis, in order, with the value of each.
    pub(crate) points: Vec<(f64, f64)>,
    /// Lower and upper end of the band at each point; empty for a line without a band.
    pub(crate) band: Vec<(f64, f64)>,
    /// Thin lines of the same colour, such as the runs behind a mean.
    pub(crate) runs: Vec<Vec<(f64, f64)>>,
}

/// A chart of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Panel {
    /// Text above the panel, such as an experiment; may be empty.
    pub(crate) title: String,
    /// Name of the metric, along the vertical axis.
    pub(crate) metric: String,
    pub(crate) lines: Vec<Line>,
}

/// Panels in a grid, with a title above, and a legend and a note below.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Label of the horizontal axis.
    pub(crate) along: String,
    /// True if positions on the horizontal axis are times in seconds since 1970.
    pub(crate) clock: bool,
    /// The panels, row by row.
    pub(crate) panels: Vec<Panel>,
    /// Number of panels side by side.
    pub(crate) columns: usize,
    /// Text below the legend, such as the number of seeds; may be empty.
    pub(crate) note: String,
    pub(crate) style: Style,
}

/// The form of a figure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    /// Width and height of the figure in pixels; `None` for a size by the number of panels.
    pub(crate) size: Option<(u32, u32)>,
    /// Height of the letters in pixels; `None` for a height by the number of panels.
    pub(crate) letters: Option<u32>,
    pub(crate) font: Font,
    /// True for a logarithmic vertical axis; values that are not positive are left out.
    pub(crate) log: bool,
    /// Ends of the horizontal and of the vertical axis; `None` for the ends of the data.
    pub(crate) x: Option<RangeInclusive<f64>>,
    pub(crate) y: Option<RangeInclusive<f64>>,
}

/// The parts of an SVG, with text in this font.
fn tree(svg: &str, font: &Font) -> Result<Tree> {
    let options = Options { fontdb: Arc::clone(&font.fonts), ..Options::default() };
    Tree::from_str(svg, &options).context("the SVG of the picture cannot be read")
}

/// Red, green and blue of the pixels of an opaque SVG, row by row.
pub(crate) fn pixels(svg: &str, font: &Font) -> Result<Vec<[u8; 3]>> {
    let tree = tree(svg, font)?;
    let size = tree.size().to_int_size();
    let mut picture = Pixmap::new(size.width(), size.height())
        .with_context(|| format!("no picture has {} by {} pixels", size.width(), size.height()))?;
    resvg::render(&tree, Transform::identity(), &mut picture.as_mut());
    let (pixels, _) = picture.data().as_chunks::<4>();
    Ok(pixels.iter().map(|&[red, green, blue, _]| [red, green, blue]).collect())
}

/// The learning curve of one run: its mean return over environment steps. The last point is the
/// mean of `episodes` episodes. Points that are not finite are left out.
pub(crate) fn learning_curve(caption: &str, points: &[Point], episodes: u64) -> Result<String> {
    let finite = points.iter().filter(|(_, mean)| mean.is_finite());
    let points = finite.map(|&(steps, mean)| (steps as f64, mean)).collect();
    let metric = format!("mean return, {}", last_episodes(episodes));
    let lines = vec![Line { points, ..Line::default() }];
    let panels = vec![Panel { metric, lines, ..Panel::default() }];
    let (title, along) = (caption.to_owned(), "environment steps".to_owned());
    Figure { title, along, panels, columns: 1, ..Figure::default() }.svg()
}

impl Figure {
    /// The figure as SVG text. A panel without points is an empty chart.
    pub(crate) fn svg(&self) -> Result<String> {
        self.laid_out(&Layout::of(self))
    }

    fn laid_out(&self, layout: &Layout) -> Result<String> {
        let mut text = String::new();
        draw::draw(SVGBackend::with_string(&mut text, layout.size), self, layout)?;
        Ok(text)
    }

    /// The figure as bytes of a PNG file.
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        let layout = Layout::of(self);
        let (width, height) = layout.size;
        let pixels = pixels(&self.laid_out(&layout)?, &self.style.font)?.concat();
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&pixels)?;
        Ok(file)
    }

    /// The figure as bytes of a PDF file of one page, with text as text.
    pub(crate) fn pdf(&self) -> Result<Vec<u8>> {
        let tree = tree(&self.svg()?, &self.style.font)?;
        svg2pdf::to_pdf(&tree, Default::default(), Default::default())
            .map_err(|error| anyhow!("cannot convert the chart to PDF: {error}"))
    }

    /// True if a line has values that a logarithmic axis has no place for.
    pub(crate) fn leaves_out(&self) -> bool {
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        let points = |line: &Line| {
            line.points.iter().chain(line.runs.iter().flatten()).any(|point| point.1 <= 0.0)
        };
        self.style.log && lines.into_iter().any(points)
    }

    /// The different names of the lines, in the order of the panels. The place of a name determines
    /// the look of its lines.
    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !names.contains(&&*line.name) {
                names.push(&*line.name);
            }
        }
        names
    }
}
