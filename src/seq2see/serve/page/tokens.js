// Tokens: their labels, and rows of them that wrap like text.

import { STRONGEST, sideOf, textOn } from "./colours.js";
import { directionIn, isolate } from "./directions.js";
import { Picture, shorten, widthOf } from "./picture.js";

export const START = "▁"; // begins a word's first piece
const SIZE = 16;
const WIDEST = 240;
const GAP = 6;
const HEIGHT = 34;
const NOTE = 16; // height of the small line below

/** Label pieces: a piece that goes on with a word begins with a hyphen, where words are marked. */
export function labelsOf(pieces, special = []) {
  const marked = pieces.some((piece) => piece.startsWith(START));
  const label = (piece, index) => {
    if (piece === START) return "␣";
    if (piece.startsWith(START)) return piece.slice(1);
    const goesOn = marked && !special[index] && !/^<.*>$/.test(piece) && /^\p{L}/u.test(piece);
    return goesOn && !/^\p{Script=Han}/u.test(piece) ? `‑${piece}` : piece;
  };
  return pieces.map((piece, index) => isolate(label(piece, index)));
}

/** Join pieces into text, as a prefix to force. */
export function textOf(pieces) {
  const marked = pieces.some((piece) => piece.startsWith(START));
  const letters = pieces.every((piece) => [...piece].length === 1);
  return marked || letters ? pieces.join("").replaceAll(START, " ").trim() : pieces.join(" ");
}

function chip({ text, note = null, shade = 0, soft = false, pressed = null }, width) {
  const picture = new Picture(width, note === null ? HEIGHT : HEIGHT + NOTE);
  const box = { radius: 7, thickness: pressed ? 2.5 : 1 };
  picture.rect(1.5, 1.5, width - 3, HEIGHT - 3, { fill: "card", ...box, stroke: "line" });
  const look = { fill: sideOf(shade), opacity: STRONGEST * Math.abs(shade), ...box };
  picture.rect(1.5, 1.5, width - 3, HEIGHT - 3, { ...look, stroke: pressed ? "accent" : "line" });
  const fill = soft && Math.abs(shade) < 0.4 ? "soft" : textOn(shade);
  const words = shorten(text, WIDEST, SIZE);
  const middle = width / 2;
  picture.text(middle, 22.5, words, { fill, size: SIZE, anchor: "middle" });
  if (note !== null) {
    picture.text(middle, HEIGHT + 11, note, { fill: "soft", size: 11.5, anchor: "middle" });
  }
  return picture;
}

function chipWidth({ text, note = "" }) {
  const inner = Math.max(Math.min(widthOf(text, SIZE), WIDEST), widthOf(note ?? "", 11.5) - 8);
  return Math.ceil(inner) + 20;
}

/** Lay tokens out in a width, in the direction of their text; those with a key can be picked. */
export function tokenRow(tokens, width, language) {
  const row = new Picture(width, 0);
  row.language = language;
  const words = tokens.filter(({ soft }) => !soft).map(({ text }) => text).join(" ");
  const fromRight = directionIn(words, language) === "rtl";
  let x = 0;
  let y = 0;
  for (const token of tokens) {
    const size = chipWidth(token);
    const picture = chip(token, size);
    if (x > 0 && x + size > width) {
      x = 0;
      y += picture.height + GAP;
    }
    row.place(fromRight ? width - x - size : x, y, picture, token);
    x += size + GAP;
  }
  return row;
}
