"""Detokenisation: spaces and attached marks."""

import pytest

from seq2see.text.detokenising import detokenise


@pytest.mark.parametrize(
    ("cut", "text"),
    [
        ("A | dog | , | a | cat | ; | why | ? | ( | No | ! | ) | .", "A dog, a cat; why? (No!)."),
        ('He | says | " | hi | " | and | " | bye | " | .', 'He says "hi" and "bye".'),
        ("Er | sagt | „ | ja | “ | und | „ | nein | “ | .", "Er sagt „ja“ und „nein“."),
        ("She | said | “ | yes | ” | .", "She said “yes”."),
        ("a | ' | quoted | ' | word", "a 'quoted' word"),
        ("the | dogs | ' | toys", "the dogs' toys"),
        ("it | ’s | the | dogs | ’ | toy", "it’s the dogs’ toy"),
        ("I | do | n't | ; | you | 'll | can | not", "I don't; you'll cannot"),
        ("5 | % | of | $ | 20 | on | page | # | 3", "5% of $20 on page #3"),
        ("km | / | h", "km/h"),
        ("a |   | b", "a  b"),
        ("5 | \xa0 | km", "5\xa0km"),
        ("l' | homme | d' | ici", "l'homme d'ici"),
        ("我 | 喜 | 欢 | 你 | 。", "我喜欢你。"),
        ("<unk> | , | <unk>", "<unk>, <unk>"),
    ],
)
def test_marks_attach_to_their_words(cut: str, text: str) -> None:
    assert detokenise(cut.split(" | "), splits_hyphens=True) == text


def test_a_lone_hyphen_is_a_dash_only_where_the_rules_keep_compounds_whole() -> None:
    assert detokenise(["a", "t", "-", "shirt"], splits_hyphens=True) == "a t-shirt"
    assert detokenise(["rot", "-", "weiß"], splits_hyphens=False) == "rot - weiß"
    assert detokenise(["2", "-", "3"], splits_hyphens=False) == "2-3"
    assert detokenise(["-", "yes"], splits_hyphens=True) == "- yes"
