// Training: the same sentence at every checkpoint, and a head as it formed.

import { coursePicture } from "./bars.js";
import { Slider, headChoice, layerChoice } from "./controls.js";
import { make } from "./elements.js";
import { lookOf } from "./look.js";
import { readMap } from "./maps.js";
import { decimal, headName } from "./numbers.js";
import { drawTokenMap } from "./token-map.js";
import { stack } from "./picture.js";
import { drawLive } from "./svg.js";
import { say } from "./words.js";

const update = new Slider("update", "checkpoint", ({ checkpoints }) => checkpoints);

async function fetch(get, view, model) {
  const look = lookOf(view, model);
  const place = { layer: view.layer, head: Number(view.head) };
  return get("training", { ...look, ...place });
}

/** Find the checkpoint that is nearest to an update; the server shows no more than a dozen. */
function nearest(checkpoints, wanted) {
  const distances = checkpoints.map((one) => Math.abs(one.update - wanted));
  return distances.indexOf(Math.min(...distances));
}

function drawCourse(checkpoints, chosen, width, model) {
  const last = checkpoints.at(-1).update;
  const first = checkpoints[0].update;
  const places = checkpoints.map((one) => (one.update - first) / (last - first || 1));
  const ends = { from: say("atUpdate", { update: first }), to: say("atUpdate", { update: last }) };
  const course = (key) => {
    const values = checkpoints.map((one) => one[key]);
    return coursePicture({ places, values, chosen, ...ends }, width);
  };
  const now = checkpoints[chosen];
  const picture = stack([
    { title: `${say("logProbability")}: ${decimal(now.log_probability, 3)}`,
      picture: course("log_probability") },
    { title: `${say("entropyOfHead")}: ${decimal(now.entropy, 3)}`, picture: course("entropy") },
  ]);
  const title = say("atUpdate", { update: now.update });
  const columns = ["update", "translation", "logProbability", "entropyOfHead"];
  const rows = checkpoints.map((one) => [
    String(one.update), one.text, decimal(one.log_probability, 4), decimal(one.entropy, 4),
  ]);
  const text = make("p", { class: "translated", lang: model.target, dir: "auto" }, now.text);
  return {
    name: "course",
    title,
    note: say("courseNote"),
    picture,
    drawing: make("div", {}, text, drawLive(picture, title)),
    table: { columns: columns.map((key) => say(key)), rows },
    data: checkpoints,
  };
}

function drawMap(now, answers, view, width) {
  const figure = {
    name: "map",
    title: headName(view.layer, view.head),
    note: say("mapNote", { update: now.update }),
    queries: answers.row_tokens,
    keys: answers.column_tokens,
    weights: readMap(now.map),
    data: now,
  };
  return drawTokenMap(figure, width);
}

function draw({ answers, view, model, width }) {
  const { checkpoints } = answers;
  const chosen = nearest(checkpoints, Number(view.update));
  const figures = [
    drawCourse(checkpoints, chosen, width, model),
    drawMap(checkpoints[chosen], answers, view, width),
  ];
  if (checkpoints.length > 1) return figures;
  return [make("p", { class: "plain" }, say("onlyCheckpoint")), ...figures];
}

export const training = {
  name: "training",
  controls: [update, layerChoice(), headChoice()],
  lacks: ({ checkpoints }) => (checkpoints.length === 0 ? "noCheckpoints" : null),
  fetch,
  draw,
};
