//! Trainings with a script in place of `podracer`, which writes down how it is called.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// `train` is stopped after half of its steps where a file `stop` says so, or fails where a file `fail` does.
const SCRIPT: &str = r#"#!/bin/bash
here=$(dirname "$0")
echo "$@" >> "$here/calls"
finish() { # INTERRUPTED RUN SECONDS
  mkdir -p "$2/checkpoints/1-1"
  result "$2" 3 $3 "\"interrupted\": $1" | tee "$2/result.json"
}
result() { # RUN SEED SECONDS MORE
  mkdir -p "$1"
  printf '[recorded]\nprocessor = "Abacus, 2 cores"\n' > "$1/config.toml"
  echo '{"run_dir": "'$1'", "seed": '$2', "env_steps": 200, "devices": 2, "compile_seconds": 0.5, "total_seconds": '$3',
    "mean_return": 0.75, "params_sha256": "abc", '$4'}' | tr -d '\n'
  echo
}
case $1 in
  describe) echo '{"parts": [
      {"table": "train", "name": "train", "settings": [{"key": "seed", "value": 0}, {"key": "steps", "value": 200}]},
      {"table": "agent", "name": "ppo", "settings": []},
      {"table": "environment", "name": "catch", "settings": []}]}' ;;
  envs) printf '%s\n' 'gymnasium Gymnasium /cache/gymnasium/bin/python' 'atari ale-py they are not installed' ;;
  train)
    [ -e "$here/fail" ] && { echo 'error: the device is on fire' >&2; exit 1; }
    if [ -e "$here/stop" ]; then rm "$here/stop"; finish true "$5" 1.5; exit 130; fi
    if [ "$4" = --seeds=3 ]; then
      echo '{"failed": ["seed-4"], "runs": ['$(result "$6/seed-3" 3 4.5 '"together": 3')', '$(result "$6/seed-5" 5 4.5 '"together": 3')']}'
      exit 1
    fi
    finish false "$5" 1.5 ;;
  ir) echo "program of $3 $8" ;;
  resume) finish false "$2" 3.0 ;;
  eval)
    mean=1.0; [ "$6" = --sample ] && mean=0.5
    echo '{"episodes": 10, "episode_return": {"mean": '$mean', "std": 0.25, "min": 0, "max": 1}}' ;;
esac
"#;

struct Fake {
    folder: tempfile::TempDir,
    driver: Driver,
    entry: Entry,
}

