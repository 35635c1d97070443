// Attention: every head at a glance, and one of them large, with its numbers.

import { pictureAttention } from "./attention-picture.js";
import { drawCanvas } from "./canvas.js";
import { Check, Choice, headChoice, layerChoice } from "./controls.js";
import { make } from "./elements.js";
import { scrolling } from "./figure.js";
import { lookOf } from "./look.js";
import { readMap, writeMap } from "./maps.js";
import { linesPicture, liveMatrix, matrixPicture } from "./matrix.js";
import { decimal, headName, layerName, percent } from "./numbers.js";
import { sayPhrase } from "./phrases.js";
import { Picture, stack } from "./picture.js";
import { makeRoam } from "./roam.js";
import { drawLive } from "./svg.js";
import { labelsOf } from "./tokens.js";
import { between, tokensOf, unitsOf } from "./units.js";
import { change } from "./view.js";
import { say } from "./words.js";

const SMALL = 44; // pixels of a thumbnail at least
const LARGE = 96;
const MOST_BESIDE = 16; // columns of a matrix that has the gold alignment beside it

const layer = layerChoice();
const head = headChoice();
const way = new Choice("as", "drawnAs", () => [
  ["matrix", say("asMatrix")],
  ["lines", say("asLines")],
]);
const unit = new Choice("unit", "unit", () => [
  ["subwords", say("subwords")],
  ["words", say("wholeWords")],
]);
const bare = new Check("bare", "hideSpecial");

async function fetch(get, view, model) {
  const look = lookOf(view, model);
  const maps = await get("attention", look);
  const place = { layer: view.layer, head: Number(view.head) };
  return { maps, exact: await get("head", { ...look, ...place }) };
}

/** Group the tokens of each side into what is shown. */
function shownSides({ source, input, target }, view) {
  const [sources, inputs, targets] = [source, input, target].map((side) => unitsOf(side, view));
  return { source: sources, input: inputs, target: targets };
}

/** Return the queries and the keys of a kind of attention. */
function sidesOf(sides, kind) {
  if (kind === "encoder.self") return [sides.source, sides.source];
  if (kind === "stack.self") return [sides.input, sides.input];
  return kind === "decoder.self" ? [sides.input, sides.input] : [sides.target, sides.source];
}

function namesOf(units) {
  const { pieces, special } = tokensOf(units);
  return labelsOf(pieces, special);
}

function thumbnail(weights, rows, columns, size) {
  const cell = size / Math.max(rows, columns);
  const picture = new Picture(size, size);
  picture.cells(0, 0, columns, weights, cell, cell);
  picture.rect(0, 0, columns * cell, rows * cell, { stroke: "line" });
  return picture;
}

/** Turn every head's map into one between what is shown. */
function shownMaps({ layers }, sides) {
  return layers.map((layer) => {
    const [queries, keys] = sidesOf(sides, layer.kind);
    const weights = layer.maps.map((map) => between(readMap(map), layer.columns, queries, keys));
    return { ...layer, weights, rows: queries.length, columns: keys.length };
  });
}

function layerRow({ name, weights, rows, columns }, view, size) {
  const buttons = weights.map((map, index) => {
    const chosen = name === view.layer && String(index) === view.head;
    const attributes = {
      type: "button",
      class: "thumb",
      "data-key": `${name}.${index}`,
      "aria-pressed": String(chosen),
      "aria-label": headName(name, index),
    };
    const canvas = drawCanvas(thumbnail(map, rows, columns, size));
    return make("button", attributes, canvas, make("span", {}, String(index + 1)));
  });
  return [make("h3", {}, layerName(name)), make("div", { class: "thumbs" }, buttons)];
}

function strongest(map, rows, columns) {
  if (map.length === 0) return ""; // all are special, and hidden
  const place = map.indexOf(map.reduce((most, weight) => Math.max(most, weight)));
  const from = rows[Math.floor(place / columns.length)];
  return `${from} → ${columns[place % columns.length]} (${percent(map[place])})`;
}

function overviewTable(layers, sides) {
  const rows = layers.flatMap(({ name, kind, weights }) => {
    const [queries, keys] = sidesOf(sides, kind).map(namesOf);
    return weights.map((map, index) => [headName(name, index), strongest(map, queries, keys)]);
  });
  return { columns: [say("head"), say("strongest")], rows };
}

/** Write what is shown as the server writes it. */
function overviewData(maps, layers, sides) {
  const tokens = Object.entries(sides).map(([side, units]) => [side, tokensOf(units)]);
  const written = layers.map(({ weights, ...layer }) => {
    return { ...layer, maps: weights.map(writeMap) };
  });
  return { ...maps, ...Object.fromEntries(tokens), layers: written };
}

/** Size thumbnails so that three kinds of attention, or two, stand side by side if they can. */
function thumbSize(width, heads) {
  const fitting = [3, 2, 1].map((blocks) => Math.floor((width / blocks - 20) / heads) - 16);
  return Math.max(SMALL, Math.min(LARGE, fitting.find((size) => size >= SMALL) ?? 0));
}

