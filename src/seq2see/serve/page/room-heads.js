// Heads: switch some off and translate again; which of them does this sentence need?

import { barsPicture } from "./bars.js";
import { Check } from "./controls.js";
import { drawDifference } from "./differences.js";
import { scrolling } from "./figure.js";
import { headsOff, lookOf, toggleHead } from "./look.js";
import { decimal, headName, shortHeadName, signed } from "./numbers.js";
import { Picture, stack, widthOf } from "./picture.js";
import { drawLive } from "./svg.js";
import { say } from "./words.js";

const CELL = 40;
const NARROW = 600;
const MOST_RANKED = 24; // drawn; the table has all

function layerNumber(index) {
  return say("layerNumber", { layer: index + 1 });
}

async function fetch(get, view, model) {
  const look = lookOf(view, model);
  const plain = await get("translate", { ...look, off: [], n_best: 1 });
  const changed = await get("translate", { ...look, n_best: 1 });
  // The plain translation once more, forced: what the model thinks of it without those heads.
  const forced = await get("translate", { ...look, target: plain.text, n_best: 1 });
  const ranking = view.rank ? await get("heads", look) : null;
  return { plain, changed, forced, ranking };
}

function layersOf({ kind, layers, heads }) {
  const [stackName, own] = kind.split(".");
  return Array.from({ length: layers }, (_, index) => {
    return { layer: `${stackName}.${index}.${own}`, index, heads };
  });
}

function headButton(index, isOff) {
  const picture = new Picture(CELL, CELL);
  const look = isOff ? { stroke: "soft", dash: [3, 3] } : { stroke: "accent", fill: "more" };
  picture.rect(3, 3, CELL - 6, CELL - 6, { ...look, radius: 7, thickness: 1.5 });
  const fill = isOff ? "soft" : "card";
  picture.text(CELL / 2, 26, index + 1, { fill, size: 15, weight: 600, anchor: "middle" });
  if (isOff) picture.line(9, CELL - 9, CELL - 9, 9, { stroke: "bad", thickness: 2 });
  return picture;
}

function kindPicture(map, off) {
  const layers = layersOf(map);
  const names = Math.max(...layers.map(({ index }) => widthOf(layerNumber(index)))) + 14;
  const picture = new Picture();
  for (const { layer, index, heads } of layers) {
    picture.text(0, index * CELL + 25, layerNumber(index), { fill: "ink" });
    for (let head = 0; head < heads; head += 1) {
      const key = `${layer}.${head}`;
      const pressed = !off.has(key);
      const label = say(pressed ? "headOn" : "headOff", { head: headName(layer, head) });
      const button = headButton(head, !pressed);
      picture.place(names + head * CELL, index * CELL, button, { key, label, pressed });
    }
  }
  return picture;
}

/** Put the kinds of attention side by side where there is room. */
function switchesPicture({ maps }, off, width) {
  const parts = maps.map((map) => {
    return stack([{ title: say(map.kind), picture: kindPicture(map, off) }]);
  });
  const across = parts.reduce((sum, part) => sum + part.width + 40, -40);
  if (across > width) return stack(parts.map((picture) => ({ picture })));
  const whole = new Picture();
  for (const part of parts) whole.place(whole.width === 0 ? 0 : whole.width + 40, 0, part);
  return whole;
}

function drawSwitches(view, model, width) {
  const off = new Set(headsOff(view).map(({ layer, head }) => `${layer}.${head}`));
  const picture = switchesPicture(model, off, width);
  const title = say("switches");
  const toggle = (key) => {
    const [, layer, head] = /^(.+)\.(\d+)$/.exec(key);
    toggleHead(view, layer, Number(head));
  };
  const rows = model.maps.flatMap(layersOf).flatMap(({ layer, heads }) => {
    return Array.from({ length: heads }, (_, head) => {
      return [headName(layer, head), say(off.has(`${layer}.${head}`) ? "off" : "on")];
    });
  });
  return {
    name: "switches",
    title,
    note: say("switchesNote"),
    picture,
    drawing: scrolling(drawLive(picture, title, toggle)),
    table: { columns: [say("head"), say("state")], rows },
    data: headsOff(view),
  };
}

function drawChange({ plain, changed, forced }, { model, width, view }) {
  const title = say("effect");
  const values = {
    before: decimal(plain.log_probability, 3),
    after: decimal(forced.log_probability, 3),
    change: signed(forced.log_probability - plain.log_probability, 3),
  };
  const columns = [say("translation"), say("text"), say("logProbability"), say("scoreShort")];
  const rows = [
    [say("allHeadsOn"), plain],
    [say("someOff"), changed],
    [say("plainForced"), forced],
  ].map(([label, one]) => [
    label, one.text, decimal(one.log_probability, 4), decimal(one.score, 4),
  ]);
  return drawDifference({
    name: "effect",
    title,
    note: headsOff(view).length === 0 ? say("effectNone") : say("effectNote", values),
    texts: [
      { title: say("allHeadsOn"), text: plain.text },
      { title: say("someOff"), text: changed.text },
    ],
    code: model.target,
    width,
    table: { columns, rows },
    data: { plain, changed, forced },
  });
}

function drawRanking({ heads }, width) {
  const most = Math.max(...heads.map(({ change }) => Math.abs(change))) || 1;
  const rows = heads.slice(0, MOST_RANKED).map(({ layer, head, change }) => ({
    label: width < NARROW ? shortHeadName(layer, head) : headName(layer, head),
    share: change / most,
    value: signed(change, 4),
  }));
  const picture = barsPicture(rows, width);
  const title = say("ranking");
  const table = {
    columns: [say("head"), say("logProbability"), say("change")],
    rows: heads.map((one) => [
      headName(one.layer, one.head),
      decimal(one.log_probability, 5),
      signed(one.change, 5),
    ]),
  };
  return {
    name: "ranking",
    title,
    note: say("rankingNote"),
    picture,
    drawing: drawLive(picture, title),
    table,
    data: heads,
  };
}

function draw({ answers, view, model, width }) {
  const figures = [drawSwitches(view, model, width), drawChange(answers, { model, width, view })];
  if (answers.ranking !== null) figures.push(drawRanking(answers.ranking, width));
  return figures;
}

export const heads = {
  name: "heads",
  controls: [new Check("rank", "rankAll")],
  lacks: ({ maps }) => (maps.length === 0 ? "noMaps" : null),
  fetch,
  draw,
};
