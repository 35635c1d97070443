"""Subword tokenizer: SentencePiece's unigram model, byte-pair encoding, or characters."""

import io
import math
import random
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

from seq2see.errors import InputError
from seq2see.text import alphabet
from seq2see.text.normalising import Form, normalised
from seq2see.text.specials import BEGIN, END, PAD, SPECIALS, UNKNOWN

N_BEST = 16  # subword regularisation: l in Kudo (2018), section 3.2
SHARPNESS = 0.2  # α there
LONGEST_LINE = 1 << 14  # characters; SentencePiece skips longer lines of its training text
CACHED_SENTENCES = 250_000  # n-best lists kept in memory, about a kilobyte each


class Segmentations(NamedTuple):
    """N-best segmentations of one sentence, packed into arrays."""

    ids: "array[int]"  # of all segmentations, concatenated
    bounds: "array[int]"  # segmentation i is ids[bounds[i] : bounds[i + 1]]
    weights: "array[float]"  # cumulative


class Subwords:
    """SentencePiece model (Kudo 2018) whose first four pieces are the special symbols."""

    note = ""  # on the characters of the training text; known after training alone

    def __init__(self, model: bytes, normalise: Form = "nfc") -> None:
        import sentencepiece

        self.normalise = normalise
        self._bytes = model
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = range(len(self._model))
        if tuple(map(self._model.id_to_piece, ids[:4])) != SPECIALS:
            raise ValueError(f"the first pieces must be {' '.join(SPECIALS)}")
        self._scores = [self._model.get_score(id) for id in ids]  # log p(piece); BPE: −rank
        self._segmentations: dict[str, Segmentations] = {}

    @classmethod
    def train(
        cls,
        texts: Sequence[str],
        kind: str,
        size: int,
        byte_fallback: bool = False,
        split_digits: bool = False,
        normalise: Form = "nfc",
    ) -> "Subwords":
        """Learn the pieces; equal text and settings give equal bytes.

        Without `byte_fallback`, every character of the text is a piece (a small "char" vocabulary
        drops the rarest), and any other one is <unk>. With it, rare characters are spelled in
        bytes, so that the text trains the pieces of these, too.
        """
        import sentencepiece

        texts = [part for text in texts for part in _parts(_composed(text, normalise))]
        model = io.BytesIO()
        counts: Counter[str] = Counter()
        if byte_fallback or split_digits:
            counts = alphabet.characters(texts)
        specials: dict[str, Any] = {
            "bos_id": BEGIN,
            "eos_id": END,
            "pad_id": PAD,
            "unk_id": UNKNOWN,
            "pad_piece": SPECIALS[PAD],
            "unk_surface": SPECIALS[UNKNOWN],
        }
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=model,
                model_type=kind,
                vocab_size=size,
                hard_vocab_limit=kind == "bpe",  # other kinds: a small corpus gives fewer pieces
                byte_fallback=byte_fallback,
                normalization_rule_name="identity",  # NFKC would rewrite …, ½ and ，
                max_sentence_length=4 * LONGEST_LINE,  # in bytes
                num_threads=4,  # fixed, since the sums of unigram training depend on it
                minloglevel=3,  # its warnings reach the user as our errors
                **specials,
                **_alphabet_options(counts, kind, size, byte_fallback, split_digits),
            )
        except RuntimeError as error:
            raise InputError(_explain(str(error), size)) from None
        trained = cls(model.getvalue(), normalise)
        trained.note = trained._note(counts) if byte_fallback else ""
        return trained

    def _note(self, counts: Counter[str]) -> str:
        spelled = [char for char in counts if self._model.piece_to_id(char) == UNKNOWN]
        return alphabet.note(counts, spelled)

    def __len__(self) -> int:
        return len(self._scores)

    def encode(self, text: str) -> list[int]:
        return list(self._model.encode(_composed(text, self.normalise)))

    def decode(self, ids: Sequence[int]) -> str:
        size = len(self)
        known = [id if 0 <= id < size else UNKNOWN for id in ids if id not in (BEGIN, END, PAD)]
        text = str(self._model.decode(known)).replace("\0", "\ufffd")  # the piece of the byte 0
        return " ".join(text.split())  # a model may emit superfluous space marks

    def pieces(self, text: str) -> list[str]:
        return list(self._model.encode(_composed(text, self.normalise), out_type=str))

    def sample(self, text: str, generator: random.Random) -> list[int]:
        """Draw one of the n best segmentations with probability ∝ exp(α · log p)."""
        # We draw ourselves, since the state of SentencePiece's generator can be neither saved nor
        # restored. We cache, since the n best cost twenty times as much as the best alone and
        # every epoch asks for the same sentences.
        segmentations = self._segmentations.get(text) or self._n_best(text)
        if len(self._segmentations) < CACHED_SENTENCES:
            self._segmentations[text] = segmentations
        ids, bounds, weights = segmentations
        chosen = generator.choices(range(len(weights)), cum_weights=weights)[0]
        return ids[bounds[chosen] : bounds[chosen + 1]].tolist()

    def _n_best(self, text: str) -> Segmentations:
        try:
            n_best = self._model.nbest_encode(
                _composed(text, self.normalise), nbest_size=N_BEST, out_type=int
            )
        except (NotImplementedError, RuntimeError):
            n_best = []  # byte-pair encoding and characters have a single segmentation
        n_best = n_best or [self.encode(text)]
        scores = [SHARPNESS * sum(self._scores[id] for id in ids) for ids in n_best]
        weights = accumulate(math.exp(score - max(scores)) for score in scores)
        bounds = accumulate(map(len, n_best), initial=0)
        id_type = "H" if len(self) <= 1 << 16 else "i"
        ids = array(id_type, chain.from_iterable(n_best))
        return Segmentations(ids, array("i", bounds), array("d", weights))

    def piece(self, id: int) -> str:
        return str(self._model.id_to_piece(id if 0 <= id < len(self) else UNKNOWN))

    def save(self, path: Path) -> None:
        path.write_bytes(self._bytes)

    @classmethod
    def load(cls, path: Path, normalise: Form = "nfc") -> "Subwords":
        """Read the model that `save` wrote, or another one with the same special symbols."""
        try:
            return cls(path.read_bytes(), normalise)
        except OSError as error:
            raise InputError(f"{path}: cannot read the tokenizer: {error.strerror}") from None
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{path}: not a SentencePiece model of seq2see: {error}") from None


