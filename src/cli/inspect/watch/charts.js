"use strict";
// The charts: their data, and what a pointer or the keyboard does in them.

// By metric: `groups` of `{ name, until, points }`, and the points of single `runs` by path.
let curves = {};
// By metric, then by the name of a group: `[x, low, high]`.
let bands = {};
let panels = []; // `{ metric, facet, figure, svg, lines, scale }`
let lit = null; // the group or run under the pointer
let cursor = null; // a position on the horizontal axis

const most = 6; // bands in a chart

function asked() {
  const { along, summary, zoom, by } = view;
  const without = state.runs.map(({ path }) => path).filter((path) => view.hide.has(path));
  return { metric: charted(), along, summary, by, ...(without.length ? { without } : {}), ...(zoom ? { from: zoom[0], to: zoom[1] } : {}) };
}

// Asks for curves, and then for bands. A change in the meantime leads to one more request.
let [loading, again] = [false, false];
async function load() {
  again = true;
  if (loading) return;
  loading = true;
  try {
    while (again) {
      again = false;
      const parameters = asked();
      if (!parameters.metric.length) break;
      const open = groups.filter(({ name, shown }) => shown && view.open.has(name)).map(({ name }) => name);
      const alone = new Set(lone());
      const run = state.runs.map(({ path }) => path).filter((path) => alone.has(path));
      curves = await (await ask("api/charts", { ...parameters, open, run })).json();
      redraw();
      if (!again) await loadBands(parameters);
    }
  } finally {
    loading = false;
  }
}

// What the bands were asked for, and when.
let known = { key: "", time: 0 };

// Asks for the bands that are missing; also for those that are some seconds old, if the data have grown.
async function loadBands(parameters, grown = true) {
  // Runs at different times of day have no mean.
  if (view.along === "clock") return;
  const key = JSON.stringify(parameters);
  const same = known.key === key && !(grown && performance.now() - known.time > 10000);
  const has = (name) => same && bands[parameters.metric[0]]?.[name];
  const wanted = groups.filter(({ name, runs }) => runs.length > 1 && bandShown(name) && !has(name)).slice(0, 40);
  if (!wanted.length) return;
  const found = await (await ask("api/bands", { ...parameters, group: wanted.map(({ name }) => name) })).json();
  if (key !== JSON.stringify(asked())) return;
  for (const metric of parameters.metric) found[metric] = { ...(same ? bands[metric] : {}), ...found[metric] };
  bands = found;
  known = { key, time: same ? known.time : performance.now() };
  redraw();
}

// A chart with many groups has only the bands of the chosen and the pinned groups, and of the one under the pointer.
function bandShown(name) {
  const group = groups.find((one) => one.name === name);
  if (!group?.shown) return false;
  const together = groups.filter(({ shown, experiment }) => shown && (!view.facets || experiment === group.experiment));
  return together.length <= most || view.pin.has(name) || lit === name || group.runs.some(({ path }) => path === view.run);
}

// The lines of a chart.
function linesOf(metric, facet) {
  const { groups: found = [], runs = {} } = curves[metric] ?? {};
  const lines = [];
  const line = (key, label, points, more) => {
    const soft = smoothed(points, view.smooth);
    lines.push({ key, label, points: soft, raw: view.smooth ? points : null, ...more });
  };
  const shown = groups.filter((group) => group.shown && (!facet || group.experiment === facet));
  for (const group of shown) {
    const { points = [], until = null } = found.find(({ name }) => name === group.name) ?? {};
    const band = bandShown(group.name) ? bands[metric]?.[group.name] : null;
    const soft = band && view.smooth ? smoothedBand(band) : band;
    if (points.length) line(group.name, group.label + (until ? ` (${until})` : ""), points, { ink: group.ink, dash: group.dash, band: soft });
  }
  for (const path of lone()) {
    const group = groups.find(({ runs }) => runs.some((run) => run.path === path));
    if (!group || (facet && group.experiment !== facet) || !runs[path]?.length) continue;
    line(path, runLabel({ path }), runs[path], { ink: view.colour.get(path) ?? group.ink, dash: "", thin: path !== view.run && view.along !== "clock", raw: null });
  }
  // The means are above their runs, and the chosen run is above all.
  const layer = ({ key, thin }) => (thin ? 0 : key === view.run ? 2 : 1);
  return lines.sort((a, b) => layer(a) - layer(b));
}

