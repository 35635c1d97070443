// Words: which source words made a target word, and what else the model might have said.

import { blanks } from "./words-blanks.js";
import { label, picture } from "./words-classes.js";
import { continuation } from "./words-next.js";
import { Choice } from "./controls.js";
import { drawHypotheses } from "./hypotheses.js";
import { beamOf, lookOf } from "./look.js";
import { decimal, percent } from "./numbers.js";
import { stack } from "./picture.js";
import { drawStep } from "./steps.js";
import { drawLive } from "./svg.js";
import { labelsOf, tokenRow } from "./tokens.js";
import { change } from "./view.js";
import { say, sayName } from "./words.js";

const MOST_OTHERS = 5;

const method = new Choice("method", "method", ({ methods }) => {
  return methods.map((name) => [name, sayName(`method.${name}`, name)]);
});

async function fetch(get, view, model) {
  const look = lookOf(view, model);
  const others = Math.min(beamOf(view, model), MOST_OTHERS);
  return {
    steps: await get("translate", { ...look, n_best: others }),
    scores: await get("attribution", { ...look, method: view.method }),
  };
}

function drawReasons({ steps, scores, view, model, width, chosen }) {
  const { source, target } = scores;
  const row = scores.values[chosen];
  const most = Math.max(...row.map(Math.abs)) || 1;
  const sourceLabels = labelsOf(source.pieces, source.special);
  const targetLabels = labelsOf(target.pieces, target.special);
  const sourceTokens = row.map((value, index) => ({
    text: sourceLabels[index],
    shade: value / most,
    note: decimal(value, 3),
    soft: source.special[index],
  }));
  const targetTokens = steps.steps.map(({ probability }, index) => ({
    text: targetLabels[index],
    note: percent(probability),
    soft: target.special[index],
    key: String(index),
    label: say("stepLabel", { token: targetLabels[index], probability: percent(probability) }),
    pressed: index === chosen,
  }));
  const picture = stack([
    { title: say("madeBy", { token: targetLabels[chosen] }),
      picture: tokenRow(sourceTokens, width, model.source) },
    { title: say("chooseTarget"),
      picture: tokenRow(targetTokens, width, model.target) },
  ], 24);
  const title = say("reasons");
  const table = {
    columns: [say("target"), ...sourceLabels],
    rows: scores.values.map((values, index) => {
      return [targetLabels[index], ...values.map((value) => decimal(value, 4))];
    }),
  };
  return {
    name: "words",
    title,
    note: sayName(`about.${view.method}`, ""),
    picture,
    drawing: drawLive(picture, title, (key) => change({ word: key })),
    table,
    data: { translation: steps, attribution: scores },
  };
}

function draw({ answers: { steps, scores }, view, model, width }) {
  const last = steps.steps.length - 1;
  const chosen = Math.max(0, Math.min(last, Number.parseInt(view.word, 10) || 0));
  return [
    drawReasons({ steps, scores, view, model, width, chosen }),
    drawStep(steps, width, chosen),
    drawHypotheses("n-best", say("nBest"), steps.hypotheses, width),
  ];
}

export const words = {
  name: "words",
  controls: [method],
  lacks: ({ methods }) => (methods.length === 0 ? "noMethods" : null),
  fetch,
  draw,
  others: { continuation, blanks, label, picture },
};
