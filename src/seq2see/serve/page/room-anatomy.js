// Anatomy: shapes from ids to logits, masks, positions, and attention worked out by hand.

import { barsPicture } from "./bars.js";
import { headChoice, layerChoice } from "./controls.js";
import { make } from "./elements.js";
import { lookOf } from "./look.js";
import { liveMatrix } from "./matrix.js";
import { decimal, headName, layerName, percent, whole } from "./numbers.js";
import { sayPhrase } from "./phrases.js";
import { Picture, shorten, stack } from "./picture.js";
import { Refusal } from "./server.js";
import { drawLive } from "./svg.js";
import { labelsOf } from "./tokens.js";
import { change } from "./view.js";
import { say } from "./words.js";

const REFUSED = 422;
const NARROW = 600;
const MOST_NUMBERS = 8; // of a vector, on the page; the files have all

async function byHand(get, body) {
  try {
    return await get("by-hand", body);
  } catch (error) {
    // A model whose attention is no scaled dot product says so; the rest of the room stays.
    if (error instanceof Refusal && error.status === REFUSED) return { refusal: error.message };
    throw error;
  }
}

async function fetch(get, view, model) {
  const look = lookOf(view, model);
  const place = { ...look, layer: view.layer, head: Number(view.head) };
  const shapes = await get("anatomy", look);
  const exact = await get("head", place);
  const query = queryOf(view, exact);
  return { shapes, exact, query, hand: await byHand(get, { ...place, query }) };
}

/** Return the query that is chosen; the middle one by default, some of whose keys are masked. */
function queryOf(view, { rows }) {
  const query = Number.parseInt(view.query, 10);
  return query >= 0 && query < rows.length ? query : Math.floor(rows.length / 2);
}

function sizeOf({ shape }) {
  return shape.reduce((product, length) => product * length, 1);
}

/** Write the shape with the names of its axes: "batch 1 × source position 14". */
function shapeText({ axes, shape }) {
  return shape.map((size, axis) => `${sayPhrase(axes[axis])} ${size}`).join(" × ");
}

/** Draw a tensor's size as a bar, its shape on it, its meaning beside or below. */
function shapeRow(tensor, share, across) {
  const beside = across >= NARROW;
  const half = beside ? 0.5 * across : across;
  const picture = new Picture(across, beside ? 30 : 48);
  picture.rect(0, 4, Math.max(4, share * half), 22, { fill: "more", opacity: 0.3, radius: 3 });
  const look = { fill: "ink", size: 13 };
  const text = shorten(shapeText(tensor), half - 16, 13, 600);
  picture.text(8, 20, text, { ...look, weight: 600 });
  const what = shorten(sayPhrase(tensor.what), half - 16, 13);
  picture.text(beside ? half + 8 : 8, beside ? 20 : 41, what, look);
  return picture;
}

function shapePicture(shapes, width) {
  const most = Math.max(...shapes.map(sizeOf));
  const rows = shapes.map((tensor) => {
    const share = Math.log1p(sizeOf(tensor)) / Math.log1p(most);
    return { picture: shapeRow(tensor, share, Math.min(width, 900)) };
  });
  return stack(rows, 0);
}

/** Keep a long list in a box of its own, which the keyboard scrolls. */
function boxed(drawing, label) {
  const attributes = { class: "scroll tall", tabindex: 0, role: "group", "aria-label": label };
  return make("div", attributes, drawing);
}

function drawShapes({ shapes, parameters }, width) {
  const picture = shapePicture(shapes, width);
  const title = say("shapes");
  const columns = ["module", "what", "shape", "parameters"].map((key) => say(key));
  const rows = shapes.map((tensor) => [
    tensor.name,
    sayPhrase(tensor.what),
    shapeText(tensor),
    whole(tensor.parameters),
  ]);
  return {
    name: "shapes",
    title,
    note: say("shapesNote", { count: parameters }),
    picture,
    drawing: boxed(drawLive(picture, title), title),
    table: { columns, rows },
    data: { shapes, parameters },
  };
}

