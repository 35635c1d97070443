// The shell: theme, language, and the rooms. A room is a section of the page and a module here;
// those that look inside a model are loaded when the first of them is entered.

import { startErrands } from "./errands.js";
import { startTheme } from "./theme.js";
import * as translate from "./translate.js";
import { currentView, linkTo, onView } from "./view.js";
import { onChange, say, startLanguage } from "./words.js";

const links = [...document.querySelectorAll("nav a")];
const rooms = links.map((link) => link.hash.slice(1));
const look = document.getElementById("look");

let translateOpen = false;
let explorer = null; // the promise of its module
let entered = null; // the name of the room entered last

function current() {
  const { room } = currentView();
  return rooms.includes(room) ? room : "translate";
}

function title() {
  document.title = `${say(current())} · seq2see`;
}

async function openExplorer() {
  const module = await import("./explorer.js");
  module.open();
  return module;
}

function showLinks(name) {
  const view = currentView();
  links.forEach((link, index) => {
    link.ariaCurrent = rooms[index] === name ? "page" : null;
    if (rooms[index] === name) link.scrollIntoView({ block: "nearest", inline: "center" });
    if (rooms[index] !== "translate") link.setAttribute("href", linkTo(rooms[index], view));
  });
}

function showSection(name) {
  for (const section of document.querySelectorAll("main > section")) {
    section.hidden = section.id !== name;
  }
}

async function enter() {
  const name = current();
  const before = entered;
  entered = name;
  showLinks(name);
  title();
  if (name === "translate") {
    look.hidden = true;
    showSection(name);
    translate.enter();
    if (!translateOpen) translate.open();
    translateOpen = true;
    return;
  }
  explorer ??= openExplorer();
  const module = await explorer;
  if (current() !== name) return; // the reader went on
  showSection(name);
  module.enter(before === name ? null : translate.present());
}

startTheme(document.getElementById("theme"));
startLanguage(document.getElementById("language"));
startErrands();
onChange(title);
onView(enter);
enter();
