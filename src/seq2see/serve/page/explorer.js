// The explorer: rooms that look inside a model at the sentence of the view.
//
// A room has a `name`, `controls`, what it `lacks` in a model, a `fetch` of the answers it needs
// and a `draw`, which makes figures of them. The view alone decides what is fetched and drawn.

import { settle } from "./controls.js";
import { make } from "./elements.js";
import { Errands, focusToken } from "./errands.js";
import { keepPlace, makeFigure } from "./figure.js";
import { LONGEST, showLook, startLook, subjectOf } from "./look.js";
import { sayPhrase } from "./phrases.js";
import { anatomy } from "./room-anatomy.js";
import { attention } from "./room-attention.js";
import { beam } from "./room-beam.js";
import { compare } from "./room-compare.js";
import { heads } from "./room-heads.js";
import { layers } from "./room-layers.js";
import { training } from "./room-training.js";
import { words } from "./room-words.js";
import { ask } from "./server.js";
import { onTheme } from "./theme.js";
import { change, currentView } from "./view.js";
import { label, onChange, say } from "./words.js";

const ROOMS = [words, attention, heads, beam, layers, anatomy, training, compare];
const MOST_ANSWERS = 60; // kept
const AROUND = 52; // pixels of a figure beside its drawing
const PAUSE = 150; // milliseconds after the window changed its size

const form = document.getElementById("look");
const sections = new Map();
const answers = new Map();
let models = null;
let shown = null; // what was drawn last
let timer = 0;

const errands = new Errands(({ old, waiting }) => {
  const { section, output } = sections.get(currentView().room) ?? {};
  section?.classList.toggle("old", old);
  if (output) output.ariaBusy = String(waiting);
});

function build(room) {
  const title = `${room.name}-title`;
  const controls = make("div", { class: "controls" });
  controls.append(...room.controls.map((control) => control.element));
  const problems = make("div", {});
  const output = make("div", { class: "output" });
  const section = make(
    "section",
    { id: room.name, hidden: true, "aria-labelledby": title },
    make("h1", { id: title, "data-words": `title.${room.name}` }),
    make("p", { class: "lead", "data-words": `lead.${room.name}` }),
    controls,
    problems,
    output,
  );
  controls.hidden = room.controls.length === 0;
  form.after(section);
  label(section);
  sections.set(room.name, { room, section, controls, problems, output });
}

async function get(route, body, options) {
  const key = JSON.stringify([route, body]);
  if (!answers.has(key)) {
    answers.set(key, await ask(`v1/explore/${route}`, { body, ...options }));
    if (answers.size > MOST_ANSWERS) answers.delete(answers.keys().next().value);
  }
  return answers.get(key);
}

function tell(words) {
  shown = null;
  sections.get(currentView().room).output.replaceChildren(make("p", { class: "plain" }, words));
}

/** Draw the answers again: in another language, theme or width. */
function draw() {
  if (shown === null || currentView().room !== shown.room.name) return;
  const { room, view, model, fetched } = shown;
  const { output } = sections.get(room.name);
  const goBack = keepPlace(output);
  const subject = subjectOf(view, model);
  const width = output.clientWidth - AROUND;
  const figure = (part) => makeFigure({ subject, ...part });
  const parts = room.draw({ answers: fetched, view, model, width, figure });
  output.replaceChildren(...parts.map((part) => (part instanceof Node ? part : figure(part))));
  goBack();
}

/** Say why there is nothing to draw; null where there is. */
function obstacle(room, view, model) {
  if (!model.available) return sayPhrase(model.reason);
  const lack = room.lacks?.(model, models);
  if (lack) return say(lack);
  return (view.text ?? "").trim() === "" ? say("noText") : null;
}

function follow() {
  const { room, controls } = sections.get(currentView().room);
  const given = currentView();
  const model = models.find(({ name }) => name === given.model) ?? models[0];
  const view = settle(room.controls, given, model, models);
  showLook(view, model, models);
  for (const control of room.controls) control.show(view[control.name], model, view, models);
  controls.hidden = room.controls.length === 0 || !model.available;
  const count = [...(view.text ?? "")].length;
  if (count > LONGEST) return errands.stop({ key: "long", values: { count, most: LONGEST } });
  const reason = obstacle(room, view, model);
  if (reason !== null) {
    errands.stop();
    return tell(reason);
  }
  return errands.replace(async (options) => {
    const question = (route, body) => get(route, body, options);
    const fetched = await room.fetch(question, view, model, models);
    if (options.signal.aborted) return;
    shown = { room, view, model, fetched };
    draw();
  }, follow);
}

async function load() {
  await errands.replace(async (options) => {
    ({ models } = await ask("v1/explore", options));
  }, load);
  if (models === null) return focusToken();
  form.hidden = false;
  return follow();
}

/** Enter a room, or follow its view; without a sentence it takes that of `before`, if given. */
export function enter(before) {
  const view = currentView();
  errands.enter(sections.get(view.room).problems);
  form.hidden = models === null;
  if (view.text === undefined && before?.text) return change(before);
  return models === null ? load() : follow();
}

export function open() {
  for (const room of [...ROOMS].reverse()) build(room);
  startLook();
  onTheme(draw);
  onChange(() => {
    if (models !== null && sections.has(currentView().room)) follow();
  });
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(draw, PAUSE);
  });
}
