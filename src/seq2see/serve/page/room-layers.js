// Layers: what the model would have said after each decoder layer.

import { STRONGEST, textOn } from "./colours.js";
import { make } from "./elements.js";
import { scrolling } from "./figure.js";
import { lookOf } from "./look.js";
import { decimal, percent } from "./numbers.js";
import { Picture, shorten } from "./picture.js";
import { drawLive } from "./svg.js";
import { labelsOf } from "./tokens.js";
import { change } from "./view.js";
import { keyFor, say } from "./words.js";

const HIGH = 46;
const NARROWEST = 78;
const WIDEST = 120;
const SIDE = 84; // for the names of the layers

function cell(step, { label, chosen, wide }) {
  const picture = new Picture(wide, HIGH);
  const settled = step.final_rank === 1;
  const shade = { fill: "more", opacity: STRONGEST * step.probability, radius: 6 };
  picture.rect(2, 2, wide - 4, HIGH - 4, shade);
  const outline = { stroke: chosen ? "accent" : "line", thickness: chosen ? 3 : 1, radius: 6 };
  picture.rect(2, 2, wide - 4, HIGH - 4, outline);
  const fill = textOn(step.probability);
  const weight = settled ? 700 : 400;
  const text = shorten(label, wide - 14, 14, weight);
  picture.text(wide / 2, 20, text, { fill, size: 14, weight, anchor: "middle" });
  const rank = say("rank", { rank: step.final_rank });
  const below = settled ? `✓ ${percent(step.probability)}` : rank;
  picture.text(wide / 2, 36, below, { fill, size: 11.5, anchor: "middle" });
  return picture;
}

function gridPicture({ layers }, { labels, chosen, width, model }) {
  const picture = new Picture();
  const fitting = Math.floor((width - SIDE) / labels.length);
  const wide = Math.max(NARROWEST, Math.min(WIDEST, fitting));
  const foot = layers.length * HIGH;
  layers.toReversed().forEach(({ layer, steps }, row) => {
    const name = say("layerNumber", { layer: layer + 1 });
    picture.text(0, row * HIGH + 27, name, { fill: "ink", weight: 600 });
    const tokens = labelsOf(steps.map(({ token }) => token));
    steps.forEach((step, column) => {
      const key = `${layer}.${column}`;
      const words = { layer: layer + 1, token: tokens[column], rank: step.final_rank };
      const said = say(keyFor("layerCell", model), { ...words, probability: percent(step.probability) });
      const drawn = cell(step, { label: tokens[column], chosen: key === chosen, wide });
      const keyed = { key, label: said, pressed: key === chosen };
      picture.place(SIDE + column * wide, row * HIGH, drawn, keyed);
    });
  });
  picture.text(0, foot + 22, say(keyFor("said", model)), { fill: "soft", size: 13 });
  labels.forEach((label, column) => {
    const look = { fill: "ink", weight: 600, anchor: "middle" };
    const text = shorten(label, wide - 8, 14, 600);
    picture.text(SIDE + (column + 0.5) * wide, foot + 22, text, look);
  });
  picture.height = foot + 34;
  return picture;
}

function tell({ layers }, { labels, chosen, model }) {
  const [layer, column] = chosen.split(".").map(Number);
  const step = layers[layer].steps[column];
  const [token] = labelsOf([step.token]);
  return say(keyFor("layerSaid", model), {
    layer: layer + 1,
    token,
    probability: percent(step.probability),
    final: labels[column],
    rank: step.final_rank,
    chance: percent(step.final_probability),
  });
}

function draw({ answers, view, model, width }) {
  const { layers, target } = answers;
  const labels = labelsOf(target.pieces, target.special);
  const cells = layers.flatMap(({ layer, steps }) => {
    return steps.map((_, column) => `${layer}.${column}`);
  });
  const chosen = cells.includes(view.cell) ? view.cell : "0.0";
  const picture = gridPicture(answers, { labels, chosen, width, model });
  const title = say("layerByLayer");
  const rows = layers.flatMap(({ layer, steps }) =>
    steps.map((step, column) => [
      String(layer + 1),
      labels[column],
      step.token,
      decimal(step.probability, 6),
      String(step.final_rank),
      decimal(step.final_probability, 6),
    ]),
  );
  const keys = ["layer", "finalToken", "piece", "probability", "finalRank", "finalProbability"];
  const grid = drawLive(picture, title, (key) => change({ cell: key }));
  const place = { labels, chosen, model };
  const said = make("p", { class: "readout", role: "status" }, tell(answers, place));
  const drawing = make("div", {}, scrolling(grid), said);
  const table = { columns: keys.map((key) => say(keyFor(key, model))), rows };
  const note = say(keyFor("layersNote", model));
  return [{ name: "layers", title, note, picture, drawing, table, data: answers }];
}

const decoding = {
  controls: [],
  fetch: (get, view, model) => get("layers", lookOf(view, model)),
  draw,
};

export const layers = { name: "layers", ...decoding, others: { continuation: decoding } };
