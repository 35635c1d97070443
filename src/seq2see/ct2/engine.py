"""An exported model in use: text in, text out by CTranslate2; without torch, so that the first answer comes at once."""

import json
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2see.decoding.hypotheses import Hypothesis, Search
from seq2see.decoding.long_text import Translation, translate
from seq2see.errors import InputError, WorkError
from seq2see.files import sha256
from seq2see.recipe.schema import Recipe
from seq2see.text import tokenizers
from seq2see.text.tokenizers import Tokenizers
from seq2see.text.vocab import BEGIN, END, PAD, SPECIALS

# CTranslate2 stops at patience × beam ended hypotheses, ours at `beam` of them if no open one scores better. Of the
# 1,014 sentences of Multi30k's val (beam 4, α 0.6) 19 come out worse with patience 1 (0.15 BLEU), two with 1.25 (0.01).
PATIENCE = 1.25
SHORTLIST = "vmap.txt"  # CTranslate2's name for the map of what a source piece may become
IMPOSSIBLE = -1e30  # CTranslate2's log-probability of what must not come is finite

FIRST, LAST, BLANK = SPECIALS[BEGIN], SPECIALS[END], SPECIALS[PAD]

Ids = list[int]
Pieces = list[str]


@dataclass(frozen=True)
class Setting:
    """How the work is shared out."""

    workers: int  # side by side, each on its own batch
    threads: int  # inside each
    batch_tokens: int  # of the source, times the beam


def library() -> Any:
    """CTranslate2, imported when it is needed, since it is an extra."""
    try:
        import ctranslate2
    except ImportError:
        raise InputError("CTranslate2 is not installed: pip install 'seq2see[ct2]'") from None
    return ctranslate2


