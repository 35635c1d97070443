"""The batches of an epoch are computed once, however often they are asked for."""

from seq2see.batches import TextExamples, epoch_batches
from seq2see.recipe.schema import TrainConfig
from seq2see.training.epochs import Epochs

CONFIG = TrainConfig(steps=1, batch_tokens=20)


def test_the_last_epoch_is_kept() -> None:
    drawn = []

    def draw(epoch: int) -> TextExamples:
        drawn.append(epoch)
        return TextExamples([([4] * (1 + n % 3), [5] * (epoch + n % 2)) for n in range(30)])

    epochs = Epochs(draw, CONFIG)
    for epoch in (1, 1, 2, 2, 1):
        examples, batches = epochs(epoch)
        assert [*batches] == [*epoch_batches(examples.lengths, CONFIG, epoch)]
        assert examples.lengths[0].tolist() == [2, epoch + 1]
    assert drawn == [1, 2, 1]