function smoothedBand(band) {
  const [low, high] = [1, 2].map((side) => smoothed(band.map((one) => [one[0], one[side]]), view.smooth));
  return band.map(([x], i) => [x, low[i][1], high[i][1]]);
}

// The charts that belong there; those that are there already stay.
function layout() {
  const [rows, metrics] = [facets(), charted()];
  const before = JSON.stringify(panels.map(({ metric, facet }) => [metric, facet]));
  const now = rows.flatMap((facet) => metrics.map((metric) => [metric, facet]));
  if (before === JSON.stringify(now)) return;
  panels = now.map(([metric, facet]) => panels.find((one) => one.metric === metric && one.facet === facet) ?? panel(metric, facet));
  at("charts").replaceChildren(
    ...rows.flatMap((facet) => {
      const row = make("div", { class: "row" }, ...panels.filter((one) => one.facet === facet).map(({ figure }) => figure));
      return facet ? [make("h2", {}, facet), row] : [row];
    }),
  );
}

function redraw() {
  layout();
  for (const one of panels) {
    one.lines = linesOf(one.metric, one.facet);
    one.scale = paint(one.svg, one.lines, view);
  }
  at("whole").disabled = !view.zoom;
  light(lit);
  showCursor();
  legend();
  if (!performance.getEntriesByName("charts").length) performance.mark("charts");
}

// Lines under the pointer, of the chosen run and of its group stand out.
function light(key) {
  const before = lit;
  lit = key;
  const marked = new Set([key, view.run].filter(Boolean));
  for (const { svg } of panels) {
    svg.classList.toggle("marked", key !== null);
    for (const line of svg.querySelectorAll("path")) line.classList.toggle("lit", marked.has(line.dataset.key));
  }
  for (const item of at("legend").querySelectorAll("li")) item.classList.toggle("lit", marked.has(item.dataset.key));
  // The band of a group among many comes when the pointer stays.
  clearTimeout(light.timer);
  if (key && key !== before && groups.filter(({ shown }) => shown).length > most) light.timer = setTimeout(() => loadBands(asked(), false).catch(failed), 300);
}

// The values of a chart's lines at a position, the largest first.
function valuesAt({ lines }, x) {
  const value = ({ points }) => points[nearest(points, x)]?.[1] ?? null;
  return lines.map((line) => ({ ...line, value: value(line) })).filter((line) => line.value !== null).sort((a, b) => b.value - a.value);
}

const rows = 14; // of a tip

function showCursor(over = null) {
  for (const one of panels) {
    const { svg, scale, tip } = one;
    const inside = scale && cursor !== null && cursor >= scale.x0 && cursor <= scale.x1;
    const line = svg.querySelector(".cursor");
    const x = inside ? scale.x(cursor) : -9;
    for (const end of ["x1", "x2"]) line?.setAttribute(end, x);
    tip.hidden = !(inside && one === over);
    if (tip.hidden) continue;
    const values = valuesAt(one, cursor);
    const here = values.findIndex(({ key }) => key === lit);
    // The rows around the line that stands out.
    const first = Math.max(0, Math.min(here - (rows >> 1), values.length - rows));
    const items = values.slice(first, first + rows).map(({ key, label, ink, dash, value }) => {
      return make("li", { class: key === lit ? "lit" : "" }, sample(ink, dash), make("span", {}, label), make("b", {}, count(value)));
    });
    if (values.length > items.length) items.push(make("li", {}, `and ${values.length - items.length} more`));
    tip.replaceChildren(make("p", {}, position(view.along, cursor)), make("ul", {}, ...items));
    // On the side with more room in the window.
    const { left, width } = svg.getBoundingClientRect();
    const [before, after] = [left + x, document.documentElement.clientWidth - left - x];
    tip.style.maxWidth = `${Math.min(400, Math.max(before, after) - 24)}px`;
    tip.style.left = before > after ? "auto" : `${x + 14}px`;
    tip.style.right = before > after ? `${width - x + 14}px` : "auto";
  }
}

// A piece of a line, for a legend.
function sample(ink, dash) {
  const style = `stroke: ${ink}; stroke-dasharray: ${dash || "none"}`;
  return make("svg", { width: 26, height: 12, "aria-hidden": "true" }, make("line", { x1: 0, x2: 26, y1: 6, y2: 6, "stroke-width": 3, style }));
}

