"""From a recipe to a finished run directory: text, tokenizers, training, translation, score card."""

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from rich.console import Console
from rich.markup import escape
from torch import nn

from seq2see import evaluate, tasks
from seq2see.batches import padding_share, plan
from seq2see.config import Recipe
from seq2see.decode import search
from seq2see.errors import InputError, WorkError
from seq2see.files import write_atomically, write_text
from seq2see.hypotheses import Search
from seq2see.language import LanguageModel
from seq2see.models.build import build
from seq2see.pretrained import Pretrained, take_over
from seq2see.text import corpora, tokenizers
from seq2see.text.corpora import Corpus, Parallel
from seq2see.text.tokenizers import Tokenizers
from seq2see.training import checkpoint
from seq2see.training.gradients import workers_for
from seq2see.training.loop import Training, Validation
from seq2see.training.report import Reporter
from seq2see.translator import Translator, opened, pick_device

BUDGET = {"train.steps", "train.epochs", "train.minutes"}  # what may change when a run goes on


def train(
    recipe: str | Path | Recipe,
    *,
    data: str | Path | None = None,
    out: str | Path | None = None,
    overrides: Iterable[str] = (),
    resume: bool = False,
    init: str | Path | None = None,
    device: str = "auto",
    console: Console | None = None,
) -> Translator | LanguageModel:
    """Train what a recipe says into `out`, score it on its test sets, and return the model.

    It begins with fresh weights, or as far as they fit with those of the model directory `init`.
    """
    console = console or Console(stderr=True, soft_wrap=True, emoji=False)
    if isinstance(recipe, Recipe) and list(overrides):
        raise InputError("overrides go with a recipe's file or name, not with a Recipe")
    if not isinstance(recipe, Recipe):
        out = out or Path("runs") / Path(recipe).stem
        recipe = Recipe.load(recipe, overrides)
    if out is None:
        raise InputError("say where to train to: out is missing")
    folder, where = Path(out), pick_device(device)
    _enter(folder, recipe, resume)
    origin = _origin(folder, None if init is None else Path(init))
    if (folder / "scorecard.json").exists():
        console.print(f"{folder}: this run is finished", highlight=False, markup=False)
        return _finished(folder, recipe, where)
    corpus = corpora.load(recipe.data, None if data is None else Path(data))
    _same_text(folder, corpus)
    if not (folder / "model.safetensors").exists():
        _train(recipe, corpus, folder, origin, where, console)
    model = _finished(folder, recipe, where)
    write_scorecard(model, corpus, folder, console)
    return model


def _finished(folder: Path, recipe: Recipe, device: torch.device) -> Translator | LanguageModel:
    kind = Translator if recipe.task == "translate" else LanguageModel
    return kind(*opened(folder, recipe.task), device)


def _origin(folder: Path, given: Path | None) -> Path | None:
    """The model directory that a run begins with: the one it was begun with, if it goes on."""
    path = folder / "checkpoints" / "init.json"
    try:
        begun = Path(json.loads(path.read_bytes())["model"]) if path.exists() else None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: does not name a model: {error!r}") from None
    if given is not None and path.parent.exists() and begun != given.resolve():
        raise InputError(f"{folder}: was begun with {begun or 'fresh weights'} and cannot go on with --init {given}")
    return begun if given is None else given.resolve()


def _enter(folder: Path, recipe: Recipe, resume: bool) -> None:
    """Refuse another run's directory, and a resumed run under another recipe."""
    if any((folder / name).exists() for name in ("recipe.toml", "checkpoints", "model.safetensors")):
        if not resume:
            raise InputError(f"{folder}: holds a run already; go on with --resume, or choose another --out")
        _same_but_budget(folder, recipe)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write the run here: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder}: cannot write the run here: Permission denied")


def _claim(folder: Path, recipe: Recipe, corpus: Corpus, origin: Path | None) -> None:
    """Write what makes the directory ours, once nothing in the call is found wrong."""
    try:
        write_atomically(folder / "recipe.toml", recipe.save)
        (folder / "checkpoints").mkdir(exist_ok=True)
        write_text(folder / "checkpoints" / "corpus.json", json.dumps(_sums(corpus)) + "\n")
        if origin is not None:
            write_text(folder / "checkpoints" / "init.json", json.dumps({"model": str(origin)}) + "\n")
    except OSError as error:
        raise InputError(f"{folder}: cannot write the run here: {error.strerror}") from None


