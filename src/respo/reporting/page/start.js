// Draw everything once, and again when the address changes.

function showAll() {
  readState();
  cursorAt = null;
  showGridControls();
  showGrid();
  showCell();
  showCurves();
}

function showHead() {
  const cells = Object.values(data.cells);
  const missing = cells.filter((cell) => !cell.counts).length;
  document.getElementById("title").textContent = data.title;
  const synthetic = document.getElementById("synthetic");
  synthetic.textContent = data.synthetic;
  synthetic.hidden = !data.synthetic;
  document.getElementById("about").textContent = [
    `Study ${data.study}: ${oneModel() ? `${Object.values(data.models)[0]}, ` : ""}`,
    `${data.curves.runs.length} runs, ${cells.length} cells`,
    missing ? `, ${missing} of them missing (${MISSING}: choose one for the target that makes it).` : ".",
    ` Made from results ${data.made_from}.`,
  ].join("");
  const notes = [
    "Held-out pass@1 in percent ± one standard error, at the last evaluated update. Point at a cell " +
      "for its counts; choose it for its responses and what it was made from. Arrow keys go from cell to cell.",
    ...data.marks,
    data.notes.error,
  ];
  const box = document.getElementById("grid-notes");
  box.replaceChildren(...notes.map((text) => make("p", {}, text)));
}

async function start() {
  data = await unpack();
  showHead();
  showAll();
  window.addEventListener("hashchange", showAll);
  document.documentElement.dataset.ready = "yes";
}

start();
