"""Explanations that draw themselves: in a notebook, as a figure, and to files."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.see import attention_page, figures
from seq2see.tasks import translator

ENDINGS = ".html, .json, .png or .svg"


class Explanation(translator.Explanation):
    """A translation with all attention weights, drawn as a page in a notebook."""

    def plot(self, layer: str | None = None, head: int | None = None) -> Figure:
        """Draw every head, those of one layer ("decoder.2.cross"), or one, counted from 0."""
        if layer is None:
            if head is not None:
                raise InputError(f"head {head} of which layer? {self._choices()}")
            return figures.attention(self)
        if layer not in self.weights:
            raise InputError(f"layer {layer!r} is not in this model. {self._choices()}")
        count = len(self.weights[layer])
        if head is not None and not 0 <= head < count:
            raise InputError(f"head {head}: {layer} has {count} heads, counted from 0")
        return self._plot(layer, range(count) if head is None else [head])

    def _plot(self, layer: str, heads: range | list[int]) -> Figure:
        rows, columns = self.tokens(layer)
        _, query, key = self.axes[layer]
        size = (len(heads) * (1.6 + 0.26 * len(columns)), 1.8 + 0.22 * len(rows))
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(f"{self.source}\n{self.target}", fontsize=10, parse_math=False)
        panels = figure.subplots(1, len(heads), squeeze=False)[0]
        for axes, head in zip(panels, heads, strict=True):
            figures.panel(axes, self.weights[layer][head], rows, columns)
            title = figures.head_title(layer, head)
            axes.set_title(title, fontsize=9)
            axes.set_xlabel(key, fontsize=8)
            axes.set_ylabel(query, fontsize=8)
        return figure

    def _choices(self) -> str:
        return f"Its layers: {', '.join(self.weights) or 'none with attention'}"

    def save(self, path: str | Path) -> None:
        """Write a page of HTML, a figure of every head (PNG, SVG), or all numbers as JSON."""
        path = Path(path)
        if path.suffix in (".png", ".svg"):
            figures.save(self.plot(), path)
            return
        if path.suffix not in (".html", ".json"):
            raise InputError(f"{path}: must end in {ENDINGS}")
        try:
            write_text(path, attention_page.page(self) if path.suffix == ".html" else self.json())
        except OSError as error:
            raise InputError(f"{path}: cannot write: {error.strerror}") from None

    def json(self) -> str:
        """Write texts, tokens and every array, with the names and tokens of its axes, as JSON."""
        attention = [
            {
                "name": name,
                "axes": self.axes[name],
                "rows": self.tokens(name)[0],
                "columns": self.tokens(name)[1],
                "weights": weights.tolist(),
            }
            for name, weights in self.weights.items()
        ]
        texts = {"source": self.source, "target": self.target}
        return json.dumps({**texts, "attention": attention}, ensure_ascii=False) + "\n"

    def _repr_html_(self) -> str:
        return attention_page.fragment(self)
