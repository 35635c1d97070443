// Tokens: their labels, and rows of them that wrap like text.

import { STRONGEST, sideOf, textOn } from "./colours.js";
import { directionIn, isolate } from "./directions.js";
import { Picture, shorten, widthOf } from "./picture.js";

export const START = "▁"; // begins a word's first piece
const BYTE = /^<0x([0-9A-F]{2})>$/; // of a character without a piece of its own
const CONTINUED = /^<0x[89AB]/; // not the first byte of a character
const SUBSCRIPTS = "₁₂₃₄";
const SIZE = 16;
const WIDEST = 240;
const GAP = 6;
const HEIGHT = 34;
const NOTE = 16; // height of the small line below

/** Put each character that is spelled in bytes in the place of its last byte. */
function surfacesOf(pieces) {
  let decoder;
  return pieces.map((piece) => {
    const byte = BYTE.exec(piece);
    if (byte === null) decoder = undefined;
    if (byte === null) return piece;
    decoder ??= new TextDecoder("utf-8", { ignoreBOM: true });
    return decoder.decode(Uint8Array.of(parseInt(byte[1], 16)), { stream: true });
  });
}

/** Name the bytes of a character by it and their number. */
function named(pieces) {
  const names = [...pieces];
  let first = 0;
  surfacesOf(pieces).forEach((surface, place) => {
    if (!BYTE.test(pieces[place])) return;
    if (!CONTINUED.test(pieces[place])) first = place;
    const whole = [...surface].length === 1 && !/[\p{C}\ufffd]/u.test(surface);
    for (let byte = first; whole && byte <= place; byte++) {
      names[byte] = place > first ? surface + SUBSCRIPTS[byte - first] : surface;
    }
  });
  return names;
}

/** Label pieces: a piece that goes on with a word begins with a hyphen, where words are marked. */
export function labelsOf(pieces, special = []) {
  const marked = pieces.some((piece) => piece.startsWith(START));
  const label = (piece, index) => {
    if (piece === START) return "␣";
    if (piece.startsWith(START)) return piece.slice(1);
    const goesOn = marked && !special[index] && !/^<.*>$/.test(piece) && /^\p{L}/u.test(piece);
    return goesOn && !/^\p{Script=Han}/u.test(piece) ? `‑${piece}` : piece;
  };
  return named(pieces).map((piece, index) => isolate(label(piece, index)));
}

/** Join pieces into text, as a prefix to force. */
export function textOf(pieces) {
  const surfaces = surfacesOf(pieces).filter((surface) => surface !== "");
  const marked = surfaces.some((surface) => surface.startsWith(START));
  const letters = surfaces.every((surface) => [...surface].length === 1);
  return marked || letters ? surfaces.join("").replaceAll(START, " ").trim() : surfaces.join(" ");
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
