//! The pages of `docs/`: their links lead somewhere, `SUMMARY.md` lists all of them, and their Rust is compiled.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use podracer_test_support::pages::{anchors, below, links, parts};
use podracer_tests::{check_all, workspace};

mod sentences;
mod speeds;

/// Pages for readers outside of `docs/`.
const OUTSIDE: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "benches/README.md"];

/// Pages with Rust sketches that contain `..`.
const SKETCHES: [&str; 1] = ["docs/search.md"];

/// All pages with their texts, by paths from the root.
fn pages() -> Vec<(PathBuf, String)> {
    let inside = below(&workspace::root().join("docs")).expect("docs/ can be read");
    let inside = inside.into_iter().map(|page| {
        let page = page.strip_prefix(workspace::root()).map(Path::to_path_buf);
        page.expect("a page lies below the root")
    });
    let outside = OUTSIDE.iter().map(PathBuf::from);
    let text = |page: PathBuf| {
        let text = workspace::text(&page).unwrap_or_else(|| panic!("{} is gone", page.display()));
        (page, text)
    };
    inside.chain(outside).map(text).collect()
}

/// The path that a link from a page leads to, from the root; `None` where it leaves the repository.
pub(super) fn resolved(page: &Path, target: &str) -> Option<PathBuf> {
    let mut path = page.parent().map(Path::to_path_buf).unwrap_or_default();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir if !path.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            part => path.push(part),
        }
    }
    Some(path)
}

/// Complaints about the links of a page, given a function that reads files from the root.
fn broken(page: &Path, text: &str, read: impl Fn(&Path) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (line, link) in links(text) {
        let mut complain = |what: &str| {
            complaints.push(format!("{}:{line}: `{link}`: {what}", page.display()));
        };
        // The documentation of functions is built by `make site`: a folder of a crate.
        if link.contains("://") || (page == Path::new("docs/api.md") && link.starts_with("api/")) {
            continue;
        }
        let (target, anchor) = link.split_once('#').map_or((&*link, None), |(t, a)| (t, Some(a)));
        let path =
            if target.is_empty() { Some(page.to_path_buf()) } else { resolved(page, target) };
        let Some(path) = path.filter(|path| workspace::root().join(path).exists()) else {
            complain("is not there");
            continue;
        };
        if let Some(anchor) = anchor
            && !read(&path).is_some_and(|text| anchors(&text).iter().any(|there| there == anchor))
        {
            complain("has no such heading");
        }
    }
    complaints
}

#[test]
fn links_lead_somewhere() {
    let of = |(page, text): &(PathBuf, String)| broken(page, text, workspace::text);
    check_all(&pages().iter().flat_map(of).collect::<Vec<_>>());
}

#[test]
fn a_broken_link_is_reported() {
    let text = "# One `two`\n[a](walk.md#one-two) [b](walk.md#one), [c](nowhere.md)\n`[d](no.md)`\n\
                [e](#one-two) ![f](../../out.svg)\n```\n[g](no.md)\n# Three\n```\n[h](#three)\n";
    let told = broken(Path::new("docs/page.md"), text, |path| {
        (path.ends_with("walk.md") || path.ends_with("page.md")).then(|| text.to_owned())
    });
    // `[e]` and `[h]` are links of the page itself, which is not on the disk.
    assert_eq!(
        told,
        [
            "docs/page.md:2: `walk.md#one`: has no such heading",
            "docs/page.md:2: `nowhere.md`: is not there",
            "docs/page.md:4: `#one-two`: is not there",
            "docs/page.md:4: `../../out.svg`: is not there",
            "docs/page.md:9: `#three`: is not there",
        ]
    );
    assert_eq!(anchors("# A, b\n## A b\n#no\n### A_b-c (d)\n"), ["a-b", "a-b-1", "a_b-c-d"]);
}

/// A page's heading and its entry in the summary are one name, so that a reader finds it again.
#[test]
fn the_summary_lists_every_page_once() {
    let summary = Path::new("docs/SUMMARY.md");
    let text = workspace::text(summary).expect("docs/SUMMARY.md is there");
    let mut complaints = Vec::new();
    let mut listed = BTreeSet::new();
    for line in text.lines().map(str::trim_start).filter(|line| line.starts_with("- ")) {
        let entry = line[2..].strip_prefix('[').and_then(|line| line.strip_suffix(')'));
        let Some((title, target)) = entry.and_then(|entry| entry.split_once("](")) else {
            complaints.push(format!("`{line}` is no entry of a page"));
            continue;
        };
        let page = resolved(summary, target).unwrap_or_default();
        let heading = workspace::text(&page).unwrap_or_default();
        let heading = heading.lines().next().unwrap_or_default().trim_start_matches("# ");
        if heading != title {
            complaints.push(format!("{target}: the summary says `{title}`, the page `{heading}`"));
        }
        if !listed.insert(page) {
            complaints.push(format!("{target} is listed twice"));
        }
    }
    for (page, _) in pages() {
        if page.starts_with("docs") && page != summary && !listed.contains(&page) {
            complaints.push(format!("{} is not listed", page.display()));
        }
    }
    check_all(&complaints);
}

