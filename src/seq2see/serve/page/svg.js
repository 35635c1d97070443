// Pictures as SVG: on the page, where parts of them can be picked, and in files.

import { STRONGEST, colour, sideOf } from "./colours.js";
import { makeSvg } from "./elements.js";
import { FONT } from "./picture.js";
import { makeRoam } from "./roam.js";

const LEVELS = 63; // of a cell's colour

function paint({ fill, opacity, stroke, thickness, dash }) {
  return {
    fill: fill ? colour(fill) : "none",
    "fill-opacity": opacity,
    stroke: stroke && colour(stroke),
    "stroke-width": thickness,
    "stroke-dasharray": dash && dash.join(" "),
  };
}

function rect(shape) {
  const { x, y, width, height, radius } = shape;
  return makeSvg("rect", { x, y, width, height, rx: radius, ...paint(shape) });
}

function line(shape) {
  const { x1, y1, x2, y2, curved, opacity } = shape;
  const middle = (x1 + x2) / 2;
  const way = curved ? `C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` : `L${x2} ${y2}`;
  const style = { ...paint({ ...shape, opacity: null }), "stroke-opacity": opacity };
  return makeSvg("path", { d: `M${x1} ${y1}${way}`, ...style });
}

function text({ x, y, text: words, fill, size = 14, weight = 400, anchor = "start", turn }) {
  const style = { fill: colour(fill), "font-size": size, "font-weight": weight };
  const transform = turn ? `rotate(${turn} ${x} ${y})` : null;
  return makeSvg("text", { x, y, "text-anchor": anchor, transform, ...style }, words);
}

/** Draw a matrix as one path per level of colour. */
function cells({ x, y, columns, weights, cellWidth, cellHeight }) {
  const paths = new Map();
  weights.forEach((weight, index) => {
    const level = Math.round(LEVELS * weight);
    if (level === 0) return;
    const left = +((index % columns) * cellWidth).toFixed(2);
    const top = +(Math.floor(index / columns) * cellHeight).toFixed(2);
    const cell = `M${left} ${top}h${cellWidth}v${cellHeight}h${-cellWidth}z`;
    paths.set(level, (paths.get(level) ?? "") + cell);
  });
  const children = [...paths].map(([level, d]) => {
    const opacity = ((STRONGEST * Math.abs(level)) / LEVELS).toFixed(3);
    return makeSvg("path", { d, fill: colour(sideOf(level)), "fill-opacity": opacity });
  });
  const attributes = { transform: `translate(${x} ${y})`, "shape-rendering": "crispEdges" };
  return makeSvg("g", attributes, children);
}

/** Draw pixels as one path per colour. */
function pixels({ x, y, rows, size, opacity }) {
  const paths = new Map();
  rows.forEach((row, down) => {
    row.forEach(([red, green = red, blue = red], across) => {
      const fill = `rgb(${red}, ${green}, ${blue})`;
      const place = `M${+(across * size).toFixed(2)} ${+(down * size).toFixed(2)}`;
      const square = `${place}h${size}v${size}h${-size}z`;
      paths.set(fill, (paths.get(fill) ?? "") + square);
    });
  });
  const children = [...paths].map(([fill, d]) => makeSvg("path", { d, fill }));
  const transform = `translate(${x} ${y})`;
  return makeSvg("g", { transform, opacity, "shape-rendering": "crispEdges" }, children);
}

function group({ x, y, picture, key, label, pressed }, pick) {
  const children = shapesOf(picture, pick);
  const name = label === null ? null : makeSvg("title", {}, label);
  const attributes = { transform: `translate(${x} ${y})`, lang: picture.language };
  if (key !== null && pick !== null) {
    attributes["data-key"] = key;
    attributes.role = "button";
    attributes["aria-label"] = label;
    attributes["aria-pressed"] = String(pressed);
  }
  return makeSvg("g", attributes, name, children);
}

function shapesOf(picture, pick) {
  const draw = { rect, line, text, cells, pixels, picture: group };
  return picture.shapes.map((shape) => draw[shape.kind](shape, pick));
}

function root(picture, children) {
  const width = Math.ceil(picture.width);
  const height = Math.ceil(picture.height);
  const attributes = { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT };
  return makeSvg("svg", attributes, children);
}

/** Draw a picture for the page: its keyed parts are buttons, which the arrow keys roam. */
export function drawLive(picture, label, pick = null) {
  const drawing = root(picture, shapesOf(picture, pick));
  drawing.setAttribute("role", pick === null ? "img" : "group");
  drawing.setAttribute("aria-label", label);
  if (pick !== null) makeRoam(drawing, pick);
  return drawing;
}

/** Draw a picture for a file, on the paper of the present theme. */
export function drawFile(picture, title) {
  const paper = makeSvg("rect", { width: "100%", height: "100%", fill: colour("card") });
  const name = makeSvg("title", {}, title);
  const drawing = root(picture, [name, paper, shapesOf(picture, null)]);
  drawing.setAttribute("role", "img");
  return drawing;
}
