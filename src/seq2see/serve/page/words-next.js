// Words of a language model: each token given those before it, and how the text goes on.

import { lookOf } from "./look.js";
import { decimal, percent } from "./numbers.js";
import { stack } from "./picture.js";
import { drawStep } from "./steps.js";
import { drawLive } from "./svg.js";
import { labelsOf, tokenRow } from "./tokens.js";
import { change } from "./view.js";
import { say } from "./words.js";

function drawText(answers, { width, chosen, language }) {
  const { tokens, given, steps, log_probability: log } = answers;
  const labels = labelsOf(tokens.pieces, tokens.special);
  const chips = steps.map(({ probability }, index) => ({
    text: labels[index],
    shade: probability,
    note: percent(probability),
    soft: tokens.special[index],
    key: String(index),
    label: say("stepLabel", { token: labels[index], probability: percent(probability) }),
    pressed: index === chosen,
  }));
  const picture = stack([
    { title: say("givenText"), picture: tokenRow(chips.slice(0, given), width, language) },
    { title: say("goesOn"), picture: tokenRow(chips.slice(given), width, language) },
  ], 24);
  const title = say("tokenByToken");
  const rows = steps.map(({ probability }, index) => [
    labels[index], say(index < given ? "givenText" : "goesOn"), decimal(probability, 6),
  ]);
  return {
    name: "next",
    title,
    note: say("nextNote", { log: decimal(log, 3) }),
    picture,
    drawing: drawLive(picture, title, (key) => change({ word: key })),
    table: { columns: [say("piece"), say("part"), say("probability")], rows },
    data: answers,
  };
}

function draw({ answers, view, model, width }) {
  const last = answers.steps.length - 1;
  // The token after the text, until one is chosen.
  const wanted = Number.parseInt(view.word ?? answers.given, 10) || 0;
  const chosen = Math.max(0, Math.min(last, wanted));
  const text = drawText(answers, { width, chosen, language: model.target });
  return [text, drawStep(answers, width, chosen)];
}

export const continuation = {
  controls: [],
  fetch: (get, view, model) => get("next", lookOf(view, model)),
  draw,
};
