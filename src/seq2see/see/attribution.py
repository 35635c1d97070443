"""Attribution: the part of each source token in the choice of each target token."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from seq2see.batches import Ids
from seq2see.errors import InputError
from seq2see.see.attention_flow import last_attention, norm_weighted, rollout
from seq2see.see.erasure import leave_one_out
from seq2see.see.gradients import gradient_times_input, integrated_gradients
from seq2see.tasks.translator import Translator


@dataclass(frozen=True)
class Method:
    """A way to attribute target tokens to source tokens."""

    title: str
    unit: str  # of its values, as the colour bar names it
    signed: bool  # whether a source token can speak against a target token
    compute: Callable[[Any, Ids, Ids], Tensor]  # model, source, target → (T, S), </s> included


METHODS = {
    "erasure": Method(
        "leave-one-out erasure", "fall of log p without the source token", True, leave_one_out
    ),
    "gradient": Method(
        "gradient × input", "gradient of log p × embedding", True, gradient_times_input
    ),
    "integrated": Method(
        "integrated gradients",
        "part of log p − log p at zero embeddings",
        True,
        integrated_gradients,
    ),
    "norm": Method(
        "norm-weighted cross-attention", "share of the norms, mean of layers", False, norm_weighted
    ),
    "rollout": Method("attention rollout", "rolled-out weight", False, rollout),
    "attention": Method(
        "cross-attention of the last layer", "weight, mean of heads", False, last_attention
    ),
}


@dataclass(frozen=True)
class Attribution:
    """An attribution with the tokens of its rows and columns, </s> last."""

    method: str
    source: str
    target: str
    source_tokens: list[str]
    target_tokens: list[str]
    values: Tensor  # (T, S)


def method_of(name: str) -> Method:
    """The method of a name."""
    if name not in METHODS:
        raise InputError(f"method {name!r} is not one of {', '.join(METHODS)}")
    return METHODS[name]


def attribute_text(
    translator: Translator, text: str, target: str | None, method: str
) -> Attribution:
    """Attribute the tokens of a translation, by default the model's own, to those of a text."""
    tokenizers = translator.tokenizers
    source_ids = tokenizers.source.encode(text)
    _check(translator, source_ids, [])  # before the search, which takes longer for a longer text
    target_ids = translator.target_ids(source_ids, target)
    return Attribution(
        method=method,
        source=text,
        target=tokenizers.target.decode(target_ids) if target is None else target,
        source_tokens=[*tokenizers.source.pieces(text), "</s>"],
        target_tokens=[*map(tokenizers.target.piece, target_ids), "</s>"],
        values=attribute(translator, source_ids, target_ids, method),
    )


def attribute(translator: Translator, source: Ids, target: Ids, method: str) -> Tensor:
    """Attribute each target token to the source tokens: (T, S), both with </s> at their end."""
    compute = method_of(method).compute
    _check(translator, source, target)
    with _evaluating(translator.model):
        try:
            return compute(translator.model, source, target).cpu()
        except InputError as error:
            raise InputError(f"method {method!r} {error}") from None


def _check(translator: Translator, source: Ids, target: Ids) -> None:
    if not source:
        raise InputError("the source has no tokens to attribute to")
    limit = translator.recipe.data.max_length
    for name, ids in (("source", source), ("target", target)):
        if len(ids) > limit:
            raise InputError(f"the {name} has more than the model's {limit} tokens")


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Switch dropout off, and afterwards restore the mode of every module."""
    modes: list[tuple[nn.Module, bool]] = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
