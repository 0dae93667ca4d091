//! Prose: habits that make readers stop, counted in documentation comments and in pages. The numbers may only fall.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Component, Path};
use std::{env, fs};

use regex::Regex;

use super::files_with;

/// The number of habits that each place is allowed, a line each: `PLACE NUMBER`.
const ALLOWANCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tidy/prose.txt");

/// Greatest number of lines that a complaint shows of one place.
const SHOWN: usize = 20;

/// A habit of prose.
struct Habit {
    /// Regular expression of the words, in lower case.
    pattern: &'static str,
    /// Next words that make it no habit.
    allowed_before: &'static [&'static str],
    /// Words to write in place of the pattern.
    instead: &'static str,
}

const fn habit(pattern: &'static str, instead: &'static str) -> Habit {
    Habit { pattern, allowed_before: &[], instead }
}

const HABITS: &[Habit] = &[
    Habit {
        pattern: r"\b(?:another|the|that|this|each|an?|its|first|last|next|old|new|other|whole|single) one\b",
        allowed_before: &[
            "of",
            "dimension",
            "step",
            "environment",
            "device",
            "call",
            "program",
            "run",
            "line",
            "file",
            "process",
        ],
        instead: "repeat the noun",
    },
    habit(r"\bones\b", "repeat the noun"),
    habit(r"\b(?:that|those) of\b", "repeat the noun, or use a possessive"),
    habit(r"\bthe same (?:of|for|with)\b", "name the thing"),
    Habit {
        pattern: r"\bso (?:many|much)\b",
        allowed_before: &["that", "as", "so"],
        instead: "name the parameter: `n`, `count`",
    },
    habit(r"\bof all\b", "all X"),
    habit(r"\b(?:of|by|from|for|to|in|at|with) (?:which|whom)\b", "two sentences"),
    habit(r"\bwhose\b", "with, of its"),
    habit(r"\bbeside\b", "next to, compared with, in addition to"),
    habit(
        r"\bwhere (?:it|there|they|one|an?|the|no|its|nothing|none|nobody) \w+ (?:is|are|has|have|was|were|ends|does|do)\b",
        "if, when",
    ),
    habit(r"\b(?:goes|go|went|going|gone) on\b", "continues, resumes"),
    habit(
        r"\b(?:nobody|somebody|everybody|anybody|whoever|whom)\b",
        "no worker, every process, the caller",
    ),
    habit(r"\b(?:is|are|was|were|be) of\b", "belongs to, comes from, has"),
    habit(
        r"\b(?:what|whatever) (?:an?|the|its|it|they|is|are|was|were|has|of|acting|learning|each)\b",
        "a noun: input, result, cause",
    ),
    habit(r"\bto the bit\b", "bit-identical"),
    habit(r"\bas (?:seen|measured|asked|said|told)\b", "leave it out"),
    habit(r"\bbut for\b", "except"),
    habit(r"\b(?:says?|said|tells?|told) (?:so|of|that it)\b", "prints, reports, documents"),
    habit(r"\b(?:there|thereof|therein|thereby)[.,;:)]", "in that case, or name the place"),
    habit(r"\bis (?:told|said|asked for|wanted|meant)\b", "name who does it, or leave it out"),
];

/// The place that a file belongs to: a page, or a crate.
fn place(file: &Path) -> String {
    let parts: Vec<_> = file.components().map(Component::as_os_str).collect();
    match &parts[..] {
        [folder, rest, ..] if *folder == "docs" && *rest != "decisions" => {
            file.display().to_string()
        }
        [folder, rest, ..] if *folder == "docs" => format!("docs/{}", rest.display()),
        [first, ..] => first.display().to_string(),
        [] => String::new(),
    }
}

/// A paragraph without code, links' targets and tags, and the lines where its parts begin.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// Offset in the text, and number of the line.
    lines: Vec<(usize, usize)>,
}

impl Paragraph {
    fn line(&self, offset: usize) -> usize {
        let before = self.lines.iter().take_while(|(start, _)| *start <= offset);
        before.last().map_or(0, |(_, line)| *line)
    }
}

