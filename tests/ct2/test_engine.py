"""Exported models translate as the original does, without torch, and refuse wrong directories."""

import json
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see.ct2 import engine as ct2
from seq2see.ct2.batches import Setting
from seq2see.ct2.engine import Engine, load
from seq2see.ct2.export import export
from seq2see.ct2.library import torch_threads_kept
from seq2see.decoding.hypotheses import Search
from seq2see.decoding.search import search
from seq2see.errors import InputError, WorkError
from seq2see.tasks.translator import Translator
from seq2see.text.specials import BEGIN, END, PAD

KNOWN = {
    "drei acht eins": "three eight one",
    "zwei vier": "two four",
    "neun sieben fünf zehn": "nine seven five ten",
}
ODD = ["eins", "zehn zehn zehn zehn zehn zehn", "漢 Q", "acht " * 30, "\u200b", "?"]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Restore torch's number of threads, which CTranslate2 sets too."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def engine(exported: Path) -> Engine:
    return load(exported)


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "copy"))


def test_it_translates_as_the_model_it_was_made_from(
    engine: Engine, translator: Translator
) -> None:
    assert engine.translate(list(KNOWN)) == list(KNOWN.values())
    for beam in (1, 2, 4, 7):
        texts = [*KNOWN, *ODD]
        for ours, theirs in zip(
            translator.search(texts, beam=beam), engine.search(texts, beam=beam), strict=True
        ):
            assert theirs[0].text == ours[0].text
            assert theirs[0].log_probability == pytest.approx(ours[0].log_probability, abs=1e-3)
            assert theirs[0].score == pytest.approx(ours[0].score, abs=1e-3)


@pytest.mark.parametrize(
    "config",
    [
        Search(beam=4, length_penalty=0.0),
        Search(beam=4, length_penalty=2.0),
        Search(beam=4, max_ratio=0.01),
        Search(beam=40),  # more candidates than the vocabulary has entries
    ],
    ids=str,
)
def test_every_kind_of_search(engine: Engine, translator: Translator, config: Search) -> None:
    sources = [ids for text in [*KNOWN, *ODD] if (ids := translator.tokenizers.source.encode(text))]
    results = engine.hypotheses(sources, config, n_best=config.beam)
    expected = search(translator.model, sources, config, config.beam, translator.device)
    for source, ours, theirs in zip(sources, expected, results, strict=True):
        assert theirs[0].score >= ours[0].score - 1e-3  # never worse by our own measure
        assert theirs[0].ids == ours[0].ids or theirs[0].score > ours[0].score + 1e-6
        assert [h.score for h in theirs] == sorted((h.score for h in theirs), reverse=True)
        assert len({tuple(h.ids) for h in theirs}) == len(theirs) <= config.beam
        for h, scored in zip(
            theirs, translator.force([(source, h.ids) for h in theirs]), strict=True
        ):
            assert h.log_probability == pytest.approx(scored.log_probability, abs=1e-3)
            assert h.score == pytest.approx(h.log_probability / config.penalty(len(h.ids) + 1))
            assert len(h.ids) < config.limit(len(source))
            assert not {BEGIN, END, PAD} & set(h.ids)


SETTINGS = (Setting(1, 1, 64), Setting(2, 1, 100_000), Setting(1, 2, 500), Setting(3, 1, 1))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_sentence_is_the_same_whatever_shares_its_batch_and_however_the_work_is_shared(
    engine: Engine, exported: Path, setting: Setting
) -> None:
    texts = [*KNOWN, *ODD]
    together = Engine(exported, engine.recipe, engine.tokenizers, setting).search(texts)
    for text, (best,) in zip(texts, together, strict=True):
        alone = engine.search([text])[0][0]
        assert best.text == alone.text
        assert best.log_probability == pytest.approx(alone.log_probability, abs=1e-4)


