//! The length of a page's sentences.

use std::path::Path;

use podracer_test_support::pages::parts;
use podracer_tests::check_all;
use regex::Regex;

use super::pages;

/// Greatest number of words of a sentence, and of the mean over all pages.
const LONGEST: usize = 40;
const MEAN: f64 = 17.0;

/// The sentences of a page with the line where the paragraph of each begins. Code between backticks
/// is one word. Headings and tables have no sentences.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let code = Regex::new(r"`[^`]*`|\]\([^)]*\)").expect("a regular expression");
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in parts(text).1 {
        let line = line.trim();
        let outside = line.is_empty() || line.starts_with(['#', '|', '<', '!']);
        let item = line.starts_with("- ")
            || line.split_once(". ").is_some_and(|(digits, _)| digits.parse::<u32>().is_ok());
        match paragraphs.last_mut() {
            _ if outside => {}
            Some((_, paragraph)) if goes_on && !item => *paragraph += &format!(" {line}"),
            _ => paragraphs.push((number, line.trim_start_matches("- ").to_owned())),
        }
        goes_on = !outside;
    }
    let split = |(line, paragraph): (usize, String)| {
        let text = code.replace_all(&paragraph, "x").into_owned();
        let mut sentences = Vec::new();
        let mut sentence = String::new();
        for word in text.split_whitespace() {
            sentence = sentence + word + " ";
            let closed = word.trim_end_matches(['"', ')', '*', ']']);
            if closed.ends_with(['.', '!', '?', ':']) && closed != "e.g." {
                sentences.push((line, std::mem::take(&mut sentence)));
            }
        }
        sentences.push((line, sentence));
        sentences.into_iter().filter(|(_, sentence)| words(sentence) > 0)
    };
    paragraphs.into_iter().flat_map(split).collect()
}

fn words(sentence: &str) -> usize {
    let word = |word: &&str| word.contains(char::is_alphanumeric);
    sentence.split_whitespace().filter(word).count()
}

#[test]
fn sentences_are_short() {
    let page = "# No sentence\nOne `two three` four.\nFive: six\n\n- seven\n  eight. Nine\n\n```\nten\n```\n| no |\n";
    let lengths: Vec<_> =
        sentences(page).into_iter().map(|(line, text)| (line, words(&text))).collect();
    assert_eq!(lengths, [(2, 3), (2, 1), (2, 1), (5, 2), (5, 1)]);

    let mut complaints = Vec::new();
    let (mut number, mut all) = (0, 0);
    for (page, text) in pages() {
        for (line, sentence) in sentences(&text) {
            let length = words(&sentence);
            (number, all) = (number + 1, all + length);
            if length > LONGEST {
                let place = Path::new(&page).display();
                complaints.push(format!("{place}:{line}: {length} words: {sentence}"));
            }
        }
    }
    let mean = all as f64 / f64::from(number);
    if mean > MEAN {
        complaints.push(format!("the mean sentence has {mean:.1} words, of {MEAN} allowed"));
    }
    check_all(&complaints);
}
