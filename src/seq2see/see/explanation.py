"""Explanations that draw themselves: in a notebook, as a figure, and to files."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.see import attention, attention_page, figures
from seq2see.tasks import translator
from seq2see.tasks.translator import kind_of

ENDINGS = ".html, .json, .png or .svg"


class Explanation(translator.Explanation):
    """A translation with all attention weights, drawn as a page in a notebook."""

    def plot(self, layer: str | None = None, head: int | None = None) -> Figure:
        """Draw every head, those of one layer ("decoder.2.cross"), or one, counted from 0."""
        if layer is None:
            if head is not None:
                raise InputError(f"head {head} of which layer? {self._choices()}")
            return attention.on_one_page(self)
        if layer not in self.weights:
            raise InputError(f"layer {layer!r} is not in this model. {self._choices()}")
        count = len(self.weights[layer])
        if head is not None and not 0 <= head < count:
            raise InputError(f"head {head}: {layer} has {count} heads, counted from 0")
        kind = next(short for short, kind in attention.KINDS.items() if kind == kind_of(layer))
        number = int(layer.split(".")[1])
        if head is None:
            return attention.on_one_page(self, kind, number)
        return attention.draw_head(self, kind, number, head)

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
