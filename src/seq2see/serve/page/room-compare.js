// Compare: two models on one sentence.

import { barsPicture } from "./bars.js";
import { Choice } from "./controls.js";
import { drawDifference } from "./differences.js";
import { make } from "./elements.js";
import { lookOf } from "./look.js";
import { meanMap } from "./maps.js";
import { decimal, percent, whole } from "./numbers.js";
import { drawTokenMap } from "./token-map.js";
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
    table: { columns: columns.map((key) => say(key)), rows },
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
  const numbers = steps.steps.map((one) => [
    one.token,
    decimal(one.probability, 6),
    decimal(one.log_probability, 4),
    decimal(one.entropy, 4),
  ]);
  const table = { columns, rows: numbers };
  const drawing = drawLive(picture, title);
  return { name: `steps-${index}`, title, picture, drawing, table, data: steps };
}

function drawCross({ model, maps }, index, width) {
  const last = maps.layers.filter(({ kind }) => kind === "decoder.cross").at(-1);
  const figure = {
    name: `cross-${index}`,
    title: say("crossOf", { model: model.name }),
    note: say("crossNote"),
    queries: maps.target.pieces,
    keys: maps.source.pieces,
    weights: meanMap(last),
    data: { source: maps.source, target: maps.target, layer: last },
  };
  return drawTokenMap(figure, width);
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
