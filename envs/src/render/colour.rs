//! Colours of pictures.
//!
//! The hues come from Okabe and Ito, "Color Universal Design", 2008, which readers with any form of colour blindness can tell apart,
//! with the lightness tuned for flat areas on dark and on light terminals.

use podracer_dsl::prelude::*;

/// A colour: red, green and blue, from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

impl Colour {
    /// Outlines and holes.
    pub const BLACK: Colour = Colour([16, 16, 24]);
    /// Light figures, such as digits on dark tiles.
    pub const WHITE: Colour = Colour([240, 240, 240]);
    /// Inactive things, such as walls.
    pub const GREY: Colour = Colour([128, 128, 136]);
    /// Danger: mines, rewards below 0, the second player.
    pub const RED: Colour = Colour([213, 80, 40]);
    /// Goals and finished parts.
    pub const GREEN: Colour = Colour([20, 158, 115]);
    /// The hue of the agent.
    pub const BLUE: Colour = Colour([40, 114, 190]);
    /// Things to collect, the first player.
    pub const YELLOW: Colour = Colour([240, 205, 70]);
    /// A second part of the agent.
    pub const CYAN: Colour = Colour([95, 180, 230]);
    /// A sixth hue, for several objects of one kind.
    pub const MAGENTA: Colour = Colour([204, 121, 167]);
    /// Movable things, such as boxes.
    pub const ORANGE: Colour = Colour([230, 150, 30]);
    /// The background above a horizon.
    pub const SKY: Colour = Colour([218, 230, 240]);
    /// Earth and hills.
    pub const GROUND: Colour = Colour([116, 140, 96]);
    /// The background of boards and scenes: a light neutral.
    pub const BOARD: Colour = Colour([236, 232, 224]);
    /// Empty cells of a board, a shade darker than the board.
    pub const CELL: Colour = Colour([222, 216, 205]);
    /// Grid lines on a board.
    pub const LINE: Colour = Colour([186, 178, 164]);
    /// Text and thin dark figures on light backgrounds.
    pub const TEXT: Colour = Colour([52, 56, 66]);
    /// Wood: tracks, boxes and frames.
    pub const WOOD: Colour = Colour([164, 120, 76]);
    /// Colours for several objects of one kind.
    pub const SEVERAL: [Colour; 10] = [
        Colour::RED,
        Colour::GREEN,
        Colour::BLUE,
        Colour::YELLOW,
        Colour::CYAN,
        Colour::MAGENTA,
        Colour::ORANGE,
        Colour::TEXT,
        Colour([150, 110, 220]),
        Colour([130, 160, 60]),
    ];

    /// A mixture: this colour at `share` 0, `other` at 1.
    #[must_use]
    pub fn mixed(self, other: Colour, share: f64) -> Colour {
        let part = |i: usize| {
            let (from, to) = (f64::from(self.0[i]), f64::from(other.0[i]));
            (from + (to - from) * share).round() as u8
        };
        Colour([part(0), part(1), part(2)])
    }

    /// A darker shade: black at `share` 1.
    #[must_use]
    pub fn dark(self, share: f64) -> Colour {
        self.mixed(Colour([0; 3]), share)
    }

    /// A lighter tint: white at `share` 1.
    #[must_use]
    pub fn light(self, share: f64) -> Colour {
        self.mixed(Colour([255; 3]), share)
    }

    /// The colour as a tensor, f32 `[3]` from 0 to 255.
    #[track_caller]
    pub fn tensor(self) -> Tensor {
        constant(self.0.map(f32::from))
    }
}

/// Filling of a shape: a colour of the host, or a tensor of the program.
#[derive(Clone, Copy, Debug)]
pub struct Paint(Tensor);

impl Paint {
    /// The colour, f32 `[3]`, or `[rows, columns, 3]` for a colour per cell.
    pub(super) fn tensor(self) -> Tensor {
        self.0
    }
}

impl From<Colour> for Paint {
    #[track_caller]
    fn from(colour: Colour) -> Paint {
        Paint(colour.tensor())
    }
}

/// A colour from 0 to 255, f32 `[3]`, or `[rows, columns, 3]` for a colour per cell of a board.
impl From<Tensor> for Paint {
    fn from(colour: Tensor) -> Paint {
        Paint(colour)
    }
}
