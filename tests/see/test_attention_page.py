"""Attention as HTML: complete, equal to the arrays, well-formed, and loading nothing."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from seq2see.see import attention_page
from seq2see.tasks.translator import Explanation

EVIL = "<b>a</b> & \"b\" 'c' <script>alert(1)</script>"


@pytest.fixture
def example() -> Explanation:
    return explanation(sources=3, targets=5, layers=2, heads=2)


def explanation(sources: int, targets: int, layers: int, heads: int) -> Explanation:
    """Random weights between a source and a target of different lengths, </s> included."""
    draw = torch.Generator().manual_seed(1)
    source = [*(f"▁Wort{place}" for place in range(sources - 1)), "</s>"]
    target = [*(f"▁word{place}" for place in range(targets - 1)), "</s>"]
    sizes = {"encoder.{}.self": (sources, sources), "decoder.{}.cross": (targets, sources)}
    weights = {
        name.format(layer): torch.randn(heads, *size, generator=draw).mul(2).softmax(-1)
        for layer in range(layers)
        for name, size in sizes.items()
    }
    for layer in range(layers):
        masked = torch.ones(targets, targets).triu(1).bool()
        scores = torch.randn(heads, targets, targets, generator=draw)
        weights[f"decoder.{layer}.self"] = scores.masked_fill(masked, -torch.inf).softmax(-1)
    texts = (" ".join(source), " ".join(target))
    return Explanation(*texts, source, ["<s>", *target[:-1]], target, weights)


def parsed(explained: Explanation) -> ElementTree.Element:
    return ElementTree.fromstring(attention_page.fragment(explained))


def text(element: ElementTree.Element | None) -> str:
    assert element is not None
    return "".join(element.itertext())


def figures(explained: Explanation) -> dict[tuple[str, int], ElementTree.Element]:
    """The figure of each layer and head, in the order of the blocks."""
    kinds = {kind: [] for kind in attention_page.ATTENTION}
    for name in explained.weights:
        kinds[attention_page.kind_of(name)].append(name)
    heads = [
        (name, head)
        for names in kinds.values()
        for name in names
        for head in range(len(explained.weights[name]))
    ]
    return dict(zip(heads, parsed(explained).iter("figure"), strict=True))


def drawn(figure: ElementTree.Element) -> torch.Tensor:
    """Read the opacity of every cell from a figure's paths."""
    frame = figure.find("svg/rect")
    assert frame is not None
    cells = torch.zeros(int(frame.attrib["height"]), int(frame.attrib["width"]))
    for path in figure.iter("path"):
        for stroke in re.findall(r"M(\d+) (\d+)h(\d+)", path.attrib["d"]):
            s, t, length = map(int, stroke)
            cells[t, s : s + length] = float(path.attrib["opacity"])
    return cells


def test_tables_have_the_arrays_under_the_names_of_their_axes(example: Explanation) -> None:
    for (name, head), figure in figures(example).items():
        rows, columns = example.tokens(name)
        _, query, key = example.axes[name]
        table = figure.find("details/div/table")
        assert table is not None
        corner, *above = map(text, table.findall("thead/tr/th"))
        assert corner == f"{query} ↓ {key} →"
        assert above == attention_page.shown(columns)
        body = table.findall("tbody/tr")
        assert [text(row.find("th")) for row in body] == attention_page.shown(rows)
        values = [[float(text(cell)) for cell in row.findall("td")] for row in body]
        weights = example.weights[name][head]
        torch.testing.assert_close(torch.tensor(values), weights, atol=0.00501, rtol=0.0)


def test_maps_are_the_arrays_in_levels_under_the_names_of_their_axes(example: Explanation) -> None:
    for (name, head), figure in figures(example).items():
        rows, columns = map(attention_page.shown, example.tokens(name))
        _, query, key = example.axes[name]
        weights = example.weights[name][head]
        torch.testing.assert_close(drawn(figure), weights, atol=0.02501, rtol=0.0)
        svg = figure.find("svg")
        assert svg is not None
        assert [*map(text, svg.iter("text"))] == [*rows, *columns, query, key]
        assert f"Rows: {query}; columns: {key}." in svg.attrib["aria-label"]