def _composed(text: str, form: Form) -> str:
    """Normalise and collapse white space: text that looks equal encodes equally."""
    return " ".join(normalised(text, form).split())


def _parts(text: str) -> list[str]:
    """Cut a long line into those that SentencePiece is trained on."""
    starts = range(0, max(1, len(text)), LONGEST_LINE)
    return [text[start : start + LONGEST_LINE] for start in starts]


def _alphabet_options(
    counts: Counter[str], kind: str, size: int, byte_fallback: bool, split_digits: bool
) -> dict[str, Any]:
    """SentencePiece's options on characters; those at their default are left out of the model."""
    options: dict[str, Any] = {"character_coverage": 1.0}
    digits: list[str] = []
    if split_digits:
        options["split_digits"] = True  # 0 to 9
    if split_digits and kind != "char":
        options["user_defined_symbols"] = digits = alphabet.digits(counts)
    if byte_fallback and counts.total():  # SentencePiece refuses to learn from no text
        chosen = alphabet.frequent(counts, size)
        options["character_coverage"] = alphabet.coverage(counts)
        options["required_chars"] = "".join(char for char in chosen if char not in digits)
    return options


def _explain(message: str, size: int) -> str:
    """Translate SentencePiece's complaint about a vocabulary size into the recipe's terms."""
    if most := re.search(r"set it to a value <= (\d+)", message):
        return f"tokenizer.size = {size} is too large for this training text: at most {most[1]}"
    if least := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return (
            f"tokenizer.size = {size} is too small: each character needs an entry, "
            f"so at least {least[1]}"
        )
    if "empty()" in message:
        return "the tokenizer has no training text: every line is empty"
    return f"tokenizer.size = {size}: SentencePiece cannot train: {message}"
