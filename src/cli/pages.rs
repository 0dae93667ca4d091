//! Checks of the documentation's pages by the command line: commands are parsed, experiments are
//! read.

use std::fs;
use std::path::Path;

use clap::Parser;

use podracer_envs::Catch;
use podracer_rl::agents::PpoSettings;
use podracer_test_support::pages as parts;

use super::command::{Arguments, Command};
use crate::registry::{AgentEntry, EnvironmentEntry, Registry};

/// Texts of the README and of all pages of `docs/`, with their paths.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = parts::below(&root.join("docs")).unwrap();
    pages.extend(["README.md", "benches/README.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    let text = |page: &std::path::PathBuf| fs::read_to_string(page).unwrap();
    pages.iter().map(|page| (page.display().to_string(), text(page))).collect()
}

/// The command in a line of a block, as its words after the program's name; `None` for other lines.
fn command(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let programs =
        ["podracer ", "target/release/podracer ", "cargo run -- ", "cargo run --release -- "];
    let rest = programs.iter().find_map(|program| line.strip_prefix(program))?;
    // A comment follows after a wide gap or a `#`. After a pipe or in a list of commands, another
    // command follows.
    let end = ["   ", " #", " | ", " && ", "; ", " > ", " &"];
    let end = end.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let words = rest[..end].split_whitespace().map(|word| word.replace(['\'', '"'], ""));
    // Variables of the shell are replaced by a number.
    let word = |word: String| match word.split_once('$') {
        Some((before, _)) => format!("{before}1"),
        None => word,
    };
    Some(words.map(word).collect())
}

/// The commands of a page's blocks, with their line numbers. A line that ends in `\` continues in
/// the next line.
fn commands(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for block in parts::parts(text).0 {
        if !["", "sh", "console", "bash", "text"].contains(&block.info) {
            continue;
        }
        let mut lines = block.lines.iter().zip(block.line + 1..);
        while let Some((line, number)) = lines.next() {
            let mut line = (*line).to_owned();
            while let Some(begin) = line.strip_suffix('\\') {
                let next = lines.next().map_or("", |(next, _)| next.trim_start());
                line = format!("{begin}{next}");
            }
            // A loop of the shell has its command after the last `do`.
            let line = line.rsplit_once("; do ").map_or(&*line, |(_, body)| body);
            found.extend(command(line).map(|words| (number, words)));
        }
    }
    found
}

/// The program of the pages: the built-in program, plus registrations from the pages' own programs.
/// Other agents and environments stand in for theirs.
fn registry() -> Registry {
    let mut registry = Registry::built_in();
    for name in ["docking", "field"] {
        registry.add_environment(EnvironmentEntry::dsl::<Catch>(name));
        let experiment = format!("base = 'catch-ppo'\nenvironment.name = '{name}'");
        registry.add_experiment(&format!("{name}-ppo"), &experiment, false);
    }
    for name in ["reinforce", "warm", "curious", "anchored"] {
        registry.add_agent(AgentEntry::new::<PpoSettings>(name));
    }
    registry
}

/// The error of a command, as the command line reports it. For a training that names an experiment,
/// also the error of its settings.
fn mistake(words: &[String], registry: &Registry) -> Option<String> {
    let name = "podracer".to_owned();
    match Arguments::try_parse_from([&name].into_iter().chain(words)) {
        Err(error) if error.use_stderr() => Some(error.to_string().lines().next()?.to_owned()),
        Ok(Arguments { command: Command::Train(train) }) => {
            let name = &train.experiment.experiment;
            // Files belong to the reader, and capitals stand for a name.
            let is_name = !name.contains(['.', '/']) && *name == name.to_lowercase();
            let overrides = train.experiment.overrides();
            let error = is_name.then(|| registry.load(name, &overrides).err()).flatten()?;
            Some(error.to_string())
        }
        _ => None,
    }
}

#[test]
fn commands_of_the_pages_are_commands() {
    let registry = registry();
    let mut mistakes = Vec::new();
    let mut count = 0;
    for (page, text) in pages() {
        for (line, words) in commands(&text) {
            count += 1;
            let found = mistake(&words, &registry);
            mistakes.extend(found.map(|error| format!("{page}:{line}: {error}: {words:?}")));
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(count > 40, "the pages show {count} commands");
}

#[test]
fn a_command_that_is_none_is_found() {
    let text = "```sh\npodracer train a   and more\nfor s in 0 1; do podracer train a --seed $s; done\n\
                $ podracer runs \\\n    compare a b | head\npodracer tarin a\nls\n```\n\
                ```rust\npodracer nothing\n```\npodracer prose\n";
    let found = commands(text);
    let lines: Vec<_> = found.iter().map(|(line, words)| (*line, words.join(" "))).collect();
    let expected =
        [(2, "train a"), (3, "train a --seed 1"), (4, "runs compare a b"), (6, "tarin a")];
    assert_eq!(lines, expected.map(|(line, words)| (line, words.to_owned())));
    let registry = registry();
    for (command, expected) in [
        ("tarin a", "unrecognized subcommand 'tarin'"),
        ("train catch-pppo", "there is no experiment `catch-pppo`"),
        ("train catch-ppo --set agent.clipp=1", "`agent.clipp` is not a setting"),
    ] {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let mistake = mistake(&words, &registry).unwrap();
        assert!(mistake.contains(expected), "{mistake}");
    }
    assert_eq!(mistake(&found[2].1, &registry), None);
}

/// Reads an experiment of a page, or a part of an experiment, which is merged into another.
fn experiment(text: &str) -> Result<(), String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut registry = registry();
    // Robots of the pages are examples.
    const EXAMPLES: &str = concat!("model = \"", env!("CARGO_MANIFEST_DIR"), "/examples/");
    let mut text = text.replace("model = \"", EXAMPLES);
    if !table.contains_key("base") && !table.contains_key("agent") {
        text.insert_str(0, "base = 'cartpole-sebulba-ppo'\n");
    }
    registry.add_experiment("of-a-page", &text, false);
    registry.check().map_err(|error| error.to_string())
}

#[test]
fn experiments_of_the_pages_are_read() {
    let mut mistakes = Vec::new();
    let mut count = 0;
    for (page, text) in pages() {
        for block in parts::parts(&text).0.iter().filter(|block| block.info == "toml") {
            count += 1;
            let error = experiment(&block.lines.join("\n")).err();
            mistakes.extend(error.map(|error| format!("{page}:{}: {error}", block.line)));
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(count > 3, "the pages show {count} experiments");
    let wrong = "[agent]\nkind = 'ppo'\nlearning_rat = 1\n[environment]\nname = 'catch'\n";
    assert!(experiment(wrong).unwrap_err().contains("learning_rat"));
    assert!(experiment("[agent\n").is_err());
}