@pytest.fixture(scope="module")
def int8(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    out = tmp_path_factory.mktemp("int8") / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seq2see.ct2.calibration.CALIBRATION", 0.0)
        export(trained, out, quantization="int8")
    return load(out)


@pytest.mark.parametrize("setting", SETTINGS)
def test_int8_gives_the_same_bits_whatever_shares_the_batch(int8: Engine, setting: Setting) -> None:
    """With any padding, some log-probabilities would differ."""
    draw = random.Random(1)
    words = " ".join(KNOWN).split()
    texts = [*ODD, *(" ".join(draw.choices(words, k=1 + n % 40)) for n in range(80))]
    sources = int8.ids("source", texts)
    prefixes = [[4, 5, 6][: number % 4] for number in range(len(sources))]
    pairs = list(zip(sources, prefixes, strict=True))
    config = Search.of(int8.recipe)
    assert int8.directory is not None
    together = Engine(int8.directory, int8.recipe, int8.tokenizers, setting)
    searched = together.hypotheses(sources, config, 2, prefixes)
    assert searched == [int8.hypotheses([x], config, 2, [prefix])[0] for x, prefix in pairs]
    assert together.force(pairs) == [int8.force([pair])[0] for pair in pairs]


@pytest.mark.parametrize("beam", [1, 4])
def test_a_forced_prefix_is_continued_as_by_the_original(
    engine: Engine, translator: Translator, beam: int
) -> None:
    pair = translator.tokenizers
    texts = ["drei acht eins", "zwei vier", "neun sieben", "", "acht " * 12]
    starts = ["five", "", "nine seven five ten one", "two", "eight " * 40]
    sources = [pair.source.encode(text) for text in texts]
    prefixes = [pair.target.encode(text) for text in starts]
    config = Search.of(translator.recipe, beam)
    ours = translator.hypotheses(sources, config, 1, prefixes)
    theirs = engine.hypotheses(sources, config, 1, prefixes)
    for (our,), (their,), prefix in zip(ours, theirs, prefixes, strict=True):
        assert their.ids[: len(prefix)] == our.ids[: len(prefix)] == prefix
        assert their.score >= our.score - 1e-3
        assert their.ids == our.ids or their.score > our.score + 1e-6
    assert theirs[1] == engine.hypotheses(sources[1:2], config)[0]


def test_threads_of_torch_are_restored_even_after_an_error() -> None:
    torch.set_num_threads(2)
    with pytest.raises(RuntimeError), torch_threads_kept():
        torch.set_num_threads(1)
        raise RuntimeError
    assert torch.get_num_threads() == 2


def test_forced_decoding_is_ours(engine: Engine, translator: Translator) -> None:
    source, target = translator.tokenizers.source, translator.tokenizers.target
    pairs = [
        (source.encode(text), target.encode(text))
        for text in ["drei", "漢 Q", "", "acht " * 25, "one two"]
    ]
    pairs += [(source.encode(text), target.encode(right)) for text, right in KNOWN.items()]
    for ours, theirs in zip(translator.force(pairs), engine.force(pairs), strict=True):
        assert theirs.tokens == ours.tokens
        assert theirs.log_probabilities == pytest.approx(ours.log_probabilities, abs=1e-3)


def test_order_is_kept_and_blank_lines_stay_empty(engine: Engine) -> None:
    texts = ["", *KNOWN, "   ", "\t", *reversed(KNOWN), "\u3000\n"]
    assert engine.translate(texts) == ["", *KNOWN.values(), "", "", *reversed(KNOWN.values()), ""]
    assert engine.translate([]) == [] and engine.translate([""]) == [""]


def test_long_lines_are_translated_in_pieces_and_said_so(
    engine: Engine, translator: Translator
) -> None:
    warnings: list[str] = []
    texts = ["zwei vier", " ".join(["drei", "acht"] * 200), "x" * 300]
    results = engine.search(texts, beam=1, first_line=11, warn=warnings.append)
    expected: list[str] = []
    ours = translator.search(texts, beam=1, first_line=11, warn=expected.append)
    assert (
        warnings == expected
        and len(warnings) == 2
        and warnings[0].startswith("line 12: longer than the model's")
    )
    assert [best.text for best, *_ in results] == [best.text for best, *_ in ours]


@pytest.mark.parametrize(("beam", "n_best"), [(2, 3), (0, 1), (4, 0)])
def test_an_impossible_beam_is_refused(engine: Engine, beam: int, n_best: int) -> None:
    with pytest.raises(ValueError, match="n_best"):
        engine.search(["eins"], beam=beam, n_best=n_best)


def test_answers_without_numbers_are_said_in_one_line(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ct2, "IMPOSSIBLE", math.inf)
    with pytest.raises(WorkError, match="its weights are broken"):
        engine.translate(["eins"])


def test_neither_torch_nor_spacy_is_imported(exported: Path) -> None:
    program = (
        "import sys\nfrom seq2see.cli.main import main\n"
        f"sys.argv = ['seq2see', 'translate', '--model', {str(exported)!r}]\n"
        "sys.argv += ['zwei vier']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "slow = {'torch', 'spacy', 'sacrebleu', 'matplotlib', 'transformers'}\n"
        "print(sorted(slow & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("two four\n[]\n", "", 0)


def test_the_machine_decides_where_another_was_calibrated(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = json.loads((copy / "engine.json").read_bytes())
    about["setting"] = {"workers": 1, "threads": 2, "batch_tokens": 99}
    (copy / "engine.json").write_text(json.dumps(about))
    assert load(copy).setting == Setting(1, 2, 99)
    assert load(copy, alone=True).setting == Setting(1, 1, 99)
    monkeypatch.setattr(ct2, "cores", lambda: about["cores"] + 1)
    assert load(copy).setting == Setting(about["cores"] + 1, 1, 99)


def test_wrong_directories(tmp_path: Path, trained: Path) -> None:
    with pytest.raises(InputError, match="nothing: no such model directory"):
        load(tmp_path / "nothing")
    with pytest.raises(InputError) as caught:
        load(trained)
    assert (
        str(caught.value)
        == f"{trained}: not exported; first: seq2see export --model {trained} --out DIR"
    )


@pytest.mark.parametrize(
    "name", ["model.bin", "config.json", "shared_vocabulary.json", "recipe.toml", "tokenizer.json"]
)
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(InputError) as caught:
        load(copy)
    assert name in str(caught.value) and str(copy) in str(caught.value)


@pytest.mark.parametrize("name", ["model.bin", "recipe.toml"])
@pytest.mark.parametrize("damage", ["empty", "short", "flipped"])
def test_a_corrupt_model_is_refused(copy: Path, name: str, damage: str) -> None:
    path = copy / name
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes({"empty": b"", "short": content[:-8], "flipped": content}[damage])
    with pytest.raises(
        InputError, match=rf"{name}: its SHA-256 differs from the one in engine.json"
    ):
        load(copy)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[]", b"{}", b"null", b'{"setting": 1}', b'{"setting": {}, "files": 2}'],
)
def test_a_corrupt_description_is_refused(copy: Path, content: bytes) -> None:
    (copy / "engine.json").write_bytes(content)
    with pytest.raises(InputError, match=r"engine.json: does not describe an exported model"):
        load(copy)


def test_what_ctranslate2_cannot_read_is_one_line(copy: Path) -> None:
    about: dict[str, Any] = json.loads((copy / "engine.json").read_bytes())
    (copy / "model.bin").write_bytes(b"\xff" * 99)
    about["files"]["model.bin"] = ct2.sha256(copy / "model.bin")
    (copy / "engine.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="CTranslate2 cannot read the model"):
        load(copy)


def test_without_the_extra_its_name_is_said(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(InputError, match="CTranslate2 is not installed: pip install ctranslate2"):
        load(exported)
