"""Views of models of one stack: they continue a text, fill its blanks or classify it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from seq2see.batches import Batch, Ids, TextExamples, collate_labels
from seq2see.decoding.hypotheses import BROKEN_MODEL
from seq2see.decoding.sampling import Sampling, generate
from seq2see.errors import InputError, WorkError
from seq2see.layers.masks import causal_mask
from seq2see.layers.trace import Trace
from seq2see.recipe.network import ModelConfig
from seq2see.see.explorer.maps import exactly, overview
from seq2see.see.explorer.pair import MOST_TOKENS, checked
from seq2see.see.explorer.stages import by_layer
from seq2see.see.explorer.tokens import Tokens, input_tokens, target_tokens
from seq2see.see.explorer.translation import TOP, distributions
from seq2see.tasks.classify import TextClassifier
from seq2see.tasks.language import Writer
from seq2see.tasks.masked import BLANK, Filler
from seq2see.tasks.one_sided import LanguageModel
from seq2see.text.specials import END, MASK, PAD, SPECIALS

AXES = ("query position", "key position")
KIND = "stack.self"
LONGEST_CONTINUATION = 40  # tokens


@dataclass(frozen=True)
class Read:
    """A text as a model reads it, with all attention weights of one pass."""

    text: str
    tokens: Tokens
    logits: Tensor  # (T, V); (1, V) of a classifier
    weights: dict[str, Tensor]  # stack.0.self → (H, T, T)
    mask: Tensor  # (T, T), True = may attend


def text_ids(model: LanguageModel, text: str, encode: Callable[[str], Ids] | None = None) -> Ids:
    """Encode a text to look into; refuse one that is empty or too long."""
    if not text.strip():
        raise InputError("text: it is empty")
    ids = (encode or model.tokenizers.target.encode)(text)
    return checked("the text", ids, most_tokens(model))


def most_tokens(model: LanguageModel) -> int:
    """The most tokens of a text to look into."""
    return min(model.recipe.data.max_length, MOST_TOKENS)


def kinds(config: ModelConfig) -> list[dict[str, Any]]:
    """The one kind of attention of a stack, with its numbers of layers and heads."""
    return [{"kind": KIND, "layers": config.encoder_layers, "heads": config.heads}]


@torch.inference_mode()
def _pass(model: LanguageModel, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits of a text, and the attention of each layer under the name of the explorer."""
    trace = Trace()
    logits = model.model(batch.to(model.device), trace)[0].cpu()
    if not logits.isfinite().all():
        raise WorkError(BROKEN_MODEL)
    by_name = trace.on_tokens().items()
    return logits, {name.replace("encoder", "stack"): heads[0].cpu() for name, heads in by_name}


def _shifted(ids: Ids) -> Batch:
    """The ids as a language model reads them: after <s>."""
    return TextExamples([([], ids)]).batch([0])


def read_on(writer: Writer, text: str) -> Read:
    """Read a text as a language model does: <s> first, each token after those before it."""
    return _read_ids(writer, text, text_ids(writer, text))


def _read_ids(writer: Writer, text: str, ids: Ids) -> Read:
    logits, weights = _pass(writer, _shifted(ids))
    size = len(ids) + 1
    tokens = input_tokens(target_tokens(writer, ids))
    return Read(text, tokens, logits, weights, causal_mask(size, size))


def read_both_ways(model: LanguageModel, text: str, ids: Ids) -> Read:
    """Read a text in which all tokens attend to all: </s> last, a <mask> in each blank."""
    logits, weights = _pass(model, collate_labels([(ids, [PAD])], [0]))
    size = len(ids) + 1
    mask = torch.ones(size, size, dtype=torch.bool)
    return Read(text, _with_blanks(model, ids), logits, weights, mask)


def _with_blanks(model: LanguageModel, ids: Ids) -> Tokens:
    """Name the ids, </s> last; a blank is a word of its own between two parts of the text."""
    pieces: list[str] = []
    words: list[int | None] = []
    place = 0
    while True:
        blank = ids.index(MASK, place) if MASK in ids[place:] else len(ids)
        part = target_tokens(model, ids[place:blank])
        first = 1 + max((word for word in words if word is not None), default=-1)
        pieces += part.pieces[:-1]
        words += [None if word is None else first + word for word in part.words[:-1]]
        if blank == len(ids):
            return Tokens([*pieces, SPECIALS[END]], [*words, None], [False] * blank + [True])
        pieces.append(BLANK)
        words.append(1 + max((word for word in words if word is not None), default=-1))
        place = blank + 1


