// Which curves are shown: one metric of one model, a panel per N, a line per method.

// The name of the reference among the methods, where it can be left out.
const REFERENCE = "on-policy";
const ON_POLICY = { label: "on-policy (N = 1)", color: "#B0B0B0", dash: "", width: 1.2 };
const AXES = [["linear", "linear"], ["log", "logarithmic"]];
let readers = [];
let cursorAt = null;

function smoothings() {
  return [["0", "none"], ...data.curves.shares];
}

function runsOf(model) {
  return data.curves.runs.filter((run) => run.model === model);
}

// On-policy runs are the reference in every panel; alone, they have their own.
function panelsOf(runs) {
  const all = unique(runs.map((run) => run.N));
  const stale = all.filter((n) => n > 1);
  return stale.length ? stale : all;
}

function hidden(key) {
  return (state.get(key) || "").split(",").filter(Boolean);
}

// The methods of the panels, and the reference if there is one.
function methodsOf(runs) {
  const panels = panelsOf(runs);
  const names = unique(runs.filter((run) => panels.includes(run.N)).map((run) => run.method));
  const reference = runs.some((run) => !panels.includes(run.N)) ? [[REFERENCE, ON_POLICY.label]] : [];
  return [...names.map((name) => [name, data.methods[name].label]), ...reference];
}

function settings() {
  const models = unique(data.curves.runs.map((run) => run.model));
  const model = chosen("curve-model", models, models[0]);
  const metrics = Object.keys(data.curves.metrics);
  const runs = runsOf(model);
  return {
    models,
    model,
    runs,
    metric: chosen("metric", metrics, metrics[0]),
    smoothing: chosen("smooth", smoothings().map(([value]) => value), "0.0625"),
    axis: chosen("axis", ["linear", "log"], "linear"),
    without: hidden("without"),
    staleness: panelsOf(runs).filter((n) => !hidden("without-n").includes(String(n))),
  };
}

function boxes(legend, key, options, after) {
  const without = hidden(key);
  const box = make("fieldset", {}, make("legend", {}, legend));
  for (const [value, label] of options) {
    const change = (event) => {
      const rest = without.filter((other) => other !== value);
      setState({ [key]: (event.target.checked ? rest : [...rest, value]).join(",") });
      after();
    };
    const attributes = { type: "checkbox", checked: !without.includes(value), onchange: change };
    box.append(make("label", {}, make("input", attributes), label));
  }
  return box;
}

function showCurves() {
  if (!Object.keys(data.curves.metrics).length) {
    document.getElementById("curves").hidden = !data.curves.runs.length;
    document.getElementById("curve-notes").textContent = "No run has been trained yet.";
    return;
  }
  const now = settings();
  const after = () => showCurves();
  const models = now.models.map((m) => [m, data.models[m]]);
  const metrics = Object.entries(data.curves.metrics).map(([name, m]) => [name, m.label]);
  const methods = methodsOf(now.runs);
  const staleness = panelsOf(now.runs).map((n) => [String(n), String(n)]);
  const active = document.activeElement;
  const controls = document.getElementById("curve-controls");
  const place = [...controls.querySelectorAll("select, input")].indexOf(active);
  controls.replaceChildren(
    choice("Metric", "metric", metrics, metrics[0][0], after),
    choice("Model", "curve-model", models, models[0][0], after),
    choice("Running mean", "smooth", smoothings(), "0.0625", after),
    choice("Vertical axis", "axis", AXES, "linear", after),
    boxes("N", "without-n", staleness, after),
    boxes("Methods", "without", methods, after),
  );
  // The controls are new: who used one by keyboard goes on there.
  if (place >= 0) controls.querySelectorAll("select, input")[place].focus();
  showNotes(now);
  showPanels(now);
}

function showNotes(now) {
  const there = now.runs.filter((run) => run.values);
  const missing = now.runs.filter((run) => !run.values);
  const metric = data.curves.metrics[now.metric];
  const width = Math.max(...there.map((run) => run.width[0]), 1);
  const byUpdate = width > 1 ? `A point is the mean of ${width} updates.` : "A point is one update.";
  const notes = [
    `${metric.label}: ${metric.about}.`,
    metric.by_batch ? byBatch(there) : byUpdate,
    "Lines are means over seeds, bands ± one population standard deviation over seeds.",
    now.axis === "log" ? "Values that are not positive have no place on a logarithmic axis; bands go to its lower end." : "",
    missing.length ? `Missing: ${missing.map((run) => data.command.before.replace("snakemake ", "") + run.target).join(", ")}.` : "",
  ];
  document.getElementById("curve-notes").textContent = notes.filter(Boolean).join(" ");
}

