//! The files of a run can be read back, and a folder that cannot be written is an error.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use podracer_runtime::{Array, Checkpoint, Checkpoints, OptionValue};
use prost::Message;
use safetensors::SafeTensors;
use serde_json::{Value, json};

use super::events::{Event, checksum};
use super::{
    Counters, Files, FilmName, Recorded, RunDirectory, RunOverview, RunProgress, identity_in,
    write_whole,
};
use crate::loading::{Overrides, load};
use crate::parameters::sha256;
use crate::registry::Registry;
use crate::settings::{MetricsEvery, Settings, UsageError};
use crate::training::{CallMetrics, FinishedEpisodes};

fn settings() -> Settings {
    load("catch-ppo", &Overrides::default()).unwrap()
}

fn recorded() -> Recorded {
    Recorded {
        podracer: "0".to_owned(),
        platform: "cpu".to_owned(),
        platform_version: String::new(),
        plugin: String::new(),
        device_kind: "cpu".to_owned(),
        devices: vec![0],
        host: "here".to_owned(),
        processor: "a processor, 2 cores".to_owned(),
    }
}

fn call() -> CallMetrics {
    CallMetrics {
        env_steps: 20,
        iterations: 2,
        per_iteration: vec![("loss".to_owned(), vec![0.1, f32::NAN])],
        recent: FinishedEpisodes { episodes: 4, return_sum: 2.0 },
        episodes: 4,
        ..CallMetrics::default()
    }
}

fn parameters() -> Vec<(String, Array)> {
    vec![
        ("b.weight".to_owned(), Array::from_slice([2, 1], &[1.0f32, 2.0]).unwrap()),
        ("a[0]".to_owned(), Array::scalar(3i32)),
    ]
}

/// The identity does not depend on the folder's path, so a moved run stays the same run.
#[test]
fn a_run_that_was_moved_is_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
    let run = RunDirectory::create(Some(&here), &settings(), &recorded()).unwrap();
    let identity = run.identity().unwrap();
    assert_eq!((identity.len(), run.identity().unwrap()), (32, identity.clone()));
    drop(run);
    fs::rename(&here, &there).unwrap();
    assert_eq!(identity_in(&there).unwrap(), identity);
    // A run of an earlier version has none.
    fs::remove_file(there.join("identity.txt")).unwrap();
    let new = identity_in(&there).unwrap();
    assert!(new != identity && identity_in(&there).unwrap() == new);
    let other = RunDirectory::create(Some(&here), &settings(), &recorded()).unwrap();
    assert_ne!(other.identity().unwrap(), identity);
}

#[test]
fn a_run_whose_folder_is_renamed_writes_into_no_other_run() {
    let folder = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
    let mut run = RunDirectory::create(Some(&here), &settings(), &recorded()).unwrap();
    fs::rename(&here, &there).unwrap();
    let other = RunDirectory::create(Some(&here), &settings(), &recorded()).unwrap();
    let names = |path: &Path| {
        let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let before = names(&here);
    run.record(&call(), (0, 0), 0.5).unwrap();
    assert_eq!(run.path(), there);
    let checkpoint = Checkpoint { iterations: 2, ..Checkpoint::default() };
    run.write_checkpoint(checkpoint, &settings(), &recorded(), Counters::default()).unwrap();
    run.write_parameters(&parameters()).unwrap();
    run.write_result(&json!({})).unwrap();
    let film = FilmName { iterations: 1, of_agent: false };
    run.record_film(&film, 1, b"GIF89a\x40\x01\x20\x00").unwrap();
    assert_eq!(names(&here), before);
    for name in ["checkpoints", "parameters.safetensors", "result.json", "episodes"] {
        assert!(there.join(name).exists(), "{name}");
    }
    assert!(run.way_back().contains(&format!("resume {}", there.display())), "{}", run.way_back());
    drop(other);
    fs::remove_dir_all(&there).unwrap();
    let error = run.record(&call(), (2, 20), 0.5).unwrap_err().to_string();
    assert!(error.contains(&format!("`{}` was removed", there.display())), "{error}");
    let error = format!("{:#}", run.write_result(&json!({})).unwrap_err());
    assert!(error.contains(&there.join("result.json").display().to_string()), "{error}");
}

/// A run that still compiles is not a stopped run.
#[test]
fn a_run_without_a_checkpoint_is_under_way_or_was_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let found = || {
        let found = RunDirectory::find(&path, &settings(), Checkpoints::latest);
        found.unwrap_err().to_string()
    };
    let run = RunDirectory::create(Some(&path), &settings(), &recorded()).unwrap();
    assert!(found().ends_with(": the run is under way, in another process"), "{}", found());
    drop(run);
    assert!(found().contains("was stopped before its first checkpoint"), "{}", found());
}