def cores() -> int:
    """The processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Engine:
    """Translates and scores with one exported model, as `Translator` does with the model it was made from.

    If it was exported with a shortlist, a search knows only the pieces on those of a batch: other sentences of it may
    change a translation, and log-probabilities are a little higher. `force` knows all.
    """

    def __init__(
        self, directory: Path, recipe: Recipe, tokenizers: Tokenizers, setting: Setting
    ) -> None:
        self.recipe, self.tokenizers, self.setting = recipe, tokenizers, setting
        self._source, self._target = map(pieces, (tokenizers.source, tokenizers.target))
        self._ids = {piece: id for id, piece in enumerate(self._target)}
        self._short = (directory / SHORTLIST).exists()
        threads = {"inter_threads": setting.workers, "intra_threads": setting.threads}
        try:
            self._model = library().Translator(str(directory), "cpu", **threads)
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{directory}: CTranslate2 cannot read the model: {error}") from None

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
            return self.hypotheses(parts, how, n_best)

        return translate(
            texts, found, self.tokenizers, self.recipe.data.max_length, first_line, warn
        )

    def translate(self, texts: Sequence[str], beam: int | None = None) -> list[str]:
        """The best translation of each text. The recipe's beam unless one is given."""
        return [translations[0].text for translations in self.search(texts, beam=beam)]

    def hypotheses(
        self, sources: Sequence[Ids], how: Search, n_best: int = 1
    ) -> list[list[Hypothesis]]:
        """The n best translations of each source, in the order of the input; that of an empty one is empty.

        CTranslate2 knows one limit a batch, does not end a hypothesis at it, and shares the probability of what it is
        told to leave out among the rest. So nothing is left out, and a sentence with a hypothesis that ours cannot
        have, over its own limit or with <s> or <blank> inside, is searched once more and scored anew.
        """
        how.check(n_best)
        refuse_search(how)
        results = [[] if source else [Hypothesis([], 0.0, 0.0)] for source in sources]

        def post(batch: list[int]) -> list[Any]:
            return self._post([sources[i] for i in batch], how, how.limit(len(sources[batch[0]])))

        for i, answer in self._answers(post, [*map(len, sources)], how.beam):
            results[i] = results[i] or self._ended(answer, how, how.limit(len(sources[i])), n_best)
        left = [i for i, found in enumerate(results) if not found]
        for i, found in zip(left, self._once_more([sources[i] for i in left], how), strict=True):
            results[i] = found
        if not all(results):
            raise WorkError(
                "the model gives no numbers (NaN) for its output; its weights are broken"
            )
        return [found[:n_best] for found in results]

    def force(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[list[float]]:
        """Forced decoding: log p of each target id, </s> last, given the source and the ids before it."""
        results: list[list[float]] = [[] for _ in pairs]

        def post(batch: list[int]) -> list[Any]:
            targets = [[self._target[id] for id in pairs[i][1]] for i in batch]
            tokens = [self._tokens(pairs[i][0]) for i in batch]
            answers: list[Any] = self._model.score_batch(
                tokens, targets, max_input_length=0, asynchronous=True
            )
            return answers

        for i, answer in self._answers(post, [max(map(len, pair)) for pair in pairs], beam=1):
            results[i] = list(answer.log_probs)
        return results

    def _tokens(self, source: Ids) -> list[str]:
        return [*(self._source[id] for id in source), SPECIALS[END]]

    def _answers(
        self,
        post: Callable[[list[int]], list[Any]],
        lengths: Sequence[int],
        beam: int,
        *,
        equal: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Hand out all batches and give each line with its answer; those that are there while others are searched."""
        posted: deque[tuple[int, Any]] = deque()
        for batch in self._batches(lengths, beam, equal=equal):
            posted.extend(zip(batch, post(batch), strict=True))
            while posted and posted[0][1].done():
                i, answer = posted.popleft()
                yield i, answer.result()
        yield from ((i, answer.result()) for i, answer in posted)

    def _batches(
        self, lengths: Sequence[int], beam: int, *, equal: bool = False
    ) -> Iterator[list[int]]:
        """Lines of about equal length together, or of just one, longest first, and something for every worker."""
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        share = math.ceil(len(order) / self.setting.workers)
        start = 0
        while start < len(order):
            longest = lengths[order[start]]
            fit = max(1, min(share, self.setting.batch_tokens // ((longest + 1) * beam)))
            batch = [i for i in order[start : start + fit] if lengths[i] == longest or not equal]
            yield batch
            start += len(batch)

    def _post(
        self, sources: Sequence[Ids], how: Search, limit: int, leave_out: Sequence[int] = ()
    ) -> list[Any]:
        """Hand a batch to the workers; each answer has all hypotheses that ended."""
        patience = PATIENCE if how.beam > 1 else 1
        answers: list[Any] = self._model.translate_batch(
            [self._tokens(source) for source in sources],
            asynchronous=True,
            beam_size=how.beam,
            patience=patience,
            num_hypotheses=math.floor(how.beam * patience + 0.5),  # so CTranslate2 rounds, too
            length_penalty=how.length_penalty,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=0,
            suppress_sequences=[[SPECIALS[id]] for id in leave_out] or None,
            use_vmap=self._short,
            return_end_token=True,
            return_scores=True,
        )
        return answers

    def _read(self, answer: Any, how: Search) -> list[tuple[Pieces, float]]:
        """The pieces of each hypothesis, </s> last if it has ended, and its log-probability."""
        power = how.length_penalty  # CTranslate2 divided by the length to it
        found = [
            (each, score * len(each) ** power)
            for each, score in zip(answer.hypotheses, answer.scores, strict=True)
        ]
        return [
            (each, log_p) for each, log_p in found if log_p > IMPOSSIBLE
        ]  # neither closed nor NaN

    def _ended(self, answer: Any, how: Search, limit: int, n_best: int) -> list[Hypothesis]:
        """The best of an answer's hypotheses, by our length penalty; none if one is not as ours would be."""
        found = self._read(answer, how)
        if any(
            each[-1] != LAST or len(each) >= limit or FIRST in each or BLANK in each
            for each, _ in found
        ):
            return []
        best = sorted(found, key=lambda both: -both[1] / how.penalty(len(both[0])))[:n_best]
        return _ranked([(self._known(each[:-1]), log_p) for each, log_p in best], how)

    def _known(self, pieces: Pieces) -> Ids:
        return [self._ids[each] for each in pieces]

    def _once_more(self, sources: Sequence[Ids], how: Search) -> list[list[Hypothesis]]:
        """Search each sentence up to its own limit, where it ends as ours do, and score what is found."""
        found: list[list[Ids]] = [[] for _ in sources]

        def post(batch: list[int]) -> list[Any]:
            limit = (
                how.limit(len(sources[batch[0]])) - 1
            )  # what is left to come at the limit is </s>
            return self._post([sources[i] for i in batch], how, limit, (BEGIN, PAD))

        for i, answer in self._answers(post, [*map(len, sources)], how.beam, equal=True):
            found[i] = [
                [id for id in self._known(each) if id != END] for each, _ in self._read(answer, how)
            ]
        pairs = [(source, ids) for source, some in zip(sources, found, strict=True) for ids in some]
        scored = iter(self.force(pairs))
        return [_ranked([(ids, sum(next(scored))) for ids in some], how) for some in found]


def _ranked(found: list[tuple[Ids, float]], how: Search) -> list[Hypothesis]:
    scored = [Hypothesis(ids, log_p, log_p / how.penalty(len(ids) + 1)) for ids, log_p in found]
    return sorted(scored, key=lambda each: -each.score)


def refuse_search(how: Search) -> None:
    """Name what CTranslate2 cannot search for just as we do."""
    if (
        how.min_length
    ):  # with the probability of </s> shared out among the rest, other beams survive
        raise InputError(
            f"decode.min_length = {how.min_length}: CTranslate2 cannot search so; it must be 0"
        )


def pieces(tokenizer: tokenizers.Tokenizer) -> list[str]:
    """What CTranslate2 calls each id."""
    return [tokenizer.piece(id) for id in range(len(tokenizer))]


def load(directory: str | Path, *, alone: bool = False) -> Engine:
    """Open what `seq2see export` wrote; `alone`: with one thread, which answers a single sentence soonest."""
    directory = Path(directory)
    if not directory.is_dir():
        raise InputError(f"{directory}: no such model directory")
    path = directory / "engine.json"
    if not path.is_file():
        raise InputError(
            f"{directory}: not exported; first: seq2see export --model {directory} --out DIR"
        )
    try:
        about = json.loads(path.read_bytes())
        setting = Setting(
            *(max(1, int(about["setting"][key])) for key in ("workers", "threads", "batch_tokens"))
        )
        wrong = [name for name, sum_ in about["files"].items() if sha256(directory / name) != sum_]
        machine = int(about["cores"])
    except OSError as error:
        raise InputError(
            f"{error.filename}: cannot read the exported model: {error.strerror}"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: does not describe an exported model: {error!r}") from None
    if wrong:
        raise InputError(f"{directory / wrong[0]}: SHA-256 is not the one that engine.json names")
    if alone:
        setting = Setting(1, 1, setting.batch_tokens)
    elif machine != cores():  # calibrated on another machine
        setting = Setting(cores(), 1, setting.batch_tokens)
    return Engine(
        directory, Recipe.load(directory / "recipe.toml"), tokenizers.load(directory), setting
    )