function drawMask({ exact, query }, width, view) {
  const rows = labelsOf(exact.rows);
  const columns = labelsOf(exact.columns);
  const may = exact.mask.flat();
  const reasons = exact.reasons.flat();
  const matrix = {
    rows,
    columns,
    weights: may.map((one) => (one ? 0.35 : 0)),
    masked: may.map((one) => !one),
    chosen: query,
    unnumbered: true,
    rowAxis: sayPhrase(exact.axes[0]),
    columnAxis: sayPhrase(exact.axes[1]),
  };
  const why = (place) => (may[place] ? say("mayAttend") : sayPhrase(reasons[place]));
  const tell = (row, column) => {
    if (row === null) return say("pointAt");
    const names = { row: rows[row], column: columns[column] };
    return say("maskCell", { ...names, reason: why(row * columns.length + column) });
  };
  const title = say("maskOf", { layer: layerName(view.layer) });
  const pick = (row) => change({ query: row });
  const live = liveMatrix(matrix, width, { key: "mask", label: title, tell, pick });
  const table = {
    columns: [say("query"), ...columns],
    rows: rows.map((name, row) => [
      name,
      ...columns.map((_, column) => why(row * columns.length + column)),
    ]),
  };
  return {
    name: "mask",
    title,
    note: say("maskNote"),
    drawing: live.element,
    picture: live.picture,
    table,
    data: { rows: exact.rows, columns: exact.columns, mask: exact.mask, reasons: exact.reasons },
  };
}

function drawPositions({ positions }, width) {
  const features = positions.encoder;
  const rows = features.map((_, feature) => say("feature", { feature: feature + 1 }));
  const columns = features[0].map((_, position) => String(position + 1));
  const values = features.flat();
  const most = Math.max(...values.map(Math.abs)) || 1;
  const axes = { rowAxis: say("features"), columnAxis: say("position") };
  const weights = values.map((value) => value / most);
  const matrix = { rows, columns, weights, unnumbered: true, ...axes };
  const title = say("positions");
  const tell = (row, column) => {
    if (row === null) return say("pointAt");
    const value = decimal(features[row][column], 4);
    return say("positionCell", { feature: row + 1, position: column + 1, value });
  };
  const words = { key: "positions", label: title, tell, pick: () => {} };
  const live = liveMatrix(matrix, width, words);
  const table = {
    columns: [say("features"), ...columns],
    rows: features.map((row, feature) => [rows[feature], ...row.map((value) => decimal(value, 4))]),
  };
  return {
    name: "positions",
    title,
    note: say("positionsNote"),
    drawing: live.element,
    picture: live.picture,
    table,
    data: positions,
  };
}

function vector(values) {
  const some = values.slice(0, MOST_NUMBERS).map((value) => decimal(value, 3)).join(", ");
  return values.length > MOST_NUMBERS ? `(${some}, …)` : `(${some})`;
}

function handTable({ rows, keys, size }) {
  const labels = labelsOf(keys);
  const root = Math.sqrt(size);
  const columns = [
    say("key"),
    "q · k",
    `q · k / √${size} = q · k / ${decimal(root, 3)}`,
    "e^(s − max)",
    say("weight"),
    say("keyVector"),
    say("valueVector"),
  ];
  const numbers = rows.map((row, index) => [
    labels[index],
    decimal(row.product, 5),
    row.masked ? `−∞ (${sayPhrase(row.reason)})` : decimal(row.scaled, 5),
    decimal(row.exp, 5),
    decimal(row.weight, 5),
    vector(row.key_vector),
    vector(row.value_vector),
  ]);
  return { columns, rows: numbers };
}

function drawByHand(hand, { exact, query }, width) {
  const name = labelsOf(exact.rows)[query];
  const title = say("byHand", { head: headName(exact.layer, exact.head), query: name });
  const labels = labelsOf(hand.keys);
  const bars = hand.rows.map((row, index) => ({
    label: labels[index],
    share: row.weight,
    value: row.masked ? sayPhrase(row.reason) : percent(row.weight),
  }));
  const picture = barsPicture(bars, width);
  const table = handTable(hand);
  const steps = [
    say("handQuery", { vector: vector(hand.query) }),
    say("handSum", { sum: decimal(hand.sum, 5) }),
    say("handOutput", { vector: vector(hand.output) }),
  ].map((words) => make("li", {}, words));
  const drawing = make(
    "div",
    {},
    drawLive(picture, title),
    make("ol", { class: "steps" }, steps),
  );
  const figure = { name: "by-hand", title, note: say("handNote"), picture, drawing, data: hand };
  return { ...figure, table, unfolded: true };
}

function draw({ answers: { shapes, exact, hand, query }, view, width }) {
  const parts = [drawShapes(shapes, width), drawMask({ exact, query }, width, view)];
  if (hand.refusal) parts.push(make("p", { class: "plain" }, hand.refusal));
  else parts.push(drawByHand(hand, { exact, query }, width));
  if (shapes.positions.encoder !== null) parts.push(drawPositions(shapes, width));
  return parts;
}

export const anatomy = {
  name: "anatomy",
  controls: [layerChoice("decoder.0.self"), headChoice()],
  lacks: ({ maps }) => (maps.length === 0 ? "noMaps" : null),
  fetch,
  draw,
};
