"""From a recipe to a run directory: equal bits, exact resuming, the log, the score card, and what is refused."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from seq2see.bench.reduce_workload import workload_of
from seq2see.bench.translate import own_text
from seq2see.errors import InputError, WorkError
from seq2see.recipe.schema import Recipe
from seq2see.tasks import run
from seq2see.tasks.table import load
from seq2see.text import corpora
from seq2see.training import checkpoint
from seq2see.training.loop import Training

# Small, and with everything on that draws at random or keeps a state.
SMALL = (
    "model.width=16",
    "model.dropout=0.2",
    "model.attention_dropout=0.1",
    "tokenizer.sampling=0.7",
    "train.accumulate=2",
    "train.ema=0.8",
    "train.average=2",
    "train.label_smoothing=0.1",
    "train.batch_tokens=250",
    "train.validate_sentences=3",
)


class Killed(BaseException):
    """What a kill does to the code: nothing catches it."""


def kill_after(monkeypatch: pytest.MonkeyPatch, updates: int) -> None:
    """End the run by force after so many updates from now."""
    real, done = Training._update, 0

    def update(self: Training, pairs: Any, batches: Any) -> None:
        nonlocal done
        if done == updates:
            raise Killed
        done += 1
        real(self, pairs, batches)

    monkeypatch.setattr(Training, "_update", update)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(folder / "model.safetensors")


def equal(first: Path, second: Path) -> bool:
    one, other = weights(first), weights(second)
    return one.keys() == other.keys() and all(
        torch.equal(tensor, other[name]) for name, tensor in one.items()
    )


def log(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def without_time(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    measured = ("seconds", "memory_mb", "processor_percent", "tokens_per_second")
    return [{key: value for key, value in event.items() if key not in measured} for event in events]


@pytest.mark.parametrize(
    ("budget", "kills"),
    [
        # An epoch has 4 updates here (7 batches), so 3 and 6 are in its middle, 4 and 8 at its end.
        (
            ("train.steps=11", "train.checkpoint_every=3"),
            (2, 3, 2),
        ),  # before a checkpoint, on one, in between
        (("train.steps=11", "train.checkpoint_every=4"), (4, 5)),  # where an epoch ends
        (("train.epochs=3",), (4, 6)),
        (("train.epochs=3", "train.checkpoint_every=3"), (5, 4, 4)),
        (("train.steps=10", "train.batch_sentences=40"), (5, 3)),  # a checkpoint each tenth
        (("train.steps=9", "train.checkpoint_every=4", "train.optimizer=muon"), (5, 2)),
    ],
)
def test_a_run_killed_and_resumed_ends_in_the_same_bits(
    toy: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    budget: tuple[str, ...],
    kills: tuple[int, ...],
) -> None:
    monkeypatch.setattr(run, "workers_for", lambda *_: 2)
    toy.train(tmp_path / "whole", *SMALL, *budget)
    for updates in kills:
        with monkeypatch.context() as context, pytest.raises(Killed):
            kill_after(context, updates)
            toy.train(tmp_path / "parts", *SMALL, *budget, resume=True)
        torch.manual_seed(0)  # whatever another process would begin with
    toy.train(tmp_path / "parts", *SMALL, *budget, resume=True)
    assert "going on from" in toy.said.getvalue()
    assert equal(tmp_path / "whole", tmp_path / "parts")
    assert without_time(log(tmp_path / "whole", "chosen")) == without_time(
        log(tmp_path / "parts", "chosen")
    )
    ends = [log(tmp_path / name, "validation")[-1] for name in ("whole", "parts")]
    assert without_time(ends[:1]) == without_time(ends[1:])


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is taken, even where the tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "stops", [(2, 1), (4,), (3, 5), (1, 11)]
)  # in an epoch, at its end, at the last update
def test_a_run_asked_to_stop_loses_nothing(
    toy: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stops: tuple[int, ...],
    asked: signal.Signals,
) -> None:
    budget = (
        "train.epochs=3",
        "train.average=2",
    )  # of 4 updates each, with a checkpoint at the end
    toy.train(tmp_path / "whole", *SMALL, *budget)
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    done = []
    for updates in stops:
        real, until = Training._update, len(done) + updates

        def update(
            self: Training, pairs: Any, batches: Any, real: Any = real, until: int = until
        ) -> None:
            done.append(batches)
            if len(done) == until:
                os.kill(os.getpid(), asked)  # while the update is under way
            real(self, pairs, batches)

        with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
            context.setattr(Training, "_update", update)
            toy.train(tmp_path / "parts", *SMALL, *budget, resume=True)
        assert len(done) == until
        assert "stopping after this update" in toy.said.getvalue()
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    toy.train(tmp_path / "parts", *SMALL, *budget, resume=True)
    assert equal(tmp_path / "whole", tmp_path / "parts")
    assert without_time(log(tmp_path / "whole", "chosen")) == without_time(
        log(tmp_path / "parts", "chosen")
    )
    numbers = [event["update"] for event in log(tmp_path / "parts", "update")]
    assert len(numbers) == len(set(numbers)), "an update was done twice"


@pytest.mark.usefixtures("heard")
def test_a_second_signal_stops_at_once(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update(self: Training, pairs: Any, batches: Any) -> None:
        for _ in range(
            2
        ):  # another thread may be the one that takes a signal, so each needs a moment to get here
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        pytest.fail("went on after two signals")

    monkeypatch.setattr(Training, "_update", update)
    with pytest.raises(KeyboardInterrupt):
        toy.train(tmp_path / "run", *SMALL, "train.steps=3")
    assert not checkpoint.saved_in(tmp_path / "run" / "checkpoints")


@pytest.mark.usefixtures("heard")
def test_an_ignored_signal_stays_ignored(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    real = Training._update

    def update(self: Training, pairs: Any, batches: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        real(self, pairs, batches)

    monkeypatch.setattr(Training, "_update", update)
    toy.train(tmp_path / "run", *SMALL, "train.steps=2")
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_run_in_another_thread_leaves_signals_alone(toy: Any, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(toy.train, tmp_path / "run", *SMALL, "train.steps=2").result()
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_a_kill_while_a_checkpoint_is_written_costs_only_that_one(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = ("train.steps=8", "train.checkpoint_every=3")
    toy.train(tmp_path / "whole", *SMALL, *budget)
    real = checkpoint.sha256

    def dying(path: Path) -> str:
        if "update-00000006" in str(path):
            raise Killed
        return real(path)

    with monkeypatch.context() as context, pytest.raises(Killed):
        context.setattr(checkpoint, "sha256", dying)
        toy.train(tmp_path / "parts", *SMALL, *budget)
    assert [path.name for path in checkpoint.saved_in(tmp_path / "parts" / "checkpoints")] == [
        "update-00000003"
    ]
    toy.train(tmp_path / "parts", *SMALL, *budget, resume=True)
    assert equal(tmp_path / "whole", tmp_path / "parts")


def test_the_same_recipe_gives_the_same_bits_and_another_seed_others(
    toy: Any, tmp_path: Path
) -> None:
    for name, seed in (("first", 1), ("second", 1), ("third", 2)):
        toy.train(tmp_path / name, *SMALL, "train.steps=6", f"train.seed={seed}")
    assert equal(tmp_path / "first", tmp_path / "second")
    assert without_time(log(tmp_path / "first", "validation")) == without_time(
        log(tmp_path / "second", "validation")
    )
    assert not equal(tmp_path / "first", tmp_path / "third")


def test_a_process_that_is_killed_goes_on(toy: Any, tmp_path: Path) -> None:
    budget = ("train.steps=40", "train.checkpoint_every=4")
    settings = [f"--set={override}" for override in (*SMALL, *budget)]
    call = [
        sys.executable,
        "-c",
        "from seq2see.cli.main import main; main()",
        "train",
        str(toy.path),
    ]
    call += ["--out", str(tmp_path / "parts"), "--device", "cpu", "--resume", *settings]
    process = subprocess.Popen(
        call, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    deadline = time.monotonic() + 60
    while not checkpoint.saved_in(tmp_path / "parts" / "checkpoints"):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "parts" / "model.safetensors").exists()
    toy.train(tmp_path / "parts", *SMALL, *budget, resume=True)
    toy.train(tmp_path / "whole", *SMALL, *budget)
    assert "going on from" not in toy.said.getvalue()
    assert equal(tmp_path / "whole", tmp_path / "parts")


def test_the_log_says_what_happened(toy: Any, tmp_path: Path) -> None:
    toy.train(tmp_path / "run", *SMALL, "train.epochs=2")
    first = log(tmp_path / "run", "update")[0]
    assert first.keys() == {
        *("event", "update", "epoch", "loss", "learning_rate", "gradient_norm"),
        *("tokens", "tokens_per_second", "seconds"),
    }
    assert first["update"] == 1 and first["learning_rate"] == pytest.approx(0.01 / 20)
    epochs = log(tmp_path / "run", "epoch")
    assert [event["epoch"] for event in epochs] == [1, 2]
    assert {
        "steps",
        "updates",
        "samples",
        "tokens",
        "seconds",
        "memory_mb",
        "processor_percent",
    } <= epochs[0].keys()
    assert epochs[0]["memory_mb"] > 50
    for event in log(tmp_path / "run", "validation"):
        assert {"update", "epoch", "loss", "perplexity", "bleu", "best", "seconds"} <= event.keys()
        assert len(event["samples"]) == 3 and all(len(sample) == 3 for sample in event["samples"])
    (chosen,) = log(tmp_path / "run", "chosen")
    assert {"weights", "by", "score", "updates", "epochs", "tokens", "seconds"} <= chosen.keys()
    assert (chosen["updates"], chosen["epochs"]) == (epochs[1]["updates"], 2)


def test_the_score_card_says_all_one_needs(toy: Any, trained: Path) -> None:
    card = json.loads((trained / "scorecard.json").read_text(encoding="utf-8"))
    recipe = Recipe.load(trained / "recipe.toml")
    corpus = corpora.load(recipe.data)
    scores = card["tests"]["test"]
    assert (
        scores["bleu"] > 50
        and scores["chrf"] > 50
        and scores["sentences"] == len(corpus.tests["test"].pairs)
    )
    assert "|tok:13a|" in scores["signature"] and "|nc:6|" in scores["chrf_signature"]
    assert scores["corpus_sha256"] == corpus.tests["test"].digest
    assert card["corpus"]["train"] == {
        "pairs": len(corpus.train.pairs),
        "sha256": corpus.train.digest,
    }
    assert card["corpus"]["val"]["sha256"] == corpus.val.digest
    assert card["decode"] == recipe.decode.model_dump()
    (chosen,) = log(trained, "chosen")
    assert card["training"]["updates"] == 160
    assert card["training"]["seconds"] == chosen["seconds"] > 0
    assert (
        card["training"]["target_tokens"]
        == checkpoint.load(checkpoint.saved_in(trained / "checkpoints")[-1]).state["tokens"]
    )
    assert card["versions"]["torch"] == torch.__version__ and "seq2see" in card["versions"]
    assert card["machine"]["cores"] >= 1 and card["machine"]["processor"]
    assert card["parameters"] == sum(tensor.numel() for tensor in weights(trained).values())


def test_a_model_directory_can_be_read_by_others(trained: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    for name in (
        "model.safetensors",
        "recipe.toml",
        "tokenizer.json",
        "tokenizer.model",
        "scorecard.json",
    ):
        assert (trained / name).stat().st_mode & 0o777 == 0o666 & ~mask, name


def test_resuming_nothing_starts_and_a_finished_run_says_so(toy: Any, tmp_path: Path) -> None:
    toy.train(tmp_path / "run", *SMALL, "train.steps=2", resume=True)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    translator = toy.train(tmp_path / "run", *SMALL, "train.steps=9", resume=True)
    assert toy.said.getvalue() == f"{tmp_path / 'run'}: this run is finished\n"
    assert len(translator.translate(["eins"])) == 1
    # A larger budget comes too late: the recipe still says what the weights were made with.
    assert before == {
        path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()
    }


def test_a_name_with_brackets_is_no_markup(toy: Any, tmp_path: Path) -> None:
    out = tmp_path / "a[" / "b]"
    for _ in range(2):
        toy.train(out, *SMALL, "train.steps=1", resume=True)
    assert toy.said.getvalue() == f"{out}: this run is finished\n"


def test_a_directory_that_holds_a_run_is_refused(toy: Any, tmp_path: Path, trained: Path) -> None:
    with pytest.raises(InputError, match="run: holds a run already; go on with --resume"):
        toy.train(trained, *SMALL)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "recipe.toml").write_text("# mine")
    with pytest.raises(InputError, match="holds a run already"):
        toy.train(tmp_path / "mine", *SMALL)
    assert (tmp_path / "mine" / "recipe.toml").read_text() == "# mine"


@pytest.mark.parametrize(
    "mistake",
    [
        "data.train=/no/such/file.tsv",
        "tokenizer.size=9",
        "data.max_length=1",
        "data.hold_out=0",
        "data.columns=[0, 5]",
    ],
)
def test_a_mistake_found_before_training_leaves_the_directory_free(
    toy: Any, tmp_path: Path, mistake: str
) -> None:
    with pytest.raises(InputError) as caught:
        toy.train(tmp_path / "run", *SMALL, "train.steps=1", mistake)
    assert mistake.partition("=")[0] in str(caught.value) or "/no/such/file.tsv" in str(
        caught.value
    )
    toy.train(tmp_path / "run", *SMALL, "train.steps=1")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("model.heads=4", "was begun with model.heads = 2 and cannot go on with 4"),
        ("train.seed=7", "was begun with train.seed = 1 and cannot go on with 7"),
        ("tokenizer.size=50", "was begun with tokenizer.size = 60 and cannot go on with 50"),
        ("data.limit=100", "was begun with data.limit = None and cannot go on with 100"),
    ],
)
def test_another_recipe_cannot_go_on(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, says: str
) -> None:
    with monkeypatch.context() as context, pytest.raises(Killed):
        kill_after(context, 2)
        toy.train(tmp_path / "run", *SMALL, "train.checkpoint_every=1")
    before = (tmp_path / "run" / "recipe.toml").read_bytes()
    with pytest.raises(InputError, match=says):
        toy.train(tmp_path / "run", *SMALL, "train.checkpoint_every=1", change, resume=True)
    assert (tmp_path / "run" / "recipe.toml").read_bytes() == before


def test_a_budget_may_grow(toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context, pytest.raises(Killed):
        kill_after(context, 5)
        toy.train(tmp_path / "run", *SMALL, "train.checkpoint_every=2", "train.steps=6")
    toy.train(tmp_path / "run", *SMALL, "train.checkpoint_every=2", "train.epochs=3", resume=True)
    assert [event["update"] for event in log(tmp_path / "run", "validation")] == [
        2,
        4,
        6,
        8,
        10,
        12,
    ]
    assert Recipe.load(tmp_path / "run" / "recipe.toml").train.epochs == 3


def test_other_text_makes_another_vocabulary_until_there_is_a_checkpoint(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(updates: int) -> None:
        with monkeypatch.context() as context, pytest.raises(Killed):
            kill_after(context, updates)
            toy.train(tmp_path / "run", *SMALL, "train.checkpoint_every=1", resume=True)

    killed(0)
    first = (tmp_path / "run" / "tokenizer.model").read_bytes()
    killed(0)
    assert "(from the cache)" in toy.said.getvalue()
    text = toy.pairs.read_text(encoding="utf-8")
    toy.pairs.write_text(text.replace("eins", "uno"), encoding="utf-8")
    killed(2)
    assert "(from the cache)" not in toy.said.getvalue()
    second = (tmp_path / "run" / "tokenizer.model").read_bytes()
    assert second != first
    toy.pairs.write_text(text, encoding="utf-8")
    for _ in range(2):
        with pytest.raises(InputError, match="run: was begun on other data"):
            toy.train(tmp_path / "run", *SMALL, "train.checkpoint_every=1", resume=True)
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == second


def test_pairs_that_are_too_long_are_left_out_and_counted(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    real = Training._update

    def update(self: Training, pairs: Any, batches: Any) -> None:
        seen.extend(
            (len(pairs[line][0]), len(pairs[line][1])) for lines in batches for line in lines
        )
        real(self, pairs, batches)

    monkeypatch.setattr(Training, "_update", update)
    toy.train(tmp_path / "run", *SMALL, "train.epochs=1", "data.max_length=4")
    assert max(map(max, seen)) <= 4
    (epoch,) = log(tmp_path / "run", "epoch")
    total = json.loads((tmp_path / "run" / "scorecard.json").read_text())["corpus"]["train"][
        "pairs"
    ]
    assert 0 < epoch["samples"] < total
    assert (
        f"{epoch['samples']:,} training pairs ({total - epoch['samples']:,} over 4 tokens"
        in toy.said.getvalue()
    )


def test_a_learning_rate_that_is_too_high_is_one_line(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(WorkError) as caught:
        toy.train(
            tmp_path / "run",
            *SMALL,
            "train.lr=1e37",
            "train.warmup=1",
            "train.clip=0",
            "train.checkpoint_every=1",
        )
    assert str(caught.value).startswith("update ") and "\n" not in str(caught.value)
    assert "checkpoint" in str(caught.value) and "a lower train.lr" in str(caught.value)
    for folder in checkpoint.saved_in(tmp_path / "run" / "checkpoints"):
        assert all(
            tensor.isfinite().all() for tensor in checkpoint.load(folder).groups["weights"].values()
        )


def test_a_model_that_cannot_be_written_is_one_line(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, write: Any) -> None:
        if path.name == "model.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path)

    with monkeypatch.context() as context:
        context.setattr(run, "write_atomically", full)
        with pytest.raises(
            WorkError, match=r"model.safetensors: cannot write the model: .*No space left"
        ):
            toy.train(tmp_path / "run", *SMALL, "train.steps=2")
    toy.train(tmp_path / "run", *SMALL, "train.steps=2", resume=True)
    assert len(log(tmp_path / "run", "epoch")) == 0  # nothing was trained twice


def test_a_corrupt_checkpoint_is_named(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context, pytest.raises(Killed):
        kill_after(context, 2)
        toy.train(tmp_path / "run", *SMALL, "train.checkpoint_every=2")
    path = tmp_path / "run" / "checkpoints" / "update-00000002" / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match=r"update-00000002/optimizer.safetensors: corrupt"):
        toy.train(tmp_path / "run", *SMALL, "train.checkpoint_every=2", resume=True)


@pytest.mark.parametrize("tokenizer", ["kind=words", "kind=bpe", "joint=false"])
def test_every_kind_of_tokenizer_trains_and_loads_again(
    toy: Any, tmp_path: Path, tokenizer: str
) -> None:
    if tokenizer == "kind=words":
        pytest.importorskip("spacy")
    size = "tokenizer.size=45"
    first = toy.train(tmp_path / "run", "train.steps=3", f"tokenizer.{tokenizer}", size)
    again = load(tmp_path / "run", "cpu")
    assert again.recipe.tie == ("all" if tokenizer == "kind=bpe" else "target")
    texts = ["eins zwei", "drei", "etwas ganz anderes"]
    assert first.translate(texts) == again.translate(texts)


def test_the_perplexity_is_without_smoothing(toy: Any, tmp_path: Path) -> None:
    toy.train(tmp_path / "run", "train.steps=2", "train.label_smoothing=0.0")
    event = log(tmp_path / "run", "validation")[-1]
    assert event["perplexity"] == pytest.approx(2.718281828459045 ** event["loss"], rel=1e-5)


def test_out_must_be_said_for_a_recipe_without_a_name(toy: Any) -> None:
    with pytest.raises(InputError, match="out is missing"):
        run.train(toy.recipe())


def test_an_endless_line_does_not_hold_validation_up(toy: Any, tmp_path: Path) -> None:
    val = tmp_path / "val.tsv"
    val.write_text(
        "eins zwei\tone two\n" + "drei " * 3000 + "\t" + "three " * 3000 + "\n", encoding="utf-8"
    )
    toy.train(tmp_path / "run", *SMALL, "train.steps=2", f"data.val={val}")
    validation = log(tmp_path / "run", "validation")[-1]
    assert [source for source, _, _ in validation["samples"]] == ["eins zwei"]
    val.write_text("drei " * 3000 + "\t" + "three " * 3000 + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"data.max_length = 128: no pair of val is that short"):
        toy.train(tmp_path / "other", *SMALL, "train.steps=2", f"data.val={val}")


def test_half_a_line_in_the_log_does_not_cost_the_score_card(toy: Any, tmp_path: Path) -> None:
    toy.train(tmp_path / "run", *SMALL, "train.steps=2")
    (tmp_path / "run" / "scorecard.json").unlink()
    with (tmp_path / "run" / "log.jsonl").open("ab") as file:
        file.write('{"event": "chosen", "weights": "gr\u00fc'.encode()[:-1])
    toy.train(tmp_path / "run", *SMALL, "train.steps=2", resume=True)
    assert json.loads((tmp_path / "run" / "scorecard.json").read_text())["training"]["updates"] == 2


def test_without_a_corrupt_checkpoint_the_one_before_goes_on(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (*SMALL, "train.checkpoint_every=2", "train.average=2", "train.steps=8")
    with monkeypatch.context() as context, pytest.raises(Killed):
        kill_after(context, 6)
        toy.train(tmp_path / "run", *settings)
    newest = tmp_path / "run" / "checkpoints" / "update-00000006"
    (newest / "state.json").write_text("{}")
    with pytest.raises(
        InputError, match=r"without .*update-00000006 it goes on from update-00000004"
    ):
        toy.train(tmp_path / "run", *settings, resume=True)
    shutil.rmtree(newest)
    toy.train(tmp_path / "run", *settings, resume=True)
    toy.train(tmp_path / "whole", *settings)
    assert equal(tmp_path / "run", tmp_path / "whole")


def test_a_call_that_finds_no_corpus_leaves_no_folder(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file for data.train"):
        toy.train(tmp_path / "run", "data.train=none.tsv")
    assert not (tmp_path / "run").exists()


def test_joined_pairs_are_trained_on_and_scored_and_said_to_be_joined(
    toy: Any, tmp_path: Path
) -> None:
    settings = ("data.join=3", "data.hold_out=10", "train.steps=2", "decode.max_ratio=0.5")
    toy.train(tmp_path / "run", *settings, "data.max_length=30")
    assert "training pairs, each 3 joined, (0 over 30 tokens" in toy.said.getvalue()
    card = json.loads((tmp_path / "run" / "scorecard.json").read_text(encoding="utf-8"))
    corpus = corpora.load(toy.recipe(*settings).data)
    assert (
        card["recipe"]["data"]["join"] == 3
        and card["corpus"]["train"]["pairs"] == len(corpus.train.pairs) == 94
    )
    test = corpus.tests["test"]
    assert len(test.pairs) == 4 and card["tests"]["test"]["corpus_sha256"] == test.digest
    assert (
        json.loads(json.dumps(run.examine(tmp_path / "run", device="cpu").values))
        == card["tests"]["test"]
    )
    text = own_text(load(tmp_path / "run", "cpu"), tmp_path / "run", print)
    assert (text.name, text.sources) == ("test, 3 joined", [source for source, _ in test.pairs])
    assert text.references == [target for _, target in test.pairs]
    task = workload_of(tmp_path / "run", None, None)
    assert task.name == "test, 3 joined" and sum(len(batch.lines) for batch in task.batches) == 4
    with pytest.raises(InputError, match=r"data.max_length = 3: no pair of train is that short"):
        toy.train(tmp_path / "short", *settings, "data.max_length=3")
    with pytest.raises(InputError, match=r"was begun with data.join = 3 and cannot go on with 1"):
        toy.train(tmp_path / "run", *settings, "data.join=1", "data.max_length=30", resume=True)
