//! The drawing of a figure. Gridlines are horizontal only.

use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::element::{DashedPathElement, PathElement, Polygon, Text};
use plotters::prelude::{
    Cartesian2d, ChartBuilder, Color, DashedLineSeries, DrawingArea, DrawingBackend,
    IntoDrawingArea, IntoLogRange, LineSeries, RGBColor, Ranged, TRANSPARENT, TextStyle, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::clock::{Horizontal, TICKS};
use super::cut::AxisEnds;
use super::layout::{Layout, MARGIN, PIECE, row};
use super::look::{faint, look};
use super::{Figure, Line, Panel};
use crate::axis;
use crate::format::count;

/// Colour of the horizontal lines.
const FAINT: RGBColor = RGBColor(225, 225, 225);

/// Errors of the drawing library.
type Drawn = Result<(), Box<dyn std::error::Error>>;

pub(super) fn draw<B: DrawingBackend>(to: B, figure: &Figure, layout: &Layout) -> Result<()>
where
    B::ErrorType: 'static,
{
    // Drawing into memory fails only by a mistake in this code; the library's error type is not
    // `Sync`.
    draw_all(to, figure, layout).map_err(|error| anyhow!("cannot draw the chart: {error}"))
}

fn draw_all<B: DrawingBackend>(to: B, figure: &Figure, layout: &Layout) -> Drawn
where
    B::ErrorType: 'static,
{
    let all = to.into_drawing_area();
    all.fill(&WHITE)?;
    let (title, rest) = all.split_vertically(layout.title);
    let (panels, below) = rest.split_vertically(layout.panels);
    let font = &figure.style.font;
    if layout.title > 0 {
        let style = TextStyle::from(font.letters(layout.letters * 11 / 8));
        let place = (layout.size.0 as i32 / 2, layout.title as i32 / 2 + 2);
        let style = style.pos(Pos::new(HPos::Center, VPos::Center));
        title.draw(&Text::new(figure.title.as_str(), place, style))?;
    }
    let areas = panels.split_evenly((layout.rows, layout.columns));
    let names = figure.names();
    for (area, panel) in areas.iter().zip(&figure.panels) {
        draw_panel(area, panel, figure, &names, layout.letters)?;
    }
    draw_legend(&below, figure, layout)?;
    all.present()?;
    Ok(())
}

/// The names of the lines, row by row, each next to a sample of its line, and the note below them.
fn draw_legend<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    figure: &Figure,
    layout: &Layout,
) -> Drawn
where
    B::ErrorType: 'static,
{
    let left = Pos::new(HPos::Left, VPos::Center);
    let font = TextStyle::from(figure.style.font.letters(layout.letters)).pos(left);
    let row = row(layout.letters);
    let legend = &layout.legend;
    for (number, name) in legend.names.iter().enumerate() {
        let (column, line) = (number as u32 % legend.columns, number as u32 / legend.columns);
        let x = (MARGIN + column * legend.step) as i32;
        let y = (line * row + row / 2) as i32;
        let piece = [(x, y), (x + PIECE as i32 - 6, y)];
        match look(number) {
            (style, None) => area.draw(&PathElement::new(piece, style))?,
            (style, Some((drawn, between))) => {
                area.draw(&DashedPathElement::new(piece, drawn, between, style))?;
            }
        }
        area.draw(&Text::new(name.as_str(), (x + PIECE as i32, y), font.clone()))?;
    }
    for (number, line) in layout.note.iter().enumerate() {
        let y = (legend.rows() + number as u32) * row + row / 2;
        area.draw(&Text::new(line.as_str(), (MARGIN as i32, y as i32), font.clone()))?;
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
    panel: &Panel,
    figure: &Figure,
    names: &[&str],
    letters: u32,
) -> Drawn
where
    B::ErrorType: 'static,
{
    let style = &figure.style;
    let values = || {
        let means = panel.lines.iter().flat_map(|line| &line.points);
        means.chain(panel.lines.iter().flat_map(|line| line.runs.iter().flatten()))
    };
    let width = match &style.x {
        Some(ends) => *ends.start()..*ends.end(),
        None => extent(values().map(|point| point.0), figure.clock),
    };
    let shown = values().map(|point| point.1).filter(|value| !style.log || *value > 0.0);
    let height = match &style.y {
        Some(ends) => *ends.start()..*ends.end(),
        None if style.log => powers(shown),
        None => range(shown),
    };
    let font = &style.font;
    let mut builder = ChartBuilder::on(area);
    builder.margin(MARGIN);
    builder.x_label_area_size(letters * 11 / 4).y_label_area_size(letters * 4);
    if !panel.title.is_empty() {
        builder.caption(&panel.title, font.letters(letters * 17 / 16));
    }
    let number = |line: &Line| names.iter().position(|name| *name == line.name).unwrap_or(0);
    let length = height.end - height.start;
    let inside = AxisEnds { width: width.clone(), height: height.clone(), log: style.log };
    let horizontal = Horizontal::new(&width, figure.clock);
    let along = horizontal.label();
    if style.log {
        let mut chart = builder.build_cartesian_2d(horizontal, height.log_scale())?;
        let shown = |value: &f64| match *value {
            small if small < 1e-3 => format!("{small:.0e}"),
            below if below < 1.0 => below.to_string(),
            value => count(value),
        };
        mesh(&mut chart, (figure, panel), letters, (&along, &shown))?;
        lines(&mut chart, panel, &inside, number)
    } else {
        let mut chart = builder.build_cartesian_2d(horizontal, height)?;
        let shown = |value: &f64| label(*value, length);
        mesh(&mut chart, (figure, panel), letters, (&along, &shown))?;
        lines(&mut chart, panel, &inside, number)
    }
}

/// The horizontal range: from 0, or on an axis of absolute time from the first position.
fn extent(places: impl Iterator<Item = f64> + Clone, clock: bool) -> Range<f64> {
    let last = places.clone().fold(0.0, f64::max);
    let first = places.fold(f64::INFINITY, f64::min);
    match clock && first <= last {
        true => first..last.max(first + 1.0),
        false => 0.0..last.max(1e-9),
    }
}

/// A panel's coordinates: linear along, and any scale upwards.
type Plane<Y> = Cartesian2d<Horizontal, Y>;

/// The labels of an axis at its values.
type Labels<'a> = &'a dyn Fn(&f64) -> String;

fn mesh<B: DrawingBackend, Y>(
    chart: &mut ChartContext<'_, B, Plane<Y>>,
    (figure, panel): (&Figure, &Panel),
    letters: u32,
    (along, shown): (Labels<'_>, Labels<'_>),
) -> Drawn
where
    B::ErrorType: 'static,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let font = figure.style.font.letters(letters);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .x_labels(TICKS)
        .y_labels(6)
        .x_desc(figure.along.as_str())
        .y_desc(panel.metric.as_str())
        .x_label_formatter(&along)
        .y_label_formatter(shown)
        .label_style(font.clone())
        .axis_desc_style(font)
        .draw()?;
    Ok(())
}

