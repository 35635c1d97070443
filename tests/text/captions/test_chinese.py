"""Chinese captions: sentences checked by hand, patterns of errors, links, splits, difficulty."""

import hashlib
import re
from collections import Counter, defaultdict

import pytest
import sacrebleu

from seq2see.text.captions import LANGUAGES, SPLITS, Caption, generate, words
from seq2see.text.captions.lexicon import HELD_OUT, NOUNS, STRUCTURES

PAIRS = [(one, other) for one in LANGUAGES for other in LANGUAGES if one != other]
STRUCTURE_NAMES = {structure.name for structure in (*STRUCTURES, *HELD_OUT)}
CLASSIFIERS = {noun.chinese: noun.classifier for noun in NOUNS.values()}


@pytest.fixture(scope="module")
def chinese() -> dict[str, list[Caption]]:
    """Chinese–English captions by split."""
    return {
        split: generate(split, 4_000 if split == "train" else 800, 2, ("zh", "en"))
        for split in SPLITS
    }


@pytest.fixture(scope="module")
def text(chinese: dict[str, list[Caption]]) -> str:
    return "\n".join(caption.source for split in chinese.values() for caption in split)


def test_german_and_english_are_what_they_were_before_chinese() -> None:
    digest = hashlib.sha256()
    for split in SPLITS:
        for seed in (1, 3):
            for one in generate(split, 400, seed):
                row = (one.source, one.target, one.alignment, one.structure, one.plural)
                digest.update(("\t".join(map(str, row)) + "\n").encode())
    assert digest.hexdigest() == "fba355e599961fb433c59648f84e63e67bf0e49a557d49de95612f8e74d891b8"


@pytest.mark.parametrize("languages", [("de", "de"), ("zh", "fr"), ("", "en")])
def test_unknown_languages_are_named_in_one_line(languages: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"are not two of de, en, zh$"):
        generate("train", 1, languages=languages)


@pytest.mark.parametrize("languages", PAIRS)
def test_every_structure_has_text_and_links_in_range(languages: tuple[str, str]) -> None:
    captions = generate("train", 1200, languages=languages)
    captions += generate("test_structures", 100, languages=languages)
    assert {caption.structure for caption in captions} == STRUCTURE_NAMES
    for caption in captions:
        sides = words(caption.source), words(caption.target)
        assert len(sides[0]) > 2 < len(sides[1])
        assert list(caption.alignment) == sorted({*caption.alignment})
        for source, target in caption.alignment:
            assert 0 <= source < len(sides[0]) and 0 <= target < len(sides[1])
        assert caption.alignment[-1] == (len(sides[0]) - 1, len(sides[1]) - 1)  # the end marks
        assert languages[0] != "zh" or len({*caption.alignment}) >= len(sides[0]) - 3


@pytest.mark.parametrize("languages", PAIRS)
def test_both_orders_of_a_pair_are_the_same_captions(languages: tuple[str, str]) -> None:
    forth = generate("val", 30, 5, languages)
    back = generate("val", 30, 5, languages[::-1])
    assert [(one.source, one.target) for one in forth] == [(o.target, o.source) for o in back]
    assert [{*one.alignment} for one in forth] == [
        {(target, source) for source, target in one.alignment} for one in back
    ]


def test_splits_are_disjoint_in_chinese_and_captions_distinct(
    chinese: dict[str, list[Caption]],
) -> None:
    for side in ("source", "target"):
        texts = [{getattr(one, side) for one in split} for split in chinese.values()]
        assert len(set().union(*texts)) == sum(map(len, texts))
    assert all(len({one.source for one in split}) == len(split) for split in chinese.values())


def test_every_chinese_sentence_has_one_translation() -> None:
    translations: dict[str, str] = {}
    for seed in (1, 2, 3):
        for caption in generate("train", 2_000, seed, ("zh", "en")):
            assert translations.setdefault(caption.source, caption.target) == caption.target


def test_every_character_but_commas_is_linked(chinese: dict[str, list[Caption]]) -> None:
    for caption in chinese["train"] + chinese["test_structures"]:
        linked = {source for source, _ in caption.alignment}
        unlinked = {c for place, c in enumerate(words(caption.source)) if place not in linked}
        assert unlinked <= {"，"}, caption
        # Articles and other words without Chinese ones link to the noun; pronouns are dropped.
        linked = {target for _, target in caption.alignment}
        english = words(caption.target)
        left = {word.lower() for place, word in enumerate(english) if place not in linked}
        assert left <= {",", "and", "that", "he", "she", "it", "they"}, caption


def test_classifiers_agree_with_their_nouns(text: str) -> None:
    adjectives = {
        adjective.chinese
        for noun in NOUNS.values()
        for chosen in noun.adjectives
        for adjective in chosen
    }
    for noun, classifier in CLASSIFIERS.items():
        pattern = rf"(?:[一这那两三四五六]|好?几)(.)(?:{'|'.join(adjectives)})?{noun}(?=[，。？])"
        assert {*re.findall(pattern, text)} - {"些"} <= {classifier}, noun
    assert len({*re.findall("一(.)", text)} & {*CLASSIFIERS.values()}) > 20