function panel(metric, facet) {
  const button = (text, label, act) => {
    const made = make("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", act);
    return made;
  };
  const title = facet ? `${metric}, ${facet}` : metric;
  const name = title.replace(/[^\w-]+/g, "_");
  const svg = make("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": `${title}; the arrow keys move a cursor` });
  const tip = make("div", { class: "tip", hidden: "" });
  const one = { metric, facet, svg, tip, lines: [], scale: null };
  const head = make("figcaption", {}, make("span", {}, metric));
  head.append(button("SVG", `Save ${title} as SVG`, () => download(`${name}.svg`, "image/svg+xml", asSvg(svg, `${title}, along ${at("along").selectedOptions[0].textContent}`, one.lines))));
  head.append(button("CSV", `Save ${title} as CSV`, () => download(`${name}.csv`, "text/csv", asCsv(one.lines, view.along))));
  head.append(button("×", `Remove the charts of ${metric}`, () => chart(metric, false)));
  one.figure = make("figure", { "data-metric": metric }, head, svg, tip);
  listen(one);
  return one;
}

// Reacts to the pointer and the keyboard in a chart.
function listen(one) {
  const { svg } = one;
  let from = null;
  const place = (event) => event.clientX - svg.getBoundingClientRect().left;
  const leave = (event) => {
    // The values at a finger stay when it is lifted.
    if (event.pointerType === "touch") return;
    cursor = null;
    at("reading").textContent = "";
    light(null);
    showCursor();
  };
  svg.addEventListener("pointerdown", (event) => {
    from = place(event);
    svg.setPointerCapture(event.pointerId);
    point(event);
  });
  svg.addEventListener("pointermove", point);
  function point(event) {
    if (!one.scale) return;
    const here = place(event);
    cursor = one.scale.back(here);
    const height = event.clientY - svg.getBoundingClientRect().top;
    const off = ({ value }) => Math.abs(one.scale.y(value) - height);
    const near = valuesAt(one, cursor).reduce((best, line) => (!best || off(line) < off(best) ? line : best), null);
    const key = near && off(near) < 40 ? near.key : null;
    if (key !== lit) light(key);
    showCursor(one);
    svg.querySelector(".drag")?.remove();
    if (from !== null) {
      const [left, right] = [Math.min(from, here), Math.max(from, here)];
      svg.append(make("rect", { class: "drag", x: left, y: frame.top, width: right - left, height: one.scale.h }));
    }
  }
  svg.addEventListener("pointerup", (event) => {
    const to = place(event);
    const zooms = from !== null && one.scale && Math.abs(to - from) > 8;
    svg.querySelector(".drag")?.remove();
    if (zooms) zoom([one.scale.back(Math.min(from, to)), one.scale.back(Math.max(from, to))]);
    from = null;
  });
  svg.addEventListener("pointercancel", () => {
    from = null;
    svg.querySelector(".drag")?.remove();
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("dblclick", () => zoom(null));
  svg.addEventListener("keydown", (event) => {
    if (!one.scale || event.ctrlKey || event.metaKey || event.altKey) return;
    const { x0, x1 } = one.scale;
    const here = Math.min(Math.max(cursor ?? x0, x0), x1);
    const step = ((x1 - x0) * (event.shiftKey ? 10 : 1)) / 100;
    const sorted = valuesAt(one, here);
    const other = (by) => sorted[(sorted.findIndex(({ key }) => key === lit) + by + sorted.length) % sorted.length]?.key ?? null;
    const half = (x1 - x0) / 4;
    const act = {
      ArrowLeft: () => (cursor = Math.max(here - step, x0)),
      ArrowRight: () => (cursor = Math.min(here + step, x1)),
      Home: () => (cursor = x0),
      End: () => (cursor = x1),
      ArrowUp: () => light(lit ? other(-1) : other(0)),
      ArrowDown: () => light(other(1)),
      "+": () => zoom([here - half, here + half]),
      "-": () => zoom(null),
      Escape: () => (cursor = null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    if (!event.key.startsWith("Arrow") && event.key !== "Home" && event.key !== "End") return showCursor();
    cursor ??= here;
    showCursor(one);
    const said = valuesAt(one, cursor).slice(0, 5).map(({ label, value }) => `${label} ${count(value)}`);
    at("reading").textContent = `${one.metric} at ${position(view.along, cursor)}: ${said.join("; ")}`;
  });
}

// All charts show the same part. More points of the part come after it.
function zoom(part) {
  if (!part && !view.zoom) return;
  view.zoom = part;
  remember();
  redraw();
  load().catch(failed);
}

// Adds or removes the charts of a metric.
function chart(metric, add) {
  const others = charted().filter((name) => name !== metric);
  view.metrics = add ? [...others, metric] : others;
  changed();
}
