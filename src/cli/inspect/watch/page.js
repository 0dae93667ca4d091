"use strict";
// The page of `podracer watch`. It asks the server for the state of all runs, and for the curves of one metric.

const at = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token");
const colours = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#aa3377", "#888888"];
const greys = ["#bbbbbb", "#999999", "#777777", "#cccccc"];
const dashes = ["", "7 4", "2 3", "16 4"];
let state = { runs: [], groups: [], metrics: [], problems: {}, read: [0, 0] };
let curves = [];
let chosen = null; // the path of a run
let window_ = null; // the ends of the horizontal axis, while zoomed
let sorted = { key: null, down: true };
let shown = ""; // what the table was made of

// What is looked at is in the address, which can be kept and sent.
const wanted = new URLSearchParams(location.hash.slice(1));
function remember() {
  const now = { metric: at("metric").value, along: at("along").value, summary: at("summary").value, ...(chosen ? { run: chosen } : {}) };
  history.replaceState(null, "", `${location.pathname}${location.search}#${new URLSearchParams(now)}`);
}

async function ask(path, parameters = {}, options = {}) {
  const query = new URLSearchParams({ ...parameters, ...(token ? { token } : {}) });
  const answer = await fetch(`${path}?${query}`, options);
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "rect", "g", "clipPath"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// 1234567 as 1.23M
function count(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  for (const [from, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (size >= from) return +(value / from).toPrecision(3) + unit;
  return size !== 0 && size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(4));
}

// Multiples of a round number between two ends.
function ticks(low, high, most) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const all = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++) all.push(i * step);
  return all;
}

const frame = { left: 62, right: 14, top: 10, bottom: 40 };

function ends() {
  const inside = (x) => !window_ || (x >= window_[0] && x <= window_[1]);
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const curve of curves) {
    for (const [x, y] of curve.points) {
      if (!inside(x) || y === null) continue;
      [x0, x1, y0, y1] = [Math.min(x0, x), Math.max(x1, x), Math.min(y0, y), Math.max(y1, y)];
    }
  }
  if (x0 > x1) return [0, 1, 0, 1];
  if (window_) [x0, x1] = window_;
  else x0 = Math.min(x0, 0);
  const air = (y1 - y0) * 0.05 || Math.abs(y1) * 0.01 || 1;
  return [x0, x1 > x0 ? x1 : x0 + 1, y0 >= 0 && y0 < (y1 - y0) ? 0 : y0 - air, y1 + air];
}

let scale = null;

function draw() {
  const chart = at("chart");
  const { width, height } = chart.getBoundingClientRect();
  if (!width) return;
  const [x0, x1, y0, y1] = ends();
  const [w, h] = [width - frame.left - frame.right, height - frame.top - frame.bottom];
  const x = (value) => frame.left + ((value - x0) / (x1 - x0)) * w;
  const y = (value) => frame.top + h - ((Math.min(Math.max(value, y0), y1) - y0) / (y1 - y0)) * h;
  scale = { back: (pixel) => x0 + ((pixel - frame.left) / w) * (x1 - x0), x, y, h };
  const parts = [];
  for (const value of ticks(y0, y1, 6)) {
    parts.push(make("line", { class: "grid", x1: frame.left, x2: frame.left + w, y1: y(value), y2: y(value) }));
    parts.push(make("text", { x: frame.left - 8, y: y(value) + 4, "text-anchor": "end" }, count(value)));
  }
  for (const value of ticks(x0, x1, width < 500 ? 4 : 8)) {
    parts.push(make("text", { x: x(value), y: frame.top + h + 18, "text-anchor": "middle" }, count(value)));
  }
  const along = at("along").selectedOptions[0].textContent;
  parts.push(make("text", { x: frame.left + w / 2, y: height - 4, "text-anchor": "middle" }, along));
  const clip = (points) => points.filter(([at_]) => at_ >= x0 - (x1 - x0) && at_ <= x1 + (x1 - x0));
  const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
  parts.push(make("clipPath", { id: "inside" }, make("rect", { x: frame.left, y: 0, width: w, height: frame.top + h })));
  const lines = make("g", { "clip-path": "url(#inside)" });
  curves.forEach(({ points, band }, i) => {
    if (!band.length) return;
    const upper = points.map(([a], j) => [a, band[j][1]]);
    const lower = points.map(([a], j) => [a, band[j][0]]).reverse();
    const colour = colours[i % colours.length];
    lines.append(make("path", { d: path(clip(upper).concat(clip(lower))) + "Z", fill: colour, opacity: 0.16 }));
  });
  curves.forEach(({ points }, i) => {
    const colour = colours[i % colours.length];
    const dash = dashes[Math.floor(i / colours.length) % dashes.length];
    lines.append(make("path", { d: path(clip(points.filter(([, b]) => b !== null))), fill: "none", stroke: colour, "stroke-width": 1.8, "stroke-dasharray": dash }));
  });
  parts.push(lines);
  chart.replaceChildren(...parts);
  at("whole").disabled = !window_;
}

