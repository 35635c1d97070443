"""The slots of an input's tokens after each layer that merges or prunes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from seq2see.errors import InputError
from seq2see.layers.trace import Trace
from seq2see.models.reduced import counts, operations, plan_of, with_plan
from seq2see.see.figures import shown
from seq2see.see.numbers import Numbers


@dataclass(frozen=True)
class ReductionTrace:
    """The slot of each token of one input after each layer, and the cost of each layer."""

    slots: list[list[int]]  # by layer, by token: merged tokens share a slot; −1 once pruned
    operations: list[float]  # of each layer
    full_operations: list[float]  # of each layer if all tokens had been kept

    def remaining(self) -> list[int]:
        """Count the slots after each layer."""
        return [max(slots) + 1 for slots in self.slots]

    def titles(self) -> list[str]:
        """Name each layer with its number of tokens and its share of the operations."""
        tokens = len(self.slots[0])
        titles = []
        for i, count in enumerate(self.remaining()):
            share = self.operations[i] / self.full_operations[i]
            titles.append(f"layer {i + 1}: {count} of {tokens} tokens · {share:.0%} FLOPs")
        return titles

    def numbers(self, tokens: Sequence[str]) -> list[Numbers]:
        """List the slot of each token after each layer, counted from 1, as a table."""
        head = ["token", *(f"layer {i + 1}" for i in range(len(self.slots)))]
        rows = []
        for token, *slots in zip(shown(tokens), *self.slots, strict=True):
            rows.append([token, *("pruned" if slot < 0 else str(slot + 1) for slot in slots)])
        return [Numbers("Tokens of one slot are merged", head, rows)]

    def report(self, tokens: Sequence[str]) -> list[str]:
        """List for each layer its merged groups and the tokens that it pruned."""
        lines = []
        gone: set[int] = set()
        for title, slots in zip(self.titles(), self.slots, strict=True):
            parts = [title]
            merged = [" + ".join(tokens[i] for i in group) for group in groups(slots)]
            if merged:
                parts.append(f"merged: {', '.join(merged)}")
            pruned = [i for i, slot in enumerate(slots) if slot < 0 and i not in gone]
            if pruned:
                parts.append(f"pruned: {', '.join(tokens[i] for i in pruned)}")
            gone |= {*pruned}
            lines.append(" · ".join(parts))
        return lines


@torch.inference_mode()
def follow(model: Any, batch: Any) -> ReductionTrace:
    """Trace one input through a model that merges or prunes, with soft thresholds made hard."""
    plan = plan_of(model)
    if plan is None:
        raise InputError(
            "this model was trained neither to merge nor to prune; give an amount to reduce by"
        )
    model = with_plan(model, plan.hard())
    trace = Trace(weights=False)
    model.eval()(batch, trace)
    steps = trace.reductions
    tokens = torch.tensor([steps[0].source.shape[1]])
    return ReductionTrace(
        [step.source[0].tolist() for step in steps],
        operations(model.encoder, counts(tokens, steps), plan_of(model)),
        operations(model.encoder, [tokens] * (len(steps) + 1)),
    )


def groups(slots: Sequence[int]) -> list[list[int]]:
    """List the tokens that share a slot, in the order of the slots."""
    members: dict[int, list[int]] = {}
    for token, slot in enumerate(slots):
        members.setdefault(slot, []).append(token)
    return [group for slot, group in sorted(members.items()) if slot >= 0 and len(group) > 1]
