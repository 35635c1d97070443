"""Translation word by word: probabilities, the likeliest alternatives, and the n best."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor

from seq2see.batches import Ids
from seq2see.decoding.hypotheses import Search
from seq2see.errors import InputError
from seq2see.see.explorer.pair import Pair, checked, forced, limit, paired, search_of, source_ids
from seq2see.see.explorer.tokens import source_tokens, target_tokens
from seq2see.see.head_statistics import entropy
from seq2see.tasks.translator import Translator
from seq2see.text.specials import END

TOP = 5


@dataclass(frozen=True)
class Rules:
    """The search for translations, as ids of a model's vocabulary."""

    search: Search
    prefix: Ids


def rules(
    translator: Translator,
    beam: int | None = None,
    prefix: str | None = None,
    forbidden: Sequence[str] = (),
    length_penalty: float | None = None,
) -> Rules:
    """Encode a forced beginning and forbidden pieces; refuse what the model does not know."""
    search = search_of(translator, beam)
    if forbidden:
        search = replace(search, forbidden=_ids_of(translator, forbidden))
    if length_penalty is not None:
        search = replace(search, length_penalty=length_penalty)
    ids = translator.tokenizers.target.encode(prefix) if prefix else []
    return Rules(search, checked("the prefix", ids, limit(translator) - 1))


def _ids_of(translator: Translator, pieces: Sequence[str]) -> tuple[int, ...]:
    target = translator.tokenizers.target
    known = {target.piece(id): id for id in range(len(target))}
    for number, piece in enumerate(pieces):
        if piece not in known:
            raise InputError(f"forbidden[{number}]: it is no token of the target vocabulary")
    return tuple(sorted({known[piece] for piece in pieces}))


def translate(
    translator: Translator, text: str, rules: Rules, n_best: int = 1, target: str | None = None
) -> dict[str, Any]:
    """Translate a text; explain the best translation, or a given one, step by step."""
    source = source_ids(translator, text)
    rules.search.check(n_best)
    prefixes = [rules.prefix] if rules.prefix else None
    (best,) = translator.hypotheses([source], rules.search, n_best, prefixes)
    named = translator.tokenizers.target
    ids = best[0].ids if target is None else named.encode(target)
    pair = paired(translator, text, ids, target)
    steps = predictions(pair)
    total = sum(step["log_probability"] for step in steps)
    return {
        "source": asdict(source_tokens(translator, text)),
        "target": asdict(target_tokens(translator, ids)),
        "text": pair.translation,
        "log_probability": total,
        "score": total / rules.search.penalty(len(steps)),
        "steps": steps,
        "hypotheses": [
            {
                "text": named.decode(one.ids),
                "tokens": [named.piece(id) for id in (*one.ids, END)],
                "log_probability": one.log_probability,
                "score": one.score,
            }
            for one in best
        ],
    }


def predictions(pair: Pair) -> list[dict[str, Any]]:
    """The distribution behind each token of a translation, given those before it."""
    piece = pair.translator.tokenizers.target.piece
    return distributions(forced(pair).log_p, [*pair.target, END], piece)


def distributions(log_p: Tensor, ids: Ids, piece: Callable[[int], str]) -> list[dict[str, Any]]:
    """The probability of each id under its row of log p (T, V), and the likeliest ids."""
    log_p = log_p.double()
    probabilities = log_p.exp()
    entropies = entropy(probabilities).tolist()
    top, tokens = probabilities.topk(min(TOP, log_p.shape[1]))
    return [
        {
            "token": piece(id),
            "probability": float(probabilities[step, id]),
            "log_probability": float(log_p[step, id]),
            "entropy": entropies[step],
            "top": [
                {"token": piece(token), "probability": probability}
                for token, probability in zip(
                    tokens[step].tolist(), top[step].tolist(), strict=True
                )
            ],
        }
        for step, id in enumerate(ids)
    ]
