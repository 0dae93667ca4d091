//! Contacts of a capsule with a cylinder, as MuJoCo's general collider finds them.
//!
//! The capsule is a segment with a radius. One contact is at the point of the segment that is nearest to the cylinder. A
//! capsule that lies nearly flat on an end of the cylinder has two: its lowest line, cut at the sides of the regular polygon
//! that stands for the end.

use std::f64::consts::FRAC_PI_8;

use podracer_dsl::prelude::*;

use super::solids::sphere_and_cylinder;
use super::{PlacedGeom, Touch, axis, frame};
use crate::dynamics::stage::{Numbers, numbers, rounds, values};
use crate::real::{ONE, Real, Truth, ZERO};
use crate::vector::{Vector, add, dot, norm, rotate, scale, sub, transpose};

use Real::{Constant, Value};

/// Iterations of the search for the nearest point. Of 400,000 random placements, all need at most as many in f64.
const ITERATIONS: i32 = 12;
/// The distance below which a point is within the cylinder, in metres.
const INSIDE: f64 = 1e-9;
/// Greatest sine of the angle between a capsule and an end that it lies flat on.
const FLAT: f64 = 0.0888;
/// Pairs of opposite sides of the polygon that stands for an end.
const SIDES: usize = 8;
/// Least slope that a division reads.
const LEAST: f64 = 1e-12;
/// The distance that stands for no contact, in metres beyond the margin.
const NONE: f64 = 1.0;

/// Both possible contacts. `margin` is the pair's margin. Without `several`, there is only one.
pub(super) fn capsule_and_cylinder(
    capsule: &PlacedGeom,
    cylinder: &PlacedGeom,
    margin: f64,
    several: bool,
) -> Vec<Touch> {
    let to_local = transpose(cylinder.axes);
    let centre = rotate(to_local, sub(capsule.centre, cylinder.centre));
    let along = rotate(to_local, axis(capsule));
    let half = capsule.size[1];
    let part = Segment::new(centre, along).nearest(half, [cylinder.size[0], cylinder.size[1]]);
    let point = add(capsule.centre, scale(axis(capsule), part));
    let ball = PlacedGeom { centre: point, ..*capsule };
    let single = sphere_and_cylinder(&ball, cylinder);
    if !several {
        return vec![single];
    }

    let [radius, end, _] = cylinder.size;
    let nearest = add(centre, scale(along, part));
    let up = nearest[2].less(ZERO).select(-ONE, ONE);
    let above = nearest[2].abs() - Constant(end);
    let from_axis = norm(&nearest[..2]);
    // Negative for a nearest point of the cylinder that belongs to its end or to the rim.
    let at_end = above.less(ZERO).select(from_axis - Constant(radius) - above, -ONE);

    // The line of the capsule's surface on the side of the cylinder.
    let normal = rotate(to_local, single.frame[0]);
    let offset = sub(normal, scale(along, dot(normal, along)));
    let start = add(centre, scale(offset, Constant(capsule.size[0] + 0.5 * margin)));
    let [low, high] = within_end(start, along, half, radius);
    let place = |part: Real| add(start, scale(along, part));
    let beyond = |part: Real| up * place(part)[2] - Constant(end + 0.5 * margin);
    let [low_in, high_in] = [low, high].map(|part| ZERO.less(beyond(part)));
    let first = low_in.select(high, low);
    let second = high_in.select(low, high);
    // A corner of the capsule's line is one contact, and a cut is two, if no other point is within the cylinder.
    let cut = (second.abs() - Constant(half)).less(ZERO);
    let alone = low_in.select(ONE, ZERO) + high_in.select(ONE, ZERO);
    let absent = ZERO.less(alone).select(cut.select(ZERO, ONE), ZERO);

    let conditions = [
        at_end.less(ZERO).select(ONE, ZERO),
        along[2].abs().less(Constant(FLAT)).select(ONE, ZERO),
        high.less(low).select(ZERO, ONE),
        Constant(1.5).less(alone).select(ZERO, ONE),
    ];
    let two = Constant(0.5).less(conditions.into_iter().fold(ONE, |all, one| all * one));
    let face = scale(axis(cylinder), -up);
    let on_face = |part: Real| {
        let distance = beyond(part);
        let [x, y, z] = place(part);
        let middle = [x, y, z - up * distance * 0.5];
        let place = add(cylinder.centre, rotate(cylinder.axes, middle));
        Touch { distance: distance + Constant(margin), place, frame: frame(face, None) }
    };
    let choose = |one: Touch, other: Touch| Touch {
        distance: two.select(one.distance, other.distance),
        place: two.select_all(one.place, other.place),
        frame: std::array::from_fn(|i| two.select_all(one.frame[i], other.frame[i])),
    };
    let none = Constant(margin + NONE);
    let other = on_face(second);
    let distance = Constant(0.5).less(absent).select(none, other.distance);
    let no_second = Touch { distance: none, ..single.clone() };
    vec![choose(on_face(first), single), choose(Touch { distance, ..other }, no_second)]
}

