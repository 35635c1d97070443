"""The gradient of one update, computed by several workers at once: they meet once an update, not at every product."""

import copy
import hashlib
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seq2see.batches import Batch, Collate, IdPair, collate
from seq2see.layers.dropout import seeded
from seq2see.layers.reduction.encoder import cost, watch
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import TrainConfig
from seq2see.training.loss import smoothed_loss, smoothed_loss_of
from seq2see.training.packed import answers
from seq2see.training.workers import share_out

TOKENS_OF_A_WORKER = (
    256  # on the longer side of a batch; with fewer, products get too small to be fast
)
# Of a Transformer on a CPU: longer passes are hardly faster, and all that one computes is in memory at once.
TOKENS_OF_A_PASS = 384  # with padding, and for narrow models more:
NUMBERS_OF_A_PASS = 160_000  # tokens times the width


class Update(NamedTuple):
    """What the batches of one update held: their summed loss and real target tokens."""

    loss: float
    tokens: int


class Gradients:
    """Fills the gradients of a model's weights; the same for the same key and number of workers, bit for bit."""

    def __init__(
        self, model: nn.Module, config: TrainConfig, workers: int, collate: Collate = collate
    ) -> None:
        self.config, self.workers, self.collate = config, workers, collate
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.device = self.weights[0].device
        self.replicas = [_replica(model) for _ in range(workers)]
        self.longest = math.inf
        if isinstance(model, Transformer) and self.device.type == "cpu":
            self.longest = max(TOKENS_OF_A_PASS, NUMBERS_OF_A_PASS / model.width)

    def fill(self, pairs: Sequence[IdPair], batches: Sequence[Sequence[int]], key: str) -> Update:
        """The gradient of the mean loss per target token over all batches together; `key` decides the dropout."""
        passes = _shares(pairs, batches, self.longest, self.workers)
        shares = [[self.collate(pairs, lines) for lines in share] for share in passes]
        tokens = sum(batch.target_tokens for share in shares for batch in share)  # </s> counts

        def work(worker: int) -> float:
            return self._share(self.replicas[worker], shares[worker], tokens, f"{key}/{worker}")

        loss = sum(share_out(work, range(self.workers), self.workers))
        gradients = [
            _taken(replica) for replica, share in zip(self.replicas, shares, strict=True) if share
        ]
        for others in gradients[1:]:
            torch._foreach_add_(gradients[0], others)
        for weight, gradient in zip(self.weights, gradients[0], strict=True):
            weight.grad = gradient
        return Update(loss, tokens)

    def _share(self, model: nn.Module, batches: Sequence[Batch], tokens: int, key: str) -> float:
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1
        if self.device.type != "cpu":
            torch.manual_seed(seed)
        model.zero_grad(set_to_none=True)  # of an update that failed
        total = 0.0
        with seeded(seed):
            for batch in batches:
                loss = loss_of(model, batch.to(self.device), self.config)
                (loss / tokens).backward()  # type: ignore[no-untyped-call]
                total += loss.item()
        return total


def loss_of(model: nn.Module, batch: Batch, config: TrainConfig) -> Tensor:
    """The loss summed over the target tokens and, where pruning is learned, what each pays for the tokens kept."""
    trace = watch(model)
    found, how = answers(model, batch, trace), (config.label_smoothing, config.smoothing)
    if found.output is None:
        loss = smoothed_loss(found.states, found.targets, *how)
    else:
        loss = smoothed_loss_of(found.states, found.output, found.targets, *how)
    return loss + len(found.targets) * cost(model, trace)


def workers_for(
    pairs: Sequence[IdPair], plan: Sequence[Sequence[int]], accumulate: int, device: torch.device
) -> int:
    """As many as there are threads, if each gets a batch of an update or enough of one; on a GPU one."""
    tokens = sum(max(map(len, pair)) + 1 for pair in pairs) / len(plan)
    enough = max(accumulate, int(tokens / TOKENS_OF_A_WORKER))
    return max(1, min(torch.get_num_threads(), enough)) if device.type == "cpu" else 1


def _shares(
    pairs: Sequence[IdPair], batches: Sequence[Sequence[int]], longest: float, workers: int
) -> list[list[Sequence[int]]]:
    """The passes of each worker, which has every so-manyth sentence by length: as much work for one as for another.

    The gradient is a sum over sentences, so a pass need not be a batch. Each has sentences of like length, and with
    padding about as many tokens as the next: not many more than `longest`, or than the largest batch has.
    """

    def length(line: int) -> int:
        return max(map(len, pairs[line])) + 1

    longest = min(longest, max(len(batch) * max(map(length, batch)) for batch in batches))
    lines = sorted((line for batch in batches for line in batch), key=length, reverse=True)
    return [
        _passes([(line, length(line)) for line in lines[worker::workers]], longest)
        for worker in range(workers)
    ]


def _passes(lines: Sequence[tuple[int, int]], longest: float) -> list[Sequence[int]]:
    """Lines and their lengths, falling, in as few parts as can be, and these as even as can be."""
    before = [0, *itertools.accumulate(length for _, length in lines)]
    parts = math.ceil(before[-1] / longest)
    passes: list[list[int]] = [[] for _ in range(parts)]
    for (line, _), tokens in zip(lines, before, strict=False):
        passes[tokens * parts // before[-1]].append(line)
    return list(filter(None, passes))


def _replica(model: nn.Module) -> nn.Module:
    """The same weights, not copied, with gradients of their own: so each worker adds up its own in place."""
    shared = {
        id(weight): nn.Parameter(weight.detach(), weight.requires_grad)
        for weight in model.parameters()
    }
    replica = copy.deepcopy(model, shared).train()
    for part in replica.modules():
        if isinstance(part, nn.Embedding) and part.weight.device.type == "cpu":
            part.sparse = True  # a batch knows few of its rows; zeros for all the others are not written each time
    return replica


def _taken(replica: nn.Module) -> list[Tensor]:
    """The gradients of a replica, which has none then."""
    weights = [weight for weight in replica.parameters() if weight.requires_grad]
    found = [
        torch.zeros_like(weight) if weight.grad is None else weight.grad.to_dense()
        for weight in weights
    ]
    replica.zero_grad(set_to_none=True)
    return found