#[test]
fn what_a_call_reports_is_on_disk_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/run");
    let mut run = RunDirectory::create(Some(&path), &settings(), &recorded()).unwrap();
    run.record(&call(), (4, 100), 0.5).unwrap();
    let text = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines,
        [
            json!({"iteration": 5, "env_steps": 110, "loss": 0.1}),
            json!({"iteration": 6, "env_steps": 120, "loss": null, "episodes": 4, "mean_return": 0.5, "seconds": 0.5}),
        ]
    );

    let name = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("tfevents"));
    let file = name.unwrap();
    let events = read_events(&fs::read(&file).unwrap());
    assert_eq!(events[0].file_version.as_deref(), Some("brain.Event:2"));
    assert_eq!((events.len(), events[2].step), (3, 120));
    let tags: Vec<&str> = events[2]
        .summary
        .as_ref()
        .unwrap()
        .value
        .iter()
        .map(|scalar| scalar.tag.as_str())
        .collect();
    assert_eq!(tags, ["loss", "env_steps_per_second", "mean_return"]);

    // Width and height of a GIF are in its head.
    let gif = *b"GIF89a\x40\x01\x20\x00";
    let names = [false, true].map(|of_agent| FilmName { iterations: 6, of_agent });
    names.iter().for_each(|name| run.record_film(name, 120, &gif).unwrap());
    let events = read_events(&fs::read(&file).unwrap());
    for (event, tag) in events[3..].iter().zip(["episode", "agent"]) {
        let value = &event.summary.as_ref().unwrap().value[0];
        let image = value.image.as_ref().unwrap();
        assert_eq!((event.step, value.tag.as_str(), value.simple_value), (120, tag, None));
        assert_eq!((image.width, image.height, image.colorspace), (320, 32, 3));
        assert_eq!(image.encoded_image_string, gif);
    }
    fs::write(path.join("episodes/notes.txt"), "").unwrap();
    let overview = RunOverview::read(&path).unwrap();
    assert_eq!(overview.films(), names);
    assert_eq!(overview.film(&names[1]).unwrap(), gif);

    run.write_result(&json!({"a": 1})).unwrap();
    run.write_curve(&settings(), &[(10, 0.5), (20, 1.0)], 100).unwrap();
    let leftovers = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(leftovers.into_iter().all(|name| !name.to_string_lossy().ends_with("unfinished")));
}

/// A run in a new folder, which records a call of 4 iterations and 40 steps for each given
/// duration.
struct Recording {
    folder: tempfile::TempDir,
    run: RunDirectory,
    before: (u64, u64),
}

