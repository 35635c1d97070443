"""The rooms of the explorer in a real browser: two models, whose own forward passes they show."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from seq2see.batches import Batch, Ids, collate
from seq2see.decoding.hypotheses import Search
from seq2see.layers.trace import Trace
from seq2see.see.alignment import between_words, word_of_piece
from seq2see.tasks.table import load
from seq2see.tasks.translator import Translator

TEXT = "drei acht eins"
BEAM = 3
ROOMS = ["words", "attention", "heads", "beam", "layers", "anatomy", "training", "compare"]
HEAD = "&layer=decoder.1.cross&head=1"
Go = Callable[..., Any]  # the fixture that opens pages


@dataclass(frozen=True)
class Own:
    """A text and its translation, and one forward pass of a model over both, made by the test."""

    translator: Translator
    batch: Batch
    text: str
    pieces: list[str]  # of the translation, </s> last
    probabilities: Tensor  # (T, V)
    weights: dict[str, Tensor]  # name → (H, T, S)

    @property
    def chosen(self) -> list[float]:
        """The probability of each token of the translation."""
        ids = self.batch.target_out[0]
        return [float(row[id]) for row, id in zip(self.probabilities, ids, strict=True)]


@torch.inference_mode()
def own(translator: Translator, text: str = TEXT, ids: Ids | None = None) -> Own:
    """Pass a text and its translation through the model; by default, the model's own."""
    source = translator.tokenizers.source.encode(text)
    if ids is None:
        ((best,),) = translator.hypotheses([source], Search.of(translator.recipe, BEAM))
        ids = best.ids
    batch = collate([(source, ids)], [0])
    trace = Trace()
    logits = translator.model(batch, trace)[0]
    target = translator.tokenizers.target
    pieces = [*(target.piece(id) for id in ids), "</s>"]
    weights = {name: heads[0] for name, heads in trace.weights.items()}
    return Own(translator, batch, target.decode(ids), pieces, logits.softmax(-1), weights)


@pytest.fixture(scope="module")
def both(siblings: list[Path]) -> dict[str, Own]:
    return {name: own(load(place, "cpu")) for name, place in zip("ab", siblings, strict=True)}


@pytest.fixture
def enter(pair: Any, go: Go) -> Go:
    """Open a room at TEXT and wait until it is drawn."""

    def visit(room: str, view: str = "&model=a", width: int = 1280) -> Any:
        url = f"{pair.url}/#{room}?text={quote(TEXT)}&beam={BEAM}{view}"
        one = go(url, width, focus=None)
        one.expect(one.find(f"#{room} .output > *").first).to_be_visible()
        return one

    return visit


def numbers(visit: Any, figure: str) -> list[list[str]]:
    """Unfold a figure's numbers and read them, row by row; the first row names the columns."""
    place = f"section:not([hidden]) [data-name={figure}]"
    if visit.find(f"{place} details").get_attribute("open") is None:
        visit.find(f"{place} summary").click()
    visit.expect(visit.find(f"{place} table")).to_be_visible()
    rows: list[list[str]] = visit.read(
        f"""[...document.querySelector("{place} table").rows].map(
            (row) => [...row.cells].map((cell) => cell.textContent.replace("−", "-")))"""
    )
    return rows


def column(rows: list[list[str]], name: str) -> list[float]:
    """Read a column of numbers by its name."""
    place = rows[0].index(name)
    return [float(row[place]) for row in rows[1:]]


def choices(visit: Any) -> dict[str, str]:
    """Read what is chosen from the address."""
    query = urlsplit(visit.page.url).fragment.partition("?")[2]
    return {name: values[0] for name, values in parse_qs(query).items()}


