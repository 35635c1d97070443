// The distribution behind each predicted token.

import { barsPicture } from "./bars.js";
import { isolate } from "./directions.js";
import { decimal, percent } from "./numbers.js";
import { drawLive } from "./svg.js";
import { labelsOf } from "./tokens.js";
import { say } from "./words.js";

/** Draw the distribution behind a token; the table has those of all. */
export function drawStep({ steps }, width, chosen) {
  const step = steps[chosen];
  const { token, probability, log_probability: log, entropy } = step;
  const [shownToken] = labelsOf([token]);
  const values = { probability: percent(probability), log: decimal(log, 3) };
  const rows = step.top.map((one) => ({
    label: labelsOf([one.token])[0],
    share: one.probability,
    value: percent(one.probability),
    strong: one.token === token,
  }));
  const picture = barsPicture(rows, width);
  const title = say("instead", { token: shownToken });
  const columns = ["piece", "probability", "logProbability", "entropy"].map((key) => say(key));
  const table = {
    caption: say("steps"),
    columns: [...columns, say("topFive")],
    rows: steps.map((one) => [
      one.token,
      decimal(one.probability, 6),
      decimal(one.log_probability, 4),
      decimal(one.entropy, 4),
      one.top.map((other) => `${isolate(other.token)} ${decimal(other.probability, 4)}`).join(" · "),
    ]),
  };
  return {
    name: "step",
    title,
    note: say("stepNote", { ...values, entropy: decimal(entropy, 3) }),
    picture,
    drawing: drawLive(picture, title),
    table,
    data: step,
  };
}
