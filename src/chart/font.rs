//! The font of a chart.

use std::sync::{Arc, LazyLock};

use anyhow::{Result, anyhow};
use plotters::prelude::{FontDesc, FontStyle};
use plotters::style::register_font;
use resvg::usvg::fontdb::Database;

/// The font of PNG and PDF, and in SVG the reader's font of this name.
const SANS: &str = "sans-serif";

/// A family of letters.
#[derive(Clone, Debug)]
pub(crate) struct Font {
    /// The name in an SVG.
    family: String,
    /// The font as the only font of a conversion, which is its sans-serif font, too.
    pub(super) fonts: Arc<Database>,
}

/// Ubuntu Light, which is the same on every machine; in SVG the reader's sans-serif font.
impl Default for Font {
    fn default() -> Self {
        static FONT: LazyLock<Font> = LazyLock::new(|| {
            let light = epaint_default_fonts::UBUNTU_LIGHT;
            Font::new(SANS.to_owned(), light).expect("the font is one that can be read")
        });
        FONT.clone()
    }
}

impl Font {
    /// The font in the bytes of a TrueType or OpenType file. It stays in memory until the process
    /// ends.
    ///
    /// # Errors
    /// An error if the bytes are not a font.
    pub(crate) fn of_file(bytes: Vec<u8>) -> Result<Self> {
        let mut database = Database::new();
        database.load_font_data(bytes.clone());
        let face = database.faces().next().ok_or_else(|| anyhow!("it is not a font"))?;
        let family = face.families.first().map_or(SANS, |(name, _)| name).to_owned();
        Font::new(family, Box::leak(bytes.into_boxed_slice()))
    }

    fn new(family: String, bytes: &'static [u8]) -> Result<Self> {
        register_font(&family, FontStyle::Normal, bytes)
            .map_err(|_| anyhow!("it is not a TrueType or OpenType font"))?;
        let mut fonts = Database::new();
        fonts.load_font_data(bytes.to_vec());
        let own = fonts.faces().next().and_then(|face| face.families.first());
        if let Some((name, _)) = own.cloned() {
            fonts.set_sans_serif_family(name);
        }
        Ok(Font { family, fonts: Arc::new(fonts) })
    }

    /// The font for letters of this height in pixels.
    pub(crate) fn letters(&self, height: u32) -> FontDesc<'_> {
        FontDesc::from((self.family.as_str(), height))
    }

    /// Greatest width of a text in pixels, because an SVG may be displayed with a wider font.
    pub(crate) fn width(&self, text: &str, height: u32) -> u32 {
        let measured = self.letters(height).box_size(text).map(|(width, _)| width);
        measured.unwrap_or(height / 2 * text.chars().count() as u32) * 6 / 5
    }
}