@pytest.mark.parametrize("name", "ab")
def test_words_are_the_models_own(enter: Go, both: dict[str, Own], name: str) -> None:
    ours, other = both[name], both["ab".replace(name, "")]
    visit = enter("words", f"&model={name}&method=attention")
    steps = numbers(visit, "step")
    assert [row[0] for row in steps[1:]] == ours.pieces
    assert column(steps, "Probability") == pytest.approx(ours.chosen, abs=2e-6)
    assert column(steps, "Probability") != pytest.approx(other.chosen, abs=1e-3)
    entropies = torch.special.entr(ours.probabilities).sum(-1)
    assert column(steps, "Entropy (nats)") == pytest.approx(entropies.tolist(), abs=1e-4)
    shares = [[float(cell) for cell in row[1:]] for row in numbers(visit, "words")[1:]]
    expected = ours.weights["decoder.1.cross"].mean(0)
    torch.testing.assert_close(torch.tensor(shares), expected, atol=1e-4, rtol=0)
    visit.find('#words [data-key="1"]').click()
    visit.expect(visit.find('#words [data-key="1"]')).to_have_attribute("aria-pressed", "true")
    assert choices(visit)["word"] == "1"


@pytest.mark.parametrize("name", "ab")
def test_attention_is_the_models_own(enter: Go, both: dict[str, Own], name: str) -> None:
    ours, other = both[name], both["ab".replace(name, "")]
    visit = enter("attention", f"&model={name}{HEAD}")
    visit.expect(visit.find(".thumb")).to_have_count(10)
    rows = [[float(cell) for cell in row[1:]] for row in numbers(visit, "head")[1:]]
    shown = torch.tensor(rows)[:, :-1]  # the last is the entropy
    torch.testing.assert_close(shown, ours.weights["decoder.1.cross"][1], atol=1e-4, rtol=0)
    theirs = other.weights["decoder.1.cross"][1]
    assert shown.shape != theirs.shape or (shown - theirs).abs().max() > 0.01
    torch.testing.assert_close(shown.sum(-1), torch.ones(len(shown)), atol=1e-3, rtol=0)
    visit.find('.thumb[data-key="decoder.0.self.0"]').click()
    visit.see("[data-name=head] h2", "Decoder self-attention, layer 1, head 1")
    rows = [[float(cell) for cell in row[1:-1]] for row in numbers(visit, "head")[1:]]
    assert torch.equal(torch.tensor(rows).triu(1), torch.zeros(len(rows), len(rows)))
    visit.find("#attention [type=checkbox]").check()
    visit.expect(visit.find("[data-name=head] tbody tr")).to_have_count(len(ours.pieces) - 1)


def words_of(pieces: list[str], text: str) -> list[int]:
    """The word of each piece; </s> is a word of its own, the last."""
    words = text.split()
    return [*word_of_piece(pieces, words), len(words)]


@pytest.mark.parametrize("name", "ab")
def test_attention_between_words_is_the_models_own(
    enter: Go, both: dict[str, Own], name: str, tmp_path: Path
) -> None:
    text, target = "wir suchten acht", "two foxes win thirteen"
    sides = both[name].translator.tokenizers
    ours = own(both[name].translator, text, sides.target.encode(target))
    weights = ours.weights["decoder.1.cross"][1]
    rows = words_of(sides.target.pieces(target), target)
    columns = words_of(sides.source.pieces(text), text)
    assert weights.shape == (len(rows), len(columns)) > (8, 8)
    expected = between_words(weights, rows, columns, (5, 4))
    visit = enter("attention", f"&model={name}{HEAD}&text={text}&target={target}")
    assert len(numbers(visit, "head")) == 1 + len(rows)
    visit.find("#attention [data-choice=unit]").select_option("words")
    visit.expect(visit.find("[data-name=head] tbody tr")).to_have_count(5)
    assert choices(visit)["unit"] == "words"
    shown = numbers(visit, "head")
    assert shown[0][1:-1] == [*text.split(), "</s>"]
    assert [row[0] for row in shown[1:]] == [*target.split(), "</s>"]
    cells = torch.tensor([[float(cell) for cell in row[1:-1]] for row in shown[1:]])
    torch.testing.assert_close(cells, expected, atol=1e-4, rtol=0)
    saved = [download(visit, figure, "json", tmp_path) for figure in ("head", "overview")]
    head, overview = (json.loads(file.read_text(encoding="utf-8")) for file in saved)
    torch.testing.assert_close(torch.tensor(head["weights"]), expected)
    assert overview["target"]["pieces"] == head["rows"] == [*target.split(), "</s>"]
    assert {one["name"]: (one["rows"], one["columns"]) for one in overview["layers"]} == {
        "encoder.0.self": (4, 4),
        **{f"decoder.{layer}.self": (5, 5) for layer in (0, 1)},
        **{f"decoder.{layer}.cross": (5, 4) for layer in (0, 1)},
    }
    assert all(len(one["maps"][0]) == one["rows"] * one["columns"] for one in overview["layers"])


