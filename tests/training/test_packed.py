"""Logits without padding: those of the model itself at the real tokens, and so are their gradients."""

import pytest
import torch
from torch import Tensor

from seq2see.batches import IdPair, collate
from seq2see.models.transformer import Transformer
from seq2see.recipe.schema import ModelConfig
from seq2see.text.vocab import PAD
from seq2see.training.packed import Places, answers

UNEVEN: list[IdPair] = [([4, 5, 6], [7, 8]), ([9], [4, 5, 6, 7, 8]), ([5, 5, 4, 8, 9, 6], [11])]
EVEN: list[IdPair] = [([4, 5], [7, 8, 9]), ([9, 6], [4, 5, 6])]
KINDS: list[dict[str, object]] = [
    {},
    {"norm": "post", "positions": "learned", "max_positions": 9},
    {"positions": "rotary", "attention_bias": False},
    {"positions": "none", "score": "additive", "attention_width": 12},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pairs", [UNEVEN, EVEN], ids=["uneven", "even"])
def test_the_same_as_the_model_at_real_tokens(kind: dict[str, object], pairs: list[IdPair]) -> None:
    torch.manual_seed(5)
    config = ModelConfig.model_validate(
        {"width": 8, "heads": 2, "encoder_layers": 2, "decoder_layers": 3, **kind}
    )
    model = Transformer(config, 13, 17).double().eval()
    batch = collate(pairs, range(len(pairs)))
    found = answers(model, batch)
    logits, targets = found.logits, found.targets
    real = batch.target_out != PAD
    expected = model(batch)[real]
    assert torch.equal(targets, batch.target_out[real])
    torch.testing.assert_close(logits, expected, rtol=1e-12, atol=1e-12)
    slopes = torch.randn_like(logits)
    weights = list(model.parameters())
    slopes_found, wanted = (torch.autograd.grad(of, weights, slopes) for of in (logits, expected))
    torch.testing.assert_close(slopes_found, wanted, rtol=1e-10, atol=1e-12)


def test_a_model_of_another_kind_is_asked_itself() -> None:
    class Constant(torch.nn.Module):
        def forward(self, batch: object) -> Tensor:
            return everything

    batch = collate(UNEVEN, [0, 1, 2])
    everything = torch.randn(3, 6, 4)
    assert torch.equal(answers(Constant(), batch).logits, everything[batch.target_out != PAD])


def test_splitting_into_heads_and_joining_them_are_inverse() -> None:
    ids = torch.tensor([[4, 5, PAD], [6, PAD, PAD]])
    places, x = Places(ids, heads=2), torch.randn(3, 8)
    heads = places.split(x)
    assert heads.shape == (2, 2, 3, 4)
    assert torch.equal(heads[0, 1, 1], x[1, 4:])
    assert not heads[1, :, 1:].any()
    assert torch.equal(places.join(heads), x)
