"""HTML page of a figure: its SVG, light and dark, and its numbers as tables; it loads nothing."""

from collections.abc import Sequence
from html import escape

from seq2see.see.numbers import Numbers

STYLE = """
:root {
  color-scheme: light dark; --text: #1d2129; --page: #fff; --line: #d9dde3
}
.dark { display: none }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ec; --page: #171717; --line: #353b45 }
  .light { display: none }
  .dark { display: block }
}
body {
  margin: 0 auto; max-width: 90rem; padding: 1rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif
}
h1 { font-size: 1.2rem }
figure { margin: 0; overflow-x: auto }
svg { display: block; min-width: 40rem; max-width: 100%; height: auto; margin: 0 auto }
.wide { overflow-x: auto }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
th, td {
  unicode-bidi: plaintext; /* each cell in the direction of its text */
  padding: .15rem .6rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; font-weight: 400
}
thead th { font-weight: 600 }
th:first-child { text-align: left }
summary { cursor: pointer }
"""


def page(title: str, drawings: Sequence[tuple[str, str]], tables: Sequence[Numbers]) -> str:
    """Render pairs of a light and a dark SVG, followed by their numbers."""
    figures = "".join(
        f'<figure class="light">{light}</figure><figure class="dark">{dark}</figure>\n'
        for light, dark in drawings
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
{figures}<details>
<summary>The numbers as tables</summary>
{"".join(map(_table, tables))}</details>
</body>
</html>
"""


def _table(numbers: Numbers) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in numbers.head)
    return (
        f'<div class="wide"><table><caption>{escape(numbers.caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n"
        f"<tbody>{''.join(map(_row, numbers.rows))}</tbody></table></div>\n"
    )


def _row(cells: Sequence[str]) -> str:
    name, *others = cells
    data = "".join(f"<td>{escape(cell)}</td>" for cell in others)
    return f'<tr><th scope="row">{escape(name)}</th>{data}</tr>\n'
