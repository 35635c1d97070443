"""A model directory in use: text in, text out."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from seq2see.batches import IdPair, Ids, by_tokens, collate
from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.long_text import Translation, translate
from seq2see.decoding.search import search
from seq2see.errors import InputError, WorkError
from seq2see.layers.reduction.encoder import Reducible
from seq2see.layers.trace import Trace
from seq2see.models.build import build
from seq2see.recipe.schema import Recipe
from seq2see.scoring.bleu import Scores, score
from seq2see.scoring.errors import Analysis, analyse
from seq2see.scoring.likelihood import Scored
from seq2see.text import tokenizers
from seq2see.text.tokenizers import Tokenizers
from seq2see.text.vocab import END
from seq2see.training.checkpoint import copy_into

Network = TypeVar("Network", bound=nn.Module)
SCORED_TOKENS = 2048  # of a batch, with padding
# The commands that each task's models are for.
USES = {"translate": "seq2see translate", "language": "seq2see generate", "masked": "seq2see fill"}
USES |= dict.fromkeys(("classify", "images"), "seq2see classify")


@dataclass(frozen=True)
class Explanation:
    """A translation and every attention weight behind it, tokens named."""

    source: str
    target: str
    source_tokens: list[str]  # </s> last
    target_in: list[str]  # <s> first: what the decoder has read
    target_out: list[str]  # </s> last: what it writes
    weights: dict[str, Tensor]  # name → (H, rows, columns)


class Translator:
    """Translates, scores and explains with one model."""

    def __init__(
        self, recipe: Recipe, tokenizers: Tokenizers, model: nn.Module, device: torch.device
    ) -> None:
        self.recipe, self.tokenizers, self.device = recipe, tokenizers, device
        self.model = model.to(device).eval()

    def search(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        first_line: int = 1,
        warn: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
    ) -> list[list[Translation]]:
        """The n best translations of each text, best first; an empty text stays empty, a long one is cut."""
        how = Search.of(self.recipe, beam)

        def found(parts: list[Ids]) -> list[list[Hypothesis]]:
            self.model.eval()
            return search(self.model, parts, how, n_best, self.device)  # type: ignore[arg-type]

        return translate(
            texts, found, self.tokenizers, self.recipe.data.max_length, first_line, warn
        )

    @overload
    def translate(
        self, texts: Sequence[str], beam: int | None = None, n_best: Literal[1] = 1
    ) -> list[str]: ...
    @overload
    def translate(
        self, texts: Sequence[str], beam: int | None = None, n_best: int = 2
    ) -> list[list[str]]: ...
    def translate(
        self, texts: Sequence[str], beam: int | None = None, n_best: int = 1
    ) -> list[str] | list[list[str]]:
        """The best translation of each text, or the list of its n best. The recipe's beam unless one is given."""
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, not one string")
        found = self.search(texts, beam=beam, n_best=n_best)
        if n_best == 1:
            return [translations[0].text for translations in found]
        return [[translation.text for translation in translations] for translations in found]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """log p(target | source) of given translations, </s> included."""
        return [scored.log_probability for scored in self.score_tokens(sources, targets)]

    def score_tokens(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """log p of every token of given translations; an empty text, on either side, is </s> alone."""
        if len(sources) != len(targets):
            raise ValueError(
                f"{len(sources)} sources and {len(targets)} targets; they must pair up"
            )
        pairs = zip(self.ids("source", sources), self.ids("target", targets), strict=True)
        return self.force(list(pairs))

    def ids(
        self, side: Literal["source", "target"], texts: Sequence[str], file: Path | None = None
    ) -> list[Ids]:
        """Encode; a text beyond the model's length is refused by its index, or by its line of `file`."""
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, not one string")
        tokenizer = self.tokenizers.source if side == "source" else self.tokenizers.target
        limit = self.recipe.data.max_length
        encoded = [tokenizer.encode(text) for text in texts]
        for index, ids in enumerate(encoded):
            if len(ids) > limit:
                where = f"{side}s[{index}]" if file is None else f"{file}:{index + 1}"
                raise InputError(
                    f"{where}: {len(ids)} tokens; the model takes at most data.max_length = {limit}"
                )
        return encoded

    @torch.inference_mode()
    def force(self, pairs: Sequence[IdPair]) -> list[Scored]:
        """Forced decoding: log p of each target id, </s> last, given the source and the ids before it."""
        self.model.eval()
        keys = [(tuple(source), tuple(target)) for source, target in pairs]
        # Equal pairs are scored once, so that they are equal to the last bit whatever shares their batch.
        unique = [(list(source), list(target)) for source, target in dict.fromkeys(keys)]
        found: dict[tuple[tuple[int, ...], tuple[int, ...]], Scored] = {}
        for lines in by_tokens(unique, SCORED_TOKENS, seed=0, epoch=0):
            batch = collate(unique, lines).to(self.device)
            log_p = (
                self.model(batch).log_softmax(-1).gather(-1, batch.target_out[..., None])[..., 0]
            )  # (B, T)
            for line, row in zip(lines, log_p.tolist(), strict=True):
                source, target = unique[line]
                tokens = [self.tokenizers.target.piece(id) for id in (*target, END)]
                found[tuple(source), tuple(target)] = Scored(
                    sum(row[: len(tokens)]), tokens, row[: len(tokens)]
                )
        if not all(math.isfinite(scored.log_probability) for scored in found.values()):
            raise WorkError(
                "the model gives no numbers (NaN) for its output; its weights are broken"
            )
        return [found[key] for key in keys]

    @torch.inference_mode()
    def explain(self, text: str, target: str | None = None) -> Explanation:
        """Translate (or take the given translation) and keep every attention weight."""
        source_tokenizer, target_tokenizer = self.tokenizers.source, self.tokenizers.target
        if not text.strip():
            raise InputError("the text to explain is empty")
        ids = source_tokenizer.encode(text)
        self.model.eval()
        if target is None:
            how = Search.of(self.recipe)
            # The model's own ids: its text may be cut in another way than the model wrote it.
            target_ids = search(self.model, [ids], how, device=self.device)[0][0].ids  # type: ignore[arg-type]
        else:
            target_ids = target_tokenizer.encode(target)
        for name, some in (("text", ids), ("translation", target_ids)):
            if len(some) > self.recipe.data.max_length:
                raise InputError(
                    f"the {name} has more than the model's {self.recipe.data.max_length} tokens"
                )
        trace = Trace()
        self.model(collate([(ids, target_ids)], [0]).to(self.device), trace)
        pieces = [target_tokenizer.piece(id) for id in target_ids]
        return Explanation(
            source=text,
            target=target_tokenizer.decode(target_ids) if target is None else target,
            source_tokens=[*source_tokenizer.pieces(text), "</s>"],
            target_in=["<s>", *pieces],
            target_out=[*pieces, "</s>"],
            weights={name: weights[0].cpu() for name, weights in trace.on_tokens().items()},
        )


def pick_device(name: str) -> torch.device:
    """`auto` is the fastest there is; a device that is not there is refused."""
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if there[kind]))
    if not there.get(name):
        raise InputError(
            f"device {name!r} is not one of auto, {', '.join(k for k, v in there.items() if v)}"
        )
    return torch.device(name)


