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

/** Average the heads of a layer. */
export function meanMap(layer) {
  const sum = new Float32Array(layer.rows * layer.columns);
  for (const map of layer.maps) readMap(map).forEach((weight, index) => (sum[index] += weight));
  return sum.map((weight) => weight / layer.maps.length);
}

/** Keep the rows and columns that are not hidden. */
export function crop(weights, rowsKept, columnsKept) {
  if (rowsKept.every(Boolean) && columnsKept.every(Boolean)) return weights;
  const columns = columnsKept.length;
  return weights.filter((_, index) => {
    return rowsKept[Math.floor(index / columns)] && columnsKept[index % columns];
  });
}