/// The interval of a line that lies within the polygon of an end, and within half a length of the line's start. It is empty
/// if the first number is larger.
fn within_end(start: Vector, along: Vector, half: f64, radius: f64) -> [Real; 2] {
    let reach = Constant(radius * (0.5 * FRAC_PI_8).cos());
    let (mut low, mut high) = (Constant(-half), Constant(half));
    for side in 0..SIDES {
        let (sin, cos) = ((side as f64 + 0.5) * FRAC_PI_8).sin_cos();
        let out = |vector: Vector| vector[0] * cos + vector[1] * sin;
        let slope = out(along);
        let divisor = slope.abs().less(Constant(LEAST)).select(Constant(LEAST), slope);
        let [one, other] = [-reach, reach].map(|reach| (reach - out(start)) / divisor);
        (low, high) = (low.max(one.min(other)), high.min(one.max(other)));
    }
    [low, high]
}

/// A segment in the coordinates of a cylinder, by the numbers that its distances depend on. The part of the segment is its
/// distance from the middle, `t`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The square of the distance from the axis: `square + 2 slope t + bend t^2`.
    square: Real,
    slope: Real,
    bend: Real,
    /// The height: `height + rise t`.
    height: Real,
    rise: Real,
}

/// The bounds of the nearest part, and the next part to look at.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    low: Real,
    high: Real,
    next: Real,
}

numbers!(Segment: square, slope, bend, height, rise);
numbers!(Bracket: low, high, next);

impl Segment {
    fn new(centre: Vector, along: Vector) -> Self {
        let flat = |a: Vector, b: Vector| a[0] * b[0] + a[1] * b[1];
        Self {
            square: flat(centre, centre),
            slope: flat(centre, along),
            bend: flat(along, along),
            height: centre[2],
            rise: along[2],
        }
    }

    /// The part that is nearest to the cylinder, or deepest in it. The distance from a convex solid is a convex function of
    /// the part, and Newton's method within a bracket finds its minimum. The derivative is the derivative of one more Newton step, which
    /// is the derivative of the minimum; the iterations are not differentiated.
    fn nearest(self, half: f64, cylinder: [f64; 2]) -> Real {
        let mut fixed = self;
        fixed.each(&mut |number| {
            if let Value(x) = *number {
                *number = Value(stop_gradient(x));
            }
        });
        let ends = [-half, half].map(|end| fixed.pull(Constant(end), cylinder).0);
        // A segment that leads away from the cylinder is nearest at an end.
        let [away, towards] = [ends[0].less(ZERO), ZERO.less(ends[1])];
        let low = towards.select(Constant(-half), Constant(half));
        let high = away.select(Constant(half), Constant(-half));
        let inner = low.less(high);
        let one_end = away.select(Constant(half), Constant(-half));
        let [low, high] = [low, high].map(|end| inner.select(end, one_end));
        let start = Bracket { low, high, next: (low + high) * 0.5 };
        let round = |bracket: Bracket| fixed.narrowed(bracket, cylinder);
        let found = match values(&mut fixed.clone()).first() {
            Some(&like) => {
                rounds(start, arange(0..ITERATIONS), like, |bracket, _| (round(bracket), ())).0
            }
            None => (0..ITERATIONS).fold(start, |bracket, _| round(bracket)),
        };
        let (pull, growth) = self.pull(found.next, cylinder);
        // At the minimum, rounding may take the step out of the bracket, which is then a point.
        let slack = Constant(1e-3 * half);
        let wide = Bracket { low: found.next - slack, high: found.next + slack, ..found };
        inner.select(wide.stepped(pull, growth, found.next), found.next)
    }