#[test]
fn rust_of_the_pages_is_compiled() {
    let root = workspace::text(Path::new("src/lib.rs")).expect("the crate's root is there");
    let mut complaints = Vec::new();
    for (page, text) in pages().iter().filter(|(page, _)| page.starts_with("docs")) {
        let included = root.contains(&format!("include_str!(\"../{}\")", page.display()));
        for block in parts(text).0 {
            let mut complain =
                |what: &str| complaints.push(format!("{}:{}: {what}", page.display(), block.line));
            let rust = block.info.split(',').next() == Some("rust");
            let sketch = SKETCHES.iter().any(|sketch| page == Path::new(sketch));
            if rust && !included && !sketch {
                complain("Rust that no test compiles: include the page at the end of src/lib.rs");
            }
            if rust && block.info.contains("ignore") {
                complain("`ignore` compiles nothing: say `no_run`");
            }
            // rustdoc takes a block without a language for Rust.
            if included && block.info.is_empty() {
                complain("a block without a language");
            }
        }
    }
    check_all(&complaints);
}

/// The file, the number and the text of a line of source that a page shows, as `podracer profile` and `memory` print it.
fn shown_line(line: &str) -> Option<(&str, usize, &str)> {
    let (before, text) = line.split_once(".rs:")?;
    let file = &line[before.rfind(' ').map_or(0, |space| space + 1)..before.len() + ".rs".len()];
    let (number, text) = text.split_once(' ')?;
    let text = text.trim().trim_end_matches("...");
    (!text.is_empty() && file.contains('/')).then_some((file, number.parse().ok()?, text))
}

/// The profile's page showed lines that the profile of the same training did not name any more.
#[test]
fn lines_of_source_that_a_page_shows_are_there() {
    let mut complaints = Vec::new();
    let mut seen = 0;
    for (page, text) in pages() {
        for (file, number, shown) in text.lines().filter_map(shown_line) {
            let source = workspace::text(Path::new(file)).unwrap_or_default();
            let there = source.lines().nth(number - 1).unwrap_or_default().trim();
            seen += 1;
            if !there.starts_with(shown) {
                complaints.push(format!("{}: {file}:{number} is `{there}`", page.display()));
            }
        }
    }
    assert!(seen >= 5, "the pages show {seen} lines");
    check_all(&complaints);
}

/// Paths in pages that are examples, or lie in a reader's own crate.
const EXAMPLES: [&str; 6] = [
    "experiments/NAME.toml",
    "src/cli/NAME.rs",
    "envs/src/docking.rs",
    "experiments/docking-ppo.toml",
    "tests/training.rs",
    "src/reinforce.rs",
];

/// `a/{b,c}` as `a/b` and `a/c`.
fn alternatives(path: &str) -> Vec<String> {
    let braces = path.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some((before, inside, after))
    });
    match braces {
        Some((before, inside, after)) => inside
            .split(',')
            .flat_map(|one| alternatives(&format!("{before}{one}{after}")))
            .collect(),
        None => vec![path.to_owned()],
    }
}

/// A path in backticks that begins with a folder of the repository was often gone: modules move, and pages stay.
#[test]
fn paths_that_pages_name_are_there() {
    let files = workspace::files().expect("the repository can be read");
    let known: BTreeSet<&Path> = files.iter().flat_map(|file| file.ancestors()).collect();
    let folder = |path: &str| {
        let (folder, rest) = path.split_once('/')?;
        let written = |c: char| c.is_ascii_alphanumeric() || "_-./{},".contains(c);
        (known.contains(Path::new(folder)) && rest.chars().all(written)).then_some(())
    };
    let mut complaints = Vec::new();
    let mut found = 0;
    for (page, text) in pages() {
        let (_, prose) = parts(&text);
        for (number, line) in prose {
            // Every second part of a line is between backticks.
            for path in line.split('`').skip(1).step_by(2) {
                if folder(path).is_none() || EXAMPLES.contains(&path) {
                    continue;
                }
                for path in alternatives(path) {
                    found += 1;
                    let path = path.trim_end_matches('/');
                    let module = format!("{path}.rs");
                    if !known.contains(Path::new(path)) && !known.contains(Path::new(&module)) {
                        complaints
                            .push(format!("{}:{number}: `{path}` is not there", page.display()));
                    }
                }
            }
        }
    }
    assert!(found > 200, "{found} paths: pages name more");
    check_all(&complaints);
}
