//! The strokes of characters.
//!
//! # Invariants
//! - A point is two digits of base 16: x, and y from the top of capital letters at 0 down to the base line at 8 and to the lowest point of
//!   descenders at 11. Lower case letters begin at 3.
//! - A stroke begins with its kind: `-` joins its points by straight lines, `~` is a quadratic B-spline that begins at the first point and
//!   ends at the last, and `@` is a closed quadratic B-spline.

/// The characters that text may contain, except for the space.
pub const CHARACTERS: &str =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.,:!?-+=/()%<>*'_";

/// Height of capital letters, in the grid's units.
pub(super) const CAPITAL: f64 = 8.0;

/// Width of a character without the space around it, and its strokes.
///
/// # Panics
/// A character that is neither a space nor one of [`CHARACTERS`].
pub(super) fn glyph(character: char) -> (u32, &'static str) {
    match character {
        ' ' => (2, ""),
        '0' => (5, "@00 08 58 50"),
        '1' => (5, "-12 30 38 -18 58"),
        '2' => (5, "~02 00 50 54 08 -08 58"),
        '3' => (5, "~01 00 50 54 24 ~24 54 58 08 07"),
        '4' => (5, "-48 40 06 56"),
        '5' => (5, "-50 10 04 ~04 13 53 58 08 07"),
        '6' => (5, "~51 50 00 05 @03 08 58 53"),
        '7' => (5, "-00 50 18"),
        '8' => (5, "@00 04 54 50 @04 08 58 54"),
        '9' => (5, "@00 05 55 50 ~53 58 08 07"),
        'A' => (6, "-08 30 68 -15 55"),
        'B' => (5, "-24 04 00 20 ~20 50 54 24 ~24 54 58 28 -28 08 04"),
        'C' => (5, "~51 50 00 08 58 57"),
        'D' => (5, "-20 00 08 28 ~28 58 50 20"),
        'E' => (4, "-40 00 08 48 -04 34"),
        'F' => (4, "-40 00 08 -04 34"),
        'G' => (5, "~51 50 00 08 58 55 -55 35"),
        'H' => (5, "-00 08 -50 58 -04 54"),
        'I' => (0, "-00 08"),
        'J' => (4, "-40 45 ~45 48 08 06"),
        'K' => (5, "-00 08 -50 04 -13 58"),
        'L' => (4, "-00 08 48"),
        'M' => (6, "-08 00 35 60 68"),
        'N' => (5, "-08 00 58 50"),
        'O' => (6, "@00 08 68 60"),
        'P' => (5, "-08 00 20 ~20 50 54 24 -24 04"),
        'Q' => (6, "@00 08 68 60 -46 69"),
        'R' => (5, "-08 00 20 ~20 50 54 24 -24 04 -24 58"),
        'S' => (5, "~51 50 00 04 54 58 08 07"),
        'T' => (6, "-00 60 -30 38"),
        'U' => (5, "-00 05 ~05 08 58 55 -55 50"),
        'V' => (6, "-00 38 60"),
        'W' => (8, "-00 28 41 68 80"),
        'X' => (5, "-00 58 -50 08"),
        'Y' => (6, "-00 34 60 -34 38"),
        'Z' => (5, "-00 50 08 58"),
        'a' => (4, "@03 08 48 43 -43 48"),
        'b' => (4, "-00 08 @03 08 48 43"),
        'c' => (4, "~44 43 03 08 48 47"),
        'd' => (4, "@03 08 48 43 -40 48"),
        'e' => (4, "-05 45 ~45 43 03 08 48 47"),
        'f' => (3, "~30 10 13 -13 18 -03 33"),
        'g' => (4, "@03 08 48 43 -43 49 ~49 4b 0b 0a"),
        'h' => (4, "-00 08 ~06 03 43 46 -46 48"),
        'i' => (0, "-03 08 -01"),
        'j' => (2, "-23 29 ~29 2b 0b -21"),
        'k' => (4, "-00 08 -43 06 -15 48"),
        'l' => (2, "-00 06 ~06 08 28"),
        'm' => (6, "-03 08 ~05 03 33 35 -35 38 ~35 33 63 65 -65 68"),
        'n' => (4, "-03 08 ~06 03 43 46 -46 48"),
        'o' => (4, "@03 08 48 43"),
        'p' => (4, "-03 0b @03 08 48 43"),
        'q' => (4, "@03 08 48 43 -43 4b"),
        'r' => (3, "-03 08 ~06 03 33"),
        's' => (4, "~44 43 03 05 46 48 08 07"),
        't' => (3, "-10 16 ~16 18 38 -03 33"),
        'u' => (4, "-03 05 ~05 08 48 45 -43 48"),
        'v' => (4, "-03 28 43"),
        'w' => (6, "-03 18 34 58 63"),
        'x' => (4, "-03 48 -43 08"),
        'y' => (4, "-03 28 -43 1b"),
        'z' => (4, "-03 43 08 48"),
        '.' => (0, "-08"),
        ',' => (1, "-18 0a"),
        ':' => (0, "-04 -08"),
        '!' => (0, "-00 05 -08"),
        '?' => (4, "~01 00 40 44 25 -28"),
        '-' => (3, "-05 35"),
        '+' => (4, "-05 45 -23 27"),
        '=' => (4, "-04 44 -06 46"),
        '/' => (4, "-40 08"),
        '(' => (2, "~20 01 07 28"),
        ')' => (2, "~00 21 27 08"),
        '%' => (6, "@00 02 22 20 @46 48 68 66 -60 08"),
        '<' => (4, "-42 05 48"),
        '>' => (4, "-02 45 08"),
        '*' => (4, "-22 26 -03 45 -43 05"),
        '\'' => (0, "-00 02"),
        '_' => (4, "-09 49"),
        other => panic!("there is no glyph for {other:?}"),
    }
}

