"""torch.nn.Transformer: pre-norm, batch first, with the causal hint for the fused kernel."""

import math

import torch
import torch_loop
import worker
from torch import Tensor, nn

MOST_POSITIONS = 256


class Model(nn.Module):
    """nn.Transformer with embeddings, sinusoidal positions and an output layer, as in tutorials."""

    def __init__(self, size: dict[str, int], dropout: float) -> None:
        super().__init__()
        width = size["width"]
        self.source_embedding = nn.Embedding(size["source_size"], width, padding_idx=worker.PAD)
        self.target_embedding = nn.Embedding(size["target_size"], width, padding_idx=worker.PAD)
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(
            width,
            size["heads"],
            size["layers"],
            size["layers"],
            size["feed_forward"],
            dropout,
            batch_first=True,
            norm_first=True,
        )
        self.output = nn.Linear(width, size["target_size"])
        angle = torch.arange(MOST_POSITIONS)[:, None] * 10000.0 ** (
            -torch.arange(0, width, 2) / width
        )
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))

    def embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        return self.dropout(
            embedding(ids) * math.sqrt(embedding.embedding_dim) + self.positions[: ids.shape[1]]
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == worker.PAD
        # Padding comes last, so the causal mask hides it from every real target token.
        states = self.transformer(
            self.embed(self.source_embedding, source),
            self.embed(self.target_embedding, target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.output(states)


def main() -> None:
    job = worker.job()
    torch.set_num_threads(job["threads"])
    torch.manual_seed(1)
    model = Model(job["model"], job["model"]["dropout"])
    torch_loop.train(job, model, model, worker.versions("torch"))


if __name__ == "__main__":
    main()
