// Bars with a label before and a number behind, and lines over time.

import { Picture, widthOf, wrap } from "./picture.js";

const ROW = 28;
const LINE = 20;
const WIDEST = 760;

function bar({ share, value }, room) {
  const picture = new Picture(room, ROW);
  const long = Math.max(1, Math.abs(share) * (room - widthOf(value, 13) - 10));
  picture.rect(0, 6, long, ROW - 12, { fill: share < 0 ? "less" : "more", radius: 2 });
  picture.text(long + 8, 19, value, { fill: "ink", size: 13 });
  return picture;
}

function labelled(row, labels, room) {
  const weight = row.strong ? 700 : 400;
  const picture = new Picture(labels + room, ROW);
  picture.text(0, 19, row.label, { fill: "ink", weight });
  picture.place(labels, 0, bar(row, room));
  return picture;
}

/** Put a long label above its bar. */
function headed(row, room) {
  const lines = wrap(row.label, room);
  const picture = new Picture(room, LINE * lines.length + ROW + 4);
  lines.forEach((line, index) => {
    picture.text(0, LINE * index + 15, line, { fill: "ink", weight: row.strong ? 700 : 400 });
  });
  picture.place(0, LINE * lines.length, bar(row, room));
  return picture;
}

/** Draw bars: rows of `label`, `share` (−1 to 1 of the longest), `value` as text, `strong`. */
export function barsPicture(rows, width) {
  const across = Math.min(width, WIDEST);
  const labels = Math.max(...rows.map(({ label }) => widthOf(label, 14, 700))) + 12;
  const picture = new Picture();
  for (const row of rows) {
    const above = labels > 0.5 * across;
    const part = above ? headed(row, across) : labelled(row, labels, across - labels);
    picture.place(0, picture.height, part);
  }
  return picture;
}

/** Draw a line over places from 0 to 1, whose chosen place is marked. */
export function coursePicture({ places, values, chosen, from, to }, width, height = 120) {
  const picture = new Picture(Math.min(width, WIDEST), height + 22);
  const across = picture.width - 20;
  const least = Math.min(...values);
  const span = Math.max(...values) - least || 1;
  const x = (index) => 10 + places[index] * across;
  const y = (index) => 10 + (height - 20) * (1 - (values[index] - least) / span);
  picture.line(10, height, 10 + across, height, { stroke: "line" });
  picture.line(x(chosen), 4, x(chosen), height, { stroke: "soft", dash: [3, 3] });
  for (let index = 1; index < values.length; index += 1) {
    const look = { stroke: "more", thickness: 2 };
    picture.line(x(index - 1), y(index - 1), x(index), y(index), look);
  }
  values.forEach((_, index) => {
    const size = index === chosen ? 5 : 3;
    const look = { fill: index === chosen ? "less" : "more", radius: size };
    picture.rect(x(index) - size, y(index) - size, 2 * size, 2 * size, look);
  });
  picture.text(10, height + 16, from, { fill: "soft", size: 12 });
  picture.text(10 + across, height + 16, to, { fill: "soft", size: 12, anchor: "end" });
  return picture;
}
