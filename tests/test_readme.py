"""The two READMEs agree with each other and with the code; tables come from the raw figures."""

import re
import tomllib
from pathlib import Path

import pytest
import tables

import seq2see
from seq2see.recipe.schema import Recipe, shipped
from seq2see.tasks.table import checked

ROOT = Path(__file__).parents[1]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md")
}


@pytest.mark.parametrize("name", tables.PAGES)
def test_tables_are_those_of_the_raw_figures(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert tables.filled(name, page) == page, "run `make tables`"


def test_both_pages_have_the_same_parts_commands_and_links() -> None:
    english, chinese = PAGES.values()
    english = re.sub(r"\]\(docs/(\w+\.md)\)", r"](docs/zh/\1)", english)
    for pattern in (r"^#+ ", r"^!\[", r"^\$ [^#\n]*[^#\s]", r"\]\([^)]*\)", r"^```\w*$"):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(
            pattern, chinese, re.MULTILINE
        )


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_what_messages_tell_to_install_is_in_an_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    libraries = {re.split(r"[<>=]", library)[0] for extra in extras.values() for library in extra}
    hinted = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"pip install (\S+?)[\"\s]", path.read_text(encoding="utf-8"))
    }
    assert {"ctranslate2", "spacy", "scikit-learn"} <= hinted <= libraries
    for_users = set(extras) - {"test", "dev"}
    for page in PAGES.values():
        assert {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)} == for_users


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_examples_are_real(page: str) -> None:
    (recipe,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    checked(Recipe.model_validate(tomllib.loads(recipe)))
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    compile(code, "README", "exec")
    for name in {*re.findall(r"seq2see\.([A-Za-z]+)\b", page)} - {"text"}:
        assert hasattr(seq2see, name), name
    listed = page[
        page.index("`captions`, `tiny`" if "`captions`, `tiny`" in page else "`captions`、`tiny`") :
    ]
    assert set(shipped()) <= {*re.findall(r"`([\w-]+)`", listed)}
