//! Text from elsewhere, such as a worker's name, for a terminal.

use std::borrow::Cow;

/// The text with its control characters, except ends of lines and tabs, and with marks of the direction of writing as escapes such as
/// `\u{1b}`: it moves no cursor of a terminal, and no part of it seems to stand elsewhere.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let escaped = |character: char| match is_hidden(character) {
        true => character.escape_unicode().collect::<String>(),
        false => character.to_string(),
    };
    Cow::Owned(text.chars().map(escaped).collect())
}

fn is_hidden(character: char) -> bool {
    let directs = matches!(
        character,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    directs || (character.is_control() && !['\n', '\t'].contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_elsewhere_moves_no_cursor() {
        assert_eq!(printable("a\x1b[2Jb\x07\r\u{9b}1m"), "a\\u{1b}[2Jb\\u{7}\\u{d}\\u{9b}1m");
        assert_eq!(printable("gif.\u{202e}exe\u{2066}"), "gif.\\u{202e}exe\\u{2066}");
        assert!(matches!(printable("two\n\tlines, ä, 🏎"), Cow::Borrowed(_)));
    }
}
