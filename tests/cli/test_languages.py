"""Every command on small corpora in six languages, written in five scripts."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from seq2see.ct2 import export
from seq2see.ct2.batches import Setting

RECIPE = """
[data]
source = "en"
target = "{language}"
train = "train.tsv"
val = "val.tsv"
test = "test.tsv"
max_length = 40

[model]
width = 16
heads = 2
encoder_layers = 1
decoder_layers = 1

[train]
steps = 12
batch_tokens = 512
lr = 0.01
warmup = 4
validate_sentences = 4

[decode]
beam = 2
max_ratio = 1.0  # limits the time of models that have not learned to stop
"""
ENGLISH = (
    "{who} sees {number} {what}.",
    ["Anna", "My father", "The teacher", "A child"],
    ["apples", "books", "cats", "trees", "houses"],
)
# The same sentence, subjects and objects; the second and third word of Arabic change places.
LANGUAGES = {
    "zh": (
        "{who}看见{number}个{what}。",
        ["安娜", "我的父亲", "老师", "一个孩子"],
        ["苹果", "书", "猫", "树", "房子"],
    ),
    "ja": (
        "{who}は{what}を{number}見る。",
        ["アンナ", "私の父", "先生", "子ども"],
        ["りんご", "本", "猫", "木", "家"],
    ),
    "ko": (
        "{who} {what} {number}개를 봅니다.",
        ["안나는", "아버지는", "선생님은", "아이는"],
        ["사과", "책", "고양이", "나무", "집"],
    ),
    "ar": (
        "ترى {who} {number} من {what}، نعم.",
        ["آنا", "أمي", "المعلمة", "طفلة"],
        ["التفاح", "الكتب", "القطط", "الأشجار", "البيوت"],
    ),
    "hi": (
        "{who} {number} {what} देखता है।",
        ["अन्ना", "मेरा पिता", "शिक्षक", "बच्चा"],
        ["सेब", "किताबें", "बिल्लियाँ", "पेड़", "घर"],
    ),
    "de": (
        "{who} sieht {number} {what}.",
        ["Anna", "Mein Vater", "Der Lehrer", "Ein Kind"],
        ["Äpfel", "Bücher", "Katzen", "Bäume", "Häuser"],
    ),
}
BLEU_NEEDS = {"ja": "MeCab", "ko": "mecab_ko"}
SOURCES = [
    "Anna sees 7 apples.",
    "",
    "The teacher sees 1234 龘 books 😀.",
    "My father sees 12 cats.",
]


@dataclass(frozen=True)
class Corpus:
    """A folder with a corpus, its recipe and its trained model."""

    folder: Path
    language: str
    lines: list[tuple[str, str]]

    def path(self, name: str) -> Path:
        return self.folder / name


def _pairs(language: str) -> list[tuple[str, str]]:
    triples = product(range(4), range(5), range(2, 16))
    sides = []
    for sentence, subjects, objects in (ENGLISH, LANGUAGES[language]):
        numbers = [(subjects[who], objects[what], number) for who, what, number in triples]
        triples = product(range(4), range(5), range(2, 16))
        sides.append(
            [sentence.format(who=who, what=what, number=number) for who, what, number in numbers]
        )
    return list(zip(*sides, strict=True))


@pytest.fixture(params=LANGUAGES)
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> Corpus:
    language = request.param
    if language in BLEU_NEEDS:
        pytest.importorskip(BLEU_NEEDS[language])
    pairs = _pairs(language)
    parts = {"val": pairs[3::10], "test": pairs[7::10]}
    held_out = {pair for part in parts.values() for pair in part}
    parts["train"] = [pair for pair in pairs if pair not in held_out]
    for name, part in parts.items():
        text = "".join(f"{source}\t{target}\n" for source, target in part)
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    for side, name in enumerate(("source", "reference")):
        text = "".join(f"{pair[side]}\n" for pair in parts["test"])
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "r.toml").write_text(RECIPE.format(language=language), encoding="utf-8")
    return Corpus(tmp_path, language, parts["test"])


def test_a_language_goes_from_training_to_the_export(
    call: Any, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Calibration takes ten seconds, whatever the language.
    monkeypatch.setattr(export, "calibrate", lambda *_: Setting(1, 1, 512))
    model, exported = corpus.path("model"), corpus.path("exported")
    source, reference = corpus.path("source"), corpus.path("reference")

    def done(*arguments: object, stdin: bytes = b"") -> tuple[str, str]:
        code, out, error = call(*arguments, stdin=stdin)
        assert code == 0, error
        return out, error

    recipe, data = corpus.path("r.toml"), corpus.folder
    _, said = done("train", recipe, "--data", data, "--out", model)
    assert "characters" in said and "bytes" in said
    texts = "".join(f"{text}\n" for text in SOURCES).encode()
    for folder, engine in ((model, "torch"), (exported, "ct2")):
        if engine == "ct2":
            done("export", "--model", model, "--out", exported)
        out, _ = done("translate", "--model", folder, "--engine", engine, stdin=texts)
        lines = out.split("\n")
        assert len(lines) == len(SOURCES) + 1 and lines[1] == lines[-1] == ""
        assert "<unk>" not in out
    outputs = corpus.path("outputs")
    files = ("--source", source, "--reference", reference)
    done("evaluate", "--model", model, *files, "--out", outputs)
    assert outputs.read_text(encoding="utf-8").count("\n") == len(corpus.lines)
    done("compare", outputs, reference, "--reference", reference)
    picture = corpus.path("attention.png")
    target = corpus.lines[0][1]
    drawn = ("--model", model, "--out", picture, "--kind", "cross")
    done("see", "attention", SOURCES[2], "--target", target, *drawn)
    assert picture.read_bytes().startswith(b"\x89PNG")