function legend() {
  at("legend").replaceChildren(
    ...curves.map(({ name, points }, i) => {
      const dash = dashes[Math.floor(i / colours.length) % dashes.length];
      const piece = make("line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke: colours[i % colours.length], "stroke-width": 3, "stroke-dasharray": dash });
      const last = points.length ? `: ${count(points[points.length - 1][1])}` : "";
      return make("li", {}, make("svg", { width: 26, height: 12 }, piece), name + last);
    }),
  );
}

async function drawCurves() {
  const metric = at("metric").value;
  if (!metric) return;
  const part = window_ ? { from: window_[0], to: window_[1] } : {};
  const answer = await ask("api/curves", { metric, along: at("along").value, summary: at("summary").value, ...part });
  curves = await answer.json();
  legend();
  draw();
  remember();
}

function table() {
  const settings = [...new Set(state.runs.flatMap((run) => Object.keys(run.settings)))];
  const columns = [
    ["run", (run) => run.path],
    ["seed", (run) => run.seed, true],
    ["state", (run) => run.state],
    ["mean return", (run) => run.mean_return, true],
    ["steps", (run) => run.env_steps, true],
    ["steps/s", (run) => run.speed, true],
    ["seconds", (run) => run.seconds, true],
    ["memory", (run) => run.memory, true],
    ...settings.map((key) => [key, (run) => run.settings[key]]),
  ];
  let rows = state.runs;
  const by = columns.find(([name]) => name === sorted.key);
  if (by) {
    const value = (run) => by[1](run) ?? -Infinity;
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    rows = [...rows].sort((a, b) => order(value(a), value(b)) * (sorted.down ? -1 : 1));
  }
  const now = JSON.stringify([rows, sorted, chosen]);
  if (now === shown) return;
  shown = now;
  at("heads").replaceChildren(
    ...columns.map(([name]) => {
      const button = make("button", { type: "button" }, name + (sorted.key === name ? (sorted.down ? " ↓" : " ↑") : ""));
      button.addEventListener("click", () => {
        sorted = { key: name, down: sorted.key === name ? !sorted.down : true };
        table();
      });
      return make("th", { scope: "col" }, button);
    }),
  );
  const focused = document.activeElement?.dataset?.path;
  at("runs").replaceChildren(
    ...rows.map((run) => {
      const cells = columns.map(([name, of, number]) => {
        const value = of(run);
        const text = number && name !== "seed" ? count(value) : String(value ?? "-");
        return make("td", { class: name === "state" ? run.state : number ? "number" : "" }, text);
      });
      const row = make("tr", { tabindex: 0, "aria-selected": run.path === chosen, "data-path": run.path }, ...cells);
      const look = async () => {
        await choose(run.path);
        at("run").scrollIntoView({ block: "nearest" });
      };
      row.addEventListener("click", look);
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          look();
        }
      });
      return row;
    }),
  );
  if (focused) [...at("runs").children].find((row) => row.dataset.path === focused)?.focus();
}

