//! The page about the environments, `docs/gallery.md`, matches its sources: pictures, spaces,
//! settings and documentation. `PODRACER_BLESS=1` writes it again.

use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;

use podracer_dsl::prelude::*;
use podracer_envs::host::{
    HostEnvironment, NativeEnvironment, PixelBreakout, PixelCatch, Pool, StepMemory,
};
use podracer_envs::{Environment, Space, builtin_environments};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::Value;

use crate::run::run;
use podracer_test_support::generated::check_generated;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// Steps of random actions before the picture.
const STEPS: usize = 8;
/// Least width of a picture, in pixels.
const WIDTH: usize = 160;

const HEAD: &str = "\
# The environments in pictures

This page is for readers who choose an environment: it shows the environments that are written in the DSL, with their default settings (`environment.name = \"cartpole\"` and so on).
Each picture shows the state after eight random actions; `podracer play NAME --random` shows more. When an agent sees an observation, it has a leading axis for the environments of a batch.
The rules follow the package under *as in*, which is named with its licence; podracer contains none of the package's code. [experiments.md](experiments.md#the-environments) describes how exactly the rules agree.

";

const ON_HOST: &str = "
# Environments on the host

These environments step on the host and are written in Rust. Their pictures are their observations. `connect-four-against`,
`othello-against` and `tic-tac-toe-against` are the games above against an opponent that is part of the environment
([boards.md](boards.md)); they look like the games.

";

const OF_PACKAGES: &str = "
# Environments of Python packages

`podracer envs install gymnasium` and `podracer envs install atari` install Gymnasium and ale-py. Their environments step in
processes of their own ([python-environments.md](python-environments.md)). These pictures are the environments' own drawings after some
random actions, from Gymnasium 1.4.0 and ale-py 0.12.1. `scripts/pictures packages` draws them, on a machine with both packages.
`podracer play gymnasium --random --set environment.id=FrozenLake-v1` shows an episode.

";

/// Environments of packages: the file of the picture, the settings that make the environment, and
/// the package with its licence.
const PACKAGES: [(&str, &str, &str); 6] = [
    ("gymnasium-cartpole", "`name = \"gymnasium\"`, `id = \"CartPole-v1\"`", "Gymnasium (MIT)"),
    (
        "gymnasium-frozen-lake",
        "`name = \"gymnasium\"`, `id = \"FrozenLake-v1\"`",
        "Gymnasium (MIT)",
    ),
    ("gymnasium-taxi", "`name = \"gymnasium\"`, `id = \"Taxi-v4\"`", "Gymnasium (MIT)"),
    ("atari-breakout", "`name = \"atari\"`, `game = \"breakout\"`", "ale-py (GPL-2.0)"),
    ("atari-pong", "`name = \"atari\"`, `game = \"pong\"`", "ale-py (GPL-2.0)"),
    ("atari-space-invaders", "`name = \"atari\"`, `game = \"space_invaders\"`", "ale-py (GPL-2.0)"),
];

