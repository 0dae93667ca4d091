//! The verdict about a row's returns, and how returns and counts are written.

use crate::rows::Row;
use crate::statistics::Mean;

/// The verdict about the seeds' returns after these environment steps: their mean and each of them
/// compared with the reference, and whether the reference had as many steps. Empty if there is no
/// verdict.
pub fn mark(row: &Row, returns: &[f64], steps: u64) -> String {
    let Some(Mean { mean, half_width }) = Mean::of(returns) else {
        return "not trained".to_owned();
    };
    let mut marks = Vec::new();
    if let Some(lower_end) = row.lower_end() {
        // Returns are sums of f32: a return that differs only by their rounding counts as reached.
        let wanted = lower_end - 1e-6 * lower_end.abs();
        if mean < wanted {
            let within_noise = half_width.is_some_and(|half| mean + half >= wanted);
            marks.push(if within_noise { "below, within noise" } else { "**below**" }.to_owned());
        }
        let (below, seeds) =
            (returns.iter().filter(|&&value| value < wanted).count(), returns.len());
        if below > 0 && seeds > 1 {
            marks.push(format!("{below} of {seeds} seeds below"));
        }
    }
    // A run's steps are rounded up to whole calls.
    let ratio = row.reference_steps.map_or(1.0, |there| steps as f64 / there as f64);
    if ratio < 0.9 {
        marks.push("fewer steps".to_owned());
    } else if ratio > 1.1 {
        marks.push("more steps".to_owned());
    }
    marks.join(", ")
}

/// A mean with its interval, such as `498.2 ± 1.3`: as many decimals as a spread of this size deserves.
pub fn with_interval(Mean { mean, half_width }: Mean) -> String {
    let decimals = decimals(&[mean, half_width.unwrap_or(0.0)]);
    match half_width {
        Some(half) => format!("{mean:.decimals$} ± {half:.decimals$}"),
        None => format!("{mean:.decimals$}"),
    }
}

/// Several returns, all with as many decimals as the greatest of them deserves.
pub fn each(returns: &[f64]) -> String {
    let decimals = decimals(returns);
    let texts: Vec<_> = returns.iter().map(|value| format!("{value:.decimals$}")).collect();
    texts.join(", ")
}

fn decimals(values: &[f64]) -> usize {
    match values.iter().fold(0.0f64, |greatest, value| greatest.max(value.abs())) {
        greatest if greatest >= 1000.0 => 0,
        greatest if greatest >= 10.0 => 1,
        _ => 3,
    }
}

/// A count with its unit, such as `2.5M`.
pub fn count(number: u64) -> String {
    let number = number as f64;
    let (scaled, unit) = match number {
        _ if number >= 1e9 => (number / 1e9, "B"),
        _ if number >= 1e6 => (number / 1e6, "M"),
        _ => (number / 1e3, "k"),
    };
    let text = format!("{scaled:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reference: f64, plus_minus: Option<f64>) -> Row {
        Row { reference: Some(reference), plus_minus, ..Row::default() }
    }

    #[test]
    fn a_return_below_the_reference_is_marked() {
        let marked =
            |reference, plus_minus, returns: &[f64]| mark(&row(reference, plus_minus), returns, 1);
        assert_eq!(marked(1.0, None, &[1.0, 1.0]), "");
        assert_eq!(marked(1.0, None, &[1.0, 0.9]), "below, within noise, 1 of 2 seeds below");
        assert_eq!(marked(1.0, None, &[0.9, 0.9]), "**below**, 2 of 2 seeds below");
        assert_eq!(marked(1.0, None, &[0.999]), "**below**");
        assert_eq!(marked(490.0, Some(6.0), &[484.5, 484.5]), "");
        assert_eq!(marked(490.0, Some(6.0), &[483.5, 483.5]), "**below**, 2 of 2 seeds below");
        assert_eq!(marked(-130.0, None, &[-131.0, -131.0]), "**below**, 2 of 2 seeds below");
        assert_eq!(marked(-130.0, None, &[-129.0, -129.0]), "");
        assert_eq!(marked(1.0, None, &[]), "not trained");
        let without = Row::default();
        assert_eq!(mark(&without, &[0.5, 0.5], 1), "");
        assert_eq!(mark(&without, &[], 1), "not trained");
    }

    #[test]
    fn seeds_that_failed_are_not_hidden_behind_the_mean() {
        let pong = [16.0, -6.0, -20.05];
        let expected = "below, within noise, 3 of 3 seeds below";
        assert_eq!(mark(&row(20.36, Some(0.2)), &pong, 1), expected);
        assert_eq!(each(&pong), "16.0, -6.0, -20.1");
        assert_eq!(mark(&row(0.0, None), &[3.0, -1.0, 4.0], 1), "1 of 3 seeds below");
        assert_eq!(each(&[0.8, 1.0]), "0.800, 1.000");
    }

    #[test]
    fn a_reference_after_other_steps_is_not_taken_for_one_after_as_many() {
        let after = |steps| {
            let reference = Row { reference_steps: Some(1_000_000), ..row(1.0, None) };
            mark(&reference, &[0.5, 0.5], steps)
        };
        assert_eq!(after(300_000), "**below**, 2 of 2 seeds below, fewer steps");
        assert_eq!(after(1_003_520), "**below**, 2 of 2 seeds below");
        assert_eq!(after(2_000_000), "**below**, 2 of 2 seeds below, more steps");
        assert_eq!(mark(&row(1.0, None), &[], 300_000), "not trained");
    }

    #[test]
    fn numbers_are_written_in_the_size_that_they_have() {
        let mean = |mean, half_width| with_interval(Mean { mean, half_width });
        assert_eq!(mean(-3.35, Some(45.142)), "-3.4 ± 45.1");
        assert_eq!(mean(0.9926, None), "0.993");
        assert_eq!(mean(2686.3, Some(4157.2)), "2686 ± 4157");
        let counts = [999, 499_712, 2_502_656, 10_000_000_000].map(count);
        assert_eq!(counts, ["1k", "499.71k", "2.5M", "10B"]);
    }
}
