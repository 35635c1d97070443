// The shell: theme, language, and the rooms. A room is a section of index.html and a module here,
// which `open` starts when it is first entered.

import { startTheme } from "./theme.js";
import * as translate from "./translate.js";
import { onChange, say, startLanguage } from "./words.js";

const ROOMS = { translate };

const opened = new Set();

function current() {
  const name = location.hash.slice(1);
  return Object.hasOwn(ROOMS, name) ? name : "translate";
}

function title() {
  document.title = `${say(current())} · seq2see`;
}

function enter() {
  const name = current();
  for (const section of document.querySelectorAll("main > section")) {
    section.hidden = section.id !== name;
  }
  for (const link of document.querySelectorAll("nav a")) {
    link.ariaCurrent = link.hash === `#${name}` ? "page" : null;
  }
  title();
  if (!opened.has(name)) {
    opened.add(name);
    ROOMS[name].open();
  }
}

startTheme(document.getElementById("theme"));
startLanguage(document.getElementById("language"));
onChange(title);
addEventListener("hashchange", enter);
enter();
