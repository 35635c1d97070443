"""A comparison of systems, to read: as lines for a terminal, and as one HTML file that asks nothing of the network."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape
from pathlib import Path

from rich.cells import cell_len

from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.scoring.compare import EQUAL, Bucket, Comparison, Score, Sentence, System

HEADS = ["score", "mean ± 95 % interval", "p bootstrap", "p randomisation"]
SHOWN = 10  # sentences in the terminal; the page has them all
ALONE = "぀-ヿ㐀-鿿"  # Chinese and Japanese leave no spaces, so each letter stands as a word
MARKS = r"!-/:-@\[-`{-~«»‐-⁞、。！，？：；（）"
TOKEN = re.compile(
    rf"\s*(?:[{ALONE}{MARKS}]|[^\s{ALONE}{MARKS}]+)"
)  # the space before a word goes with it

STYLE = """
:root { color-scheme: light dark; --text: #1d2129; --dim: #5b6472; --page: #fff; --box: #f5f6f8; --line: #d9dde3;
  --mark: #ffe0a3; --bar: 45% 72%; --accent: #1f5fbf }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7ec; --dim: #9aa4b2; --page: #14171c; --box: #1d2128;
  --line: #353b45; --mark: #66480a; --bar: 45% 32%; --accent: #8ab4f8 } }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p, small { color: var(--dim) }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th { font-weight: 600 } th:first-child, .scores th:nth-child(2), .scores td:nth-child(2), .bars th:nth-child(n + 3),
td.bar { text-align: left }
.bar span { display: inline-block; vertical-align: middle; height: .9em; margin-left: .5rem; border-radius: 2px;
  width: calc(6rem * var(--share)); background: hsl(var(--hue) var(--bar)) }
.range { display: inline-block; position: relative; vertical-align: middle; width: 8rem; height: .7em;
  margin-left: .7rem }
.range span { position: absolute; height: 100%; left: var(--from); width: var(--share); min-width: 2px;
  border-radius: 2px; background: hsl(var(--hue) var(--bar)) }
.controls { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .5rem 1.2rem;
  align-items: center; padding: .6rem 0; background: var(--page) }
.controls[hidden] { display: none }
select, input { font: inherit; max-width: 20rem } :focus-visible { outline: 2px solid var(--accent) }
article { margin: .7rem 0; padding: .6rem .9rem; background: var(--box); border-radius: 6px;
  content-visibility: auto; contain-intrinsic-size: auto 10rem }
dl { display: grid; grid-template-columns: minmax(5rem, max-content) 8rem 1fr; gap: .15rem .9rem; margin: 0 }
dt, .score { color: var(--dim); font-variant-numeric: tabular-nums } dd { margin: 0; overflow-wrap: anywhere }
dt { max-width: 14rem; overflow-wrap: anywhere } .given { grid-column: 2 / 4 }
mark { background: var(--mark); color: inherit; border-radius: 2px; text-decoration: underline dotted }
del { color: var(--dim) } body:has(#missing:not(:checked)) article del { display: none }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr auto } dd.text { grid-column: 1 / 3 } }
"""

SCRIPT = """
"use strict";
const list = document.getElementById("sentences"), sort = document.getElementById("sort");
const filter = document.getElementById("filter"), count = document.getElementById("count");
const rows = [...list.children].map(node => ({ node, line: Number(node.dataset.line),
  difference: Number(node.dataset.difference), scores: node.dataset.scores.split(" ").map(Number) }));
const keys = { difference: row => -row.difference, line: row => row.line, score: (row, i) => row.scores[i],
  gain: (row, i) => row.scores[0] - row.scores[i], loss: (row, i) => row.scores[i] - row.scores[0] };
// What is struck out was never said, so it is not found either.
const said = part => [...part.childNodes].map(node => node.nodeName === "DEL" ? " " : node.textContent).join("");
const plain = text => text.replace(/\\s+/g, " ").toLowerCase();
function arrange() {
  const [by, system] = sort.value.split(" ");
  const key = row => keys[by](row, system);
  rows.sort((a, b) => key(a) - key(b) || a.line - b.line);
  for (const row of rows) list.append(row.node);
}
function choose() {
  const wanted = plain(filter.value).trim();
  let found = 0;
  for (const row of rows) {
    row.text ??= plain([...row.node.querySelectorAll(".text")].map(said).join("\\n"));
    row.node.hidden = !row.text.includes(wanted);
    found += !row.node.hidden;
  }
  count.textContent = `${found} of ${rows.length} sentences`;
}
sort.addEventListener("change", arrange);
filter.addEventListener("input", choose);
document.querySelector(".controls").hidden = false;
"""


def lines(comparison: Comparison) -> list[str]:
    """The tables and the sentences that differ most, for a terminal."""
    base, *others = comparison.systems
    found = [f"{comparison.sentences} sentences · baseline: {base.name}", ""]
    found += [
        *table([["BLEU", *HEADS], *([s.name, *_figures(s.bleu)] for s in comparison.systems)]),
        "",
    ]
    found += [
        *table([["chrF", *HEADS], *([s.name, *_figures(s.chrf)] for s in comparison.systems)]),
        "",
    ]
    for system in others:
        found.append(
            f"{system.name} against {base.name}: {_verdict(system, base)}; {_sentences_of(system)} by chrF"
        )
    found += [*comparison.notes(), ""]
    for title, buckets in comparison.charts():
        rows = [
            ["", *(b.bucket for b in buckets)],
            ["sentences", *(str(b.sentences) for b in buckets)],
        ]
        rows += [[s.name, *(f"{b.bleu[s.name]:.2f}" for b in buckets)] for s in comparison.systems]
        found += [title, *table(rows), ""]
    return [*found, *_examples(comparison.most_different), "", *_signatures(comparison)]


def page(comparison: Comparison) -> str:
    """The whole comparison as HTML; it can be read without its script, which sorts and filters."""
    base, *others = (escape(system.name) for system in comparison.systems)
    title = f"{', '.join(others)} against {base}"
    charts = "".join(
        _chart(heading, buckets, comparison.systems) for heading, buckets in comparison.charts()
    )
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
<p>{comparison.sentences} sentences · the baseline is {base} · {escape(" · ".join(comparison.notes()))}</p>
{_scores(comparison, "BLEU")}{_scores(comparison, "chrF")}{charts}
<h2>Sentences</h2>
<p><mark>marked</mark>: not so in the reference · <del>struck out</del>: only in the reference ·
the figures are sentence-level chrF, and in brackets the difference to the baseline</p>
{_controls(comparison)}
<main id="sentences">
{"".join(map(_article, comparison.most_different))}</main>
<h2>Signatures</h2>
<p>{"<br>".join(escape(line) for line in _signatures(comparison))}</p>
<script>{SCRIPT}</script>
</body>
</html>
"""


def check(path: Path) -> None:
    """Refuse a path that cannot become a page, before the work is done."""
    if path.suffix != ".html":
        raise InputError(f"--out {path}: must end in .html")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"--out {path}: cannot write: Is a directory")


def save(comparison: Comparison, path: Path) -> None:
    """Write the page."""
    check(path)
    try:
        write_text(path, page(comparison))
    except OSError as error:
        raise InputError(f"--out {path}: cannot write: {error.strerror}") from None


def _verdict(system: System, base: System) -> str:
    return f"{system.verdict} (BLEU {system.bleu.score - base.bleu.score:+.2f})"


def _sentences_of(system: System) -> str:
    return f"{system.wins} sentences better, {system.ties} equal, {system.losses} worse"


def _signatures(comparison: Comparison) -> list[str]:
    names = {"bleu": "BLEU", "chrf": "chrF"}
    return [
        f"{names[m]}, {test}: {text}"
        for m, tests in comparison.signatures.items()
        for test, text in tests.items()
    ]


def _figures(tested: Score) -> list[str]:
    p = (
        "" if each is None else f"{each:.4f}"
        for each in (tested.p_bootstrap, tested.p_randomisation)
    )
    return [f"{tested.score:.2f}", f"{tested.mean:.2f} ± {tested.ci:.2f}", *p]


def _examples(sentences: Sequence[Sentence]) -> list[str]:
    shown = [sentence for sentence in sentences[:SHOWN] if sentence.difference > EQUAL]
    if not shown:
        return ["no sentence's chrF differs from the baseline's"]
    found = ["the sentences whose chrF differs most from the baseline's"]
    for each in shown:
        rows = [] if each.source is None else [("source", "", each.source)]
        rows += [("reference", "", each.reference)]
        rows += [(name, f"{each.scores[name]:.1f}", text) for name, text in each.outputs.items()]
        width = max(cell_len(name) for name, _, _ in rows)
        found += [
            f"line {each.line}",
            *(f"  {_pad(name, width)}  {score:>5}  {text}" for name, score, text in rows),
        ]
    return found


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns under each other: the first begins, the others end at the same place."""
    names, *others = zip(*rows, strict=True)
    columns = [[_pad(name, max(map(cell_len, names))) for name in names]]
    columns += [[cell.rjust(max(map(len, column))) for cell in column] for column in others]
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def _pad(text: str, width: int) -> str:
    return text + " " * (
        width - cell_len(text)
    )  # not ljust(): a Chinese letter is two columns wide


def _hue(place: int) -> int:
    return (
        215 + 138 * place
    ) % 360  # near the golden angle: neighbours differ, however many there are


def _scores(comparison: Comparison, metric: str) -> str:
    """One metric's figures with the intervals drawn over each other, and what follows from them."""
    base, *_ = systems = comparison.systems
    tests = [system.bleu if metric == "BLEU" else system.chrf for system in systems]
    low = min(tested.mean - tested.ci for tested in tests)
    span = max(tested.mean + tested.ci for tested in tests) - low or 1.0
    rows = ""
    for place, (system, tested) in enumerate(zip(systems, tests, strict=True)):
        told = _verdict(system, base) if metric == "BLEU" else _sentences_of(system)
        score, interval, *p = _figures(tested)
        start = (tested.mean - tested.ci - low) / span
        style = f"--hue:{_hue(place)};--from:{start:.1%};--share:{2 * tested.ci / span:.1%}"
        drawn = f'{interval}<span class="range"><span style="{style}"></span></span>'
        cells = ["baseline" if system is base else told, score, drawn, *p]
        rows += f'<tr><th scope="row">{escape(system.name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>\n'
    return _grid(metric, ["system", "against the baseline", *HEADS], rows, "scores")


def _chart(title: str, buckets: Sequence[Bucket], systems: Sequence[System]) -> str:
    most = max(score for bucket in buckets for score in bucket.bleu.values()) or 1.0
    rows = ""
    for bucket in buckets:
        rows += f'<tr><th scope="row">{bucket.bucket}</th><td>{bucket.sentences}</td>'
        for place, score in enumerate(bucket.bleu.values()):
            style = f"--hue:{_hue(place)};--share:{score / most:.3f}"
            rows += f'<td class="bar">{score:.2f}<span style="{style}"></span></td>'
        rows += "</tr>\n"
    return _grid(title, ["", "sentences", *(system.name for system in systems)], rows, "bars")


def _grid(title: str, heads: Sequence[str], rows: str, kind: str) -> str:
    cells = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    return (
        f'<h2>{escape(title)}</h2>\n<div class="wide" role="region" aria-label="{escape(title)}" tabindex="0">'
        f'<table class="{kind}"><thead><tr>{cells}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n'
    )


def _controls(comparison: Comparison) -> str:
    names = [escape(system.name) for system in comparison.systems]
    options = [("difference", "largest difference"), ("line", "line")]
    options += [
        (f"gain {i}", f"{name} better than {names[0]}") for i, name in enumerate(names) if i
    ]
    options += [(f"loss {i}", f"{name} worse than {names[0]}") for i, name in enumerate(names) if i]
    options += [(f"score {i}", f"worst of {name}") for i, name in enumerate(names)]
    choices = "".join(f'<option value="{value}">{text}</option>' for value, text in options)
    return (
        f'<div class="controls" hidden><label>Order <select id="sort" autocomplete="off">{choices}</select></label>\n'
        '<label>Find <input id="filter" type="search" autocomplete="off"></label>\n'
        '<label><input id="missing" type="checkbox" checked autocomplete="off"> show missing words</label>\n'
        f'<output id="count">{comparison.sentences} sentences</output></div>'
    )


def _article(sentence: Sentence) -> str:
    """One sentence with its reference and every output."""
    given = [] if sentence.source is None else [("source", sentence.source)]
    rows = [
        f'<dt>{name}</dt><dd class="given text" dir="auto">{escape(text)}</dd>'
        for name, text in [*given, ("reference", sentence.reference)]
    ]
    first = next(iter(sentence.scores.values()))
    for place, (name, text) in enumerate(sentence.outputs.items()):
        score = sentence.scores[name]
        gain = f" ({score - first:+.1f})" if place else ""
        rows.append(
            f'<dt>{escape(name)}</dt><dd class="score">{score:.1f}{gain}</dd>'
            f'<dd class="text" dir="auto">{differences(text, sentence.reference)}</dd>'
        )
    scores = " ".join(f"{score:.4f}" for score in sentence.scores.values())
    return (
        f'<article data-line="{sentence.line}" data-difference="{sentence.difference:.4f}" data-scores="{scores}">'
        f"<small>line {sentence.line}</small><dl>{''.join(rows)}</dl></article>\n"
    )


def differences(output: str, reference: str) -> str:
    """The output as HTML: words that the reference has not are marked, those it has besides are struck out."""
    said, expected = TOKEN.findall(output), TOKEN.findall(reference)
    matcher = SequenceMatcher(
        None, [word.strip() for word in expected], [word.strip() for word in said]
    )
    parts = ""
    for kind, start, end, first, last in matcher.get_opcodes():
        ours, theirs = "".join(said[first:last]), "".join(expected[start:end])
        if kind == "equal":
            parts += escape(ours)
        else:
            # The first word has no space before it, not even where something missing stands before it.
            parts += (
                _tagged("del", theirs)
                + (" " if theirs and not first else "")
                + _tagged("mark", ours)
            )
    return parts.strip()


def _tagged(tag: str, text: str) -> str:
    words = text.lstrip()
    return f"{text[: len(text) - len(words)]}<{tag}>{escape(words)}</{tag}>" if words else ""
