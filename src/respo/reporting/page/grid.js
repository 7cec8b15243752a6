// The grid: a row per model, N and method, a button per cell.

const TABLE = document.getElementById("grid");
const TIP = document.getElementById("tip");

function runName(row, seed) {
  return `${row.model}/${row.method}/N${row.N}/seed${seed}`;
}

function cellsOf(row, benchmark) {
  return row.seeds.map((seed) => ({ seed, ...data.cells[`${runName(row, seed)}/${benchmark}`] }));
}

function showGridControls() {
  const box = document.getElementById("grid-controls");
  const models = unique(data.rows.map((row) => row.model));
  const staleness = unique(data.rows.map((row) => row.N));
  box.replaceChildren(
    choice("Model", "model", [["", "all"], ...models.map((m) => [m, data.models[m]])], "", showGrid),
    choice("N", "n", [["", "all"], ...staleness.map((n) => [n, nLabel(n)])], "", showGrid),
    choice(
      "Benchmark",
      "benchmark",
      [["", "all"], ...Object.entries(data.benchmarks).map(([name, b]) => [name, b.label])],
      "",
      showGrid,
    ),
  );
}

function nLabel(n) {
  return n === 0 ? "none (as it comes)" : n === 1 ? "1 (on-policy)" : String(n);
}

function columns() {
  const only = chosen("benchmark", Object.keys(data.benchmarks), null);
  const names = only ? [only] : [...Object.keys(data.benchmarks), MACRO];
  return [
    { key: "method", label: "Method", value: (row) => row.label },
    { key: "model", label: "Model", value: (row) => data.models[row.model] },
    { key: "N", label: "N", number: true, value: (row) => row.N },
    ...names.map((name) => ({
      key: name,
      label: name === MACRO ? "Macro average" : data.benchmarks[name].label,
      number: true,
      estimate: true,
      value: (row) => (row.estimates[name] ? row.estimates[name][0] : null),
    })),
    { key: "seed_sd", label: "Seed sd", number: true, value: (row) => row.seed_sd },
    { key: "seeds", label: "Seeds", number: true, value: (row) => row.complete },
  ];
}

function shownRows() {
  const n = state.get("n");
  return data.rows.filter(
    (row) =>
      (!state.get("model") || row.model === state.get("model")) && (!n || String(row.N) === n),
  );
}

// "accuracy" sorts downwards, "-accuracy" upwards, nothing leaves the order of the study.
function sorted(rows, all) {
  const [, sign, key] = /^(-?)(.*)$/.exec(state.get("sort") || "");
  const column = all.find((c) => c.key === key);
  if (!column) return rows;
  const compare = (a, b) => (typeof a === "string" ? -a.localeCompare(b) : b - a);
  return [...rows].sort((one, other) => {
    const [a, b] = [column.value(one), column.value(other)];
    // What is missing comes last, whatever the direction.
    if (a === null || b === null) return (a === null) - (b === null);
    return (sign ? -1 : 1) * compare(a, b);
  });
}

function showGrid() {
  hideTip();
  const all = columns();
  const rows = sorted(shownRows(), all);
  const current = state.get("sort") || "";
  const body = make("tbody");
  rows.forEach((row, index) => {
    const before = rows[index - 1];
    const first = !current && before && (before.model !== row.model || before.N !== row.N);
    body.append(make("tr", { class: first ? "first" : null }, ...all.map((c) => entry(row, c))));
  });
  const head = all.map((column) => {
    const direction =
      current === column.key ? "descending" : current === `-${column.key}` ? "ascending" : "none";
    const next = { none: column.key, descending: `-${column.key}`, ascending: "" }[direction];
    const mark = { none: "", descending: " ▼", ascending: " ▲" }[direction];
    const sort = () => {
      setState({ sort: next });
      showGrid();
      TABLE.querySelector(`[data-key="${column.key}"]`).focus();
    };
    return make(
      "th",
      { scope: "col", class: column.number ? "number" : null, "aria-sort": direction },
      make("button", { type: "button", "data-key": column.key, onclick: sort }, column.label + mark),
    );
  });
  TABLE.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), body));
}

