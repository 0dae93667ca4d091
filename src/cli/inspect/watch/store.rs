//! The runs that a page shows, with the data read so far.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::thin::{Metrics, Point};
use crate::cli::inspect::curves::{
    Along, Curve, Group, Summary, early_end, groups, groups_by, interval, line, middle,
};
use crate::cli::named_runs::{self, DEPTH, compared, find};
use crate::experiments::is_activity;
use crate::machine::memory_of_holder;
use crate::run_directory::{CONFIG, METRICS, RESULT, RunOverview, RunState};

/// Time for reading in one request; the next request reads the rest.
const AT_ONCE: Duration = Duration::from_millis(250);
/// Least time between two scans of the folders.
const BETWEEN: Duration = Duration::from_millis(500);
/// A metric that is computed from the times of the others: environment steps per second.
const SPEED: &str = "steps_per_second";
/// Greatest number of positions of a band.
const BAND: usize = 60;

/// The runs in some folders.
pub(super) struct Store {
    /// Runs, and folders of runs.
    roots: Vec<PathBuf>,
    runs: BTreeMap<PathBuf, WatchedRun>,
    /// The runs grouped by their settings, and the settings that differ between the groups.
    groups: Vec<Group>,
    different: BTreeSet<String>,
    /// Runs that cannot be read, each with the reason.
    problems: BTreeMap<PathBuf, String>,
    looked: Option<Instant>,
}

/// A run with the data read so far.
struct WatchedRun {
    overview: RunOverview,
    metrics: Metrics,
    /// Times of modification and sizes of its files when the overview was read.
    files: Vec<Option<(SystemTime, u64)>>,
    /// Memory in bytes of the process that trains it, if the process runs on this machine.
    memory: Option<u64>,
}

/// Curves of several metrics.
pub(super) struct Wanted {
    pub(super) metrics: Vec<String>,
    pub(super) along: Along,
    /// The displayed part of the axis: the lines have more points within it.
    pub(super) part: Option<[f64; 2]>,
    pub(super) summary: Summary,
    /// Runs that do not count in their groups.
    pub(super) without: BTreeSet<PathBuf>,
    /// The setting that groups the runs; `None` for runs with equal settings.
    pub(super) by: Option<String>,
}

/// The curves of a metric for the runs of a group.
pub(super) struct Members {
    metric: String,
    group: String,
    curves: Vec<Curve>,
}

impl Store {
    pub(super) fn new(roots: Vec<PathBuf>) -> Self {
        Store {
            roots,
            runs: BTreeMap::new(),
            groups: Vec::new(),
            different: BTreeSet::new(),
            problems: BTreeMap::new(),
            looked: None,
        }
    }