    /// Half the derivative of the squared distance at a part, and the derivative of that; within the cylinder, the derivative
    /// of the distance, and zero.
    fn pull(self, part: Real, [radius, end]: [f64; 2]) -> (Real, Real) {
        let square = self.square + (self.slope * 2.0 + self.bend * part) * part;
        let on_axis = square.less(Constant(LEAST * LEAST));
        let divisor = on_axis.select(ONE, square).sqrt();
        let outwards = on_axis.select(ZERO, (self.slope + self.bend * part) / divisor);
        let from_axis = on_axis.select(ZERO, divisor);
        let height = self.height + self.rise * part;
        let upwards = height.less(ZERO).select(-self.rise, self.rise);
        let (beside, above) = (from_axis - Constant(radius), height.abs() - Constant(end));
        let (side, top) = (beside.max(ZERO), above.max(ZERO));
        let inside = beside.max(above).less(Constant(INSIDE));
        let deepest = above.less(beside).select(outwards, upwards);
        let pull = inside.select(deepest, side * outwards + top * upwards);
        // The second derivative of the distance from the axis is the rest of `bend`, divided by the distance.
        let bent = self.bend - outwards.square();
        let turning = outwards.square() + side * bent / divisor;
        let growth =
            ZERO.less(side).select(turning, ZERO) + ZERO.less(top).select(self.rise.square(), ZERO);
        (pull, inside.select(ZERO, growth))
    }

    /// Halves the bracket, and makes a step of Newton's method within it.
    fn narrowed(self, bracket: Bracket, cylinder: [f64; 2]) -> Bracket {
        let middle = bracket.middle();
        let halved = bracket.beside(middle, self.pull(middle, cylinder).0);
        let next = halved.excludes(bracket.next).select(halved.middle(), bracket.next);
        let (pull, growth) = self.pull(next, cylinder);
        let narrowed = Bracket { next, ..halved.beside(next, pull) };
        Bracket { next: narrowed.stepped(pull, growth, narrowed.middle()), ..narrowed }
    }
}

impl Bracket {
    fn middle(self) -> Real {
        (self.low + self.high) * 0.5
    }

    fn excludes(self, part: Real) -> Truth {
        (part - self.low).min(self.high - part).less(ZERO)
    }

    /// The side of a part on which the minimum lies: below the part if the distance grows at the part.
    fn beside(self, part: Real, pull: Real) -> Self {
        let grows = ZERO.less(pull);
        let (low, high) = (grows.select(self.low, part), grows.select(part, self.high));
        Self { low, high, ..self }
    }

    /// The part after a step of Newton's method, or `otherwise` if the step leaves the bracket or is undefined.
    fn stepped(self, pull: Real, growth: Real, otherwise: Real) -> Real {
        let smooth = Constant(LEAST).less(growth);
        let newton = self.next - smooth.select(pull / smooth.select(growth, ONE), ZERO);
        smooth.select(self.excludes(newton).select(otherwise, newton), otherwise)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;
    use crate::model::GeomType;
    use crate::vector::{ORIGIN, constant_rotation, rotation};

    const MARGIN: f64 = 0.004;
    const DRUM: [f64; 3] = [0.15, 0.2, 0.0];
    const ROD: [f64; 3] = [0.05, 0.3, 0.0];

    /// A distance, a place and a normal, as MuJoCo has them.
    type Numbered = [f64; 7];

    fn records() -> Vec<(Vec<f64>, Vec<Numbered>)> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/rods.json");
        let file: Json = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let list = |list: &Json| -> Vec<f64> {
            list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
        };
        let contacts = |record: &Json| {
            let numbers = list(&record["contacts"]);
            numbers.chunks(15).map(|row| row[2..9].try_into().unwrap()).collect()
        };
        let records = file.as_array().unwrap().iter();
        records.map(|record| (list(&record["qpos"]), contacts(record))).collect()
    }

