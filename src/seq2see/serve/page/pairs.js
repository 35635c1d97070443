// The choice among the server's models: by source language, target language, and name.

import { keep, recall } from "./memory.js";
import { nameOf } from "./languages.js";

const from = document.getElementById("from");
const to = document.getElementById("to");
const model = document.getElementById("model");

let models = [];
let chosen = null;

/** The model in use; null until they are known. */
export function chosenModel() {
  return chosen;
}

/** The model that translates back; undefined if there is none. */
export function reverse() {
  return models.find((one) => one.source === chosen?.target && one.target === chosen.source);
}

function fill(select, values, value, label) {
  const options = [...new Set(values)].map((one) => new Option(label(one), one));
  select.replaceChildren(...options);
  select.value = value;
  select.disabled = options.length < 2;
}

/** Show the choice, in the page's language. */
export function showPair() {
  if (chosen === null) return;
  const { source, target, name } = chosen;
  const sources = models.map((one) => one.source);
  const targets = models.filter((one) => one.source === source).map((one) => one.target);
  const same = models.filter((one) => one.source === source && one.target === target);
  fill(from, sources, source, nameOf);
  fill(to, targets, target, nameOf);
  fill(model, same.map((one) => one.name), name, (one) => one);
  model.hidden = same.length < 2;
}

export function choose(one) {
  chosen = one;
  keep("model", one.name);
  showPair();
}

/** Offer these models; begin with the one used before, else with the server's first. */
export function offer(loaded) {
  models = loaded;
  const before = recall("model");
  choose(models.find((one) => one.name === before) ?? models[0]);
}

/** Call `act` after each choice of the reader. */
export function startPairs(act) {
  function pick(fits) {
    choose(models.find(fits));
    act();
  }

  from.addEventListener("change", () => {
    const possible = models.filter((one) => one.source === from.value);
    const best = possible.find((one) => one.target === chosen.target) ?? possible[0];
    pick((one) => one === best);
  });
  to.addEventListener("change", () => {
    pick((one) => one.source === chosen.source && one.target === to.value);
  });
  model.addEventListener("change", () => pick((one) => one.name === model.value));
}
