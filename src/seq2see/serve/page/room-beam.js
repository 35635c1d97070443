// Beam: the search as a tree; force a beginning or forbid a token, and search again.

import { Check, Field } from "./controls.js";
import { make } from "./elements.js";
import { scrolling } from "./figure.js";
import { drawHypotheses } from "./hypotheses.js";
import { lookOf } from "./look.js";
import { decimal, percent } from "./numbers.js";
import { sayPhrase } from "./phrases.js";
import { Picture, stack, widthOf } from "./picture.js";
import { drawLive } from "./svg.js";
import { labelsOf, textOf } from "./tokens.js";
import { treePicture } from "./tree.js";
import { change } from "./view.js";
import { say } from "./words.js";

const controls = [
  new Field("prefix", "prefix"),
  new Field("forbid", "forbidden"),
  new Field("penalty", "lengthPenalty", { inputmode: "decimal", size: 6 }),
  new Check("keptOnly", "keptOnly"),
];

function listOf(forbid) {
  return (forbid ?? "").split(/\s+/).filter((piece) => piece !== "");
}

function fetch(get, view, model) {
  const penalty = view.penalty === "" ? Number.NaN : Number(view.penalty);
  const body = {
    ...lookOf(view, model),
    prefix: view.prefix || null,
    forbidden: listOf(view.forbid),
    length_penalty: Number.isFinite(penalty) ? penalty : null,
  };
  return get("beam", body);
}

/** List a node and those before it, from the start. */
function pathTo(id, byId) {
  const path = [];
  for (let node = byId.get(id); node !== undefined; node = byId.get(node.parent)) {
    path.unshift(node);
  }
  return path;
}

function mark(look) {
  const picture = new Picture(28, 22);
  if (look.radius) picture.rect(1, 3, 26, 15, look);
  else picture.line(0, 11, 28, 11, look);
  return picture;
}

function legend(width) {
  const box = { radius: 4, thickness: 1.5, stroke: "more" };
  const marks = [
    [say("status.kept"), box],
    [say("status.finished"), { ...box, thickness: 3.5 }],
    [say("status.pruned"), { ...box, stroke: "soft", dash: [4, 4] }],
    [say("bestPath"), { stroke: "more", thickness: 3.5 }],
    [say("greedyPath"), { stroke: "less", thickness: 2, dash: [7, 5] }],
  ];
  const picture = new Picture();
  let [x, y] = [0, 0];
  for (const [words, look] of marks) {
    const across = 36 + widthOf(words, 13);
    if (x > 0 && x + across > width) [x, y] = [0, y + 24];
    const part = new Picture(across, 22);
    part.place(0, 0, mark(look));
    part.text(36, 16, words, { fill: "soft", size: 13 });
    picture.place(x, y, part);
    x += across + 22;
  }
  return picture;
}

function describe(node) {
  const [label] = labelsOf([node.token]);
  if (node.parent === null) return { label, numbers: "", said: label };
  const numbers = `${decimal(node.log_probability)} · ${decimal(node.score)}`;
  const status = say(`status.${node.status}`);
  return { label, numbers, said: say("nodeLabel", { token: label, numbers, status }) };
}

function nodeTable(nodes) {
  const keys = ["step", "piece", "logProbability", "total", "normalised", "state", "reasonName"];
  const rows = nodes.map((node) => [
    String(node.step),
    node.token,
    decimal(node.log_probability, 4),
    decimal(node.total, 4),
    decimal(node.score, 4),
    say(`status.${node.status}`) + (node.greedy ? ` · ${say("greedyPath")}` : ""),
    sayPhrase(node.reason),
  ]);
  return { columns: keys.map((key) => say(key)), rows };
}

function drawTree({ tree, view, chosen, byId, width }) {
  const kept = tree.nodes.filter(({ status }) => !view.keptOnly || status !== "pruned");
  const best = new Set(pathTo(tree.hypotheses[0].node, byId).map(({ id }) => id));
  const left = tree.left_greedy;
  const marks = left === null ? [] : [[left, say("leftHere")]];
  const picture = treePicture(kept, { describe, best, chosen: chosen.id, marks });
  const title = say("search");
  const key = legend(width);
  const pick = (id) => change({ node: id });
  const drawing = make("div", {}, drawLive(key, say("legend")));
  drawing.append(scrolling(drawLive(picture, title, pick)));
  return {
    name: "beam",
    title,
    note: left === null ? say("neverLeft") : say("leftAt", { step: left }),
    picture: stack([{ picture: key }, { picture }]),
    drawing,
    table: nodeTable(tree.nodes),
    data: tree,
  };
}

function button(words, act, key) {
  return make("button", { type: "button", class: "act", "data-key": key, onclick: act }, words);
}

function drawNode(node, view, byId) {
  const [token] = labelsOf([node.token]);
  const path = pathTo(node.id, byId).slice(1);
  const pieces = path.filter(({ token }) => token !== "</s>").map(({ token }) => token);
  const probability = percent(Math.exp(node.log_probability));
  const facts = [
    ["logProbability", `${decimal(node.log_probability, 4)} (${probability})`],
    ["total", decimal(node.total, 4)],
    ["normalised", decimal(node.score, 4)],
    ["state", say(`status.${node.status}`)],
    ["reasonName", sayPhrase(node.reason)],
  ].flatMap(([key, value]) => [make("dt", {}, say(key)), make("dd", {}, value)]);
  const force = () => change({ prefix: textOf(pieces), node: null });
  const already = listOf(view.forbid);
  const forbid = () => change({ forbid: [...already, node.token].join(" "), node: null });
  const acts = node.parent === null || node.token === "</s>" ? [] : [
    button(say("force", { prefix: textOf(pieces) }), force, "force"),
    button(say("forbid", { token }), forbid, "forbid"),
  ];
  return make(
    "div",
    { class: "card-like node", "data-name": "node" },
    make("h2", {}, say("nodeTitle", { step: node.step, token })),
    make("dl", {}, facts),
    make("div", { class: "acts" }, acts),
  );
}

function draw({ answers: tree, view, width }) {
  const byId = new Map(tree.nodes.map((node) => [node.id, node]));
  const [, first] = pathTo(tree.hypotheses[0].node, byId);
  const chosen = byId.get(Number.parseInt(view.node, 10)) ?? first;
  return [
    drawTree({ tree, view, chosen, byId, width }),
    drawNode(chosen, view, byId),
    drawHypotheses("finished", say("finishedOnes"), tree.hypotheses, width),
  ];
}

export const beam = { name: "beam", controls, fetch, draw };
