// Attention maps as the server sends them: a character per weight, in 64 levels.

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const LEVEL = new Map([...ALPHABET].map((letter, level) => [letter, level / 63]));

/** Read the weights of a map, row by row. */
export function readMap(map) {
  return [...map].map((letter) => LEVEL.get(letter));
}

/** Average the heads of a layer. */
export function meanMap(layer) {
  const sum = new Array(layer.rows * layer.columns).fill(0);
  for (const map of layer.maps) readMap(map).forEach((weight, index) => (sum[index] += weight));
  return sum.map((weight) => weight / layer.maps.length);
}

/** Keep the rows and columns that are not hidden. */
export function crop(weights, rowsKept, columnsKept) {
  const columns = columnsKept.length;
  return weights.filter((_, index) => {
    return rowsKept[Math.floor(index / columns)] && columnsKept[index % columns];
  });
}
