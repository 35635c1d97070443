"""HTML page of a comparison of systems: one file that loads nothing from the network."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.scoring.compare import Bucket, Comparison, Sentence, System
from seq2see.see.comparison import (
    SCORE_COLUMNS,
    score_cells,
    sentence_counts,
    signatures,
    verdict,
)
from seq2see.see.word_diff import differences

STYLE = """
:root {
  color-scheme: light dark; --text: #1d2129; --dim: #5b6472; --page: #fff; --box: #f5f6f8;
  --line: #d9dde3; --mark: #ffe0a3; --bar: 45% 72%; --accent: #1f5fbf
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e4e7ec; --dim: #9aa4b2; --page: #14171c; --box: #1d2128;
    --line: #353b45; --mark: #66480a; --bar: 45% 32%; --accent: #8ab4f8
  }
}
body {
  margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif
}
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p, small { color: var(--dim) }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td {
  unicode-bidi: plaintext; /* each cell in the direction of its text */
  padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap
}
th { font-weight: 600 }
th:first-child, .scores th:nth-child(2), .scores td:nth-child(2), .bars th:nth-child(n + 3),
td.bar { text-align: left }
.bar span {
  display: inline-block; vertical-align: middle; height: .9em; margin-left: .5rem;
  border-radius: 2px; width: calc(6rem * var(--share)); background: hsl(var(--hue) var(--bar))
}
.range {
  display: inline-block; position: relative; vertical-align: middle; width: 8rem; height: .7em;
  margin-left: .7rem
}
.range span {
  position: absolute; height: 100%; left: var(--from); width: var(--share); min-width: 2px;
  border-radius: 2px; background: hsl(var(--hue) var(--bar))
}
.controls {
  position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .5rem 1.2rem;
  align-items: center; padding: .6rem 0; background: var(--page)
}
.controls[hidden] { display: none }
select, input { font: inherit; max-width: 20rem }
:focus-visible { outline: 2px solid var(--accent) }
article {
  margin: .7rem 0; padding: .6rem .9rem; background: var(--box); border-radius: 6px;
  content-visibility: auto; contain-intrinsic-size: auto 10rem
}
dl {
  display: grid; grid-template-columns: minmax(5rem, max-content) 8rem 1fr; gap: .15rem .9rem;
  margin: 0
}
dt, .score { color: var(--dim); font-variant-numeric: tabular-nums }
dd { margin: 0; overflow-wrap: anywhere }
dt { max-width: 14rem; overflow-wrap: anywhere }
.given { grid-column: 2 / 4 }
mark {
  background: var(--mark); color: inherit; border-radius: 2px; text-decoration: underline dotted
}
del { color: var(--dim) }
body:has(#missing:not(:checked)) article del { display: none }
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr auto }
  dd.text { grid-column: 1 / 3 }
}
"""

SCRIPT = """
"use strict";
const list = document.getElementById("sentences");
const sort = document.getElementById("sort");
const filter = document.getElementById("filter");
const count = document.getElementById("count");
const rows = [...list.children].map(node => ({
  node,
  line: Number(node.dataset.line),
  difference: Number(node.dataset.difference),
  scores: node.dataset.scores.split(" ").map(Number),
}));
const keys = {
  difference: row => -row.difference,
  line: row => row.line,
  score: (row, i) => row.scores[i],
  gain: (row, i) => row.scores[0] - row.scores[i],
  loss: (row, i) => row.scores[i] - row.scores[0],
};
// Words that are struck out are not in the output, so the filter must not match them.
const withoutDeleted = node => node.nodeName === "DEL" ? " " : node.textContent;
const outputText = part => [...part.childNodes].map(withoutDeleted).join("");
const normalize = text => text.replace(/\\s+/g, " ").toLowerCase();
function sortRows() {
  const [by, system] = sort.value.split(" ");
  const key = row => keys[by](row, system);
  rows.sort((a, b) => key(a) - key(b) || a.line - b.line);
  for (const row of rows) list.append(row.node);
}
function filterRows() {
  const query = normalize(filter.value).trim();
  let matches = 0;
  for (const row of rows) {
    row.text ??= normalize([...row.node.querySelectorAll(".text")].map(outputText).join("\\n"));
    row.node.hidden = !row.text.includes(query);
    matches += !row.node.hidden;
  }
  count.textContent = `${matches} of ${rows.length} sentences`;
}
sort.addEventListener("change", sortRows);
filter.addEventListener("input", filterRows);
document.querySelector(".controls").hidden = false;
"""


def page(comparison: Comparison) -> str:
    """Render a comparison as HTML that is readable without its script, which sorts and filters."""
    base, *others = (escape(system.name) for system in comparison.systems)
    title = f"{', '.join(others)} against {base}"
    notes = escape(" · ".join(comparison.notes()))
    charts = [
        _bucket_chart(heading, buckets, comparison.systems)
        for heading, buckets in comparison.charts()
    ]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<p>{comparison.sentences} sentences · baseline: {base} · {notes}</p>
{_score_table(comparison, "BLEU")}{_score_table(comparison, "chrF")}{"".join(charts)}
<h2>Sentences</h2>
<p><mark>marked</mark>: not in the reference · <del>struck out</del>: only in the reference ·
scores are sentence-level chrF, followed by the difference from the baseline in brackets</p>
{_controls(comparison)}
<main id="sentences">
{"".join(map(_article, comparison.most_different))}</main>
<h2>Signatures</h2>
<p>{"<br>".join(map(escape, signatures(comparison)))}</p>
<script>{SCRIPT}</script>
</body>
</html>
"""


