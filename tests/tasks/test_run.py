"""From a recipe to a finished run: its log, score card, data and errors."""

import json
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
from seq2see.training import checkpoint, machine
from seq2see.training.loop import Training


def test_the_log_says_what_happened(small: Any) -> None:
    small.train("run", "train.epochs=2", "train.warmup=5")
    first = small.log("run", "update")[0]
    assert first.keys() == {
        *("event", "update", "epoch", "loss", "learning_rate", "gradient_norm"),
        *("tokens", "tokens_per_second", "others_cores", "seconds"),
    }
    assert first["update"] == 1 and first["learning_rate"] == pytest.approx(0.01 / 5)
    assert first["tokens_per_second"] > 0
    epochs = small.log("run", "epoch")
    assert [event["epoch"] for event in epochs] == [1, 2]
    counts = {"steps", "updates", "samples", "tokens", "seconds"}
    assert counts | {"memory_mb", "processor_percent"} <= epochs[0].keys()
    assert epochs[0]["memory_mb"] > 50
    for event in small.log("run", "validation"):
        assert {"update", "epoch", "loss", "perplexity", "bleu", "best", "seconds"} <= event.keys()
        assert len(event["samples"]) == 3 and all(len(sample) == 3 for sample in event["samples"])
    (chosen,) = small.log("run", "chosen")
    assert {"weights", "by", "score", "updates", "epochs", "tokens", "seconds"} <= chosen.keys()
    assert (chosen["updates"], chosen["epochs"]) == (epochs[1]["updates"], 2)
    assert 0 < chosen["validation_seconds"] < chosen["seconds"]


def test_a_processor_without_bfloat16_computes_in_float32_and_says_so(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "has_bfloat16", lambda device: False)
    small.train("plain", "train.steps=3")
    assert "bfloat16" not in small.said.getvalue()
    small.train("asked", "train.steps=3", "train.precision=bfloat16")
    assert "bfloat16 is slow on this processor" in small.said.getvalue()
    assert small.equal("plain", "asked")


def test_the_score_card_says_how_the_model_was_trained_and_scored(trained: Path) -> None:
    card = json.loads((trained / "scorecard.json").read_text(encoding="utf-8"))
    recipe = Recipe.load(trained / "recipe.toml")
    corpus = corpora.load(recipe.data)
    scores = card["tests"]["test"]
    assert scores["bleu"] > 50 and scores["chrf"] > 50
    assert scores["sentences"] == len(corpus.tests["test"].pairs)
    assert "|tok:13a|" in scores["signature"] and "|nc:6|" in scores["chrf_signature"]
    assert scores["corpus_sha256"] == corpus.tests["test"].digest
    assert card["corpus"]["train"] == {
        "pairs": len(corpus.train.pairs),
        "sha256": corpus.train.digest,
    }
    assert card["corpus"]["val"]["sha256"] == corpus.val.digest
    assert card["decode"] == recipe.decode.model_dump()
    lines = (trained / "log.jsonl").read_text(encoding="utf-8").splitlines()
    (chosen,) = (event for event in map(json.loads, lines) if event["event"] == "chosen")
    assert card["training"]["updates"] == 160
    assert card["training"]["seconds"] == chosen["seconds"] > 0
    assert card["training"]["validation_seconds"] == chosen["validation_seconds"] > 0
    assert card["training"]["epochs"] == chosen["epochs"]
    assert card["training"]["epochs"] % 1  # the run ends inside an epoch
    last = checkpoint.load(checkpoint.saved_in(trained / "checkpoints")[-1])
    assert card["training"]["target_tokens"] == last.state["tokens"]
    assert card["versions"]["torch"] == torch.__version__ and "seq2see" in card["versions"]
    assert card["machine"]["cores"] >= 1 and card["machine"]["processor"]
    tensors = safetensors.torch.load_file(trained / "model.safetensors").values()
    assert card["parameters"] == sum(tensor.numel() for tensor in tensors)


