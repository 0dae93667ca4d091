"use strict";
// The profile of the chosen run, if `podracer profile --into` has written one: time by line, and memory by buffer.

const rowsShown = 20; // of a table

function grid(heads, rows) {
  const row = (kind, cells) => make("tr", {}, ...cells.map((cell) => make(kind, {}, String(cell))));
  return make("table", {}, make("thead", {}, row("th", heads)), make("tbody", {}, ...rows.map((cells) => row("td", cells))));
}

const percent = (share) => `${(100 * share).toFixed(1)}%`;
const sourceLine = ({ file, line, argument }) => (file ? `${file}:${line}` : argument ? "argument" : "-");

function drawProfile(profile, memory) {
  const parts = [];
  if (profile) {
    const { samples, seconds, cpu_seconds, iterations, env_steps, lines = [] } = profile;
    const speed = `${count(iterations)} iterations, ${count(env_steps / seconds)} environment steps/s`;
    parts.push(make("p", {}, `Time: ${samples} samples in ${count(seconds)} s on ${(cpu_seconds / seconds).toFixed(2)} cores, ${speed}`));
    const rows = lines.slice(0, rowsShown).map((one) => [percent(one.share), count(one.kernels), count(one.operations), count(one.bytes), sourceLine(one)]);
    parts.push(grid(["time", "kernels", "operations", "bytes", "line"], rows));
    if (lines.length > rows.length) parts.push(make("p", {}, `and ${lines.length - rows.length} other lines`));
  }
  for (const { program, devices, peak_bytes, argument_bytes, temporary_bytes, buffers = [] } of memory?.programs ?? []) {
    const sizes = `${count(argument_bytes)} bytes of arguments, ${count(temporary_bytes)} temporary`;
    parts.push(make("p", {}, `Memory of ${program}: ${count(peak_bytes)} bytes at the peak on each of ${devices} devices; ${sizes}`));
    const rows = buffers.slice(0, rowsShown).map((one) => [count(one.bytes), percent(one.bytes / peak_bytes), one.type, sourceLine(one)]);
    parts.push(grid(["bytes", "share", "type", "line"], rows));
  }
  at("profile").hidden = !parts.length;
  at("profile").querySelector("div").replaceChildren(...parts);
}
