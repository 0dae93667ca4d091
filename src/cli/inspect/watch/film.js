"use strict";
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
    const wanted = { run: view.run, seed: at("seed").value, values: at("values").checked };
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
