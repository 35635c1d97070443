"""Labels derived from a corpus: language, and grammatical number."""

import re

from seq2see.recipe.schema import DataConfig
from seq2see.text import captions, labels
from seq2see.text.corpora import Parallel


def data(kind: str, **keys: str) -> DataConfig:
    return DataConfig.model_validate({"corpus": "captions", "labels": kind, **keys})


def corpus(split: str, count: int, german_first: bool = True) -> Parallel:
    pairs = [(caption.source, caption.target) for caption in captions.generate(split, count)]
    return Parallel(
        split, pairs if german_first else [(target, source) for source, target in pairs], ""
    )


def test_languages_take_turns() -> None:
    parallel = corpus("val", 5)
    expected = [(pair[i % 2], ("de", "en")[i % 2]) for i, pair in enumerate(parallel.pairs)]
    assert [*labels.labelled(parallel, data("language"))] == expected
    assert labels.vocabulary(data("language")).words([4, 5]) == ["de", "en"]


def test_labels_stay_with_their_captions_if_some_are_left_out() -> None:
    whole = corpus("val", 40)
    some = Parallel("val", whole.pairs[::2], "", seen=20)
    expected = [*labels.labelled(whole, data("number"))]
    assert [*labels.labelled(some, data("number"))] == expected[::2]


def test_the_number_of_a_caption_is_that_of_its_verb() -> None:
    english = [*labels.labelled(corpus("train", 1500), data("number"))]
    german = labels.labelled(
        corpus("train", 1500, german_first=False), data("number", source="en", target="de")
    )
    assert [label for _, label in english] == [label for _, label in german]
    assert labels.vocabulary(data("number")).words([4, 5]) == ["singular", "plural"]
    # Simple sentences that open with their subject show its number in the first finite verb.
    finite = {"is": "singular", "has": "singular", "wants": "singular"}
    finite |= {"are": "plural", "have": "plural", "want": "plural"}
    checked = {"singular": 0, "plural": 0}
    for (text, label), caption in zip(english, captions.generate("train", 1500), strict=True):
        if caption.structure in (
            "plain",
            "perfect",
            "modal",
            "passive",
            "negated",
            "fronted(place)",
            "fronted(object)",
        ):
            verb = next((word for word in captions.words(text) if word in finite), None)
            if verb is not None:
                assert finite[verb] == label, text
                checked[label] += 1
    assert min(checked.values()) > 50


def test_und_makes_two_of_one() -> None:
    joined = [
        caption for caption in captions.generate("train", 1500) if caption.structure == "perfect"
    ]
    both = [
        caption
        for caption in joined
        if re.match(r"(The|A|An|This) [\w ]+ and (the|a|an|this) ", caption.target)
    ]
    assert both and all(caption.plural for caption in both)
