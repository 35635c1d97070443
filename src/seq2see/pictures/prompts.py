"""Format of a diffusion model: prompts as ids of words, pictures as numbers from −1 to 1."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from seq2see.errors import InputError
from seq2see.files import write_text
from seq2see.text.specials import PAD, SPECIALS
from seq2see.text.vocab import Vocab

FILE = "painting.json"
WORD = re.compile(r"\w+|[^\w\s]")

Shape = tuple[int, int, int]  # channels, height, width


def words_of(prompt: str) -> list[str]:
    """Split a prompt into lowercase words and punctuation marks."""
    return WORD.findall(prompt.lower())


def check_prompt(prompt: str, most: int, name: str) -> None:
    """Refuse a prompt without words or with more than data.max_length."""
    count = len(words_of(prompt))
    if not count:
        raise InputError(f"{name} ({prompt[:40]!r}) has no words")
    if count > most:
        rule = f"at most {most} are allowed (data.max_length)"
        raise InputError(f"{name} ({prompt[:40]!r}…) has {count:,} words; {rule}")


@dataclass(frozen=True)
class PaintingFormat:
    """Shape of a model's pictures, and the words of its prompts."""

    shape: Shape
    words: tuple[str, ...]

    @classmethod
    def of(cls, shape: Shape, prompts: Iterable[str]) -> "PaintingFormat":
        """Take every word of the training prompts, the most frequent first."""
        counts = Counter(word for prompt in prompts for word in words_of(prompt))
        vocabulary = Vocab.build(counts, min_frequency=1, size=None)
        return cls(shape, tuple(vocabulary.words(range(len(SPECIALS), len(vocabulary)))))

    @cached_property
    def vocabulary(self) -> Vocab:
        return Vocab(self.words)

    def save(self, folder: Path) -> None:
        values = {"shape": self.shape, "words": self.words}
        write_text(folder / FILE, json.dumps(values, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "PaintingFormat":
        path = folder / FILE
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            channels, height, width = map(int, values["shape"])
            words = tuple(map(str, values["words"]))
        except OSError as error:
            raise InputError(f"{path}: cannot read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(f"{path}: not the format of a painter: {error!r}") from None
        if channels not in (1, 3) or min(height, width) < 1:
            raise InputError(f"{path}: shape {values['shape']} must be 1 or 3 channels of pixels")
        return cls((channels, height, width), words)

    def unknown(self, prompt: str) -> list[str]:
        """List the words of a prompt that no training prompt has."""
        return [word for word in words_of(prompt) if word not in self.vocabulary]

    def ids(self, prompts: Sequence[str]) -> Tensor:
        """Prompts → padded ids (B, S)."""
        rows = [self.vocabulary.ids(words_of(prompt)) for prompt in prompts]
        longest = max([1, *map(len, rows)])
        padded = [row + [PAD] * (longest - len(row)) for row in rows]
        return torch.tensor(padded, dtype=torch.long).view(len(rows), longest)

    def numbers(self, pixels: Tensor) -> Tensor:
        """Bytes (B, C, H, W) → numbers from −1 to 1."""
        return pixels.float() / 127.5 - 1

    def pixels(self, numbers: Tensor) -> Tensor:
        """Numbers from −1 to 1, limited to them, → bytes (B, C, H, W)."""
        return (numbers.clamp(-1, 1) + 1).mul(127.5).round().to(torch.uint8)