impl Fake {
    fn new() -> Fake {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("podracer");
        fs::write(&script, SCRIPT).expect("it is written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let program = Program::new(script);
        let described = program.describe("catch-ppo").expect("it is described");
        let row = Row {
            name: "catch-ppo".to_owned(),
            experiment: "catch-ppo".to_owned(),
            episodes: 10,
            reference: Some(1.0),
            ..Row::default()
        };
        // Without the signals of the tests' process.
        let driver = Driver { program, runs: folder.path().join("runs"), signals: Arc::default() };
        Fake { folder, driver, entry: Entry { row, described, earlier: None, program: None } }
    }

    fn train(&self) -> Ended {
        let [(3, ended)] = &self.seeds(3..4)[..] else { panic!("one seed") };
        ended.clone()
    }

    fn seeds(&self, seeds: Range<u64>) -> Vec<(u64, Ended)> {
        self.driver.train(&self.entry, seeds).expect("the program starts")
    }

    fn record(&self) -> Record {
        match self.train() {
            Ended::Recorded(record) => *record,
            other => panic!("{other:?}"),
        }
    }

    fn says(&self, file: &str) {
        fs::write(self.folder.path().join(file), "").expect("it is written");
    }

    /// The commands so far, and the first argument of each.
    fn calls(&self) -> (String, Vec<String>) {
        let calls = fs::read_to_string(self.folder.path().join("calls")).expect("there are some");
        let first = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        let commands = calls.lines().map(first).collect();
        (calls, commands)
    }
}

#[test]
fn a_seed_is_trained_and_evaluated_with_both_policies() {
    let fake = Fake::new();
    let record = fake.record();
    assert_eq!((record.seed, record.steps, record.devices), (3, 200, 2));
    assert_eq!((record.seconds, record.learning_return), (1.5, Some(0.75)));
    let evaluation = |mean| Evaluation { episodes: 10, seed: 1_003, mean, std: 0.25 };
    assert_eq!((record.greedy, record.sampled), (evaluation(1.0), evaluation(0.5)));
    assert_eq!(record.processor, "Abacus, 2 cores");
    assert_eq!(record.settings, fake.entry.described.settings);
    let (calls, commands) = fake.calls();
    assert_eq!(commands, ["describe", "train", "eval", "eval", "ir"]);
    assert!(calls.contains("train catch-ppo --seed=3 --run-dir"), "{calls}");
    // What is trained is not trained again: a row with other episodes is evaluated.
    fake.record();
    assert_eq!(fake.calls().1[5..], ["eval", "eval", "ir"]);
}

/// One of them fails, with which the command ends with 1.
#[test]
fn several_seeds_are_trained_as_one_population() {
    let fake = Fake::new();
    let ended = fake.seeds(3..6);
    let [(3, Ended::Recorded(first)), (4, Ended::Failed(problem)), (5, Ended::Recorded(last))] =
        &ended[..]
    else {
        panic!("{ended:?}")
    };
    assert_eq!((first.seed, first.together, first.seconds), (3, 3, 4.5));
    assert_eq!((last.greedy.seed, last.greedy.mean), (1_005, 1.0));
    assert!(problem.contains("-3-to-5"), "{problem}");
    let (calls, commands) = fake.calls();
    let each = ["eval", "eval", "ir"];
    assert_eq!(commands, [&["describe", "train"], &each[..], &each].concat());
    assert!(calls.contains("train catch-ppo --seed=3 --seeds=3 --run-dir"), "{calls}");
}

#[test]
fn an_agent_is_evaluated_against_the_opponent_of_its_row() {
    let mut fake = Fake::new();
    fake.entry.row.against = "perfect".to_owned();
    assert_eq!(fake.record().against, "perfect");
    let (calls, _) = fake.calls();
    let evaluations: Vec<&str> = calls.lines().filter(|line| line.starts_with("eval")).collect();
    assert!(evaluations[0].ends_with("--json --against=perfect"), "{calls}");
    assert!(evaluations[1].ends_with("--sample --against=perfect"), "{calls}");
}

#[test]
fn a_row_that_changes_settings_is_trained_with_them() {
    let mut fake = Fake::new();
    fake.entry.row.name = "catch-ppo-short".to_owned();
    fake.entry.row.set = toml::from_str("'train.steps' = 100").expect("it is a table");
    let record = fake.record();
    assert_eq!(record.experiment, "catch-ppo-short");
    let (calls, _) = fake.calls();
    let training = calls.lines().find(|line| line.starts_with("train")).expect("it is trained");
    assert!(training.starts_with("train catch-ppo --seed=3"), "{training}");
    assert!(training.ends_with("--json --set=train.steps=100"), "{training}");
    assert!(training.contains("/catch-ppo-short-"), "a run directory of its own: {training}");
}

#[test]
fn a_record_has_the_hash_of_its_rows_program() {
    let mut fake = Fake::new();
    let program = fake.record().program.expect("it is emitted");
    assert_eq!(program.len(), 16);
    assert_eq!(fake.entry.emitted(&fake.driver.program).expect("again"), Some(program.clone()));
    fake.entry.row.set = toml::from_str("'agent.clip' = 0.2").expect("it is a table");
    assert_ne!(fake.record().program, Some(program));
    assert!(fake.calls().0.contains("--devices 1 --set=agent.clip=0.2"));
    fake.entry.row.packages = "gymnasium".to_owned();
    assert_eq!(fake.record().program, None, "the page is written without the packages, too");
}

#[test]
fn a_training_that_was_stopped_goes_on() {
    let fake = Fake::new();
    fake.says("stop");
    assert!(matches!(fake.train(), Ended::Interrupted));
    let record = fake.record();
    assert_eq!(fake.calls().1, ["describe", "train", "resume", "eval", "eval", "ir"]);
    assert_eq!(record.seconds, 3.0, "of both processes");
}

#[test]
fn a_training_that_was_killed_before_its_first_checkpoint_begins_anew() {
    let fake = Fake::new();
    let run = format!("catch-ppo-{}-3", fake.entry.described.settings);
    let run = fake.driver.runs.join(run);
    fs::create_dir_all(&run).expect("a folder");
    assert_eq!(fake.record().seconds, 1.5);
    assert_eq!(fake.calls().1, ["describe", "train", "eval", "eval", "ir"]);
}

#[test]
fn a_training_that_fails_says_which() {
    let fake = Fake::new();
    fake.says("fail");
    let Ended::Failed(problem) = fake.train() else { panic!("it fails") };
    assert!(problem.contains("`podracer train catch-ppo --seed=3"), "{problem}");
    assert!(problem.contains("to begin it anew"), "{problem}");
}

#[test]
fn a_signal_is_heeded_before_anything_begins() {
    let fake = Fake::new();
    fake.driver.signals.fetch_add(1, Ordering::SeqCst);
    assert!(matches!(fake.train(), Ended::Interrupted));
    assert_eq!(fake.calls().1, ["describe"]);
}

#[test]
fn packages_that_are_missing_are_named() {
    let fake = Fake::new();
    let missing = |packages: &str| {
        let row = Row { packages: packages.to_owned(), ..fake.entry.row.clone() };
        fake.driver.missing(&row)
    };
    assert_eq!(missing("").expect("none are needed"), None);
    assert_eq!(missing("gymnasium").expect("they are known"), None);
    let problem = missing("atari").expect("they are known").expect("they are missing");
    assert!(problem.contains("`podracer envs install atari`"), "{problem}");
    assert!(missing("mujuco").is_err());
}

#[test]
fn a_file_that_is_missing_is_named() {
    let fake = Fake::new();
    let missing = |file: &str| {
        let row = Row { file: file.to_owned(), ..fake.entry.row.clone() };
        fake.driver.missing(&row).expect("no packages are needed")
    };
    assert_eq!(missing("Cargo.toml"), None);
    assert_eq!(missing("no.npz").as_deref(), Some("it needs the file `no.npz`"));
}