impl Recording {
    fn new(every: MetricsEvery) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.metrics.every = every;
        let run = RunDirectory::create(Some(folder.path()), &settings, &recorded()).unwrap();
        Recording { folder, run, before: (0, 0) }
    }

    fn calls(&mut self, count: usize, seconds: f64) {
        for number in 0..count {
            let call = CallMetrics {
                env_steps: 40,
                iterations: 4,
                per_iteration: vec![
                    ("loss".to_owned(), vec![1.0, 2.0, 3.0, 6.0]),
                    ("episode_return".to_owned(), vec![f32::NAN, 5.0, f32::NAN, f32::NAN]),
                ],
                recent: FinishedEpisodes { episodes: 2, return_sum: 2.0 * number as f64 },
                episodes: 2,
                per_call: vec![("learner/iteration".to_owned(), 0.25)],
                counts: vec![("environment_restarts".to_owned(), 1)],
                ..CallMetrics::default()
            };
            self.run.record(&call, self.before, seconds).unwrap();
            self.before = (self.before.0 + 4, self.before.1 + 40);
        }
    }

    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("metrics.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Checks that every iteration, and every call, is in exactly one line.
    fn complete(&self) {
        let lines = self.lines();
        let mut iteration = 0;
        for line in &lines {
            iteration += line["iterations"].as_u64().unwrap_or(1);
            assert_eq!(
                (&line["iteration"], &line["env_steps"]),
                (&iteration.into(), &(10 * iteration).into())
            );
        }
        assert_eq!(iteration, self.before.0);
        let sum = |name: &str| lines.iter().filter_map(|line| line[name].as_u64()).sum::<u64>();
        let calls = self.before.0 / 4;
        assert_eq!((sum("episodes"), sum("environment_restarts")), (2 * calls, calls));
        let files = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let events = files.into_iter().find(|path| path.to_string_lossy().contains("tfevents"));
        let events = read_events(&fs::read(events.unwrap()).unwrap());
        assert_eq!(events.len(), lines.len() + 1);
        assert_eq!(events.last().unwrap().step as u64, self.before.1);
    }
}

/// Otherwise a loop with thousands of iterations per second would write hundreds of megabytes per
/// hour.
#[test]
fn after_the_first_minute_there_is_at_most_one_line_a_second() {
    let mut recording = Recording::new(MetricsEvery::Second);
    // A sixteenth of a second, so that sums are exact.
    recording.calls(60 * 16, 0.0625);
    assert_eq!(recording.lines().len(), 60 * 16 * 4);
    recording.calls(10 * 16, 0.0625);
    let lines = recording.lines();
    assert_eq!(lines.len(), 60 * 16 * 4 + 10);
    assert_eq!(
        lines[lines.len() - 1],
        json!({
            "iteration": 4480, "env_steps": 44800, "iterations": 64, "loss": 3.0, "episode_return": 5.0, "episodes": 32,
            "mean_return": 159.0, "seconds": 1.0, "learner/iteration": 0.25, "environment_restarts": 16,
        })
    );
    recording.complete();

    // Calls of several seconds have as many lines, and each slow iteration has one line.
    let before = lines.len();
    recording.calls(1, 3.0);
    assert_eq!(recording.lines().len(), before + 3);
    recording.calls(2, 100.0);
    assert_eq!(recording.lines().len(), before + 3 + 8);
    recording.calls(1, 0.5);
    assert_eq!(recording.lines().len(), before + 3 + 8);
    recording.calls(1, 0.5);
    assert_eq!(recording.lines().len(), before + 3 + 8 + 1);
    recording.complete();
}

#[test]
fn every_iteration_has_a_line_if_the_settings_say_so() {
    let mut recording = Recording::new(MetricsEvery::Iteration);
    recording.calls(70 * 16, 0.0625);
    assert_eq!(recording.lines().len(), 70 * 16 * 4);
    recording.complete();
}

