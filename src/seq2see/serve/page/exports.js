// A figure as a file: SVG, PNG, JSON, or one HTML page that opens from disk and loads nothing.

import { drawCanvas } from "./canvas.js";
import { colour } from "./colours.js";
import { make, makeTable } from "./elements.js";
import { drawFile } from "./svg.js";
import { say, tag } from "./words.js";

const DENSITY = 2; // dots of a PNG per pixel of the page
const MOST_DOTS = 16_384; // across or down: a larger canvas is empty in some browsers
const REVOKE = 10_000; // milliseconds until a file's memory is freed

function save(name, blob) {
  const href = URL.createObjectURL(blob);
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), REVOKE);
}

function serialise(node) {
  return new XMLSerializer().serializeToString(node);
}

function style() {
  return `body{margin:2rem auto;max-width:72rem;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;
background:${colour("card")};color:${colour("ink")}}
svg{display:block;max-width:100%;height:auto;margin:1.5rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}
th,td{padding:.25rem .6rem;border:1px solid ${colour("line")};text-align:start}
caption{text-align:start;font-weight:600;padding:.5rem 0}`;
}

/** Build a figure's table: the same numbers as its picture. */
export function tableOf({ title, table: { caption = title, columns, rows } }) {
  return makeTable(caption, columns, rows);
}

/** Build a page with a figure, its table and its data inside. */
function pageOf(figure) {
  const { title, subject, note, picture, data } = figure;
  const page = document.implementation.createHTMLDocument(`${title} · seq2see`);
  page.documentElement.lang = tag();
  // What ends a script or begins markup must not stand in the data.
  const json = JSON.stringify(data).replace(/[<>&]/g, (letter) => {
    return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  const width = "width=device-width, initial-scale=1";
  page.head.prepend(make("meta", { charset: "utf-8" }));
  page.head.append(make("meta", { name: "viewport", content: width }));
  page.body.append(make("h1", {}, title), make("p", {}, subject), make("p", {}, note ?? ""));
  if (picture) page.body.append(drawFile(picture, title));
  page.body.append(tableOf(figure));
  page.body.append(make("script", { type: "application/json", id: "data" }, json));
  // As an element, the style would be refused by the policy of this page.
  const styled = `<style>${style()}</style></head>`;
  const whole = serialise(page.documentElement).replace("</head>", styled);
  return `<!doctype html>\n${whole}`;
}

function download(figure, kind) {
  const { name, title, picture, data } = figure;
  const file = `seq2see-${name}.${kind}`;
  if (kind === "png") {
    const density = Math.min(DENSITY, MOST_DOTS / Math.max(picture.width, picture.height));
    drawCanvas(picture, density, "card").toBlob((blob) => save(file, blob), "image/png");
    return;
  }
  const content = {
    svg: () => [serialise(drawFile(picture, title)), "image/svg+xml"],
    json: () => [JSON.stringify(data, null, 1), "application/json"],
    html: () => [pageOf(figure), "text/html"],
  };
  const [text, type] = content[kind]();
  save(file, new Blob([text], { type: `${type};charset=utf-8` }));
}

/** Offer a figure's files. */
export function exportButtons(figure) {
  const kinds = figure.picture ? ["svg", "png", "json", "html"] : ["json", "html"];
  const buttons = kinds.map((kind) => {
    const label = say("saveAs", { title: figure.title, kind: kind.toUpperCase() });
    const attributes = { type: "button", "data-key": `save-${kind}`, "aria-label": label };
    const onclick = () => download(figure, kind);
    return make("button", { ...attributes, onclick }, kind.toUpperCase());
  });
  return make("div", { class: "saves" }, make("span", {}, say("save")), buttons);
}