def load(directory: str | Path, device: str = "auto", merge: int | None = None) -> Translator:
    """Open the directory of a model that translates; it may merge so many tokens in each layer of its encoder."""
    recipe, pair, model = opened(directory, "translate")
    return Translator(recipe, pair, merging(model, merge), pick_device(device))


def merging(model: Network, merge: int | None) -> Network:
    """The model as it is, or merging so many tokens in each layer of its encoder."""
    if merge is None:
        return model
    if not isinstance(model, Reducible):
        raise InputError(
            f"--merge {merge}: is for an encoder of self-attention; this is a {type(model).__name__}"
        )
    return model.with_merging(merge)


def opened(directory: str | Path, *tasks: str) -> tuple[Recipe, Tokenizers, nn.Module]:
    """What the directory of a model of text for one of the tasks holds: its recipe, tokenizers and weights."""
    recipe = recipe_of(directory, *tasks)
    pair = tokenizers.load(Path(directory))
    try:
        model = build(recipe, len(pair.source), len(pair.target))
    except ValueError as error:
        raise InputError(
            f"{directory}: recipe.toml and tokenizer.json do not fit: {error}"
        ) from None
    fill(model, Path(directory))
    return recipe, pair, model


def recipe_of(directory: str | Path, *tasks: str) -> Recipe:
    """The recipe of a model directory, refused if it is none, or if only some tasks will do, of another task."""
    directory = Path(directory)
    if not directory.is_dir():
        raise InputError(f"{directory}: no such model directory")
    if (directory / "engine.json").is_file():
        raise InputError(
            f"{directory}: exported for CTranslate2; it is for translate --engine ct2 alone"
        )
    for name in ("recipe.toml", "model.safetensors"):
        if not (directory / name).is_file():
            trained = (directory / "checkpoints").is_dir()
            hint = (
                "its training is not finished; go on with --resume"
                if trained
                else "not a model directory"
            )
            raise InputError(f"{directory}: {hint}: it has no {name}")
    recipe = Recipe.load(directory / "recipe.toml")
    if tasks and recipe.task not in tasks:
        raise InputError(
            f"{directory}: a model of task {recipe.task!r}, which is for {USES[recipe.task]}"
        )
    return recipe


def fill(model: nn.Module, directory: Path) -> None:
    """Give a model the weights of its directory."""
    path = directory / "model.safetensors"
    try:
        copy_into(model, safetensors.torch.load_file(path), path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: cannot read the weights: {error}") from None


@dataclass(frozen=True)
class Examination:
    """A test set translated, scored and searched for errors."""

    outputs: list[str]
    scores: Scores
    errors: Analysis

    def values(self) -> dict[str, Any]:
        """What `evaluate --json` prints, and a score card holds of a test set."""
        return {**asdict(self.scores), "errors": asdict(self.errors)}


def examine(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    beam: int | None = None,
) -> Examination:
    """Translate a test set and look at the outputs."""
    # One line each, whatever line ends a vocabulary of words may hold: the scores are those of a written file.
    outputs = [" ".join(text.splitlines()) for text in translator.translate(sources, beam=beam)]
    pair = translator.tokenizers
    errors = analyse(sources, outputs, references, pair.source, pair.languages[1])
    return Examination(outputs, score(outputs, references), errors)
