"use strict";
// The page of `podracer watch`. It asks the server for the state of all runs, and for the curves of the chosen metrics.

// Shows the view in the controls.
function controls() {
  for (const key of ["along", "summary", "smooth", "filter"]) if (at(key) !== document.activeElement) at(key).value = view[key];
  at("weight").textContent = view.smooth;
  for (const key of ["log", "facets"]) at(key).checked = view[key];
  const names = JSON.stringify(state.metrics);
  if (at("names").dataset.of !== names) {
    at("names").dataset.of = names;
    at("names").replaceChildren(...state.metrics.map((name) => make("option", { value: name })));
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

// A name adds its chart, and an expression adds those of all metrics that match.
at("metric").addEventListener("change", () => {
  const text = at("metric").value.trim();
  at("metric").value = "";
  narrow();
  const matching = state.metrics.includes(text) ? [text] : state.metrics.filter((name) => expression(text).test(name));
  if (!text || !matching.length) return;
  view.metrics = [...new Set([...charted(), ...matching.slice(0, 12)])];
  changed();
});
// While it is written, the list of metrics has those that match.
function narrow() {
  const text = expression(at("metric").value.trim());
  for (const label of at("metrics").children) label.hidden = !text.test(label.textContent.trim());
}
at("metric").addEventListener("input", narrow);
at("controls").addEventListener("submit", (event) => event.preventDefault());
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
at("whole").addEventListener("click", () => zoom(null));
addEventListener("resize", redraw);

// On a phone, the charts come first.
at("groups").open = matchMedia("(min-width: 56rem)").matches;

let wait = 0;
let drawnAt = -Infinity; // the time of the last request for curves
let drawnOf = ""; // the data that these curves are of

async function look() {
  wait = 2000;
  try {
    state = await (await ask("api/state")).json();
    const [read, length] = state.read;
    const going = state.runs.filter((run) => ["running", "compiling"].includes(run.state)).length;
    const reading = read < length ? `, ${Math.round((100 * read) / length)}% read` : "";
    at("status").textContent = `${state.runs.length} runs, ${going} going on${reading}`;
    arrange();
    controls();
    at("problems").replaceChildren(...Object.entries(state.problems).map(([path, problem]) => make("li", {}, `${path}: ${problem}`)));
    // Long files are read over many answers: the curves follow once a second.
    const now = JSON.stringify([state.read, state.groups]);
    if (now !== drawnOf && (read === length || performance.now() - drawnAt > 1000)) {
      [drawnOf, drawnAt] = [now, performance.now()];
      await load();
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
    else if (!going) wait = 5000;
  } catch (error) {
    at("status").textContent = error instanceof TypeError ? "the server does not answer; trying again" : error.message;
  }
  // A page that is not visible asks for nothing.
  if (document.hidden) await new Promise((shown) => document.addEventListener("visibilitychange", shown, { once: true }));
  setTimeout(look, document.hidden ? 0 : wait);
}
look();