def test_a_word_is_masked_where_none_of_its_tokens_is_seen(enter: Go) -> None:
    view = "&model=a&layer=decoder.0.self&head=0&unit=words&target=two foxes win thirteen"
    visit = enter("attention", view)
    rows = [[float(cell) for cell in row[1:-1]] for row in numbers(visit, "head")[1:]]
    shown = torch.tensor(rows)
    assert shown.shape == (5, 5) and torch.equal(shown, shown.tril())
    assert (shown.diagonal() > 0).all()
    visit.find("#attention canvas[tabindex]").focus()
    visit.page.keyboard.press("ArrowRight")
    visit.see("#attention .readout", "<s> → two: masked, later position")
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("Enter")
    query = int(choices(visit)["query"])  # the first token of the word "foxes"
    visit.find("#attention [data-choice=unit]").select_option("subwords")
    visit.expect(visit.find("[data-name=head] tbody tr")).to_have_count(21)
    visit.find("#attention [data-choice=as]").select_option("lines")
    visit.expect(visit.find(f'[data-name=head] [data-key="{query}"]')).to_have_attribute(
        "aria-pressed", "true"
    )


def test_hidden_tokens_may_be_all_there_are(enter: Go) -> None:
    visit = enter("attention", f"&model=a{HEAD}&bare=1&unit=words&target=%20")
    assert len(numbers(visit, "head")) == 1
    assert numbers(visit, "overview")[-1][1] == ""


@torch.inference_mode()
def without_head(ours: Own) -> float:
    """Compute log p of the translation with head 2 of the decoder's first cross-attention off."""
    model: Any = load(ours.translator.directory, "cpu").model  # type: ignore[arg-type]
    attention = model.decoder[0].cross_attention
    attention.output.weight[:, attention.size : 2 * attention.size] = 0.0
    log_p = model(ours.batch)[0].log_softmax(-1)
    return float(log_p.gather(-1, ours.batch.target_out[0][:, None]).sum())


def test_heads_are_switched_off_and_on(enter: Go, both: dict[str, Own], pair: Any) -> None:
    visit = enter("heads")
    plain = numbers(visit, "effect")
    assert plain[1][1] == plain[2][1] == both["a"].text
    assert pair.translate(TEXT, model="a", beam=BEAM) == [both["a"].text]
    visit.find('#heads [data-key="decoder.0.cross.1"]').focus()
    visit.page.keyboard.press("Space")
    visit.expect(visit.find("#look-off")).to_be_visible()
    visit.expect(visit.find("#heads")).not_to_have_class(re.compile("old"))
    assert choices(visit)["off"] == "decoder.0.cross.1"
    changed = column(numbers(visit, "effect"), "Log-probability")
    before = sum(torch.tensor(both["a"].chosen).log().tolist())
    assert changed[0] == pytest.approx(before, abs=1e-3)
    assert changed[2] == pytest.approx(without_head(both["a"]), abs=1e-3) != changed[0]
    visit.find("#look-off button").click()
    visit.expect(visit.find("#look-off")).to_be_hidden()
    visit.find("#heads [type=checkbox]").check()
    ranking = numbers(visit, "ranking")
    changes = column(ranking, "Change")
    assert len(changes) == 10 and changes == sorted(changes)
    (row,) = [row for row in ranking if row[0] == "Cross-attention, layer 1, head 2"]
    assert float(row[1]) == pytest.approx(without_head(both["a"]), abs=1e-4)


def test_a_beam_of_one_is_the_greedy_path(enter: Go, pair: Any) -> None:
    body = {"text": TEXT, "model": "a", "beam": 1}
    greedy = pair.client.post("/v1/explore/translate", json=body).json()
    visit = enter("beam")
    visit.find("#look-beam").fill("1")
    visit.find("#look-beam").press("Tab")
    visit.expect(visit.find("[data-name=beam] figcaption")).to_contain_text("is the greedy one")
    rows = numbers(visit, "beam")
    assert [row[1] for row in rows[2:]] == greedy["target"]["pieces"]
    assert all("greedy" in row[5] for row in rows[1:])


