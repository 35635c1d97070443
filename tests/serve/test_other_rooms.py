"""The rooms of the explorer for models that do not translate, in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import torch
from PIL import Image

from seq2see.see.pictures import on_patches, rollout
from seq2see.tasks.table import open_model

TEXT = "three one two"
BLANKS = "three <mask> two"
Go = Callable[..., Any]  # the fixture that opens pages
KINDS = {"writer": TEXT, "filler": BLANKS, "labeller": TEXT, "pictured": ""}
ABSENT = {  # rooms that show nothing of a kind, and the reason
    "writer": {"heads": "translates nothing", "beam": "no source sentence"},
    "filler": {"beam": "no search to draw", "layers": "no next token", "training": "has none"},
    "labeller": {"layers": "no next token", "anatomy": "has no translation"},
    "pictured": {"beam": "no search to draw", "compare": "translates nothing"},
}


@pytest.fixture
def enter(mixed: Any, go: Go) -> Go:
    """Open a room on a model, with its text."""

    def visit(room: str, name: str, view: str = "", width: int = 1280) -> Any:
        look = f"model={name}&text={quote(KINDS[name])}{view}"
        return go(f"{mixed.url}/#{room}?{look}", width, focus=None)

    return visit


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "noise.png"
    pixels = torch.arange(64).mul(37).remainder(256).byte()
    Image.frombytes("L", (8, 8), bytes(pixels.tolist())).save(path)
    return path


def numbers(visit: Any, figure: str) -> list[list[str]]:
    """Unfold a figure's numbers and read them, row by row; the first row names the columns."""
    place = f"section:not([hidden]) [data-name={figure}]"
    visit.find(f"{place} summary").click()
    visit.expect(visit.find(f"{place} table")).to_be_visible()
    rows: list[list[str]] = visit.read(
        f"""[...document.querySelector("{place} table").rows].map(
            (row) => [...row.cells].map((cell) => cell.textContent.replace("−", "-")))"""
    )
    return rows


def shares(rows: list[list[str]], skipped: int = 0) -> torch.Tensor:
    """The numbers of a table without its names, and without some columns at the end."""
    cells = [row[1 : len(row) - skipped] for row in rows[1:]]
    return torch.tensor([[float(cell) for cell in row] for row in cells])


def test_a_language_model_in_its_rooms(enter: Go, others: dict[str, Path]) -> None:
    writer = open_model(others["writer"], "cpu")
    (log_p,) = writer.log_probabilities([TEXT])
    visit = enter("words", "writer")
    visit.see("#words-title", "What comes next?")
    rows = numbers(visit, "step")
    count = len(log_p) - 1  # without </s>, before which the text goes on
    assert [float(row[2]) for row in rows[1 : 1 + count]] == pytest.approx(log_p[:-1], abs=1e-4)
    visit.find('#words [data-key="1"]').click()
    visit.expect(visit.find('#words [data-key="1"]')).to_have_attribute("aria-pressed", "true")
    assert "word=1" in visit.page.url
    visit.find('#words [data-key="1"]').press("ArrowRight")
    visit.expect(visit.find('#words [data-key="2"]')).to_be_focused()
    for field in ("#look-beam", "#look-target", "#look-picture"):
        visit.expect(visit.find(field)).to_be_hidden()
    visit.find('nav a[href^="#attention"]').click()
    visit.see("[data-name=head] h2", "Self-attention, layer 2, head 1")
    visit.expect(visit.find("#attention .lead")).to_contain_text("no cross-attention to align")
    weights = shares(numbers(visit, "head"), skipped=1)  # the last column is the entropy
    assert torch.equal(weights, weights.tril())
    torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)), atol=1e-3, rtol=0)
    visit.find('nav a[href^="#layers"]').click()
    visit.see("#layers-title", "What would each layer have said next?")
    assert len(numbers(visit, "layers")) == 1 + 2 * (count + 1)
    visit.find("#look-model").select_option("toy")
    visit.see("#layers-title", "What would each layer have said?")
    visit.expect(visit.find("#look-beam")).to_be_visible()


def test_a_masked_model_in_its_rooms(enter: Go, others: dict[str, Path]) -> None:
    (candidates,) = open_model(others["filler"], "cpu").fill(BLANKS).blanks
    visit = enter("words", "filler")
    rows = numbers(visit, "blanks")
    best = [f"{one.token} {one.probability:.6f}" for one in candidates]
    assert [re.sub("[\u2068\u2069]", "", cell) for cell in rows[1][1:]] == best
    visit.find("#look-text").fill(TEXT)
    visit.expect(visit.find("#words .plain")).to_contain_text("Write <mask> in place of a word")
    visit.find('nav a[href^="#attention"]').click()
    weights = shares(numbers(visit, "head"), skipped=1)
    assert (weights.sum(1) - 1).abs().max() < 1e-3 and weights[0, -1] > 0


