// The controls of a room: each stands for one choice of the view.

import { make } from "./elements.js";
import { layerName } from "./numbers.js";
import { change } from "./view.js";

let count = 0;

class Control {
  constructor(name, words, input) {
    this.name = name;
    this.input = input;
    input.id = `control-${(count += 1)}`;
    input.dataset.choice = name;
    const label = make("label", { for: input.id, "data-words": words });
    this.element = make("div", { class: "control" }, label, input);
  }

  /** Return the choice of the view, or what stands for none. */
  settle(view) {
    return view[this.name] ?? "";
  }
}

/** One of several: `options(model, view, models)` lists values and their names.
 *
 * The `usual` one stands for none; where it is not among them, the first does.
 */
export class Choice extends Control {
  constructor(name, words, options, usual = null) {
    super(name, words, make("select", { onchange: (event) => this.choose(event.target.value) }));
    this.options = options;
    this.usual = usual;
  }

  choose(value) {
    change({ [this.name]: value });
  }

  settle(view, model, models) {
    const values = this.options(model, view, models).map(([value]) => value);
    const wanted = [view[this.name], this.usual].find((value) => values.includes(value));
    return wanted ?? values[0] ?? "";
  }

  show(value, model, view, models) {
    const options = this.options(model, view, models).map(([one, name]) => new Option(name, one));
    this.input.replaceChildren(...options);
    this.input.value = value;
    this.element.hidden = options.length === 0;
  }
}

/** Yes or no. */
export class Check extends Control {
  constructor(name, words) {
    const act = (event) => change({ [name]: event.target.checked ? "1" : null });
    super(name, words, make("input", { type: "checkbox", onchange: act }));
    this.element.classList.add("check");
  }

  show(value) {
    this.input.checked = value === "1";
  }
}

/** A few words, taken when the reader has finished. */
export class Field extends Control {
  constructor(name, words, attributes = {}) {
    const act = (event) => change({ [name]: event.target.value.trim() });
    super(name, words, make("input", { type: "text", dir: "auto", ...attributes, onchange: act }));
  }

  show(value) {
    if (document.activeElement !== this.input) this.input.value = value;
  }
}

/** A place among values that the model has; the last is usual. */
export class Slider extends Control {
  constructor(name, words, values) {
    const act = (event) => change({ [name]: this.at(event.target.value) });
    super(name, words, make("input", { type: "range", min: 0, oninput: act }));
    this.values = values;
    this.present = [];
  }

  at(index) {
    return String(this.present[index]);
  }

  settle(view, model) {
    const present = this.values(model).map(String);
    return present.includes(view[this.name]) ? view[this.name] : (present.at(-1) ?? "");
  }

  show(value, model) {
    this.present = this.values(model).map(String);
    this.input.max = this.present.length - 1;
    this.input.value = this.present.indexOf(value);
    this.input.setAttribute("aria-valuetext", value);
    this.element.hidden = this.present.length < 2;
  }
}

/** The choice among a model's layers that attend; by default the last one's cross-attention. */
export function layerChoice(usual = null) {
  const options = ({ maps }) => {
    const layers = maps.flatMap(({ kind, layers: depth }) => {
      const [stack, own] = kind.split(".");
      return Array.from({ length: depth }, (_, index) => `${stack}.${index}.${own}`);
    });
    return layers.reverse().map((layer) => [layer, layerName(layer)]);
  };
  return new Choice("layer", "layer", options, usual);
}

/** The choice among the heads of the layer chosen. */
export function headChoice() {
  return new Choice("head", "head", (model, view) => {
    const kind = (view.layer ?? "").replace(/\.\d+\./, ".");
    const heads = model.maps.find((map) => map.kind === kind)?.heads ?? 0;
    return Array.from({ length: heads }, (_, head) => [String(head), String(head + 1)]);
  });
}

/** Fill in what the view leaves open, control by control; a head depends on its layer. */
export function settle(controls, view, model, models) {
  const settled = { ...view };
  for (const control of controls) settled[control.name] = control.settle(settled, model, models);
  return settled;
}

