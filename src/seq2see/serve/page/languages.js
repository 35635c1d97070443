// Names and writing directions of languages.

import { tag } from "./words.js";

const RIGHT_TO_LEFT = new Set(["Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"]);

/** Name a language in the page's language; a code that has no name stands for itself. */
export function nameOf(code) {
  try {
    return new Intl.DisplayNames([tag()], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

/** Return the writing direction of a language: ltr or rtl. */
export function directionOf(code) {
  try {
    return RIGHT_TO_LEFT.has(new Intl.Locale(code).maximize().script) ? "rtl" : "ltr";
  } catch {
    return "ltr";
  }
}
