// The search as a tree: a column per step, the best of each step on top.

import { Picture, shorten } from "./picture.js";

const WIDE = 112;
const HIGH = 44;
const ACROSS = 46; // between columns
const DOWN = 10;
const TOP = 30;

const ORDER = { finished: 0, kept: 0, pruned: 1 };

function place(nodes) {
  const columns = Map.groupBy(nodes, ({ step }) => step);
  const places = new Map();
  for (const [step, column] of columns) {
    const sorted = column.toSorted((left, right) => {
      return ORDER[left.status] - ORDER[right.status] || right.score - left.score;
    });
    sorted.forEach(({ id }, row) => {
      places.set(id, { x: step * (WIDE + ACROSS), y: TOP + row * (HIGH + DOWN) });
    });
  }
  return places;
}

function addEdge(picture, node, places, best) {
  const from = places.get(node.parent);
  const to = places.get(node.id);
  if (from === undefined) return;
  const ends = [from.x + WIDE, from.y + HIGH / 2, to.x, to.y + HIGH / 2];
  const look = { stroke: "soft", curved: true, thickness: 1, opacity: 0.6 };
  if (node.status === "pruned") look.dash = [4, 4];
  if (best) Object.assign(look, { stroke: "more", thickness: 3.5, opacity: 1 });
  picture.line(...ends, look);
  if (node.greedy) {
    picture.line(...ends, { stroke: "less", curved: true, thickness: 2, dash: [7, 5] });
  }
}

function box(node, { label, numbers, chosen, best }) {
  const picture = new Picture(WIDE, HIGH);
  const pruned = node.status === "pruned";
  const look = { radius: 8, fill: "card", stroke: pruned ? "soft" : "more", thickness: 1.5 };
  if (pruned) Object.assign(look, { dash: [4, 4], thickness: 1 });
  picture.rect(1.5, 1.5, WIDE - 3, HIGH - 3, look);
  if (best) picture.rect(1.5, 1.5, WIDE - 3, HIGH - 3, { radius: 8, fill: "more", opacity: 0.16 });
  if (node.status === "finished") {
    picture.rect(4.5, 4.5, WIDE - 9, HIGH - 9, { radius: 5, stroke: "more", thickness: 1 });
  }
  if (chosen) {
    picture.rect(1.5, 1.5, WIDE - 3, HIGH - 3, { radius: 8, stroke: "accent", thickness: 3.5 });
  }
  const fill = pruned ? "soft" : "ink";
  const text = shorten(label, WIDE - 20, 14, 600);
  picture.text(WIDE / 2, 19, text, { fill, size: 14, weight: 600, anchor: "middle" });
  picture.text(WIDE / 2, 35, numbers, { fill: "soft", size: 11.5, anchor: "middle" });
  return picture;
}

/** Draw nodes; `describe(node)` gives `label`, `numbers`, `said`; `marks` names steps above. */
export function treePicture(nodes, { describe, best, chosen, marks }) {
  const places = place(nodes);
  const picture = new Picture();
  for (const node of nodes) addEdge(picture, node, places, best.has(node.id));
  for (const node of nodes) {
    const { label, numbers, said } = describe(node);
    const isChosen = node.id === chosen;
    const look = { label, numbers, chosen: isChosen, best: best.has(node.id) };
    const { x, y } = places.get(node.id);
    const key = String(node.id);
    picture.place(x, y, box(node, look), { key, label: said, pressed: isChosen });
  }
  for (const [step, words] of marks) {
    picture.text(step * (WIDE + ACROSS), 16, words, { fill: "soft", size: 12.5, weight: 600 });
  }
  picture.height += 4;
  return picture;
}
