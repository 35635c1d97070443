"""Tasks of one language, end to end on a few captions: train, write, fill, classify, begin with another's weights."""

import io
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from rich.console import Console

from seq2see.cli import main as cli
from seq2see.decoding import sampling
from seq2see.decoding.sampling import Sampling
from seq2see.errors import InputError
from seq2see.recipe.schema import Recipe
from seq2see.tasks import text as tasks
from seq2see.tasks.one_sided import LanguageModel
from seq2see.tasks.run import train
from seq2see.tasks.table import load, load_language
from seq2see.text import corpora
from seq2see.text.ngrams import NGrams
from seq2see.text.specials import MASK, PAD
from seq2see.training.loop import Training

pytest.importorskip("spacy")

RECIPE = """
task = "{task}"

[data]
corpus = "captions"
source = "en"
target = "de"
limit = 200
{data}
[tokenizer]
kind = "words"

[model]
width = 24
heads = 2
encoder_layers = 2
dropout = 0.0

[train]
steps = {steps}
batch_tokens = 512
schedule = "linear"
lr = 0.02
warmup = 10
label_smoothing = 0.0
checkpoint_every = {steps}
"""


@pytest.fixture(scope="module", autouse=True)
def few_captions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "CAPTIONS", {"train": 200, "val": 20, "test": 30})
        yield


