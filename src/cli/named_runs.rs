//! The runs that a command names. A folder of runs stands for its runs, and each run has the
//! settings in its last metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Map, Value};

use super::console::Console;
use crate::run_directory::{
    METRICS, RunDirectory, RunOverview, differences, next_line, open, tail,
};
use crate::settings::UsageError;

/// Levels of subfolders that are searched for runs: `runs` may contain sweeps.
pub(super) const DEPTH: usize = 2;
/// Text between the first and the present value of a setting.
const CHANGED: &str = " -> ";
/// Prefix of a changed setting in a line of the metrics.
const OF_AGENT: &str = "\"agent.";
/// Bytes at the start and at the end of the metrics that are searched for a changed setting.
const END: u64 = 1 << 16;

/// The folders of the runs in `named`, each once: a run itself, or the runs in a folder. Files are
/// skipped with a note, because a pattern such as `sweep/*` names them, too.
///
/// # Errors [`UsageError`] if there are only files.
pub(super) fn folders_of(named: &[PathBuf], console: &mut Console<'_>) -> Result<Vec<PathBuf>> {
    let (mut folders, mut files, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
    for path in named {
        let mut found = BTreeSet::new();
        find(path, DEPTH, &mut found);
        match found.is_empty() {
            true if path.is_file() => files.push(format!("`{}`", path.display())),
            // Reading it later reports the missing file.
            true => folders.push(path.clone()),
            false => folders.extend(found),
        }
    }
    folders.retain(|path| known.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    let files = match &files[..] {
        [] => return Ok(folders),
        [file] => format!("{file} is a file, not a run directory"),
        files => format!("{} are files, not run directories", files.join(", ")),
    };
    if folders.is_empty() {
        return Err(UsageError::new(files).into());
    }
    console.say(&format!("note: skipped: {files}"));
    Ok(folders)
}

/// The runs at a path, or in folders below it.
pub(super) fn find(path: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    if RunDirectory::is_run(path) {
        found.insert(path.to_owned());
    } else if depth > 0 {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                find(&entry.path(), depth - 1, found);
            }
        }
    }
}

/// The overview of a run. A setting that population-based training has changed is `0.1 -> 0.0056`:
/// its first and its present value.
///
/// # Errors
/// Errors of [`RunOverview::read`].
pub(super) fn overview(run: &Path) -> Result<RunOverview> {
    let mut overview = RunOverview::read(run)?;
    for (key, now) in present(run) {
        let Some(setting) = overview.settings.get_mut(&key) else { continue };
        if setting.parse().is_ok_and(|before| differs(before, now)) {
            *setting += &format!("{CHANGED}{}", three_digits(now));
        }
    }
    Ok(overview)
}

/// True if two numbers differ by more than the rounding to f32.
fn differs(before: f64, now: f64) -> bool {
    (now - before).abs() > 1e-5 * before.abs()
}

/// True for a run with a setting that population-based training has changed.
pub(super) fn has_changed(run: &RunOverview) -> bool {
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let changed = |value: &String| {
        value.split_once(CHANGED).is_some_and(|(one, other)| is_number(one) && is_number(other))
    };
    run.settings.iter().any(|(key, value)| key.starts_with("agent.") && changed(value))
}

/// The present value of a setting of a run, if it differs from `first`.
pub(super) fn present_value(run: &Path, key: &str, first: &str) -> Option<String> {
    let now = *present(run).get(key)?;
    first.parse().is_ok_and(|first| differs(first, now)).then(|| three_digits(now))
}

/// Three significant digits, without trailing zeros.
fn three_digits(number: f64) -> String {
    let rounded: f64 = format!("{number:.2e}").parse().unwrap_or(number);
    match rounded.abs() {
        size if size == 0.0 || (1e-4..1e6).contains(&size) => rounded.to_string(),
        _ => format!("{rounded:e}"),
    }
}

/// The agent's settings in the last line of the metrics that has any. Population-based training
/// records them. Empty for other runs, and if the metrics cannot be read.
fn present(run: &Path) -> BTreeMap<String, f64> {
    let last = || {
        let end = tail(run, METRICS, END).ok()?;
        let end = String::from_utf8_lossy(&end);
        let line = end.lines().rev().filter(|line| line.contains(OF_AGENT)).find_map(object);
        let mut file = open(run, METRICS, u64::MAX).ok()?;
        if line.is_some() || file.metadata().ok()?.len() <= END {
            return line;
        }
        let mut bytes = Vec::new();
        (&mut file).take(END).read_to_end(&mut bytes).ok()?;
        if !String::from_utf8_lossy(&bytes).contains(OF_AGENT) {
            return None;
        }
        // A run that was resumed alone keeps these settings, and its own lines do not have them.
        file.rewind().ok()?;
        let (mut file, mut last) = (BufReader::new(file), None);
        while next_line(&mut file, &mut bytes).ok()? > 0 {
            let text = str::from_utf8(&bytes).unwrap_or_default();
            last = text.contains(OF_AGENT).then(|| object(text)).flatten().or(last);
        }
        last
    };
    let numbers = last().unwrap_or_default().into_iter();
    let numbers = numbers.filter_map(|(key, value)| Some((key, value.as_f64()?)));
    numbers.filter(|(key, _)| key.starts_with("agent.")).collect()
}

