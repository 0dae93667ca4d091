//! Charts as SVG or PNG: lines over environment steps or seconds, with bands around them. Only horizontal lines help the eye.

use std::ops::Range;
use std::sync::Once;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::element::{PathElement, Polygon};
use plotters::prelude::{
    BitMapBackend, ChartBuilder, Color, DrawingArea, DrawingBackend, FontStyle, IntoDrawingArea,
    LineSeries, RGBColor, SVGBackend, SeriesLabelPosition, TRANSPARENT, WHITE,
};
use plotters::style::register_font;

use crate::axis;
use crate::format::{count, last_episodes};
use crate::run_directory::Point;

/// Width of a chart, and height of each of its panels, in pixels.
const SIZE: (u32, u32) = (720, 440);

const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 110, 10),
    RGBColor(44, 140, 44),
    RGBColor(190, 40, 50),
    RGBColor(128, 90, 170),
    RGBColor(120, 75, 65),
    RGBColor(200, 90, 170),
    RGBColor(90, 90, 90),
];

/// Colour of the horizontal lines.
const FAINT: RGBColor = RGBColor(225, 225, 225);

/// The font: Ubuntu Light in PNG, and what the reader's program has by this name in SVG.
const SANS: &str = "sans-serif";

/// Font of labels, and its size.
const TEXT: (&str, u32) = (SANS, 16);

/// A line with a band around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Name in the legend.
    pub(crate) name: String,
    /// Places on the horizontal axis, in order, with the value of each.
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

/// The learning curve of one run: its mean return over environment steps. The last point is the mean of so many `episodes`. Points
/// that are not finite are left out.
pub(crate) fn learning_curve(caption: &str, points: &[Point], episodes: u64) -> Result<String> {
    let finite = points.iter().filter(|(_, mean)| mean.is_finite());
    let points = finite.map(|&(steps, mean)| (steps as f64, mean)).collect();
    let metric = format!("mean return, {}", last_episodes(episodes));
    let lines = vec![Line { points, ..Line::default() }];
    svg(caption, "environment steps", &[Panel { metric, lines }])
}

/// Panels below each other, as text of SVG. A panel without points is an empty chart.
pub(crate) fn svg(caption: &str, along: &str, panels: &[Panel]) -> Result<String> {
    let mut text = String::new();
    draw(SVGBackend::with_string(&mut text, size(panels)), caption, along, panels)?;
    Ok(text)
}

/// The same as bytes of a PNG file.
pub(crate) fn png(caption: &str, along: &str, panels: &[Panel]) -> Result<Vec<u8>> {
    let (width, height) = size(panels);
    let mut pixels = vec![0; (width * height * 3) as usize];
    draw(BitMapBackend::with_buffer(&mut pixels, (width, height)), caption, along, panels)?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(file)
}

/// Width and height in pixels.
fn size(panels: &[Panel]) -> (u32, u32) {
    (SIZE.0, SIZE.1 * panels.len().max(1) as u32)
}

fn draw<B: DrawingBackend>(to: B, caption: &str, along: &str, panels: &[Panel]) -> Result<()>
where
    B::ErrorType: 'static,
{
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        let known = register_font(SANS, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
        assert!(known.is_ok(), "the font is one that can be read");
    });
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        let area = to.into_drawing_area();
        area.fill(&WHITE)?;
        for (number, (part, panel)) in
            area.split_evenly((panels.len(), 1)).iter().zip(panels).enumerate()
        {
            draw_panel(part, if number == 0 { caption } else { "" }, along, panel)?;
        }
        area.present()?;
        Ok(())
    };
    // Drawing into memory fails only by a mistake here; the library's error type is not `Sync`.
    draw().map_err(|error| anyhow!("cannot draw the chart: {error}"))
}

/// A label of the vertical axis, with as many decimals as tell it from its neighbours: `0.005` where the axis is 0.03 long.
fn label(value: f64, length: f64) -> String {
    // Labels are multiples of a step, which leaves something like 1e-18 in the place of zero.
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
    chart.margin(14).x_label_area_size(44).y_label_area_size(64);
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
    for (line, colour) in panel.lines.iter().zip(COLOURS.iter().cycle()) {
        let along = || line.points.iter().map(|point| point.0);
        let inside = |value: f64| value.clamp(height.start, height.end);
        let upper = along().zip(line.band.iter().map(|band| inside(band.1)));
        let lower = along().zip(line.band.iter().map(|band| inside(band.0)));
        let mut outline: Vec<(f64, f64)> = lower.collect();
        outline.reverse();
        let outline: Vec<(f64, f64)> = upper.chain(outline).collect();
        if !outline.is_empty() {
            chart.draw_series([Polygon::new(outline, colour.mix(0.18))])?;
        }
        let drawn = chart.draw_series(LineSeries::new(line.points.clone(), colour))?;
        if panel.lines.len() > 1 || !line.band.is_empty() {
            let colour = *colour;
            drawn
                .label(line.name.as_str())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
        }
    }
    if panel.lines.iter().any(|line| panel.lines.len() > 1 || !line.band.is_empty()) {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(TRANSPARENT)
            .label_font(TEXT)
            .draw()?;
    }
    Ok(())
}

/// The vertical range: the ends of the axis, with a margin at those that are not 0.
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
    use super::*;

    #[test]
    fn the_range_begins_at_0_where_that_costs_little() {
        let of = |values: &[f64]| range(values.iter().copied());
        assert_eq!(of(&[]), 0.0..1.0);
        assert_eq!(of(&[20.0, 500.0]), 0.0..524.0);
        assert_eq!(of(&[-1200.0, -150.0]), -1252.5..0.0);
        // Half of the chart would be empty.
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
        // Above the chart are the dark letters of its caption and of its metric: without a caption fewer of them.
        let dark = |pixels: &[[u8; 3]]| {
            let above = &pixels[..(SIZE.0 * 35) as usize];
            above.iter().filter(|pixel| pixel.iter().all(|part| *part < 96)).count()
        };
        assert!(dark(&named) > dark(&unnamed) + 60, "{}, {}", dark(&named), dark(&unnamed));
    }
}
