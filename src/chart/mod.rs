//! Charts as SVG or PNG: lines over environment steps or seconds, with bands around them. Gridlines
//! are horizontal only.

mod look;

use std::ops::Range;
use std::sync::Once;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::element::{DashedPathElement, PathElement, Polygon, Text};
use plotters::prelude::{
    BitMapBackend, ChartBuilder, Color, DashedLineSeries, DrawingArea, DrawingBackend, FontDesc,
    FontStyle, IntoDrawingArea, LineSeries, RGBColor, SVGBackend, TRANSPARENT, TextStyle, WHITE,
};
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use look::look;

use crate::axis;
use crate::axis::Point;
use crate::format::{count, last_episodes};

/// Least width of a chart, and height of each of its panels without the legend, in pixels.
const SIZE: (u32, u32) = (720, 440);
/// Pixels around a panel.
const MARGIN: u32 = 14;
/// Pixels of a row of the legend, of the line sample next to each name, and between two columns.
const ROW: u32 = 22;
const PIECE: u32 = 30;
const BETWEEN: u32 = 24;

/// Colour of the horizontal lines.
const FAINT: RGBColor = RGBColor(225, 225, 225);

/// The font: Ubuntu Light in PNG, and in SVG the reader's font of this name.
const SANS: &str = "sans-serif";

/// Font of labels, and its size.
const TEXT: (&str, u32) = (SANS, 16);

/// A line with a band around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Name in the legend.
    pub(crate) name: String,
    /// Positions on the horizontal axis, in order, with the value of each.
    pub(crate) points: Vec<(f64, f64)>,
    /// Lower and upper end of the band at each point; empty for a line without a band.
    pub(crate) band: Vec<(f64, f64)>,
}

/// A chart of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Panel {
    /// Name of the metric, along the vertical axis.
    pub(crate) metric: String,
    pub(crate) lines: Vec<Line>,
}

/// The learning curve of one run: its mean return over environment steps. The last point is the
/// mean of `episodes` episodes. Points that are not finite are left out.
pub(crate) fn learning_curve(caption: &str, points: &[Point], episodes: u64) -> Result<String> {
    let finite = points.iter().filter(|(_, mean)| mean.is_finite());
    let points = finite.map(|&(steps, mean)| (steps as f64, mean)).collect();
    let metric = format!("mean return, {}", last_episodes(episodes));
    let lines = vec![Line { points, ..Line::default() }];
    svg(caption, "environment steps", &[Panel { metric, lines }])
}

/// Panels below each other, as SVG text. A panel without points is an empty chart.
pub(crate) fn svg(caption: &str, along: &str, panels: &[Panel]) -> Result<String> {
    let mut text = String::new();
    let layout = ChartLayout::of(panels);
    draw(SVGBackend::with_string(&mut text, layout.size()), caption, along, panels, &layout)?;
    Ok(text)
}

/// The panels as bytes of a PNG file.
pub(crate) fn png(caption: &str, along: &str, panels: &[Panel]) -> Result<Vec<u8>> {
    let layout = ChartLayout::of(panels);
    let (width, height) = layout.size();
    let mut pixels = vec![0; (width * height * 3) as usize];
    let to = BitMapBackend::with_buffer(&mut pixels, (width, height));
    draw(to, caption, along, panels, &layout)?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(file)
}

/// The size of a chart. A legend is below its panel, where it covers no line, and increases the
/// height of the chart.
struct ChartLayout {
    /// Width of the chart in pixels.
    width: u32,
    /// The legend of each panel.
    legends: Vec<Legend>,
}

/// Size of a legend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Legend {
    /// Columns and rows; 0 for a panel without a legend.
    columns: u32,
    rows: u32,
    /// Pixels from one column to the next.
    step: u32,
}

impl ChartLayout {
    fn of(panels: &[Panel]) -> Self {
        register();
        let widest = |panel: &Panel| {
            let pixels = panel.lines.iter().map(|line| PIECE + text_width(&line.name) + BETWEEN);
            pixels.max().filter(|_| panel.has_legend())
        };
        let widest: Vec<Option<u32>> = panels.iter().map(widest).collect();
        let most = widest.iter().flatten().max().copied().unwrap_or(0);
        let width = SIZE.0.max(most + 2 * MARGIN);
        let legend = |(panel, step): (&Panel, &Option<u32>)| {
            let Some(step) = *step else { return Legend::default() };
            let columns = (width - 2 * MARGIN) / step;
            Legend { columns, rows: (panel.lines.len() as u32).div_ceil(columns), step }
        };
        ChartLayout { width, legends: panels.iter().zip(&widest).map(legend).collect() }
    }

