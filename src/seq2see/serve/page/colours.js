// The colours of drawings: those of the style sheet, as they are in the present theme.

import { onTheme } from "./theme.js";

const known = new Map();
const probe = document.createElement("span");
probe.className = "probe";
document.documentElement.append(probe);

onTheme(() => known.clear());
matchMedia("(forced-colors: active)").addEventListener("change", () => known.clear());

/** Return a colour of the style sheet by its name, as `rgb(…)`. */
export function colour(name) {
  if (!known.has(name)) {
    probe.style.color = `var(--${name})`;
    known.set(name, getComputedStyle(probe).color);
  }
  return known.get(name);
}

/** Return red, green and blue of a colour. */
export function channels(name) {
  return colour(name).match(/[\d.]+/g).slice(0, 3).map(Number);
}

/** The share of a colour that stands for a weight of one; text on it stays legible. */
export const STRONGEST = 0.9;

function lightness(name) {
  const [red, green, blue] = channels(name).map((value) => (value / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

/** Name the colour of text that is easier to read on a cell of this weight. */
export function textOn(weight) {
  const share = STRONGEST * Math.abs(weight);
  const [card, ink, side] = ["card", "ink", sideOf(weight)].map(lightness);
  const cell = ((1 - share) * card ** (1 / 2.2) + share * side ** (1 / 2.2)) ** 2.2;
  return contrast(card, cell) > contrast(ink, cell) ? "card" : "ink";
}

/** Name the colour of a weight: one for positive ones, one for negative ones. */
export function sideOf(weight) {
  return weight < 0 ? "less" : "more";
}
