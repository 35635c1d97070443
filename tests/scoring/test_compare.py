"""Comparisons: sacreBLEU's own figures, no claim beyond them, and one line for every mistake."""

import gzip
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seq2see.cli import main as cli
from seq2see.scoring.compare import Comparison, compare, read
from seq2see.tasks.translate import Translator

WORDS = [
    "the",
    "a",
    "small",
    "green",
    "old",
    "dog",
    "cat",
    "man",
    "sees",
    "likes",
    "house",
    "tree",
    "under",
    "and",
]
Call = Callable[..., tuple[int, str, str]]


def noisy(lines: list[str], share: float, seed: int) -> list[str]:
    """The lines with a share of their words replaced."""
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) if draw.random() < share else word for word in line.split())
        for line in lines
    ]


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


DRAW = random.Random(3)
REFERENCES = [" ".join(DRAW.choices(WORDS, k=DRAW.randint(3, 34))) + "." for _ in range(36)]
BASE = noisy(REFERENCES, 0.5, 1)
SYSTEMS = {
    "base": BASE,
    "like": noisy(REFERENCES, 0.5, 2),
    "good": noisy(REFERENCES, 0.2, 3),
    "copy": list(BASE),
    "five": [*REFERENCES[:5], *BASE[5:]],
    "bad": noisy(REFERENCES, 0.8, 4),
}


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(SYSTEMS, REFERENCES)  # once: each system takes sacreBLEU a second


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    texts = SYSTEMS | {"reference": REFERENCES}
    return {name: write(folder / f"{name}.txt", lines) for name, lines in texts.items()}


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `seq2see compare` in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", "compare", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, error

    return run


def refused(call: Call, *arguments: object) -> str:
    code, out, error = call(*arguments)
    assert (code, out) == (2, "") and error.startswith("seq2see: ") and error.count("\n") == 1
    return error.removeprefix("seq2see: ").strip()


def sacrebleu(files: dict[str, Path], systems: list[str], *arguments: str) -> str:
    """What sacreBLEU's own command prints of some systems."""
    paths = [str(files[name]) for name in ("reference", *systems)]
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        paths[0],
        "-i",
        *paths[1:],
        "-q",
        "-nc",
        *arguments,
    ]
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("SACREBLEU")
    }
    return subprocess.run(
        command, capture_output=True, check=True, encoding="utf-8", env=environment
    ).stdout


@pytest.mark.parametrize(
    ("option", "test"), [("--paired-bs", "bootstrap"), ("--paired-ar", "randomisation")]
)
def test_figures_are_those_of_sacrebleus_command(
    found: Comparison, files: dict[str, Path], option: str, test: str
) -> None:
    base, like, good = found.systems[:3]
    rows = json.loads(
        sacrebleu(files, ["base", "like", "good"], option, "-m", "bleu", "-f", "json")
    )
    for row, system in zip(rows, (base, like, good), strict=True):
        assert system.bleu.score == row["BLEU"]["score"]
        assert getattr(system.bleu, f"p_{test}") == row["BLEU"]["p_value"]
        if test == "bootstrap":
            assert (system.bleu.mean, system.bleu.ci) == (row["BLEU"]["mean"], row["BLEU"]["ci"])
    # sacreBLEU 2.6 cannot write chrF's intervals as JSON, so its table has to do.
    text = sacrebleu(files, ["base", "like"], option, "-m", "bleu", "chrf", "-f", "text", "-w", "4")
    assert f" - BLEU       {found.signatures['bleu'][test]}\n" in text
    assert f" - chrF2      {found.signatures['chrf'][test]}\n" in text
    for score in (base.chrf, like.chrf):
        interval = f" ({score.mean:.4f} ± {score.ci:.4f})" if test == "bootstrap" else ""
        assert f" {score.score:.4f}{interval} " in text
    p = [getattr(score, f"p_{test}") for score in (like.bleu, like.chrf)]
    assert re.findall(r"\(p = ([\d.]+)\)", text) == [f"{each:.4f}" for each in p]


def test_the_signatures_name_both_tests(found: Comparison) -> None:
    assert "|bs:1000|seed:12345|" in found.signatures["bleu"]["bootstrap"]
    assert "|ar:10000|seed:12345|" in found.signatures["bleu"]["randomisation"]
    assert "|ar:" not in found.signatures["chrf"]["bootstrap"]