/// The strokes of a character as lines with their corners, in the grid's units.
pub(super) fn lines(character: char) -> Vec<Vec<(f64, f64)>> {
    let mut strokes: Vec<(char, Vec<(f64, f64)>)> = Vec::new();
    for word in glyph(character).1.split(' ').filter(|word| !word.is_empty()) {
        let point = match word.strip_prefix(['-', '~', '@']) {
            Some(point) => {
                strokes.push((word.chars().next().unwrap_or('-'), Vec::new()));
                point
            }
            None => word,
        };
        let digits: Vec<u32> = point.chars().filter_map(|digit| digit.to_digit(16)).collect();
        if let (&[x, y], Some((_, points))) = (&digits[..], strokes.last_mut()) {
            points.push((f64::from(x), f64::from(y)));
        }
    }
    strokes
        .into_iter()
        .map(|(kind, points)| match kind {
            '~' => spline(&points),
            '@' => {
                let (first, last) = (points[0], points[points.len() - 1]);
                let seam = between(first, last, 0.5);
                let closed: Vec<_> = [seam].into_iter().chain(points).chain([seam]).collect();
                spline(&closed)
            }
            _ => points,
        })
        .collect()
}

/// Number of straight lines in place of a curve.
const PIECES: usize = 8;

/// The point at a share of the way from one point to another.
fn between(from: (f64, f64), to: (f64, f64), share: f64) -> (f64, f64) {
    (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
}

/// A quadratic B-spline from the first to the last point, with the others as controls.
fn spline(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let last = points.len() - 1;
    let mut curve = vec![points[0]];
    for i in 1..last {
        let from = if i == 1 { points[0] } else { between(points[i - 1], points[i], 0.5) };
        let to = if i + 1 == last { points[last] } else { between(points[i], points[i + 1], 0.5) };
        curve.extend((1..=PIECES).map(|piece| {
            let share = piece as f64 / PIECES as f64;
            between(between(from, points[i], share), between(points[i], to, share), share)
        }));
    }
    curve
}