/// Bands, thin lines and lines, in this order, with the first line on top.
fn lines<B: DrawingBackend, Y: Ranged<ValueType = f64>>(
    chart: &mut ChartContext<'_, B, Plane<Y>>,
    panel: &Panel,
    inside: &AxisEnds,
    number: impl Fn(&Line) -> usize,
) -> Drawn
where
    B::ErrorType: 'static,
{
    for line in panel.lines.iter().filter(|line| !line.band.is_empty()) {
        let ends = line.points.iter().zip(&line.band);
        let band: Vec<_> = ends.map(|(point, band)| (point.0, band.0, band.1)).collect();
        let outline = inside.polygon(&band);
        if !outline.is_empty() {
            let (style, _) = look(number(line));
            chart.draw_series([Polygon::new(outline, style.color.mix(0.18))])?;
        }
    }
    for line in &panel.lines {
        for piece in line.runs.iter().flat_map(|run| inside.pieces(run)) {
            chart.draw_series(LineSeries::new(piece, faint(number(line))))?;
        }
    }
    for line in panel.lines.iter().rev() {
        for piece in inside.pieces(&line.points) {
            match look(number(line)) {
                (style, None) => chart.draw_series(LineSeries::new(piece, style))?,
                (style, Some((drawn, between))) => {
                    chart.draw_series(DashedLineSeries::new(piece, drawn, between, style))?
                }
            };
        }
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

/// The range of a logarithmic axis: powers of ten around the values.
fn powers(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return 1.0..10.0;
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    10.0_f64.powf(low)..10.0_f64.powf(high.max(low + 1.0))
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
        // Otherwise half of the chart would be empty.
        assert_eq!(of(&[490.0, 500.0]), 489.5..500.5);
        assert_eq!(of(&[-1.0, 1.0]), -1.1..1.1);
        assert_eq!(of(&[7.0]), 6.993..7.007);
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
}
