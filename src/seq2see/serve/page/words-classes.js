// The classes of a text or a picture, with their probabilities.

import { barsPicture } from "./bars.js";
import { drawCanvas } from "./canvas.js";
import { lookOf } from "./look.js";
import { decimal, percent } from "./numbers.js";
import { Picture } from "./picture.js";
import { drawLive } from "./svg.js";
import { presentPicture } from "./upload.js";
import { say } from "./words.js";

const MOST_CLASSES = 12; // drawn; the table has all
const SIDE = 240; // pixels of a picture, at most

/** Ask for everything that is shown of the picture. */
export function fetchPicture(get, _, model) {
  return get("picture", { model: model.name, picture: presentPicture().content });
}

/** Draw a picture as the model reads it. */
export function inputPicture({ pixels }, side, opacity = 1) {
  const cell = side / Math.max(pixels.length, pixels[0].length);
  const drawn = new Picture(cell * pixels[0].length, cell * pixels.length);
  drawn.pixels(0, 0, pixels, cell, opacity);
  return drawn;
}

function drawClasses(answers, width) {
  const { classes } = answers;
  const rows = classes.slice(0, MOST_CLASSES).map(({ label: name, probability }, index) => ({
    label: name,
    share: probability,
    value: percent(probability),
    strong: index === 0,
  }));
  const bars = barsPicture(rows, width);
  const title = say("classes");
  const numbers = classes.map(({ label: name, probability }) => [name, decimal(probability, 6)]);
  return {
    name: "classes",
    title,
    note: classes.length > MOST_CLASSES ? say("classesNote", { count: MOST_CLASSES }) : null,
    picture: bars,
    drawing: drawLive(bars, title),
    table: { columns: [say("class"), say("probability")], rows: numbers },
    data: answers,
  };
}

function drawInput(answers, width) {
  const { pixels } = answers;
  const drawn = inputPicture(answers, Math.min(width, SIDE));
  const title = say("input");
  const canvas = drawCanvas(drawn);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", title);
  const size = { height: pixels.length, width: pixels[0].length };
  return {
    name: "input",
    title,
    note: say("inputNote", size),
    picture: drawn,
    drawing: canvas,
    table: {
      columns: [say("pixelRow"), ...pixels[0].map((_, column) => String(column + 1))],
      rows: pixels.map((row, index) => [String(index + 1), ...row.map((one) => one.join(" "))]),
    },
    data: pixels,
  };
}

export const label = {
  controls: [],
  fetch: (get, view, model) => get("label", lookOf(view, model)),
  draw: ({ answers, width }) => [drawClasses(answers, width)],
};

export const picture = {
  picture: true,
  controls: [],
  fetch: fetchPicture,
  draw: ({ answers, width }) => [drawClasses(answers, width), drawInput(answers, width)],
};
