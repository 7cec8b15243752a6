"use strict";
// What all parts share: the data, the state in the address, and how elements are made.

let data;
const MISSING = "--";
const MACRO = "macro";

function fail(message) {
  const box = document.getElementById("error");
  box.textContent = `This page is broken: ${message}`;
  box.hidden = false;
}
window.addEventListener("error", (event) => fail(event.message));
window.addEventListener("unhandledrejection", (event) => fail(event.reason));

async function unpack() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Make an element. Text is only ever set as text: responses may contain anything.
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// The state is what follows # in the address: a link leads to what is seen.
const state = new Map();

function readState() {
  state.clear();
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) state.set(key, value);
}

function setState(changes) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === "" || value === null) state.delete(key);
    else state.set(key, String(value));
  }
  try {
    history.replaceState(null, "", `#${new URLSearchParams([...state])}`);
  } catch {
    // Not allowed where the page was opened from a data: address; only the link is lost.
  }
}

function chosen(key, allowed, otherwise) {
  const value = state.get(key);
  return allowed.includes(value) ? value : otherwise;
}

function choice(label, key, options, otherwise, after) {
  const names = options.map(([value]) => String(value));
  const current = chosen(key, names, otherwise);
  const select = make("select", {
    onchange: (event) => {
      setState({ [key]: event.target.value === otherwise ? "" : event.target.value });
      after();
    },
  });
  for (const [value, text] of options) {
    select.append(make("option", { value, selected: String(value) === current }, text));
  }
  return make("label", {}, label, select);
}

function unique(values) {
  return [...new Set(values)];
}

function plain(number) {
  if (number === null || number === undefined) return MISSING;
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1e6 || size < 1e-3) return number.toExponential(2);
  return size >= 1000 ? number.toFixed(0) : number.toPrecision(3);
}

function list(pairs) {
  const box = make("dl");
  for (const [name, value] of pairs) box.append(make("dt", {}, name), make("dd", {}, value));
  return box;
}
