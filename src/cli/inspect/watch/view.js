"use strict";
// What is shown, and how. The address of the page has it, and can be kept and sent.

let state = { runs: [], groups: [], settings: [], metrics: [], problems: {}, read: [0, 0] };

const view = {
  metrics: [], // the charts, by metric; empty for the default charts
  along: "steps", // or "seconds", or "clock", the time of day
  summary: "mean",
  smooth: 0,
  log: false,
  facets: true,
  filter: "",
  by: "", // the setting that groups the runs; empty for runs with equal settings
  zoom: null, // the ends of the horizontal axis
  hide: new Set(), // names of groups, and paths of runs
  pin: new Set(),
  open: new Set(), // names of groups
  colour: new Map(),
  run: null, // the path of the chosen run
};

const wanted = new URLSearchParams(location.hash.slice(1));
{
  for (const key of ["along", "summary", "filter", "by"]) if (wanted.has(key)) view[key] = wanted.get(key);
  view.metrics = wanted.getAll("metric");
  view.smooth = Math.min(Math.max(Number(wanted.get("smooth")) || 0, 0), 0.99);
  view.log = wanted.has("log");
  view.facets = wanted.get("facets") !== "none";
  const zoom = (wanted.get("zoom") ?? "").split(",").map(Number);
  if (zoom.length === 2 && zoom[0] < zoom[1]) view.zoom = zoom;
  for (const key of ["hide", "pin", "open"]) view[key] = new Set(wanted.getAll(key));
  for (const pair of wanted.getAll("colour")) if (/^#[0-9a-f]{6} /.test(pair)) view.colour.set(pair.slice(8), pair.slice(0, 7));
}

function remember() {
  const now = new URLSearchParams(view.metrics.map((name) => ["metric", name]));
  now.set("along", view.along);
  now.set("summary", view.summary);
  if (view.smooth) now.set("smooth", view.smooth);
  if (view.log) now.set("log", "");
  if (!view.facets) now.set("facets", "none");
  if (view.filter) now.set("filter", view.filter);
  if (view.by) now.set("by", view.by);
  if (view.zoom) now.set("zoom", view.zoom);
  for (const key of ["hide", "pin", "open"]) for (const name of view[key]) now.append(key, name);
  for (const [name, colour] of view.colour) now.append("colour", `${colour} ${name}`);
  if (view.run) now.set("run", view.run);
  history.replaceState(null, "", `${location.pathname}${location.search}#${now}`);
}

// The metrics that have a chart.
function charted() {
  const chosen = view.metrics.filter((name) => state.metrics.includes(name));
  if (chosen.length) return chosen;
  const usual = ["mean_return", "loss", "steps_per_second", "entropy"].filter((name) => state.metrics.includes(name));
  return usual.length ? usual : state.metrics.slice(0, 4);
}

const colours = 7; // in page.css
const dashes = ["", "8 3", "2 3", "12 3 2 3", "5 2", "1 2", "16 5"];

// The groups, with their names, runs, colours and dashes. The n-th groups of all experiments have the same colour. Dashes
// distinguish the experiments in a common chart, and the groups after the last colour.
let groups = [];

function arrange() {
  const runs = state.groups.map(() => []);
  for (const run of state.runs) runs[run.group]?.push(run);
  const ofExperiment = new Map();
  groups = state.groups.map((name, i) => {
    const experiment = runs[i][0]?.experiment ?? "";
    const place = ofExperiment.get(experiment) ?? 0;
    ofExperiment.set(experiment, place + 1);
    return { name, experiment, place, runs: runs[i] };
  });
  const first = new Map();
  let rounds = 0;
  for (const [experiment, number] of ofExperiment) {
    first.set(experiment, view.facets ? 0 : rounds);
    rounds += Math.ceil(number / colours);
  }
  const filter = expression(view.filter);
  const alone = ofExperiment.size === 1;
  for (const group of groups) {
    const { name, experiment, place } = group;
    group.ink = view.colour.get(name) ?? `var(--c${place % colours})`;
    group.dash = dashes[(first.get(experiment) + Math.floor(place / colours)) % dashes.length];
    // Without the experiment in its facet, and without the tables of settings.
    const rest = (alone || view.facets) && name.startsWith(`${experiment}, `) ? name.slice(experiment.length + 2) : name;
    group.label = rest.replace(/[\w.]+\.(\w+ = )/g, "$1").replaceAll(" = ", "=");
    group.matches = filter.test(name) || group.runs.some(({ path }) => filter.test(path));
    group.matching = filter.test(name) ? group.runs : group.runs.filter(({ path }) => filter.test(path));
    group.shown = group.matches && !view.hide.has(name);
  }
}

// The titles of the rows of charts; one without a title for all experiments together.
function facets() {
  const experiments = [...new Set(groups.filter((group) => group.shown).map(({ experiment }) => experiment))];
  return view.facets && experiments.length > 1 ? experiments.sort() : [""];
}

const runLabel = (run) => run.path.split("/").slice(-2).join("/");

// The runs with a line of their own: the runs of open groups, the pinned runs, and the chosen run.
function lone() {
  const open = groups.filter((group) => group.shown && view.open.has(group.name));
  const pinned = groups.filter(({ shown }) => shown).flatMap(({ runs }) => runs.map(({ path }) => path)).filter((path) => view.pin.has(path));
  const found = open.flatMap(({ matching }) => matching.filter(({ path }) => !view.hide.has(path)).map(({ path }) => path));
  found.push(...pinned);
  // Runs at different times of day have no mean.
  const apart = view.along === "clock" ? groups.filter(({ shown, runs }) => shown && runs.length > 1) : [];
  found.push(...apart.flatMap(({ matching }) => matching.filter(({ path }) => !view.hide.has(path)).map(({ path }) => path)));
  if (view.run && state.runs.some(({ path }) => path === view.run)) found.push(view.run);
  return [...new Set(found)];
}