    /// Width and height of the chart.
    fn size(&self) -> (u32, u32) {
        (self.width, self.legends.iter().map(Legend::panel_height).sum::<u32>().max(SIZE.1))
    }
}

impl Legend {
    /// Height of the panel with this legend.
    fn panel_height(&self) -> u32 {
        SIZE.1 + if self.rows > 0 { self.rows * ROW + MARGIN } else { 0 }
    }
}

impl Panel {
    /// True unless the panel has a single line without a band, which needs no name.
    fn has_legend(&self) -> bool {
        self.lines.len() > 1 || self.lines.iter().any(|line| !line.band.is_empty())
    }
}

/// Greatest width of a text in pixels, because the SVG may be displayed with a wider font.
fn text_width(text: &str) -> u32 {
    let measured = FontDesc::from(TEXT).box_size(text).map(|(width, _)| width);
    measured.unwrap_or(8 * text.chars().count() as u32) * 6 / 5
}

/// The charts' font in this size, for other pictures with text.
pub(crate) fn text_font(size: u32) -> FontDesc<'static> {
    register();
    FontDesc::from((SANS, size))
}

/// Registers the font, once.
fn register() {
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        let known = register_font(SANS, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
        assert!(known.is_ok(), "the font is one that can be read");
    });
}

fn draw<B: DrawingBackend>(
    to: B,
    caption: &str,
    along: &str,
    panels: &[Panel],
    layout: &ChartLayout,
) -> Result<()>
where
    B::ErrorType: 'static,
{
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        let mut rest = to.into_drawing_area();
        rest.fill(&WHITE)?;
        let mut caption = caption;
        for (panel, legend) in panels.iter().zip(&layout.legends) {
            let (part, below) = rest.split_vertically(legend.panel_height());
            let (part, names) = part.split_vertically(SIZE.1);
            draw_panel(&part, caption, along, panel)?;
            draw_legend(&names, panel, *legend)?;
            (rest, caption) = (below, "");
        }
        rest.present()?;
        Ok(())
    };
    // Drawing into memory fails only by a mistake in this code; the library's error type is not
    // `Sync`.
    draw().map_err(|error| anyhow!("cannot draw the chart: {error}"))
}

/// The names of a panel's lines, row by row, each next to a sample of its line.
fn draw_legend<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    panel: &Panel,
    legend: Legend,
) -> Result<(), Box<dyn std::error::Error>>
where
    B::ErrorType: 'static,
{
    if legend.rows == 0 {
        return Ok(());
    }
    let font = TextStyle::from(TEXT).pos(Pos::new(HPos::Left, VPos::Center));
    for (number, line) in panel.lines.iter().enumerate() {
        let (column, row) = (number as u32 % legend.columns, number as u32 / legend.columns);
        let x = (MARGIN + column * legend.step) as i32;
        let y = (row * ROW + ROW / 2) as i32;
        let piece = [(x, y), (x + PIECE as i32 - 6, y)];
        match look(number) {
            (style, None) => area.draw(&PathElement::new(piece, style))?,
            (style, Some((drawn, between))) => {
                area.draw(&DashedPathElement::new(piece, drawn, between, style))?;
            }
        }
        area.draw(&Text::new(line.name.as_str(), (x + PIECE as i32, y), font.clone()))?;
    }
    Ok(())
}

/// A label of the vertical axis, with enough decimals to differ from its neighbours: `0.005` if the
/// axis has the length 0.03.
fn label(value: f64, length: f64) -> String {
    // Labels are multiples of a step, so a value such as 1e-18 stands for zero.
    let value = if value.abs() < length * 1e-9 { 0.0 } else { value };
    match 1.0 - length.log10().floor() {
        decimals if decimals > 6.0 && value != 0.0 => format!("{value:.1e}"),
        decimals if decimals > 0.0 && value != 0.0 && value.abs() < 1000.0 => {
            format!("{value:.0$}", decimals as usize)
        }
        _ => count(value),
    }
}

