// Two translations word by word: their longest common part, and what differs.

import { stack } from "./picture.js";
import { drawLive } from "./svg.js";
import { tokenRow } from "./tokens.js";

function lengths(left, right) {
  const table = Array.from({ length: left.length + 1 }, () => new Array(right.length + 1).fill(0));
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      const same = left[i] === right[j];
      table[i][j] = same ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}

/** Cut a text into words; text without spaces into characters. */
function wordsOf(text, language) {
  const cuts = new Intl.Segmenter(language, { granularity: "word" }).segment(text);
  return [...cuts].map(({ segment }) => segment).filter((word) => word.trim() !== "");
}

/** Tell for each word of both sides whether the other has it, in order. */
function differences(left, right) {
  const table = lengths(left, right);
  const sides = { left: left.map(() => false), right: right.map(() => false) };
  let [i, j] = [0, 0];
  while (i < left.length && j < right.length) {
    if (left[i] === right[j]) {
      sides.left[i] = sides.right[j] = true;
      [i, j] = [i + 1, j + 1];
    } else if (table[i + 1][j] >= table[i][j + 1]) i += 1;
    else j += 1;
  }
  return sides;
}

function differingRow(words, same, width, code) {
  const tokens = words.map((text, index) => ({ text, shade: same[index] ? 0 : -0.5 }));
  return tokenRow(tokens, width, code);
}

/** Draw two translations below one another; words that only one of them has are shaded. */
export function drawDifference({ name, title, note, texts, code, width, table, data }) {
  const [left, right] = texts.map(({ text }) => wordsOf(text, code));
  const same = differences(left, right);
  const picture = stack([
    { title: texts[0].title, picture: differingRow(left, same.left, width, code) },
    { title: texts[1].title, picture: differingRow(right, same.right, width, code) },
  ]);
  return { name, title, note, picture, drawing: drawLive(picture, title), table, data };
}
