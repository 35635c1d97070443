// Attention maps as the server sends them: a character per weight, in 64 levels.

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const LEVELS = new Float32Array(128); // by the code of the character
[...ALPHABET].forEach((letter, level) => (LEVELS[letter.charCodeAt(0)] = level / 63));

/** Read the weights of a map, row by row. */
export function readMap(map) {
  const weights = new Float32Array(map.length);
  for (let index = 0; index < map.length; index += 1) {
    weights[index] = LEVELS[map.charCodeAt(index)];
  }
  return weights;
}

/** Write weights as the server does; those of words may exceed one by a rounding. */
export function writeMap(weights) {
  const letters = Array.from(weights, (weight) => ALPHABET[Math.min(63, Math.round(63 * weight))]);
  return letters.join("");
}

/** Average the heads of a layer. */
export function meanMap(layer) {
  const sum = new Float32Array(layer.rows * layer.columns);
  for (const map of layer.maps) readMap(map).forEach((weight, index) => (sum[index] += weight));
  return sum.map((weight) => weight / layer.maps.length);
}
