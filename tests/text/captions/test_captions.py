"""The embedded corpus: reproducible, split without overlap, aligned and not too easy."""

import ast
import os
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import sacrebleu

import seq2see
from seq2see.text.captions import SPLITS, Caption, generate, words
from seq2see.text.captions.phrases import Links

PACKAGE = Path(seq2see.__file__).parent
CAPTIONS = PACKAGE / "text" / "captions"


def test_the_same_arguments_give_the_same_captions() -> None:
    assert generate("train", 200, seed=3) == generate("train", 200, seed=3)
    assert generate("train", 50, seed=3) != generate("train", 50, seed=4)


def test_a_shorter_list_is_the_start_of_a_longer_one() -> None:
    for split in SPLITS:
        assert generate(split, 60)[:25] == generate(split, 25)
    assert generate("val", 0) == []


def test_the_global_random_state_is_left_alone() -> None:
    random.seed(5)
    before = random.getstate()
    generate("test_structures", 20)
    assert random.getstate() == before


def test_hash_randomisation_changes_nothing() -> None:
    code = "from seq2see.text.captions import generate; print(generate('train', 40))"
    source = str(PACKAGE.parent)
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": source,
                "PYTHONIOENCODING": "utf-8",
            },
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


@pytest.mark.parametrize(("split", "count"), [("training", 5), ("", 5), ("train", -1)])
def test_wrong_arguments_are_named_in_one_line(split: str, count: int) -> None:
    with pytest.raises(ValueError) as raised:
        generate(split, count)
    message = str(raised.value)
    assert "\n" not in message
    assert repr(split) in message or str(count) in message


@pytest.mark.parametrize("path", sorted(CAPTIONS.glob("*.py")), ids=lambda path: path.name)
def test_only_the_standard_library_is_imported(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            inside = name.startswith("seq2see.text.captions")
            assert inside or name.split(".")[0] in sys.stdlib_module_names


def test_captions_are_distinct(train: list[Caption], held_out: dict[str, list[Caption]]) -> None:
    for captions in (train, *held_out.values()):
        assert len({caption.source for caption in captions}) == len(captions)


def test_splits_share_no_sentence_of_either_language(
    all_captions: list[Caption], held_out: dict[str, list[Caption]]
) -> None:
    for side in ("source", "target"):
        sentences = {
            split: {getattr(c, side) for c in captions} for split, captions in held_out.items()
        }
        sentences["train"] = {getattr(caption, side) for caption in all_captions[:34_000]}
        assert len(set().union(*sentences.values())) == sum(map(len, sentences.values()))


def test_every_german_sentence_has_one_translation(all_captions: list[Caption]) -> None:
    assert len(all_captions) == 40_000
    translations: dict[str, str] = {}
    for caption in all_captions:
        assert translations.setdefault(caption.source, caption.target) == caption.target


def test_held_out_structures_are_new_but_made_of_known_parts(
    train: list[Caption], held_out: dict[str, list[Caption]]
) -> None:
    new = {caption.structure for caption in held_out["test_structures"]}
    known = {
        caption.structure
        for split in (train, held_out["val"], held_out["test"])
        for caption in split
    }
    assert 4 <= len(new) <= 8
    assert not new & known
    parts = {part for name in known for part in re.split(r"[+,] ?", name)}
    assert {part for name in new for part in re.split(r"[+,] ?", name)} <= parts


def test_lengths_suit_a_small_model(tokenised: list[tuple[list[str], list[str], Links]]) -> None:
    lengths = [len(german) for german, _, _ in tokenised[:20_000]]
    assert 11 < sum(lengths) / len(lengths) < 14
    assert sum(6 <= length <= 22 for length in lengths) > 0.95 * len(lengths)


def test_there_are_more_than_ten_million_pairs(
    train: list[Caption], all_captions: list[Caption]
) -> None:
    # Samples of n and m out of N equally likely captions share about nm / N; others share more.
    again = {caption.source for caption in all_captions[20_000:34_000]}
    shared = {caption.source for caption in train} & again
    assert len(train) * len(again) / max(1, len(shared)) > 10_000_000


def test_vocabulary_is_a_few_hundred_words(
    tokenised: list[tuple[list[str], list[str], Links]],
) -> None:
    german = {word.lower() for sentence, _, _ in tokenised for word in sentence}
    english = {word.lower() for _, sentence, _ in tokenised for word in sentence}
    assert 300 < len(english) < len(german) < 1000


# Alignment


def test_words_keep_possessives_and_split_punctuation() -> None:
    assert words("Is the man's dog, too?") == ["Is", "the", "man's", "dog", ",", "too", "?"]
    assert words("猫看见3只dog，吗？") == ["猫", "看", "见", "3", "只", "dog", "，", "吗", "？"]


def test_links_are_sorted_distinct_and_in_range(
    tokenised: list[tuple[list[str], list[str], Links]],
) -> None:
    for german, english, links in tokenised:
        assert list(links) == sorted(set(links))
        assert all(
            0 <= source < len(german) and 0 <= target < len(english) for source, target in links
        )


def test_all_words_but_commas_and_some_articles_are_linked(
    tokenised: list[tuple[list[str], list[str], Links]],
) -> None:
    unlinked: Counter[str] = Counter()
    for german, english, links in tokenised:
        sources, targets = {source for source, _ in links}, {target for _, target in links}
        unlinked.update(word.lower() for place, word in enumerate(german) if place not in sources)
        unlinked.update(word.lower() for place, word in enumerate(english) if place not in targets)
    # "den Ball des Mannes" has one article more than "the man's ball".
    assert {*unlinked} == {",", "der", "die", "das", "den", "dem"}
    articles = sum(count for word, count in unlinked.items() if word != ",")
    assert articles < 0.02 * sum(len(german) for german, _, _ in tokenised)


def test_end_mark_goes_with_end_mark_alone(
    tokenised: list[tuple[list[str], list[str], Links]],
) -> None:
    for german, english, links in tokenised:
        assert german[-1] == english[-1] in (".", "?")
        end = (len(german) - 1, len(english) - 1)
        assert [link for link in links if link[0] == end[0] or link[1] == end[1]] == [end]


# Difficulty


def dictionary(captions: list[Caption]) -> dict[str, str]:
    """Map each German word to its most frequent translation."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for caption in captions:
        german, english = words(caption.source.lower()), words(caption.target.lower())
        linked: dict[int, list[str]] = defaultdict(list)
        for source, target in caption.alignment:
            linked[source].append(english[target])
        for place, word in enumerate(german):
            counts[word][" ".join(linked[place])] += 1
    return {word: glosses.most_common(1)[0][0] for word, glosses in counts.items()}


def test_translating_word_for_word_is_not_enough(
    train: list[Caption], held_out: dict[str, list[Caption]]
) -> None:
    meanings = dictionary(train)
    for split in ("test", "test_structures"):
        captions = held_out[split][:1000]
        guesses = []
        for caption in captions:
            guess = " ".join(
                filter(None, (meanings.get(word, word) for word in words(caption.source.lower())))
            )
            guesses.append(re.sub(r" ([,.?])", r"\1", guess[:1].upper() + guess[1:]))
        score = sacrebleu.corpus_bleu(guesses, [[caption.target for caption in captions]]).score
        assert 15 < score < 40
