"""Words and subwords: round trips, determinism, the cache, and real text."""

import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2see.errors import InputError
from seq2see.recipe.schema import TokenizerConfig
from seq2see.text import subwords, tokenizers
from seq2see.text.lines import read_lines
from seq2see.text.specials import BEGIN, END, PAD, SPECIALS, UNKNOWN
from seq2see.text.subwords import N_BEST, SHARPNESS, Subwords
from seq2see.text.tokenizers import Tokenizer
from seq2see.text.words import Words

PAIRS = [
    ("Ein Hund läuft durch den grünen Park.", "A dog runs through the green park."),
    ("Zwei Männer spielen Fußball.", "Two men are playing football."),
    ("Eine Frau mit Hut liest ein Buch.", "A woman with a hat is reading a book."),
    (
        "Kinder spielen im Wasser <s> und lachen </s>.",
        "Children play in the water <s> and laugh </s>.",
    ),
    ("Der Mann trägt ein rotes T-Shirt.", "The man doesn't wear a red t-shirt."),
]
TEXTS = [text for pair in PAIRS for text in pair]
# SentencePiece leaves "<s>" and "</s>" out of its training text.
LETTERS = sorted({*"".join(TEXTS)} - {*"</>"})
MULTI30K = Path(os.environ.get("SEQ2SEE_DATA", "")) / "multi30k"
real = pytest.mark.skipif(not MULTI30K.is_dir(), reason="Multi30k is not under SEQ2SEE_DATA")

unigram = Subwords.train(TEXTS, "unigram", 90)
bpe = Subwords.train(TEXTS, "bpe", 90)
char = Subwords.train(TEXTS, "char", 90)
german = Words.train([source for source, _ in PAIRS], "de", 1, None)
english = Words.train([target for _, target in PAIRS], "en", 1, None)
every_subwords = pytest.mark.parametrize(
    "tokenizer", [unigram, bpe, char], ids=["unigram", "bpe", "char"]
)
every = pytest.mark.parametrize(
    "tokenizer", [unigram, bpe, char, german, english], ids=["unigram", "bpe", "char", "de", "en"]
)
any_text = st.text(max_size=30) | st.lists(st.sampled_from([*TEXTS, *SPECIALS, "▁", " "])).map(
    "".join
)


def lines(split: str, language: str) -> list[str]:
    return read_lines(MULTI30K / f"{split}.{language}.gz")


@every
@given(text=any_text, ids=st.lists(st.integers(-5, 200) | st.integers()))
def test_any_text_and_any_ids(tokenizer: Tokenizer, text: str, ids: list[int]) -> None:
    encoded = tokenizer.encode(text)
    assert all(UNKNOWN <= id < len(tokenizer) for id in encoded)  # never BEGIN, END or PAD
    assert len(tokenizer.pieces(text)) == len(encoded)
    assert "\n" not in tokenizer.decode(ids)  # one line in, one line out
    assert tokenizer.decode([BEGIN, *encoded, END, PAD]) == tokenizer.decode(encoded)
    assert tokenizer.sample(text, random.Random(1)) == tokenizer.sample(text, random.Random(1))


@every
def test_specials(tokenizer: Tokenizer) -> None:
    assert [tokenizer.piece(id) for id in range(4)] == list(SPECIALS)
    assert tokenizer.piece(len(tokenizer)) == tokenizer.piece(-1) == "<unk>"
    assert tokenizer.decode([BEGIN, PAD, END]) == tokenizer.decode([]) == ""
    assert tokenizer.decode([UNKNOWN]) == "<unk>"
    assert UNKNOWN in tokenizer.encode("😀") and tokenizer.pieces("😀")[-1] == "😀"
    tokenizer.encode("\ud83d")  # half an emoji, as JSON can carry it


@every_subwords
@given(text=st.text(st.sampled_from(LETTERS), max_size=40))
def test_subwords_give_the_text_back(tokenizer: Subwords, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())


def test_text_that_looks_equal_encodes_equally() -> None:
    assert unigram.encode("Ma\u0308nner\u00a0 im\tPark") == unigram.encode("Männer im Park")


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_subword_training_is_deterministic(kind: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        Subwords.train(TEXTS * 3, kind, 100).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_small_corpus_gives_fewer_unigram_pieces() -> None:
    assert 40 < len(Subwords.train(TEXTS, "unigram", 8000)) < 1000


def test_characters_are_one_each_and_the_rarest_go_first() -> None:
    assert char.pieces("Ein Hut") == ["▁", *"Ein", "▁", *"Hut"]
    assert {*LETTERS} - {" "} <= {char.piece(id) for id in range(len(char))}
    few = Subwords.train(TEXTS, "char", 9)
    assert len(few) == 9 and few.decode(few.encode("eß")) == "e<unk>"


@pytest.mark.parametrize(
    ("kind", "size", "rule"),
    [("bpe", 8000, "at most"), ("bpe", 9, "at least"), ("unigram", 9, "at least")],
)
def test_a_size_that_does_not_fit_names_one_that_does(kind: str, size: int, rule: str) -> None:
    with pytest.raises(
        InputError, match=rf"tokenizer.size = {size} is too .* {rule} (\d+)$"
    ) as caught:
        Subwords.train(TEXTS, kind, size)
    possible = int(str(caught.value).split()[-1])
    assert len(Subwords.train(TEXTS, kind, possible)) == possible


def test_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="no training text"):
        Subwords.train(["", "  "], "unigram", 50)