function byBatch(runs) {
  const several = runs.some((run) => run.width[1] > run.N) ? " or several" : "";
  return `It starts anew with every rollout batch: a point is the mean of a whole one (N updates)${several}.`;
}

function showPanels(now) {
  const panels = now.staleness.map((n) => [n, linesOf(now, n)]);
  const lines = panels.flatMap(([, found]) => found);
  const logarithmic = now.axis === "log";
  const values = lines.flatMap((line) => [...line.mean, ...(line.high || []), ...lowest(line, logarithmic)]);
  const axis = axisOf(values, logarithmic);
  const end = Math.max(...now.runs.map((run) => run.updates || 0));
  const about = data.curves.metrics[now.metric].label;
  const charts = panels.map(([n, found]) => chart(`N = ${n}`, found, end, axis, about));
  document.getElementById("panels").replaceChildren(...charts.map((c) => c.box));
  readers = charts.map((c) => c.read);
  const at = cursorAt || Number(state.get("at"));
  if (at >= 1 && at <= end) moveCursor(at);
}

// On a logarithmic axis the lower edge of a band may be anywhere down to nothing: it is cut off.
function lowest(line, logarithmic) {
  const edge = line.low || [];
  return logarithmic ? edge.map((v, i) => v && Math.max(v, line.mean[i] / 3)) : edge;
}

// The lines of a panel, the reference below the others.
function linesOf(now, n) {
  const found = [];
  for (const staleness of unique([1, n])) {
    const all = now.runs.filter((run) => run.N === staleness && run.values && run.values[now.metric]);
    // Runs of another length are no seeds of the same curve.
    const kind = (run) => `${run.method} ${run.updates}`;
    for (const runs of unique(all.map(kind)).map((name) => all.filter((run) => kind(run) === name))) {
      const { method } = runs[0];
      const reference = staleness !== n;
      if (now.without.includes(reference ? REFERENCE : method)) continue;
      const look = reference ? ON_POLICY : data.methods[method];
      found.push({ label: look.label, look, ...overSeeds(runs, now) });
    }
  }
  return found;
}

function overSeeds(runs, now) {
  const { updates, width: widths, spans } = runs[0];
  const kind = data.curves.metrics[now.metric].by_batch ? 1 : 0;
  const width = widths[kind];
  const span = now.smoothing === "0" ? 1 : spans[now.smoothing][kind];
  const seeds = runs.map((run) => runningMean(run.values[now.metric], span));
  const mean = [];
  const [low, high] = [[], []];
  const x = [];
  seeds[0].forEach((_, i) => {
    const values = seeds.map((seed) => seed[i]).filter((value) => value !== null);
    const m = values.reduce((total, value) => total + value, 0) / values.length;
    const sd = Math.sqrt(values.reduce((t, value) => t + (value - m) ** 2, 0) / values.length);
    const there = values.length > 0;
    mean.push(there ? m : null);
    low.push(there ? m - sd : null);
    high.push(there ? m + sd : null);
    // The middle of the updates that a point is the mean of; the last has fewer.
    x.push((i * width + 1 + Math.min((i + 1) * width, updates)) / 2);
  });
  return runs.length > 1 ? { x, mean, low, high } : { x, mean };
}

// Mean over the values around each, fewer at the ends, without what is missing.
function runningMean(values, span) {
  const half = (span - 1) / 2;
  return values.map((_, i) => {
    let total = 0;
    let count = 0;
    for (let j = Math.max(0, i - half); j <= Math.min(values.length - 1, i + half); j += 1) {
      if (values[j] !== null) {
        total += values[j];
        count += 1;
      }
    }
    return count ? total / count : null;
  });
}

function moveCursor(update) {
  cursorAt = update;
  readers.forEach((read) => read(update));
}

function stepCursor(event, end) {
  const step = Math.max(1, Math.round(end / 64));
  const now = cursorAt || 1;
  const next = {
    ArrowLeft: now - 1,
    ArrowRight: now + 1,
    ArrowDown: now - step,
    ArrowUp: now + step,
    PageDown: now - 4 * step,
    PageUp: now + 4 * step,
    Home: 1,
    End: end,
  }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  moveCursor(Math.min(end, Math.max(1, next)));
}
