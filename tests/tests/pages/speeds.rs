//! Speeds of the README and the changelog: each is a figure of a table in `benches/README.md`.

use podracer_tests::{check_all, workspace};
use std::path::Path;

/// A page's text with single spaces in place of line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn page(path: &str) -> String {
    workspace::text(Path::new(path)).unwrap_or_else(|| panic!("{path} is gone"))
}

/// The cells of a line of a table, without the stars of bold text; empty for another line.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let inside = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    let cells = inside.map(|inside| inside.split('|')).into_iter().flatten();
    cells.map(|cell| cell.replace("**", "").trim().to_owned()).collect()
}

/// The rows of the last table with a header that begins with these cells.
fn table(text: &str, header: &[&str]) -> Vec<Vec<String>> {
    let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
    let is_header = |cells: &Vec<String>| {
        cells.len() >= header.len() && header.iter().zip(cells).all(|(one, cell)| one == cell)
    };
    let at = lines.iter().rposition(is_header);
    let at = at.unwrap_or_else(|| panic!("no table begins with {header:?}"));
    // The line behind the header has dashes.
    let rows = lines[at + 1..].iter().skip(1).take_while(|cells| !cells.is_empty());
    let rows: Vec<_> = rows.cloned().collect();
    assert!(!rows.is_empty(), "the table with {header:?} has no rows");
    rows
}

/// The first of several figures in a cell, such as the best in `391k / 386k`.
fn first(cell: &str) -> &str {
    cell.split([',', '/']).next().unwrap_or_default().trim()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("`{cell}` is no number"))
}

#[test]
fn the_readme_has_speeds_of_an_earlier_run() {
    let (readme, benches) = (page("README.md"), page("benches/README.md"));
    let measured = table(
        &benches,
        &[
            "environments",
            "ours, steps/s, best / median",
            "PureJaxRL's",
            "ratio of bests, of medians",
        ],
    );
    let measured: Vec<[&str; 3]> =
        measured.iter().map(|row| [&*row[0], first(&row[1]), first(&row[3])]).collect();
    let shown = table(&readme, &["PPO on CartPole, environments", "steps/s", "of PureJaxRL's"]);
    let shown: Vec<[&str; 3]> = shown.iter().map(|row| [&*row[0], &*row[1], &*row[2]]).collect();
    assert_eq!(shown, measured, "README.md on the left, benches/README.md on the right");

    let readme = flat(&readme);
    let mut missing = Vec::new();
    let mut expect = |figure: String| {
        if !readme.contains(&figure) {
            missing.push(format!("README.md does not have `{figure}` of benches/README.md"));
        }
    };
    for row in table(&benches, &["random stepping", "at 1024 environments, of gymnax"]) {
        // Such as `226M steps/s, 26 times`.
        let (speed, ratio) = row[1].split_once("M steps/s, ").expect("a speed and a ratio");
        expect(format!("{speed} million times"));
        expect(format!("{ratio} as often"));
    }
    let rounds = table(&benches, &["round", "rl4burn, s", "its mean return", "podracer, s"]);
    let seconds = |column: usize| median(rounds.iter().map(|row| number(&row[column])).collect());
    expect(format!("{:.0} s for rl4burn, {:.1} s for podracer", seconds(1), seconds(3)));
    check_all(&missing);
}

#[test]
fn the_changelog_has_speeds_of_an_earlier_search() {
    let rows = table(&page("benches/README.md"), &["policy", "actions", "simulations", "1 root"]);
    let changelog = flat(&page("CHANGELOG.md"));
    let mut missing = Vec::new();
    for (policy, name) in [("`muzero`", "MuZero's policy"), ("`gumbel`", "Gumbel's")] {
        let rows = rows.iter().filter(|row| row[0] == policy);
        // Such as `63.4k : 8.49k, 7.46`; searches without a ratio did not end.
        let ratios: Vec<f64> = rows
            .flat_map(|row| &row[3..])
            .filter_map(|cell| cell.split_once(", "))
            .map(|(_, ratios)| number(first(ratios)))
            .collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = ratios.iter().copied().fold(0.0, f64::max);
        let range = format!("{least:.2} to {greatest:.1} times");
        let line = changelog.split(". ").find(|line| {
            line.contains(&range) && line.contains(name) && line.contains("mctx's speed")
        });
        if line.is_none() {
            missing.push(format!("CHANGELOG.md has no {range} mctx's speed by {name}"));
        }
    }
    check_all(&missing);
}

#[test]
fn tables_are_read() {
    let text = "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| a | b | c |\n|---|---|---|\n| **3** / 4 | 5, 6 | |\n\nend";
    let rows = table(text, &["a", "b"]);
    assert_eq!(rows, [["3 / 4", "5, 6", ""]]);
    assert_eq!((first(&rows[0][0]), first(&rows[0][1])), ("3", "5"));
}
