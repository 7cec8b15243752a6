// The grid: a row per model, N and method, a button per cell.

const TABLE = document.getElementById("grid");
const TIP = document.getElementById("tip");

function runName(row, seed) {
  return `${row.model}/${row.method}/N${row.N}/seed${seed}`;
}

// What a cell of the grid opens: of a benchmark the first seed, the macro average of all seeds.
function addressOf(row, name, seed = row.seeds[0]) {
  if (name === MACRO) return `${row.model}/${row.method}/N${row.N}/${MACRO}`;
  return `${runName(row, seed)}/${name}`;
}

function nameOf(name) {
  return name === MACRO ? "Macro average" : data.benchmarks[name].label;
}

// A column that says the same everywhere is left out.
function oneModel() {
  return Object.keys(data.models).length === 1;
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
  const model = { key: "model", label: "Model", value: (row) => data.models[row.model] };
  return [
    { key: "method", label: "Method", value: (row) => row.label },
    ...(oneModel() ? [] : [model]),
    { key: "N", label: "N", number: true, value: (row) => row.N },
    ...names.map((name) => ({
      key: name,
      label: nameOf(name),
      number: true,
      estimate: true,
      value: (row) => (row.estimates[name] ? row.estimates[name].value : null),
    })),
    { key: "seed_sd", label: "Seed sd", number: true, value: (row) => (row.seed_sd ? row.seed_sd.value : null) },
    { key: "seeds", label: "Seeds", number: true, value: (row) => row.complete },
  ];
}

function shownRows() {
  const model = chosen("model", Object.keys(data.models), null);
  const n = chosen("n", data.rows.map((row) => String(row.N)), null);
  return data.rows.filter((row) => (!model || row.model === model) && (!n || String(row.N) === n));
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
    const line = make("tr", { class: first ? "first" : null }, ...all.map((c) => entry(row, c)));
    oneStop(line.querySelector("[data-cell]"));
    body.append(line);
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
    return make("td", { class: "number" }, cellButton(row, column.key));
  }
  if (column.key === "method") return make("th", { scope: "row" }, row.label);
  if (column.key === "N") return make("td", { class: "number" }, row.N ? String(row.N) : "");
  if (column.key === "seed_sd") {
    return make("td", { class: "number" }, row.seed_sd ? row.seed_sd.text : "");
  }
  if (column.key === "seeds") {
    const [done, all] = [row.complete, row.seeds.length];
    return make("td", { class: "number" }, done === all ? String(all) : `${done} of ${all}`);
  }
  return make("td", {}, column.value(row));
}

function estimate(found) {
  if (!found) return [make("span", { class: "missing" }, MISSING)];
  return [
    make("span", { class: { 1: "best", 2: "second" }[found.rank] }, found.text),
    found.partial ? "†" : "",
    " ",
    make("span", { class: "error" }, `± ${found.error}`),
  ];
}

function cellButton(row, name) {
  const address = addressOf(row, name);
  const all = name === MACRO ? [address] : row.seeds.map((seed) => addressOf(row, name, seed));
  const button = make(
    "button",
    {
      type: "button",
      "data-cell": address,
      "aria-pressed": String(all.includes(state.get("cell"))),
      "aria-describedby": "tip",
      onmouseenter: () => showTip(button, row, name),
      onmouseleave: hideTip,
      onfocus: () => {
        oneStop(button);
        showTip(button, row, name);
      },
      onblur: hideTip,
      onclick: () => openCell(address),
    },
    ...estimate(row.estimates[name]),
  );
  return button;
}

// The Tab key stops once in a row, at the button that had the focus last; arrows go on from there.
function oneStop(button) {
  buttonsOf(button.closest("tr")).forEach((other) => {
    other.tabIndex = other === button ? 0 : -1;
  });
}

function buttonsOf(line) {
  return line ? [...line.querySelectorAll("[data-cell]")] : [];
}

function moveFocus(event) {
  const button = event.target.closest("[data-cell]");
  if (!button) return;
  const line = button.closest("tr");
  const buttons = buttonsOf(line);
  const place = buttons.indexOf(button);
  const next = {
    ArrowLeft: buttons[place - 1],
    ArrowRight: buttons[place + 1],
    ArrowUp: buttonsOf(line.previousElementSibling)[place],
    ArrowDown: buttonsOf(line.nextElementSibling)[place],
    Home: buttons[0],
    End: buttons.at(-1),
  }[event.key];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

TABLE.addEventListener("keydown", moveFocus);

function showTip(button, row, name) {
  const found = row.estimates[name];
  const there = row.seeds.filter((seed) => isThere(row, name, seed)).length;
  const missing = row.seeds.length - there;
  const said = name === MACRO ? bySeed(row) : row.counts[name];
  TIP.replaceChildren(
    make("strong", {}, `${row.label}, ${nameOf(name)}`),
    there ? list([["seeds", `${there} of ${row.seeds.length}`], ...said]) : "",
    missing ? make("div", { class: "missing" }, `missing: ${missing}`) : "",
    found && found.partial ? make("div", {}, `† ${found.partial}, not ranked`) : "",
  );
  TIP.hidden = false;
  const at = button.getBoundingClientRect();
  const left = Math.min(at.left, document.documentElement.clientWidth - TIP.offsetWidth - 8);
  TIP.style.left = `${window.scrollX + Math.max(4, left)}px`;
  TIP.style.top = `${window.scrollY + at.bottom + 6}px`;
}

function isThere(row, name, seed) {
  if (name === MACRO) return seed in row.macro_by_seed;
  return Boolean(data.cells[addressOf(row, name, seed)].counts);
}

function bySeed(row) {
  return row.seeds.map((seed) => {
    const value = row.macro_by_seed[seed];
    return [`seed ${seed}`, value === undefined ? MISSING : `${value}%`];
  });
}

function hideTip() {
  TIP.hidden = true;
}

// First the tip, then the cell.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (!TIP.hidden) hideTip();
  else if (!CELL.hidden) closeCell();
});
