"use strict";
// The chosen run: its settings, its messages, its threads, and its recorded episodes.

const greys = ["#bbbbbb", "#999999", "#777777", "#cccccc"];

// Chooses a run, and scrolls to it.
async function visit(path) {
  await choose(path);
  at("run").scrollIntoView({ block: "nearest" });
}

async function choose(path) {
  view.run = path;
  stop();
  changed();
  const { config, result, profile, memory } = await (await ask("api/run", { run: path })).json();
  at("name").textContent = path;
  drawProfile(profile, memory);
  at("config").textContent = config;
  at("result").textContent = result ?? "It has none yet.";
  at("frame").textContent = "";
  at("picture").hidden = true;
  at("run").hidden = false;
  await differences();
  await follow();
}

// What of the chosen run grows: its messages, what its threads do, and the load of its machine.
async function follow() {
  const run = view.run;
  if (!run) return;
  const { messages, threads, films } = await (await ask("api/now", { run })).json();
  if (run !== view.run) return;
  const list = at("messages").querySelector("ul");
  list.replaceChildren(
    ...messages.reverse().map(({ time, kind, text }) => {
      const when = make("time", {}, new Date(1000 * time).toLocaleString());
      return make("li", { class: kind }, when, kind === "warning" || kind === "error" ? `${kind}: ${text}` : text);
    }),
  );
  at("messages").hidden = !messages.length;
  drawThreads(threads);
  showFilms(films);
  await drawMachine(run);
}

// The unit of a metric of the machine.
const unit = (name) => (name.endsWith("memory") ? "bytes" : "share of all processors");

// Charts of the metrics that describe the machine, over the seconds of training.
async function drawMachine(run) {
  const names = state.metrics.filter((name) => name.startsWith("machine/"));
  at("machine").hidden = true;
  if (!names.length) return;
  const found = await (await ask("api/charts", { metric: names, along: "seconds", summary: "mean", run })).json();
  const some = names.filter((name) => found[name]?.runs[run]?.length);
  at("machine").hidden = !some.length;
  const charts = some.map((name) => make("svg", { class: "chart", role: "img", "aria-label": name }));
  at("machine").querySelector("div").replaceChildren(...some.flatMap((name, i) => [make("span", {}, `${name.replace("machine/", "").replaceAll("_", " ")}, ${unit(name)}`), charts[i]]));
  some.forEach((name, i) => paint(charts[i], [{ key: run, points: found[name].runs[run], ink: "var(--c0)", dash: "" }], { log: false, zoom: null }));
}

// The settings of a configuration file by their names.
function settingsOf(config) {
  const [found, lines] = [new Map(), config.split("\n")];
  let section = "";
  for (const line of lines) {
    const head = line.match(/^\[+([^\]]+)\]+\s*$/);
    const pair = line.match(/^([\w."-]+) = (.*)$/);
    if (head) section = `${head[1]}.`;
    else if (pair) found.set(section + pair[1], pair[2]);
  }
  return found;
}

// A table of the settings in which the chosen run differs from another one.
async function differences() {
  const select = at("other");
  const others = state.runs.map(({ path }) => path).filter((path) => path !== view.run);
  const value = select.value;
  if (JSON.stringify(others) !== JSON.stringify([...select.options].map((one) => one.value))) {
    select.replaceChildren(...others.map((path) => make("option", { value: path }, path)));
    if (others.includes(value)) select.value = value;
  }
  if (!at("differences").open || !select.value) return;
  const [mine, other] = [view.run, select.value];
  const { config } = await (await ask("api/run", { run: other })).json();
  if (mine !== view.run || other !== select.value) return;
  const [here, there] = [settingsOf(at("config").textContent), settingsOf(config)];
  const keys = [...new Set([...here.keys(), ...there.keys()])].filter((key) => here.get(key) !== there.get(key));
  const row = (kind, ...cells) => make("tr", {}, ...cells.map((cell) => make(kind, {}, cell)));
  const rows = keys.map((key) => row("td", key, here.get(key) ?? "-", there.get(key) ?? "-"));
  const made = make("table", {}, make("thead", {}, row("th", "setting", runLabel({ path: mine }), runLabel({ path: other }))), make("tbody", {}, ...rows));
  at("differences").querySelector("div").replaceChildren(keys.length ? made : "The settings are equal.");
}
at("other").addEventListener("change", differences);
at("differences").addEventListener("toggle", differences);

// The recorded episodes: those after as many iterations belong together, such as the environment's pictures and the agent's own.
let recorded = [];

function showFilms(files) {
  const slider = at("film");
  const last = !recorded.length || +slider.value === recorded.length - 1;
  recorded = [];
  for (const file of files) {
    const after = parseInt(file, 10);
    if (recorded.at(-1)?.after !== after) recorded.push({ after, files: [] });
    recorded.at(-1).files.push(file);
  }
  at("films").hidden = !recorded.length;
  slider.max = recorded.length - 1;
  if (last) slider.value = slider.max;
  showFilm();
}

function showFilm() {
  const one = recorded[at("film").value];
  at("when").textContent = one ? `${count(one.after)} iterations` : "";
  const images = (one?.files ?? []).map((name) => {
    const src = address("api/film", { run: view.run, name });
    return make("img", { src, alt: name });
  });
  // An image that is there goes on playing.
  const box = at("films").querySelector("div");
  const same = images.length === box.children.length && images.every((image, i) => image.getAttribute("src") === box.children[i].getAttribute("src"));
  if (!same) box.replaceChildren(...images);
}
at("film").addEventListener("input", showFilm);

// A band for each thread: the shares of its time that its activities took, above each other, over the seconds of training.
function drawThreads(threads) {
  const activities = [...new Set(Object.values(threads).flatMap(Object.keys))].sort();
  const waits = (activity) => activity.startsWith("waiting") || activity === "idle";
  const colour = (activity) => {
    const place = activities.filter((other) => waits(other) === waits(activity)).indexOf(activity);
    return waits(activity) ? greys[place % greys.length] : `var(--c${place % colours})`;
  };
  at("threads").hidden = !activities.length;
  at("threads").querySelector("div").replaceChildren(
    ...Object.entries(threads).flatMap(([thread, shares]) => {
      const times = Object.values(shares)[0].map(([second]) => second);
      const last = times[times.length - 1] || 1;
      // A call's shares are those of the time up to its end.
      const x = (i) => (i ? (1000 * times[i]) / last : 0).toFixed(1);
      const base = times.map(() => 0);
      const areas = activities.filter((activity) => shares[activity]).map((activity) => {
        const lower = base.map((value, i) => `${x(i)} ${(100 - value).toFixed(2)}`).reverse();
        shares[activity].forEach(([, share], i) => (base[i] += 100 * share));
        const upper = base.map((value, i) => `${x(i)} ${(100 - value).toFixed(2)}`);
        return make("path", { d: `M${upper.concat(lower).join("L")}Z`, style: `fill: ${colour(activity)}` });
      });
      const chart = make("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": `Activities of ${thread}` }, ...areas);
      return [make("span", {}, `${thread.replace("_", " ")}, ${count(last)} s`), chart];
    }),
  );
  at("threads").querySelector("ul").replaceChildren(
    ...activities.map((activity) => {
      const piece = make("rect", { width: 14, height: 14, style: `fill: ${colour(activity)}` });
      return make("li", {}, make("svg", { width: 14, height: 14 }, piece), activity.replaceAll("_", " "));
    }),
  );
}
