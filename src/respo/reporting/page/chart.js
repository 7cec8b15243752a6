// One panel: lines with bands against policy updates, and a cursor that reads them.

const SIZE = { width: 400, height: 230, left: 52, right: 8, top: 8, bottom: 32 };

// Round steps that divide a range into about as many parts.
function ticks(low, high, parts) {
  const raw = (high - low) / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) found.push(i * step);
  return found;
}

// 1, 2 and 5 times powers of ten; of a wide range the powers alone.
function logarithmicTicks(low, high) {
  const factors = high / low > 1e3 ? [1] : [1, 2, 5];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    found.push(...factors.map((factor) => Number(`${factor}e${power}`)));
  }
  return found.filter((value) => value >= low && value <= high);
}

// The vertical axis: its place of a value from 0 to 1, and labelled ticks.
function axisOf(values, logarithmic) {
  const there = values.filter((value) => value !== null && (!logarithmic || value > 0));
  let [low, high] = [Infinity, -Infinity];
  for (const value of there) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!there.length) [low, high] = [1, 2];
  if (logarithmic) {
    [low, high] = [low / 1.1, high * 1.1];
    const place = (v) => (v > 0 ? Math.log(v / low) / Math.log(high / low) : null);
    return { place, ticks: logarithmicTicks(low, high).map((value) => [value, String(value)]) };
  }
  const margin = 0.04 * (high - low) || Math.abs(high) / 10 || 1;
  // What is never negative, such as a share, begins at zero if that costs little room.
  [low, high] = [low >= 0 && low < high / 3 ? 0 : low - margin, high + margin];
  const found = ticks(low, high, 5);
  const place = (v) => (v - low) / (high - low);
  return { place, ticks: found.map((value) => [value, tickLabel(value, found)]) };
}

function tickLabel(value, values) {
  const step = values.length > 1 ? values[1] - values[0] : 1;
  const size = Math.max(...values.map(Math.abs));
  if (size >= 1e5 || (size > 0 && size < 1e-3)) return value === 0 ? "0" : value.toExponential(1);
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

function path(points) {
  let text = "";
  let pen = "M";
  for (const [x, y] of points) {
    // A gap where there is no value.
    if (y === null) pen = "M";
    else {
      text += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
      pen = "L";
    }
  }
  // A point between gaps is a short stroke.
  return text.replace(/M[^ML]*(?=M|$)/g, "$&h2");
}

// lines: {label, look, x: updates, mean, low, high}. axis: of `axisOf`.
function chart(title, lines, end, axis, about) {
  const { width, height, left, right, top, bottom } = SIZE;
  const across = (u) => left + ((width - left - right) * u) / end;
  const up = (v) => {
    const place = v === null ? null : axis.place(v);
    // What is below the axis, such as the edge of a band, is cut off.
    return place === null ? null : height - bottom - (height - top - bottom) * Math.max(0, place);
  };
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}` });
  for (const [value, label] of axis.ticks) {
    const y = up(value);
    const kind = value === 0 ? "zero" : "rule";
    svg.append(draw("line", { class: kind, x1: left, x2: width - right, y1: y, y2: y }));
    svg.append(draw("text", { x: left - 5, y: y + 4, "text-anchor": "end" }, label));
  }
  const horizontal = ticks(0, end, 4);
  for (const value of horizontal) {
    const x = across(value);
    svg.append(draw("text", { x, y: height - bottom + 15, "text-anchor": "middle" }, String(value)));
  }
  const middle = (left + width - right) / 2;
  svg.append(draw("text", { x: middle, y: height - 3, "text-anchor": "middle" }, "policy updates"));
  for (const line of lines) {
    const { color, dash, width: thick } = line.look;
    const area = line.low ? band(line, across, up, height - bottom) : "";
    if (area) svg.append(draw("path", { class: "band", d: area, fill: color, "fill-opacity": 0.18 }));
    const shape = path(line.x.map((u, i) => [across(u), up(line.mean[i])]));
    if (shape) svg.append(
      draw("path", { d: shape, fill: "none", stroke: color, "stroke-width": thick, "stroke-dasharray": dash }),
    );
  }
  const cursor = draw("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
  svg.append(cursor);
  return panel(title, svg, cursor, lines, end, across, about);
}

// A closed area for each piece of a line, as its gaps divide it; down to the floor where the lower
// edge has no place.
function band(line, across, up, floor) {
  const pieces = [[]];
  line.x.forEach((u, i) => {
    const [middle, high, low] = [line.mean[i], line.high[i], line.low[i]].map(up);
    if (middle === null) pieces.push([]);
    else pieces.at(-1).push([across(u), high, low === null ? floor : low]);
  });
  const area = (piece) => {
    const upper = piece.map(([x, high]) => [x, high]);
    const lower = piece.map(([x, , low]) => [x, low]).reverse();
    return `${path([...upper, ...lower])}Z`;
  };
  return pieces.filter((piece) => piece.length).map(area).join("");
}

// The legend reads the values at the cursor, which is the same in all panels.
function panel(title, svg, cursor, lines, end, across, about) {
  const outputs = lines.map(() => make("output", {}));
  const legend = lines.map((line, i) => {
    const { color, dash, width } = line.look;
    const stroke = { stroke: color, "stroke-width": width, "stroke-dasharray": dash };
    const swatch = draw("line", { x1: 0, x2: 34, y1: 5, y2: 5, ...stroke });
    const picture = draw("svg", { viewBox: "0 0 34 10", "aria-hidden": "true" }, swatch);
    return make("li", {}, picture, line.label, outputs[i]);
  });
  const at = make("span", { class: "at" });
  const box = make("div", { class: "panel" }, make("h3", {}, title, " ", at), svg, make("ul", {}, ...legend));
  const read = (update) => {
    const texts = lines.map((line) => plain(line.mean[nearest(line.x, update)]));
    texts.forEach((text, i) => {
      outputs[i].textContent = text;
    });
    at.textContent = `update ${Math.round(update)}`;
    cursor.setAttribute("x1", across(update));
    cursor.setAttribute("x2", across(update));
    cursor.setAttribute("visibility", "visible");
    svg.setAttribute("aria-valuenow", Math.round(update));
    const values = lines.map((line, i) => `${line.label} ${texts[i]}`).join(", ");
    svg.setAttribute("aria-valuetext", `update ${Math.round(update)}: ${values}`);
  };
  fill(
    svg,
    {
      tabindex: "0",
      role: "slider",
      "aria-label": `${about}, ${title}: read the curves with the arrow keys`,
      "aria-valuemin": 1,
      "aria-valuemax": end,
      "aria-valuenow": 1,
      onpointermove: (event) => moveCursor(updateAt(svg, event, end)),
      onpointerdown: (event) => moveCursor(updateAt(svg, event, end)),
      onkeydown: (event) => stepCursor(event, end),
    },
    [],
  );
  return { box, read };
}

function updateAt(svg, event, end) {
  const frame = svg.getBoundingClientRect();
  const x = ((event.clientX - frame.left) / frame.width) * SIZE.width;
  const share = (x - SIZE.left) / (SIZE.width - SIZE.left - SIZE.right);
  return Math.min(end, Math.max(1, Math.round(share * end)));
}

function nearest(x, update) {
  let best = 0;
  x.forEach((u, i) => {
    if (Math.abs(u - update) < Math.abs(x[best] - update)) best = i;
  });
  return best;
}
