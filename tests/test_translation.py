"""The guide in two languages: the Chinese pages show what the English ones show."""

import re
from collections import Counter
from pathlib import Path

import pytest

ENGLISH = Path(__file__).parents[1] / "docs"
CHINESE = ENGLISH / "zh"
ONLY_CHINESE = {"glossary.md"}  # the terms with their English originals
NAMES = sorted(path.name for path in ENGLISH.glob("*.md"))
PAGES = sorted([*ENGLISH.glob("*.md"), *CHINESE.glob("*.md")])

FLAGS = re.MULTILINE | re.DOTALL
CODE = r"^```.*?^```$"
GENERATED = r"^<!-- (?P<name>[^/\n]+) -->\n.*?^<!-- /(?P=name) -->$"
PARTS = re.compile(
    rf"(?P<code>{CODE})|(?P<generated>{GENERATED})"
    r"|(?P<heading>^#+(?= ))|(?P<table>(?:^\|[^\n]*\n)+)"
    r"|(?P<item>^ *(?:-|\d+\.)(?= ))|(?P<paragraph>(?<=\n\n)\S)",
    FLAGS,
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HAN = r"[\u3400-\u9fff]"


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_code(page: Path) -> str:
    return re.sub(CODE, "", read(page), flags=FLAGS)


def outline(page: Path) -> list[object]:
    """List what must be equal: code, generated tables, and the form of everything else."""
    parts: list[object] = []
    for match in PARTS.finditer(read(page)):
        if match["table"]:
            rows = match["table"].splitlines()
            parts.append([len(re.findall(r"(?<!\\)\|", row)) for row in rows])
        elif match["paragraph"]:
            parts.append("picture" if match[0] == "!" else "paragraph")
        else:
            parts.append(match[0].replace("](../images/", "](images/"))
    return parts


def targets(page: Path) -> list[str | Path]:
    """List where the links and images of a page lead, without anchors, in terms of English pages."""
    leads: list[str | Path] = []
    for target in LINK.findall(without_code(page)):
        if ":" in target:
            leads.append(target)
            continue
        path, _, _ = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        place = ENGLISH / place.name if place.parent == CHINESE else place
        leads.append(place.with_name("README.md") if place.name == "README.zh-CN.md" else place)
    return leads


def anchors(page: Path) -> set[str]:
    """List the anchors that GitHub gives to the headings of a page."""
    counts: Counter[str] = Counter()
    slugs = set()
    for heading in re.findall(r"^#+ (.+)$", without_code(page), re.MULTILINE):
        words = re.sub(r"\]\([^)]*\)", "", heading.lower())
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        slugs.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return slugs


def test_every_page_is_there_in_both_languages() -> None:
    assert sorted(path.name for path in CHINESE.glob("*.md")) == sorted({*NAMES} | ONLY_CHINESE)


@pytest.mark.parametrize("name", NAMES)
def test_headings_paragraphs_code_and_tables_are_equal(name: str) -> None:
    assert outline(CHINESE / name) == outline(ENGLISH / name)


@pytest.mark.parametrize("name", NAMES)
def test_links_and_images_are_equal(name: str) -> None:
    only_chinese = {ENGLISH / glossary for glossary in ONLY_CHINESE}
    chinese = [target for target in targets(CHINESE / name) if target not in only_chinese]
    assert chinese == targets(ENGLISH / name)


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_link_each_other_and_stay_in_their_own(name: str) -> None:
    assert re.match(rf"# .+\n\n\[中文\]\(zh/{name}\)\n\n", read(ENGLISH / name))
    assert re.match(rf"# .+\n\n\[English\]\(\.\./{name}\)\n\n", read(CHINESE / name))
    assert re.findall(r"\]\(zh/[^)]*\)", read(ENGLISH / name)) == [f"](zh/{name})"]
    assert re.findall(r"\]\(\.\./\w+\.md[^)]*\)", read(CHINESE / name)) == [f"](../{name})"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ENGLISH)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(without_code(page)):
        if ":" in target:
            continue
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target


@pytest.mark.parametrize("name", sorted(path.name for path in CHINESE.glob("*.md")))
def test_chinese_text_has_its_own_punctuation_and_no_breaks_inside_a_phrase(name: str) -> None:
    text = re.sub(rf"{CODE}|{GENERATED}", "", read(CHINESE / name), flags=FLAGS)
    prose = re.sub(r"`[^`]*`", "``", text)
    assert not re.findall(rf"{HAN}[,.;:?!]\s*{HAN}|{HAN}\n *{HAN}", prose)