class Runs:
    """Short runs, each recipe trained once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, io.StringIO()

    def recipe(self, task: str, steps: int = 15) -> Path:
        path = self.folder / f"{task}.toml"
        data = 'labels = "number"' if task == "classify" else ""
        path.write_text(RECIPE.format(task=task, steps=steps, data=data), encoding="utf-8")
        return path

    def train(self, task: str, name: str, *overrides: str, steps: int = 15, **keys: Any) -> Any:
        self.said = io.StringIO()
        console = Console(file=self.said, soft_wrap=True)
        path = self.recipe(task, steps)
        return train(
            path, out=self.folder / name, overrides=overrides, device="cpu", console=console, **keys
        )

    def model(self, task: str) -> Path:
        if not (self.folder / task).exists():
            self.train(task, task)
        return self.folder / task


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seq2see", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, error = capsys.readouterr()
        return int(ended.value.code or 0), out, error

    return run


def log(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(folder / "model.safetensors")


def card(folder: Path) -> Any:
    return json.loads((folder / "scorecard.json").read_text(encoding="utf-8"))["tests"]["test"]


# Language


def test_generate_writes_the_same_for_the_same_seed(call: Call, runs: Runs) -> None:
    model = runs.model("language")
    code, out, error = call("generate", "--model", model, "--count", 3)
    assert (code, error) == (0, "") and len(out.splitlines()) == 3
    assert call("generate", "--model", model, "--count", 3)[1] == out
    assert (
        call("generate", "--model", model)[1] == out.splitlines(keepends=True)[0]
    )  # whatever is written beside it
    assert call("generate", "--model", model, "--count", 3, "--seed", 2)[1] != out
    code, out, _ = call(
        "generate", "Der Mann", "Die", "--model", model, "--json", "--temperature", 0, "--count", 2
    )
    first, second = map(json.loads, out.splitlines())
    assert code == 0 and (first["prompt"], second["prompt"]) == ("Der Mann", "Die")
    assert first["texts"][0] == first["texts"][1] and first["texts"][0]["text"].startswith(
        "Der Mann"
    )
    assert first["texts"][0]["log_probability"] < 0
    long = call(
        "generate",
        "--model",
        model,
        "--max-length",
        4,
        "--temperature",
        3,
        "--top-k",
        50,
        "--top-p",
        0.9,
    )[1]
    assert 1 <= len(load_language(model).tokenizers.target.encode(long.strip())) <= 5


def test_mistakes_in_generating_are_one_line(call: Call, runs: Runs) -> None:
    model = runs.model("language")
    for arguments, says in (
        (["--top-p", 0], "--top-p 0 must be more than 0 and at most 1"),
        (["--temperature", "inf"], "--temperature inf must be a finite number"),
        (["Mann " * 10_000], "the prompt has 10000 tokens; with what follows there may be 128"),
        (
            ["--max-length", 2, "Der Mann liest"],
            "the prompt has 3 tokens; with what follows there may be 2",
        ),
    ):
        assert call("generate", "--model", model, *arguments) == (2, "", f"seq2see: {says}\n")
    assert call("generate", "--model", model, "--temperature", -1)[0] == 2


def test_the_score_card_of_a_language_model_has_its_perplexity(runs: Runs) -> None:
    folder = runs.model("language")
    model, recipe = load_language(folder), Recipe.load(folder / "recipe.toml")
    test = corpora.load(recipe.data).tests["test"]
    log_p = [
        each
        for row in model.log_probabilities([target for _, target in test.pairs])
        for each in row
    ]
    assert card(folder)["perplexity"] == pytest.approx(math.exp(-sum(log_p) / len(log_p)), rel=1e-4)
    assert card(folder)["tokens"] == len(log_p) and card(folder)["sentences"] == 30
    assert not {"bleu", "confusion"} & card(folder).keys()
    (event,) = log(folder, "validation")
    assert event["bleu"] is None and event["perplexity"] > 1 and len(event["samples"]) == 3
    # An n-gram model counts the same tokens of the same vocabulary.
    encode = model.tokenizers.target.encode
    grams = NGrams(
        2,
        len(model.tokenizers.target),
        [encode(text) for _, text in corpora.load(recipe.data).train.pairs],
    )
    assert len(grams.log_probabilities(encode(test.pairs[0][1]))) == len(
        model.log_probabilities([test.pairs[0][1]])[0]
    )


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Sampling(temperature=1), [0.5, 0.25, 0.125, 0.125]),
        (Sampling(temperature=0), [1, 0, 0, 0]),
        (Sampling(temperature=0.5), [16 / 22, 4 / 22, 1 / 22, 1 / 22]),
        (Sampling(top_k=2), [2 / 3, 1 / 3, 0, 0]),
        (Sampling(top_k=9), [0.5, 0.25, 0.125, 0.125]),
        (Sampling(top_p=0.5), [1, 0, 0, 0]),
        (Sampling(top_p=0.6), [2 / 3, 1 / 3, 0, 0]),
        (Sampling(top_p=0.8), [4 / 7, 2 / 7, 1 / 7, 0]),
        (Sampling(top_k=2, top_p=0.66), [1, 0, 0, 0]),
    ],
)
def test_what_is_drawn_from(how: Sampling, expected: list[float]) -> None:
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64).log()
    found = sampling.narrowed(logits, how)
    torch.testing.assert_close(found, torch.tensor([expected], dtype=torch.float64))


def test_ids_are_drawn_as_often_as_they_are_likely() -> None:
    probabilities = torch.tensor([[0.5, 0.0, 0.3, 0.2]]).expand(4000, -1)
    chance = random.Random(1)
    counts = Counter(
        sampling.draw(probabilities, [chance.random() for _ in range(4000)])[:, 0].tolist()
    )
    assert counts[1] == 0 and counts[0] / 4000 == pytest.approx(0.5, abs=0.03)
    assert counts[2] / 4000 == pytest.approx(0.3, abs=0.03)
    assert sampling.draw(probabilities[:2], [0.0, 1 - 2**-53])[:, 0].tolist() == [0, 3]


# Masked


def test_fill_gives_candidates_for_each_blank(call: Call, runs: Runs) -> None:
    model = runs.model("masked")
    code, out, error = call("fill", "<mask> Mann <mask>.", "--model", model, "--top", 3, "--json")
    assert (code, error) == (0, "")
    found = json.loads(out)
    assert (
        found["source"] == "<mask> Mann <mask>."
        and found["text"].endswith(".")
        and "Mann" in found["text"]
    )
    assert [len(blank) for blank in found["blanks"]] == [3, 3]
    for blank in found["blanks"]:
        probabilities = [each["probability"] for each in blank]
        assert probabilities == sorted(probabilities, reverse=True) and 0 < sum(probabilities) <= 1
        assert not {each["token"] for each in blank} & {"<s>", "</s>", "<blank>", "<unk>"}
    code, out, _ = call("fill", "--model", model, stdin=b"<mask> Mann <mask>.\nDer <mask>\n")
    assert code == 0 and out.splitlines()[0] == found["text"] and len(out.splitlines()) == 5
    says = f"seq2see: {'Der Mann.'!r} has no <mask> to fill\n"
    assert call("fill", "--model", model, "Der Mann.") == (2, "", says)
    code, out, error = call("fill", "--model", model, "<mask> " + "Mann " * 10_000)
    assert (code, out) == (2, "") and error.startswith("seq2see: 10001 tokens in '<mask> Mann Mann")
    assert call("fill", "--model", model) == (0, "", "")  # no lines, no answers
    says = "seq2see: stdin:2: not UTF-8 at byte 0 of the line\n"
    assert call("fill", "--model", model, stdin=b"Der <mask>\n\xff\n") == (2, "", says)
    clean, marked = (
        call("fill", "--model", model, stdin=text)[1]
        for text in (b"Ein <mask>", b"\xef\xbb\xbfEin <mask>\r\n")
    )
    assert clean == marked != ""


def test_a_blank_is_one_token_wherever_it_stands(runs: Runs) -> None:
    model = load_language(runs.model("masked"))
    encode = model.tokenizers.target.encode
    assert model._blanked("Der <mask>.") == [*encode("Der"), MASK, *encode(".")]
    assert model._blanked("<mask><mask> Mann") == [MASK, MASK, *encode("Mann")]
    assert model._blanked(" <mask> ") == [MASK]


def test_hiding_is_15_percent_in_80_10_10() -> None:
    counts, ids = Counter[str](), list(range(4, 104))
    for line in range(300):
        read, answers = tasks.hide(ids, random.Random(f"{line}"), 500)
        assert answers.pop() == PAD and len(read) == len(answers) == 100
        for before, after, answer in zip(ids, read, answers, strict=True):
            if answer == PAD:
                assert after == before
                continue
            assert answer == before
            counts["mask" if after == MASK else "same" if after == before else "other"] += 1
    assert counts.total() == 300 * 15
    assert counts["mask"] / 4500 == pytest.approx(0.8, abs=0.02)
    assert counts["other"] / 4500 == pytest.approx(0.1, abs=0.02)
    for short in (1, 2, 3):
        assert (
            sum(answer != PAD for answer in tasks.hide(ids[:short], random.Random("a"), 500)[1])
            == 1
        )
    assert tasks.hide([], random.Random("a"), 500) == ([], [PAD])


def test_the_score_card_of_a_masked_model_counts_hidden_words(runs: Runs) -> None:
    found = card(runs.model("masked"))
    assert found["perplexity"] > 1 and 0 <= found["accuracy"] <= 1
    assert 30 <= found["tokens"] < 30 * 6
    (event,) = log(runs.model("masked"), "validation")
    assert any("<mask>" in given for given, _, _ in event["samples"])


# Classify, and beginning with another's weights


def test_classify_tells_labels_and_begins_with_the_masked_models_weights(
    call: Call, runs: Runs
) -> None:
    masked = runs.model("masked")
    model = runs.train("classify", "classify", "data.limit=60", init=masked)
    said = runs.said.getvalue()
    taken = "target_embedding (1), encoder (32), encoder_norm (2)"
    assert (
        f"35 weights taken over from {masked}: {taken} · new: output (2) · left there: output (1)"
        in said
    )
    (event,) = log(runs.folder / "classify", "init")
    assert event["model"] == str(masked) and len(event["sha256"]) == 64
    assert event["new"] == ["output.weight", "output.bias"] and event["left"] == ["output.bias"]
    for name in ("tokenizer.source.vocab", "tokenizer.target.vocab"):
        if (masked / name).exists():
            assert (masked / name).read_bytes() == (runs.folder / "classify" / name).read_bytes()
    assert isinstance(model, LanguageModel) and len(model.tokenizers.target) == len(
        load_language(masked).tokenizers.target
    )
    found = card(runs.folder / "classify")
    assert found["tokens"] == found["sentences"] == 30
    table = found["confusion"]
    assert sum(sum(row.values()) for row in table.values()) == 30
    right = sum(table.get(name, {}).get(name, 0) for name in ("singular", "plural"))
    assert found["accuracy"] == pytest.approx(right / 30)

    texts = ["Die Männer lesen.", "", "Der Mann liest."]
    code, out, error = call("classify", "--model", runs.folder / "classify", "--json", *texts)
    assert (code, error) == (0, "")
    for text, row in zip(texts, map(json.loads, out.splitlines()), strict=True):
        assert row["source"] == text and row["probabilities"].keys() == {"singular", "plural"}
        assert sum(row["probabilities"].values()) == pytest.approx(1)
        assert row["label"] == max(
            row["probabilities"], key=lambda name: row["probabilities"][name]
        )
    code, lines, _ = call(
        "classify", "--model", runs.folder / "classify", stdin="\n".join(texts).encode()
    )
    assert code == 0 and [line.split("\t")[2] for line in lines.splitlines()] == texts
    assert (
        "tokens in 'Mann" in call("classify", "--model", runs.folder / "classify", "Mann " * 200)[2]
    )


def test_weights_begin_as_they_ended_and_a_run_with_them_resumes_with_them(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked, begun = runs.model("masked"), dict[str, torch.Tensor]()
    real = Training._update

    def update(self: Training, pairs: Any, batches: Any) -> None:
        begun.update({name: weight.clone() for name, weight in self.model.state_dict().items()})
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(Training, "_update", update)
        runs.train("language", "again", init=masked)
    assert all(torch.equal(begun[name], tensor) for name, tensor in weights(masked).items())
    with pytest.raises(
        InputError, match=r"again: was begun with .*masked and cannot go on with --init .*language"
    ):
        runs.train("language", "again", init=runs.model("language"), resume=True)
    assert Training._update is real
    runs.train("language", "again", resume=True)
    assert len(log(runs.folder / "again", "init")) == 2  # once each time it began
    runs.train("language", "whole", init=masked)
    one, other = weights(runs.folder / "again"), weights(runs.folder / "whole")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_translation_model_begins_with_a_masked_models_encoder(runs: Runs) -> None:
    # The masked model reads German, which is the source here: its embedding moves to that side.
    swap = ("data.source=de", "data.target=en", "train.validate_sentences=2")
    translator = runs.train("translate", "translate", *swap, init=runs.model("masked"), steps=2)
    said = runs.said.getvalue()
    assert (
        "35 weights taken over from" in said
        and "source_embedding (1), encoder (32), encoder_norm (2)" in said
    )
    assert "new: target_embedding (1), decoder (" in said and translator.tokenizers.languages == (
        "de",
        "en",
    )
    again = runs.train("translate", "more", *swap, init=runs.folder / "translate", steps=1)
    assert "new:" not in runs.said.getvalue() and "left there" not in runs.said.getvalue()
    assert type(again) is type(translator)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["model.width=16"], r"^--init .*: none of its matrices fits this recipe's model$"),
        (
            ["tokenizer.kind=bpe"],
            r"^--init .*: has tokenizer.kind = 'words', and the recipe says 'bpe'; ids would not",
        ),
    ],
)
def test_what_cannot_be_taken_over_is_refused(runs: Runs, overrides: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        runs.train("masked", "refused", *overrides, init=runs.model("masked"))
    assert not (runs.folder / "refused" / "recipe.toml").exists()
    with pytest.raises(
        InputError, match=r"^--init .*nothing: not a model directory: it has no model.safetensors$"
    ):
        runs.train("masked", "refused", init=runs.folder / "nothing")


def test_a_model_is_for_the_commands_of_its_task(
    call: Call, runs: Runs, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("eins\n")
    files = ["--source", tmp_path / "a.txt", "--reference", tmp_path / "a.txt"]
    for model, task, use in (
        (trained, "translate", "seq2see translate"),
        (runs.model("language"), "language", "seq2see generate"),
        (runs.model("masked"), "masked", "seq2see fill"),
    ):
        for command, of in (
            (["translate", "a"], "translate"),
            (["evaluate", *files], "translate"),
            (["generate", "a"], "language"),
            (["fill", "a <mask>"], "masked"),
            (["classify", "a"], "classify"),
        ):
            if of != task:
                says = f"seq2see: {model}: a model of task {task!r}, which is for {use}\n"
                assert call(*command, "--model", model) == (2, "", says)
    with pytest.raises(InputError, match=r"which is for seq2see generate$"):
        load(runs.model("language"))
    with pytest.raises(InputError, match=r"^a model of task 'masked' is for seq2see fill$"):
        load_language(runs.model("masked")).generate("a")
    assert call("bench", "train", runs.recipe("masked"))[:2] == (2, "")


@pytest.mark.parametrize(("task", "kills"), [("masked", (1, 3)), ("classify", (3,))])
def test_a_run_killed_and_resumed_ends_in_the_same_bits(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, kills: tuple[int, ...]
) -> None:
    settings = (
        "model.dropout=0.2",
        "tokenizer.kind=unigram",
        "tokenizer.size=300",
        "tokenizer.sampling=0.5",
    )
    settings += ("train.checkpoint_every=2", "train.accumulate=2", "train.ema=0.5", "data.limit=60")
    own = Runs(tmp_path)
    own.train(task, "whole", *settings, steps=5)
    for updates in kills:
        real, done = Training._update, Counter[str]()

        def update(
            self: Training, *given: Any, real: Any = real, done: Any = done, updates: int = updates
        ) -> None:
            if done["updates"] == updates:
                raise SystemExit
            done["updates"] += 1
            real(self, *given)

        with monkeypatch.context() as context, pytest.raises(SystemExit):
            context.setattr(Training, "_update", update)
            own.train(task, "parts", *settings, steps=5, resume=True)
        torch.manual_seed(0)
    model = own.train(task, "parts", *settings, steps=5, resume=True)
    if (
        task == "masked"
    ):  # of subwords a blank is one piece, and what follows clings to it as before
        ids = model._blanked("Der <mask>.")
        assert ids[-2:] == [MASK, model.tokenizers.target.encode("Der.")[-1]]
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(InputError, match=r"was begun with task = .* and cannot go on with"):
        own.train("masked" if task != "masked" else "language", "parts", steps=5, resume=True)


def test_of_characters_a_blank_is_one_and_the_space_before_it_stays(runs: Runs) -> None:
    model = runs.train("masked", "characters", "tokenizer.kind=char", "data.limit=60", steps=1)
    ids = model.tokenizers.target.encode("Der e.")
    assert model._blanked("Der <mask>.") == [*ids[:-2], MASK, ids[-1]]


def test_which_language_is_learned_from_both(runs: Runs) -> None:
    settings = ("data.labels=language", "tokenizer.kind=unigram", "tokenizer.size=300")
    model = runs.train("classify", "which", *settings, steps=40)
    english, german = model.classify(["The man is reading a book.", "Der Mann liest ein Buch."])
    assert (english.label, german.label) == ("en", "de")
    assert card(runs.folder / "which")["accuracy"] > 0.9


def test_the_prefix_model_translates_scores_and_explains(runs: Runs, tmp_path: Path) -> None:
    model = runs.train(
        "translate", "prefix", "model.kind=prefix", "train.validate_sentences=2", steps=3
    )
    assert len(model.translate(["A man is reading."], beam=2)) == 1
    assert model.score(["A man"], ["Ein Mann"])[0] < 0
    explanation = model.explain("A man is reading.", "Ein Mann liest.")
    assert {"encoder.0.self", "decoder.1.self", "decoder.1.cross"} <= explanation.weights.keys()
    again = load(runs.folder / "prefix")
    assert again.translate(["A man is reading."]) == model.translate(["A man is reading."])


# The recipe


@pytest.mark.parametrize(
    ("task", "overrides", "says"),
    [
        (
            "classify",
            ["data.labels=colour"],
            "data.labels = 'colour': input should be 'language' or 'number'",
        ),
        (
            "classify",
            ["data.join=2"],
            "data.join (2) is for other tasks: data.labels are of single sentences",
        ),
        (
            "masked",
            ["data.labels=number"],
            "data.labels says what task 'classify' learns: both, or neither",
        ),
        ("classify", ["data.labels=language"], "data.labels 'language' needs one vocabulary"),
        (
            "classify",
            ["data.corpus=multi30k"],
            "data.labels 'number' is known of data.corpus 'captions' alone",
        ),
        (
            "language",
            ["model.decoder_layers=2"],
            "task 'language' is one stack of model.encoder_layers; leave",
        ),
        (
            "masked",
            ["model.kind=prefix"],
            "task 'masked' is one stack of model.encoder_layers; leave model.kind",
        ),
        (
            "masked",
            ["train.choose=bleu"],
            "train.choose 'bleu' is for task 'translate'; 'masked' is chosen by its",
        ),
        (
            "frobnicate",
            [],
            "task = 'frobnicate': input should be 'translate', 'language', 'masked', 'classify' or ",
        ),
        (
            "translate",
            ["model.kind=prefix", "model.decoder_layers=2"],
            "model.decoder_layers is for model.kind",
        ),
        (
            "translate",
            ["model.kind=prefix", "model.positions=rotary"],
            "model.positions 'rotary' is for one sequence",
        ),
    ],
)
def test_impossible_recipes(tmp_path: Path, task: str, overrides: list[str], says: str) -> None:
    path = Runs(tmp_path).recipe(task)
    with pytest.raises(InputError) as caught:
        Recipe.load(path, overrides)
    assert str(caught.value).startswith(f"{path}: {says}")


def test_the_task_is_saved_before_the_tables(tmp_path: Path) -> None:
    recipe = Recipe.load(Runs(tmp_path).recipe("classify"))
    recipe.save(tmp_path / "saved.toml")
    assert Recipe.load(tmp_path / "saved.toml") == recipe
    assert (tmp_path / "saved.toml").read_text(encoding="utf-8").startswith('task = "classify"\n')