    /// Looks for new runs and new metrics.
    pub(super) fn refresh(&mut self) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now - looked < BETWEEN) {
            return;
        }
        let mut found = BTreeSet::new();
        for root in &self.roots {
            find(root, DEPTH, &mut found);
        }
        let before = self.runs.len();
        self.runs.retain(|path, _| found.contains(path));
        let mut changed = self.runs.len() < before;
        self.problems.clear();
        for path in &found {
            let files = files(path);
            // A running training changes its state without changing a file.
            let known = self
                .runs
                .get(path)
                .is_some_and(|run| run.files == files && run.overview.state != RunState::Running);
            if known {
                continue;
            }
            changed = true;
            match named_runs::overview(path) {
                Ok(overview) => match self.runs.get_mut(path) {
                    Some(run) => (run.overview, run.files) = (overview, files),
                    None => {
                        let metrics = Metrics::of(path);
                        let run = WatchedRun { overview, metrics, files, memory: None };
                        self.runs.insert(path.clone(), run);
                    }
                },
                Err(error) => {
                    self.problems.insert(path.clone(), format!("{error:#}"));
                    self.runs.remove(path);
                }
            }
        }
        if changed {
            let all: Vec<&RunOverview> = self.runs.values().map(|run| &run.overview).collect();
            (self.groups, self.different) = (groups(&all, &[]), compared(&all));
        }
        let runs: Vec<(&PathBuf, &RunOverview)> =
            self.runs.iter().map(|(path, run)| (path, &run.overview)).collect();
        let all: Vec<&RunOverview> = runs.iter().map(|(_, run)| *run).collect();
        for (run, said) in self.groups.iter().flat_map(|group| group.repeated(&all)) {
            self.problems.insert(runs[run].0.clone(), said);
        }
        // With hundreds of runs the scan of their folders takes a while itself.
        let until = Instant::now() + AT_ONCE;
        for (path, run) in &mut self.runs {
            let going = run.overview.state == RunState::Running;
            run.memory = if going { memory_of_holder(&path.join(METRICS)) } else { None };
            if let Err(error) = run.metrics.read(path, until) {
                self.problems.insert(path.clone(), format!("{error:#}"));
            }
        }
        self.looked = Some(Instant::now());
    }

    /// The groups of runs with equal settings, or by one of the settings that differ.
    fn groups(&self, by: Option<&str>) -> Cow<'_, [Group]> {
        match by.filter(|key| self.different.contains(*key)) {
            None => Cow::Borrowed(&self.groups),
            Some(key) => {
                let all: Vec<&RunOverview> = self.runs.values().map(|run| &run.overview).collect();
                Cow::Owned(groups_by(&all, key))
            }
        }
    }

    /// A summary of the runs, in the groups of a setting.
    pub(super) fn state(&self, by: Option<&str>) -> Value {
        let (groups, different) = (self.groups(by), &self.different);
        let run = |(place, run): (usize, &WatchedRun)| {
            let RunOverview { run: path, experiment, seed, env_steps, mean_return, state, .. } =
                &run.overview;
            let state = match state {
                RunState::Running if run.metrics.progress().1 == 0 => "compiling",
                state => state.name(),
            };
            let value = |key: &String| run.overview.settings.get(key).map_or("-", String::as_str);
            let settings: BTreeMap<&String, &str> =
                different.iter().map(|key| (key, value(key))).collect();
            json!({
                "path": path,
                "experiment": experiment,
                "seed": seed,
                "env_steps": env_steps,
                "mean_return": mean_return,
                "speed": run.overview.env_steps_per_second.or_else(|| run.metrics.speed()),
                "memory": run.memory,
                "seconds": run.metrics.seconds(),
                "state": state,
                "group": groups.iter().position(|group| group.has(place)),
                "settings": settings,
            })
        };
        let mut metrics: BTreeSet<&str> =
            self.runs.values().flat_map(|run| run.metrics.names()).collect();
        if !metrics.is_empty() {
            metrics.insert(SPEED);
        }
        let (read, length) = self
            .runs
            .values()
            .map(|run| run.metrics.progress())
            .fold((0, 0), |(read, length), run| (read + run.0, length + run.1));
        json!({
            "runs": self.runs.values().enumerate().map(run).collect::<Vec<_>>(),
            "groups": groups.iter().map(|group| &group.name).collect::<Vec<_>>(),
            "settings": different,
            "metrics": metrics,
            "problems": self.problems,
            "read": [read, length],
        })
    }

    /// The curves of a metric: a line for each group, with a band if the group has several runs.
    pub(super) fn curves(&self, wanted: &Wanted, metric: &str) -> Value {
        let until = Instant::now() + AT_ONCE;
        let of_group = |group: &Group| {
            let (ends, curves) = self.of_group(group, metric, wanted, until);
            let line = line(&curves, wanted.summary, false);
            let end = early_end(ends).map(|end| wanted.along.place(end));
            let until = end.map(|end| format!(" ({} runs up to {end})", curves.len()));
            let name = group.name.clone() + &until.unwrap_or_default();
            json!({ "name": name, "points": line.points, "band": line.band })
        };
        let groups = self.groups(wanted.by.as_deref());
        Value::from(groups.iter().map(of_group).collect::<Vec<_>>())
    }

    /// The curves of several metrics by metric: a line for each group, and lines for the runs at the
    /// paths `runs` and the runs of the groups named `open`.
    pub(super) fn charts(
        &self,
        wanted: &Wanted,
        open: &BTreeSet<&str>,
        runs: &BTreeSet<&str>,
    ) -> Value {
        let until = Instant::now() + AT_ONCE;
        let groups = self.groups(wanted.by.as_deref());
        let of_open: Vec<&Group> =
            groups.iter().filter(|group| open.contains(&*group.name)).collect();
        let is_lone = |(place, (path, _)): &(usize, (&PathBuf, &WatchedRun))| {
            path.to_str().is_some_and(|path| runs.contains(path))
                || of_open.iter().any(|group| group.has(*place))
        };
        let lone: Vec<(&PathBuf, &WatchedRun)> =
            self.runs.iter().enumerate().filter(is_lone).map(|(_, run)| run).collect();
        let of_metric = |metric: &String| {
            let of_group = |group: &Group| {
                let (ends, curves) = self.of_group(group, metric, wanted, until);
                if curves.len() > 1 && !wanted.along.has_means() {
                    return json!({ "name": group.name, "until": null, "points": [] });
                }
                let end = early_end(ends).map(|end| wanted.along.place(end));
                let until = end.map(|end| format!("{} runs up to {end}", curves.len()));
                let points = middle(&curves, wanted.summary);
                json!({ "name": group.name, "until": until, "points": points })
            };
            let of_run = |(path, run): &(&PathBuf, &WatchedRun)| {
                let (_, curve) = run.curve(path, metric, wanted, until)?;
                let points = json!(middle(&[curve], wanted.summary));
                Some((path.to_string_lossy().into_owned(), points))
            };
            let groups: Vec<Value> = groups.iter().map(of_group).collect();
            let runs: BTreeMap<String, Value> = lone.iter().filter_map(of_run).collect();
            (metric.clone(), json!({ "groups": groups, "runs": runs }))
        };
        Value::Object(wanted.metrics.iter().map(of_metric).collect())
    }

    /// The curves of several metrics for the runs of these groups, for [`bands`].
    pub(super) fn members(&self, wanted: &Wanted, names: &BTreeSet<&str>) -> Vec<Members> {
        let until = Instant::now() + AT_ONCE;
        let groups = self.groups(wanted.by.as_deref());
        let named = groups.iter().filter(|group| names.contains(&*group.name));
        let of_group = |group: &Group| {
            let of_metric = |metric: &String| {
                let (_, curves) = self.of_group(group, metric, wanted, until);
                Members { metric: metric.clone(), group: group.name.clone(), curves }
            };
            wanted.metrics.iter().map(of_metric).collect::<Vec<_>>()
        };
        named.flat_map(of_group).collect()
    }

    /// The ends and the curves of a group's runs that have a metric.
    fn of_group(
        &self,
        group: &Group,
        metric: &str,
        wanted: &Wanted,
        until: Instant,
    ) -> (Vec<(f64, f64)>, Vec<Curve>) {
        let runs: Vec<(&PathBuf, &WatchedRun)> = self.runs.iter().collect();
        let members = group.members.iter().map(|member| runs[*member]);
        let counted = members.filter(|(path, _)| !wanted.without.contains(*path));
        counted.filter_map(|(path, run)| run.curve(path, metric, wanted, until)).unzip()
    }

    /// The shares of the time of a run's threads by activity, 0 to 1, over the seconds of training:
    /// by thread, then by activity. Empty for a run with a single-program loop.
    pub(super) fn threads(&self, run: &Path) -> Value {
        let mut threads: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
        if let Some(metrics) = self.runs.get(run).map(|run| &run.metrics) {
            for name in metrics.names() {
                let Some((thread, activity)) = name.split_once('/') else { continue };
                if !is_activity(activity) {
                    continue;
                }
                let points = metrics.points(name).iter();
                let points = points.map(|point| json!([point.seconds, point.value])).collect();
                threads.entry(thread).or_default().insert(activity, points);
            }
        }
        json!(threads)
    }

    /// The run in a folder, if the page shows it.
    pub(super) fn run(&self, path: &Path) -> Option<&RunOverview> {
        self.runs.get(path).map(|run| &run.overview)
    }
}

