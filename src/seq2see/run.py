"""From a recipe to a finished run directory: text, tokenizers, training, translation, score card."""

import json
import math
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import safetensors.torch
import torch
from rich.console import Console
from rich.markup import escape
from torch import nn

from seq2see import evaluate
from seq2see.batches import IdPair, by_tokens, collate, padding_share, plan
from seq2see.config import Recipe
from seq2see.decode import search
from seq2see.errors import InputError, WorkError
from seq2see.files import write_atomically, write_text
from seq2see.hypotheses import Search
from seq2see.models.build import build
from seq2see.text import corpora, tokenizers
from seq2see.text.corpora import Corpus, Parallel
from seq2see.text.tokenizers import Tokenizers
from seq2see.text.vocab import PAD
from seq2see.training import checkpoint
from seq2see.training.gradients import workers_for
from seq2see.training.loop import Training, Validation
from seq2see.training.loss import smoothed_loss
from seq2see.training.report import Reporter
from seq2see.translator import Translator, load, pick_device

VALIDATION_TOKENS = 4096
BUDGET = {"train.steps", "train.epochs", "train.minutes"}  # what may change when a run goes on


def train(
    recipe: str | Path | Recipe,
    *,
    data: str | Path | None = None,
    out: str | Path | None = None,
    overrides: Iterable[str] = (),
    resume: bool = False,
    device: str = "auto",
    console: Console | None = None,
) -> Translator:
    """Train what a recipe says into `out`, score it on its test sets, and return the translator."""
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
    if (folder / "scorecard.json").exists():
        console.print(f"{folder}: this run is finished", highlight=False, markup=False)
        return load(folder, device)
    corpus = corpora.load(recipe.data, None if data is None else Path(data))
    _same_text(folder, corpus)
    if not (folder / "model.safetensors").exists():
        _train(recipe, corpus, folder, where, console)
    translator = load(folder, device)
    write_scorecard(translator, corpus, folder, console)
    return translator


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


def _claim(folder: Path, recipe: Recipe, corpus: Corpus) -> None:
    """Write what makes the directory ours, once nothing in the call is found wrong."""
    try:
        write_atomically(folder / "recipe.toml", recipe.save)
        (folder / "checkpoints").mkdir(exist_ok=True)
        write_text(folder / "checkpoints" / "corpus.json", json.dumps(_sums(corpus)) + "\n")
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
    for section in ("data", "tokenizer", "model", "train"):
        for key, value in now[section].items():
            name = f"{section}.{key}"
            if name not in BUDGET and before[section][key] != value:
                raise InputError(
                    f"{folder}: was begun with {name} = {before[section][key]!r} and cannot go on with {value!r}"
                )


def encode(pair: Tokenizers, parallel: Parallel) -> list[IdPair]:
    """Text pairs → id pairs."""
    return [(pair.source.encode(source), pair.target.encode(target)) for source, target in parallel.pairs]


def fitting(encoded: Sequence[IdPair], limit: int, name: str) -> list[int]:
    """The lines of a corpus whose sides both have at most `limit` tokens."""
    lines = [line for line, sides in enumerate(encoded) if max(map(len, sides)) <= limit]
    if not lines:
        raise InputError(f"data.max_length = {limit}: no pair of {name} is that short")
    return lines


