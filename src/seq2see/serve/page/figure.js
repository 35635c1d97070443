// A figure of a room: a title, a drawing, its numbers as tables, and its files.

import { make } from "./elements.js";
import { exportButtons } from "./exports.js";
import { say } from "./words.js";

/** Build a figure.
 *
 * `drawing` is an element of the page and `picture` the same for files; `tables` hold its numbers,
 * `data` is the server's answer, `subject` the sentence and the model, `note` how to read it.
 */
export function makeFigure(figure) {
  const { name, title, note, drawing, tables } = figure;
  const twin = make("details", {}, make("summary", {}, say("numbers")));
  twin.append(make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }));
  twin.lastChild.append(...tables);
  return make(
    "figure",
    { "data-name": name, class: "card-like" },
    make("figcaption", {}, make("h2", {}, title), note ? make("p", {}, note) : null),
    make("div", { class: "drawing" }, drawing),
    make("div", { class: "below" }, tables.length > 0 ? twin : null, exportButtons(figure)),
  );
}

/** Wrap a drawing that may be wider than the page. */
export function scrolling(drawing) {
  return make("div", { class: "scroll" }, drawing);
}

/** Remember the reader's place in a room; the function returned goes back to it. */
export function keepPlace(output) {
  const focused = document.activeElement;
  const key = output.contains(focused) ? focused.closest("[data-key]")?.dataset.key : null;
  const inside = focused?.closest("[data-name]")?.dataset.name;
  const figures = [...output.querySelectorAll("[data-name]")].map((figure) => ({
    name: figure.dataset.name,
    open: figure.querySelector("details")?.open,
    left: figure.querySelector(".drawing .scroll")?.scrollLeft,
  }));
  return () => {
    for (const { name, open, left } of figures) {
      const figure = output.querySelector(`[data-name="${name}"]`);
      const details = figure?.querySelector("details");
      if (details) details.open = open;
      const scroll = figure?.querySelector(".drawing .scroll");
      if (scroll && left) scroll.scrollLeft = left;
    }
    if (!key) return;
    const again = `[data-name="${inside}"] [data-key="${CSS.escape(key)}"]`;
    output.querySelector(again)?.focus({ preventScroll: true });
  };
}
