// Numbers and names as people read them; layers and heads count from 1 to people.

import { say, tag } from "./words.js";

/** Write a number with so many decimals and a true minus sign. */
export function decimal(value, digits = 2) {
  return value.toFixed(digits).replace("-", "−");
}

/** Write a change, with its sign. */
export function signed(value, digits = 2) {
  return value > 0 ? `+${decimal(value, digits)}` : decimal(value, digits);
}

/** Write a share of one as a percentage. */
export function percent(value) {
  return `${decimal(100 * value, 1)} %`;
}

/** Write a whole number as the page's language does. */
export function whole(value) {
  return value.toLocaleString(tag());
}

/** Name a layer: `decoder.1.cross` is decoder layer 2, cross-attention. */
export function layerName(layer) {
  const [stack, index, kind] = layer.split(".");
  return say("layerOf", { layer: Number(index) + 1, kind: say(`${stack}.${kind}`) });
}

/** Name a head of a layer where there is little room. */
export function shortHeadName(layer, head) {
  const [stack, index, kind] = layer.split(".");
  const values = { layer: Number(index) + 1, head: Number(head) + 1 };
  return say("shortHead", { ...values, kind: say(`short.${stack}.${kind}`) });
}

/** Name a head of a layer. */
export function headName(layer, head) {
  return say("headOf", { layer: layerName(layer), head: Number(head) + 1 });
}
