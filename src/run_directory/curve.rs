//! `learning_curve.svg`: the mean return over environment steps.

use std::ops::Range;

use super::Point;
use anyhow::{Result, anyhow};
use plotters::prelude::{ChartBuilder, IntoDrawingArea, LineSeries, RGBColor, SVGBackend, WHITE};

const SIZE: (u32, u32) = (720, 440);
const LINE: RGBColor = RGBColor(31, 119, 180);

/// The curve as SVG. Points that are not finite are left out; a curve without any is an empty chart.
pub(super) fn svg(caption: &str, points: &[Point]) -> Result<String> {
    let points: Vec<(f64, f64)> = points
        .iter()
        .filter(|(_, mean)| mean.is_finite())
        .map(|&(steps, mean)| (steps as f64, mean))
        .collect();
    let mut text = String::new();
    // Drawing into a string fails only by a mistake here; the library's error type is not `Sync`.
    draw(&mut text, caption, points)
        .map_err(|error| anyhow!("cannot draw the learning curve: {error}"))?;
    Ok(text)
}

fn draw(
    into: &mut String,
    caption: &str,
    points: Vec<(f64, f64)>,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(into, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let steps = 0.0..points.last().map_or(1.0, |&(steps, _)| steps.max(1.0));
    let mut chart = ChartBuilder::on(&area)
        .caption(caption, ("sans-serif", 20))
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(steps, range(&points))?;
    chart
        .configure_mesh()
        .x_desc("environment steps")
        .y_desc("mean return, last 100 episodes or more")
        .x_label_formatter(&|steps| crate::format::count(*steps))
        .draw()?;
    chart.draw_series(LineSeries::new(points, LINE))?;
    area.present()?;
    drop(chart);
    Ok(())
}

/// The range of the returns, with a margin.
fn range(points: &[(f64, f64)]) -> Range<f64> {
    let means = || points.iter().map(|&(_, mean)| mean);
    let (low, high) =
        (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max));
    if low > high {
        return 0.0..1.0;
    }
    let air = ((high - low) * 0.05).max(high.abs() * 1e-3).max(1e-3);
    low - air..high + air
}
