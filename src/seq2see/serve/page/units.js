// Rows and columns of a map: tokens, or whole words, with special tokens or without.

import { START } from "./tokens.js";

/** Group the tokens of a side into what is shown; `places` are those of a unit's tokens. */
export function unitsOf({ pieces, words, special }, { unit, bare }) {
  const units = [];
  pieces.forEach((piece, place) => {
    if (bare && special[place]) return;
    const last = units.at(-1);
    const goesOn = unit === "words" && words[place] !== null && words[place] === last?.word;
    if (!goesOn) {
      units.push({ piece, word: words[place], special: special[place], places: [place] });
      return;
    }
    last.piece += piece;
    last.places.push(place);
  });
  if (unit === "words") for (const one of units) one.piece = bareWord(one.piece);
  return units;
}

function bareWord(piece) {
  return piece.replaceAll(START, "").trim() || piece;
}

/** Return units as the server returns tokens. */
export function tokensOf(units) {
  return {
    pieces: units.map(({ piece }) => piece),
    words: units.map(({ word }) => word),
    special: units.map(({ special }) => special),
  };
}

/** Turn weights between tokens, row by row, into weights between units.
 *
 * They are summed over the tokens of a key and averaged over those of a query.
 */
export function between(weights, columns, queries, keys) {
  if (weights.length === queries.length * keys.length) return weights;
  const merged = [];
  for (const { places: rows } of queries) {
    for (const { places } of keys) {
      let sum = 0;
      for (const row of rows) for (const place of places) sum += weights[row * columns + place];
      merged.push(sum / rows.length);
    }
  }
  return merged;
}
