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
  const address = state.get("cell");
  setState({ cell: "" });
  showGrid();
  showCell();
  const button = TABLE.querySelector(`[data-cell="${CSS.escape(address)}"]`);
  (button || TABLE).focus();
}

function showCell() {
  const address = state.get("cell");
  const cell = data.cells[address];
  CELL.hidden = !address;
  if (!address) return;
  if (!cell) {
    CELL.replaceChildren(make("p", { id: "cell-title" }, `This study has no cell ${address}.`));
    return;
  }
  const [model, method, n, , benchmark] = address.split("/");
  const row = data.rows.find((r) => address.startsWith(`${r.model}/${r.method}/N${r.N}/`));
  const about = data.benchmarks[benchmark];
  const title = [row.label, row.N > 1 ? `N = ${row.N}` : null, data.models[model], about.label];
  const parts = [
    make(
      "div",
      { class: "head" },
      make("h2", { id: "cell-title", tabindex: "-1" }, title.filter(Boolean).join(", ")),
      make("button", { type: "button", class: "close", onclick: closeCell }, "Close"),
    ),
    row.seeds.length > 1 ? seedButtons(row, benchmark, address) : null,
    cell.responses === undefined
      ? make("p", { class: "missing" }, "This cell is missing. The target that makes it:")
      : list([
          ["pass@1", `${percent(cell.value)}%, update ${cell.update}`],
          ["problems", `${cell.problems} with ${about.samples} samples each (${about.verifier})`],
          ...counts([cell]),
        ]),
    target(cell.target),
  ];
  if (cell.responses !== undefined) parts.push(responses(cell, benchmark), provenance(cell));
  CELL.replaceChildren(...parts.filter(Boolean));
}

function seedButtons(row, benchmark, address) {
  const box = make("div", { class: "controls", role: "group", "aria-label": "Seed" });
  for (const seed of row.seeds) {
    const other = `${runName(row, seed)}/${benchmark}`;
    const missing = data.cells[other].responses === undefined ? " (missing)" : "";
    const pressed = String(other === address);
    const attributes = { type: "button", "aria-pressed": pressed, onclick: () => openCell(other) };
    box.append(make("button", attributes, `seed ${seed}${missing}`));
  }
  return box;
}

function target(path) {
  const text = `snakemake ${path} --config study=${data.study}`;
  const said = make("span", { role: "status" });
  const copy = async () => {
    said.textContent = (await copied(text)) ? "copied" : "select the text and copy it by hand";
  };
  const button = make("button", { type: "button", onclick: copy }, "Copy");
  return make("p", { class: "target" }, make("code", {}, text), button, said);
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
