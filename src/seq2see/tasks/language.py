"""Task `language`: text so far → the next token."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from seq2see.batches import TextExamples, by_tokens
from seq2see.decoding.sampling import Sampling, generate
from seq2see.errors import InputError
from seq2see.models.language import CausalModel
from seq2see.tasks.keys import refuse_reduction
from seq2see.tasks.one_sided import Case, LanguageModel, OneSidedTask, Sample, Written
from seq2see.tasks.text import device_of
from seq2see.tasks.translation_engine import string, strings
from seq2see.tasks.translator import SCORED_TOKENS
from seq2see.text.lines import Pair
from seq2see.text.parallel import Part
from seq2see.text.tokenizers import Tokenizers


class Writer(LanguageModel):
    """A language model that generates text."""

    def generate(
        self,
        prompt: str = "",
        count: int = 1,
        how: Sampling | None = None,
        longest: int | None = None,
    ) -> list[Written]:
        tokenizer = self.tokenizers.target
        most = self.recipe.data.max_length
        if longest is None or self.recipe.model.positions == "learned":
            longest = min(longest or most, most)
        ids = tokenizer.encode(string("prompt", prompt))
        if len(ids) >= longest:
            rule = f"prompt and continuation may have {longest}"
            raise InputError(f"the prompt has {len(ids)} tokens; {rule}")
        self.model.eval()
        results = generate(self.model, ids, how or Sampling(), count, longest, self.device)
        return [
            Written(tokenizer.decode([*ids, *result.ids]), result.log_probability)
            for result in results
        ]

    @torch.inference_mode()
    def log_probabilities(self, texts: Sequence[str]) -> list[list[float]]:
        texts = strings("texts", texts)
        examples = TextExamples([([], self.ids(text)) for text in texts])
        results: list[list[float]] = [[] for _ in texts]
        for lines in by_tokens(examples.lengths, SCORED_TOKENS, seed=0, epoch=0):
            batch = examples.batch(lines).to(self.device)
            log_p = self.model(batch).log_softmax(-1)
            log_p = log_p.gather(-1, batch.target_out[..., None])[..., 0]  # (B, T)
            for line, row in zip(lines, log_p.tolist(), strict=True):
                results[line] = row[: len(examples[line].target) + 1]
        return results


class Language(OneSidedTask):
    """Predicts each token of the target from those before it."""

    command: ClassVar[str] = "seq2see generate"
    counted: ClassVar[str] = "tokens with </s>"
    model_type = Writer

    def check(self) -> None:
        super().check()
        refuse_reduction(self.recipe)

    def texts(self, parallel: Part) -> Iterator[Pair]:
        return (("", target) for _, target in parallel.pairs)

    def network(self, size: int) -> nn.Module:
        return CausalModel(self.recipe.model, size, self.recipe.tie != "none")

    def inside(self) -> str:
        return "continuation"

    def sample(self, model: Any, tokenizers: Tokenizers, case: Case) -> Sample:
        """The first half of a sentence, all of it, and the model's likeliest continuation."""
        _, ids = case.example
        prompt = ids[: len(ids) // 2]
        longest = 2 * len(ids) + 1
        greedy = Sampling(temperature=0)
        (continuation,) = generate(model, prompt, greedy, 1, longest, device_of(model))
        written = tokenizers.target.decode([*prompt, *continuation.ids])
        return tokenizers.target.decode(prompt), case.texts[1], written