async function choose(path) {
  chosen = path;
  stop();
  table();
  const { config, result } = await (await ask("api/run", { run: path })).json();
  at("name").textContent = path;
  at("config").textContent = config;
  at("result").textContent = result ?? "It has none yet.";
  at("frame").textContent = "";
  at("picture").hidden = true;
  at("run").hidden = false;
  remember();
  await follow();
}

// What of the chosen run grows: its messages, and what its threads do.
async function follow() {
  const run = chosen;
  if (!run) return;
  const { messages, threads, films } = await (await ask("api/now", { run })).json();
  if (run !== chosen) return;
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
}

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
    const src = `api/film?${new URLSearchParams({ run: chosen, name, ...(token ? { token } : {}) })}`;
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
    const [alike, palette] = [activities.filter((other) => waits(other) === waits(activity)), waits(activity) ? greys : colours];
    return palette[alike.indexOf(activity) % palette.length];
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
        return make("path", { d: `M${upper.concat(lower).join("L")}Z`, fill: colour(activity) });
      });
      const chart = make("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": `Activities of ${thread}` }, ...areas);
      return [make("span", {}, `${thread.replace("_", " ")}, ${count(last)} s`), chart];
    }),
  );
  at("threads").querySelector("ul").replaceChildren(
    ...activities.map((activity) => {
      const piece = make("rect", { width: 14, height: 14, fill: colour(activity) });
      return make("li", {}, make("svg", { width: 14, height: 14 }, piece), activity.replaceAll("_", " "));
    }),
  );
}

// An episode: YUV4MPEG2 with a brightness and two differences of colour for every pixel. It is shown while it is received.
let film = null;

// Splits what is received into a head and pictures, and calls `begin` with the head and `add` with each picture.
async function receive(stream, begin, add) {
  let [bytes, head, size] = [new Uint8Array(0), null, 0];
  const mark = "FRAME\n".length;
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const joined = new Uint8Array(bytes.length + value.length);
    joined.set(bytes);
    joined.set(value, bytes.length);
    bytes = joined;
    if (!head && bytes.includes(10)) {
      head = new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(10)));
      const number = (letter) => +head.match(new RegExp(` ${letter}(\\d+)`))[1];
      const [width, height] = [number("W"), number("H")];
      size = 3 * width * height;
      bytes = bytes.subarray(bytes.indexOf(10) + 1);
      begin(width, height);
    }
    while (head && bytes.length >= mark + size) {
      add(bytes.slice(mark, mark + size));
      bytes = bytes.subarray(mark + size);
    }
  }
}

function image({ width, height }, planes) {
  const image = new ImageData(width, height);
  const size = width * height;
  for (let p = 0; p < size; p++) {
    const light = 1.164383 * (planes[p] - 16);
    const [u, v] = [planes[size + p] - 128, planes[2 * size + p] - 128];
    image.data.set([light + 1.596027 * v, light - 0.391762 * u - 0.812968 * v, light + 2.017232 * u, 255], 4 * p);
  }
  return image;
}

function show() {
  at("picture").getContext("2d").putImageData(image(film, film.pictures[film.now]), 0, 0);
  at("frame").textContent = `picture ${film.now + 1} of ${film.pictures.length}${film.whole ? "" : " so far"}`;
}

function step() {
  const next = film.now + 1;
  // The last picture stays until the next one is there.
  if (next < film.pictures.length || film.whole) film.now = next % film.pictures.length;
  show();
}

function stop() {
  if (film?.timer) clearInterval(film.timer);
  if (film) film.timer = null;
  at("pause").textContent = "Go on";
}

function goOn() {
  film.timer = setInterval(step, 1000 / 15);
  at("pause").textContent = "Pause";
}

// The request for an episode, which ends with another one.
let request = null;