/// The JSON object in a line.
fn object(line: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(line).ok()
}

/// Divides runs with the same settings into the longest run for each seed, and the other runs, each
/// with the run that is kept for its seed: runs with the same seed are not independent samples.
pub(super) fn by_seed<'a>(
    runs: impl IntoIterator<Item = (usize, &'a RunOverview)>,
) -> (Vec<usize>, Vec<(usize, usize)>) {
    let mut kept: Vec<(usize, &RunOverview)> = Vec::new();
    let mut repeats = Vec::new();
    for (place, run) in runs {
        match kept.iter_mut().find(|(_, known)| known.seed == run.seed) {
            None => kept.push((place, run)),
            Some(known) if known.1.env_steps < run.env_steps => {
                repeats.push((known.0, run.seed));
                *known = (place, run);
            }
            Some(_) => repeats.push((place, run.seed)),
        }
    }
    let kept_of = |seed| kept.iter().find(|(_, run)| run.seed == seed).map(|(place, _)| *place);
    let repeats = repeats.into_iter().filter_map(|(place, seed)| Some((place, kept_of(seed)?)));
    let repeats = repeats.collect();
    (kept.into_iter().map(|(place, _)| place).collect(), repeats)
}

/// The warning about a run that repeats the settings and the seed of the run `kept`.
pub(super) fn repeated(run: &RunOverview, kept: &RunOverview) -> String {
    format!(
        "`{}` has the settings and the seed ({}) of `{}`: it is no independent run, and is not counted",
        run.run.display(),
        run.seed,
        kept.run.display()
    )
}

/// The settings that differ between runs of the same experiment. Different experiments differ in so
/// many settings that their names say more. The same is true of kinds of agents: `agent.kind` and
/// `environment.name` determine the other settings in their section, and these are compared between
/// runs of the same kind.
pub(super) fn compared(runs: &[&RunOverview]) -> BTreeSet<String> {
    let mut by_experiment: BTreeMap<&str, Vec<&RunOverview>> = BTreeMap::new();
    for &run in runs {
        by_experiment.entry(&run.experiment).or_default().push(run);
    }
    by_experiment.values().flat_map(|runs| differing(runs)).collect()
}

/// [`compared`] for runs of one experiment.
fn differing(runs: &[&RunOverview]) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = differences(runs).into_keys().collect();
    keys.retain(|key| {
        let Some(chooser) = chooser(key) else { return true };
        let mut of_kind = BTreeMap::new();
        runs.iter().any(|run| {
            let (kind, value) = (run.settings.get(chooser), run.settings.get(key));
            *of_kind.entry(kind).or_insert(value) != value
        })
    });
    keys
}

/// The setting that determines the other settings in the section of `key`.
fn chooser(key: &str) -> Option<&'static str> {
    let choosers = [("agent.", "agent.kind"), ("environment.", "environment.name")];
    choosers
        .into_iter()
        .find(|(section, own)| key.starts_with(section) && key != *own)
        .map(|(_, own)| own)
}

/// The settings that distinguish the agents of each experiment with several kinds of agents, a line
/// for each kind. They are equal in all runs of the kind, and the names of groups leave them out.
pub(super) fn of_kinds(runs: &[&RunOverview]) -> Vec<String> {
    const KIND: &str = "agent.kind";
    let mut kinds: BTreeMap<(&str, &str), Vec<&RunOverview>> = BTreeMap::new();
    for run in runs {
        if let Some(kind) = run.settings.get(KIND) {
            kinds.entry((&run.experiment, kind)).or_default().push(run);
        }
    }
    let line = |((experiment, kind), own): (&(&str, &str), &Vec<&RunOverview>)| {
        let others: Vec<&RunOverview> = (kinds.iter())
            .filter(|((theirs, other), _)| theirs == experiment && other != kind)
            .flat_map(|(_, runs)| runs.iter().copied())
            .collect();
        let distinguishes = |(key, value): &(&String, &String)| {
            let has = |run: &&RunOverview| run.settings.get(*key) == Some(*value);
            key.starts_with("agent.")
                && *key != KIND
                && own.iter().all(has)
                && !others.iter().all(has)
        };
        let shown =
            |(key, value): (&String, &String)| format!("{} = {value}", &key["agent.".len()..]);
        let settings: Vec<String> =
            own[0].settings.iter().filter(distinguishes).map(shown).collect();
        (!others.is_empty() && !settings.is_empty())
            .then(|| format!("{experiment}, {kind}: {}", settings.join(", ")))
    };
    kinds.iter().filter_map(line).collect()
}

/// The settings `keys` of a run with their values, without the settings of other kinds of agents and environments.
#[cfg(feature = "plots")]
pub(super) fn values_of<'a>(
    run: &'a RunOverview,
    keys: &'a BTreeSet<String>,
    all: &[&RunOverview],
) -> Vec<(&'a str, &'a str)> {
    let has = |key: &str| {
        let same = |other: &&&RunOverview| {
            chooser(key).is_none_or(|kind| other.settings.get(kind) == run.settings.get(kind))
        };
        all.iter().filter(same).any(|other| other.settings.contains_key(key))
    };
    let value = |key: &str| run.settings.get(key).map_or("-", String::as_str);
    keys.iter().filter(|key| has(key)).map(|key| (&**key, value(key))).collect()
}
