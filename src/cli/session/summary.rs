//! The text at the end of a training: the learning curve in blocks, and a few lines.

use super::outcome::Outcome;
use crate::axis;
use crate::axis::Point;
use crate::format::{count, last_episodes, plural};

const ROWS: usize = 8;
const COLUMNS: usize = 60;
/// Blocks of 0 to 8 eighths of a cell.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(crate) fn summary(outcome: &Outcome, points: &[Point]) -> String {
    let mut text = curve(points, outcome.mean_return_episodes);
    let mean = outcome
        .mean_return
        .map_or_else(|| "none, no episode ended".to_owned(), |mean| format!("{mean:.2}"));
    text += &format!(
        "{}, seed {}, on {}: mean return {mean} (the last {})\n",
        outcome.experiment,
        outcome.seed,
        plural(outcome.devices, &format!("{} device", outcome.platform))
            + &outcome
                .processes
                .map_or_else(String::new, |each| format!(" in each of {each} processes")),
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

/// The learning curve as rows of blocks, with the ends of its axis on the left and the steps below.
/// The last point is the mean of `episodes` episodes. Empty without points.
fn curve(points: &[Point], episodes: u64) -> String {
    let finite: Vec<Point> = points.iter().copied().filter(|(_, mean)| mean.is_finite()).collect();
    let Some(&(last, _)) = finite.last() else {
        return String::new();
    };
    let (low, high) = axis::ends(finite.iter().map(|&(_, mean)| mean)).unwrap_or_default();
    let heights: Vec<usize> = (0..COLUMNS)
        .map(|column| {
            let steps = last as f64 * (column + 1) as f64 / COLUMNS as f64;
            let after = finite.iter().find(|&&(at, _)| at as f64 >= steps);
            let mean = after.map_or(low, |&(_, mean)| mean);
            let share = if high > low { (mean - low) / (high - low) } else { 1.0 };
            // At least an eighth of a cell, so that the lowest return is also visible.
            1 + (share * (ROWS * 8 - 1) as f64).round() as usize
        })
        .collect();
    let labels = [format!("{high:.1}"), format!("{low:.1}")];
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut text = format!("mean return of the {}\n", last_episodes(episodes));
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

    /// The axis shows the scale: 490 to 500 does not look like 0 to 500, and 1 to 60 begins at 0.
    #[test]
    fn the_axis_of_a_curve_begins_at_0_where_that_costs_little() {
        let points: Vec<Point> = (1..=60).map(|step| (step * 1000, step as f64)).collect();
        let text = curve(&points, 100);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), ROWS + 2);
        assert!(rows[1].starts_with("60.0") && rows[1].ends_with('█'), "{text}");
        assert!(rows[ROWS].starts_with(" 0.0 ▂"), "{text}");
        assert!(rows[ROWS + 1].ends_with("60k steps"), "{text}");
        let high = curve(&[(5, 490.0), (10, 500.0)], 100);
        assert!(high.lines().nth(ROWS).is_some_and(|row| row.starts_with("490.0 ▁")), "{high}");
        let negative = curve(&[(5, -1200.0), (10, -150.0)], 100);
        assert!(negative.lines().nth(1).is_some_and(|row| row.trim() == "0.0"), "{negative}");
    }

    /// A mean of 20 episodes is not called "the last 100 episodes or more".
    #[test]
    fn a_curve_says_of_how_few_episodes_it_is() {
        let first = |episodes| curve(&[(5, 2.0)], episodes).lines().next().map(str::to_owned);
        assert_eq!(first(20).as_deref(), Some("mean return of the last 20 episodes"));
        assert_eq!(first(134).as_deref(), Some("mean return of the last 100 episodes or more"));
    }

    #[test]
    fn curves_without_range_or_points() {
        assert_eq!(curve(&[], 0), "");
        assert_eq!(curve(&[(1, f64::NAN)], 0), "");
        assert!(curve(&[(5, 2.0)], 1).contains('█'));
    }
}
