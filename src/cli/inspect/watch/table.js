"use strict";
// The table of all runs that match the filter.

let sorted = { key: null, down: true };
let shown = ""; // what the table was made of

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
  const matching = new Set(groups.flatMap((group) => group.matching));
  let rows = view.filter ? state.runs.filter((run) => matching.has(run)) : state.runs;
  const by = columns.find(([name]) => name === sorted.key);
  if (by) {
    const value = (run) => by[1](run) ?? -Infinity;
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    rows = [...rows].sort((a, b) => order(value(a), value(b)) * (sorted.down ? -1 : 1));
  }
  const now = JSON.stringify([rows, sorted, view.run]);
  if (now === shown) return;
  shown = now;
  at("heads").replaceChildren(
    ...columns.map(([name]) => {
      const mine = sorted.key === name;
      const button = make("button", { type: "button" }, name + (mine ? (sorted.down ? " ↓" : " ↑") : ""));
      button.addEventListener("click", () => {
        sorted = { key: name, down: mine ? !sorted.down : true };
        table();
      });
      return make("th", { scope: "col", "aria-sort": mine ? (sorted.down ? "descending" : "ascending") : "none" }, button);
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
      const row = make("tr", { tabindex: 0, "aria-selected": run.path === view.run, "data-path": run.path }, ...cells);
      row.addEventListener("click", () => visit(run.path));
      row.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        visit(run.path);
      });
      return row;
    }),
  );
  if (focused) [...at("runs").children].find((row) => row.dataset.path === focused)?.focus();
}