def test_verdicts(found: Comparison) -> None:
    base, like, good, _, _, bad = found.systems
    assert (like.verdict, good.verdict, bad.verdict) == (
        "no significant difference",
        "better",
        "worse",
    )
    assert good.bleu.score > base.bleu.score > bad.bleu.score
    assert base.wins is base.ties is base.losses is None and base.verdict is None
    assert base.bleu.p_bootstrap is base.bleu.p_randomisation is base.chrf.p_bootstrap is None
    assert found.notes()[1:] == [
        "each p is of one comparison alone: with 5 of them, chance has 5 tries"
    ]


def test_equal_systems_are_not_told_apart(found: Comparison) -> None:
    base, copy = found.systems[0], found.systems[3]
    assert copy.verdict == "no significant difference"
    assert (copy.wins, copy.ties, copy.losses) == (0, 36, 0)
    for ours, theirs in ((copy.bleu, base.bleu), (copy.chrf, base.chrf)):
        assert (ours.score, ours.p_bootstrap, ours.p_randomisation) == (theirs.score, 1.0, 1.0)


def test_five_sentences_prove_nothing(found: Comparison) -> None:
    five = found.systems[4]
    assert five.bleu.p_randomisation is not None and five.bleu.p_randomisation < 0.05
    assert five.bleu.p_bootstrap is not None and five.bleu.p_bootstrap < 0.05
    assert (five.wins, five.ties, five.losses) == (5, 31, 0)
    assert five.verdict == "no significant difference"


def test_sentences_are_won_by_sentence_chrf(found: Comparison) -> None:
    metric = CHRF()
    scores = {
        name: [
            metric.sentence_score(*pair).score
            for pair in zip(lines, ([r] for r in REFERENCES), strict=True)
        ]
        for name, lines in SYSTEMS.items()
    }
    for sentence in found.most_different:
        i = sentence.line - 1
        assert (
            sentence.scores == {name: scores[name][i] for name in SYSTEMS}
            and sentence.source is None
        )
        assert sentence.outputs == {name: SYSTEMS[name][i] for name in SYSTEMS}
        assert sentence.difference == max(
            abs(scores[name][i] - scores["base"][i]) for name in SYSTEMS
        )
    for system in found.systems[1:]:
        pairs = list(zip(scores[system.name], scores["base"], strict=True))
        assert system.wins == sum(ours > theirs for ours, theirs in pairs)
        assert system.losses == sum(ours < theirs for ours, theirs in pairs)
        assert (
            sum(each for each in (system.wins, system.ties, system.losses) if each is not None)
            == 36
        )
    differences = [sentence.difference for sentence in found.most_different]
    assert differences == sorted(differences, reverse=True)
    assert sorted(sentence.line for sentence in found.most_different) == list(range(1, 37))


def test_buckets_hold_every_sentence_once(found: Comparison) -> None:
    assert {b.bucket for b in found.by_length} <= {"1-5", "6-10", "11-15", "16-20", "21-30", "31+"}
    for buckets in (found.by_length, found.by_rare_words):
        assert sum(bucket.sentences for bucket in buckets) == 36 == found.sentences
        assert all(
            bucket.sentences > 0 and list(bucket.bleu) == list(SYSTEMS) for bucket in buckets
        )
    short = [i for i, line in enumerate(REFERENCES) if len(line.split()) <= 5]
    bucket = found.by_length[0]
    assert (bucket.bucket, bucket.sentences) == ("1-5", len(short))
    outputs, references = ([lines[i] for i in short] for lines in (SYSTEMS["good"], REFERENCES))
    assert bucket.bleu["good"] == BLEU().corpus_score(outputs, [references]).score


def test_lengths_and_rare_words_are_those_of_the_source() -> None:
    sources = [
        "Der Hund.",
        "der HUND schläft!",
        "… —",
        "ein " * 6,
        " ".join("w" * n for n in range(1, 32)),
    ]
    systems = {"a": [""] * 5, "b": ["", "", "", "", "x"]}
    found = compare(systems, ["x"] * 5, sources)
    assert [(b.bucket, b.sentences) for b in found.by_length] == [
        ("0", 1),
        ("1-5", 2),
        ("6-10", 1),
        ("31+", 1),
    ]
    assert [(b.bucket, b.sentences) for b in found.by_rare_words] == [("0", 3), ("1", 1), ("3+", 1)]
    assert (found.measured_on, found.rare) == ("source", "once in the source")
    json.dumps(asdict(found), allow_nan=False)  # numbers even where nothing is said
    train = ["Der der", "der hund Hund der", "hund der. hund", "hund schläft", "ein ein ein ein"]
    found = compare(systems, ["x"] * 5, sources, train)
    # der and hund occur 5 times, ein 4 times, the others less.
    assert [(b.bucket, b.sentences) for b in found.by_rare_words] == [("0", 2), ("1", 1), ("3+", 2)]
    assert found.rare == "fewer than 5 times in the training text"


