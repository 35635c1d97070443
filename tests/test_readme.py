"""The two READMEs say the same, and nothing that is not so."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import seq2see
from seq2see.config import Recipe, shipped

ROOT = Path(__file__).parents[1]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md")}


@pytest.mark.parametrize("name", PAGES)
def test_the_table_is_that_of_the_raw_figures(name: str) -> None:
    tables = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))
    assert tables["filled"](name, PAGES[name]) == PAGES[name], "run `make tables`"


def test_both_pages_have_the_same_parts_commands_and_links() -> None:
    english, chinese = PAGES.values()
    for pattern in (r"^#+ ", r"^!\[", r"^\$ [^#\n]*[^#\s]", r"\]\([^)]*\)", r"^```\w*$"):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(pattern, chinese, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_examples_are_real(page: str) -> None:
    (recipe,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    Recipe.model_validate(tomllib.loads(recipe))
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    compile(code, "README", "exec")
    for name in {*re.findall(r"seq2see\.([A-Za-z]+)\b", page)} - {"text"}:
        assert hasattr(seq2see, name), name
    listed = page[page.index("`captions`, `tiny`" if "`captions`, `tiny`" in page else "`captions`、`tiny`") :]
    assert set(shipped()) <= {*re.findall(r"`([\w-]+)`", listed)}