def test_a_prefix_is_forced_and_a_token_forbidden(enter: Go, both: dict[str, Own]) -> None:
    visit = enter("beam")
    tree = numbers(visit, "beam")
    second = next(row for row in tree if row[0] == "1" and row[1] != both["a"].pieces[0])
    visit.find(f'#beam [data-key="{tree.index(second) - 1}"]').click()
    visit.find('#beam [data-key="force"]').click()
    visit.expect(visit.find("#beam [data-choice=prefix]")).not_to_have_value("")
    prefix = choices(visit)["prefix"]
    visit.expect(visit.find("[data-name=node] h2")).to_contain_text("Step 1")
    visit.expect(visit.find("#beam")).not_to_have_class(re.compile("old"))
    texts = [row[0] for row in numbers(visit, "finished")[1:]]
    assert texts and all(text.startswith(prefix) for text in texts)
    visit.find("#beam [data-choice=prefix]").fill("")
    first = both["a"].pieces[0]
    visit.find("#beam [data-choice=forbid]").fill(first)
    visit.find("#beam [data-choice=forbid]").press("Tab")
    visit.expect(visit.find("#beam [data-name=beam] tbody")).not_to_contain_text(first)
    assert first not in {row[1] for row in numbers(visit, "beam")}


def test_the_last_layer_is_the_model_itself(enter: Go, both: dict[str, Own]) -> None:
    rows = numbers(enter("layers"), "layers")
    last = [row for row in rows[1:] if row[0] == "2"]
    best, tokens = both["a"].probabilities.max(-1)
    piece = both["a"].translator.tokenizers.target.piece
    assert [row[2] for row in last] == [piece(id) for id in tokens.tolist()]
    assert [float(row[3]) for row in last] == pytest.approx(best.tolist(), abs=2e-6)
    assert [float(row[5]) for row in last] == pytest.approx(both["a"].chosen, abs=2e-6)
    first = [float(row[5]) for row in rows[1:] if row[0] == "1"]
    assert first != pytest.approx(both["a"].chosen, abs=1e-3)


def test_anatomy_works_one_query_out(enter: Go, both: dict[str, Own]) -> None:
    visit = enter("anatomy", "&model=a&layer=decoder.0.self&head=1&query=2")
    rows = numbers(visit, "by-hand")
    weights = both["a"].weights["decoder.0.self"][1]
    assert column(rows, "Weight") == pytest.approx(weights[2].tolist(), abs=2e-5)
    mask = numbers(visit, "mask")
    later = [[cell == "later position" for cell in row[1:]] for row in mask[1:]]
    assert later == torch.ones_like(weights).triu(1).bool().tolist()
    assert all(row[2] == "-∞ (later position)" for row in rows[4:])
    shapes = numbers(visit, "shapes")
    length = both["a"].batch.source.shape[1]
    assert shapes[1][2] == f"batch 1 × source position {length}"
    parameters = sum(one.numel() for one in both["a"].translator.model.parameters())
    visit.expect(visit.find("[data-name=shapes] figcaption")).to_contain_text(f"{parameters:,}")
    assert sum(int(row[3].replace(",", "")) for row in shapes[1:]) == parameters


