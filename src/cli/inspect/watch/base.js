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

const day = 86400;
// Distances of ticks in seconds: up to 30 s, up to 30 min, up to 12 h, and days.
const distances = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, day, 2 * day, 7 * day, 30 * day, 365 * day];

// Round local times between two times in seconds since 1970, and the distance of two of them in seconds.
function times(low, high, most) {
  const least = (high - low) / most;
  const step = distances.find((one) => one >= least) ?? Math.ceil(least / day) * day;
  const zone = 60 * new Date(1000 * low).getTimezoneOffset();
  const all = [];
  for (let i = Math.ceil((low - zone) / step); i * step + zone <= high; i++) all.push(i * step + zone);
  return [all, step];
}

// A time in seconds since 1970 as local text, to the precision of a distance in seconds. Midnight is a date, unless seconds are shown.
function timeOfDay(time, step) {
  const at = new Date(1000 * time);
  const two = (number) => String(number).padStart(2, "0");
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (step < 60) return `${clock}:${two(at.getSeconds())}`;
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return step >= day || (clock === "00:00" && at.getSeconds() === 0) ? date : clock;
}

// A position on the horizontal axis in words.
const position = (along, x) => (along === "clock" ? `${timeOfDay(x, day)} ${timeOfDay(x, 1)}` : `${along} ${count(x)}`);

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