def test_without_a_source_the_reference_is_measured(found: Comparison) -> None:
    assert (found.measured_on, found.rare) == ("reference", "once in the reference")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"systems": {"a": ["x"]}}, "1 system; compare at least two"),
        (
            {"systems": {"a": ["x"], "sources": ["x", "y"]}},
            "sources: 2 lines and 1 references; they must pair up",
        ),
        ({"sources": ["x", "y"]}, "sources: 2 lines and 1 references"),
        ({"references": []}, "a: 1 lines and 0 references"),
        ({"train": ["x"]}, "train tells the rare words of sources, which are missing"),
    ],
)
def test_texts_must_pair_up(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        compare(**{"systems": {"a": ["x"], "b": ["x"]}, "references": ["x"]} | keys)


def test_a_reader_gets_tables_verdicts_and_sentences(
    call: Call, files: dict[str, Path], tmp_path: Path
) -> None:
    page, base, reference = tmp_path / "page.html", files["base"], files["reference"]
    other = write(tmp_path / "另一个.txt", SYSTEMS["good"])
    code, out, error = call(
        *(
            base,
            other,
            "--reference",
            reference,
            "--source",
            reference,
            "--train",
            reference,
            "--out",
            page,
        )
    )
    assert (code, error) == (0, "") and "\x1b" not in out
    assert re.search(
        r"^另一个.txt against base.txt: better \(BLEU \+\d+\.\d\d\); \d+ sentences better",
        out,
        re.M,
    )
    assert "rare words of the source; rare: fewer than 5 times in the training text" in out
    assert out.count("\nline ") == 10 and "|bs:1000|seed:12345|" in out
    assert page.read_text(encoding="utf-8").count("<article ") == 36


def test_a_model_directory_translates_the_source(
    call: Call, trained: Path, translator: Translator, tmp_path: Path
) -> None:
    sources = ["zwei vier", "", "drei acht eins", "fünf sechs sieben neun zehn"]
    references = ["two four", "zero", "three eight one", "five six seven nine ten"]
    source, reference = (
        write(tmp_path / "source.txt", sources),
        write(tmp_path / "reference.txt", references),
    )
    guess = write(tmp_path / "guess.txt", ["one one"] * 4)
    for beam in (None, 1):
        outputs = read([guess, trained], reference, source, beam=beam, device="cpu").systems
        assert outputs == {
            "guess.txt": ["one one"] * 4,
            trained.name: translator.translate(sources, beam=beam),
        }
    code, out, error = call(
        *(
            guess,
            trained,
            "--reference",
            reference,
            "--source",
            source,
            "--json",
            "--beam",
            1,
            "--device",
            "cpu",
        )
    )
    assert (code, error, out.count("\n")) == (0, "", 1)
    printed = json.loads(out)
    assert printed.keys() >= {
        "systems",
        "signatures",
        "by_length",
        "by_rare_words",
        "most_different",
        "sentences",
    }
    assert printed["systems"][1]["bleu"].keys() == {
        "score",
        "mean",
        "ci",
        "p_bootstrap",
        "p_randomisation",
    }
    assert [system["name"] for system in printed["systems"]] == list(outputs) and printed[
        "sentences"
    ] == 4
    lines = sorted(printed["most_different"], key=lambda sentence: sentence["line"])
    assert [each["outputs"][trained.name] for each in lines] == outputs[trained.name]
    assert [each["source"] for each in lines] == sources


def test_files_are_read_as_a_corpus_is(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt.gz"
    one.write_bytes("\ufeffä b\r\n\r\nc\u2028d".encode())
    two.write_bytes(gzip.compress(b"x\ny\nz\n"))
    reference = write(tmp_path / "reference", ["1", "2", "3"])
    texts = read([one, two], reference, two, one)
    assert texts.systems == {"one.txt": ["ä b", "", "c\u2028d"], "two.txt.gz": ["x", "y", "z"]}
    assert (texts.references, texts.sources, texts.train) == (
        ["1", "2", "3"],
        ["x", "y", "z"],
        ["ä b", "", "c\u2028d"],
    )


def test_names_tell_systems_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a/x/out.txt", "b/x/out.txt", "b/y/out.txt", "out.de", "lone.txt"]
    paths = [write(tmp_path / name, ["x"]) for name in names]
    assert list(read(paths, paths[0]).systems) == [
        "a/x/out.txt",
        "b/x/out.txt",
        "y/out.txt",
        "out.de",
        "lone.txt",
    ]
    monkeypatch.chdir(tmp_path / "a" / "x")
    texts = read([Path("out.txt"), Path("../../b/y/out.txt")], Path("out.txt"))
    assert list(texts.systems) == ["x/out.txt", "y/out.txt"]
    odd = write(tmp_path / os.fsdecode(b"\xff.txt"), ["x"])
    assert list(read([odd, paths[0]], odd).systems) == ["\\udcff.txt", "out.txt"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a.txt", "b.txt"], "Missing option '--reference'"),
        (["--reference", "a.txt"], "Missing argument"),
        (
            ["a.txt", "--reference", "a.txt"],
            "a.txt: one system alone; compare at least two, the baseline first",
        ),
        (
            ["a.txt", "./a.txt", "--reference", "a.txt"],
            "a.txt: given twice; each system stands once",
        ),
        (
            ["a.txt", "no.txt", "--reference", "a.txt"],
            "no.txt: cannot read: No such file or directory",
        ),
        (
            ["a.txt", "b.txt", "--reference", "no.txt"],
            "no.txt: cannot read: No such file or directory",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--source", "no.txt"],
            "no.txt: cannot read: No such file",
        ),
        (["a.txt", "empty.txt", "--reference", "a.txt"], "empty.txt: an empty file"),
        (["a.txt", "b.txt", "--reference", "empty.txt"], "empty.txt: an empty file"),
        (["a.txt", "blank.txt", "--reference", "a.txt"], "blank.txt: nothing but empty lines"),
        (["a.txt", "bytes.txt", "--reference", "a.txt"], "bytes.txt:2: byte 0xff is not UTF-8"),
        (
            ["a.txt", "three.txt", "--reference", "a.txt"],
            "three.txt has 3 lines and a.txt 2; they must pair up",
        ),
        (
            ["a.txt", "b.txt", "--reference", "three.txt"],
            "a.txt has 2 lines and three.txt 3; they must pair up",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--source", "three.txt"],
            "three.txt has 3 lines and a.txt 2; they must pair up",
        ),
        (["a.txt", "folder", "--reference", "a.txt"], "folder: a model directory; give --source"),
        (
            ["a.txt", "folder", "--reference", "a.txt", "--source", "b.txt"],
            "folder: not a model directory: it has no",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--train", "b.txt"],
            "--train b.txt: tells the rare words of the",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--out", "page.txt"],
            "--out page.txt: must end in .html",
        ),
        (
            ["a.txt", "b.txt", "--reference", "a.txt", "--out", "no/a.html"],
            "--out no/a.html: there is no folder no",
        ),
        (["a.txt", "b.txt", "--reference", "a.txt", "--beam", "0"], "Invalid value for '--beam'"),
    ],
)
def test_a_mistake_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "a.txt": b"x\ny\n",
        "b.txt": b"x\nz\n",
        "three.txt": b"x\ny\nz\n",
        "empty.txt": b"",
        "blank.txt": b"\n\n",
        "bytes.txt": b"x\n\xff\n",
    }.items():
        Path(name).write_bytes(content)
    Path("folder").mkdir()
    assert refused(call, *arguments).startswith(says)


