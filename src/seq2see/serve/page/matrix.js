// Matrices with the names of their rows and columns, and lines between tokens.

import { textOn } from "./colours.js";
import { drawCanvas } from "./canvas.js";
import { make } from "./elements.js";
import { decimal } from "./numbers.js";
import { Picture, shorten, widthOf } from "./picture.js";

const LABEL = 14;
const LONGEST = 120;
const SMALLEST = 11; // pixels of a cell
const LARGEST = 46;
const PLAIN = 28; // at most, where no cell holds a number
const NUMBERED = 34; // cells of this size hold their number

function longest(labels, size = LABEL) {
  return Math.min(LONGEST, Math.max(0, ...labels.map((label) => widthOf(label, size)))) + 10;
}

function addLabels(picture, { rows, columns, chosen }, { x, y, cell }) {
  const size = Math.max(9, Math.min(LABEL, cell - 1));
  rows.forEach((label, row) => {
    const look = { fill: "ink", size, anchor: "end", weight: row === chosen ? 700 : 400 };
    const middle = y + (row + 0.5) * cell + 0.36 * size;
    picture.text(x - 6, middle, shorten(label, LONGEST, size), look);
  });
  columns.forEach((label, column) => {
    const place = x + (column + 0.5) * cell + 0.36 * size;
    picture.text(place, y - 6, shorten(label, LONGEST, size), { fill: "ink", size, turn: -90 });
  });
}

function addAxes(picture, { rowAxis, columnAxis }, { x, y, cell, high }) {
  const look = { fill: "soft", size: 12, anchor: "middle" };
  // Beside few rows a long name reaches up to the labels of the columns.
  const foot = y + high * cell;
  const middle = Math.min(y + (high * cell) / 2, foot - widthOf(rowAxis, 12) / 2);
  picture.text(12, middle, rowAxis, { ...look, turn: -90 });
  picture.text(x, 13, columnAxis, { ...look, anchor: "start" });
}

function addNumbers(picture, { weights, columns, masked }, { x, y, cell }) {
  weights.forEach((weight, index) => {
    if (masked?.[index]) return;
    const left = x + ((index % columns.length) + 0.5) * cell;
    const top = y + (Math.floor(index / columns.length) + 0.5) * cell + 4;
    const look = { fill: textOn(weight), size: 11.5, anchor: "middle" };
    picture.text(left, top, decimal(weight, 2).replace(/^(−?)0/, "$1"), look);
  });
}

function addMasked(picture, { masked, columns }, { x, y, cell }) {
  masked.forEach((hidden, index) => {
    if (!hidden) return;
    const left = x + (index % columns.length) * cell;
    const top = y + Math.floor(index / columns.length) * cell;
    const look = { stroke: "soft", thickness: 1, opacity: 0.45 };
    picture.line(left + 0.3 * cell, top + 0.7 * cell, left + 0.7 * cell, top + 0.3 * cell, look);
  });
}

/** Draw a matrix: `rows`, `columns`, `weights` row by row, axes; `chosen` row, `masked` cells.
 *
 * Large cells hold their number, unless the matrix is `unnumbered`. Cells have at most `largest`
 * pixels; `under` gives the picture below cells of a size.
 */
export function matrixPicture(matrix, width) {
  const { rows, columns, weights, chosen = null, masked = null } = matrix;
  const x = longest(rows) + 22;
  const y = longest(columns) + 22;
  const fitting = Math.floor((width - x - 2) / columns.length);
  const largest = matrix.largest ?? (matrix.unnumbered ? PLAIN : LARGEST);
  const cell = Math.max(SMALLEST, Math.min(largest, fitting));
  const place = { x, y, cell, high: rows.length };
  const across = columns.length * cell;
  const down = rows.length * cell;
  const picture = new Picture(x + across + 2, y + down + 2);
  if (matrix.under) picture.place(x, y, matrix.under(cell));
  picture.cells(x, y, columns.length, weights, cell, cell);
  if (masked !== null) addMasked(picture, matrix, place);
  if (cell >= NUMBERED && !matrix.unnumbered) addNumbers(picture, matrix, place);
  picture.rect(x, y, across, down, { stroke: "line" });
  if (chosen !== null) {
    picture.rect(x, y + chosen * cell, across, cell, { stroke: "accent", thickness: 2 });
  }
  addLabels(picture, matrix, place);
  addAxes(picture, matrix, place);
  return { picture, place };
}

