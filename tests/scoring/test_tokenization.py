"""BLEU counts the words of the target language, as the command of sacreBLEU does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu.utils

from seq2see.cli.options import write_lines
from seq2see.errors import InputError
from seq2see.scoring.bleu import score
from seq2see.scoring.compare import compare
from seq2see.scoring.errors import analyse
from seq2see.scoring.phrases import words
from seq2see.scoring.tokenization import bleu_metric, tokenization, tokenization_of
from seq2see.text.subwords import Subwords

CHINESE = ["我们明天去北京。", "他在看一本书,很有意思", "你好吗?"]
OUTPUTS = {
    "zh": ["我们今天去北京。", "他看了一本 GPU 书", "你好吗?"],
    "ja-mecab": ["私は今日東京に行きます。", "犬が公園で走っている", "本を読む"],
    "ko-mecab": ["나는 오늘 서울에 갑니다.", "개가 공원에서 달린다", "책을 읽었다"],
    "13a": ["Wir fahren heute nach Berlin.", "Er liest ein Buch", "Wie geht's?"],
    "intl": ["Wir fahren heute nach „Berlin“.", "Er liest ein Buch", "Wie geht's?"],
    "char": ["Wir fahren heute nach Berlin.", "Er liest ein Buch", "Wie geht's?"],
}
REFERENCES = {
    "zh": CHINESE,
    "ja-mecab": ["私は明日東京に行きます。", "犬が公園を走っている", "本を読んだ"],
    "ko-mecab": ["나는 내일 서울에 갑니다.", "개가 공원에서 달렸다", "책을 읽었다"],
    "13a": ["Wir fahren morgen nach Berlin.", "Er liest ein gutes Buch", "Wie geht's?"],
    "intl": ["Wir fahren morgen nach „Berlin“.", "Er liest ein gutes Buch", "Wie geht's?"],
    "char": ["Wir fahren morgen nach Berlin.", "Er liest ein gutes Buch", "Wie geht's?"],
}


@pytest.mark.parametrize("tokenize", OUTPUTS)
def test_the_command_of_sacrebleu_gives_the_same(tokenize: str, tmp_path: Path) -> None:
    if tokenize.endswith("mecab"):
        pytest.importorskip("MeCab" if tokenize.startswith("ja") else "mecab_ko")
    outputs, references = OUTPUTS[tokenize], REFERENCES[tokenize]
    write_lines(tmp_path / "out.txt", outputs)
    write_lines(tmp_path / "reference.txt", references)
    command = [sys.executable, "-m", "sacrebleu", "reference.txt", "-i", "out.txt", "-w", "15"]
    command += ["-m", "bleu", "chrf", "--chrf-word-order", "2", "--tokenize", tokenize]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    bleu, chrf = json.loads(done.stdout)
    scores = score(outputs, references, tokenize)
    assert (bleu["score"], bleu["signature"]) == (scores.bleu, scores.signature)
    assert f"tok:{tokenize}" in scores.signature and 5 < scores.bleu < 95
    plus_plus = (scores.chrf_plus_plus, scores.chrf_plus_plus_signature)
    assert (chrf["score"], chrf["signature"]) == plus_plus and scores.chrf != scores.chrf_plus_plus


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        *(("zh", "zh"), ("cmn", "zh"), ("zh-Hant", "zh"), ("zh_CN", "zh"), ("ZH", "zh")),
        *(("ja", "ja-mecab"), ("ko", "ko-mecab"), ("de", "13a"), ("xx", "13a"), ("", "13a")),
    ],
)
def test_a_language_has_its_tokenisation(language: str, expected: str) -> None:
    assert tokenization(language) == expected


@pytest.mark.parametrize("tokenize", ["zh", "ja-mecab", "ko-mecab", "13a"])
def test_the_script_tells_an_unknown_language(tokenize: str) -> None:
    assert tokenization_of(REFERENCES[tokenize]) == tokenize
    assert tokenization_of(["", "12"]) == "13a"
    assert tokenization_of(["He wrote 北京 on a sheet of paper in front of the class."]) == "13a"


def test_errors_are_counted_in_the_words_of_bleu() -> None:
    tokenizer = Subwords.train(["we went to Beijing"] * 10, "bpe", 40)
    outputs, references = ["我们今天去了去了北京。"], ["我们明天去北京。"]
    errors = analyse(["we"], outputs, references, tokenizer, "zh")
    assert errors.lengths.ratio == 11 / 8 and errors.repeated.frequent == [("去 了", 1)]
    assert dict(errors.missing_words) == {"明": 1}
    assert words("<unk>北京", "zh") == ["<unk>", "北", "京"]


def test_systems_are_compared_in_the_words_of_their_language() -> None:
    worse = ["我今天去", "他在看", "你好"]
    result = compare({"a": worse, "b": CHINESE}, CHINESE, tokenize="zh")
    assert "tok:zh" in result.signatures["bleu"]["bootstrap"]
    assert [bucket.bucket for bucket in result.by_length] == ["1-5", "6-10"]
    assert result.systems[1].bleu.score == pytest.approx(100)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sacrebleu.utils, "SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(InputError, match=r"'flores200' needs the file .*flores200sacrebleuspm"):
        bleu_metric("flores200")
    with pytest.raises(InputError, match=r"tokenize = 'mecab' is not one of 13a, intl, zh"):
        bleu_metric("mecab")
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(
        InputError, match=r"^tokenize = 'ja-mecab' needs MeCab: pip install mecab-p"
    ):
        bleu_metric("ja-mecab")