function entry(row, column) {
  if (column.estimate) {
    const content = column.key === MACRO ? macro(row) : cellButton(row, column.key);
    return make("td", { class: "number" }, content);
  }
  if (column.key === "method") return make("th", { scope: "row" }, row.label);
  if (column.key === "N") return make("td", { class: "number" }, row.N ? String(row.N) : "");
  if (column.key === "seed_sd") {
    return make("td", { class: "number" }, row.seed_sd === null ? "" : percent(row.seed_sd));
  }
  if (column.key === "seeds") {
    const [done, all] = [row.complete, row.seeds.length];
    return make("td", { class: "number" }, done === all ? String(all) : `${done} of ${all}`);
  }
  return make("td", {}, column.value(row));
}

function estimate(found) {
  if (!found) return [make("span", { class: "missing" }, MISSING)];
  const [value, error, rank] = found;
  return [
    make("span", { class: { 1: "best", 2: "second" }[rank] }, percent(value)),
    " ",
    make("span", { class: "error" }, `± ${percent(error)}`),
  ];
}

function macro(row) {
  const bySeed = Object.entries(row.macro_by_seed);
  const title = bySeed.map(([seed, value]) => `seed ${seed}: ${percent(value)}`).join(", ");
  return make("span", { title: title || null }, ...estimate(row.estimates[MACRO]));
}

function cellButton(row, benchmark) {
  const address = `${runName(row, row.seeds[0])}/${benchmark}`;
  const open = row.seeds.some((s) => state.get("cell") === `${runName(row, s)}/${benchmark}`);
  const button = make(
    "button",
    {
      type: "button",
      "data-cell": address,
      "aria-pressed": String(open),
      "aria-describedby": "tip",
      onmouseenter: () => showTip(button, row, benchmark),
      onmouseleave: hideTip,
      onfocus: () => showTip(button, row, benchmark),
      onblur: hideTip,
      onclick: () => openCell(address),
    },
    ...estimate(row.estimates[benchmark]),
  );
  return button;
}

const COUNTED = [
  ["responses", "responses"],
  ["unparsed", "no readable answer"],
  ["timed_out", "out of time when checked"],
  ["failed", "failed when checked"],
  ["truncated", "cut at the limit"],
];

// Counts of several seeds together.
function counts(cells) {
  const there = cells.filter((cell) => cell.responses !== undefined);
  const sum = (key) => there.reduce((total, cell) => total + cell[key], 0);
  const responses = sum("responses");
  const tokens = there.reduce((t, cell) => t + cell.mean_response_tokens * cell.responses, 0);
  const votes = there.map((cell) => cell.majority).filter((vote) => vote !== null);
  const vote = votes.reduce((total, value) => total + value, 0) / votes.length;
  return [
    ...COUNTED.map(([key, label]) => [label, String(sum(key))]),
    ["mean length", `${(tokens / responses).toFixed(1)} tokens`],
    ["majority vote", votes.length ? `${percent(vote)}% right` : MISSING],
  ];
}

function showTip(button, row, benchmark) {
  const cells = cellsOf(row, benchmark);
  const missing = cells.filter((cell) => cell.responses === undefined);
  const there = cells.length - missing.length;
  TIP.replaceChildren(
    make("strong", {}, `${row.label}, ${data.benchmarks[benchmark].label}`),
    there ? list([["seeds", `${there} of ${cells.length}`], ...counts(cells)]) : "",
    missing.length ? make("div", { class: "missing" }, `missing: ${missing.length}`) : "",
  );
  TIP.hidden = false;
  const at = button.getBoundingClientRect();
  const left = Math.min(at.left, document.documentElement.clientWidth - TIP.offsetWidth - 8);
  TIP.style.left = `${window.scrollX + Math.max(4, left)}px`;
  TIP.style.top = `${window.scrollY + at.bottom + 6}px`;
}

function hideTip() {
  TIP.hidden = true;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});