    /// The contacts of a capsule about a cylinder in the origin: a row of seven numbers for each.
    fn rows(qpos: Tensor) -> Tensor {
        let number = |i: usize| Value(qpos.index(i));
        let centre = std::array::from_fn(number);
        let axes = rotation(std::array::from_fn(|i| number(3 + i)));
        let capsule = PlacedGeom { kind: GeomType::Capsule, size: ROD, centre, axes };
        let axes = constant_rotation([1.0, 0.0, 0.0, 0.0]);
        let cylinder = PlacedGeom { kind: GeomType::Cylinder, size: DRUM, centre: ORIGIN, axes };
        let touches = capsule_and_cylinder(&capsule, &cylinder, MARGIN, true);
        let like = qpos.index(0);
        let row = |touch: &Touch| {
            let numbers = [&[touch.distance][..], &touch.place, &touch.frame[0]].concat();
            stack(&numbers.iter().map(|x| x.tensor(like)).collect::<Vec<_>>(), 0)
        };
        stack(&touches.iter().map(row).collect::<Vec<_>>(), 0)
    }

    /// The distance of a segment's nearest point from the cylinder, by golden sections.
    fn gap(qpos: &[f64]) -> f64 {
        let [w, x, y, z] = [3, 4, 5, 6].map(|i| qpos[i]);
        let along = [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)];
        let distance = |part: f64| {
            let [x, y, z] = std::array::from_fn(|i| qpos[i] + part * along[i]);
            let (side, top) = (x.hypot(y) - DRUM[0], z.abs() - DRUM[1]);
            if side.max(top) < 0.0 { side.max(top) } else { side.max(0.0).hypot(top.max(0.0)) }
        };
        let (mut low, mut high) = (-ROD[1], ROD[1]);
        for _ in 0..100 {
            let [one, other] = [0.618, 0.382].map(|share| high - share * (high - low));
            (low, high) = if distance(one) < distance(other) { (low, other) } else { (one, high) };
        }
        distance(0.5 * (low + high))
    }

    fn computed(records: &[(Vec<f64>, Vec<Numbered>)], dtype: DType) -> [Vec<f64>; 2] {
        let numbers = records.iter().flat_map(|(qpos, _)| qpos.clone()).collect::<Vec<_>>();
        let places = Array::floats(dtype, [records.len(), 7], &numbers);
        let traced = trace((places.ty().clone(),), |(places,)| {
            vmap(places, |qpos| (rows(qpos), grad(qpos, |qpos| rows(qpos).sum())))
        });
        let results = traced.unwrap().eval(&[places]).unwrap();
        [results[0].to_f64(), results[1].to_f64()]
    }

    /// MuJoCo's normals have errors up to 1e-5: its iterations stop at a tolerance of the squared distance.
    #[test]
    fn contacts_are_mujocos() {
        let records = records();
        for (dtype, most) in [(F64, 1e-9), (F32, 2e-6)] {
            let [rows, slopes] = computed(&records, dtype);
            assert!(slopes.iter().all(|slope| slope.is_finite()));
            let (mut counts, mut worst) = ([0; 3], [0.0_f64; 2]);
            for ((qpos, theirs), rows) in records.iter().zip(rows.chunks(14)) {
                // The general collider has another way for a segment within the cylinder.
                let gap = gap(qpos);
                if gap < 1e-6 || (gap - ROD[0] - MARGIN).abs() < 1e-6 {
                    continue;
                }
                let ours: Vec<&[f64]> = rows.chunks(7).filter(|row| row[0] < MARGIN).collect();
                assert_eq!(ours.len(), theirs.len(), "{qpos:?}");
                counts[ours.len()] += 1;
                let difference = |order: &dyn Fn(usize) -> usize, range: std::ops::Range<usize>| {
                    let pairs = theirs.iter().enumerate().map(|(i, row)| (row, ours[order(i)]));
                    let errors = pairs.flat_map(|(a, b)| {
                        range.clone().map(|i| (a[i] - b[i]).abs()).collect::<Vec<_>>()
                    });
                    errors.fold(0.0, f64::max)
                };
                for (worst, range) in worst.iter_mut().zip([0..1, 1..7]) {
                    let least = difference(&|i| i, range.clone())
                        .min(difference(&|i| theirs.len() - 1 - i, range));
                    *worst = worst.max(least);
                }
                if let ([ours], [_, ..]) = (&ours[..], &theirs[..]) {
                    let flat = ours[6].abs() == 1.0;
                    assert!(flat || (ours[0] + ROD[0] - gap).abs() < most, "{qpos:?}");
                }
            }
            eprintln!("{dtype:?}: {counts:?} {worst:?}");
            assert!(counts.iter().all(|&count| count > 10), "{counts:?}");
            assert!(worst[0] < most && worst[1] < 1e-5, "{worst:?}");
        }
    }
}
