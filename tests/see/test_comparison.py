"""The page of a comparison: whole, harmless whatever the texts hold, and the same text that was compared."""

from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.cells import cell_len

from seq2see.errors import InputError
from seq2see.scoring.compare import Comparison, compare
from seq2see.see import comparison

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
    """Elements in order, and the text of each `.text` without what is struck out; fails where tags do not pair up."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
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
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(SYSTEMS, REFERENCES, SOURCES)


@pytest.fixture(scope="module")
def page(found: Comparison) -> str:
    return comparison.page(found)


def test_texts_cannot_become_tags(page: str) -> None:
    reader = Reader(page)
    assert len(reader.all("script")) == page.count("<script") == page.count("</script") == 1
    assert len(reader.all("article")) == 5 and not reader.all("b")
    assert escape(EVIL) in page and "a&lt;b&gt;.txt" in page


def test_nothing_is_fetched(page: str) -> None:
    assert "default-src 'none'" in page
    for outside in ("http:", "https:", "//", "src=", "href=", "url(", "@import", "fetch("):
        assert outside not in page.replace("\n// ", "\n"), outside


def test_every_text_is_there_as_it_was(found: Comparison, page: str) -> None:
    expected = [
        text
        for sentence in found.most_different
        for text in (sentence.source, sentence.reference, *sentence.outputs.values())
    ]
    assert [" ".join(text.split()) for text in Reader(page).texts] == [
        " ".join(str(text).split()) for text in expected
    ]


def test_sentences_carry_what_they_are_sorted_by(found: Comparison, page: str) -> None:
    articles = Reader(page).all("article")
    assert [article["data-line"] for article in articles] == [
        str(each.line) for each in found.most_different
    ]
    for article, each in zip(articles, found.most_different, strict=True):
        assert article["data-scores"] == " ".join(f"{score:.4f}" for score in each.scores.values())
        assert article["data-difference"] == f"{each.difference:.4f}"
    orders = [option["value"] for option in Reader(page).all("option")]
    assert orders == ["difference", "line", "gain 1", "loss 1", "score 0", "score 1"]
    for element in ("sort", "filter", "missing", "count", "sentences"):
        assert f'id="{element}"' in page and element in comparison.SCRIPT + comparison.STYLE


def test_verdicts_intervals_and_bars(found: Comparison, page: str) -> None:
    for system in found.systems:
        for score in (system.bleu, system.chrf):
            assert f"<td>{score.score:.2f}</td><td>{score.mean:.2f} ± {score.ci:.2f}<span" in page
    assert f"<td>{found.systems[1].verdict} (BLEU " in page and "sentences better" in page
    buckets = [*found.by_length, *found.by_rare_words]
    assert page.count('<td class="bar">') == 2 * len(buckets)
    for bucket in buckets:
        assert f'<th scope="row">{bucket.bucket}</th><td>{bucket.sentences}</td>' in page
    assert "rare: once in the source" in page
    assert all(text in page for tests in found.signatures.values() for text in tests.values())


@pytest.mark.parametrize(
    ("output", "reference", "shown"),
    [
        ("a b c", "a b c", "a b c"),
        ("a x c", "a b c", "a <del>b</del> <mark>x</mark> c"),
        ("a c", "a b c", "a <del>b</del> c"),
        ("b c", "a b c", "<del>a</del> b c"),
        ("a b c .", "a b c.", "a b c ."),
        ("a b c!", "a b c.", "a b c<del>.</del><mark>!</mark>"),
        ("", "a b", "<del>a b</del>"),
        ("a b", "", "<mark>a b</mark>"),
        ("A b", "a b", "<del>a</del> <mark>A</mark> b"),
        ("<i> &", "&", "<mark>&lt;i&gt;</mark> &amp;"),
        ("你好世界", "你们好世界", "你<del>们</del>好世界"),
        ("नमस्ते दुनिया", "नमस्ते संसार", "नमस्ते <del>संसार</del> <mark>दुनिया</mark>"),
    ],
)
def test_differences_are_marked_by_words(output: str, reference: str, shown: str) -> None:
    assert comparison.differences(output, reference) == shown


def test_the_same_for_a_terminal(found: Comparison) -> None:
    lines = comparison.lines(found)
    assert lines[0] == "5 sentences · baseline: a<b>.txt"
    head, base, other = lines[2:5]
    assert head.endswith("  p bootstrap  p randomisation") and base.startswith("a<b>.txt  ")
    assert cell_len(other) == cell_len(head)  # a Chinese letter is two columns wide
    assert f"  {'source':9}  {'':5}  {SOURCES[1]}" in lines and any(
        line.endswith(f"  {EVIL}") for line in lines
    )
    assert not any("chance has" in line for line in lines)


def test_without_differences_or_a_source() -> None:
    found = compare({name: REFERENCES for name in "ab"}, REFERENCES)
    assert "no sentence's chrF differs from the baseline's" in comparison.lines(found)
    page = comparison.page(found)
    assert "<dt>source</dt>" not in page and "rare: once in the reference" in page
    assert "<article " in page and "<mark>" not in page.partition("<article")[2]


def test_a_page_is_written_whole_or_not_at_all(
    found: Comparison, page: str, tmp_path: Path
) -> None:
    comparison.save(found, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    (tmp_path / "folder.html").mkdir()
    for name, says in (
        ("page.htm", "must end in .html"),
        ("no/page.html", f"there is no folder {tmp_path / 'no'}"),
        ("folder.html", "cannot write: Is a directory"),
        ("x" * 250 + ".html", "cannot write: File name too long"),
    ):
        with pytest.raises(InputError, match=says):
            comparison.save(found, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "page.html"]
