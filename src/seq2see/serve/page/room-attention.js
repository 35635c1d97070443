// Attention: every head at a glance, and one of them large, with its numbers.

import { drawCanvas } from "./canvas.js";
import { Check, Choice, headChoice, layerChoice } from "./controls.js";
import { make } from "./elements.js";
import { scrolling } from "./figure.js";
import { lookOf } from "./look.js";
import { crop, readMap } from "./maps.js";
import { linesPicture, liveMatrix, matrixPicture } from "./matrix.js";
import { decimal, headName, layerName, percent } from "./numbers.js";
import { sayPhrase } from "./phrases.js";
import { Picture, stack } from "./picture.js";
import { makeRoam } from "./roam.js";
import { drawLive } from "./svg.js";
import { labelsOf } from "./tokens.js";
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
const bare = new Check("bare", "hideSpecial");

async function fetch(get, view, model) {
  const look = lookOf(view, model);
  const maps = await get("attention", look);
  const place = { layer: view.layer, head: Number(view.head) };
  return { maps, exact: await get("head", { ...look, ...place }) };
}

/** Return the tokens of a layer's query and key positions. */
function sidesOf(maps, kind) {
  if (kind === "encoder.self") return [maps.source, maps.source];
  return kind === "decoder.self" ? [maps.input, maps.input] : [maps.target, maps.source];
}

function thumbnail(weights, rows, columns, size) {
  const cell = size / Math.max(rows, columns);
  const picture = new Picture(size, size);
  picture.cells(0, 0, columns, weights, cell, cell);
  picture.rect(0, 0, columns * cell, rows * cell, { stroke: "line" });
  return picture;
}

/** Crop every head's map to the tokens that are shown. */
function shownMaps(maps, hide) {
  return maps.layers.map(({ name, kind, maps: heads }) => {
    const [rows, columns] = sidesOf(maps, kind).map(({ special }) => {
      return special.map((one) => !(hide && one));
    });
    const weights = heads.map((map) => crop(readMap(map), rows, columns));
    const [down, across] = [rows, columns].map((kept) => kept.filter(Boolean).length);
    return { name, kind, weights, down, across };
  });
}

function layerRow({ name, weights, down, across }, view, size) {
  const buttons = weights.map((map, index) => {
    const chosen = name === view.layer && String(index) === view.head;
    const attributes = {
      type: "button",
      class: "thumb",
      "data-key": `${name}.${index}`,
      "aria-pressed": String(chosen),
      "aria-label": headName(name, index),
    };
    const canvas = drawCanvas(thumbnail(map, down, across, size));
    return make("button", attributes, canvas, make("span", {}, String(index + 1)));
  });
  return [make("h3", {}, layerName(name)), make("div", { class: "thumbs" }, buttons)];
}

function strongest(map, { across }, rows, columns) {
  const place = map.indexOf(map.reduce((most, weight) => Math.max(most, weight)));
  const from = rows[Math.floor(place / across)];
  return `${from} → ${columns[place % across]} (${percent(map[place])})`;
}

function overviewTable(maps, layers, view) {
  const names = [say("head"), say("strongest")];
  const rows = layers.flatMap((one) => {
    const [queries, keys] = sidesOf(maps, one.kind).map((tokens) => shownLabels(tokens, view));
    return one.weights.map((map, index) => {
      return [headName(one.name, index), strongest(map, one, queries, keys)];
    });
  });
  return { columns: names, rows };
}

function shownLabels({ pieces, special }, { bare: hide }) {
  return labelsOf(pieces, special).filter((_, index) => !(hide && special[index]));
}

/** Size thumbnails so that three kinds of attention, or two, stand side by side if they can. */
function thumbSize(width, heads) {
  const fitting = [3, 2, 1].map((blocks) => Math.floor((width / blocks - 20) / heads) - 16);
  return Math.max(SMALL, Math.min(LARGE, fitting.find((size) => size >= SMALL) ?? 0));
}

function drawOverview(maps, view, width) {
  const layers = shownMaps(maps, view.bare);
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
  const rows = layers.map(({ name, weights, down, across }) => {
    const row = new Picture();
    weights.forEach((map, index) => {
      row.place(index * (size + 10), 0, thumbnail(map, down, across, size));
    });
    return { title: layerName(name), picture: row };
  });
  return {
    name: "overview",
    title: say("allHeads"),
    note: say("overviewNote"),
    drawing,
    picture: stack(rows),
    table: overviewTable(maps, layers, view),
    data: maps,
  };
}

/** Arrange one head's exact weights: labels, rows of numbers, and which cells are masked. */
function arrange({ exact, maps }, view) {
  const kind = view.layer.replace(/\.\d+\./, ".");
  const [queries, keys] = sidesOf(maps, kind);
  const kept = [queries, keys].map(({ special }) => special.map((one) => !(view.bare && one)));
  const rows = shownLabels(queries, view);
  const columns = shownLabels(keys, view);
  const weights = crop(exact.weights.flat(), ...kept);
  const masked = crop(exact.mask.flat().map((may) => !may), ...kept);
  const reasons = crop(exact.reasons.flat(), ...kept);
  const query = Number.parseInt(view.query, 10);
  const chosen = query >= 0 && query < rows.length ? query : null;
  const [rowAxis, columnAxis] = exact.axes.map(sayPhrase);
  return { rows, columns, weights, masked, reasons, chosen, rowAxis, columnAxis };
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
  const toggle = (row) => change({ query: row === matrix.chosen ? null : row });
  const words = { key: "matrix", label: title, tell: (...cell) => tellCell(matrix, ...cell) };
  const pick = (key) => toggle(Number(key));
  const large = liveMatrix(matrix, width, { ...words, pick: toggle });
  const lines = view.as === "lines" ? linesPicture(matrix, width) : null;
  const columns = [say("query"), ...matrix.columns, say("entropy")];
  const rows = matrix.rows.map((name, row) => {
    const from = row * matrix.columns.length;
    const weights = matrix.weights.slice(from, from + matrix.columns.length);
    return [name, ...weights.map((one) => decimal(one, 4)), decimal(rowEntropy(weights), 4)];
  });
  return {
    name: "head",
    title,
    note: say(lines ? "linesNote" : "matrixNote"),
    drawing: lines ? scrolling(drawLive(lines, title, pick)) : large.element,
    picture: lines ?? large.picture,
    table: { columns, rows },
    data: exact,
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

export const attention = {
  name: "attention",
  controls: [layer, head, way, bare],
  lacks: ({ maps }) => (maps.length === 0 ? "noMaps" : null),
  fetch,
  draw,
};