async function play() {
  stop();
  request?.abort();
  const mine = (request = new AbortController());
  at("frame").textContent = "playing";
  try {
    const wanted = { run: chosen, seed: at("seed").value, values: at("values").checked };
    const answer = await ask("api/play", wanted, { method: "POST", signal: mine.signal });
    const now = { pictures: [], now: 0, timer: null, whole: false };
    const begin = (width, height) => {
      film = Object.assign(now, { width, height });
      const canvas = at("picture");
      [canvas.width, canvas.height, canvas.hidden] = [width, height, false];
      [at("pause").disabled, at("step").disabled] = [false, false];
    };
    const add = (picture) => {
      now.pictures.push(picture);
      if (now.pictures.length > 1) return;
      show();
      goOn();
    };
    await receive(answer.body, begin, add);
    now.whole = true;
  } catch (error) {
    if (mine === request) at("frame").textContent = error.message;
  }
}
at("play").addEventListener("click", play);
at("pause").addEventListener("click", () => (film.timer ? stop() : goOn()));
at("step").addEventListener("click", () => {
  stop();
  step();
});

// Zoom: drag along the chart.
let from = null;
const place = (event) => event.clientX - at("chart").getBoundingClientRect().left;
at("chart").addEventListener("pointerdown", (event) => {
  from = place(event);
  at("chart").setPointerCapture(event.pointerId);
});
at("chart").addEventListener("pointermove", (event) => {
  if (!scale) return;
  const here = place(event);
  const value = scale.back(here);
  const near = curves.map(({ name, points }) => {
    const point = points.reduce((best, one) => (Math.abs(one[0] - value) < Math.abs(best[0] - value) ? one : best), points[0] ?? [0, null]);
    return `${name} ${count(point[1])}`;
  });
  at("reading").textContent = `at ${count(value)}: ${near.slice(0, 8).join("; ")}`;
  at("chart").querySelector(".drag")?.remove();
  if (from !== null) {
    const [left, right] = [Math.min(from, here), Math.max(from, here)];
    at("chart").append(make("rect", { class: "drag", x: left, y: frame.top, width: right - left, height: scale.h }));
  }
});
at("chart").addEventListener("pointerup", (event) => {
  const to = place(event);
  const zooms = from !== null && Math.abs(to - from) > 8;
  if (zooms) window_ = [scale.back(Math.min(from, to)), scale.back(Math.max(from, to))];
  from = null;
  draw();
  // More points of the part come after it.
  if (zooms) drawCurves();
});
at("whole").addEventListener("click", () => {
  window_ = null;
  drawCurves();
});
at("along").addEventListener("change", () => {
  window_ = null;
  drawCurves();
});
for (const id of ["metric", "summary"]) at(id).addEventListener("change", drawCurves);
addEventListener("resize", draw);

async function look() {
  let wait = 2000;
  try {
    const before = JSON.stringify([state.read, state.groups]);
    state = await (await ask("api/state")).json();
    const [read, length] = state.read;
    const going = state.runs.filter((run) => ["running", "compiling"].includes(run.state)).length;
    const reading = read < length ? `, ${Math.round((100 * read) / length)}% read` : "";
    at("status").textContent = `${state.runs.length} runs, ${going} going on${reading}`;
    const metric = at("metric");
    if (metric.options.length !== state.metrics.length) {
      const value = metric.value || (wanted.get("metric") ?? "mean_return");
      metric.replaceChildren(...state.metrics.map((name) => make("option", { value: name }, name)));
      metric.value = state.metrics.includes(value) ? value : (state.metrics[0] ?? "");
    }
    at("problems").replaceChildren(...Object.entries(state.problems).map(([path, problem]) => make("li", {}, `${path}: ${problem}`)));
    table();
    const run = wanted.get("run");
    if (run && state.runs.some(({ path }) => path === run)) {
      wanted.delete("run");
      await choose(run);
      if (wanted.has("play")) {
        at("seed").value = wanted.get("play");
        await play();
      }
    }
    if (before !== JSON.stringify([state.read, state.groups]) && from === null) {
      await drawCurves();
      await follow();
    }
    if (read < length) wait = 50;
  } catch (error) {
    at("status").textContent = error instanceof TypeError ? "the server does not answer; trying again" : error.message;
  }
  setTimeout(look, wait);
}
for (const id of ["along", "summary"]) if (wanted.has(id)) at(id).value = wanted.get(id);
look();
