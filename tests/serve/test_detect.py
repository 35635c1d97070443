"""Detection of languages by their codes."""

import pytest

pytest.importorskip("py3langid", reason="detection needs the extra serve")

from seq2see.serve.detect import detect


@pytest.mark.parametrize("code", ["zh", "zh-Hans", "zh_TW", "ZH"])
def test_a_language_is_known_by_the_base_of_its_code(code: str) -> None:
    first, second = detect("我们今天去北京。", [code, "en"])
    assert first.language == code and first.confidence > 0.5
    assert second.language == "en"
    assert detect("Good morning, how are you?", [code, "en"])[0].language == "en"


def test_unknown_languages_come_last() -> None:
    assert [one.confidence for one in detect("Guten Morgen", ["xx", "de"])] == [1.0, 0.0]
