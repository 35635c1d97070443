// The room that translates while the reader types.

import { directionOf } from "./directions.js";
import { Errands, focusToken } from "./errands.js";
import { choose, chosenModel, offer, reverse, showPair, startPairs } from "./pairs.js";
import { ask } from "./server.js";
import { change } from "./view.js";
import { label, onChange, say } from "./words.js";

const PAUSE = 250; // milliseconds without a key
const MOST_OTHERS = 5; // asked for, the best included
const COPIED = 1500; // milliseconds that the button says so
const NOTHING = { source: "", best: "", others: [], by: null };

const find = (id) => document.getElementById(id);
const room = find("translate");
const text = find("text");
const translation = find("translation");
const others = find("others");
const otherList = others.querySelector("ol");
const copyButton = find("copy");
const clearButton = find("clear");
const swapButton = find("swap");

let bound = Infinity; // characters
let timer = 0;
let composing = false;
let shown = NOTHING;

const errands = new Errands(({ old, waiting }) => {
  room.classList.toggle("old", old);
  translation.ariaBusy = String(waiting);
});

// What can be seen

function showCount() {
  const count = [...text.value].length;
  const line = find("count");
  const many = count > bound;
  line.textContent = bound === Infinity ? "" : say("count", { count, most: bound });
  line.classList.toggle("over", many);
  text.ariaInvalid = String(many);
  clearButton.disabled = count === 0;
  return many ? { key: "long", values: { count, most: bound } } : null;
}

function showOthers() {
  const items = shown.others.map(([other, score]) => {
    const item = document.createElement("li");
    const words = document.createElement("span");
    const number = document.createElement("small");
    words.textContent = other;
    number.textContent = score.toFixed(2).replace("-", "−");
    item.append(words, number);
    return item;
  });
  otherList.replaceChildren(...items);
  const empty = shown.best === "" ? "none" : "single";
  others.querySelector("p").textContent = say(items.length ? "score" : empty);
}

function show() {
  if (translation.textContent !== shown.best) translation.textContent = shown.best;
  find("by").textContent = shown.by === null ? "" : say("by", shown.by);
  copyButton.disabled = shown.best === "";
  showOthers();
}

function showLanguages() {
  showPair();
  const { source, target } = chosenModel();
  for (const [element, code] of [[text, source], [translation, target], [otherList, target]]) {
    element.lang = code;
    element.dir = directionOf(code);
  }
  swapButton.disabled = reverse() === undefined;
}

// What is asked for

function query(source) {
  const { name, beam } = chosenModel();
  const body = { model: name, text: source };
  if (!others.open) return body;
  if (beam > 1) return { ...body, n_best: Math.min(beam, MOST_OTHERS) };
  return { ...body, beam: MOST_OTHERS, n_best: MOST_OTHERS };
}

async function fetchTranslation({ signal, busy }) {
  const source = text.value;
  const begun = performance.now();
  const answer = await ask("v1/translate", { body: query(source), signal, busy });
  if (signal.aborted) return;
  const ms = Math.round(performance.now() - begun);
  const by = { model: answer.model, engine: chosenModel().engine, ms };
  const [{ text: best, alternatives = [] }] = answer.translations;
  const scores = new Map(alternatives.map((one) => [one.text, one.score]));
  scores.delete(best);
  shown = { source, best, others: [...scores], by };
  show();
}

/** Translate what is there; nothing is sent for a text that is empty or too long. */
function translate() {
  clearTimeout(timer);
  const tooLong = showCount();
  if (tooLong === null && text.value.trim() !== "") {
    return errands.replace(fetchTranslation, translate);
  }
  errands.stop(tooLong);
  shown = NOTHING;
  show();
}

/** Say that nothing translates here; without a room in the address, open the explorer's first. */
function lackModels() {
  text.disabled = true;
  text.dataset.hint = "noTranslation";
  translation.removeAttribute("data-hint");
  translation.removeAttribute("data-placeholder");
  label(room);
  if (location.hash === "") change({ room: "words" });
}

async function fetchModels(options) {
  const { models } = await ask("v1/models", options);
  if (models.length === 0) return lackModels();
  const settings = await ask("frontend/settings", options);
  bound = settings.charLimit;
  offer(models);
  showLanguages();
}

async function load() {
  await errands.replace(fetchModels, load);
  if (chosenModel() === null) focusToken(); // nobody is typing yet, or nothing translates
  else if (!composing) translate(); // a browser may have kept the text
}

// What the reader does

function type() {
  if (composing) return;
  showCount();
  if (chosenModel() === null) return;
  clearTimeout(timer);
  timer = setTimeout(translate, text.value === "" ? 0 : PAUSE);
}

function swap() {
  if (swapButton.disabled) return;
  choose(reverse());
  showLanguages();
  if (shown.source === text.value) text.value = shown.best; // else its translation is not there yet
  translate();
}

async function copy() {
  if (shown.best === "") return;
  try {
    await navigator.clipboard.writeText(shown.best);
  } catch {
    // Without HTTPS there is no clipboard but that of the selection.
    getSelection().selectAllChildren(translation);
    document.execCommand("copy");
  }
  const said = find("said");
  copyButton.textContent = said.textContent = say("copied");
  setTimeout(() => {
    copyButton.textContent = say("copy");
    said.textContent = "";
  }, COPIED);
}

function shortcut(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  if (event.shiftKey) swap();
  else copy();
}

function startControls() {
  // While a Chinese or Japanese word is being composed, its letters are no text yet.
  text.addEventListener("input", (event) => {
    composing = event.isComposing;
    type();
  });
  text.addEventListener("compositionend", () => {
    composing = false;
    type();
  });
  room.addEventListener("keydown", shortcut);
  swapButton.addEventListener("click", swap);
  copyButton.addEventListener("click", copy);
  clearButton.addEventListener("click", () => {
    text.value = "";
    text.focus();
    type();
  });
  others.addEventListener("toggle", () => others.open && chosenModel() && translate());
}

/** Return the text and the model in use, for a room that looks inside. */
export function present() {
  return { text: text.value.trim(), model: chosenModel()?.name };
}

/** Come to the room, for the first time or again. */
export function enter() {
  errands.enter(find("translate-problems"));
}

export function open() {
  startControls();
  startPairs(() => {
    showLanguages();
    translate();
  });
  onChange(() => {
    showCount();
    show();
    showPair();
  });
  if (navigator.userAgent.includes("Mac")) {
    for (const key of document.querySelectorAll("kbd.command")) key.textContent = "⌘";
  }
  showCount();
  show();
  load();
}
