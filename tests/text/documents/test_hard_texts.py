"""Hard texts come back with their structure, whatever a translator does to their sentences."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from seq2see.text.documents import run, translate_document
from seq2see.text.documents.sentences import spaced

TABLE = tomllib.loads(Path(__file__).with_name("hard_texts.toml").read_text(encoding="utf-8"))
TEXTS: dict[str, dict[str, Any]] = {row["name"]: row for row in TABLE["text"]}
TRANSLATORS: dict[str, Callable[[str], str]] = {
    "identity": lambda text: text,
    "upper case": str.upper,
    "without digits": lambda text: re.sub(r"\d", "", text),
    "other digits": lambda text: re.sub(r"\d", "8", text),
    "nothing": lambda text: "",
    "reversed words": lambda text: " ".join(reversed(text.split())),
    "reversed": lambda text: text[::-1],
    "blanks": lambda text: f"\t {text.replace(' ', '   ')} \n\n",
    "the same for all": lambda text: "Dogs",
    "letters alone": lambda text: re.sub(r"[^\w\s]", "", text),
    "twice": lambda text: f"{text} {text}",
    "markup": lambda text: f"</p><b>{text}<!-- & <script>",
}


def test_the_table_is_long_enough() -> None:
    assert len(TEXTS) == len(TABLE["text"]) >= 50


@pytest.mark.parametrize("change", TRANSLATORS)
@pytest.mark.parametrize("name", TEXTS)
def test_structure_stays(name: str, change: str) -> None:
    row = TEXTS[name]
    text = row["text"] * row.get("repeat", 1)
    format = row.get("format", "text")
    source, target = row.get("source", "de"), row.get("target", "en")
    glossary = row.get("glossary")
    steps = translate_document(text, source=source, target=target, format=format, glossary=glossary)
    rounds: list[list[str]] = []

    def translate(texts: list[str]) -> list[str]:
        rounds.append(texts)
        return [TRANSLATORS[change](text) for text in texts]

    result = run(steps, translate)
    assert len(rounds) <= 2
    for kept in row.get("keeps", []):
        assert result.count(kept) >= text.count(kept), kept
    for term, times in row.get("wants", {}).items():
        assert len(re.findall(rf"(?i)(?<!\w){re.escape(term)}(?!\w)", result)) >= times
    if format == "html":
        assert tags(result) == tags(text)
    else:
        assert margins(result) == margins(text)
    if change == "identity" and glossary is None and spaced(source) == spaced(target):
        assert result == text


def tags(html: str) -> list[tuple[str, str]]:
    """List the elements, with their attributes, in the order of the document."""
    elements = LexborHTMLParser(html).css("*")
    return [(str(node.tag), str(sorted(node.attributes.items(), key=str))) for node in elements]


def margins(text: str) -> list[tuple[str, str]]:
    """List the white space at the start and at the end of each line."""
    lines = text.splitlines(keepends=True)
    return [(line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]) for line in lines]
