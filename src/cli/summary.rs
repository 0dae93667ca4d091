//! The text at the end of a training: the learning curve in blocks, and a few lines.

use super::session::Outcome;
use crate::format::{count, plural};
use crate::run_directory::Point;

const ROWS: usize = 8;
const COLUMNS: usize = 60;
/// Blocks of 0 to 8 eighths of a cell.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn summary(outcome: &Outcome, points: &[Point]) -> String {
    let mut text = curve(points);
    let mean = outcome
        .mean_return
        .map_or_else(|| "none, no episode ended".to_owned(), |mean| format!("{mean:.2}"));
    text += &format!(
        "{}, seed {}, on {}: mean return {mean} (the last {})\n",
        outcome.experiment,
        outcome.seed,
        plural(outcome.devices, &format!("{} device", outcome.platform)),
        plural(outcome.mean_return_episodes as usize, "episode"),
    );
    text += &format!(
        "{} steps in {:.2} s, {} steps/s; compiled in {:.2} s\n",
        count(outcome.env_steps as f64),
        outcome.run_seconds,
        outcome.env_steps_per_second.map_or_else(|| "-".to_owned(), count),
        outcome.compile_seconds,
    );
    for (name, value) in &outcome.evaluation {
        text += &format!("{name}: {value}\n");
    }
    text + &format!("run directory: {}\n", outcome.run_dir)
}

/// The learning curve as rows of blocks, with its extremes at the left and the steps below. Empty without points.
fn curve(points: &[Point]) -> String {
    let finite: Vec<Point> = points.iter().copied().filter(|(_, mean)| mean.is_finite()).collect();
    let Some(&(last, _)) = finite.last() else {
        return String::new();
    };
    let means = || finite.iter().map(|&(_, mean)| mean);
    let (low, high) =
        (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max));
    let heights: Vec<usize> = (0..COLUMNS)
        .map(|column| {
            let steps = last as f64 * (column + 1) as f64 / COLUMNS as f64;
            let after = finite.iter().find(|&&(at, _)| at as f64 >= steps);
            let mean = after.map_or(low, |&(_, mean)| mean);
            let share = if high > low { (mean - low) / (high - low) } else { 1.0 };
            // At least an eighth of a cell, so that the lowest return is seen too.
            1 + (share * (ROWS * 8 - 1) as f64).round() as usize
        })
        .collect();
    let labels = [format!("{high:.1}"), format!("{low:.1}")];
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut text = "mean return of the last 100 episodes or more\n".to_owned();
    for row in (0..ROWS).rev() {
        let label = match row {
            0 => labels[1].as_str(),
            _ if row == ROWS - 1 => labels[0].as_str(),
            _ => "",
        };
        let cells: String =
            heights.iter().map(|height| BLOCKS[height.saturating_sub(row * 8).min(8)]).collect();
        text += &format!("{label:>width$} {}\n", cells.trim_end());
    }
    let end = format!("{} steps", count(last as f64));
    text + &format!("{:>width$} 0{end:>rest$}\n", "", rest = COLUMNS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_rises_from_its_lowest_to_its_highest() {
        let points: Vec<Point> = (1..=60).map(|step| (step * 1000, step as f64)).collect();
        let text = curve(&points);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), ROWS + 2);
        assert!(rows[1].starts_with("60.0") && rows[1].ends_with('█'), "{text}");
        assert!(rows[ROWS].starts_with(" 1.0 ▁"), "{text}");
        assert!(rows[ROWS + 1].ends_with("60k steps"), "{text}");
    }

    #[test]
    fn curves_without_range_or_points() {
        assert_eq!(curve(&[]), "");
        assert_eq!(curve(&[(1, f64::NAN)]), "");
        assert!(curve(&[(5, 2.0)]).contains('█'));
    }
}
