//! Colours and dashes of a chart's lines.

use plotters::prelude::{Color, RGBColor, ShapeStyle};

/// Colours, mostly from Okabe and Ito's palette: they are distinguishable with colour blindness.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(170, 51, 119),
    RGBColor(34, 34, 34),
];

/// Dashes as pixels drawn and pixels left out. When all colours are in use, they repeat with the
/// next dashes.
const DASHES: [Option<(i32, i32)>; 6] =
    [None, Some((7, 4)), Some((2, 3)), Some((16, 4)), Some((2, 8)), Some((8, 10))];

/// Colour and dashes of a line.
pub(super) fn look(number: usize) -> (ShapeStyle, Option<(i32, i32)>) {
    let colour = COLOURS[number % COLOURS.len()];
    (colour.stroke_width(2), DASHES[number / COLOURS.len() % DASHES.len()])
}

/// The style of a thin line of the same colour, such as a run behind a mean.
pub(super) fn faint(number: usize) -> ShapeStyle {
    COLOURS[number % COLOURS.len()].mix(0.45).stroke_width(1)
}

#[cfg(test)]
mod tests {
    use plotters::prelude::WHITE;

    use super::*;

    /// Linear red, green and blue with normal sight, and without each kind of cone (Machado et al.
    /// 2009, full severity).
    const SIGHTS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    fn product(matrix: &[[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    /// A colour in Oklab, where distances equal visible differences.
    fn seen(colour: RGBColor, sight: &[[f64; 3]; 3]) -> [f64; 3] {
        let linear = [colour.0, colour.1, colour.2].map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        let seen = product(sight, linear).map(|part| part.clamp(0.0, 1.0));
        let cones = [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ];
        let lab = [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ];
        product(&lab, product(&cones, seen).map(f64::cbrt))
    }

    /// All colours, such as red and green, differ with every kind of sight.
    #[test]
    fn colours_differ_for_the_colour_blind() {
        for sight in &SIGHTS {
            for (number, one) in COLOURS.iter().enumerate() {
                for other in COLOURS.iter().take(number).chain([&WHITE]) {
                    let (one_seen, other_seen) = (seen(*one, sight), seen(*other, sight));
                    let squares = one_seen.iter().zip(other_seen).map(|(a, b)| (a - b).powi(2));
                    let apart = squares.sum::<f64>().sqrt();
                    assert!(apart > 0.08, "{one:?} and {other:?}: {apart}");
                }
            }
        }
    }
}