@pytest.mark.parametrize("wrong", ["later", "train", "out", "device", "seed"])
def test_mistakes_are_found_before_anything_is_translated(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("translated")

    monkeypatch.setattr(Translator, "search", fail)
    text = write(tmp_path / "text.txt", ["eins", "zwei"])
    later = tmp_path / "none.txt" if wrong == "later" else text
    arguments: list[object] = [trained, later, "--reference", text, "--source", text]
    if wrong == "train":
        arguments += ["--train", tmp_path / "none.txt"]
    if wrong == "out":
        (tmp_path / "folder.html").mkdir()
        arguments += ["--out", tmp_path / "folder.html"]
    if wrong == "device":
        arguments += ["--device", "abacus"]
    if wrong == "seed":
        monkeypatch.setenv("SACREBLEU_SEED", "often")
    says = {
        "later": f"{tmp_path / 'none.txt'}: cannot read",
        "train": f"{tmp_path / 'none.txt'}: cannot read",
        "out": f"--out {tmp_path / 'folder.html'}: cannot write: Is a directory",
        "device": "device 'abacus' is not one of auto, cpu",
        "seed": "SACREBLEU_SEED = 'often': must be a whole number, or none",
    }
    assert refused(call, *arguments).startswith(says[wrong])


def test_help_names_every_option(call: Call) -> None:
    code, out, error = call("--help")
    assert (code, error) == (0, "")
    for option in (
        "--reference",
        "--source",
        "--train",
        "--out",
        "--beam",
        "--json",
        "--device",
        "SYSTEM",
    ):
        assert option in out