def test_every_kind_of_attention_has_its_block_of_all_layers_and_heads(
    example: Explanation,
) -> None:
    blocks = parsed(example).findall("details")
    titles = ["Encoder self-attention", "Decoder self-attention", "Cross-attention"]
    assert [text(block.find("summary")) for block in blocks] == titles
    for block in blocks:
        assert [[text(one) for one in row.iter("figcaption")] for row in block.findall("div")] == [
            ["layer 1, head 1", "layer 1, head 2"],
            ["layer 2, head 1", "layer 2, head 2"],
        ]


def test_neighbours_of_a_level_are_one_stroke_and_zero_is_not_drawn() -> None:
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    paths = {
        path.attrib["opacity"]: path.attrib["d"]
        for path in ElementTree.fromstring(attention_page._cells(weights))
    }
    assert paths == {"0.25": "M1 1h1", "0.5": "M0 0h2", "0.75": "M2 1h1"}


def test_markup_in_texts_and_tokens_is_shown_as_it_is(example: Explanation) -> None:
    evil = replace(example, source=EVIL, target=EVIL, source_tokens=["<b>a</b>", "&", "</s>"])
    fragment = parsed(evil)
    assert [text(one) for one in fragment.findall("p")[:2]] == [EVIL, EVIL]
    assert not [*fragment.iter("b"), *fragment.iter("script")]
    assert {text(cell) for cell in fragment.iter("th")} >= {"<b>a</b>", "&"}
    assert f"<title>Attention: {attention_page.escape(EVIL)}</title>" in attention_page.page(evil)


class Reader(HTMLParser):
    """Collects the elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_the_page_is_the_fragment_and_loads_nothing(example: Explanation) -> None:
    page = attention_page.page(example)
    assert attention_page.fragment(example) in page
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert not re.search(r"https?:|//|url\(|@import", page)
    for tag, attributes in Reader(page).elements:
        assert tag not in ("script", "link", "img", "iframe", "image", "use")
        assert not {"src", "href", "xlink:href", "srcset"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]


def test_forty_tokens_of_a_model_of_the_usual_size_are_drawn_whole_below_a_megabyte() -> None:
    example = explanation(sources=40, targets=40, layers=3, heads=4)
    fragment = attention_page.fragment(example)
    assert len(fragment.encode()) < 1_000_000
    assert "Drawn are" not in fragment
    assert len([*parsed(example).iter("td")]) == 36 * 40 * 40


def test_longer_sentences_are_cut_and_the_fragment_says_so(
    example: Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_page, "MOST_CELLS", 12 * 4 * 4)  # 12 maps
    notes = [text(note) for note in parsed(example).findall("p")]
    rule = "plot(layer, head) draws one head whole, and save(“x.json”) has all weights"
    assert f"Drawn are the first 4 of 5 target tokens; {rule}." in notes
    for (name, head), figure in figures(example).items():
        weights = example.weights[name][head, :4, :4]
        torch.testing.assert_close(drawn(figure), weights, atol=0.02501, rtol=0.0)
    monkeypatch.setattr(attention_page, "MOST_CELLS", 12 * 2 * 2)
    notes = [text(note) for note in parsed(example).findall("p")]
    assert f"Drawn are the first 2 of 3 source tokens and of 5 target tokens; {rule}." in notes


def test_long_labels_are_shortened_in_maps_alone(example: Explanation) -> None:
    long = replace(example, source_tokens=["Donaudampfschifffahrt", "▁" + "x" * 15, "</s>"])
    figure = figures(long)["encoder.0.self", 0]
    labels = {text(label) for label in figure.iter("text")}
    assert {"Donaudampfschif…", "·" + "x" * 15} <= labels
    assert "Donaudampfschifffahrt" in {text(cell) for cell in figure.iter("th")}


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ((), "This model has no attention to draw."),
        (
            ("decoder.cross",),
            "This model has no encoder self-attention and no decoder self-attention.",
        ),
        (("encoder.self", "decoder.self"), "This model has no cross-attention."),
    ],
)
def test_a_model_without_some_attention_says_so_in_one_line(
    example: Explanation, kinds: Any, says: str
) -> None:
    weights = {k: w for k, w in example.weights.items() if attention_page.kind_of(k) in kinds}
    fragment = parsed(replace(example, weights=weights))
    notes = [text(note) for note in fragment.findall("p")]
    assert notes[2] == says
    assert (attention_page.CAVEAT in notes) == bool(kinds)
    assert len(fragment.findall("details")) == len(kinds)
