"""A diffusion model in use: paints pictures from prompts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.decoding.denoising import Denoising, Step, denoise
from seq2see.errors import InputError
from seq2see.models.diffusion import DiffusionModel
from seq2see.models.merged import MergedDiffusion, TokenMerging, with_merged_tokens
from seq2see.models.noise import noise_process
from seq2see.pictures.prompts import PaintingFormat, check_prompt
from seq2see.recipe.schema import Recipe
from seq2see.tasks.short_repr import parameters, short_repr
from seq2see.tasks.translation_engine import strings
from seq2see.training.workers import share_out

TOGETHER = 8  # pictures in one batch: more are hardly faster

Pictures = NDArray[np.uint8]  # (N, height, width, channels)
Progress = Callable[[float], None]  # is told the share of the work that is done


@dataclass
class Painter:
    """Paints pictures; the same prompt and seed give the same picture."""

    recipe: Recipe
    format: PaintingFormat
    model: DiffusionModel | MergedDiffusion
    device: torch.device
    path: Path | None = None

    def __post_init__(self) -> None:
        self.model = self.model.to(self.device).eval()
        self.process = noise_process(self.recipe.diffusion.predict)

    def __repr__(self) -> str:
        channels, height, width = self.format.shape
        size = f"{height} × {width} × {channels}"
        words = f"{len(self.format.words)} words"
        return short_repr("Painter", size, words, parameters(self.model), self.path)

    def merged(self, merging: TokenMerging) -> "Painter":
        """A painter with the same weights that merges similar positions in its attention."""
        if isinstance(self.model, MergedDiffusion):
            raise InputError("this painter merges already; begin with the one it was made from")
        return replace(self, model=with_merged_tokens(self.model, merging))

    def settings(
        self,
        steps: int | None = None,
        guidance: float | None = None,
        sampler: str | None = None,
    ) -> Denoising:
        """The recipe's settings for painting, with some replaced."""
        config = self.recipe.diffusion
        return Denoising(
            sampler=config.sampler if sampler is None else sampler,
            steps=config.steps if steps is None else steps,
            guidance=config.guidance if guidance is None else guidance,
            shift=config.shift,
        )

    def paint(
        self,
        prompts: Sequence[str],
        seeds: Sequence[int] | None = None,
        settings: Denoising | None = None,
        progress: Progress | None = None,
    ) -> Pictures:
        """Paint a picture for each prompt, from its own seed; by default all from seed 1.

        The settings are by default the recipe's; `settings()` changes some of them.
        """
        ids = self.ids(prompts)
        seeds = [1] * len(ids) if seeds is None else list(seeds)
        if len(seeds) != len(ids):
            raise InputError(f"{len(seeds)} seeds are given for {len(ids)} prompts")
        painted = self._paint(ids, seeds, settings or self.settings(), progress)
        return self.format.pixels(painted).permute(0, 2, 3, 1).contiguous().numpy()

    def _paint(
        self,
        ids: Tensor,
        seeds: Sequence[int],
        settings: Denoising,
        progress: Progress | None,
    ) -> Tensor:
        """Paint prompts of ids (B, S) in batches, which the cores share: (B, C, H, W)."""
        workers = torch.get_num_threads() if self.device.type == "cpu" else 1
        size = max(1, min(TOGETHER, -(-len(ids) // workers)))
        batches = [slice(first, first + size) for first in range(0, len(ids), size)]
        done = 0

        def watch(step: Step) -> None:
            nonlocal done
            done += len(step.x)
            if progress is not None:
                progress(done / (len(ids) * settings.steps))

        def work(batch: slice) -> Tensor:
            prompts = ids[batch].to(self.device)
            chosen = seeds[batch]
            return denoise(self.model, self.process, prompts, chosen, settings, watch=watch).cpu()

        none = torch.empty(0, *self.format.shape)  # where there are no prompts
        return torch.cat([none, *share_out(work, batches, workers)])

    def watch(self, prompt: str, seed: int = 1, settings: Denoising | None = None) -> list[Step]:
        """Paint one picture; return every step with its cross-attention and merged positions."""
        seen: list[Step] = []

        def keep(step: Step) -> None:
            assert step.trace is not None
            # The weights of self-attention, positions² for each head, would fill the memory.
            for name in [name for name in step.trace.weights if name.endswith(".self")]:
                del step.trace.weights[name]
            seen.append(step)

        ids = self.ids([prompt]).to(self.device)
        settings = settings or self.settings()
        denoise(self.model, self.process, ids, [seed], settings, watch=keep, traced=True)
        return seen

    def ids(self, prompts: Sequence[str]) -> Tensor:
        """Prompts → ids (B, S); refuse empty and endless ones."""
        texts = strings("prompts", prompts)
        for number, text in enumerate(texts, start=1):
            check_prompt(text, self.recipe.data.max_length, f"prompt {number}")
        return self.format.ids(texts)