def test_a_picture_in_its_rooms(
    enter: Go, others: dict[str, Path], picture: Path, tmp_path: Path
) -> None:
    ours = open_model(others["pictured"], "cpu").explain(picture)
    visit = enter("words", "pictured")
    visit.see("#words .plain", "Choose a picture above to look inside the model.")
    visit.expect(visit.find("#look-picture-note")).to_contain_text("not part of the link")
    visit.find("#look-picture").set_input_files(picture)
    rows = numbers(visit, "classes")
    assert {row[0]: float(row[1]) for row in rows[1:]} == pytest.approx(
        ours.prediction.probabilities, abs=1e-6
    )
    assert picture.name not in visit.page.url
    visit.find('nav a[href^="#attention"]').click()
    visit.expect(visit.find(".thumb")).to_have_count(4)
    visit.find('.thumb[data-key="stack.0.self.1"]').click()
    visit.see("[data-name=head] h2", "Self-attention, layer 1, head 2")
    expected = on_patches(ours.weights[0], ours.grid)[1]
    torch.testing.assert_close(shares(numbers(visit, "head")), expected, atol=1e-6, rtol=0)
    expected = on_patches(rollout(ours.weights), ours.grid)
    torch.testing.assert_close(shares(numbers(visit, "rollout")), expected, atol=1e-6, rtol=0)
    visit.find("[data-name=head] canvas[tabindex]").focus()
    visit.page.keyboard.press("ArrowRight")
    visit.expect(visit.find("[data-name=head] .readout")).to_contain_text("row 1, column 2: ")
    with visit.page.expect_download() as waiting:
        visit.find('[data-name=head] [data-key="save-svg"]').click()
    waiting.value.save_as(tmp_path / "head.svg")
    assert "rgb(" in (tmp_path / "head.svg").read_text(encoding="utf-8")
    (tmp_path / "large.png").write_bytes(bytes(750_001))
    visit.find("#look-picture").set_input_files(tmp_path / "large.png")
    visit.see("#trouble span", "The picture is 751 kB; the server takes at most 750 kB.")
    (tmp_path / "text.png").write_text("no picture", encoding="utf-8")
    visit.find("#look-picture").set_input_files(tmp_path / "text.png")
    visit.expect(visit.find("#trouble span")).to_contain_text("not a picture of a known format")
    visit.forgive("422")


def test_every_kind_fits_a_phone_and_says_what_is_not_there(enter: Go, picture: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for name, absent in ABSENT.items():
        visit = enter("words", name, width=390)
        if name == "pictured":
            visit.find("#look-picture").set_input_files(picture)
        for room in ("words", "attention"):
            visit.find(f'nav a[href^="#{room}"]').click()
            visit.expect(visit.find(f"#{room} figure").first).to_be_visible()
            assert visit.read("document.documentElement.scrollWidth <= innerWidth")
            found = axe.run(visit.page, options={"resultTypes": ["violations"]}).response
            grave = [
                (one["id"], one["nodes"][0]["html"])
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert grave == []
        for room, words in absent.items():
            visit.find(f'nav a[href^="#{room}"]').click()
            visit.expect(visit.find(f"#{room} .plain")).to_contain_text(words)
            visit.expect(visit.find(f"#{room} figure")).to_have_count(0)
        visit.find("#language").click()
        visit.expect(visit.find(f"#{room} .plain")).to_have_text(
            re.compile("因此没有|而.*不做|没有译文")
        )


def test_without_translation_the_page_opens_in_the_explorer(
    local: Any, go: Go, others: dict[str, Path]
) -> None:
    server = local(model=others["writer"])
    visit = go(server.url, focus=None)
    visit.see("#words .plain", "Type a sentence above to look inside the model.")
    visit.find("#look-text").fill(TEXT)
    visit.expect(visit.find("[data-name=next]")).to_be_visible()
    visit.find('nav a[href="#translate"]').click()
    visit.expect(visit.find("#text")).to_have_attribute(
        "placeholder", re.compile("no model that translates")
    )
    visit.expect(visit.find("#trouble")).to_be_hidden()