/// The paragraphs of a page, or of the documentation comments of a Rust file.
fn paragraphs(file: &Path, text: &str, code_span: &Regex) -> Vec<Paragraph> {
    let rust = file.extension().is_some_and(|extension| extension == "rs");
    let mut all = vec![Paragraph::default()];
    let mut code = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = match (rust, line.trim_start()) {
            (false, _) => Some(line),
            (true, line) => line.strip_prefix("///").or_else(|| line.strip_prefix("//!")),
        };
        let fence = line.is_some_and(|line| line.trim_start().starts_with("```"));
        code = line.is_some() && (code != fence);
        let line = line.filter(|line| !code && !fence && !line.trim().is_empty());
        let last = all.last_mut().expect("it begins with one");
        match line {
            Some(line) => {
                last.lines.push((last.text.len(), number));
                last.text.push_str(code_span.replace_all(line.trim(), " x ").as_ref());
                last.text.push(' ');
            }
            None if !last.text.is_empty() => all.push(Paragraph::default()),
            None => {}
        }
    }
    all
}

/// The habits of a text: line, words and what to write instead.
fn habits(
    file: &Path,
    text: &str,
    patterns: &[(Regex, &Habit)],
    code_span: &Regex,
) -> Vec<(usize, String, &'static str)> {
    let mut found = Vec::new();
    for paragraph in paragraphs(file, text, code_span) {
        let text = paragraph.text.to_lowercase();
        for (pattern, habit) in patterns {
            for words in pattern.find_iter(&text) {
                let after = text[words.end()..].split_whitespace().next().unwrap_or_default();
                let after = after.trim_end_matches(|c: char| !c.is_alphanumeric());
                if !habit.allowed_before.contains(&after) {
                    let line = paragraph.line(words.start());
                    found.push((line, words.as_str().to_owned(), habit.instead));
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn prose_has_fewer_habits_than_before() {
    let patterns: Vec<_> = HABITS
        .iter()
        .map(|habit| (Regex::new(habit.pattern).expect("a regular expression"), habit))
        .collect();
    let code_span = Regex::new(r"`[^`]*`|\]\([^)]*\)|<[^>]*>").expect("a regular expression");

    let page = Path::new("page.md");
    let text =
        "Learn from\nthe one of\n`its` `whose`.\n\n```\nwhose\n```\nThe old one, to the\nbit.\n";
    let seen = habits(page, text, &patterns, &code_span);
    let seen: Vec<_> = seen.iter().map(|(line, words, _)| (*line, words.as_str())).collect();
    assert_eq!(seen, [(8, "old one"), (8, "to the bit")]);

    let generated = ["docs/learning.md", "CHANGELOG.md"];
    let counted = |file: &Path| {
        !file.starts_with("benches/records")
            && !generated.iter().any(|&other| file == Path::new(other))
            && !file.components().any(|part| part.as_os_str() == "snapshots")
    };
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in files_with(&["rs", "md"]).into_iter().filter(|(file, _)| counted(file)) {
        let lines = places.entry(place(&file)).or_default();
        for (line, words, instead) in habits(&file, &text, &patterns, &code_span) {
            lines.push(format!("{}:{line}: `{words}`: {instead}", file.display()));
        }
    }

    let allowances = fs::read_to_string(ALLOWANCES).expect("the allowances");
    let allowed: BTreeMap<_, usize> = allowances
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(place, number)| (place, number.parse().expect("a number")))
        .collect();
    let mut complaints = String::new();
    let mut made = String::new();
    for (place, lines) in &places {
        let most = allowed.get(place.as_str()).copied().unwrap_or_default();
        if lines.len() > most {
            writeln!(complaints, "{place}: {} habits, of {most} allowed:", lines.len()).unwrap();
            for line in lines.iter().take(SHOWN) {
                writeln!(complaints, "  {line}").unwrap();
            }
        }
        if !lines.is_empty() {
            writeln!(made, "{place} {}", lines.len().min(most)).unwrap();
        }
    }
    assert!(complaints.is_empty(), "write instead:\n{complaints}");
    if env::var_os("PODRACER_BLESS").is_some() {
        return fs::write(ALLOWANCES, made).expect("the allowances are written");
    }
    assert_eq!(allowances, made, "fewer habits than allowed: PODRACER_BLESS=1 lowers the numbers");
}
