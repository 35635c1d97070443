// Attention between tokens where 64 levels of weight are enough.

import { liveMatrix } from "./matrix.js";
import { decimal } from "./numbers.js";
import { labelsOf } from "./tokens.js";
import { say } from "./words.js";

/** Draw weights between `queries` and `keys`, row by row, as a figure of this name. */
export function drawTokenMap({ name, title, note, queries, keys, weights, data }, width) {
  const rows = labelsOf(queries);
  const columns = labelsOf(keys);
  const axes = { rowAxis: say("queryPosition"), columnAxis: say("keyPosition") };
  const at = (row, column) => decimal(weights[row * columns.length + column]);
  const tell = (row, column) => {
    if (row === null) return say("pointAt");
    return say("weightCell", { row: rows[row], column: columns[column], weight: at(row, column) });
  };
  const words = { key: "matrix", label: title, tell, pick: () => {} };
  const { element, picture } = liveMatrix({ rows, columns, weights, ...axes }, width, words);
  const numbers = rows.map((label, row) => [label, ...columns.map((_, column) => at(row, column))]);
  const table = { columns: [say("query"), ...columns], rows: numbers };
  return { name, title, note, drawing: element, picture, table, data };
}
