//! The parts of lines and bands within the ends of both axes. They are cut at the edge of the
//! panel, where a line that leaves the panel meets it.

use std::ops::Range;

/// A position on the horizontal axis with a value.
type Place = (f64, f64);

/// The ends of a panel's axes.
#[derive(Clone, Debug)]
pub(super) struct AxisEnds {
    pub(super) width: Range<f64>,
    pub(super) height: Range<f64>,
    /// True for a logarithmic vertical axis, on which values that are not positive have no place.
    pub(super) log: bool,
}

impl AxisEnds {
    /// A value by its height on the axis.
    fn height_of(&self, value: f64) -> f64 {
        if self.log { value.ln() } else { value }
    }

    fn value_at(&self, height: f64) -> f64 {
        if self.log { height.exp() } else { height }
    }

    fn has_place(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    /// The four edges as signed distances of a place and a height, positive inside.
    fn edges(&self) -> [impl Fn(Place) -> f64 + use<>; 4] {
        let Range { start: left, end: right } = self.width;
        let (low, high) = (self.height_of(self.height.start), self.height_of(self.height.end));
        let edges = [(1.0, 0.0, left), (-1.0, 0.0, -right), (0.0, 1.0, low), (0.0, -1.0, -high)];
        edges.map(|(x, y, end)| move |place: Place| x * place.0 + y * place.1 - end)
    }

    /// The part of a segment inside, with heights in place of values; `None` if all of it is
    /// outside.
    fn segment(&self, (from, to): (Place, Place)) -> Option<(Place, Place)> {
        let (mut first, mut last) = (0.0_f64, 1.0_f64);
        for edge in self.edges() {
            let (before, after) = (edge(from), edge(to));
            let crossing = before / (before - after);
            match (before >= 0.0, after >= 0.0) {
                (false, false) => return None,
                (false, true) => first = first.max(crossing),
                (true, false) => last = last.min(crossing),
                (true, true) => {}
            }
        }
        (first <= last).then(|| (along(from, to, first), along(from, to, last)))
    }

    /// The parts of a line inside. A value without a place on the axis makes a gap in the line.
    pub(super) fn pieces(&self, line: &[Place]) -> Vec<Vec<Place>> {
        let back = |(at, height): Place| {
            (at, self.value_at(height).clamp(self.height.start, self.height.end))
        };
        let mut pieces: Vec<Vec<Place>> = Vec::new();
        // The end of the last piece, if that end is a point of the line.
        let mut open = None;
        for pair in line.windows(2) {
            if !pair.iter().all(|(_, value)| self.has_place(*value)) {
                open = None;
                continue;
            }
            let [from, to] = [pair[0], pair[1]].map(|(at, value)| (at, self.height_of(value)));
            let Some((begin, end)) = self.segment((from, to)) else {
                open = None;
                continue;
            };
            match pieces.last_mut().filter(|_| open == Some(begin)) {
                Some(piece) => piece.push(back(end)),
                None => pieces.push(vec![back(begin), back(end)]),
            }
            open = Some(end);
        }
        pieces
    }

    /// The part of a band inside, as the corners of a polygon; empty if all of it is outside. Its
    /// lower end is below the panel if the value there has no place.
    pub(super) fn polygon(&self, band: &[(f64, f64, f64)]) -> Vec<Place> {
        let height = |value: f64| match self.has_place(value) {
            true => self.height_of(value),
            false => self.height_of(self.height.start) - 1.0,
        };
        let high = band.iter().map(|&(at, _, high)| (at, height(high)));
        let low = band.iter().rev().map(|&(at, low, _)| (at, height(low)));
        let mut corners: Vec<Place> = high.chain(low).collect();
        // Sutherland and Hodgman 1974: one edge after the other.
        for edge in self.edges() {
            let mut kept = Vec::new();
            for (place, &corner) in corners.iter().enumerate() {
                let next = corners[(place + 1) % corners.len()];
                let (here, there) = (edge(corner), edge(next));
                if here >= 0.0 {
                    kept.push(corner);
                }
                if (here >= 0.0) != (there >= 0.0) {
                    kept.push(along(corner, next, here / (here - there)));
                }
            }
            corners = kept;
        }
        corners.into_iter().map(|(at, height)| (at, self.value_at(height))).collect()
    }
}

/// The place at a share of the way between two places, exact at both ends.
fn along(from: Place, to: Place, share: f64) -> Place {
    match share {
        0.0 => from,
        1.0 => to,
        share => (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(width: Range<f64>, height: Range<f64>, log: bool) -> AxisEnds {
        AxisEnds { width, height, log }
    }

    #[test]
    fn a_line_is_cut_where_it_meets_the_edge() {
        let inside = window(1.0..3.0, 0.0..10.0, false);
        let line = [(0.0, 0.0), (2.0, 4.0), (4.0, 8.0)];
        assert_eq!(inside.pieces(&line), [[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]]);
        // Both points of a segment are outside, and its middle is inside.
        assert_eq!(inside.pieces(&[(0.0, 0.0), (4.0, 8.0)]), [[(1.0, 2.0), (3.0, 6.0)]]);
        // Above the panel there is a gap.
        let peak = [(1.0, 5.0), (2.0, 15.0), (3.0, 5.0)];
        assert_eq!(inside.pieces(&peak), [[(1.0, 5.0), (1.5, 10.0)], [(2.5, 10.0), (3.0, 5.0)]]);
        assert!(inside.pieces(&[(5.0, 1.0), (6.0, 1.0)]).is_empty());
        assert!(inside.pieces(&[(2.0, -5.0), (3.0, -1.0)]).is_empty());
    }

    #[test]
    fn a_value_without_a_place_leaves_a_gap() {
        let inside = window(0.0..9.0, 0.1..100.0, true);
        let line = [(0.0, 1.0), (1.0, 10.0), (2.0, 0.0), (3.0, 1.0), (4.0, 1.0), (5.0, -1.0)];
        let pieces = inside.pieces(&line);
        let places: Vec<Vec<f64>> =
            pieces.iter().map(|piece| piece.iter().map(|place| place.0).collect()).collect();
        assert_eq!(places, [[0.0, 1.0], [3.0, 4.0]]);
        // A line is straight on the axis: the edge is in the middle between 1 and 10,000.
        let pieces = inside.pieces(&[(0.0, 1.0), (8.0, 1e4)]);
        assert!((pieces[0][1].0 - 4.0).abs() < 1e-9 && pieces[0][1].1 == 100.0, "{pieces:?}");
    }

    #[test]
    fn a_band_is_cut_at_the_edges() {
        let inside = window(1.0..3.0, 0.0..10.0, false);
        let corners = inside.polygon(&[(0.0, 2.0, 4.0), (4.0, 6.0, 16.0)]);
        let has = |place: Place| {
            let near = |corner: &&Place| {
                (corner.0 - place.0).abs() < 1e-9 && (corner.1 - place.1).abs() < 1e-9
            };
            corners.iter().any(|corner| near(&corner))
        };
        for corner in [(1.0, 7.0), (2.0, 10.0), (3.0, 10.0), (3.0, 5.0), (1.0, 3.0)] {
            assert!(has(corner), "{corner:?} in {corners:?}");
        }
        assert_eq!(corners.len(), 5, "{corners:?}");
        let below = window(0.0..1.0, 0.1..10.0, true).polygon(&[(0.0, -1.0, 1.0), (1.0, 0.5, 1.0)]);
        assert!(below.iter().all(|place| (0.0999..=1.0001).contains(&place.1)), "{below:?}");
        assert!(inside.polygon(&[(5.0, 1.0, 2.0), (6.0, 1.0, 2.0)]).is_empty());
    }
}