def _train(recipe: Recipe, corpus: Corpus, folder: Path, device: torch.device, console: Console) -> None:
    _make(folder)
    config, data = recipe.train, recipe.data
    saved = checkpoint.saved_in(folder / "checkpoints")
    if saved:  # their own vocabulary, even if today's library would make another of the same text
        pair, cached = tokenizers.load(folder), True
    else:
        pair, cached = tokenizers.cached(recipe.tokenizer, data.source, data.target, corpus.train.pairs, folder)
    encoded = encode(pair, corpus.train)
    limit = data.max_length
    fits = fitting(encoded, limit, "train")
    validate = validator(recipe, corpus.val, pair, device)
    _claim(folder, recipe, corpus)
    torch.manual_seed(config.seed)
    model = build(recipe, len(pair.source), len(pair.target)).to(device)
    with Reporter(folder, console) as reporter:
        reporter.say(
            f"{len(fits):,} training pairs ({len(encoded) - len(fits):,} over {limit} tokens and "
            f"{corpus.train.dropped:,} empty ones left out) · {len(corpus.val.pairs):,} for validation · "
            f"vocabulary {len(pair.source):,} → {len(pair.target):,}{' (from the cache)' if cached else ''} · "
            f"{sum(p.numel() for p in model.parameters()):,} parameters · {device}"
        )
        pairs = [encoded[i] for i in fits]
        batches = plan(pairs, config, epoch=1)
        workers = workers_for(pairs, batches, config.accumulate, device)
        reporter.say(f"padding: {padding_share(pairs, batches):.1%} of the batches · workers: {workers}")
        training = Training(
            model,
            config,
            recipe.model.width,
            folder / "checkpoints",
            _examples(recipe, corpus, pair, encoded, fits),
            validate,
            reporter,
            workers,
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


def _examples(
    recipe: Recipe, corpus: Corpus, pair: Tokenizers, encoded: list[IdPair], fits: list[int]
) -> Callable[[int], Sequence[IdPair]]:
    """The training pairs of an epoch: the same each time, or with some sentences cut into other subwords."""
    share, seed, limit = recipe.tokenizer.sampling, recipe.train.seed, recipe.data.max_length

    def drawn(epoch: int, line: int) -> IdPair:
        chance = random.Random(f"cuts/{seed}/{epoch}/{line}")
        source, target = corpus.train.pairs[line]
        sampled = (
            pair.source.sample(source, chance) if chance.random() < share else encoded[line][0],
            pair.target.sample(target, chance) if chance.random() < share else encoded[line][1],
        )
        return sampled if max(map(len, sampled)) <= limit else encoded[line]

    if not share:
        fixed = [encoded[line] for line in fits]
        return lambda epoch: fixed
    return lambda epoch: [drawn(epoch, line) for line in fits]


def validator(
    recipe: Recipe, parallel: Parallel, pair: Tokenizers, device: torch.device
) -> Callable[[nn.Module], Validation]:
    """How a model is looked at: loss and perplexity on all of val, BLEU of greedy translations of its head."""
    encoded = encode(pair, parallel)
    # As in training: one endless line would cost every validation minutes.
    lines = fitting(encoded, recipe.data.max_length, "val")
    encoded = [encoded[line] for line in lines]
    batches = by_tokens(encoded, VALIDATION_TOKENS, seed=0, epoch=0)
    shown = [parallel.pairs[line] for line in lines[: recipe.train.validate_sentences]]
    how = replace(Search.of(recipe, beam=1), length_penalty=0.0)

    @torch.inference_mode()
    def validate(model: nn.Module) -> Validation:
        loss = surprise = 0.0
        tokens = 0
        for lines in batches:
            batch = collate(encoded, lines).to(device)
            logits = model(batch)
            loss += float(smoothed_loss(logits, batch.target_out, recipe.train.label_smoothing, recipe.train.smoothing))
            surprise += float(smoothed_loss(logits, batch.target_out, 0.0))
            tokens += int((batch.target_out != PAD).sum())
        if not math.isfinite(loss):
            return Validation(loss / tokens, math.inf, 0.0, [])  # such a model translates nothing
        sources = [source for source, _ in encoded[: len(shown)]]
        found = search(model, sources, how, device=device)  # type: ignore[arg-type]
        outputs = [pair.target.decode(hypotheses[0].ids) for hypotheses in found]
        bleu = evaluate.score(outputs, [target for _, target in shown]).bleu
        samples = [(s, t, o) for (s, t), o in zip(shown, outputs, strict=True)][:10]
        return Validation(loss / tokens, math.exp(min(surprise / tokens, 700)), bleu, samples)

    return validate


def write_scorecard(translator: Translator, corpus: Corpus, folder: Path, console: Console) -> None:
    """Translate every test set, show its scores, and write `scorecard.json` beside the model."""
    tests = {}
    for name, parallel in corpus.tests.items():
        sources, references = [source for source, _ in parallel.pairs], [target for _, target in parallel.pairs]
        found = evaluate.examine(translator, sources, references)
        tests[name] = found.values() | {"corpus_sha256": parallel.digest}
        console.print(f"[bold]{escape(name)}[/bold]", highlight=False)
        for line in found.scores.lines():
            console.print(f"  {line}", highlight=False)
    card = evaluate.card(
        tests,
        recipe=translator.recipe.model_dump(mode="json"),
        decode=translator.recipe.decode.model_dump(),
        parameters=sum(p.numel() for p in translator.model.parameters()),
        corpus={part.name: {"pairs": len(part.pairs), "sha256": part.digest} for part in (corpus.train, corpus.val)},
        training=_training_facts(folder),
    )
    write_text(folder / "scorecard.json", json.dumps(card, indent=2) + "\n")


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
