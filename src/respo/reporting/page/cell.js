// One cell: its counts, what it was made from, how to make it, and some of its responses.

const CELL = document.getElementById("cell");

function openCell(address) {
  setState({ cell: address });
  showGrid();
  showCell();
  CELL.scrollIntoView({ block: "nearest" });
  document.getElementById("cell-title").focus();
}

function closeCell() {
  const [row, name] = whatIs(state.get("cell"));
  setState({ cell: "" });
  showGrid();
  showCell();
  const button = row && TABLE.querySelector(`[data-cell="${CSS.escape(addressOf(row, name))}"]`);
  (button || TABLE).focus();
}

// Row and column of an address; nothing of one that the study does not have.
function whatIs(address) {
  for (const row of data.rows) {
    if (address === addressOf(row, MACRO)) return [row, MACRO];
  }
  if (!Object.hasOwn(data.cells, address)) return [];
  const row = data.rows.find((r) => address.startsWith(`${r.model}/${r.method}/N${r.N}/`));
  return [row, address.split("/").at(-1)];
}

function showCell() {
  const address = state.get("cell");
  CELL.hidden = !address;
  if (!address) return;
  const [row, name] = whatIs(address);
  if (!row) {
    CELL.replaceChildren(cellHead(`This study has no cell ${address}.`));
    return;
  }
  const title = [row.label, row.N > 1 ? `N = ${row.N}` : null, data.models[row.model], nameOf(name)];
  CELL.replaceChildren(
    cellHead(title.filter(Boolean).join(", ")),
    ...(name === MACRO ? macroParts(row) : cellParts(row, name, address)),
  );
}

function cellHead(title) {
  return make(
    "div",
    { class: "head" },
    make("h2", { id: "cell-title", tabindex: "-1" }, title),
    make("button", { type: "button", class: "close", onclick: closeCell }, "Close"),
  );
}

// The grid's number, which an address of one seed does not show.
function pooled(row, name) {
  const found = row.estimates[name];
  if (!found) return MISSING;
  return `${found.text} ± ${found.error}%${found.partial ? `, † ${found.partial}` : ""}`;
}

function macroParts(row) {
  const about = make("p", { class: "quiet" }, "Mean of the benchmarks; the grid shows the mean over seeds.");
  return [about, list([["in the grid", pooled(row, MACRO)], ...bySeed(row)])];
}

function cellParts(row, name, address) {
  const cell = data.cells[address];
  const about = data.benchmarks[name];
  const parts = row.seeds.length > 1 ? [seedNote(row, name), seedButtons(row, name, address)] : [];
  if (!cell.counts) {
    parts.push(make("p", { class: "missing" }, "This cell is missing. The target that makes it:"));
    return [...parts, target(cell.target)];
  }
  const pairs = [
    ["pass@1", `${cell.value}%, update ${cell.update}`],
    ["problems", `${cell.problems} with ${about.samples} samples each (${about.verifier})`],
    ...cell.counts,
  ];
  return [...parts, list(pairs), target(cell.target), responses(cell, name), provenance(cell)];
}

function seedNote(row, name) {
  const text = `The grid shows the mean over seeds (${pooled(row, name)}); this is one seed:`;
  return make("p", { class: "quiet" }, text);
}

function seedButtons(row, name, address) {
  const box = make("div", { class: "controls", role: "group", "aria-label": "Seed" });
  for (const seed of row.seeds) {
    const other = addressOf(row, name, seed);
    const missing = isThere(row, name, seed) ? "" : " (missing)";
    const pressed = String(other === address);
    const attributes = { type: "button", "aria-pressed": pressed, onclick: () => openCell(other) };
    box.append(make("button", attributes, `seed ${seed}${missing}`));
  }
  return box;
}

function target(path) {
  const { before, after, where } = data.command;
  const text = before + path + after;
  const said = make("span", { role: "status" });
  const copy = async () => {
    said.textContent = (await copied(text)) ? "copied" : "select the text and copy it by hand";
  };
  const button = make("button", { type: "button", onclick: copy }, "Copy");
  const place = where ? make("span", {}, "in ", make("code", {}, where)) : null;
  return make("p", { class: "target" }, make("code", {}, text), button, said, place);
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages that are opened as files may have no clipboard.
    const area = make("textarea", {});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function provenance(cell) {
  const pairs = flat(cell.made_from).map(([path, value]) => [path, make("code", {}, value)]);
  return make("details", {}, make("summary", {}, "Made from"), list(pairs));
}

function flat(value, path = []) {
  if (value === null || typeof value !== "object") return [[path.join(" › "), String(value)]];
  return Object.entries(value).flatMap(([key, inner]) =>
    flat(inner, [...path, key.replaceAll("_", " ")]),
  );
}

function responses(cell, benchmark) {
  const heading = make("h3", {}, "Responses");
  if (!cell.samples.length) {
    return make("div", {}, heading, make("p", { class: "quiet" }, "None are kept beside this cell."));
  }
  const boxes = cell.samples.map((s) => response(s, data.problems[benchmark][s.problem]));
  const rule = make("p", { class: "quiet" }, data.notes.samples);
  return make("div", {}, heading, make("div", { class: "samples" }, ...boxes), rule);
}

function response(sample, problem) {
  const verdict = sample.correct ? "✓ right" : "✗ wrong";
  const details = [
    sample.status === "ok" ? null : sample.status,
    sample.response_tokens === null ? null : `${sample.response_tokens} tokens`,
    sample.truncated ? "cut at the limit" : null,
  ];
  return make(
    "div",
    { class: sample.correct ? "sample right" : "sample" },
    make(
      "h4",
      {},
      make("span", { class: "verdict" }, verdict),
      ` ${sample.problem}, sample ${sample.sample} (${details.filter(Boolean).join(", ")})`,
    ),
    make(
      "p",
      {},
      "gold ",
      make("code", {}, problem.answer),
      ", extracted ",
      sample.extracted === null ? "nothing" : make("code", {}, sample.extracted),
    ),
    make("div", { class: "quiet" }, "prompt"),
    make("pre", { tabindex: "0" }, problem.prompt),
    make("div", { class: "quiet" }, "response"),
    make("pre", { tabindex: "0" }, sample.response),
  );
}