def _sums(corpus: Corpus) -> dict[str, str]:
    return {part.name: part.digest for part in (corpus.train, corpus.val)}


def _same_text(folder: Path, corpus: Corpus) -> None:
    """Other text makes another vocabulary, and other scores: checkpoints cannot go on with it."""
    path = folder / "checkpoints" / "corpus.json"
    if path.exists() and checkpoint.saved_in(path.parent):
        try:
            same = json.loads(path.read_bytes()) == _sums(corpus)
        except ValueError as error:
            raise InputError(f"{path}: not JSON: {error}") from None
        if not same:
            raise InputError(f"{folder}: was begun on other text and cannot go on; train anew into another --out")


def _same_but_budget(folder: Path, recipe: Recipe) -> None:
    if not (folder / "recipe.toml").exists():
        raise InputError(f"{folder}: has no recipe.toml, so it cannot be resumed")
    before, now = Recipe.load(folder / "recipe.toml").model_dump(), recipe.model_dump()
    if before["task"] != now["task"]:
        raise InputError(f"{folder}: was begun with task = {before['task']!r} and cannot go on with {now['task']!r}")
    for section in ("data", "tokenizer", "model", "train"):
        for key, value in now[section].items():
            name = f"{section}.{key}"
            if name not in BUDGET and before[section][key] != value:
                raise InputError(
                    f"{folder}: was begun with {name} = {before[section][key]!r} and cannot go on with {value!r}"
                )


def _tokenizers(recipe: Recipe, corpus: Corpus, folder: Path, other: Pretrained | None) -> tuple[Tokenizers, str]:
    """The vocabulary, and where it comes from if it is not new."""
    if checkpoint.saved_in(folder / "checkpoints"):  # its own, even if today's library would make another of the text
        return tokenizers.load(folder), " (from the cache)"
    if other is not None:
        pair = other.tokenizers_for(recipe)
        tokenizers.save(pair, folder, recipe.tokenizer, pair.fingerprint)
        return pair, f" (from {other.directory})"
    data = recipe.data
    pair, cached = tokenizers.cached(recipe.tokenizer, data.source, data.target, corpus.train.pairs, folder)
    return pair, " (from the cache)" if cached else ""


def _train(
    recipe: Recipe, corpus: Corpus, folder: Path, origin: Path | None, device: torch.device, console: Console
) -> None:
    _make(folder)
    config, limit = recipe.train, recipe.data.max_length
    saved = checkpoint.saved_in(folder / "checkpoints")
    other = None if origin is None or saved else Pretrained.load(origin)
    pair, where = _tokenizers(recipe, corpus, folder, other)
    encoded = tasks.encode(recipe, pair, corpus.train)
    fits = tasks.fitting(encoded, limit, "train")
    validate = (validator if recipe.task == "translate" else tasks.validator)(recipe, corpus.val, pair, device)
    torch.manual_seed(config.seed)
    model = build(recipe, len(pair.source), len(pair.target)).to(device)
    taken = None if other is None else take_over(model, recipe, pair, other)
    _claim(folder, recipe, corpus, origin)
    with Reporter(folder, console) as reporter:
        reporter.say(
            f"{len(fits):,} training pairs ({len(encoded) - len(fits):,} over {limit} tokens and "
            f"{corpus.train.dropped:,} empty ones left out) · {len(corpus.val.pairs):,} for validation · "
            f"vocabulary {len(pair.source):,} → {len(pair.target):,}{escape(where)} · "
            f"{sum(p.numel() for p in model.parameters()):,} parameters · {device}"
        )
        if taken is not None and other is not None:
            reporter.say(escape(taken.line(other.directory)))
            reporter.write("init", **taken.values(other))
        examples = tasks.examples(recipe, corpus.train, pair, encoded, fits)
        pairs = examples(1)
        batches = plan(pairs, config, epoch=1)
        workers = workers_for(pairs, batches, config.accumulate, device)
        reporter.say(f"padding: {padding_share(pairs, batches):.1%} of the batches · workers: {workers}")
        training = Training(
            model,
            config,
            recipe.model.width,
            folder / "checkpoints",
            examples,
            validate,
            reporter,
            workers,
            tasks.collate_of(recipe),
        )
        if saved:
            try:
                training.resume(saved[-1])
            except InputError as error:
                older = f"; without {saved[-1]} it goes on from {saved[-2].name}" if len(saved) > 1 else ""
                raise InputError(f"{error}{older}") from None
            reporter.say(escape(f"going on from {saved[-1]}"))
        chosen = training.run()
        path = folder / "model.safetensors"
        try:
            write_atomically(path, lambda to: to.write_bytes(safetensors.torch.save(chosen)))
        except OSError as error:
            raise WorkError(f"{path}: cannot write the model: {error}; the checkpoints are kept") from None


