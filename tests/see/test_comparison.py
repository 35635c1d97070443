"""Report and page of a comparison: complete, unaltered, and safe against markup in the texts."""

from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.cells import cell_len

from seq2see.errors import InputError
from seq2see.scoring.compare import Comparison, compare
from seq2see.see import comparison, comparison_page

EVIL = "<script>alert('1')</script> & \"quotes\" </article>"
REFERENCES = ["A small dog runs.", "Two cats & a bird", EVIL, "", "one\u2028two"]
SYSTEMS = {
    "a<b>.txt": [
        "A small cat runs .",
        "Two cats",
        "x </script><script>alert(2)</script>",
        "word",
        "one\u2028two",
    ],
    '另"个.txt': ["A small dog runs.", "", EVIL, "", "two one"],
}
SOURCES = ["Ein kleiner Hund läuft.", EVIL, "drei", "vier", "fünf"]
VOID = {"meta", "input", "br"}


class Reader(HTMLParser):
    """Parser of a page: its elements, and its `.text` without deletions; tags must pair up."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "dd":
            self.inside = "text" in str(dict(attributes)["class"]).split()
            self.texts += [""] * self.inside

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "dd" in self.open and "del" not in self.open and self.inside:
            self.texts[-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(SYSTEMS, REFERENCES, SOURCES)


@pytest.fixture(scope="module")
def page(compared: Comparison) -> str:
    return comparison_page.page(compared)


def test_texts_cannot_become_tags(page: str) -> None:
    reader = Reader(page)
    assert len(reader.all("script")) == page.count("<script") == page.count("</script") == 1
    assert len(reader.all("article")) == 5 and not reader.all("b")
    assert escape(EVIL) in page and "a&lt;b&gt;.txt" in page


def test_nothing_is_fetched(page: str) -> None:
    assert "default-src 'none'" in page
    for outside in ("http:", "https:", "//", "src=", "href=", "url(", "@import", "fetch("):
        assert outside not in page.replace("\n// ", "\n"), outside


def test_every_text_is_there_as_it_was(compared: Comparison, page: str) -> None:
    expected = [
        text
        for sentence in compared.most_different
        for text in (sentence.source, sentence.reference, *sentence.outputs.values())
    ]
    assert [" ".join(text.split()) for text in Reader(page).texts] == [
        " ".join(str(text).split()) for text in expected
    ]


def test_sentences_carry_what_they_are_sorted_by(compared: Comparison, page: str) -> None:
    articles = Reader(page).all("article")
    assert [article["data-line"] for article in articles] == [
        str(sentence.line) for sentence in compared.most_different
    ]
    for article, sentence in zip(articles, compared.most_different, strict=True):
        assert article["data-scores"] == " ".join(
            f"{score:.4f}" for score in sentence.scores.values()
        )
        assert article["data-difference"] == f"{sentence.difference:.4f}"
    orders = [option["value"] for option in Reader(page).all("option")]
    assert orders == ["difference", "line", "gain 1", "loss 1", "score 0", "score 1"]
    for element in ("sort", "filter", "missing", "count", "sentences"):
        assert (
            f'id="{element}"' in page and element in comparison_page.SCRIPT + comparison_page.STYLE
        )


def test_verdicts_intervals_and_bars(compared: Comparison, page: str) -> None:
    for system in compared.systems:
        for score in (system.bleu, system.chrf):
            assert f"<td>{score.score:.2f}</td><td>{score.mean:.2f} ± {score.ci:.2f}<span" in page
    assert f"<td>{compared.systems[1].verdict} (BLEU " in page and "sentences better" in page
    buckets = [*compared.by_length, *compared.by_rare_words]
    assert page.count('<td class="bar">') == 2 * len(buckets)
    for bucket in buckets:
        assert f'<th scope="row">{bucket.bucket}</th><td>{bucket.sentences}</td>' in page
    assert "rare: once in the source" in page
    assert all(text in page for tests in compared.signatures.values() for text in tests.values())


def test_the_terminal_report(compared: Comparison) -> None:
    lines = comparison.report(compared)
    assert lines[0] == "5 sentences · baseline: a<b>.txt"
    head, base, other = lines[2:5]
    assert head.endswith("  p bootstrap  p randomisation") and base.startswith("a<b>.txt  ")
    assert cell_len(other) == cell_len(head)  # a Chinese character is two cells wide
    assert f"  {'source':9}  {'':5}  {SOURCES[1]}" in lines and any(
        line.endswith(f"  {EVIL}") for line in lines
    )
    assert not any("chance has" in line for line in lines)


def test_without_differences_or_a_source() -> None:
    same = compare({name: REFERENCES for name in "ab"}, REFERENCES)
    assert "no sentence's chrF differs from the baseline's" in comparison.report(same)
    page = comparison_page.page(same)
    assert "<dt>source</dt>" not in page and "rare: once in the reference" in page
    assert "<article " in page and "<mark>" not in page.partition("<article")[2]


def test_a_page_is_written_whole_or_not_at_all(
    compared: Comparison, page: str, tmp_path: Path
) -> None:
    comparison_page.save(compared, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    (tmp_path / "folder.html").mkdir()
    for name, says in (
        ("page.htm", "must end in .html"),
        ("no/page.html", f"there is no folder {tmp_path / 'no'}"),
        ("folder.html", "cannot write: Is a directory"),
        ("x" * 250 + ".html", "cannot write: File name too long"),
    ):
        with pytest.raises(InputError, match=says):
            comparison_page.save(compared, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "page.html"]