ERRORS = {
    "spaces or half-width marks": r"[ ,.?a-zA-Z0-9]",
    "two particles": r"了了|的的|着着|正在正|在在|正正|了的时候|了之后|了的",
    "plural with a number": rf"[两三四五六几些]\w?({'|'.join(CLASSIFIERS)})们",
    "progressive with perfect": r"正在[^，。？的|]*(起来|完|好)了。",
    "negated perfect": r"没有[^，。？|]*了。",
    "numeral without classifier": r"[三四五六](?!颜|色|位|名|个|只|条|匹|头|根|块|顶|件|本|份|封|幅|张|把|支"
    r"|架|辆|列|棵|扇|朵|座|堵|道|所|家|片|间|杯)",
    "two before a classifier": r"二",
    "noun phrase without noun": r"的[，。？]|的了",
    "把 without object": r"把(扔|放|摆|捡|打|关|修|洗|吃|卖|读|写|还)",
}


@pytest.mark.parametrize("error", ERRORS)
def test_chinese_is_free_of(text: str, error: str) -> None:
    text = text.replace("是红色的。", "").replace("\n", "|")
    text = re.sub(r"是\w{1,2}的。", "", text)
    match = re.search(ERRORS[error], text)
    assert not match, text[match.start() - 40 : match.end() + 20]


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"^一位.*正在", id="classifier"),
        pytest.param(r"两只|三本", id="numbers"),
        pytest.param(r"把\w+扔掉了。", id="把, perfect"),
        pytest.param(r"想要?把\w+起来。", id="把, modal"),
        pytest.param(r"正在.*被", id="被"),
        pytest.param(r"正由", id="由"),
        pytest.param(r"坐在\w+上", id="posture"),
        pytest.param(r"从\w+里\w出来", id="从…里"),
        pytest.param(r"往\w+里", id="往…里"),
        pytest.param(r"^\w+(上|下面|旁边|前面)(放|坐|站|停)着", id="place before a new subject"),
        pytest.param(r"^[那这]\w+，\w+", id="topic"),
        pytest.param(r"吗？$", id="question"),
        pytest.param(r"没有在", id="negation"),
        pytest.param(r"们", id="们"),
        pytest.param(r"着\w+的\w+", id="relative clause with 着"),
        pytest.param(r"^因为很\w，", id="dropped pronoun"),
        pytest.param(r"^虽然.*，但", id="although"),
        pytest.param(r"的时候，.*会", id="when"),
        pytest.param(r"跟他说话的", id="pronoun left behind"),
    ],
)
def test_phenomenon_occurs(text: str, pattern: str) -> None:
    assert re.search(f"(?m){pattern}", text)


def test_relative_clauses_precede_their_nouns(chinese: dict[str, list[Caption]]) -> None:
    nouns = {noun.chinese for noun in NOUNS.values()}
    seen = 0
    for caption in chinese["train"]:
        english = words(caption.target)
        pronouns = {"who", "whom", "which"} & {*english}
        if "relative" not in caption.structure or not pronouns:
            continue
        pronoun = english.index(pronouns.pop())
        linked = [source for source, target in caption.alignment if target == pronoun]
        marker = max(linked)
        assert caption.source[marker] == "的", caption
        assert any(noun in caption.source[marker:] for noun in nouns)
        seen += 1
    assert seen > 300


def runs(caption: Caption) -> list[tuple[str, tuple[int, ...]]]:
    """Join neighbouring words with the same links, such as the characters of a Chinese word."""
    linked: dict[int, list[int]] = defaultdict(list)
    for source, target in caption.alignment:
        linked[source].append(target)
    joined: list[tuple[str, tuple[int, ...]]] = []
    for place, word in enumerate(words(caption.source.lower())):
        links = tuple(linked[place])
        if joined and links and joined[-1][1] == links and not word.isascii():
            joined[-1] = (joined[-1][0] + word, links)
        else:
            joined.append((word, links))
    return joined


def dictionary(captions: list[Caption]) -> dict[str, str]:
    """Map each word of the source to its most frequent translation."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for caption in captions:
        target = words(caption.target.lower())
        for word, links in runs(caption):
            counts[word][" ".join(target[place] for place in links)] += 1
    return {word: glosses.most_common(1)[0][0] for word, glosses in counts.items()}


@pytest.mark.parametrize("languages", [("zh", "en"), ("en", "zh")])
@pytest.mark.parametrize("split", ["test", "test_structures"])
def test_translating_word_for_word_is_not_enough(split: str, languages: tuple[str, str]) -> None:
    meanings = dictionary(generate("train", 4_000, languages=languages))
    captions = generate(split, 300, 2, languages)
    guesses = []
    for caption in captions:
        glosses = filter(None, (meanings.get(word, word) for word, _ in runs(caption)))
        guess = re.sub(r" ([,.?])", r"\1", " ".join(glosses))
        guesses.append(guess[:1].upper() + guess[1:])
    references = [[caption.target for caption in captions]]
    tokenize = "zh" if languages[1] == "zh" else "13a"
    score = sacrebleu.corpus_bleu(guesses, references, tokenize=tokenize).score
    assert 2 < score < 40
