// A picture: a list of shapes, which svg.js and canvas.js draw alike.
//
// Lengths are pixels, colours are names of the style sheet. Weights lie from −1 to 1.

import { isolate } from "./directions.js";

export const FONT =
  'system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", ' +
  '"Noto Sans", "Noto Sans CJK SC", sans-serif';

const ruler = document.createElement("canvas").getContext("2d");

/** Measure how wide a text is. */
export function widthOf(text, size = 14, weight = 400) {
  ruler.font = `${weight} ${size}px ${FONT}`;
  return ruler.measureText(text).width;
}

/** Shorten a text to fit a width. */
export function shorten(text, most, size = 14, weight = 400) {
  if (widthOf(text, size, weight) <= most) return text;
  const letters = [...text];
  const short = () => `${letters.join("")}…`;
  while (letters.length > 1 && widthOf(short(), size, weight) > most) letters.pop();
  return short();
}

/** Cut a text into lines that fit a width, between words, or between characters if need be. */
export function wrap(text, most, size = 14) {
  const lines = [""];
  for (const part of text.split(/(?<=\s|\p{Script=Han})/u)) {
    const longer = lines.at(-1) + part;
    const fits = lines.at(-1) === "" || widthOf(longer.trimEnd(), size) <= most;
    if (fits) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines.map((line) => shorten(line.trimEnd(), most, size));
}

export class Picture {
  constructor(width = 0, height = 0) {
    this.width = width;
    this.height = height;
    this.shapes = [];
    this.language = null; // of its words, where they are not the page's
  }

  /** Add a rectangle: `fill`, `opacity` of the fill, `stroke`, `thickness`, `dash`, `radius`. */
  rect(x, y, width, height, style) {
    this.shapes.push({ kind: "rect", x, y, width, height, ...style });
  }

  /** Add a line; with `curved`, one that leaves and arrives horizontally. */
  line(x1, y1, x2, y2, style) {
    this.shapes.push({ kind: "line", x1, y1, x2, y2, ...style });
  }

  /** Add text on a base line: `fill`, `size`, `weight`, `anchor`, and `turn` in degrees. */
  text(x, y, text, style) {
    this.shapes.push({ kind: "text", x, y, text: isolate(String(text)), ...style });
  }

  /** Add a matrix of weights, row by row, as cells of this size. */
  cells(x, y, columns, weights, cellWidth, cellHeight) {
    this.shapes.push({ kind: "cells", x, y, columns, weights, cellWidth, cellHeight });
  }

  /** Add the pixels of a photograph, rows of red, green and blue or of grey from 0 to 255. */
  pixels(x, y, rows, size, opacity = 1) {
    this.shapes.push({ kind: "pixels", x, y, rows, size, opacity });
  }

  /** Add another picture; with a `key` it can be picked, and its `label` is said. */
  place(x, y, picture, { key = null, label = null, pressed = null } = {}) {
    this.shapes.push({ kind: "picture", x, y, picture, key, label, pressed });
    this.width = Math.max(this.width, x + picture.width);
    this.height = Math.max(this.height, y + picture.height);
  }
}

/** Put pictures below one another, each under its title where it has one. */
export function stack(parts, gap = 16) {
  const whole = new Picture();
  let y = 0;
  for (const { title, picture } of parts) {
    if (title) {
      whole.text(0, y + 15, title, { fill: "ink", size: 14, weight: 600 });
      whole.width = Math.max(whole.width, widthOf(title, 14, 600));
      y += 26;
    }
    whole.place(0, y, picture);
    y += picture.height + gap;
  }
  whole.height = Math.max(0, y - gap);
  return whole;
}
