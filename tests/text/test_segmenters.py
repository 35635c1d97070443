"""Words by language: split and joined again."""

import gzip
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.recipe.schema import TokenizerConfig
from seq2see.text import tokenizers
from seq2see.text.lines import read_lines
from seq2see.text.segmenters import name_of, segmenter
from seq2see.text.subwords import Subwords
from seq2see.text.words import Words

DATA = Path(os.environ.get("SEQ2SEE_DATA", "none"))
real = pytest.mark.skipif(
    not (DATA / "multi30k").is_dir() or not (DATA / "tatoeba").is_dir(),
    reason="Multi30k or Tatoeba is not under SEQ2SEE_DATA",
)
CHINESE = ["characters", "jieba"]
SENTENCES = {
    "ar": "ذهب محمد إلى المدرسة، وهل رأى 3 كتب؟ نعم؛ رآها.",
    "cs": "Kde je 5 psů? Tady, na dvoře!",
    "de": "Wie geht's? Der 3. Mann sagt: „Gut!“",
    "el": "Πού είναι ο σκύλος; Εδώ.",
    "es": "¿Dónde está el perro? ¡Aquí!",
    "fa": "سلام، حال شما چطور است؟",
    "he": "איפה הכלב? כאן, בחצר.",
    "hi": "राम ने 3 किताबें पढ़ीं। क्या? हाँ, ठीक है!",
    "it": "L'uomo non c'è: è all'università.",
    "ja": "私は 東京タワー3が好きです。Hello World!",
    "ko": "나는 학교에 갔다. 3명, “안녕”!",
    "pt-BR": "Onde está o cão? Aqui!",
    "ru": "Где собака? Здесь, во дворе!",
    "tr": "Köpek nerede? Burada, bahçede!",
    "uk": "Де собака? Тут, у дворі!",
    "vi": "Tôi đi học, anh ạ. (3)",
    "zh": "我有 3 只猫，Tom 说：“T-shirt 1999 年？”",
    "zh-Hant": "湯姆說：「我們在臺北。」",
}


@pytest.mark.parametrize(("language", "text"), SENTENCES.items(), ids=SENTENCES)
def test_words_of_a_language_give_the_text_back(language: str, text: str) -> None:
    if language == "ja":
        pytest.importorskip("fugashi")
    words = Words.train([text], language, 1, None, name_of(language, "characters"))
    assert words.decode(words.encode(text)) == text
    assert len(words.pieces(text)) > 4


def test_chinese_is_cut_into_characters_or_words() -> None:
    text = "我来到北京清华大学，Tom 有12个"
    cut = segmenter("characters", "zh").split(text)
    assert cut == [*"我来到北京清华大学，", "Tom", " ", *"有12个"]
    pytest.importorskip("jieba")
    assert segmenter("jieba", "zh").split(text)[:4] == ["我", "来到", "北京", "清华大学"]


def test_japanese_is_cut_into_words() -> None:
    pytest.importorskip("fugashi")
    words = segmenter("fugashi", "ja").split("私は猫が好きです。")
    assert words == ["私", "は", "猫", "が", "好き", "です", "。"]


@pytest.mark.parametrize("name", [*CHINESE, "fugashi"])
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30))
def test_text_without_spaces_is_never_lost(name: str, text: str) -> None:
    if name != "characters":
        pytest.importorskip(name)
    rules = segmenter(name, "zh")
    assert rules.join(rules.split(text)) == " ".join(text.split())


@pytest.mark.parametrize(
    ("name", "module", "libraries"),
    [("jieba", "jieba", "jieba"), ("fugashi", "fugashi", "fugashi unidic-lite")],
)
def test_a_missing_library_is_named(
    name: str, module: str, libraries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=f"needs the extra cjk: pip install {libraries}$"):
        segmenter(name, "zh")


def test_french_marks_stand_as_in_the_training_text() -> None:
    spaced = "Quoi ? Il dit : « Est-ce là ; vraiment ! »"
    close = "Quoi? Il dit: Est-ce là; vraiment!"
    no_break = "Quoi\u202f? Il dit\xa0: «\xa0Où\xa0»"
    for text in (spaced, close, no_break):
        words = Words.train([text], "fr", 1, None)
        assert words.decode(words.encode(text)) == text


def test_words_are_saved_with_their_rules(tmp_path: Path) -> None:
    pairs = [("Quoi ? Où ?", "什么？"), ("ﬁn ?", "２只猫")]
    config = TokenizerConfig(kind="words", min_frequency=1, normalise="nfkc")
    tokenizers.cached(config, "fr", "zh", pairs, tmp_path)
    loaded = tokenizers.load(tmp_path)
    source, target = loaded.source, loaded.target
    assert source.decode(source.encode("Où?")) == "Où ?"
    assert target.decode(target.encode("２只猫")) == "2只猫"
    assert tokenizers.identity(tmp_path)["normalise"] == "nfkc"


def test_a_directory_of_an_earlier_version_opens_unchanged(tmp_path: Path) -> None:
    accents = "Ma\u0308nner"
    pairs = [(f"Zwei {accents}.", f"两个 {accents}")]
    later = ("normalise", "segmenters", "notes")
    for kind in ("words", "char"):
        config = TokenizerConfig(kind=kind, min_frequency=1, normalise="none")
        folder = tmp_path / kind
        tokenizers.save(tokenizers.train(config, "de", "zh", pairs), folder, config, "f")
        path = folder / "tokenizer.json"
        about = json.loads(path.read_text())
        path.write_text(json.dumps({key: about[key] for key in about.keys() - later}))
        loaded = tokenizers.load(folder)
        assert loaded.source.normalise == ("none" if kind == "words" else "nfc")
        assert tokenizers.identity(folder).items() <= about["files"].items()
    words = tokenizers.load(tmp_path / "words")
    assert accents in words.source.pieces(pairs[0][0])
    assert words.target.pieces("T-shirt") == [*"T-shirt"]  # as spaCy splits Chinese


@real
@pytest.mark.parametrize(("language", "level"), [("de", 0.997), ("en", 0.998), ("fr", 0.998)])
def test_multi30k_survives_words_and_pieces(language: str, level: float) -> None:
    for split in ("val", "test_2016_flickr", "test_2017_flickr"):
        texts = read_lines(DATA / "multi30k" / f"{split}.{language}.gz")
        words = Words.train(texts, language, 1, None)
        kept = sum(words.decode(words.encode(text)).split() == text.split() for text in texts)
        assert kept / len(texts) >= level
        _survives_pieces(texts[:500])


@real
@pytest.mark.parametrize("name", CHINESE)
def test_chinese_tatoeba_survives_words_and_pieces(name: str) -> None:
    with gzip.open(DATA / "tatoeba" / "eng-cmn.tsv.gz", "rt", encoding="utf-8") as file:
        texts = [line.split("\t")[1] for line in file][::13]
    if name == "jieba":
        pytest.importorskip("jieba")
    words = Words.train(texts, "zh", 1, None, name)
    kept = sum(words.decode(words.encode(text)) == text for text in texts)
    assert len(texts) > 3000 and kept / len(texts) >= 0.995
    _survives_pieces(texts)


def _survives_pieces(texts: list[str]) -> None:
    for kind in ("unigram", "char"):
        pieces = Subwords.train(texts, kind, 3000, True, True)
        assert all(pieces.decode(pieces.encode(text)) == " ".join(text.split()) for text in texts)
