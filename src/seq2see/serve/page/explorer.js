// The explorer: rooms that look inside a model at the sentence of the view.
//
// A room has a `name`, `controls`, what it `lacks` in a model, a `fetch` of the answers it needs
// and a `draw`, which makes figures of them. The view alone decides what is fetched and drawn.
// That is for models that translate; `others` has the same for other kinds that the room shows.

import { settle } from "./controls.js";
import { make } from "./elements.js";
import { Errands, focusToken } from "./errands.js";
import { keepPlace, makeFigure } from "./figure.js";
import { LONGEST, sayKind, showLook, startLook, subjectOf, translates } from "./look.js";
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
import { presentPicture, problemOfPicture, startPicture } from "./upload.js";
import { onTheme } from "./theme.js";
import { change, currentView } from "./view.js";
import { keyFor, label, onChange, say } from "./words.js";

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
  const controls = make("div", { class: "controls", hidden: true });
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
  const { room, kind, view, model, fetched } = shown;
  const { output } = sections.get(room.name);
  const goBack = keepPlace(output);
  const subject = subjectOf(view, model);
  const width = output.clientWidth - AROUND;
  const figure = (part) => makeFigure({ subject, ...part });
  const parts = kind.draw({ answers: fetched, view, model, width, figure });
  output.replaceChildren(...parts.map((part) => (part instanceof Node ? part : figure(part))));
  goBack();
}

/** Return what a room has for the kind of a model; undefined where it shows nothing of it. */
function kindOf(room, model) {
  return translates(model) ? room : room.others?.[model.inside];
}

/** Say why there is nothing to draw; null where there is. */
function obstacle({ room, kind }, view, model) {
  if (!model.available) return sayPhrase(model.reason);
  if (!kind) return say(keyFor(`lacks.${room.name}`, model), { kind: sayKind(model) });
  const lack = kind.lacks?.(model, models);
  if (lack) return say(lack);
  if (kind.picture) return presentPicture() === null ? say("noPicture") : null;
  return (view.text ?? "").trim() === "" ? say("noText") : null;
}

/** Show the title of a room and its controls, those for the kind of the model. */
function showFrame({ section, controls, room }, shownControls, model) {
  for (const [part, name] of [["h1", "title"], [".lead", "lead"]]) {
    const element = section.querySelector(part);
    element.dataset.words = keyFor(`${name}.${room.name}`, model);
    element.textContent = say(element.dataset.words);
  }
  const elements = shownControls.map(({ element }) => element);
  if (controls.children.length !== elements.length || controls.firstChild !== elements[0]) {
    controls.replaceChildren(...elements);
    label(controls);
  }
  controls.hidden = elements.length === 0 || !model.available;
}

function follow() {
  const place = sections.get(currentView().room);
  const { room } = place;
  const given = currentView();
  const model = models.find(({ name }) => name === given.model) ?? models[0];
  const kind = kindOf(room, model);
  const controls = kind?.controls ?? [];
  const view = settle(controls, given, model, models);
  showLook(view, model, models);
  showFrame(place, controls, model);
  for (const control of controls) control.show(view[control.name], model, view, models);
  const count = kind?.picture ? 0 : [...(view.text ?? "")].length;
  if (count > LONGEST) return errands.stop({ key: "long", values: { count, most: LONGEST } });
  if (kind?.picture && problemOfPicture()) return errands.stop(problemOfPicture());
  const reason = obstacle({ room, kind }, view, model);
  if (reason !== null) {
    errands.stop();
    return tell(reason);
  }
  return errands.replace(async (options) => {
    const question = (route, body) => get(route, body, options);
    const fetched = await kind.fetch(question, view, model, models);
    if (options.signal.aborted) return;
    shown = { room, kind, view, model, fetched };
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
  const again = () => {
    if (models !== null && sections.has(currentView().room)) follow();
  };
  startPicture(again);
  onTheme(draw);
  onChange(again);
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(draw, PAUSE);
  });
}