def test_anatomy_opens_where_the_mask_hides_something(enter: Go, both: dict[str, Own]) -> None:
    visit = enter("anatomy")
    middle = both["a"].pieces[len(both["a"].pieces) // 2 - 1].removeprefix("▁")  # <s> is first
    title = f"By hand: Decoder self-attention, layer 1, head 1, query “{middle}”"
    visit.see("[data-name=by-hand] h2", title)
    assert {row[2].startswith("-∞") for row in numbers(visit, "by-hand")[1:]} == {True, False}


@torch.inference_mode()
def checkpointed(run: Path) -> dict[str, Translator]:
    """Fill the run's model with the weights of each checkpoint, by its name."""
    opened = {folder.name: load(run, "cpu") for folder in sorted(run.glob("checkpoints/update-*"))}
    for name, translator in opened.items():
        parameters = dict(translator.model.named_parameters())
        for key, tensor in load_file(run / "checkpoints" / name / "weights.safetensors").items():
            parameters.pop(key).copy_(tensor)
        assert not parameters
    return opened


def test_the_slider_goes_through_training(enter: Go, siblings: list[Path]) -> None:
    saved = checkpointed(siblings[0])
    own_texts = [own(translator) for translator in saved.values()]
    last = own_texts[-1].batch.target_out[0][:-1].tolist()
    passes = [own(translator, ids=last) for translator in saved.values()]
    heads = [one.weights["decoder.1.cross"][1] for one in passes]
    visit = enter("training", f"&model=a{HEAD}")
    visit.see("[data-name=course] h2", "Update 60")
    rows = numbers(visit, "course")
    assert [row[1] for row in rows[1:]] == [one.text for one in own_texts]
    assert [f"update-{int(row[0]):08}" for row in rows[1:]] == [*saved]
    expected = [float(torch.tensor(one.chosen).log().sum()) for one in passes]
    assert column(rows, "Log-probability") == pytest.approx(expected, abs=1e-3)
    entropies = [float(torch.special.entr(head).sum(-1).mean()) for head in heads]
    assert column(rows, "Entropy of the head") == pytest.approx(entropies, abs=1e-4)

    def shown() -> Tensor:
        return torch.tensor(
            [[float(cell) for cell in row[1:]] for row in numbers(visit, "map")[1:]]
        )

    torch.testing.assert_close(shown(), heads[-1], atol=0.02, rtol=0)  # 64 levels
    visit.find("#training [type=range]").focus()
    visit.page.keyboard.press("Home")
    visit.see("[data-name=course] h2", "Update 15")
    visit.see("#training .translated", own_texts[0].text)
    visit.expect(visit.find("#training [type=range]")).to_be_focused()
    torch.testing.assert_close(shown(), heads[0], atol=0.02, rtol=0)
    assert (heads[0] - heads[-1]).abs().max() > 0.05


def test_two_models_stand_side_by_side(enter: Go, both: dict[str, Own]) -> None:
    visit = enter("compare", "&model=a&other=b")
    rows = numbers(visit, "translations")
    assert [row[:2] for row in rows[1:]] == [[name, both[name].text] for name in "ab"]
    for index, ours in enumerate(both.values()):
        steps = column(numbers(visit, f"steps-{index}"), "Probability")
        assert steps == pytest.approx(ours.chosen, abs=2e-6)
        cross = [[float(cell) for cell in row[1:]] for row in numbers(visit, f"cross-{index}")[1:]]
        mean = ours.weights["decoder.1.cross"].mean(0)
        torch.testing.assert_close(torch.tensor(cross), mean, atol=0.02, rtol=0)  # 64 levels


def test_a_link_reopens_the_view(enter: Go, go: Go) -> None:
    visit = enter("attention", f"&model=b{HEAD}&query=1&bare=1&as=lines&off=encoder.0.self.0")
    again = go(visit.page.url, focus=None)
    again.see("[data-name=head] h2", "Cross-attention, layer 2, head 2")
    assert again.page.url == visit.page.url
    again.expect(again.find("#look-model")).to_have_value("b")
    again.expect(again.find("#look-text")).to_have_value(TEXT)
    again.expect(again.find("#attention [type=checkbox]")).to_be_checked()
    again.expect(again.find('[data-name=head] [data-key="1"]')).to_have_attribute(
        "aria-pressed", "true"
    )
    again.see("#look-off span", "Switched off: Encoder self-attention, layer 1, head 1")


def test_a_journey_by_the_keyboard_alone(pair: Any, go: Go) -> None:
    visit = go(pair.url)
    keyboard = visit.page.keyboard
    keyboard.type(TEXT)
    visit.expect(visit.find("#translation")).not_to_be_empty()

    def tab_to(selector: str) -> None:
        for _ in range(60):
            if visit.read(f"document.activeElement.matches({json.dumps(selector)})"):
                break
            keyboard.press("Tab")
        outline = visit.read("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", selector

    tab_to('nav a[href^="#words"]')  # around the end of the page
    keyboard.press("Enter")
    visit.expect(visit.find("[data-name=words]")).to_be_visible()
    tab_to('#words [role="button"]')
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    visit.expect(visit.find('#words [data-key="2"]')).to_be_focused()
    assert choices(visit)["word"] == "2"
    tab_to('nav a[href^="#attention"]')
    keyboard.press("Enter")
    visit.expect(visit.find("[data-name=head] canvas")).to_be_visible()
    tab_to(".thumb")
    keyboard.press("Home")
    keyboard.press("Enter")
    visit.see("[data-name=head] h2", "Encoder self-attention, layer 1, head 1")
    visit.expect(visit.find(".thumb").first).to_be_focused()
    tab_to("#attention canvas[tabindex]")
    keyboard.press("ArrowDown")
    keyboard.press("ArrowRight")
    visit.see("#attention .readout", re.compile(r"^\S+ → \S+: 0\.\d{6}$"))
    keyboard.press("Enter")
    visit.expect(visit.find("#attention canvas[tabindex]")).to_be_focused()
    assert choices(visit)["query"] == "1"


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_hard_to_use_or_too_wide(enter: Go, room: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    visit = enter(room, "&model=a&rank=1")
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        found = axe.run(visit.page, options={"resultTypes": ["violations"]}).response
        grave = [
            (one["id"], one["nodes"][0]["html"])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert grave == []
    for width in (1280, 390):
        visit.page.set_viewport_size({"width": width, "height": 800})
        visit.page.wait_for_timeout(250)
        assert visit.read("document.documentElement.scrollWidth <= innerWidth")


def download(visit: Any, figure: str, kind: str, folder: Path) -> Path:
    """Save a figure as a file."""
    with visit.page.expect_download() as waiting:
        visit.find(f'[data-name={figure}] [data-key="save-{kind}"]').click()
    assert waiting.value.suggested_filename == f"seq2see-{figure}.{kind}"
    path = folder / f"{figure}.{kind}"
    waiting.value.save_as(path)
    return path


def test_files_hold_the_figure_and_load_nothing(
    enter: Go, both: dict[str, Own], browser: Any, tmp_path: Path
) -> None:
    visit = enter("attention", f"&model=a{HEAD}")
    for kind in ("svg", "png", "json", "html"):
        download(visit, "head", kind, tmp_path)
    saved = json.loads((tmp_path / "head.json").read_text(encoding="utf-8"))
    weights = both["a"].weights["decoder.1.cross"][1]
    torch.testing.assert_close(torch.tensor(saved["weights"]), weights)
    assert (tmp_path / "head.png").read_bytes().startswith(b"\x89PNG")
    page = browser.new_context(offline=True).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for kind, pictures in (("svg", "text"), ("html", "svg text")):
        page.goto((tmp_path / f"head.{kind}").as_uri())
        assert page.locator(pictures, has_text="</s>").count() > 0
    assert len(asked) == 2
    inside = page.evaluate("JSON.parse(document.querySelector('#data').textContent)")
    assert inside == saved
    assert page.locator("tbody tr").count() == len(both["a"].pieces)
    page.context.close()


def test_what_cannot_be_shown_is_said(pair: Any, go: Go) -> None:
    known = pair.client.get("/v1/explore").json()["models"]
    export = {**known[0], "available": False, "reason": "this model is an export; see elsewhere"}
    bare = {**known[0], "name": "bare", "maps": [], "methods": [], "checkpoints": []}

    def describe(models: list[Any]) -> Any:
        visit = go(pair.url)
        visit.page.route("**/v1/explore", lambda route: route.fulfill(json={"models": models}))
        return visit

    visit = describe([export])
    visit.page.goto(f"{pair.url}/#layers?text=eins")
    visit.see("#layers .plain", "this model is an export; see elsewhere")
    visit = describe([bare])
    visit.page.goto(f"{pair.url}/#words?text=eins")
    for room, words in (("words", "attribution"), ("attention", "heads"), ("heads", "heads")):
        visit.find(f'nav a[href^="#{room}"]').click()
        visit.expect(visit.find(f"#{room} .plain")).to_contain_text(words)
    for room, words in (("training", "checkpoints"), ("compare", "second model")):
        visit.find(f'nav a[href^="#{room}"]').click()
        visit.expect(visit.find(f"#{room} .plain")).to_contain_text(words)


def test_a_single_checkpoint_is_said_to_be_all(enter: Go) -> None:
    def only_the_last(route: Any) -> None:
        answer = route.fetch().json()
        route.fulfill(json=answer | {"checkpoints": answer["checkpoints"][-1:]})

    visit = enter("words")
    visit.page.route("**/v1/explore/training", only_the_last)
    visit.find('nav a[href^="#training"]').click()
    visit.expect(visit.find("#training .plain")).to_contain_text("train.keep")
    visit.see("[data-name=course] h2", "Update 60")
    visit.find("#language").click()
    visit.expect(visit.find("#training .plain")).to_contain_text("只保留了一个检查点")


def test_a_text_from_right_to_left(enter: Go) -> None:
    visit = enter("words", "&model=a&text=بيت كلب")
    visit.expect(visit.find("#look-text")).to_have_attribute("dir", "rtl")
    places = {}
    for letter in "بك":  # each begins a word
        token = visit.find("#words [data-name=words] svg text").get_by_text(letter, exact=False)
        places[letter] = token.first.bounding_box()["x"]
    assert places["ب"] > places["ك"]
    visit.find("#look-text").fill("drei")
    visit.expect(visit.find("#look-text")).to_have_attribute("dir", "ltr")
    visit = enter("attention", "&model=a&text=بيت كلب&layer=encoder.0.self&unit=words")
    visit.find("#attention canvas[tabindex]").focus()
    visit.page.keyboard.press("ArrowRight")
    # Isolated, the words leave the arrow between them its direction.
    visit.see(
        "#attention .readout", re.compile(r"^\u2068+بيت\u2069+ → \u2068+كلب\u2069+: 0\.\d{6}$")
    )


def test_mistakes_and_a_busy_server_are_told(enter: Go) -> None:
    def busy(route: Any) -> None:
        route.fulfill(status=503, headers={"Retry-After": "1"}, json={"error": "the queue is full"})

    visit = enter("beam")
    visit.find("#beam [data-choice=forbid]").fill("zwölf")
    visit.find("#beam [data-choice=forbid]").press("Tab")
    visit.expect(visit.find("#trouble span")).to_contain_text("it is no token")
    visit.find("#beam [data-choice=forbid]").fill("")
    visit.find("#beam [data-choice=forbid]").press("Tab")
    visit.expect(visit.find("#trouble")).to_be_hidden()
    visit.page.route("**/v1/explore/beam", busy, times=1)
    visit.find("#look-text").fill("zwei vier")
    visit.see("#trouble span", "The server is busy. Trying again in 1 s …")
    visit.expect(visit.find("#trouble")).to_be_hidden()
    visit.find("#look-text").fill("a" * 2001)
    visit.see("#trouble span", "The text has 2,001 characters; the server takes at most 2,000.")
    visit.find("#look-text").fill("")
    visit.see("#beam .plain", "Type a sentence above to look inside the model.")
    visit.find("#language").click()
    visit.see("#beam .plain", "在上方输入一个句子，即可查看模型内部。")
    visit.see("#beam-title", "译文是怎样搜索出来的？")
    visit.forgive("422|503")


def test_a_sentence_comes_along_from_the_translation_until_it_is_cleared(pair: Any, go: Go) -> None:
    visit = go(f"{pair.url}/")
    visit.find("#text").fill(TEXT)
    visit.find('nav a[href^="#layers"]').click()
    visit.expect(visit.find("#look-text")).to_have_value(TEXT)
    visit.expect(visit.find("#layers figure")).to_be_visible()
    visit.find("#look-text").fill("")
    visit.see("#layers .plain", "Type a sentence above to look inside the model.")


def test_the_greedy_path_goes_from_step_to_step(enter: Go) -> None:
    rows = [row for row in numbers(enter("beam"), "beam")[1:] if "greedy" in row[5]]
    steps = [int(row[0]) for row in rows]
    assert all(later == earlier + 1 for earlier, later in pairwise(steps))
