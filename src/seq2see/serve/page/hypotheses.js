// Finished translations beside one another, best first.

import { barsPicture } from "./bars.js";
import { decimal } from "./numbers.js";
import { drawLive } from "./svg.js";
import { say } from "./words.js";

/** Draw translations as bars: how likely each is against the best, by score. */
export function drawHypotheses(name, title, hypotheses, width) {
  const best = Math.max(...hypotheses.map(({ score }) => score));
  const rows = hypotheses.map(({ text, score }) => ({
    label: text,
    share: Math.exp(score - best),
    value: decimal(score, 3),
  }));
  const picture = barsPicture(rows, width);
  const table = {
    columns: [say("translation"), say("logProbability"), say("scoreShort")],
    rows: hypotheses.map(({ text, log_probability: log, score }) => {
      return [text, decimal(log, 4), decimal(score, 4)];
    }),
  };
  return {
    name,
    title,
    note: say("nBestNote"),
    picture,
    drawing: drawLive(picture, title),
    table,
    data: hypotheses,
  };
}
