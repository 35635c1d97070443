"""Inference with an exported model by CTranslate2; without torch, for a fast start."""

import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from seq2see.ct2.batches import Setting, Shape, batches_of, padded_alike
from seq2see.ct2.library import cores, library, torch_threads_kept
from seq2see.decoding.hypotheses import BROKEN_MODEL, Hypothesis, Prefixes, Search
from seq2see.errors import InputError, WorkError
from seq2see.files import sha256
from seq2see.models.nearest import no_such_directory
from seq2see.recipe.schema import Recipe
from seq2see.tasks.translation_engine import Ids, TranslationEngine
from seq2see.text import tokenizers
from seq2see.text.specials import BEGIN, END, PAD, SPECIALS
from seq2see.text.tokenizers import Tokenizers

# CTranslate2 stops at patience × beam ended hypotheses, our search at `beam` of them if no open one
# scores better. Of the 1,014 sentences of Multi30k's val (beam 4, α 0.6), 19 come out worse with
# patience 1 (0.15 BLEU), two with 1.25 (0.01).
PATIENCE = 1.25
SHORTLIST = "vmap.txt"  # CTranslate2's name for a vocabulary map
IMPOSSIBLE = -1e30  # CTranslate2's log-probability of a forbidden token is finite, but lower

FIRST, LAST, BLANK = SPECIALS[BEGIN], SPECIALS[END], SPECIALS[PAD]

Pieces = list[str]
Forced = tuple[Ids, Sequence[int]]  # a source, and its prefix or its whole translation


