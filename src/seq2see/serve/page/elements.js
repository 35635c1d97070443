// Elements of the page, built without markup.

import { isolate } from "./directions.js";

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value);
    }
  }
  const parts = children.flat(Infinity).filter((part) => part !== null && part !== undefined);
  element.append(...parts);
  return element;
}

/** Build an element; an attribute that begins with `on` is a listener, null and false none. */
export function make(name, attributes = {}, ...children) {
  return build(document.createElement(name), attributes, children);
}

/** Build an element of a drawing. */
export function makeSvg(name, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, name), attributes, children);
}

/** Build a table: a caption, the names of its columns, and rows whose first cell names them. */
export function makeTable(caption, columns, rows) {
  const head = columns.map((name) => make("th", { scope: "col" }, isolate(name)));
  const body = rows.map(([first, ...rest]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, isolate(first)),
      rest.map((cell) => make("td", {}, isolate(cell))),
    ),
  );
  return make(
    "table",
    {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, head)),
    make("tbody", {}, body),
  );
}
