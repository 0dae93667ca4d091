//! A horizontal axis of absolute time: ticks at round times, and their labels.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::Ranged;
use time::OffsetDateTime;

use crate::format::count;

/// Number of ticks of a horizontal axis.
pub(super) const TICKS: usize = 6;

/// Distances of ticks in seconds: up to 30 s, up to 30 min, up to 12 h, and days.
const STEPS: [f64; 22] = [
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    900.0,
    1800.0,
    3600.0,
    7200.0,
    10800.0,
    21600.0,
    43200.0,
    DAY,
    2.0 * DAY,
    7.0 * DAY,
    30.0 * DAY,
    365.0 * DAY,
];
const DAY: f64 = 86400.0;

/// A horizontal axis, of numbers or of absolute time.
pub(super) struct Horizontal {
    range: RangedCoordf64,
    /// Ticks of an axis of absolute time with their distance in seconds.
    ticks: Option<(Vec<f64>, f64)>,
}

impl Horizontal {
    pub(super) fn new(ends: &Range<f64>, clock: bool) -> Self {
        let ticks = clock.then(|| times(ends, TICKS));
        Horizontal { range: ends.clone().into(), ticks }
    }

    /// The labels of positions.
    pub(super) fn label(&self) -> impl Fn(&f64) -> String + use<> {
        let step = self.ticks.as_ref().map(|(_, step)| *step);
        move |at| step.map_or_else(|| count(*at), |step| time_of_day(*at, step))
    }
}

impl Ranged for Horizontal {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match &self.ticks {
            Some((ticks, _)) => ticks.clone(),
            None => self.range.key_points(hint),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.range()
    }
}

/// At most `most` round times in UTC between two times in seconds since 1970, and the distance of
/// two of them in seconds.
pub(super) fn times(ends: &Range<f64>, most: usize) -> (Vec<f64>, f64) {
    let least = (ends.end - ends.start) / most as f64;
    let whole_days = || (least / DAY).ceil() * DAY;
    let step = STEPS.into_iter().find(|step| *step >= least).unwrap_or_else(whole_days);
    let first = (ends.start / step).ceil();
    let ticks = (0..most).map(|tick| (first + tick as f64) * step);
    (ticks.take_while(|tick| *tick <= ends.end).collect(), step)
}

/// A time in seconds since 1970 as text in UTC, to the precision of a distance in seconds:
/// `14:05:30`, `14:05` or `2026-11-29`. Midnight is a date, unless seconds are shown.
pub(crate) fn time_of_day(time: f64, step: f64) -> String {
    let whole = OffsetDateTime::from_unix_timestamp(time.round() as i64);
    let Ok(at) = whole else { return time.to_string() };
    let (hour, minute, second) = at.to_hms();
    if step < 60.0 {
        format!("{hour:02}:{minute:02}:{second:02}")
    } else if step >= DAY || (hour, minute, second) == (0, 0, 0) {
        format!("{}-{:02}-{:02}", at.year(), u8::from(at.month()), at.day())
    } else {
        format!("{hour:02}:{minute:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_at_round_times() {
        // 2026-11-29 23:41:30 UTC.
        let start = 1_795_995_690.0;
        let labels = |seconds: f64| {
            let (ticks, step) = times(&(start..start + seconds), 6);
            ticks.iter().map(|tick| time_of_day(*tick, step)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(20.0), "23:41:30 23:41:35 23:41:40 23:41:45 23:41:50");
        assert_eq!(labels(2700.0), "23:50 2026-11-30 00:10 00:20");
        assert_eq!(labels(3.0 * DAY), "2026-11-30 12:00 2026-12-01 12:00 2026-12-02 12:00");
        assert_eq!(labels(30.0 * DAY), "2026-12-03 2026-12-10 2026-12-17 2026-12-24");
        assert!(times(&(start..start + 1e9), 6).0.len() >= 2);
    }
}
