"use strict";
// The page of `podracer watch`. It asks the server for the state of all runs, and for the curves of the chosen metrics.

// Shows the view in the controls.
function controls() {
  for (const key of ["along", "summary", "smooth", "filter"]) if (at(key) !== document.activeElement) at(key).value = view[key];
  at("weight").textContent = view.smooth;
  for (const key of ["log", "facets"]) at(key).checked = view[key];
  const keys = JSON.stringify(state.settings);
  if (at("by").dataset.of !== keys) {
    at("by").dataset.of = keys;
    at("by").replaceChildren(...["", ...state.settings].map((key) => make("option", { value: key }, key || "all settings")));
  }
  at("by").value = view.by;
  const names = JSON.stringify(state.metrics);
  if (at("metrics").dataset.of !== names) {
    at("metrics").dataset.of = names;
    at("metrics").replaceChildren(
      ...state.metrics.map((name) => {
        const box = make("input", { type: "checkbox", value: name });
        box.addEventListener("change", () => chart(name, box.checked));
        return make("label", {}, box, ` ${name}`);
      }),
    );
  }
  const there = new Set(charted());
  for (const box of at("metrics").querySelectorAll("input")) box.checked = there.has(box.value);
}

// The name of a metric adds its charts. The list has the metrics that match what is written; the enter key adds them all.
function add(names) {
  at("metric").value = "";
  narrow();
  if (!names.length) return;
  view.metrics = [...new Set([...charted(), ...names])];
  changed();
}
function matching() {
  const text = at("metric").value.trim();
  return text ? state.metrics.filter((name) => expression(text).test(name)) : [];
}
function narrow() {
  const [text, found] = [at("metric").value, new Set(matching())];
  for (const box of at("metrics").querySelectorAll("input")) box.parentElement.hidden = text !== "" && !found.has(box.value);
  at("chosen").open = text !== "";
}
at("metric").addEventListener("input", narrow);
at("metric").addEventListener("change", () => {
  const name = at("metric").value.trim();
  if (state.metrics.includes(name)) add([name]);
});
at("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  add(matching().slice(0, 12));
});
at("along").addEventListener("change", () => {
  [view.along, view.zoom] = [at("along").value, null];
  changed();
});
at("summary").addEventListener("change", () => {
  view.summary = at("summary").value;
  changed();
});
at("smooth").addEventListener("input", () => {
  view.smooth = Number(at("smooth").value);
  changed({ asks: false });
});
for (const key of ["log", "facets"]) {
  at(key).addEventListener("change", () => {
    view[key] = at(key).checked;
    changed({ asks: false });
  });
}
at("by").addEventListener("change", async () => {
  view.by = at("by").value;
  try {
    state = await (await ask("api/state", { by: view.by })).json();
    changed();
  } catch (error) {
    failed(error);
  }
});
at("whole").addEventListener("click", () => zoom(null));
addEventListener("resize", redraw);

// On a phone, the charts come first.
at("groups").open = matchMedia("(min-width: 56rem)").matches;

let wait = 0;
let drawnAt = -Infinity; // the time of the last request for curves
let drawnOf = ""; // the data that these curves are of

function failed(error) {
  at("status").textContent = error instanceof TypeError ? "the server does not answer; trying again" : error.message;
}

// A page that nobody touches is looked at from time to time: it asks less often, and costs the training less.
let touched = performance.now();
for (const kind of ["pointerdown", "pointermove", "wheel", "keydown"]) addEventListener(kind, () => (touched = performance.now()), { passive: true });

async function look() {
  wait = performance.now() - touched < 60000 ? 2000 : 5000;
  try {
    state = await (await ask("api/state", { by: view.by })).json();
    const [read, length] = state.read;
    const running = state.runs.filter((run) => ["running", "compiling"].includes(run.state)).length;
    const reading = read < length ? `, ${Math.round((100 * read) / length)}% read` : "";
    at("status").textContent = `${state.runs.length} runs, ${running} running${reading}`;
    arrange();
    controls();
    at("problems").replaceChildren(...Object.entries(state.problems).map(([path, problem]) => make("li", {}, `${path}: ${problem}`)));
    // Long files are read over many answers: the curves follow once a second.
    const now = JSON.stringify([state.read, state.groups]);
    if (now !== drawnOf && (read === length || performance.now() - drawnAt > 1000)) {
      drawnAt = performance.now();
      await load();
      drawnOf = now;
      await follow();
    }
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
    if (read < length) wait = 50;
    else if (!running) wait = 5000;
  } catch (error) {
    failed(error);
  }
  // A page that is not visible asks for nothing.
  if (document.hidden) await new Promise((shown) => document.addEventListener("visibilitychange", shown, { once: true }));
  setTimeout(look, document.hidden ? 0 : wait);
}
look();
