// Compare: two models on one sentence.

import { barsPicture } from "./bars.js";
import { Choice } from "./controls.js";
import { drawDifference } from "./differences.js";
import { make, makeTable } from "./elements.js";
import { lookOf } from "./look.js";
import { meanMap } from "./maps.js";
import { liveMatrix } from "./matrix.js";
import { decimal, percent, whole } from "./numbers.js";
import { drawLive } from "./svg.js";
import { labelsOf } from "./tokens.js";
import { say } from "./words.js";

/** The other models of the same languages that can be looked into. */
function othersOf(model, models) {
  return models.filter((one) => {
    const same = one.source === model.source && one.target === model.target;
    return same && one.available && one.name !== model.name;
  });
}

const other = new Choice("other", "otherModel", (model, _, models) => {
  return othersOf(model, models).map(({ name }) => [name, name]);
});

async function fetchOne(get, look, model) {
  const steps = await get("translate", { ...look, n_best: 1 });
  const cross = model.maps.some(({ kind }) => kind === "decoder.cross");
  return { model, steps, maps: cross ? await get("attention", look) : null };
}

async function fetch(get, view, model, models) {
  const second = models.find(({ name }) => name === view.other);
  const look = { ...lookOf(view, model), off: [] };
  return [
    await fetchOne(get, look, model),
    await fetchOne(get, { ...lookOf(view, second), off: [] }, second),
  ];
}

function drawTexts(sides, width) {
  const [first] = sides;
  const title = say("translations");
  const columns = ["model", "translation", "logProbability", "scoreShort", "parameters"];
  const rows = sides.map(({ model, steps }) => [
    model.name,
    steps.text,
    decimal(steps.log_probability, 4),
    decimal(steps.score, 4),
    whole(model.parameters),
  ]);
  return drawDifference({
    name: "translations",
    title,
    note: say("compareNote"),
    texts: sides.map(({ model, steps }) => ({
      title: `${model.name}: ${decimal(steps.log_probability, 3)}`,
      text: steps.text,
    })),
    code: first.model.target,
    width,
    tables: [makeTable(title, columns.map((key) => say(key)), rows)],
    data: sides.map(({ steps }) => steps),
  });
}

function drawSteps({ model, steps }, index, width) {
  const labels = labelsOf(steps.steps.map(({ token }) => token));
  const rows = steps.steps.map(({ probability }, step) => {
    return { label: labels[step], share: probability, value: percent(probability) };
  });
  const picture = barsPicture(rows, width);
  const title = say("stepsOf", { model: model.name });
  const columns = ["piece", "probability", "logProbability", "entropy"].map((key) => say(key));
  const table = makeTable(title, columns, steps.steps.map((one) => [
    one.token,
    decimal(one.probability, 6),
    decimal(one.log_probability, 4),
    decimal(one.entropy, 4),
  ]));
  const drawing = drawLive(picture, title);
  return { name: `steps-${index}`, title, picture, drawing, tables: [table], data: steps };
}

function drawCross({ model, maps }, index, width) {
  const last = maps.layers.filter(({ kind }) => kind === "decoder.cross").at(-1);
  const matrix = {
    rows: labelsOf(maps.target.pieces, maps.target.special),
    columns: labelsOf(maps.source.pieces, maps.source.special),
    weights: meanMap(last),
    rowAxis: say("queryPosition"),
    columnAxis: say("keyPosition"),
  };
  const title = say("crossOf", { model: model.name });
  const tell = (row, column) => {
    if (row === null) return say("pointAt");
    const weight = matrix.weights[row * matrix.columns.length + column].toFixed(3);
    return say("weightCell", { row: matrix.rows[row], column: matrix.columns[column], weight });
  };
  const words = { key: "cross", label: title, tell, pick: () => {} };
  const { element, picture } = liveMatrix(matrix, width, words);
  const rows = matrix.rows.map((name, row) => [
    name,
    ...matrix.columns.map((_, column) => decimal(matrix.weights[row * last.columns + column], 3)),
  ]);
  const tables = [makeTable(title, [say("query"), ...matrix.columns], rows)];
  const data = { source: maps.source, target: maps.target, layer: last };
  return { name: `cross-${index}`, title, note: say("crossNote"), picture, drawing: element, tables, data };
}

function draw({ answers: sides, width, figure }) {
  const half = width > 850 ? (width - 72) / 2 : width;
  const pairs = [sides.map((side, index) => drawSteps(side, index, half))];
  if (sides.every(({ maps }) => maps !== null)) {
    pairs.push(sides.map((side, index) => drawCross(side, index, half)));
  }
  const rows = pairs.map((pair) => make("div", { class: "pair" }, pair.map(figure)));
  return [drawTexts(sides, width), ...rows];
}

export const compare = {
  name: "compare",
  controls: [other],
  lacks: (model, models) => (othersOf(model, models).length === 0 ? "noOther" : null),
  fetch,
  draw,
};
