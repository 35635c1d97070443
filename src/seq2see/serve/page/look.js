// The sentence to explain: its model, its translation, the beam and the heads switched off.

import { directionIn } from "./directions.js";
import { make } from "./elements.js";
import { nameOf } from "./languages.js";
import { headName } from "./numbers.js";
import { change } from "./view.js";
import { presentPicture } from "./upload.js";
import { keyFor, label, say } from "./words.js";

export const LONGEST = 2000; // characters, as the server takes them
const MOST_BEAM = 16;
const PAUSE = 400; // milliseconds without a key

const find = (id) => document.getElementById(id);
const form = find("look");
const model = find("look-model");
const text = find("look-text");
const target = find("look-target");
const beam = find("look-beam");
const off = find("look-off");

let timer = 0;

/** Read the heads that are switched off. */
export function headsOff(view) {
  return (view.off ?? "")
    .split(",")
    .map((place) => /^(\w+\.\d+\.\w+)\.(\d+)$/.exec(place))
    .filter((match) => match !== null)
    .map(([, layer, head]) => ({ layer, head: Number(head) }));
}

/** Switch a head off, or on again. */
export function toggleHead(view, layer, head) {
  const places = headsOff(view).map((one) => `${one.layer}.${one.head}`);
  const place = `${layer}.${head}`;
  const others = places.filter((one) => one !== place);
  const now = others.length < places.length ? others : [...places, place];
  change({ off: now.join(",") });
}

/** Return the beam in use. */
export function beamOf(view, one) {
  const value = Number.parseInt(view.beam, 10);
  return value >= 1 && value <= MOST_BEAM ? value : one.beam;
}

/** Whether a model translates; the others are only looked into. */
export function translates({ inside }) {
  return inside === "translation";
}

/** Name the kind of a model that does not translate. */
export function sayKind({ inside }) {
  return say(`kind.${inside}`);
}

/** Build the part of a request that every route for a text takes. */
export function lookOf(view, one) {
  if (!translates(one)) return { model: one.name, text: view.text };
  const body = { model: one.name, text: view.text, beam: beamOf(view, one), off: headsOff(view) };
  return view.target ? { ...body, target: view.target } : body;
}

/** Describe the sentence and the model in one line, for files. */
export function subjectOf(view, one) {
  const key = keyFor("subject", one);
  return say(key, { model: one.name, text: view.text, picture: presentPicture()?.name });
}

function describe(one) {
  if (translates(one)) return `${one.name} · ${nameOf(one.source)} → ${nameOf(one.target)}`;
  const language = one.target === null ? [] : [nameOf(one.target)];
  return [one.name, sayKind(one), ...language].join(" · ");
}

/** Show the fields of the form that a kind of model takes. */
function showFields(one) {
  const picture = one.inside === "picture";
  find("look-text-part").hidden = picture;
  find("look-picture-part").hidden = !picture;
  for (const field of [target, beam]) field.parentElement.hidden = !translates(one);
  text.dataset.hint = keyFor("typeSentence", one);
  form.querySelector("[for=look-text]").dataset.words = keyFor("sentence", one);
  label(form);
}

function showOff(view, one) {
  const heads = headsOff(view);
  off.hidden = heads.length === 0 || !translates(one);
  if (off.hidden) return;
  const names = heads.map(({ layer, head }) => headName(layer, head)).join(say("comma"));
  const on = make("button", { type: "button", onclick: () => change({ off: null }) }, say("allOn"));
  off.replaceChildren(make("span", {}, say("headsOff", { names })), on);
}

function write(field, value) {
  if (document.activeElement !== field) field.value = value;
}

/** Show the view's sentence and model. */
export function showLook(view, one, models) {
  model.replaceChildren(...models.map((each) => new Option(describe(each), each.name)));
  model.value = one.name;
  write(text, view.text ?? "");
  write(target, view.target ?? "");
  write(beam, view.beam ?? "");
  beam.placeholder = String(one.beam ?? "");
  const languages = [[text, one.source ?? one.target ?? ""], [target, one.target ?? ""]];
  for (const [field, code] of languages) {
    field.lang = code;
    field.dir = directionIn(field.value, code);
  }
  showOff(view, one);
  showFields(one);
}

function later(choices) {
  clearTimeout(timer);
  timer = setTimeout(() => change(choices), PAUSE);
}

/** Let the reader change the sentence. */
export function startLook() {
  const typed = () => later({ text: text.value });
  text.addEventListener("input", (event) => event.isComposing || typed());
  text.addEventListener("compositionend", typed);
  target.addEventListener("change", () => change({ target: target.value.trim() }));
  beam.addEventListener("change", () => change({ beam: beam.checkValidity() ? beam.value : "" }));
  model.addEventListener("change", () => change({ model: model.value, off: null }));
  form.addEventListener("submit", (event) => event.preventDefault());
}