/// An option that was added to podracer's rule after a run began does not prevent it from resuming.
#[test]
fn a_run_goes_on_with_the_options_that_the_rule_has_since() {
    let with = |xla: &[(&str, OptionValue)]| {
        let xla = xla.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Settings { xla, ..settings() }
    };
    let level = [("xla_backend_optimization_level", OptionValue::Int(2))];
    let checked = |before: &Settings, now: &Settings, rule: &[(&str, OptionValue)]| {
        let rule = with(rule).xla.into_iter().collect::<Vec<_>>();
        let progress = RunProgress {
            settings: serde_json::to_value(before).unwrap(),
            recorded: recorded(),
            counters: Counters::default(),
            files: Files::default(),
        };
        progress.check(Path::new("checkpoint"), (now, &rule), &recorded(), &Registry::built_in())
    };
    let check = |before: &Settings, now: &Settings| checked(before, now, &level);
    let now = with(&level);
    let warning = check(&with(&[]), &now).unwrap().unwrap();
    let expected = "other options of podracer: xla.xla_backend_optimization_level = 2";
    assert!(warning.contains(expected), "{warning}");
    assert_eq!(check(&now, &now).unwrap(), None);
    for other in [
        ("xla_backend_optimization_level", OptionValue::Int(1)),
        ("xla_cpu_use_onednn", OptionValue::Bool(true)),
    ] {
        let error = check(&with(&[]), &with(&[other])).unwrap_err().to_string();
        assert!(error.contains("was absent and is"), "{error}");
    }
    // The user's choice, if the rule has none.
    let error = checked(&with(&[]), &now, &[]).unwrap_err().to_string();
    assert!(error.contains("xla.xla_backend_optimization_level was absent and is 2"), "{error}");
}

#[test]
fn a_stop_loses_no_line() {
    for by_checkpoint in [true, false] {
        let mut recording = Recording::new(MetricsEvery::Second);
        recording.calls(60 * 16 + 5, 0.0625);
        assert_eq!(recording.lines().len(), 60 * 16 * 4);
        if by_checkpoint {
            let (checkpoint, counters) = (Checkpoint::default(), Counters::default());
            recording.run.write_checkpoint(checkpoint, &settings(), &recorded(), counters).unwrap();
            let found =
                RunDirectory::find(recording.folder.path(), &settings(), |all| all.latest());
            let progress = RunProgress::of(&found.unwrap()).unwrap();
            let length = fs::metadata(recording.folder.path().join("metrics.jsonl")).unwrap().len();
            assert_eq!(progress.files.metrics, length);
        } else {
            // As after an error.
            let elsewhere = tempfile::tempdir().unwrap();
            let other =
                RunDirectory::create(Some(elsewhere.path()), &settings(), &recorded()).unwrap();
            drop(std::mem::replace(&mut recording.run, other));
        }
        assert_eq!(recording.lines().len(), 60 * 16 * 4 + 1);
        recording.complete();
    }
}

fn read_events(mut bytes: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_at(8);
        assert_eq!(rest[..4], checksum(length));
        let (data, rest) =
            rest[4..].split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
        assert_eq!(rest[..4], checksum(data));
        events.push(Event::decode(data).unwrap());
        bytes = &rest[4..];
    }
    events
}

#[test]
fn parameters_are_found_by_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(Some(folder.path()), &settings(), &recorded()).unwrap();
    run.write_parameters(&parameters()).unwrap();
    let bytes = fs::read(folder.path().join("parameters.safetensors")).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    let weight = read.tensor("b.weight").unwrap();
    assert_eq!((weight.shape(), weight.data()), (&[2, 1][..], parameters()[0].1.bytes()));
    assert_eq!(read.tensor("a[0]").unwrap().data(), 3i32.to_le_bytes());

    let mut twice = parameters();
    twice.push(twice[0].clone());
    let error = run.write_parameters(&twice).unwrap_err().to_string();
    assert_eq!(error, "two parameters have the key path `b.weight`");
}

#[test]
fn the_hash_depends_on_names_types_and_values_and_not_on_the_order() {
    let mut swapped = parameters();
    swapped.reverse();
    assert_eq!(sha256(&parameters()), sha256(&swapped));
    assert_eq!(sha256(&parameters()).len(), 64);
    let mut others = vec![parameters(), parameters(), parameters()];
    others[0][0].0 = "b.bias".to_owned();
    others[1][0].1 = Array::from_slice([1, 2], &[1.0f32, 2.0]).unwrap();
    others[2][0].1 = Array::from_slice([2, 1], &[1.0f32, -2.0]).unwrap();
    for other in others {
        assert_ne!(sha256(&parameters()), sha256(&other));
    }
}

