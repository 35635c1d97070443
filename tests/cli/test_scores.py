"""`seq2see evaluate` and `score`: the figures of sacreBLEU and of forced decoding."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from seq2see.recipe.schema import Recipe
from seq2see.tasks.translator import Translator
from seq2see.text import corpora


def test_evaluate_gives_sacrebleus_score(
    call: Any, trained: Path, tmp_path: Path, translator: Translator
) -> None:
    sources, references = (
        ["zwei vier", "drei acht eins", "fünf sechs"],
        ["two four", "three eight one", "five five"],
    )
    (tmp_path / "source.txt").write_text("\n".join(sources) + "\n", encoding="utf-8")
    (tmp_path / "reference.txt").write_text("\r\n".join(references), encoding="utf-8")
    files = ("--source", tmp_path / "source.txt", "--reference", tmp_path / "reference.txt")
    code, out, _ = call("evaluate", "--model", trained, *files, "--json")
    assert code == 0
    values = json.loads(out)
    outputs = translator.translate(sources)
    assert values["bleu"] == sacrebleu.corpus_bleu(outputs, [references]).score
    assert values["chrf"] == sacrebleu.corpus_chrf(outputs, [references]).score
    assert values["accuracy"] == pytest.approx(2 / 3) and "|tok:13a|" in values["signature"]
    code, out, _ = call("evaluate", "--model", trained, *files, "--beam", 1)
    assert code == 0 and out.startswith("BLEU ") and values["signature"] in out


def test_evaluate_warns_of_pairs_that_the_model_was_trained_on(
    call: Any, trained: Path, tmp_path: Path
) -> None:
    recipe = Recipe.load(trained / "recipe.toml")
    known = [*corpora.load(recipe.data).train.pairs][:2]
    held_out = corpora.load(recipe.data).tests["test"].pairs[:3]
    # A known sentence on one side is enough, whatever its case.
    pairs = [*held_out, *known, (known[0][0].upper(), "new"), ("neu", "new")]
    source, reference = tmp_path / "test.de", tmp_path / "test.en"
    for path, side in ((source, 0), (reference, 1)):
        path.write_text("\n".join(pair[side] for pair in pairs), encoding="utf-8")
    files = ("--source", source, "--reference", reference)
    code, out, error = call("evaluate", "--model", trained, *files, "--json")
    shared = f"3 of 7 pairs share a sentence with the training data of {trained}"
    assert (code, error) == (0, f"seq2see: {shared}; the score flatters it\n")
    assert json.loads(out)["seen_in_training"] == 3
    older = shutil.copytree(trained, tmp_path / "older")
    (older / "history.safetensors").unlink()
    code, out, error = call("evaluate", "--model", older, *files, "--json")
    assert (code, error) == (0, "") and "seen_in_training" not in json.loads(out)
    for path, side in ((source, 0), (reference, 1)):
        path.write_text("\n".join(pair[side] for pair in held_out), encoding="utf-8")
    code, out, error = call("evaluate", "--model", trained, *files, "--json")
    assert (code, error) == (0, "") and json.loads(out)["seen_in_training"] == 0


@pytest.mark.parametrize("ending", [".csv", ".TSV.gz", ".jsonl"])
def test_tables_are_not_scored_as_raw_lines(
    call: Any, trained: Path, tmp_path: Path, ending: str
) -> None:
    table, text = tmp_path / f"test{ending}", tmp_path / "test.en"
    table.write_text("eins,one\n", encoding="utf-8")
    text.write_text("one\n", encoding="utf-8")
    says = "a table; this command takes plain text, one sentence per line, and a recipe takes"
    for command, other in (("evaluate", "--reference"), ("score", "--target")):
        for files in (("--source", table, other, text), ("--source", text, other, table)):
            assert call.refused(command, "--model", trained, *files).startswith(f"{table}: {says}")
    for systems in ((table, text), (text, trained, "--source", table)):
        refused = call.refused("compare", *systems, "--reference", text)
        assert refused.startswith(f"{table}: {says}")
    for files in (("--source", table), ("--source", text, "--reference", table)):
        refused = call.refused("export", "--model", trained, "--out", tmp_path / "out", *files)
        assert refused.startswith(f"{table}: {says}")


def test_evaluate_counts_the_errors(
    call: Any, trained: Path, tmp_path: Path, translator: Translator
) -> None:
    sources, references = (
        ["zwei vier", "drei acht eins"],
        ["two four", "three eight one and one more"],
    )
    (tmp_path / "source.txt").write_text("\n".join(sources), encoding="utf-8")
    (tmp_path / "reference.txt").write_text("\n".join(references), encoding="utf-8")
    files = ("--source", tmp_path / "source.txt", "--reference", tmp_path / "reference.txt")
    code, out, error = call("evaluate", "--model", trained, *files, "--json")
    errors = json.loads(out)["errors"]
    assert (code, error) == (0, "") and errors["sentences"] == 2
    assert (
        errors["dropped"]["examples"] == [["and one more", 2]] and errors["lengths"]["short"] == 0.5
    )
    assert errors["missing_words"] == [["and", 1], ["more", 1], ["one", 1]]
    _, out, _ = call("evaluate", "--model", trained, *files)
    assert (
        out.startswith("BLEU ")
        and "\n\nErrors in 2 sentences" in out
        and "and one more (line 2)" in out
    )


def test_written_translations_give_sacrebleus_command_the_same_scores(
    call: Any, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = [
        "two\r four\u2028!",
        "\x85three\x0ceight one\n",
        "",
        " five  six\u2029 ",
    ]  # as words of a vocabulary may be
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: odd)
    source, reference, path = (tmp_path / f"{name}.txt" for name in ("source", "reference", "out"))
    source.write_text("eins\nzwei\ndrei\nvier\n", encoding="utf-8")
    reference.write_text("two four!\nthree eight one more\nseven\nfive six\n", encoding="utf-8")
    files = ("--source", source, "--reference", reference)
    values = json.loads(call("evaluate", "--model", trained, *files, "--out", path, "--json")[1])
    assert path.read_text(encoding="utf-8").split("\n") == [
        "two  four !",
        " three eight one",
        "",
        " five  six  ",
        "",
    ]
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        reference,
        "-i",
        path,
        "-m",
        "bleu",
        "chrf",
        "-w",
        "15",
    ]
    bleu, chrf = json.loads(
        subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    )
    assert (bleu["score"], bleu["signature"]) == (values["bleu"], values["signature"])
    assert (chrf["score"], chrf["signature"]) == (values["chrf"], values["chrf_signature"])
    says = call.refused("evaluate", "--model", trained, *files, "--out", reference)
    assert says == f"--out {reference}: is an input; it is not overwritten"
    says = call.refused(
        "evaluate", "--model", trained, *files, "--out", tmp_path / "no" / "out.txt"
    )
    assert says == f"--out {tmp_path / 'no' / 'out.txt'}: there is no folder {tmp_path / 'no'}"


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Path]:
    files = {
        "source": "zwei vier\n\ndrei acht eins\n",
        "target": "two four\nseven\tten\nthree eight one\n",
    }
    files["target2"] = "four two\nseven\tten\nthree eight one one\n"
    for name, text in files.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    return {name: tmp_path / name for name in files}


def options(texts: dict[str, Path]) -> list[object]:
    return [word for name, path in texts.items() for word in (f"--{name}", path)]


def test_score_gives_a_line_a_pair(
    call: Any, trained: Path, texts: dict[str, Path], translator: Translator
) -> None:
    del texts["target2"]
    sources, targets = (
        ["zwei vier", "", "drei acht eins"],
        ["two four", "seven\tten", "three eight one"],
    )
    expected = translator.score_tokens(sources, targets)
    code, out, error = call("score", "--model", trained, *options(texts), "--device", "cpu")
    rows = [line.split("\t", 2) for line in out.splitlines()]
    assert code == 0 and [row[2] for row in rows] == targets
    assert [float(row[0]) for row in rows] == pytest.approx(
        [scored.log_probability for scored in expected], abs=1e-4
    )
    assert [int(row[1]) for row in rows] == [len(scored.tokens) for scored in expected]
    assert error.startswith("3 pairs · ") and error.count("\n") == 1 and "likelier" not in error

    code, out, error = call("score", "--model", trained, *options(texts), "--json")
    values = json.loads(out)
    assert (code, error) == (0, "") and values.keys() == {
        "perplexity",
        "log_probability",
        "tokens",
        "pairs",
    }
    total = sum(pair["log_probability"] for pair in values["pairs"])
    assert values["log_probability"] == pytest.approx(total)
    assert values["tokens"] == sum(len(scored.tokens) for scored in expected)
    assert values["perplexity"] == pytest.approx(math.exp(-total / values["tokens"]))
    for scored, pair in zip(expected, values["pairs"], strict=True):
        assert pair.keys() == {"log_probability", "tokens", "log_probabilities"}
        assert pair["tokens"] == scored.tokens and pair["tokens"][-1] == "</s>"
        assert pair["log_probabilities"] == pytest.approx(scored.log_probabilities, abs=1e-4)


def test_score_says_which_of_two_is_likelier(
    call: Any, trained: Path, texts: dict[str, Path]
) -> None:
    code, out, error = call("score", "--model", trained, *options(texts))
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert [row[2:] for row in rows] == [["1"], ["0", "tie"], ["1"]]  # the same twice is a tie
    assert rows[1][0] == rows[1][1] and float(rows[0][0]) > float(rows[0][1])
    assert error.endswith("the first is better in 2 of 3, worse in 0, tied in 1\n")
    values = json.loads(call("score", "--model", trained, *options(texts), "--json")[1])
    assert values["accuracy"] == pytest.approx(2 / 3) and values["ties"] == 1
    assert len(values["pairs2"]) == 3
    assert values["pairs"][1] == values["pairs2"][1] and values["pairs"][0] != values["pairs2"][0]


def test_texts_that_cannot_be_scored(
    call: Any,
    trained: Path,
    texts: dict[str, Path],
    translator: Translator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Translator, "force", None)  # each mistake is found before any work
    source, target, other = texts.values()
    arguments = ["score", "--model", trained, *options(texts)]
    for name, path in texts.items():
        kept = path.read_bytes()
        path.write_text("one\ntwo\n" + "漢 " * 200)
        count = len(translator.tokenizers.source.encode("漢 " * 200))
        says = f"{path}:3: {count} tokens; the model takes at most data.max_length = 128"
        assert call.refused(*arguments) == says, name
        path.write_bytes(b"one\n\xff\n")
        assert call.refused(*arguments).startswith(f"{path}:2: byte 0xff is not UTF-8")
        path.write_bytes(b"")
        assert (
            call.refused(*arguments) == f"{path}: an empty file; a corpus has one sentence a line"
        )
        path.unlink()
        assert call.refused(*arguments) == f"{path}: cannot read: No such file or directory"
        path.write_bytes(kept)
    other.write_text("one\n")
    assert call.refused(*arguments) == f"{source} has 3 lines and {other} 1; they must pair up"
    target.write_text("one\n" * 4)
    assert call.refused(*arguments) == f"{source} has 3 lines and {target} 4; they must pair up"


def test_the_tokenisation_of_bleu_can_be_chosen(call: Any, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("zwei vier\ndrei acht\n", encoding="utf-8")
    (tmp_path / "reference.txt").write_text("two four\nthree nine\n", encoding="utf-8")
    texts = ("--source", tmp_path / "source.txt", "--reference", tmp_path / "reference.txt")
    files = ("evaluate", "--model", trained, *texts)
    _, out, _ = call(*files, "--tokenize", "char", "--json")
    assert "|tok:char|" in json.loads(out)["signature"]
    says = "seq2see: tokenize = 'words' is not one of 13a, intl, zh"
    code, out, error = call(*files, "--tokenize", "words")
    assert (code, out) == (2, "") and error.startswith(says)
    systems = (tmp_path / "reference.txt", tmp_path / "source.txt")
    reference = ("--reference", tmp_path / "reference.txt")
    _, out, _ = call("compare", *systems, *reference, "--tokenize", "intl", "--json")
    assert "|tok:intl|" in json.loads(out)["signatures"]["bleu"]["bootstrap"]
    code, out, error = call("compare", *systems, *reference, "--tokenize", "words")
    assert (code, out) == (2, "") and error.startswith(says)