def validator(
    recipe: Recipe, parallel: Parallel, pair: Tokenizers, device: torch.device
) -> Callable[[nn.Module], Validation]:
    """How a translation model is looked at: as the others, and by BLEU of greedy translations of the head of val."""
    encoded = tasks.encode(recipe, pair, parallel)
    # As in training: one endless line would cost every validation minutes.
    lines = tasks.fitting(encoded, recipe.data.max_length, "val")
    encoded = [encoded[line] for line in lines]
    shown = [parallel.pairs[line] for line in lines[: recipe.train.validate_sentences]]
    how = replace(Search.of(recipe, beam=1), length_penalty=0.0)

    @torch.inference_mode()
    def validate(model: nn.Module) -> Validation:
        seen = tasks.look(recipe, model, encoded, device)
        if not math.isfinite(seen.loss):
            return Validation(seen.loss / seen.tokens, math.inf, 0.0, [])  # such a model translates nothing
        sources = [source for source, _ in encoded[: len(shown)]]
        found = search(model, sources, how, device=device)  # type: ignore[arg-type]
        outputs = [pair.target.decode(hypotheses[0].ids) for hypotheses in found]
        bleu = evaluate.score(outputs, [target for _, target in shown]).bleu
        samples = [(s, t, o) for (s, t), o in zip(shown, outputs, strict=True)][:10]
        return Validation(seen.loss / seen.tokens, seen.perplexity, bleu, samples)

    return validate


def write_scorecard(model: Translator | LanguageModel, corpus: Corpus, folder: Path, console: Console) -> None:
    """Put the model to every test set, show its scores, and write `scorecard.json` beside the model."""
    tests = {}
    for name, parallel in corpus.tests.items():
        values, lines = _examined(model, parallel)
        tests[name] = values | {"corpus_sha256": parallel.digest}
        console.print(f"[bold]{escape(name)}[/bold]", highlight=False)
        for line in lines:
            console.print(f"  {line}", highlight=False)
    card = evaluate.card(
        tests,
        recipe=model.recipe.model_dump(mode="json"),
        decode=model.recipe.decode.model_dump(),
        parameters=sum(p.numel() for p in model.model.parameters()),
        corpus={part.name: {"pairs": len(part.pairs), "sha256": part.digest} for part in (corpus.train, corpus.val)},
        training=_training_facts(folder),
    )
    write_text(folder / "scorecard.json", json.dumps(card, indent=2) + "\n")


def _examined(model: Translator | LanguageModel, parallel: Parallel) -> tuple[dict[str, Any], list[str]]:
    """What a model's score card holds of a test set, and the lines for a reader."""
    if isinstance(model, LanguageModel):
        looked = tasks.examine(model.recipe, model.model, model.tokenizers, parallel, model.device)
        return looked.values(), looked.lines()
    sources, references = [source for source, _ in parallel.pairs], [target for _, target in parallel.pairs]
    found = evaluate.examine(model, sources, references)
    return found.values(), found.scores.lines()


def _training_facts(folder: Path) -> dict[str, object]:
    """How the weights came about, from the last lines of the log."""
    chosen: dict[str, object] = {}
    log = folder / "log.jsonl"
    # A killed process may have left half a line, or half a letter.
    for line in log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []:
        if line.startswith('{"event": "chosen"') and line.endswith("}"):
            chosen = json.loads(line)
    facts = {key: chosen.get(key) for key in ("weights", "seconds", "updates", "epochs")}
    return facts | {"target_tokens": chosen.get("tokens")}
