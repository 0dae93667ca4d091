//! The public items of the crates that are published: a change of them is a line of a listing, and is seen in review.
//!
//! `PODRACER_ALL=1 PODRACER_BLESS=1 cargo nextest run --workspace -E 'test(public_items)'` writes the listings anew.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use podracer_test_support::generated::check_generated;
use podracer_test_support::skip::skip_heavy;
use podracer_tests::workspace;

/// The published crates, except the DSL's macros, which the DSL exports.
const CRATES: [&str; 12] = [
    "podracer", "compiler", "dsl", "envs", "mpi", "physics", "pjrt", "plugins", "remote", "rl",
    "runtime", "sampler",
];

/// The public items of a crate, one per line: `struct agents::Ppo`. They come from rustdoc's page
/// with all items, without the methods of types.
fn items(page: &str) -> String {
    let mut items = BTreeSet::new();
    for link in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let Some(path) = link.strip_suffix(".html").filter(|path| !path.contains("..")) else {
            continue;
        };
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let Some((kind, name)) = file.split_once('.') else { continue };
        let module =
            if folder.is_empty() { String::new() } else { folder.replace('/', "::") + "::" };
        items.insert(format!("{kind} {module}{name}\n"));
    }
    items.into_iter().collect()
}

#[test]
fn public_items_are_those_of_the_listings() {
    if skip_heavy("minutes of rustdoc") {
        return;
    }
    let packages = CRATES.map(|name| match name {
        "podracer" => "--package=podracer".to_owned(),
        name => format!("--package=podracer-{name}"),
    });
    let root = workspace::root();
    let target = root.join("target/public-items");
    let made = Command::new(env!("CARGO"))
        .args(["doc", "--no-deps", "--locked", "--quiet"])
        .args(packages)
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(&root)
        .status()
        .expect("cargo runs");
    assert!(made.success(), "the documentation is built");
    for name in CRATES {
        let folder = if name == "podracer" { name.to_owned() } else { format!("podracer_{name}") };
        let page = target.join("doc").join(folder).join("all.html");
        let page =
            fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        let listing = root.join(format!("tests/public-items/{name}.txt"));
        check_generated(&listing.to_string_lossy(), &items(&page));
    }
}

#[test]
fn items_are_read_from_the_page_of_all_items() {
    let page = r#"<a href="../podracer/index.html">crate</a><h3>Structs</h3><ul><li><a href="agents/struct.Ppo.html">agents::Ppo</a></li>
        <li><a href="trait.Tree.html">Tree</a></li><li><a href="nn/init/fn.zeros.html">z</a></li></ul><a href="help.html">?</a>"#;
    assert_eq!(items(page), "fn nn::init::zeros\nstruct agents::Ppo\ntrait Tree\n");
}
