// Attention over a picture: the share of each patch in every head, and the rollout of all layers.

import { drawCanvas } from "./canvas.js";
import { headChoice, layerChoice } from "./controls.js";
import { make } from "./elements.js";
import { liveMatrix } from "./matrix.js";
import { headName, layerName, percent } from "./numbers.js";
import { Picture, stack } from "./picture.js";
import { makeRoam } from "./roam.js";
import { change } from "./view.js";
import { fetchPicture, inputPicture } from "./words-classes.js";
import { say } from "./words.js";

const SMALL = 56; // pixels of a thumbnail
const LARGE = 320; // of a head
const STRONGEST = 0.75; // the picture stays visible below
const FADED = 0.4; // its opacity there

/** Scale shares to the largest of them, as one list. */
function scaled(shares) {
  const most = Math.max(...shares.flat()) || 1; // all are 0 where every patch was pruned
  return shares.flat().map((share) => share / most);
}

function thumbnail(shares) {
  const columns = shares[0].length;
  const cell = SMALL / Math.max(shares.length, columns);
  const drawn = new Picture(SMALL, SMALL);
  drawn.cells(0, 0, columns, scaled(shares), cell, cell);
  drawn.rect(0, 0, columns * cell, shares.length * cell, { stroke: "line" });
  return drawn;
}

/** Name the patch with the largest share. */
function strongest(shares) {
  const all = shares.flat();
  const most = Math.max(...all);
  const place = all.indexOf(most);
  const columns = shares[0].length;
  return `${patchAt(Math.floor(place / columns), place % columns)} (${percent(most)})`;
}

function patchAt(row, column) {
  return say("patchAt", { row: row + 1, column: column + 1 });
}

function layerRow({ name, heads }, view) {
  const buttons = heads.map((shares, index) => {
    const attributes = {
      type: "button",
      class: "thumb",
      "data-key": `${name}.${index}`,
      "aria-pressed": String(name === view.layer && String(index) === view.head),
      "aria-label": headName(name, index),
    };
    const canvas = drawCanvas(thumbnail(shares));
    return make("button", attributes, canvas, make("span", {}, String(index + 1)));
  });
  return make("div", {}, make("h3", {}, layerName(name)), make("div", { class: "thumbs" }, buttons));
}

function drawOverview({ layers }, view) {
  const drawing = make("div", { class: "kinds" }, layers.map((layer) => layerRow(layer, view)));
  makeRoam(drawing, (key) => {
    const [, layer, head] = /^(.+)\.(\d+)$/.exec(key);
    change({ layer, head });
  });
  const pictures = layers.map(({ name, heads }) => {
    const row = new Picture();
    heads.forEach((shares, index) => row.place(index * (SMALL + 10), 0, thumbnail(shares)));
    return { title: layerName(name), picture: row };
  });
  const rows = layers.flatMap(({ name, heads }) => {
    return heads.map((shares, index) => [headName(name, index), strongest(shares)]);
  });
  return {
    name: "overview",
    title: say("allHeads"),
    note: say("patchesNote"),
    drawing,
    picture: stack(pictures),
    table: { columns: [say("head"), say("strongest")], rows },
    data: layers,
  };
}

/** Draw the shares of the patches on the picture; the arrow keys read single patches. */
function drawShares(answers, { name, title, note, shares }, width) {
  const [rows, columns] = answers.grid.map((count) => {
    return Array.from({ length: count }, (_, index) => String(index + 1));
  });
  const largest = Math.floor(LARGE / Math.max(rows.length, columns.length));
  const tell = (row, column) => {
    if (row === null) return say("pointAt");
    return `${patchAt(row, column)}: ${percent(shares[row][column])}`;
  };
  const matrix = {
    rows,
    columns,
    weights: scaled(shares).map((share) => STRONGEST * share),
    unnumbered: true,
    largest,
    under: (cell) => inputPicture(answers, cell * Math.max(rows.length, columns.length), FADED),
    rowAxis: say("patchRow"),
    columnAxis: say("patchColumn"),
  };
  const words = { key: name, label: title, tell, pick: () => {} };
  const { element, picture } = liveMatrix(matrix, width, words);
  const numbers = shares.map((row, index) => {
    return [String(index + 1), ...row.map((share) => share.toFixed(6))];
  });
  const table = { columns: [say("patchRow"), ...columns], rows: numbers };
  return { name, title, note, drawing: element, picture, table, data: shares };
}

function draw({ answers, view, width, figure }) {
  const layer = answers.layers.find(({ name }) => name === view.layer);
  const beside = width > 850;
  const half = beside ? (width - 72) / 2 : width;
  const head = {
    name: "head",
    title: headName(view.layer, view.head),
    note: say(answers.class_token ? "classTokenNote" : "meanPatchNote"),
    shares: layer.heads[Number(view.head)],
  };
  const rollout = {
    name: "rollout",
    title: say("rollout"),
    note: say("rolloutNote"),
    shares: answers.rollout,
  };
  const pair = [head, rollout].map((one) => figure(drawShares(answers, one, half)));
  return [drawOverview(answers, view), make("div", { class: beside ? "pair" : "" }, pair)];
}

export const pictureAttention = {
  picture: true,
  controls: [layerChoice(), headChoice()],
  fetch: fetchPicture,
  draw,
};