fn draw_panel<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    caption: &str,
    along: &str,
    panel: &Panel,
) -> Result<(), Box<dyn std::error::Error>>
where
    B::ErrorType: 'static,
{
    let ends = panel.lines.iter().filter_map(|line| Some(line.points.last()?.0));
    let width = 0.0..ends.fold(0.0, f64::max).max(1.0);
    let height = range(panel.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)));
    let mut chart = ChartBuilder::on(area);
    chart.margin(MARGIN).x_label_area_size(44).y_label_area_size(64);
    if !caption.is_empty() {
        chart.caption(caption, (SANS, 22));
    }
    let mut chart = chart.build_cartesian_2d(width, height.clone())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .x_labels(6)
        .y_labels(6)
        .x_desc(along)
        .y_desc(panel.metric.as_str())
        .x_label_formatter(&|along| count(*along))
        .y_label_formatter(&|value| label(*value, height.end - height.start))
        .label_style(TEXT)
        .axis_desc_style(TEXT)
        .draw()?;
    // Lines are drawn over all bands, and the first line over the others.
    for (number, line) in panel.lines.iter().enumerate() {
        let along = || line.points.iter().map(|point| point.0);
        let inside = |value: f64| value.clamp(height.start, height.end);
        let upper = along().zip(line.band.iter().map(|band| inside(band.1)));
        let lower = along().zip(line.band.iter().map(|band| inside(band.0)));
        let mut outline: Vec<(f64, f64)> = lower.collect();
        outline.reverse();
        let outline: Vec<(f64, f64)> = upper.chain(outline).collect();
        if !outline.is_empty() {
            let (style, _) = look(number);
            chart.draw_series([Polygon::new(outline, style.color.mix(0.18))])?;
        }
    }
    for (number, line) in panel.lines.iter().enumerate().rev() {
        let points = line.points.clone();
        match look(number) {
            (style, None) => chart.draw_series(LineSeries::new(points, style))?,
            (style, Some((drawn, between))) => {
                chart.draw_series(DashedLineSeries::new(points, drawn, between, style))?
            }
        };
    }
    Ok(())
}