class Engine(TranslationEngine):
    """Translates and scores with an exported model, as `Translator` does with the original.

    With a shortlist, a search knows only the pieces on the shortlists of its batch: a translation
    may depend on the other sentences of the batch, and log-probabilities are slightly higher.
    Scoring uses the whole vocabulary.

    Padding for which CTranslate2 chooses another kernel changes sums by rounding and so, where
    numbers are rounded to int8, now and then a word. A batch holds only sentences that are computed
    alike (`padded_alike`), so int8 gives the same bits whatever shares the batch; float32 may still
    sum in another order.
    """

    def __init__(
        self, directory: Path, recipe: Recipe, tokenizers: Tokenizers, setting: Setting
    ) -> None:
        super().__init__(recipe, tokenizers, directory)
        self.setting = setting
        self._source = pieces(tokenizers.source)
        self._target = pieces(tokenizers.target)
        self._ids = {piece: id for id, piece in enumerate(self._target)}
        self._shortlist = (directory / SHORTLIST).exists()
        threads = {"inter_threads": setting.workers, "intra_threads": setting.threads}
        try:
            with torch_threads_kept():
                self._model = library().Translator(str(directory), "cpu", **threads)
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{directory}: CTranslate2 cannot read the model: {error}") from None

    def __repr__(self) -> str:
        return self.described(f"CTranslate2 {self._model.compute_type}")

    def explain(self, text: str, target: str | None = None) -> NoReturn:
        """Refuse: CTranslate2 returns no attention weights of encoder and decoder."""
        rule = "an export for CTranslate2 cannot explain; load the model it was exported from"
        raise InputError(f"{self.directory}: {rule}")

    def hypotheses(
        self,
        sources: Sequence[Ids],
        config: Search,
        n_best: int = 1,
        prefixes: Prefixes | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the n best hypotheses of each source, in order; an empty source has an empty one.

        CTranslate2 knows one limit per batch, does not end a hypothesis there, and distributes the
        probability of suppressed tokens over the others. So nothing is suppressed, and a sentence
        with a hypothesis that our search cannot produce, beyond its own limit or with <s> or
        <blank> inside, is searched again and rescored.
        """
        config.check(n_best)
        refuse_search(config)
        forced: Prefixes = prefixes or [()] * len(sources)
        config.check_prefixes(sources, forced)
        pairs = list(zip(sources, forced, strict=True))
        results = [
            [] if source or prefix else [Hypothesis([], 0.0, 0.0)] for source, prefix in pairs
        ]

        def post(batch: list[int]) -> list[Any]:
            limit = max(_limit(config, pairs[i]) for i in batch)
            return self._post([pairs[i] for i in batch], config, limit)

        shapes = [
            Shape((padded_alike(len(source)), len(prefix)), len(source)) for source, prefix in pairs
        ]
        for i, answer in self._answers(post, shapes, config.beam):
            if not results[i]:
                results[i] = self._ended(answer, config, _limit(config, pairs[i]), n_best)
        again = [i for i, hypotheses in enumerate(results) if not hypotheses]
        searched = self._search_again([pairs[i] for i in again], config)
        for i, hypotheses in zip(again, searched, strict=True):
            results[i] = hypotheses
        if not all(results):
            raise WorkError(BROKEN_MODEL)
        return [hypotheses[:n_best] for hypotheses in results]

    def log_probabilities(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[list[float]]:
        results: list[list[float]] = [[] for _ in pairs]

        def post(batch: list[int]) -> list[Any]:
            sources = [self._tokens(pairs[i][0]) for i in batch]
            targets = [[self._target[id] for id in pairs[i][1]] for i in batch]
            answers: list[Any] = self._model.score_batch(
                sources, targets, max_input_length=0, asynchronous=True
            )
            return answers

        shapes = [
            Shape(
                (padded_alike(len(source)), padded_alike(len(target))),
                max(len(source), len(target)),
            )
            for source, target in pairs
        ]
        for i, answer in self._answers(post, shapes, beam=1):
            results[i] = list(answer.log_probs)
        return results

    def _tokens(self, source: Ids) -> Pieces:
        return [*(self._source[id] for id in source), LAST]

    def _answers(
        self, post: Callable[[list[int]], list[Any]], shapes: Sequence[Shape], beam: int
    ) -> Iterator[tuple[int, Any]]:
        """Post all batches to the workers; yield the lines and their answers as they are ready."""
        posted: deque[tuple[int, Any]] = deque()
        for batch in batches_of(shapes, beam, self.setting):
            posted.extend(zip(batch, post(batch), strict=True))
            while posted and posted[0][1].done():
                i, answer = posted.popleft()
                yield i, answer.result()
        yield from ((i, answer.result()) for i, answer in posted)

    def _post(
        self,
        pairs: Sequence[Forced],
        config: Search,
        limit: int,
        suppress: Sequence[int] = (),
    ) -> list[Any]:
        """Post sources and prefixes to the workers; an answer holds all hypotheses that ended."""
        prefixes = [[self._target[id] for id in prefix] for _, prefix in pairs]
        patience = PATIENCE if config.beam > 1 else 1
        answers: list[Any] = self._model.translate_batch(
            [self._tokens(source) for source, _ in pairs],
            prefixes if any(prefixes) else None,
            asynchronous=True,
            beam_size=config.beam,
            patience=patience,
            num_hypotheses=math.floor(config.beam * patience + 0.5),  # CTranslate2 rounds alike
            length_penalty=config.length_penalty,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=0,
            suppress_sequences=[[SPECIALS[id]] for id in suppress] or None,
            use_vmap=self._shortlist,
            return_end_token=True,
            return_scores=True,
        )
        return answers

    def _read(self, answer: Any, config: Search) -> list[tuple[Pieces, float]]:
        """Pieces of each hypothesis, </s> last if it has ended, and its log-probability."""
        hypotheses = []
        for tokens, score in zip(answer.hypotheses, answer.scores, strict=True):
            log_p = score * len(tokens) ** config.length_penalty  # CTranslate2 has divided by it
            if log_p > IMPOSSIBLE:  # false for NaN, too
                hypotheses.append((tokens, log_p))
        return hypotheses

    def _ended(self, answer: Any, config: Search, limit: int, n_best: int) -> list[Hypothesis]:
        """Best hypotheses of an answer by our length penalty; none if ours cannot produce one."""
        hypotheses = self._read(answer, config)
        for tokens, _ in hypotheses:
            if tokens[-1] != LAST or len(tokens) >= limit or FIRST in tokens or BLANK in tokens:
                return []
        hypotheses.sort(key=lambda pair: -pair[1] / config.penalty(len(pair[0])))
        best = [(self._known(tokens[:-1]), log_p) for tokens, log_p in hypotheses[:n_best]]
        return _ranked(best, config)

    def _known(self, tokens: Pieces) -> Ids:
        return [self._ids[token] for token in tokens]

    def _search_again(self, pairs: Sequence[Forced], config: Search) -> list[list[Hypothesis]]:
        """Search each sentence up to its own limit, where it ends as in our search, and rescore."""
        outputs: list[list[Ids]] = [[] for _ in pairs]

        def post(batch: list[int]) -> list[Any]:
            limit = _limit(config, pairs[batch[0]]) - 1  # at the limit only </s> may come
            return self._post([pairs[i] for i in batch], config, limit, (BEGIN, PAD))

        shapes = [Shape((len(source), len(prefix)), len(source)) for source, prefix in pairs]
        for i, answer in self._answers(post, shapes, config.beam):
            for tokens, _ in self._read(answer, config):
                outputs[i].append([id for id in self._known(tokens) if id != END])
        rows = zip(pairs, outputs, strict=True)
        scored = iter(self.log_probabilities([(x, ids) for (x, _), row in rows for ids in row]))
        return [_ranked([(ids, sum(next(scored))) for ids in row], config) for row in outputs]


def _limit(config: Search, pair: Forced) -> int:
    source, prefix = pair
    return config.limit(len(source), len(prefix))


def _ranked(outputs: list[tuple[Ids, float]], config: Search) -> list[Hypothesis]:
    hypotheses = [
        Hypothesis(ids, log_p, log_p / config.penalty(len(ids) + 1)) for ids, log_p in outputs
    ]
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def refuse_search(config: Search) -> None:
    """Name a search setting that CTranslate2 cannot reproduce exactly."""
    # It would distribute the probability of </s> over the other tokens, and keep other beams.
    if config.min_length:
        raise InputError(
            f"decode.min_length = {config.min_length}: must be 0 for CTranslate2, "
            "which searches differently with a minimum length"
        )
    if config.forbidden:
        raise InputError("forbidden tokens: CTranslate2 cannot forbid any; PyTorch can")


def pieces(tokenizer: tokenizers.Tokenizer) -> Pieces:
    """CTranslate2's name of each id."""
    return [tokenizer.piece(id) for id in range(len(tokenizer))]


def exported(directory: str | Path) -> bool:
    """Whether a directory was made by `seq2see export`."""
    return (Path(directory) / "engine.json").is_file()


def load(directory: str | Path, *, alone: bool = False) -> Engine:
    """Open an exported model; `alone` takes one thread, the fastest for a single sentence."""
    directory = Path(directory)
    if not directory.is_dir():
        raise no_such_directory(directory)
    if not exported(directory):
        raise InputError(
            f"{directory}: not exported; first: seq2see export --model {directory} --out DIR"
        )
    path = directory / "engine.json"
    try:
        about = json.loads(path.read_bytes())
        keys = ("workers", "threads", "batch_tokens")
        setting = Setting(*(max(1, int(about["setting"][key])) for key in keys))
        digests = about["files"].items()
        damaged = [name for name, digest in digests if sha256(directory / name) != digest]
        calibrated_cores = int(about["cores"])
    except OSError as error:
        reason = f"cannot read the exported model: {error.strerror}"
        raise InputError(f"{error.filename}: {reason}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: does not describe an exported model: {error!r}") from None
    if damaged:
        path = directory / damaged[0]
        raise InputError(f"{path}: its SHA-256 differs from the one in engine.json")
    if alone:
        setting = Setting(1, 1, setting.batch_tokens)
    elif calibrated_cores != cores():  # calibrated on another machine
        setting = Setting(cores(), 1, setting.batch_tokens)
    recipe = Recipe.load(directory / "recipe.toml")
    return Engine(directory, recipe, tokenizers.load(directory), setting)
