"""HTML: tags, attributes and nesting stay, whatever a translator does to the text."""

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from seq2see.text.documents import run, translate_document
from seq2see.text.documents.markup import tokens

PARTS = ["<p>", "</p>", "<b>", "</b>", "<i class='x'>", "</i>", '<a href="?a=1&b=2">', "</a>"]
PARTS += ["<br>", "<img alt='Ein Hund'>", "<ul>", "<li>", "</ul>", "<code>", "</code>", "<pre>\n"]
PARTS += ["</pre>", "<script>", "</script>", "<style>", "</style>", "<table>", "<tr>", "<td>"]
PARTS += ["</table>", "<!-- Hund -->", "<!--", "-->", "<!doctype html>", "<p translate=no>", "<"]
PARTS += [">", "&amp;", "&uuml;", "&nbsp", "&#0;", "<svg>", "</svg>", "<title>", "</title>", '"']
PARTS += ["<textarea>", "</textarea>", "<span class=notranslate>", "</span>", "</", "<x-y z/>"]
PARTS += ["Ein Hund", " bellt. ", "Zwei", " ", "\n", "{name}", "3", "http://a.de", "\x00", "ü", "'"]
DOCUMENTS = st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=25).map("".join)

numbers = count()
TRANSLATORS: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "nothing": lambda text: "",
    "blanks": lambda text: " \n ",
    "the same for all": lambda text: "Hund",
    "reversed": lambda text: " ".join(reversed(text.split())),
    "without digits": lambda text: re.sub(r"\d", "", text),
    "markup": lambda text: f"</p><b title='&lt;'>{text}<!-- &amp; <script>",
    "longer": lambda text: f"  x {text}\n\n{text} y ",
}


def translated(html: str, change: Callable[[str], str]) -> str:
    steps = translate_document(html, source="de", target="en", format="html")
    return run(steps, lambda texts: [change(text) for text in texts])


def tree(html: str) -> list[tuple[str, dict[str, Any], int]]:
    """List tags, attributes and depths of the elements that a browser would make."""
    # A lone surrogate cannot be encoded, and NUL is dropped.
    root = LexborHTMLParser(html.encode("utf-8", "replace").decode()).root
    assert root is not None
    elements = []
    open_nodes = [(root, 0)]
    while open_nodes:
        node, depth = open_nodes.pop()
        elements.append((str(node.tag), dict(node.attributes), depth))
        open_nodes += [(child, depth + 1) for child in node.iter()]
    return elements


@settings(deadline=None)
@given(html=DOCUMENTS)
def test_tokens_are_the_document(html: str) -> None:
    assert "".join(token.raw for token in tokens(html)) == html


@settings(deadline=None)
@given(html=DOCUMENTS)
def test_unchanged_sentences_give_back_the_document(html: str) -> None:
    assert translated(html, lambda text: text) == html


@settings(deadline=None, max_examples=60)
@given(html=DOCUMENTS, change=st.sampled_from(sorted(TRANSLATORS)))
def test_the_tree_stays(html: str, change: str) -> None:
    assert tree(translated(html, TRANSLATORS[change])) == tree(html)


@pytest.mark.parametrize(
    ("html", "asked"),
    [
        ("<p>Ein <b>Hund</b> bellt.</p>", ["Ein Hund bellt.", "Hund"]),
        ("<p>Ein\n  Hund &amp; mehr.<br>Zwei!</p>", ["Ein Hund & mehr.", "Zwei!"]),
        ("<title>Ein Hund</title><td>Zwei<td>Drei", ["Ein Hund", "Zwei", "Drei"]),
        ("<p><b>Ein Hund.</b> Zwei <i>Katzen.</i></p>", ["Ein Hund.", "Zwei Katzen.", "Katzen."]),
        ("<p translate=no>Eins<p>Zwei <b class='a notranslate'>Drei</b>", ["Zwei Drei"]),
        ("<div translate=no>Eins <p translate=yes>Zwei</p> Drei</div>", ["Zwei"]),
        ("<pre>Eins</pre><code>Zwei</code><script>'Drei'</script><style>p{x:y}</style>", []),
        ("<textarea>Eins</textarea><svg><text>Zwei</text></svg><!-- Drei --><img alt=Vier>", []),
        ("a < b und <1>", ["a < b und <1>"]),
        ("Ein Wort<wbr>bruch", ["Ein Wort", "bruch"]),
    ],
)
def test_only_text_is_asked_for(html: str, asked: list[str]) -> None:
    rounds: list[str] = []

    def record(text: str) -> str:
        rounds.append(text)
        return text

    assert translated(html, record) == html
    assert rounds == asked


def test_formatting_follows_its_phrase() -> None:
    english = {
        "Gestern hat ein Hund gebellt.": "A dog barked yesterday.",
        "Gestern": "Yesterday.",
        "Hund": "Dog",
        "Ein Hund bellt.": "A cat barks.",
        "Ein": "A",
        "bellt.": "barks.",
        "hat ein Hund gebellt.": "a dog has barked.",
    }
    for html, result in [
        ("Gestern hat ein <b>Hund</b> gebellt.", "A <b>dog</b> barked yesterday."),
        # The phrase is at the start, and its tag before the sentence: it cannot move.
        ("<i>Gestern</i> hat ein Hund gebellt.", "<i>Yesterday.</i> a dog has barked."),
        ("Ein <u>Hund</u> bellt.", "A <u>Dog</u> barks."),  # "Dog" is not in the sentence
    ]:
        assert translated(html, english.__getitem__) == result


def test_text_is_written_as_html() -> None:
    html = '<p title="a&b">Caf&eacute; &lt;3 &amp; {x} kostet 5&nbsp;&euro;</p>'
    assert translated(html, str.upper) == (
        '<p title="a&b">CAF\u00c9 &lt;3 &amp; {x} KOSTET 5&nbsp;&euro;</p>'
    )
