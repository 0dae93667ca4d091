"use strict";
// Helpers of all scripts: elements, numbers, and requests to the server.

const at = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token");

// The answer to a request. A parameter with a list as its value is repeated.
async function ask(path, parameters = {}, options = {}) {
  const answer = await fetch(address(path, parameters), options);
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

function address(path, parameters) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) for (const one of [value].flat()) query.append(key, one);
  if (token) query.append("token", token);
  return `${path}?${query}`;
}

const drawn = new Set(["svg", "path", "line", "text", "rect", "g", "clipPath", "title"]);

function make(name, attributes = {}, ...children) {
  const element = drawn.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
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
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * (1 - 1e-9));
  const all = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) all.push(i * step);
  return all;
}

// Powers of ten between two ends; the usual ticks if there are fewer than two.
function powers(low, high, most) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  if (last - first < 1) return ticks(low, high, most).filter((value) => value > 0);
  const every = Math.ceil((last - first + 1) / most);
  const all = [];
  for (let power = first; power <= last; power += every) all.push(10 ** power);
  return all;
}

// The index of the point that is nearest to a position.
function nearest(points, x) {
  let [low, high] = [0, points.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < x) low = middle;
    else high = middle;
  }
  return points.length && Math.abs(points[low][0] - x) <= Math.abs(points[high][0] - x) ? low : high;
}

// An exponential moving average without the bias of its first values.
function smoothed(points, weight) {
  if (!weight) return points;
  let [mean, sum] = [0, 0];
  return points.map(([x, y]) => {
    if (y === null) return [x, y];
    mean = weight * mean + (1 - weight) * y;
    sum = weight * sum + (1 - weight);
    return [x, mean / sum];
  });
}

// A text as a regular expression; as itself if it is not one.
function expression(text) {
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
}

// Offers a text as a file.
function download(name, kind, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