def test_samples_are_other_segmentations_of_the_same_text() -> None:
    text = TEXTS[1]
    generator = random.Random(3)
    drawn = Counter(tuple(unigram.sample(text, generator)) for _ in range(4000))
    assert 1 < len(drawn) <= N_BEST
    assert {unigram.decode(ids) for ids in drawn} == {text}
    # The share of a segmentation is ∝ exp(α Σ log p).
    weights = {ids: math.exp(SHARPNESS * sum(unigram._scores[id] for id in ids)) for ids in drawn}
    shares = {ids: weight / sum(weights.values()) for ids, weight in weights.items()}
    # Unequal shares, so that drawing uniformly would fail below.
    assert max(shares.values()) > 2 * min(shares.values())
    assert all(abs(drawn[ids] / 4000 - share) < 0.02 for ids, share in shares.items())


def test_samples_depend_on_the_generator_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    warm = [unigram.sample(text, random.Random(7)) for text in TEXTS for _ in range(2)]
    monkeypatch.setattr(subwords, "CACHED_SENTENCES", 0)
    cold = Subwords.train(TEXTS, "unigram", 90)
    assert [cold.sample(text, random.Random(7)) for text in TEXTS for _ in range(2)] == warm
    assert not cold._segmentations


def test_other_kinds_have_one_segmentation() -> None:
    for tokenizer in (bpe, german):
        assert tokenizer.sample(TEXTS[0], random.Random(1)) == tokenizer.encode(TEXTS[0])


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I don't know; \"it's a t-shirt,\" she said (twice), isn't it?"),
        ("en", "The dogs' toys cost $5 or 50%, e.g. at 3 p.m. in the U.S."),
        ("en", "She cannot ride at 20 km/h... He's gonna!"),
        ("de", "Ein T-Shirt, z.B. rot-weiß, und „nein“ – d.h. Obst- und Gemüse (frisch)!"),
        ("de", "Wie geht's? 2-3 Männer usw. am 3. Mai, ca. 10:30 Uhr."),
        ("fr", "L'homme n'est pas là, qu'il dit."),
    ],
)
def test_words_give_the_text_back(language: str, text: str) -> None:
    words = Words.train([text], language, 1, None)
    assert words.decode(words.encode(text)) == text


def test_rare_words_are_unknown() -> None:
    words = Words.train(["a dog", "a cat"], "en", 2, None)
    assert words.encode("a dog") == [4, UNKNOWN]
    assert words.pieces("a dog") == ["a", "dog"] and words.decode([4, UNKNOWN]) == "a <unk>"


@pytest.mark.parametrize("language", ["qq", "char_classes", ""])
def test_a_language_without_rules_is_refused(language: str) -> None:
    with pytest.raises(InputError, match=f"language '{language}': spaCy has no rules"):
        Words.train(["x"], language, 1, None)


def test_without_spacy_its_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(InputError, match="needs spaCy: pip install spacy"):
        Words.train(["x"], "de", 1, None)


CONFIGS = {
    "joint": TokenizerConfig(size=90),
    "separate": TokenizerConfig(kind="bpe", size=60, joint=False),
    "words": TokenizerConfig(kind="words", min_frequency=1),
}
configs = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


@configs
def test_saved_and_loaded_is_the_same(config: TokenizerConfig, tmp_path: Path) -> None:
    trained = tokenizers.train(config, "de", "en", PAIRS)
    tokenizers.save(trained, tmp_path, config, "f")
    loaded = tokenizers.load(tmp_path)
    shared = config.size == 90
    assert (loaded.source is loaded.target) == (trained.source is trained.target) == shared
    assert (loaded.languages, loaded.fingerprint) == (("de", "en"), "f")
    for source, target in PAIRS:
        assert loaded.source.encode(source) == trained.source.encode(source)
        assert loaded.target.encode(target) == trained.target.encode(target)
    about = json.loads((tmp_path / "tokenizer.json").read_text())
    assert about["sizes"] == [len(trained.source), len(trained.target)]
    assert {*about["files"], "tokenizer.json"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ["separate", "words"])
def test_each_side_learns_from_its_own_text(name: str) -> None:
    both = tokenizers.train(CONFIGS[name], "de", "en", [*PAIRS, ("ü ü", "q q")])
    assert UNKNOWN not in both.source.encode("ü") and UNKNOWN in both.target.encode("ü")
    assert UNKNOWN not in both.target.encode("q") and UNKNOWN in both.source.encode("q")


