// Words of a masked model: the likeliest ones in each blank.

import { barsPicture } from "./bars.js";
import { isolate } from "./directions.js";
import { make } from "./elements.js";
import { lookOf } from "./look.js";
import { decimal, percent } from "./numbers.js";
import { stack } from "./picture.js";
import { drawLive } from "./svg.js";
import { labelsOf, tokenRow } from "./tokens.js";
import { change } from "./view.js";
import { say } from "./words.js";

function chipsOf({ tokens, blanks }, chosen) {
  const labels = labelsOf(tokens.pieces, tokens.special);
  const chips = labels.map((text, index) => ({ text, soft: tokens.special[index] }));
  blanks.forEach(({ place, top: [best] }, index) => {
    const token = labelsOf([best.token])[0];
    const words = { blank: index + 1, token, probability: percent(best.probability) };
    chips[place] = {
      text: token,
      shade: best.probability,
      note: percent(best.probability),
      key: String(index),
      label: say("blankLabel", words),
      pressed: index === chosen,
    };
  });
  return chips;
}

function drawBlank(answers, { width, chosen, language }) {
  const { blanks } = answers;
  const bars = blanks[chosen].top.map(({ token, probability }) => ({
    label: labelsOf([token])[0],
    share: probability,
    value: percent(probability),
  }));
  const title = say("filled");
  const picture = stack([
    { picture: tokenRow(chipsOf(answers, chosen), width, language) },
    { title: say("blankNumber", { blank: chosen + 1 }), picture: barsPicture(bars, width) },
  ], 24);
  const rows = blanks.map(({ top }, index) => [
    say("blankNumber", { blank: index + 1 }),
    ...top.map(({ token, probability }) => `${isolate(token)} ${decimal(probability, 6)}`),
  ]);
  const columns = [say("blank"), ...blanks[0].top.map((_, rank) => say("rank", { rank: rank + 1 }))];
  return {
    name: "blanks",
    title,
    note: say("blanksNote"),
    picture,
    drawing: drawLive(picture, title, (key) => change({ word: key })),
    table: { columns, rows },
    data: answers,
  };
}

function draw({ answers, view, model, width }) {
  const { blanks } = answers;
  if (blanks.length === 0) return [make("p", { class: "plain" }, say("noBlank"))];
  const wanted = Number.parseInt(view.word, 10) || 0;
  const chosen = Math.max(0, Math.min(blanks.length - 1, wanted));
  return [drawBlank(answers, { width, chosen, language: model.target })];
}

export const blanks = {
  controls: [],
  fetch: (get, view, model) => get("blanks", lookOf(view, model)),
  draw,
};