def test_pairs_that_are_too_long_are_left_out_and_counted(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []
    real = Training._update

    def update(self: Training, examples: Any, batches: Any) -> None:
        lengths.extend(examples[line].length for lines in batches for line in lines)
        real(self, examples, batches)

    monkeypatch.setattr(Training, "_update", update)
    small.train("run", "train.epochs=1", "data.max_length=4")
    assert max(lengths) <= 4
    (epoch,) = small.log("run", "epoch")
    samples, total = epoch["samples"], small.card("run")["corpus"]["train"]["pairs"]
    assert 0 < samples < total
    said = f"{samples:,} training pairs ({total - samples:,} over 4 tokens"
    assert said in small.said.getvalue()


def test_a_learning_rate_that_is_too_high_is_one_line(small: Any, tmp_path: Path) -> None:
    with pytest.raises(WorkError) as caught:
        settings = ("train.lr=1e37", "train.warmup=1", "train.clip=0")
        small.train("run", *settings, "train.checkpoint_every=1")
    assert str(caught.value).startswith("update ") and "\n" not in str(caught.value)
    assert "checkpoint" in str(caught.value) and "a lower train.lr" in str(caught.value)
    for folder in checkpoint.saved_in(tmp_path / "run" / "checkpoints"):
        tensors = checkpoint.load(folder).groups["weights"].values()
        assert all(tensor.isfinite().all() for tensor in tensors)


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


def test_how_files_were_read_is_said_and_a_header_is_not_trained_on(
    toy: Any, tmp_path: Path
) -> None:
    text = toy.pairs.read_text(encoding="utf-8")
    path = tmp_path / "[own].csv"
    path.write_text(f"english;german\n{text}".replace("\t", ";"), encoding="utf-8")
    languages = ("data.source=en", "data.target=de", "train.steps=2")
    toy.train(tmp_path / "run", *languages, f"data.train={path}")
    lines = toy.said.getvalue().split("\n")
    header, held_out = [line for line in lines if not line.endswith(" …")][:2]
    assert header == f"{path}: line 1 is a header (english, german); not trained on"
    assert held_out == "held out of 300 pairs: 15 for val and 15 for test"
    card = json.loads((tmp_path / "run" / "scorecard.json").read_text(encoding="utf-8"))
    assert card["corpus"]["train"]["pairs"] == 270


def test_a_recipe_without_a_name_needs_an_out(toy: Any) -> None:
    with pytest.raises(InputError, match="out is missing"):
        run.train(toy.recipe())


def test_an_endless_line_does_not_delay_validation(small: Any, tmp_path: Path) -> None:
    val = tmp_path / "val.tsv"
    endless = "drei " * 3000 + "\t" + "three " * 3000 + "\n"
    val.write_text("eins zwei\tone two\n" + endless, encoding="utf-8")
    small.train("run", "train.steps=2", f"data.val={val}")
    validation = small.log("run", "validation")[-1]
    assert [source for source, _, _ in validation["samples"]] == ["eins zwei"]
    val.write_text(endless, encoding="utf-8")
    with pytest.raises(InputError, match=r"data.max_length = 128: no pair of val is that short"):
        small.train("other", "train.steps=2", f"data.val={val}")


def test_half_a_line_in_the_log_does_not_cost_the_score_card(small: Any, tmp_path: Path) -> None:
    small.train("run", "train.steps=2")
    (tmp_path / "run" / "scorecard.json").unlink()
    with (tmp_path / "run" / "log.jsonl").open("ab") as file:
        file.write('{"event": "chosen", "weights": "gr\u00fc'.encode()[:-1])
    small.train("run", "train.steps=2", resume=True)
    assert small.card("run")["training"]["updates"] == 2


def test_joined_pairs_are_trained_on_scored_and_reported_as_joined(
    toy: Any, small: Any, tmp_path: Path
) -> None:
    settings = ("data.join=3", "data.hold_out=10", "train.steps=2", "decode.max_ratio=0.5")
    small.train("run", *settings, "data.max_length=30")
    assert "training pairs, each 3 joined, (0 over 30 tokens" in small.said.getvalue()
    card = small.card("run")
    corpus = corpora.load(toy.recipe(*settings).data)
    assert card["recipe"]["data"]["join"] == 3
    assert card["corpus"]["train"]["pairs"] == len(corpus.train.pairs) == 94
    test = corpus.tests["test"]
    assert len(test.pairs) == 4 and card["tests"]["test"]["corpus_sha256"] == test.digest
    values = run.evaluate_own(tmp_path / "run", device="cpu").values
    assert json.loads(json.dumps(values)) == card["tests"]["test"]
    text = own_text(load(tmp_path / "run", "cpu"), tmp_path / "run", print)
    assert (text.name, text.sources) == ("test, 3 joined", [source for source, _ in test.pairs])
    assert text.references == [target for _, target in test.pairs]
    task = workload_of(tmp_path / "run", None, None)
    assert task.name == "test, 3 joined" and sum(len(batch.lines) for batch in task.batches) == 4
    with pytest.raises(InputError, match=r"data.max_length = 3: no pair of train is that short"):
        small.train("short", *settings, "data.max_length=3")
    with pytest.raises(
        InputError, match=r"was begun with data.join = 3 and cannot continue with 1"
    ):
        small.train("run", *settings, "data.join=1", "data.max_length=30", resume=True)