/// The vertical range: the ends of the axis, with a margin at ends other than 0.
fn range(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let air = ((high - low) * 0.05).max(high.abs() * 1e-3).max(1e-3);
    match axis::ends(values) {
        None => 0.0..1.0,
        Some((0.0, high)) => 0.0..high + air,
        Some((low, 0.0)) => low - air..0.0,
        Some((low, high)) => low - air..high + air,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn the_range_begins_at_0_where_that_costs_little() {
        let of = |values: &[f64]| range(values.iter().copied());
        assert_eq!(of(&[]), 0.0..1.0);
        assert_eq!(of(&[20.0, 500.0]), 0.0..524.0);
        assert_eq!(of(&[-1200.0, -150.0]), -1252.5..0.0);
        // Otherwise half of the chart would be empty.
        assert_eq!(of(&[490.0, 500.0]), 489.5..500.5);
        assert_eq!(of(&[-1.0, 1.0]), -1.1..1.1);
        assert_eq!(of(&[7.0]), 6.993..7.007);
    }

    #[test]
    fn a_chart_has_few_lines_behind_the_curve() {
        let points: Vec<Point> = (0..100).map(|step| (step * 1000, step as f64)).collect();
        let text = learning_curve("catch-ppo, seed 0", &points, 100).unwrap();
        assert!(text.contains("catch-ppo, seed 0") && text.contains("environment steps"), "{text}");
        let faint = text.matches("#E1E1E1").count();
        assert!((3..=12).contains(&faint), "{faint} lines: {text}");
    }

    #[test]
    fn every_curve_can_be_drawn() {
        for points in
            [&[][..], &[(0, 1.0)], &[(1, 0.0), (2, 0.0)], &[(1, f64::NAN), (5, -1e9), (9, 1e9)]]
        {
            let svg = learning_curve("a <run> & more", points, 7).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{points:?}");
        }
    }

    /// Horizontal lines at the heights 1, 2, .., each with a name, as SVG.
    fn lines(number: usize) -> String {
        let line = |number: usize| Line {
            name: format!("setting {number}"),
            points: (0..=10).map(|at| (f64::from(at), number as f64)).collect(),
            band: Vec::new(),
        };
        let lines = (1..=number).map(line).collect();
        svg("", "environment steps", &[Panel { metric: "returns".to_owned(), lines }]).unwrap()
    }

    /// The numbers of an attribute in the last element that begins with `tag` before `end`.
    fn numbers(text: &str, end: usize, tag: &str, attribute: &str) -> Vec<i32> {
        let element = &text[text[..end].rfind(tag).unwrap()..];
        let begin = element.find(&format!(" {attribute}=\"")).unwrap() + attribute.len() + 3;
        let value = element[begin..].split('"').next().unwrap();
        value.split([' ', ',']).filter_map(|number| number.parse().ok()).collect()
    }

    #[test]
    fn the_legend_covers_no_curve() {
        for number in [2, 12, 24] {
            let text = lines(number);
            let place = |name: &str| {
                let at = text.find(&format!("\n{name}\n")).unwrap();
                let of = |attribute| numbers(&text, at, "<text", attribute)[0];
                (of("y"), of("x"))
            };
            let below = place("environment steps").0;
            let names: Vec<_> =
                (1..=number).map(|number| place(&format!("setting {number}"))).collect();
            let height = numbers(&text, 50, "<svg", "height")[0];
            assert!(names.iter().all(|(y, _)| (below + 10..height).contains(y)), "{names:?}");
            let mut places = names.clone();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), number, "{names:?}");
        }
    }

    /// More lines than colours still look different.
    #[test]
    fn twenty_four_lines_look_different() {
        let text = lines(24);
        // For each height in the chart: the colours, and the ends of the dashes.
        let mut looks: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for (at, tag) in text.match_indices("<polyline") {
            let end = at + tag.len();
            let points = numbers(&text, end, tag, "points");
            let xs: Vec<i32> = points.iter().step_by(2).copied().collect();
            let colour = text[at..].split("stroke=\"").nth(1).unwrap();
            let look = format!("{} {:?}", &colour[..7], (xs[0], xs[xs.len() - 1]));
            if points[1] < SIZE.1 as i32 - 60 && !["#E1E1E1", "#000000"].contains(&&colour[..7]) {
                looks.entry(points[1]).or_default().push(look);
            }
        }
        let different: BTreeSet<&Vec<String>> = looks.values().collect();
        assert_eq!((looks.len(), different.len()), (24, 24), "{looks:?}");
    }

    #[test]
    fn labels_of_an_axis_differ() {
        let labels = |step: f64, length| [-1.0, 0.0, 1.0, 2.0].map(|n| label(n * step, length));
        assert_eq!(labels(0.005, 0.03), ["-0.005", "0", "0.005", "0.010"]);
        assert_eq!(labels(0.5, 3.0), ["-0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(100.0, 600.0), ["-100", "0", "100", "200"]);
        assert_eq!(labels(1000.0, 6000.0), ["-1k", "0", "1k", "2k"]);
        assert_eq!(labels(5e-9, 2e-8), ["-5.0e-9", "0", "5.0e-9", "1.0e-8"]);
    }

    #[test]
    fn a_picture_has_the_lines_and_the_letters() {
        let decoded = |caption: &str, points: &[(f64, f64)]| {
            let lines = vec![Line { points: points.to_vec(), ..Line::default() }];
            let panels = vec![Panel { metric: "loss".to_owned(), lines }; 2];
            let file = png(caption, "environment steps", &panels).unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!((info.width, info.height), (SIZE.0, 2 * SIZE.1));
            pixels.as_chunks::<3>().0.to_vec()
        };
        let curve = [(0.0, 0.0), (5.0, 3.0), (10.0, 4.0)];
        let (named, unnamed, empty) =
            (decoded("seed 0", &curve), decoded("", &curve), decoded("seed 0", &[]));
        let blue = |pixel: &&[u8; 3]| pixel[2] > pixel[0].saturating_add(60);
        let count = |pixels: &[[u8; 3]]| pixels.iter().filter(blue).count();
        assert!(count(&named) > 1000 && count(&empty) == 0, "{} pixels", count(&named));
        // The dark letters of the caption and of the metric's name are above the chart. Without a
        // caption there are fewer of them.
        let dark = |pixels: &[[u8; 3]]| {
            let above = &pixels[..(SIZE.0 * 35) as usize];
            above.iter().filter(|pixel| pixel.iter().all(|part| *part < 96)).count()
        };
        assert!(dark(&named) > dark(&unnamed) + 60, "{}, {}", dark(&named), dark(&unnamed));
    }
}
