"use strict";
// The groups of runs with their runs: shown or hidden, pinned, and coloured.

const toggle = (set, key) => (set.has(key) ? set.delete(key) : set.add(key));

// The view has another selection of lines. Requests are only made for lines that are missing.
function changed({ asks = true } = {}) {
  arrange();
  remember();
  controls();
  redraw();
  table();
  if (asks) load().catch(failed);
}

const lastOf = (points) => points?.at(-1)?.[1] ?? null;

// A line of the legend.
function item(key, label, { ink, dash, value, shown, full }, ...more) {
  const box = make("input", { type: "checkbox", "aria-label": `Show ${label}`, "data-id": `show ${key}` });
  box.checked = shown;
  box.addEventListener("change", () => {
    toggle(view.hide, key);
    changed();
  });
  const colour = make("input", { type: "color", "aria-label": `Colour of ${label}`, "data-id": `colour ${key}` });
  const swatch = make("label", { class: "swatch", title: "Choose a colour" }, sample(ink, dash), colour);
  colour.value = view.colour.get(key) ?? hex(ink);
  colour.addEventListener("change", () => {
    view.colour.set(key, colour.value);
    changed({ asks: false });
  });
  const line = make("div", { title: full }, box, swatch, ...more, make("output", {}, count(value)));
  const whole = make("li", { "data-key": key }, line);
  line.addEventListener("pointerenter", () => light(key));
  line.addEventListener("pointerleave", () => light(null));
  return whole;
}

// The number of a colour of page.css.
function hex(ink) {
  const name = ink.match(/^var\((--c\d)\)$/)?.[1];
  return name ? getComputedStyle(document.documentElement).getPropertyValue(name).trim() : ink;
}

function act(text, label, id, pressed, done) {
  const button = make("button", { type: "button", "aria-label": label, title: label, "data-id": id, ...pressed }, text);
  button.addEventListener("click", done);
  return button;
}

// The button that pins a group or a run.
function pinOf(key, label) {
  const pinned = view.pin.has(key);
  return act(pinned ? "★" : "☆", `Pin ${label}`, `pin ${key}`, { "aria-pressed": pinned }, () => {
    toggle(view.pin, key);
    changed();
  });
}

function groupItem(group, value) {
  const { name, label, ink, dash, matching } = group;
  const open = view.open.has(name);
  const flip = () => {
    toggle(view.open, name);
    changed();
  };
  const opener = act(`${open ? "▾" : "▸"} ${matching.length}`, `Runs of ${label}`, `open ${name}`, { "aria-expanded": open }, flip);
  const one = item(name, label, { ink, dash, value, shown: !view.hide.has(name), full: name }, make("span", {}, label), opener, pinOf(name, label));
  if (!open) return one;
  const metric = charted()[0];
  const values = new Map(matching.map((run) => [run.path, lastOf(curves[metric]?.runs?.[run.path]) ?? run.mean_return]));
  const runs = [...matching].sort((a, b) => (values.get(b.path) ?? -Infinity) - (values.get(a.path) ?? -Infinity));
  const items = runs.map((run) => {
    const known = { ink: view.colour.get(run.path) ?? ink, dash: "", value: values.get(run.path), shown: !view.hide.has(run.path), full: run.path };
    const name = act(run.path.split("/").at(-1), `Look at ${run.path}`, `run ${run.path}`, { class: "name" }, () => visit(run.path));
    return item(run.path, run.path, known, name, pinOf(run.path, run.path));
  });
  one.append(make("ul", {}, ...items));
  return one;
}

let listed = "";
function legend() {
  const metric = charted()[0];
  const found = new Map((curves[metric]?.groups ?? []).map(({ name, points }) => [name, lastOf(points)]));
  const now = JSON.stringify([groups, metric, [...found], Object.entries(curves[metric]?.runs ?? {}).map(([path, points]) => [path, lastOf(points)]), ["hide", "pin", "open"].map((key) => [...view[key]]), [...view.colour], view.facets]);
  if (now === listed) return;
  listed = now;
  const value = ({ name }) => found.get(name) ?? -Infinity;
  const order = (a, b) => view.pin.has(b.name) - view.pin.has(a.name) || value(b) - value(a);
  const shown = groups.filter(({ matches }) => matches);
  const experiments = [...new Set(shown.map(({ experiment }) => experiment))].sort();
  const list = (some) => make("ul", { class: "legend" }, ...[...some].sort(order).map((group) => groupItem(group, found.get(group.name))));
  const parts = view.facets && experiments.length > 1
    ? experiments.flatMap((one) => [make("h3", {}, one), list(shown.filter(({ experiment }) => experiment === one))])
    : [list(shown)];
  const focused = document.activeElement?.dataset?.id;
  at("legend").replaceChildren(...parts);
  if (focused) [...at("legend").querySelectorAll("[data-id]")].find((one) => one.dataset.id === focused)?.focus();
  at("number").textContent = `${shown.length} of ${groups.length} groups`;
}

at("filter").addEventListener("input", () => {
  view.filter = at("filter").value;
  changed({ asks: lone().length > 0 });
});
at("matches").addEventListener("click", (event) => {
  const what = event.target.dataset.do;
  if (!what) return;
  for (const { name, matches, matching } of groups) {
    if (!matches) continue;
    if (what === "hide") view.hide.add(name);
    if (what === "pin") view.pin.add(name);
    if (what === "show") [name, ...matching.map(({ path }) => path)].forEach((key) => view.hide.delete(key));
  }
  changed();
});
at("paint").addEventListener("change", () => {
  for (const { name, matches } of groups) if (matches) view.colour.set(name, at("paint").value);
  changed({ asks: false });
});