def check(path: Path) -> None:
    """Refuse a path to which no page can be written, before the systems are compared."""
    if path.suffix != ".html":
        raise InputError(f"--out {path}: must end in .html")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"--out {path}: cannot write: Is a directory")


def save(comparison: Comparison, path: Path) -> None:
    """Write the page of a comparison."""
    check(path)
    try:
        write_text(path, page(comparison))
    except OSError as error:
        raise InputError(f"--out {path}: cannot write: {error.strerror}") from None


def _hue(index: int) -> int:
    return (215 + 138 * index) % 360  # near the golden angle: neighbouring systems stay distinct


def _score_table(comparison: Comparison, metric: str) -> str:
    """Tabulate one metric with its confidence intervals drawn on a common axis."""
    systems = comparison.systems
    base = systems[0]
    scores = [system.bleu if metric == "BLEU" else system.chrf for system in systems]
    low = min(score.mean - score.ci for score in scores)
    span = max(score.mean + score.ci for score in scores) - low or 1.0
    rows = ""
    for index, (system, score) in enumerate(zip(systems, scores, strict=True)):
        outcome = verdict(system, base) if metric == "BLEU" else sentence_counts(system)
        figure, interval, *p_values = score_cells(score)
        start = (score.mean - score.ci - low) / span
        style = f"--hue:{_hue(index)};--from:{start:.1%};--share:{2 * score.ci / span:.1%}"
        interval += f'<span class="range"><span style="{style}"></span></span>'
        cells = ["baseline" if system is base else outcome, figure, interval, *p_values]
        columns = "".join(f"<td>{cell}</td>" for cell in cells)
        rows += f'<tr><th scope="row">{escape(system.name)}</th>{columns}</tr>\n'
    return _table(metric, ["system", "against the baseline", *SCORE_COLUMNS], rows, "scores")


def _bucket_chart(title: str, buckets: Sequence[Bucket], systems: Sequence[System]) -> str:
    best = max(score for bucket in buckets for score in bucket.bleu.values()) or 1.0
    rows = ""
    for bucket in buckets:
        rows += f'<tr><th scope="row">{bucket.bucket}</th><td>{bucket.sentences}</td>'
        for index, score in enumerate(bucket.bleu.values()):
            style = f"--hue:{_hue(index)};--share:{score / best:.3f}"
            rows += f'<td class="bar">{score:.2f}<span style="{style}"></span></td>'
        rows += "</tr>\n"
    return _table(title, ["", "sentences", *(system.name for system in systems)], rows, "bars")


def _table(title: str, columns: Sequence[str], rows: str, css_class: str) -> str:
    title = escape(title)
    cells = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    return (
        f'<h2>{title}</h2>\n<div class="wide" role="region" aria-label="{title}" tabindex="0">'
        f'<table class="{css_class}"><thead><tr>{cells}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>\n"
    )


def _controls(comparison: Comparison) -> str:
    base, *others = names = [escape(system.name) for system in comparison.systems]
    options = [("difference", "largest difference"), ("line", "line")]
    options += [(f"gain {i}", f"{name} better than {base}") for i, name in enumerate(others, 1)]
    options += [(f"loss {i}", f"{name} worse than {base}") for i, name in enumerate(others, 1)]
    options += [(f"score {i}", f"lowest score of {name}") for i, name in enumerate(names)]
    choices = "".join(f'<option value="{value}">{text}</option>' for value, text in options)
    return (
        '<div class="controls" hidden>'
        f'<label>Order <select id="sort" autocomplete="off">{choices}</select></label>\n'
        '<label>Find <input id="filter" type="search" autocomplete="off"></label>\n'
        '<label><input id="missing" type="checkbox" checked autocomplete="off">'
        " show missing words</label>\n"
        f'<output id="count">{comparison.sentences} sentences</output></div>'
    )


def _article(sentence: Sentence) -> str:
    """Show one sentence with its reference and every output."""
    texts = [] if sentence.source is None else [("source", sentence.source)]
    texts.append(("reference", sentence.reference))
    rows = [
        f'<dt>{name}</dt><dd class="given text" dir="auto">{escape(text)}</dd>'
        for name, text in texts
    ]
    baseline = next(iter(sentence.scores.values()))
    for index, (name, text) in enumerate(sentence.outputs.items()):
        score = sentence.scores[name]
        gain = f" ({score - baseline:+.1f})" if index else ""
        rows.append(
            f'<dt>{escape(name)}</dt><dd class="score">{score:.1f}{gain}</dd>'
            f'<dd class="text" dir="auto">{differences(text, sentence.reference)}</dd>'
        )
    scores = " ".join(f"{score:.4f}" for score in sentence.scores.values())
    return (
        f'<article data-line="{sentence.line}" data-difference="{sentence.difference:.4f}"'
        f' data-scores="{scores}"><small>line {sentence.line}</small>'
        f"<dl>{''.join(rows)}</dl></article>\n"
    )
