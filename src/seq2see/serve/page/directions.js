// Writing directions of languages and texts.

const RIGHT_TO_LEFT = ["Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"];
const SCRIPTS = RIGHT_TO_LEFT.map((script) => `\\p{Script=${script}}`);
const FROM_RIGHT = new RegExp(`[${SCRIPTS.join("")}]`, "u");

/** Return the writing direction of a language: ltr or rtl. */
export function directionOf(code) {
  try {
    return RIGHT_TO_LEFT.includes(new Intl.Locale(code).maximize().script) ? "rtl" : "ltr";
  } catch {
    return "ltr";
  }
}

/** Return the writing direction of a text, by its first letter; without one, its language's. */
export function directionIn(text, code) {
  const letter = /\p{L}/u.exec(text);
  if (letter === null) return directionOf(code);
  return FROM_RIGHT.test(letter[0]) ? "rtl" : "ltr";
}

/** Keep a text from right to left from turning around what stands beside it. */
export function isolate(text) {
  return FROM_RIGHT.test(text) ? `\u2068${text}\u2069` : text;
}
