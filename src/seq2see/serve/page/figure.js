// A figure of a room: a title, a drawing, its numbers as a table, and its files.

import { make } from "./elements.js";
import { exportButtons, tableOf } from "./exports.js";
import { say } from "./words.js";

/** Fold the table of a figure; it is built when it is first unfolded, for it may be large. */
function makeTwin(figure) {
  const area = make("div", { class: "scroll", tabindex: 0, role: "group" });
  area.ariaLabel = figure.title;
  const fill = () => area.firstChild ?? area.append(tableOf(figure));
  const summary = make("summary", { "data-key": "numbers" }, say("numbers"));
  return make("details", { open: figure.unfolded, ontoggle: fill }, summary, area);
}

/** Build a figure.
 *
 * `drawing` is an element of the page and `picture` the same for files; `table` has its numbers and
 * is folded unless `unfolded`; `data` is the server's answer, `subject` names the sentence and the
 * model, and `note` says how to read the figure.
 */
export function makeFigure(figure) {
  const { name, title, note, drawing } = figure;
  return make(
    "figure",
    { "data-name": name, class: "card-like" },
    make("figcaption", {}, make("h2", {}, title), note ? make("p", {}, note) : null),
    make("div", { class: "drawing" }, drawing),
    make("div", { class: "below" }, makeTwin(figure), exportButtons(figure)),
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