/// An environment's name, the package with its rules, and the package's licence.
type Origin = (&'static str, &'static str, &'static str);

/// The part of the page about each environment of the list.
macro_rules! cards {
    ($($environment:ty, $name:literal $package:literal $licence:literal;)*) => {
        [$(card(<$environment>::default(), ($name, $package, $licence)),)*]
    };
}

#[test]
fn the_gallery_shows_every_environment() {
    let cards = builtin_environments!(cards);
    let native = [
        native_card(&PixelBreakout::default(), "pixel-breakout"),
        native_card(&PixelCatch::default(), "pixel-catch"),
    ];
    let own = HEAD.to_owned() + &cards.join("\n") + ON_HOST + &native.join("\n");
    let page = own + OF_PACKAGES + &of_packages();
    check_generated(&format!("{DOCS}/gallery.md"), &page);
}

/// The part of the page about an environment with its picture in a file.
fn card<E>(env: E, (name, package, licence): Origin) -> String
where
    E: Environment<Observation = Tensor> + JsonSchema + Serialize,
{
    let mask = if masks(&env) { "; not all are legal in all states" } else { "" };
    let mut text = about(&env, name, picture(&env));
    writeln!(text, "| observation | {} |", shown(&env.observation_space())).unwrap();
    writeln!(text, "| action | {}{mask} |", shown(&env.action_space())).unwrap();
    writeln!(text, "| settings | {} |", settings(&env)).unwrap();
    writeln!(text, "| as in | {package} ({licence}) |").unwrap();
    text
}

/// The part of the page about an environment on the host, with its observation as its picture.
fn native_card<E>(env: &E, name: &str) -> String
where
    E: NativeEnvironment + JsonSchema + Serialize,
{
    let mut batch = Pool::new(env, 1);
    let (spec, mut memory) = (batch.spec().clone(), StepMemory::new(batch.spec()));
    batch.reset(1, 0, &mut memory.step()).unwrap();
    for step in 0..STEPS as i32 {
        batch.step(&(step % 3).to_le_bytes(), &mut memory.step()).unwrap();
    }
    let shape = spec.observation.shape();
    let grey = memory.observation().chunks_exact(shape[2]).map(|channels| channels[0]);
    let pixels = grey.flat_map(|grey| [grey; 3]).collect();
    let mut text = about(env, name, Some(enlarged((shape[0], shape[1], pixels))));
    writeln!(text, "| observation | {} |", shown(&spec.observation)).unwrap();
    writeln!(text, "| action | {} |", shown(&spec.action)).unwrap();
    writeln!(text, "| settings | {} |", settings(env)).unwrap();
    text
}

/// A table of the environments of packages. Their pictures are in files that this test only reads,
/// because a machine may lack the packages.
fn of_packages() -> String {
    let mut text = "| picture | environment | package |\n|---|---|---|\n".to_owned();
    let folder = format!("{DOCS}/images/gallery/packages");
    for (name, settings, package) in PACKAGES {
        let file = format!("{folder}/{name}.png");
        let (height, width, pixels) =
            read_picture(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!((150..=320).contains(&width.max(height)), "{name}: {width} by {height} pixels");
        let first = &pixels[..3];
        assert!(pixels.chunks_exact(3).any(|pixel| pixel != first), "{name} is empty");
        let picture = format!("![{name}](images/gallery/packages/{name}.png)");
        writeln!(text, "| {picture} | {settings} | {package} |").unwrap();
    }
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    assert_eq!(
        files.count(),
        PACKAGES.len(),
        "`{folder}` has the pictures of the page, and no other"
    );
    text
}

/// The heading of an environment, its picture in a file, its documentation, and the head of a table.
fn about<E: JsonSchema>(_: &E, name: &str, picture: Option<(usize, usize, Vec<u8>)>) -> String {
    let mut text = format!("## {name}\n\n");
    if let Some(picture) = picture {
        let file = format!("images/gallery/{name}.png");
        check_picture(&format!("{DOCS}/{file}"), &picture);
        writeln!(text, "![{name}]({file})\n").unwrap();
    }
    let schema = schema_for!(E).to_value();
    let about = schema["description"].as_str().expect("documentation");
    for paragraph in about.split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        writeln!(text, "{}\n", without_links(&paragraph)).unwrap();
    }
    writeln!(text, "| | |\n|---|---|").unwrap();
    text
}

/// The settings of an environment with their defaults.
fn settings<E: Serialize>(env: &E) -> String {
    let settings = serde_json::to_value(env).unwrap();
    let settings = settings.as_object().expect("a table").iter();
    let mut settings: Vec<String> = settings.map(|(key, value)| setting(key, value)).collect();
    // Tables keep their order only where another crate asks serde_json for it.
    settings.sort();
    if settings.is_empty() { "none".to_owned() } else { settings.join(", ") }
}

/// A setting with its default, where that is short.
fn setting(key: &str, value: &Value) -> String {
    match value.to_string() {
        text if text.len() <= 20 => format!("`{key} = {text}`"),
        _ => format!("`{key}`"),
    }
}

/// A sentence without the targets of its links.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain += before;
        let Some((named, behind)) = after.split_once(']') else {
            plain += "[";
            rest = after;
            continue;
        };
        match behind.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, behind)) => (plain += named, rest = behind).1,
            None if named.starts_with('`') => (plain += named, rest = behind).1,
            None => (plain += &format!("[{named}]"), rest = behind).1,
        }
    }
    plain + rest
}

fn shown(space: &Space) -> String {
    let shape =
        |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let with = |text: String, description: &str| match description {
        "" => text,
        description => format!("{text}: {description}"),
    };
    match space {
        Space::Discrete { n, description } => with(format!("`i32[]`, 0 to {}", n - 1), description),
        Space::MultiDiscrete { counts, description } => {
            let most = counts.iter().max().copied().unwrap_or(1) - 1;
            with(format!("`i32[{}]`, each 0 to {most}", counts.len()), description)
        }
        Space::Pixels { shape: of } => format!("`u8[{}]`", shape(of)),
        Space::Dict { parts } => {
            let parts = parts.iter().map(|(name, part)| format!("{name} {}", shown(part)));
            parts.collect::<Vec<_>>().join(", ")
        }
        Space::Box { shape: of, description, .. } => {
            let ((low, high), all) = (space.bounds(0), 0..space.elements());
            let same = all.map(|i| space.bounds(i)).all(|bounds| bounds == (low, high));
            let bounds = match (same, low.is_finite() && high.is_finite()) {
                (true, true) => format!(", {low} to {high}"),
                _ => String::new(),
            };
            with(format!("`f32[{}]`{bounds}", shape(of)), description)
        }
    }
}