#[test]
fn a_folder_that_cannot_be_a_run_directory_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let create = |path: &std::path::Path| {
        RunDirectory::create(Some(path), &settings(), &recorded()).err().unwrap()
    };
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let text = format!("{:#}", create(&file));
    assert!(text.starts_with("cannot make the run directory `"), "{text}");
    let text = format!("{:#}", create(&file.join("below")));
    assert!(text.contains("Not a directory"), "{text}");

    let run = folder.path().join("run");
    RunDirectory::create(Some(&run), &settings(), &recorded()).unwrap();
    let again = create(&run);
    assert!(again.downcast_ref::<UsageError>().is_some());
    assert!(again.to_string().contains("holds a run already"));
}

#[test]
fn a_full_disk_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let full = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let path = full("settings");
    symlink("/dev/full", path.join("config.toml.unfinished")).unwrap();
    let error = RunDirectory::create(Some(&path), &settings(), &recorded()).err().unwrap();
    let text = format!("{error:#}");
    assert!(text.contains("config.toml`: No space left on device"), "{text}");
    assert!(!path.join("config.toml").exists());

    let path = full("metrics");
    symlink("/dev/full", path.join("metrics.jsonl")).unwrap();
    let mut run = RunDirectory::create(Some(&path), &settings(), &recorded()).unwrap();
    let text = format!("{:#}", run.record(&call(), (0, 0), 1.0).unwrap_err());
    assert!(text.contains("metrics.jsonl`: No space left on device"), "{text}");

    symlink("/dev/full", path.join("parameters.safetensors.unfinished")).unwrap();
    let text = format!("{:#}", run.write_parameters(&parameters()).unwrap_err());
    assert!(text.contains("parameters.safetensors`: No space left on device"), "{text}");
    assert!(!path.join("parameters.safetensors").exists());
}

/// A received run could otherwise have a link to an endless device.
#[test]
fn files_of_a_run_are_regular_ones_of_a_bounded_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = RunDirectory::create(Some(path), &settings(), &recorded()).unwrap();
    run.write_parameters(&parameters()).unwrap();
    run.write_result(&json!({"params_sha256": sha256(&parameters())})).unwrap();
    assert_eq!(RunDirectory::parameters(path).unwrap().len(), 2);
    let problem = || format!("{:#}", RunDirectory::parameters(path).unwrap_err());
    let result = path.join("result.json");
    fs::remove_file(&result).unwrap();
    symlink("/dev/zero", &result).unwrap();
    assert!(problem().contains("result.json`: it is a link"), "{}", problem());
    let file = path.join("parameters.safetensors");
    fs::remove_file(&file).unwrap();
    symlink("/dev/zero", &file).unwrap();
    assert!(problem().contains("parameters.safetensors`: it is a device"), "{}", problem());
    let metrics = path.join("metrics.jsonl");
    fs::remove_file(&metrics).unwrap();
    symlink("/dev/zero", &metrics).unwrap();
    let said = format!("{:#}", super::metrics::points(path).unwrap_err());
    assert!(said.contains("metrics.jsonl`: it is a link"), "{said}");
}

#[test]
fn files_are_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    write_whole(&path, b"one").unwrap();
    write_whole(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
}

#[test]
fn an_evaluation_is_a_line_and_an_event_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(Some(folder.path()), &settings(), &recorded()).unwrap();
    run.record(&call(), (0, 0), 0.5).unwrap();
    run.record_evaluation((2, 20), &[("eval_return", 0.25)]).unwrap();
    let metrics = fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    let last = metrics.lines().last().unwrap();
    assert_eq!(last, r#"{"iteration":2,"env_steps":20,"eval_return":0.25}"#);
    let name = run.events.name();
    let events = read_events(&fs::read(folder.path().join(name)).unwrap());
    let event = events.last().unwrap();
    let value = &event.summary.as_ref().unwrap().value[0];
    assert_eq!((event.step, &*value.tag, value.simple_value), (20, "eval_return", Some(0.25)));
}
