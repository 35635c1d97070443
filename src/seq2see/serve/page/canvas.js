// Pictures on a canvas: large matrices on the page, and PNG files.

import { STRONGEST, channels, colour, sideOf } from "./colours.js";
import { FONT } from "./picture.js";

function rect(context, shape) {
  const { x, y, width, height, radius = 0, fill, opacity = 1 } = shape;
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
  if (fill) {
    context.globalAlpha = opacity;
    context.fillStyle = colour(fill);
    context.fill();
    context.globalAlpha = 1;
  }
  outline(context, shape);
}

function outline(context, { stroke, thickness = 1, dash = [] }) {
  if (!stroke) return;
  context.strokeStyle = colour(stroke);
  context.lineWidth = thickness;
  context.setLineDash(dash);
  context.stroke();
}

function line(context, shape) {
  const { x1, y1, x2, y2, curved, opacity = 1 } = shape;
  const middle = (x1 + x2) / 2;
  context.beginPath();
  context.moveTo(x1, y1);
  if (curved) context.bezierCurveTo(middle, y1, middle, y2, x2, y2);
  else context.lineTo(x2, y2);
  context.globalAlpha = opacity;
  outline(context, shape);
  context.globalAlpha = 1;
}

function text(context, shape) {
  const { x, y, text: words, fill, size = 14, weight = 400, anchor = "start", turn = 0 } = shape;
  context.save();
  context.translate(x, y);
  context.rotate((turn * Math.PI) / 180);
  context.font = `${weight} ${size}px ${FONT}`;
  context.fillStyle = colour(fill);
  context.textAlign = { start: "left", middle: "center", end: "right" }[anchor];
  context.fillText(words, 0, 0);
  context.restore();
}

/** Draw a matrix pixel by pixel and enlarge it: quick for any number of cells. */
function cells(context, { x, y, columns, weights, cellWidth, cellHeight }) {
  if (weights.length === 0) return;
  const rows = weights.length / columns;
  const image = new ImageData(columns, rows);
  const sides = { more: channels("more"), less: channels("less") };
  weights.forEach((weight, index) => {
    const [red, green, blue] = sides[sideOf(weight)];
    image.data[4 * index] = red;
    image.data[4 * index + 1] = green;
    image.data[4 * index + 2] = blue;
    image.data[4 * index + 3] = 255 * STRONGEST * Math.abs(weight);
  });
  const small = new OffscreenCanvas(columns, rows);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = Math.min(cellWidth, cellHeight) < 1;
  context.imageSmoothingQuality = "high";
  context.drawImage(small, x, y, columns * cellWidth, rows * cellHeight);
}

function pixels(context, { x, y, rows, size, opacity }) {
  const [high, wide] = [rows.length, rows[0].length];
  const image = new ImageData(wide, high);
  rows.flat().forEach(([red, green = red, blue = red], index) => {
    image.data.set([red, green, blue, 255], 4 * index);
  });
  const small = new OffscreenCanvas(wide, high);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.globalAlpha = opacity;
  context.drawImage(small, x, y, wide * size, high * size);
  context.globalAlpha = 1;
}

function place(context, { x, y, picture }) {
  context.save();
  context.translate(x, y);
  draw(context, picture);
  context.restore();
}

function draw(context, picture) {
  const ways = { rect, line, text, cells, pixels, picture: place };
  for (const shape of picture.shapes) ways[shape.kind](context, shape);
}

/** Draw a picture on a canvas, with so many dots per pixel; on paper, if one is named. */
export function drawCanvas(picture, density = devicePixelRatio, paper = null) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(picture.width * density);
  canvas.height = Math.ceil(picture.height * density);
  canvas.style.width = `${Math.ceil(picture.width)}px`;
  canvas.style.height = `${Math.ceil(picture.height)}px`;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  if (paper !== null) {
    context.fillStyle = colour(paper);
    context.fillRect(0, 0, picture.width, picture.height);
  }
  draw(context, picture);
  return canvas;
}