function drawOverview(maps, view, width) {
  const sides = shownSides(maps, view);
  const layers = shownMaps(maps, sides);
  const most = Math.max(...layers.map(({ weights }) => weights.length));
  const size = thumbSize(width, most);
  const kinds = Map.groupBy(layers, ({ kind }) => kind);
  const blocks = [...kinds.values()].map((group) => {
    return make("div", {}, group.map((one) => layerRow(one, view, size)));
  });
  const drawing = make("div", { class: "kinds" }, blocks);
  makeRoam(drawing, (key) => {
    const [, name, index] = /^(.+)\.(\d+)$/.exec(key);
    change({ layer: name, head: index });
  });
  const pictures = layers.map(({ name, weights, rows, columns }) => {
    const row = new Picture();
    weights.forEach((map, index) => {
      row.place(index * (size + 10), 0, thumbnail(map, rows, columns, size));
    });
    return { title: layerName(name), picture: row };
  });
  return {
    name: "overview",
    title: say("allHeads"),
    note: say("overviewNote"),
    drawing,
    picture: stack(pictures),
    table: overviewTable(layers, sides),
    data: overviewData(maps, layers, sides),
  };
}

/** Arrange one head's exact weights: names, rows of numbers, and which cells are masked. */
function arrange({ exact, maps }, view) {
  const kind = view.layer.replace(/\.\d+\./, ".");
  const [queries, keys] = sidesOf(shownSides(maps, view), kind);
  const shown = (values) => between(values.flat(), exact.columns.length, queries, keys);
  const masked = shown(exact.mask.map((row) => row.map(Number))).map((seen) => seen === 0);
  // Where a whole word is masked, its first token has the reason.
  const reasons = queries.flatMap(({ places: [row] }) => {
    return keys.map(({ places: [column] }) => exact.reasons[row][column]);
  });
  const query = queries.findIndex(({ places }) => places.includes(Number.parseInt(view.query, 10)));
  const chosen = query < 0 ? null : query;
  const [rowAxis, columnAxis] = exact.axes.map(sayPhrase);
  const names = { rows: namesOf(queries), columns: namesOf(keys), rowAxis, columnAxis };
  return { ...names, weights: shown(exact.weights), masked, reasons, chosen, queries, keys };
}

/** Write one head, as it is shown, as the server writes it. */
function headData(exact, { queries, keys, weights, masked, reasons }) {
  const inRows = (values) => {
    return queries.map((_, row) => values.slice(row * keys.length, (row + 1) * keys.length));
  };
  const rows = inRows(weights);
  return {
    ...exact,
    rows: tokensOf(queries).pieces,
    columns: tokensOf(keys).pieces,
    weights: rows,
    mask: inRows(masked.map((hidden) => !hidden)),
    reasons: inRows(reasons),
    entropy: rows.map(rowEntropy),
  };
}

function tellCell(matrix, row, column) {
  if (row === null) return say("pointAt");
  const place = row * matrix.columns.length + column;
  const values = { row: matrix.rows[row], column: matrix.columns[column] };
  if (matrix.masked[place]) {
    return say("maskedCell", { ...values, reason: sayPhrase(matrix.reasons[place]) });
  }
  return say("weightCell", { ...values, weight: matrix.weights[place].toFixed(6) });
}

function drawHead({ exact, maps }, view, width) {
  const matrix = arrange({ exact, maps }, view);
  const title = headName(exact.layer, exact.head);
  const toggle = (row) => {
    change({ query: row === matrix.chosen ? null : matrix.queries[row].places[0] });
  };
  const words = { key: "matrix", label: title, tell: (...cell) => tellCell(matrix, ...cell) };
  const pick = (key) => toggle(Number(key));
  const large = liveMatrix(matrix, width, { ...words, pick: toggle });
  const lines = view.as === "lines" ? linesPicture(matrix, width) : null;
  const columns = [say("query"), ...matrix.columns, say("entropy")];
  const data = headData(exact, matrix);
  const rows = matrix.rows.map((name, row) => {
    return [name, ...[...data.weights[row], data.entropy[row]].map((one) => decimal(one, 4))];
  });
  return {
    name: "head",
    title,
    note: say(lines ? "linesNote" : "matrixNote"),
    drawing: lines ? scrolling(drawLive(lines, title, pick)) : large.element,
    picture: lines ?? large.picture,
    table: { columns, rows },
    data,
  };
}

function rowEntropy(weights) {
  return weights.reduce((sum, weight) => sum - (weight > 0 ? weight * Math.log(weight) : 0), 0);
}

function drawGold({ gold, gold_words: names }, width) {
  const { source: columns, target: rows } = names;
  const weights = new Array(rows.length * columns.length).fill(0);
  for (const [from, to] of gold) weights[to * columns.length + from] = 1;
  const axes = { rowAxis: say("target"), columnAxis: say("source") };
  const { picture } = matrixPicture({ rows, columns, weights, unnumbered: true, ...axes }, width);
  const title = say("gold");
  const links = gold.map(([from, to]) => [rows[to], columns[from]]);
  return {
    name: "gold",
    title,
    note: say("goldNote"),
    drawing: scrolling(drawLive(picture, title)),
    picture,
    table: { columns: [say("target"), say("source")], rows: links },
    data: { gold, gold_words: names },
  };
}

function draw({ answers, view, width, figure }) {
  const { maps, exact } = answers;
  const overview = drawOverview(maps, view, width);
  if (maps.gold === null) return [overview, drawHead(answers, view, width)];
  const beside = width > 850 && exact.columns.length <= MOST_BESIDE;
  const half = beside ? (width - 72) / 2 : width;
  const pair = [drawHead(answers, view, half), drawGold(maps, half)].map(figure);
  return [overview, make("div", { class: beside ? "pair" : "" }, pair)];
}

const betweenTokens = {
  controls: [layer, head, way, unit, bare],
  lacks: ({ maps }) => (maps.length === 0 ? "noMaps" : null),
  fetch,
  draw,
};

export const attention = {
  name: "attention",
  ...betweenTokens,
  others: {
    continuation: betweenTokens,
    blanks: betweenTokens,
    label: betweenTokens,
    picture: pictureAttention,
  },
};
