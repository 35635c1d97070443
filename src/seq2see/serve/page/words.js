// The words of the page in English and Chinese.

import { isolate } from "./directions.js";
import { keep, recall } from "./memory.js";
import { enOthers } from "./words-en-others.js";
import { en } from "./words-en.js";
import { zhOthers } from "./words-zh-others.js";
import { zh } from "./words-zh.js";

export const WORDS = { en: { ...en, ...enOthers }, zh: { ...zh, ...zhOthers } };

const TAGS = { en: "en", zh: "zh-CN" };
const CHANGED = "words";

let language = "en";

/** BCP 47 tag of the page's language. */
export function tag() {
  return TAGS[language];
}

/** Return the words of a key, with its {values} filled in; numbers as the language writes them. */
export function say(key, values = {}) {
  return WORDS[language][key].replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? value.toLocaleString(tag()) : isolate(value);
  });
}

/** Return the words of a key, or a name that stands for itself where the page has none for it. */
export function sayName(key, name) {
  return Object.hasOwn(WORDS[language], key) ? say(key) : name;
}

/** Return the key of the words for a kind of model, which may have words of its own. */
export function keyFor(key, { inside }) {
  const own = `${key}.${inside}`;
  return Object.hasOwn(WORDS[language], own) ? own : key;
}

/** Call `act` whenever the page's language changes. */
export function onChange(act) {
  document.addEventListener(CHANGED, act);
}

/** Write the words of every element of a part of the page. */
export function label(part) {
  for (const element of part.querySelectorAll("[data-words]")) {
    element.textContent = say(element.dataset.words);
  }
  for (const element of part.querySelectorAll("[data-label]")) {
    element.ariaLabel = say(element.dataset.label);
    if (element.matches(".icon")) element.title = element.ariaLabel;
  }
  for (const element of part.querySelectorAll("[data-hint]")) {
    const name = element.matches("textarea, input") ? "placeholder" : "data-placeholder";
    element.setAttribute(name, say(element.dataset.hint));
  }
}

function setLanguage(code) {
  language = code;
  document.documentElement.lang = tag();
  label(document);
  document.dispatchEvent(new Event(CHANGED));
}

/** Set the language that was chosen before, else the browser's; let a button switch it. */
export function startLanguage(button) {
  const first = recall("language") ?? navigator.language.split("-")[0];
  const other = () => (language === "en" ? "zh" : "en");
  onChange(() => {
    button.textContent = { en: "English", zh: "中文" }[other()];
    button.lang = TAGS[other()];
  });
  button.addEventListener("click", () => {
    setLanguage(other());
    keep("language", language);
  });
  setLanguage(first === "zh" ? "zh" : "en");
}
