//! Episodes to look at, as text and as an animation.

use std::fs;

use serde_json::Value;

use super::resume::{result, train};
use super::{command, podracer, text};

/// The standard output of a command that succeeds.
fn printed(arguments: &[&str]) -> String {
    text(&podracer(arguments).assert().success().get_output().stdout)
}

/// The number of steps in each line `episode 1: return 0, 12 steps, terminated`.
fn steps(printed: &str) -> Vec<usize> {
    let episodes = printed.lines().filter(|line| line.starts_with("episode "));
    let steps =
        episodes.map(|line| line.split(", ").nth(1).and_then(|part| part.split(' ').next()));
    steps.map(|number| number.and_then(|number| number.parse().ok()).expect("a number")).collect()
}

#[test]
fn an_animation_has_a_picture_of_every_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("breakout.gif");
    let file = file.to_str().expect("UTF-8");
    let play = ["play", "minatar-breakout", "--random", "--episodes=3", "--seed=5", "--fps=20"];
    let shown = printed(&[&play[..], &["--gif", file]].concat());
    let steps = steps(&shown);
    assert_eq!((steps.len(), shown.lines().count()), (3, 3), "{shown}");
    assert!(shown.lines().all(|line| line.ends_with(", terminated")), "{shown}");

    let mut decoder = gif::DecodeOptions::new()
        .read_info(fs::File::open(file).expect("it was written"))
        .expect("a GIF");
    assert_eq!((decoder.width(), decoder.height()), (320, 320 + 26), "with a caption");
    let mut pictures = 0;
    while let Some(frame) = decoder.read_next_frame().expect("a frame") {
        assert_eq!(frame.delay, 5);
        pictures += 1;
    }
    assert_eq!(
        pictures,
        steps.iter().sum::<usize>() + 3,
        "a first picture, and one after each step"
    );
    // The same seed plays the same episodes.
    assert_eq!(printed(&[&play[..], &["--gif", file]].concat()), shown);
}

#[test]
fn a_run_is_shown_as_text_and_plays_what_is_evaluated() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let steps = "--steps=2048";
    result(command(&train(&["catch-ppo", steps], &run)[..]).env_remove("COLORTERM"));
    let run = run.to_str().expect("UTF-8");
    let shown = printed(&["play", run, "--seed=3"]);
    assert_eq!(self::steps(&shown), [9], "{shown}");
    assert!(!shown.contains('\x1b'), "no terminal, no colours");
    let captions: Vec<&str> = shown.lines().filter(|line| line.starts_with("step ")).collect();
    assert_eq!((captions.len(), captions[0]), (10, "step 0, return 0"), "{shown}");
    let evaluated = printed(&["eval", run, "--episodes=1", "--seed=3", "--json"]);
    let evaluated: Value = serde_json::from_str(&evaluated).expect("JSON");
    let expected = format!("episode 1: return {}, 9 steps", evaluated["episode_return"]["mean"]);
    assert!(
        shown.contains(expected.trim_end_matches(".0"))
            || shown.contains(&expected.replace(".0,", ",")),
        "{shown}"
    );
    // With the agent's values the same episode has, below each picture, the state's value and a row for each of three actions.
    let valued = printed(&["play", run, "--seed=3", "--values"]);
    let below = |line: &str| {
        line.starts_with("value ") || line.starts_with([' ', '>']) && line.contains("   0.")
    };
    assert_eq!(valued.lines().filter(|line| line.starts_with("value ")).count(), 9, "{valued}");
    assert_eq!(valued.lines().filter(|line| line.starts_with('>')).count(), 9, "{valued}");
    assert_eq!(valued.lines().filter(|line| below(line)).count(), 9 * 4, "{valued}");
    let plain: Vec<&str> = shown.lines().filter(|line| line.starts_with("step ")).collect();
    assert!(valued.lines().filter(|line| line.starts_with("step ")).eq(plain), "{valued}");
    // The ball is in the first row of the first picture.
    let first = shown.lines().next().expect("a line");
    assert!(first.contains('%') || first.contains('*') || first.contains('#'), "{first:?}");
}

#[test]
fn a_run_routes_a_board_of_ones_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (board, routed) = (path("board.txt"), path("routed.txt"));
    let run = folder.path().join("run");
    let experiment = [
        "connector-ppo",
        "--steps=256",
        "--set=environment.size=4",
        "--set=environment.wires=3",
        "--set=anakin.environments=16",
        "--set=anakin.unroll=16",
        "--set=anakin.iterations_per_call=1",
        "--set=agent.hidden=[8]",
    ];
    result(&mut command(&train(&experiment, &run)[..]));
    let run = run.to_str().expect("UTF-8");
    fs::write(&board, "A...\n##..\nA..B\n...B\n").expect("it can be written");
    let own = format!("--set=environment.board={board}");
    let shown = printed(&["play", run, "--sample", &own, "--output", &routed]);
    assert!(shown.starts_with("episode 1: return "), "{shown}");
    let text = fs::read_to_string(&routed).expect("it was written");
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    assert!(lines.len() == 4 && lines.iter().all(|line| line.len() == 4), "{text}");
    let pins = [((0, 0), 'A'), ((2, 0), 'A'), ((2, 3), 'B'), ((3, 3), 'B'), ((1, 0), '#')];
    assert!(pins.iter().all(|&((row, column), letter)| lines[row][column] == letter), "{text}");
    for (arguments, expected) in [
        (["--set=environment.board=/nowhere", "--seed=1"], "cannot read the board `/nowhere`"),
        (["--set=agent.epochs=3", "--seed=1"], "is no setting of the environment"),
        (["--set=environment.wires=4", "--seed=1"], "f32[4,202]"),
    ] {
        let output = podracer(&[&["play", run][..], &arguments].concat()).assert().code(2);
        let message = self::text(&output.get_output().stderr);
        assert!(message.contains(expected), "{message}");
    }
    // Environments without text print an error.
    let pong = ["play", "catch", "--random", "--output", &routed];
    let output = podracer(&pong).assert().code(1).get_output().clone();
    assert!(self::text(&output.stderr).contains("the environment has no text"));
}