def attention(read: Read) -> dict[str, Any]:
    """Every head in 64 levels; all tokens are read, so that the three sides are one."""
    tokens = asdict(read.tokens)
    return {
        "source": tokens,
        "input": tokens,
        "target": tokens,
        "text": read.text,
        "axes": {KIND: AXES},
        "layers": overview(read.weights),
        "gold": None,
        "gold_words": None,
    }


def one_head(read: Read, layer: str, head: int) -> dict[str, Any]:
    """One head with its exact weights, and the reason for every position that it cannot see."""
    if layer not in read.weights:
        raise InputError(f"layer: it must be one of {', '.join(read.weights)}")
    heads = len(read.weights[layer])
    if not 0 <= head < heads:
        raise InputError(f"head is {head}; {layer} has heads 0 to {heads - 1}")
    return {
        "layer": layer,
        "head": head,
        "rows": read.tokens.pieces,
        "columns": read.tokens.pieces,
        "axes": AXES,
        **exactly(read.weights[layer][head], read.mask),
    }


def next_tokens(writer: Writer, text: str) -> dict[str, Any]:
    """Each token of a text and of its likeliest continuation, given those before it."""
    ids = text_ids(writer, text)
    most = min(most_tokens(writer), len(ids) + LONGEST_CONTINUATION)
    more: Ids = []
    if len(ids) < most:
        greedy = Sampling(temperature=0)
        more = generate(writer.model, ids, greedy, 1, most, writer.device)[0].ids
    read = _read_ids(writer, text, [*ids, *more])
    piece = writer.tokenizers.target.piece
    steps = distributions(read.logits.log_softmax(-1), [*ids, *more, END], piece)
    return {
        "tokens": asdict(target_tokens(writer, [*ids, *more])),
        "given": len(ids),
        "text": writer.tokenizers.target.decode([*ids, *more]),
        "log_probability": sum(step["log_probability"] for step in steps[: len(ids)]),
        "steps": steps,
    }


def next_by_layer(writer: Writer, text: str) -> dict[str, Any]:
    """Read the states of each layer as the model reads its last ones."""
    ids = text_ids(writer, text)
    model = writer.model
    piece = writer.tokenizers.target.piece
    batch = _shifted(ids).to(writer.device)
    return {
        "target": asdict(target_tokens(writer, ids)),
        "layers": by_layer(model, ("encoder", model.encoder_norm), batch, [*ids, END], piece),
    }


def read_blanks(filler: Filler, text: str) -> Read:
    """Read a text with blanks, or without."""
    return read_both_ways(filler, text, text_ids(filler, text, filler.blanked))


def blanks(filler: Filler, text: str) -> dict[str, Any]:
    """The likeliest tokens in each blank of a text, which may have none."""
    read = read_blanks(filler, text)
    places = [place for place, piece in enumerate(read.tokens.pieces) if piece == BLANK]
    if not places:
        return {"tokens": asdict(read.tokens), "text": text, "blanks": []}
    filled = filler.fill(text, TOP)
    return {
        "tokens": asdict(read.tokens),
        "text": filled.text,
        "blanks": [
            {"place": place, "top": [asdict(candidate) for candidate in candidates]}
            for place, candidates in zip(places, filled.blanks, strict=True)
        ],
    }


def read_labelled(model: TextClassifier, text: str) -> Read:
    """Read a text to classify."""
    return read_both_ways(model, text, text_ids(model, text))


def labels(model: TextClassifier, text: str) -> dict[str, Any]:
    """The probability of every label of a text, the likeliest first."""
    text_ids(model, text)
    (labelled,) = model.classify([text])
    ranked = sorted(labelled.probabilities.items(), key=lambda one: -one[1])
    classes = [{"label": label, "probability": probability} for label, probability in ranked]
    return {"label": labelled.label, "classes": classes}