@configs
@pytest.mark.parametrize("damage", ["missing", "changed", "no json", "broken json", "empty json"])
def test_a_damaged_file_is_named_and_made_anew(
    config: TokenizerConfig, damage: str, tmp_path: Path
) -> None:
    tokenizers.cached(config, "de", "en", PAIRS, tmp_path)
    about = tmp_path / "tokenizer.json"
    victim = (
        about
        if "json" in damage
        else next(path for path in sorted(tmp_path.iterdir()) if path != about)
    )
    content = victim.read_bytes()
    if damage in ("missing", "no json"):
        victim.unlink()
    else:
        victim.write_bytes(
            {"changed": content[:-1] + b"?", "broken json": content[:-9]}.get(damage, b"{}")
        )
    with pytest.raises(InputError, match=victim.name):
        tokenizers.load(tmp_path)
    assert tokenizers.cached(config, "de", "en", PAIRS, tmp_path)[1] is False
    assert victim.read_bytes() == content
    assert tokenizers.cached(config, "de", "en", PAIRS, tmp_path)[1] is True


@pytest.mark.parametrize("content", [b"", b"junk", b"\x0a\x05"])
def test_a_model_that_is_none_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(content)
    with pytest.raises(InputError, match=r"tokenizer.model: not a SentencePiece model"):
        Subwords.load(tmp_path / "tokenizer.model")


def test_the_cache_is_never_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TokenizerConfig(size=90)

    def taken(
        settings: TokenizerConfig = config, source: str = "de", pairs: list[tuple[str, str]] = PAIRS
    ) -> bool:
        return tokenizers.cached(settings, source, "en", pairs, tmp_path)[1]

    assert [taken(), taken(), taken(TokenizerConfig(size=90, sampling=0.5))] == [False, True, True]
    assert not taken(TokenizerConfig(size=91))
    assert not taken()
    assert not taken(source="fr")
    (a, b), *rest = PAIRS
    # The same letters, divided between the sides elsewhere.
    assert not taken(pairs=[(a + b[:1], b[1:]), *rest])
    assert not taken()
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99")
    assert [taken(), taken()] == [False, True]


def test_the_text_modules_import_fast_and_alone() -> None:
    heavy = "torch spacy sentencepiece numpy matplotlib"
    code = "import sys, seq2see.text.corpora, seq2see.text.tokenizers\n"
    code += "print(sorted({*sys.argv} & {*sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy.split()], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@real
@pytest.mark.parametrize(("language", "entries"), [("de", 8316), ("en", 6384)])
def test_multi30k_vocabularies(language: str, entries: int) -> None:
    texts = [
        text for split in ("train", "val", "test_2016_flickr") for text in lines(split, language)
    ]
    assert len(Words.train(texts, language, 2, None)) == entries


@real
@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_multi30k_survives_words_and_subwords(language: str) -> None:
    texts = lines("val", language)
    words = Words.train(texts, language, 1, None)
    kept = sum(words.decode(words.encode(text)) == text for text in texts)
    assert kept / len(texts) >= 0.998  # one line has a space before its "..."
    pieces = Subwords.train(texts, "unigram", 1000)
    assert all(pieces.decode(pieces.encode(text)) == " ".join(text.split()) for text in texts)


def test_a_sample_is_drawn_once_and_for_all_and_has_every_character(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = [(f"a b c {n % 10}", f"x y z {n % 10}") for n in range(1000)]
    pairs[500] = ("ж", "x")
    assert tokenizers.sample(pairs) == pairs  # few enough
    monkeypatch.setattr(tokenizers, "TRAINING_PAIRS", 100)
    sample = tokenizers.sample(pairs)
    assert sample == tokenizers.sample(pairs)
    assert 100 <= len(sample) <= 115 and pairs[500] in sample
    assert {*"".join(map("".join, sample))} == {*"".join(map("".join, pairs))}
    iterator = iter(pairs)
    assert all(pair in iterator for pair in sample)  # in the order of the corpus


def test_a_sample_of_long_text_has_fewer_pairs_and_every_character(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = [(f"a b c {n % 10}", f"x y z {n % 10}") for n in range(1000)]
    pairs[500] = ("ж", "x")
    monkeypatch.setattr(tokenizers, "TRAINING_CHARACTERS", 1400)
    for most in (1000, 300):
        monkeypatch.setattr(tokenizers, "TRAINING_PAIRS", most)
        sample = tokenizers.sample(pairs)
        assert 1400 <= sum(len(a) + len(b) for a, b in sample) <= 1400 + 12 * 14
        assert {*"".join(map("".join, sample))} == {*"".join(map("".join, pairs))}
    trained = tokenizers.train(TokenizerConfig(size=40), "de", "en", pairs)
    assert trained.pairs == len(sample) < len(pairs)