#[test]
fn mistakes_of_play_say_what_to_do() {
    for (arguments, expected) in [
        (&["play", "catch-ppo"][..], "`catch-ppo` is no run directory"),
        (&["play", "minatar-freeway"], "play minatar-freeway --random`"),
        (&["play", "nowhere"], "`nowhere` holds no run"),
        (&["play", "nowhere", "--random"], "there is no run, environment or experiment `nowhere`"),
        (&["play", "catch", "--against", "nowhere"], "`catch` is for one player: --against plays"),
        (&["play", "connect-four", "--against", "nowhere"], "`nowhere` holds no run"),
        (&["play", "connect-four", "--second"], "--against <RUN>"),
        (&["play", "catch", "--random", "--fps=0"], "expected a number from 0.1 to 100"),
        (&["play", "catch", "--random", "--best"], "cannot be used with"),
        (&["play", "catch", "--random", "--values"], "cannot be used with"),
        (&["play", "catch", "--random", "--set", "agent.epochs=3"], "`catch` is an environment"),
        (
            &["play", "catch", "--random", "--set", "environment.row=3"],
            "`environment.row` is not a setting; did you mean `rows`?",
        ),
    ] {
        let output = podracer(arguments).assert().code(2).get_output().clone();
        assert!(output.stdout.is_empty());
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{message}");
    }
    let nowhere = ["play", "catch", "--random", "--gif", "/nowhere/catch.gif"];
    let output = podracer(&nowhere).assert().code(1).get_output().clone();
    assert!(text(&output.stderr).contains("cannot write `/nowhere/catch.gif`"));

    // An environment without text empties no file of the user.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keep.txt");
    std::fs::write(&file, "kept").expect("a file");
    let refused = ["play", "cartpole", "--random", "--output", file.to_str().expect("UTF-8")];
    podracer(&refused).assert().code(1);
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "kept");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_person_plays_against_a_run_through_piped_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let settings = ["connect-four-random-ppo", "--steps=2048", "--set=anakin.environments=32"];
    let settings = [&settings[..], &["--set=agent.hidden=[8]"]].concat();
    result(&mut command(&train(&settings, &run)[..]));
    let run = run.to_str().expect("UTF-8");

    let against = ["play", "connect-four", "--against", run, "--second"];
    let columns = "1\n2\n3\n4\n5\n6\n7\n".repeat(30);
    let mut play = podracer(&against);
    let output = play.write_stdin(columns).assert().success().get_output().clone();
    let shown = text(&output.stdout);
    assert!(shown.starts_with("game 1 of 1: you are O, and the agent begins."), "{shown}");
    assert!(shown.contains("A move is one of 1 2 3 4 5 6 7"), "{shown}");
    assert!(shown.contains("agent: ") && shown.contains("1 2 3 4 5 6 7\n"), "{shown}");
    assert!(shown.contains("game 1: ") && shown.contains("you won "), "{shown}");
    // The agent never chooses a full column: its input has the mask of legal actions.
    assert!(shown.matches("agent: ").count() >= 4, "{shown}");

    let output = podracer(&against).write_stdin("eight\n").assert().code(1).get_output().clone();
    let shown = text(&output.stdout);
    assert!(shown.contains("expected one of 1 2 3 4 5 6 7, got `eight`"), "{shown}");
    let message = text(&output.stderr);
    assert!(message.contains("the input ended in game 1 after 1 moves"), "{message}");
    let output = podracer(&against).write_stdin("q\n").assert().code(130).get_output().clone();
    assert!(text(&output.stdout).ends_with("you won 0, drew 0 and lost 0\n"));

    let other = ["play", "tic-tac-toe", "--against", run];
    let output = podracer(&other).assert().code(2).get_output().clone();
    let message = text(&output.stderr);
    assert!(
        message.contains("learnt `connect-four-against`, where it sees f32[6,7,2]"),
        "{message}"
    );
    assert!(message.contains("in `tic-tac-toe` it would see f32[3,3,2]"), "{message}");
}

#[test]
fn wires_are_routed_with_an_action_for_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let board = ["--set=environment.size=4", "--set=environment.wires=2"];
    let small = ["--set=agent.torso=none", "--set=agent.hidden=[8]", "--set=anakin.unroll=64"];
    let settings = [&["connector-ppo", "--steps=16384"][..], &board, &small].concat();
    result(&mut command(&train(&settings, &run)[..]));
    // The share of the wires that were connected when episodes ended.
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
    let of_line = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
    let success = of_line(metrics.lines().last().expect("a line"))["episode_success"].as_f64();
    assert!(success.is_some_and(|share| 0.0 < share && share <= 1.0), "{success:?}");

    let run = run.to_str().expect("UTF-8");
    let shown = printed(&["play", run, "--values"]);
    assert!(shown.contains(" action[0]") && shown.contains(" action[1]"), "{shown}");
    let crowded = ["play", "connector", "--random", "--set", "environment.wires=26"];
    let output = podracer(&crowded).assert().code(2).get_output().clone();
    assert!(text(&output.stderr).contains("environment.wires is 26 and must be at most 25"));
}