impl WatchedRun {
    /// The end of the run by steps and by position, and the curve of a metric.
    fn curve(
        &self,
        path: &Path,
        metric: &str,
        &Wanted { along, part, .. }: &Wanted,
        until: Instant,
    ) -> Option<((f64, f64), Curve)> {
        let metrics = &self.metrics;
        let speeds = match metric == SPEED && metrics.points(SPEED).is_empty() {
            true => metrics.speeds(),
            false => Vec::new(),
        };
        let all = if speeds.is_empty() { metrics.points(metric) } else { &speeds };
        let closer =
            part.and_then(|ends| metrics.closer(path, metric, (along, ends), until).ok().flatten());
        let at =
            |point: &Point| metrics.place_along(along, (point.steps, f64::from(point.seconds)));
        // The end of the run, not of the displayed part.
        let last = all.last()?;
        let points = closer.as_deref().unwrap_or(all).iter();
        let curve: Curve = points.map(|point| (at(point), f64::from(point.value))).collect();
        (!curve.is_empty()).then_some(((last.steps, at(last)), curve))
    }
}

/// The intervals of groups of runs by metric, then by group.
pub(super) fn bands(members: &[Members], summary: Summary) -> Value {
    let mut bands: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
    for Members { metric, group, curves } in members {
        let band = json!(interval(curves, summary, BAND));
        bands.entry(metric).or_default().insert(group, band);
    }
    json!(bands)
}

/// Time of modification and size of the files that determine a run's state.
fn files(run: &Path) -> Vec<Option<(SystemTime, u64)>> {
    let file = |name| {
        let file = fs::metadata(run.join(name)).ok()?;
        Some((file.modified().ok()?, file.len()))
    };
    [CONFIG, METRICS, RESULT].map(file).to_vec()
}