fn masks<E: Environment<Observation = Tensor>>(env: &E) -> bool {
    let mut masks = false;
    run((), &[], |()| {
        masks = env.legal_actions(&env.initial_state(Key::new(0u32))).is_some();
    });
    masks
}

/// A random action of those that are legal.
fn action<E: Environment>(env: &E, state: &E::State, key: Key) -> Tensor {
    let space = env.action_space();
    let Some(legal) = env.legal_actions(state) else { return space.sample(key) };
    let draws = select(legal, key.uniform([legal.len()]), -1.0);
    match &space {
        Space::Discrete { .. } => draws.argmax(0),
        _ => {
            let counts = space.counts();
            let first =
                counts.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count)));
            let parts =
                first.zip(counts).map(|(first, count)| draws.slice(first..first + count).argmax(0));
            stack(&parts.collect::<Vec<_>>(), 0)
        }
    }
}

/// The picture after some random actions: height, width, and the bytes of its pixels.
fn picture<E: Environment<Observation = Tensor>>(env: &E) -> Option<(usize, usize, Vec<u8>)> {
    let mut draws = false;
    let results = run((), &[], |()| {
        let first = env.initial_state(Key::new(1u32));
        let (state, _) = scan(first, 0..STEPS, |state, step| {
            let [choice, chance] = Key::new(step + 2).split_into();
            let action = action(env, &state, choice);
            let (next, step) = env.step(state.clone(), action, chance);
            // The last state before the end, for a shorter episode.
            let over = step.terminated | step.truncated;
            (tree_select(over, &state, &next), ())
        });
        draws = env.render(&state).is_some();
        env.render(&state).unwrap_or_else(|| zeros(U8, [1, 1, 3]))
    });
    let shape = &results[0].ty().shape;
    let pixels = results[0].to_f64().into_iter().map(|value| value as u8).collect();
    draws.then(|| enlarged((shape[0], shape[1], pixels)))
}

/// The picture; if it is narrow, with squares in place of its pixels.
fn enlarged((height, width, pixels): (usize, usize, Vec<u8>)) -> (usize, usize, Vec<u8>) {
    let times = WIDTH.div_ceil(width);
    let rows = (0..height * times).map(|row| row / times);
    let pixel = |row: usize, column: usize| &pixels[3 * (row * width + column)..][..3];
    let large =
        rows.flat_map(|row| (0..width * times).flat_map(move |column| pixel(row, column / times)));
    (height * times, width * times, large.copied().collect())
}

/// Checks that a file has this picture, up to rounding; `PODRACER_BLESS=1` writes another picture anew.
fn check_picture(file: &str, picture: &(usize, usize, Vec<u8>)) {
    if shows(file, picture).unwrap_or(false) {
        return;
    }
    let bless = std::env::var_os("PODRACER_BLESS").is_some();
    assert!(bless, "{file} shows something else: PODRACER_BLESS=1 draws it anew");
    let (height, width, pixels) = picture;
    let out = File::create(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut encoder = png::Encoder::new(out, *width as u32, *height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
}

/// True if a file has this picture. Colours may differ by 1: processors round differently.
fn shows(file: &str, picture: &(usize, usize, Vec<u8>)) -> Result<bool, png::DecodingError> {
    let there = read_picture(file)?;
    let same_size = (there.0, there.1) == (picture.0, picture.1);
    Ok(same_size && there.2.iter().zip(&picture.2).all(|(there, new)| there.abs_diff(*new) <= 1))
}

/// The picture in a file: height, width, and the bytes of its pixels.
fn read_picture(file: &str) -> Result<(usize, usize, Vec<u8>), png::DecodingError> {
    let mut reader = png::Decoder::new(BufReader::new(File::open(file)?)).read_info()?;
    let mut bytes = vec![0; reader.output_buffer_size().unwrap_or(0)];
    let info = reader.next_frame(&mut bytes)?;
    Ok((info.height as usize, info.width as usize, bytes))
}
