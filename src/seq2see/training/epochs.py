"""The examples and batches of epochs."""

from collections.abc import Callable

from seq2see.batches import Batches, Examples, epoch_batches
from seq2see.recipe.schema import TrainConfig


class Epochs:
    """The examples and batches of each epoch; those of the last one asked for are kept."""

    def __init__(self, examples: Callable[[int], Examples], config: TrainConfig) -> None:
        self._examples = examples
        self._config = config
        self._last: tuple[int, Examples, Batches] | None = None

    def __call__(self, epoch: int) -> tuple[Examples, Batches]:
        if self._last is None or self._last[0] != epoch:
            self._last = None  # two epochs need not fit in memory
            examples = self._examples(epoch)
            batches = epoch_batches(examples.lengths, self._config, epoch)
            self._last = epoch, examples, batches
        return self._last[1:]
