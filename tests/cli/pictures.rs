//! The pictures in `docs/images` show the present program: `scripts/pictures` makes them anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::podracer;

const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/images");

/// Films of trained agents: the experiment with the film's environment, the seed of the episode and
/// other options of `play`, as in `scripts/pictures`.
const FILMS: [(&str, &str, &str, &[&str]); 9] = [
    ("cartpole-ppo", "cartpole-ppo", "0", &[]),
    ("connect-four-ppo", "connect-four-random-ppo", "3", &["--size=240"]),
    ("acrobot-dqn", "acrobot-dqn", "0", &["--size=240", SHORT]),
    ("deep-sea-bootstrapped", "deep-sea-bootstrapped", "0", &["--size=240"]),
    ("memory-ppo", "memory-ppo", "1", &[]),
    ("pendulum-sac", "pendulum-sac", "0", &["--size=240", SHORT]),
    ("catch-muzero", "catch-muzero", "0", &[]),
    ("tic-tac-toe-alphazero", "tictactoe-alphazero", "0", &[]),
    ("catch-learned", "catch-ppo", "1", &[]),
];

/// An option for short episodes.
const SHORT: &str = "--set=environment.time_limit=5";
/// Greatest number of bytes of a film.
const LARGEST: u64 = 1_500_000;
/// Height of the bar with the number of steps and the return.
const CAPTION: usize = 26;

/// The first picture of a GIF: its width, and red, green and blue of its pixels.
fn first_picture(file: &Path) -> (usize, Vec<[u8; 3]>) {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let file = fs::File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut decoder = options.read_info(file).expect("a GIF");
    let width = usize::from(decoder.width());
    let frame = decoder.read_next_frame().expect("a frame").expect("a first frame");
    let pixels = frame.buffer.as_chunks::<4>().0;
    (width, pixels.iter().map(|&[red, green, blue, _]| [red, green, blue]).collect())
}

/// Colours that cover at least a hundredth of a picture.
fn main_colours(pixels: &[[u8; 3]]) -> Vec<[u8; 3]> {
    let mut counts = BTreeMap::<[u8; 3], usize>::new();
    pixels.iter().for_each(|pixel| *counts.entry(*pixel).or_default() += 1);
    counts
        .into_iter()
        .filter(|(_, count)| 100 * count > pixels.len())
        .map(|(colour, _)| colour)
        .collect()
}

/// The first picture of a film has the size and the colours of an episode of random actions, up to
/// its palette. The states differ, because an agent draws other random numbers.
#[test]
fn films_show_environments_as_they_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    for (film, experiment, seed, options) in FILMS {
        let path = Path::new(IMAGES).join("films").join(film).with_extension("gif");
        assert!(fs::metadata(&path).expect("a film").len() <= LARGEST, "{film} is too large");
        let drawn = folder.path().join("drawn.gif");
        let play = ["play", experiment, "--random", "--seed", seed, "--output"];
        podracer(&[&play[..], &[drawn.to_str().expect("UTF-8")], options].concat())
            .assert()
            .success();
        let ((width, shown), (least, drawn)) = (first_picture(&path), first_picture(&drawn));
        // Values are to the right of the picture, and the caption is below both.
        let height = drawn.len() / least - CAPTION;
        let cut = |width: usize, pixels: &[[u8; 3]]| {
            (0..height).flat_map(|row| pixels[row * width..][..least].to_vec()).collect::<Vec<_>>()
        };
        let (shown, drawn) = (cut(width, &shown), cut(least, &drawn));
        let near = |one: &[u8; 3], other: &[u8; 3]| {
            one.iter().zip(other).all(|(a, b)| a.abs_diff(*b) <= 12)
        };
        // Pixels of main colours that the other picture does not have.
        let missing = |of: &[[u8; 3]], from: &[[u8; 3]]| {
            let mut colours = main_colours(of);
            colours.retain(|colour| !from.iter().any(|other| near(colour, other)));
            of.iter().filter(|pixel| colours.contains(pixel)).count()
        };
        let different = missing(&shown, &drawn).max(missing(&drawn, &shown));
        assert!(
            different * 20 < shown.len(),
            "{film}: {different} of {} pixels have other colours: run `scripts/pictures films`",
            shown.len()
        );
    }
    let known: BTreeSet<String> = FILMS.iter().map(|film| format!("{}.gif", film.0)).collect();
    let there: BTreeSet<String> = fs::read_dir(Path::new(IMAGES).join("films"))
        .expect("a folder")
        .map(|film| film.expect("a file").file_name().into_string().expect("UTF-8"))
        .collect();
    assert_eq!(there, known);
}

