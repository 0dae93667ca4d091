"use strict";
// A chart: lines with bands, as SVG.

const frame = { left: 56, right: 12, top: 8, bottom: 24 };

// The ends of both axes for some lines.
function ends(lines, { zoom, log, along }) {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  const see = (x, y) => {
    if (y === null || (log && y <= 0) || (zoom && (x < zoom[0] || x > zoom[1]))) return;
    [x0, x1, y0, y1] = [Math.min(x0, x), Math.max(x1, x), Math.min(y0, y), Math.max(y1, y)];
  };
  for (const { points, band } of lines) {
    for (const [x, y] of points) see(x, y);
    for (const [x, low, high] of band ?? []) [see(x, low), see(x, high)];
  }
  if (x0 > x1) return [...(zoom ?? [0, 1]), log ? 0.1 : 0, 1];
  if (zoom) [x0, x1] = zoom;
  else if (along !== "clock") x0 = Math.min(x0, 0);
  if (x1 <= x0) x1 = x0 + 1;
  if (log) return [x0, x1, y0 / 1.1, y1 * 1.1];
  const air = (y1 - y0) * 0.05 || Math.abs(y1) * 0.01 || 1;
  return [x0, x1, y0 >= 0 && y0 < y1 - y0 ? 0 : y0 - air, y1 + air];
}

let clips = 0;

// Draws lines `{ key, points, raw, band, ink, dash, thin }`, and returns the scale.
function paint(svg, lines, options) {
  const { width, height } = svg.getBoundingClientRect();
  if (!width) return null;
  const { log, zoom, along } = options;
  const [x0, x1, y0, y1] = ends(lines, options);
  const [w, h] = [width - frame.left - frame.right, height - frame.top - frame.bottom];
  const of = log ? Math.log : (value) => value;
  const [bottom, top] = [of(y0), of(y1)];
  const x = (value) => frame.left + ((value - x0) / (x1 - x0)) * w;
  // Far outside, a line is as invisible as a little outside.
  const y = (value) => frame.top + h - Math.min(Math.max((of(value) - bottom) / (top - bottom), -1), 2) * h;
  const parts = [];
  for (const value of log ? powers(y0, y1, 5) : ticks(y0, y1, 5)) {
    parts.push(make("line", { class: "grid", x1: frame.left, x2: frame.left + w, y1: y(value), y2: y(value) }));
    parts.push(make("text", { x: frame.left - 6, y: y(value) + 4, "text-anchor": "end" }, count(value)));
  }
  const most = width < 500 ? 4 : 6;
  const [places, step] = along === "clock" ? times(x0, x1, most) : [ticks(x0, x1, most), 0];
  for (const value of places) {
    const anchor = x(value) > width - 30 ? "end" : "middle";
    parts.push(make("text", { x: Math.min(x(value), width - 2), y: height - 7, "text-anchor": anchor }, along === "clock" ? timeOfDay(value, step) : count(value)));
  }
  const clip = `inside${clips++}`;
  parts.push(make("clipPath", { id: clip }, make("rect", { x: frame.left, y: 0, width: w, height: frame.top + h })));
  const seen = ([at_, ...values]) => (!zoom || (at_ >= x0 - (x1 - x0) && at_ <= x1 + (x1 - x0))) && values.every((value) => value !== null && (!log || value > 0));
  const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
  const inside = make("g", { "clip-path": `url(#${clip})` });
  for (const { key, band, ink } of lines) {
    const shown = band?.filter(seen) ?? [];
    if (!shown.length) continue;
    const outline = shown.map(([a, , high]) => [a, high]).concat(shown.map(([a, low]) => [a, low]).reverse());
    inside.append(make("path", { class: "band", d: `${path(outline)}Z`, style: `fill: ${ink}`, "data-key": key }));
  }
  for (const { key, points, raw, ink, dash, thin } of lines) {
    const style = `stroke: ${ink}; stroke-dasharray: ${dash || "none"}`;
    if (raw) inside.append(make("path", { class: "raw", d: path(raw.filter(seen)), style, "data-key": key }));
    inside.append(make("path", { class: thin ? "curve thin" : "curve", d: path(points.filter(seen)), style, "data-key": key }));
  }
  parts.push(inside, make("line", { class: "cursor", y1: frame.top, y2: frame.top + h, x1: -9, x2: -9 }));
  svg.replaceChildren(...parts);
  const back = (pixel) => x0 + ((Math.min(Math.max(pixel, frame.left), frame.left + w) - frame.left) / w) * (x1 - x0);
  return { back, x, y, h, x0, x1, along };
}

// The SVG of a chart as a file, with the colours of the page and a legend.
function asSvg(svg, title, lines) {
  const { width, height } = svg.getBoundingClientRect();
  const copy = svg.cloneNode(true);
  const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family"];
  const [before, after] = [svg, copy].map((root) => [...root.querySelectorAll("path, line, text")]);
  before.forEach((element, i) => {
    const style = getComputedStyle(element);
    after[i].removeAttribute("style");
    for (const name of kept) after[i].setAttribute(name, style.getPropertyValue(name));
  });
  copy.querySelector(".cursor")?.remove();
  const { color, backgroundColor, fontFamily } = getComputedStyle(document.body);
  const text = (attributes, content) => make("text", { "font-family": fontFamily, "font-size": 12, fill: color, ...attributes }, content);
  const whole = make("svg", { xmlns: "http://www.w3.org/2000/svg", width, height: height + 30 + 18 * lines.length });
  whole.append(make("rect", { width: "100%", height: "100%", fill: backgroundColor }), text({ x: frame.left, y: 16 }, title));
  const moved = make("g", { transform: "translate(0 22)" }, ...copy.childNodes);
  whole.append(moved);
  lines.forEach(({ key, label, dash }, i) => {
    const line = [...svg.querySelectorAll(".curve")].find((one) => one.dataset.key === key);
    const y = height + 38 + 18 * i;
    const stroke = line ? getComputedStyle(line).stroke : color;
    whole.append(make("line", { x1: frame.left, x2: frame.left + 26, y1: y - 4, y2: y - 4, stroke, "stroke-width": 2, "stroke-dasharray": dash || "none" }));
    whole.append(text({ x: frame.left + 34, y }, label));
  });
  return new XMLSerializer().serializeToString(whole);
}

// A side of a band at a position between its points.
function between(band, x, side) {
  const i = Math.min(Math.max(band.findIndex(([end]) => end >= x), 1), band.length - 1);
  const [one, other] = [band[i - 1] ?? band[i], band[i]];
  const share = other[0] > one[0] ? Math.min(Math.max((x - one[0]) / (other[0] - one[0]), 0), 1) : 0;
  return one[side] + share * (other[side] - one[side]);
}

// The points of a chart as a table.
function asCsv(lines, along) {
  const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
  const rows = lines.flatMap(({ label, points, raw, band }) => {
    return points.map(([x, y], i) => {
      const [low, high] = [1, 2].map((side) => (band?.length ? between(band, x, side) : ""));
      return [quoted(label), x, (raw ?? points)[i][1] ?? "", raw ? y : "", low, high].join(",");
    });
  });
  return [`line,${along},value,smoothed,low,high`, ...rows].join("\n") + "\n";
}
