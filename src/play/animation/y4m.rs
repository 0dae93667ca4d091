//! YUV4MPEG2, uncompressed, which video encoders read: `ffmpeg -i episode.y4m episode.mp4`.

use std::io::Write;

use anyhow::Result;

use super::{Film, Look};
use crate::play::Picture;

/// Pictures per second are written in thousandths.
const A_PICTURE: f64 = 1000.0;

/// An animation of whole pictures, each with brightness and two colour differences for every pixel
/// (BT.601).
pub(super) struct Y4m<W: Write> {
    to: W,
}

impl<W: Write> Y4m<W> {
    pub(super) fn begin(mut to: W, look: &Look) -> Result<Self> {
        let Look { width, height, .. } = look;
        let rate = (look.per_second * A_PICTURE).round();
        writeln!(to, "YUV4MPEG2 W{width} H{height} F{rate}:{A_PICTURE} Ip A1:1 C444")?;
        Ok(Y4m { to })
    }
}

impl<W: Write> Film for Y4m<W> {
    fn add(&mut self, picture: &Picture) -> Result<()> {
        self.to.write_all(b"FRAME\n")?;
        let planes: [fn([f64; 3]) -> f64; 3] = [
            |[r, g, b]| 16.0 + (65.481 * r + 128.553 * g + 24.966 * b) / 255.0,
            |[r, g, b]| 128.0 + (-37.797 * r - 74.203 * g + 112.0 * b) / 255.0,
            |[r, g, b]| 128.0 + (112.0 * r - 93.786 * g - 18.214 * b) / 255.0,
        ];
        for plane in planes {
            let bytes =
                picture.pixels.iter().map(|pixel| plane(pixel.map(f64::from)).round() as u8);
            self.to.write_all(&bytes.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        Ok(self.to.flush()?)
    }
}