/// The texts of an SVG that are no numbers.
fn words(svg: &str) -> Vec<String> {
    let lines = svg.lines().map(str::trim).filter(|line| !line.starts_with('<'));
    let is_number = |line: &&str| line.trim_end_matches(['k', 'M']).parse::<f64>().is_ok();
    lines.filter(|line| !is_number(line)).map(str::to_owned).collect()
}

/// The charts are drawn again from short trainings. They have the same titles, legends and notes, and
/// the same size.
#[test]
fn charts_have_their_present_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let size = |svg: &str| svg.lines().next().map(str::to_owned);
    let compare = |file: &str, drawn: &Path| {
        let read = |path: &Path| fs::read_to_string(path).expect("an SVG");
        let (shown, drawn) = (read(&Path::new(IMAGES).join(file)), read(drawn));
        let problem = format!("{file}: run `scripts/pictures charts`");
        assert_eq!((words(&shown), size(&shown)), (words(&drawn), size(&drawn)), "{problem}");
    };
    let run = path("run");
    podracer(&["train", "cartpole-ppo", "--run-dir", &run]).assert().success();
    compare("cartpole-ppo.svg", &PathBuf::from(run).join("learning_curve.svg"));
    for environment in ["cartpole", "catch"] {
        let (experiment, run) = (format!("{environment}-ppo"), path(&format!("s/{environment}")));
        let rates = "--set=agent.learning_rate=1e-4,1e-3,1e-2";
        let sweep =
            ["sweep", &*experiment, rates, "--seeds=5", "--steps=40000", "--run-dir", &*run];
        podracer(&sweep).assert().success();
    }
    podracer(&["plot", &path("s"), "--output", &path("study.svg")]).assert().success();
    compare("study.svg", &PathBuf::from(path("study.svg")));
}

/// Sources of the pages that Chromium has photographed.
const PAGES: [(&str, &[&str]); 3] = [
    ("watch.png", &["src/cli/inspect/watch"]),
    ("watch-threads.png", &["src/cli/inspect/watch"]),
    ("report.png", &["src/cli/inspect/report", "src/chart"]),
];

/// The files that make a page look as it does: scripts, styles and what writes HTML.
fn sources(folders: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).expect("it") {
            let path = entry.expect("a file").path();
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            let rust = folder.ends_with("report") && ending == "rs";
            if ["js", "css", "html"].contains(&ending) || rust {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// `docs/images/pages.txt` has the hash of each page's sources at the time of its picture.
#[test]
fn pictures_of_pages_are_as_old_as_the_pages() {
    let recorded = Path::new(IMAGES).join("pages.txt");
    let hash = |(picture, folders): &(&str, &[&str])| {
        let mut hasher = Sha256::new();
        for file in sources(folders) {
            hasher.update(fs::read(file).expect("a source"));
        }
        let hash = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("{picture} {}\n", &hash[..16])
    };
    let now: String = PAGES.iter().map(hash).collect();
    if std::env::var_os("PODRACER_BLESS").is_some() {
        return fs::write(recorded, now).expect("the hashes are written");
    }
    let then = fs::read_to_string(recorded).expect("the hashes");
    assert_eq!(
        now, then,
        "a page has changed since its picture: run `scripts/pictures pages`, and look at the pictures"
    );
}