function startPointing(canvas, { rows, columns }, place, act) {
  let [row, column] = [0, 0];
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const bound = (value, most) => Math.max(0, Math.min(most - 1, value));
  const go = (toRow, toColumn) => {
    [row, column] = [bound(toRow, rows.length), bound(toColumn, columns.length)];
    act.point(row, column);
  };
  const cellAt = (event) => [
    Math.floor((event.offsetY - place.y) / place.cell),
    Math.floor((event.offsetX - place.x) / place.cell),
  ];
  canvas.addEventListener("pointermove", (event) => go(...cellAt(event)));
  canvas.addEventListener("click", (event) => {
    go(...cellAt(event));
    act.pick(row, column);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key in steps) go(row + steps[event.key][0], column + steps[event.key][1]);
    else if (event.key === "Enter" || event.key === " ") act.pick(row, column);
    else return;
    event.preventDefault();
  });
}

/** Draw a matrix for the page: the pointer and the arrow keys read single cells of it.
 *
 * `tell(row, column)` says a cell in words; `pick(row, column)` is called on a click or Enter.
 */
export function liveMatrix(matrix, width, { key, label, tell, pick }) {
  const { picture, place } = matrixPicture(matrix, width);
  const canvas = drawCanvas(picture);
  const attributes = { tabindex: 0, role: "application", "aria-label": label, "data-key": key };
  for (const [name, value] of Object.entries(attributes)) canvas.setAttribute(name, value);
  const cursor = make("div", { class: "cursor", hidden: true });
  const said = make("p", { class: "readout", role: "status" }, tell(null, null));
  const point = (row, column) => {
    cursor.hidden = false;
    cursor.style.left = `${place.x + column * place.cell}px`;
    cursor.style.top = `${place.y + row * place.cell}px`;
    cursor.style.width = cursor.style.height = `${place.cell}px`;
    said.textContent = tell(row, column);
  };
  startPointing(canvas, matrix, place, { point, pick });
  const area = make("div", { class: "scroll" }, make("div", { class: "under" }, canvas, cursor));
  return { element: make("div", {}, area, said), picture };
}

/** Draw lines from the tokens of one side to those of the other, as wide as their weight. */
export function linesPicture({ rows, columns, weights, chosen = null }, width) {
  const step = 24;
  const size = 14;
  const left = Math.min(longest(rows, size), 0.35 * width);
  const right = Math.min(longest(columns, size), 0.35 * width);
  const across = Math.min(width, 460);
  const picture = new Picture(across, step * Math.max(rows.length, columns.length) + 4);
  const middle = (index) => (index + 0.5) * step;
  weights.forEach((weight, index) => {
    const row = Math.floor(index / columns.length);
    const faint = chosen !== null && row !== chosen;
    if (weight < 0.02) return;
    const look = { stroke: "more", thickness: 0.5 + 4.5 * weight, opacity: faint ? 0.1 : 0.75 };
    const end = across - right;
    picture.line(left, middle(row), end, middle(index % columns.length), { ...look, curved: true });
  });
  rows.forEach((label, row) => {
    const pressed = row === chosen;
    const part = new Picture(left, step);
    part.rect(0, 1, left, step - 2, { fill: "card", opacity: 0 }); // a place to point at
    const look = { fill: "ink", size, anchor: "end", weight: pressed ? 700 : 400 };
    part.text(left - 6, 0.5 * step + 5, shorten(label, left - 6, size), look);
    picture.place(0, row * step, part, { key: String(row), label, pressed });
  });
  columns.forEach((label, column) => {
    const text = shorten(label, right - 6, size);
    picture.text(across - right + 6, middle(column) + 5, text, { fill: "ink", size });
  });
  return picture;
}
