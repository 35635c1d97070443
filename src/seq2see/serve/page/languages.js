// Names of languages.

import { tag } from "./words.js";

/** Name a language in the page's language; a code that has no name stands for itself. */
export function nameOf(code) {
  try {
    return new Intl.DisplayNames([tag()], { type: "language" }).of(code);
  } catch {
    return code;
  }
}
