"""Text ↔ ids behind one protocol: words by spaCy's rules, or subwords or characters by SentencePiece (Kudo 2018)."""

import hashlib
import io
import json
import math
import random
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata, util
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Protocol

from seq2see.errors import InputError
from seq2see.files import sha256, write_atomically, write_text
from seq2see.recipe.schema import TokenizerConfig
from seq2see.text.vocab import BEGIN, END, PAD, SPECIALS, UNKNOWN, Vocab
from seq2see.text.words import detokenise, rules, whole

DEFAULT_SIZE = {"unigram": 8000, "bpe": 8000, "char": 1_000_000}  # of characters, all
TRAINING_PAIRS = 1_000_000  # more of them slow SentencePiece down and change its pieces little
N_BEST, SHARPNESS = 16, 0.2  # subword regularisation: l and α of Kudo (2018), section 3.2
CACHED_SENTENCES = 250_000  # n-best lists kept, at about a kilobyte each
Cuts = tuple[
    "array[int]", "array[int]", "array[float]"
]  # ids end to end, bounds, cumulative weights


class Tokenizer(Protocol):
    """What the rest of seq2see asks of a way to cut text."""

    def __len__(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...  # without BEGIN and END
    def decode(self, ids: Sequence[int]) -> str: ...  # detokenised text, without BEGIN, END and PAD
    def pieces(
        self, text: str
    ) -> list[str]: ...  # the text that each id of encode(text) stands for
    def sample(
        self, text: str, random: random.Random
    ) -> list[int]: ...  # another cut, if there is one
    def piece(self, id: int) -> str: ...  # as pictures show it
    def save(self, path: Path) -> None: ...


class Words:
    """Words and punctuation marks as spaCy's rules for the language cut them (no model download)."""

    def __init__(self, vocab: Vocab, language: str) -> None:
        self.vocab, self.language = vocab, language
        self._cut = rules(language)
        # German rules keep "T-Shirt" whole and English ones do not; so only there is a lone "-" a dash.
        self._splits_hyphens = len(self._cut("a-b")) == 3

    @classmethod
    def train(
        cls, texts: Iterable[str], language: str, min_frequency: int, size: int | None
    ) -> "Words":
        """Count the words of the training text; a rarer one than `min_frequency` is <unk>."""
        cut = rules(language)
        # White space counts: spaCy makes a token of the second of two spaces and of a no-break space. They
        # are among the 8,316 German and 6,384 English entries of Multi30k, and `decode` gives them back.
        counts = Counter(token.text for text in texts for token in cut(whole(text)))
        return cls(Vocab.build(counts, min_frequency, size), language)

    def __len__(self) -> int:
        return len(self.vocab)

    def encode(self, text: str) -> list[int]:
        return self.vocab.ids(self.pieces(text))

    def decode(self, ids: Sequence[int]) -> str:
        words = self.vocab.words(id for id in ids if id not in (BEGIN, END, PAD))
        return detokenise(words, self._splits_hyphens)

    def pieces(self, text: str) -> list[str]:
        return [token.text for token in self._cut(whole(text))]

    def sample(self, text: str, random: random.Random) -> list[int]:
        return self.encode(text)

    def piece(self, id: int) -> str:
        return self.vocab.words([id])[0]

    def save(self, path: Path) -> None:
        self.vocab.save(path)

    @classmethod
    def load(cls, path: Path, language: str) -> "Words":
        """Read the vocabulary that `save` wrote."""
        return cls(Vocab.load(path), language)


class Subwords:
    """SentencePiece: a unigram language model of pieces, byte-pair encoding, or one character each."""

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self._bytes = model
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces = range(len(self._model))
        if tuple(map(self._model.id_to_piece, pieces[:4])) != SPECIALS:
            raise ValueError(f"the first pieces must be {' '.join(SPECIALS)}")
        self._scores = [
            self._model.get_score(id) for id in pieces
        ]  # log p(piece); BPE: minus its rank
        self._cuts: dict[str, Cuts] = {}

    @classmethod
    def train(cls, texts: Iterable[str], kind: str, size: int) -> "Subwords":
        """Learn the pieces; the same text, kind and size give the same bytes."""
        import sentencepiece

        model = io.BytesIO()
        specials: Any = dict(
            bos_id=BEGIN, eos_id=END, pad_id=PAD, unk_id=UNKNOWN, pad_piece=SPECIALS[PAD]
        )
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=map(_tidy, texts),
                model_writer=model,
                model_type=kind,
                vocab_size=size,
                hard_vocab_limit=kind
                == "bpe",  # the others: a small corpus just gives fewer pieces
                **specials,
                # Each character of the training text is a piece, but for "char" and a small size; one that never
                # occurred there is <unk>. Byte fallback would spell it in 256 pieces whose embeddings no training
                # sentence ever touches.
                character_coverage=1.0,
                byte_fallback=False,
                normalization_rule_name="identity",  # NFKC would rewrite what the references keep: … ½ ，
                max_sentence_length=1 << 16,
                num_threads=4,  # fixed, since the sums of unigram training depend on it
                unk_surface=SPECIALS[UNKNOWN],
                minloglevel=3,  # its warnings come back as our errors
            )
        except RuntimeError as error:
            raise InputError(_why(str(error), size)) from None
        return cls(model.getvalue())

    def __len__(self) -> int:
        return len(self._scores)

    def encode(self, text: str) -> list[int]:
        return list(self._model.encode(_tidy(text)))

    def decode(self, ids: Sequence[int]) -> str:
        size = len(self)
        known = [id if 0 <= id < size else UNKNOWN for id in ids if id not in (BEGIN, END, PAD)]
        text = str(self._model.decode(known))
        return " ".join(text.split())  # a stray space mark is no text

    def pieces(self, text: str) -> list[str]:
        return list(self._model.encode(_tidy(text), out_type=str))

    def sample(self, text: str, random: random.Random) -> list[int]:
        """Draw from the n-best cuts with probability ∝ exp(α · log p)."""
        # By our generator, since SentencePiece's can be neither saved nor restored; and with a memory, since
        # the n best cost twenty times as much as the best alone and each epoch asks for the same sentences.
        found = self._cuts.get(text) or self._n_best(text)
        if len(self._cuts) < CACHED_SENTENCES:
            self._cuts[text] = found
        ids, bounds, cumulative = found
        chosen = random.choices(range(len(cumulative)), cum_weights=cumulative)[0]
        return ids[bounds[chosen] : bounds[chosen + 1]].tolist()

    def _n_best(self, text: str) -> Cuts:
        try:
            cuts = self._model.nbest_encode(_tidy(text), nbest_size=N_BEST, out_type=int)
        except (
            NotImplementedError,
            RuntimeError,
        ):  # byte-pair encoding and characters know one cut only
            cuts = []
        cuts = cuts or [self.encode(text)]
        scores = [SHARPNESS * sum(self._scores[id] for id in cut) for cut in cuts]
        cumulative = accumulate(math.exp(score - max(scores)) for score in scores)
        ids = array("H" if len(self) <= 1 << 16 else "i", chain.from_iterable(cuts))
        return ids, array("i", accumulate(map(len, cuts), initial=0)), array("d", cumulative)

    def piece(self, id: int) -> str:
        return str(self._model.id_to_piece(id if 0 <= id < len(self) else UNKNOWN))

    def save(self, path: Path) -> None:
        path.write_bytes(self._bytes)

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        """Read the model that `save` wrote, or another SentencePiece model with the same specials."""
        try:
            return cls(path.read_bytes())
        except OSError as error:
            raise InputError(f"{path}: cannot read the tokenizer: {error.strerror}") from None
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{path}: not a SentencePiece model of seq2see: {error}") from None


def _tidy(text: str) -> str:
    """Compose accents and make one space of any white space, so that looks alike means cut alike."""
    return " ".join(unicodedata.normalize("NFC", whole(text)).split())


def _why(message: str, size: int) -> str:
    """SentencePiece's own words for a size that does not fit, in ours."""
    if most := re.search(r"set it to a value <= (\d+)", message):
        return f"tokenizer.size = {size} is too large for this training text: at most {most[1]}"
    if least := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return f"tokenizer.size = {size} is too small: each character is an entry, so at least {least[1]}"
    if "empty()" in message:
        return "the tokenizer has no training text: every line is empty"
    return f"tokenizer.size = {size}: SentencePiece cannot train: {message}"


@dataclass(frozen=True)
class Tokenizers:
    """The two sides; one and the same object where they share a vocabulary."""

    source: Tokenizer
    target: Tokenizer
    languages: tuple[str, str] = ("", "")
    fingerprint: str = ""  # of what they were trained on, where they were loaded


def train(
    config: TokenizerConfig, source: str, target: str, pairs: Sequence[tuple[str, str]]
) -> Tokenizers:
    """Learn both sides from the training pairs."""
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    if config.kind == "words":
        first, second = (
            Words.train(texts, language, config.min_frequency, config.size)
            for texts, language in zip(sides, (source, target), strict=True)
        )
        return Tokenizers(first, second, (source, target))
    step = math.ceil(len(pairs) / TRAINING_PAIRS) or 1
    texts = (
        [chain(*(side[::step] for side in sides))]
        if config.joint
        else [side[::step] for side in sides]
    )
    subwords = [
        Subwords.train(text, config.kind, config.size or DEFAULT_SIZE[config.kind])
        for text in texts
    ]
    return Tokenizers(subwords[0], subwords[-1], (source, target))


def save(
    tokenizers: Tokenizers, directory: Path, config: TokenizerConfig, fingerprint: str
) -> None:
    """Write the files; `tokenizer.json` with their sums comes last."""
    names = _names(config.kind, config.joint)
    directory.mkdir(parents=True, exist_ok=True)
    sums = {}
    for name, tokenizer in zip(names, (tokenizers.source, tokenizers.target), strict=False):
        write_atomically(directory / name, tokenizer.save)
        sums[name] = sha256(directory / name)
    sizes = [len(tokenizers.source), len(tokenizers.target)]
    about: dict[str, Any] = {
        "kind": config.kind,
        "joint": len(names) == 1,
        "languages": tokenizers.languages,
    }
    about |= {"sizes": sizes, "fingerprint": fingerprint, "files": sums}
    write_text(directory / "tokenizer.json", json.dumps(about, indent=2) + "\n")


def load(directory: Path) -> Tokenizers:
    """Read what `save` wrote, and refuse a file that is not the one it wrote."""
    try:
        about = json.loads((directory / "tokenizer.json").read_bytes())
        names = _names(about["kind"], about["joint"])
        source, target = map(str, about["languages"])
        wrong = [name for name in names if sha256(directory / name) != about["files"][name]]
    except OSError as error:
        raise InputError(f"{error.filename}: cannot read the tokenizer: {error.strerror}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{directory}/tokenizer.json: does not describe a tokenizer: {error!r}"
        ) from None
    if wrong:
        raise InputError(
            f"{directory / wrong[0]}: SHA-256 is not the one that tokenizer.json names"
        )
    sides: list[Tokenizer]
    if about["kind"] == "words":
        sides = [Words.load(directory / names[0], source), Words.load(directory / names[1], target)]
    else:
        sides = [Subwords.load(directory / name) for name in names]
    return Tokenizers(sides[0], sides[-1], (source, target), str(about.get("fingerprint")))


def cached(
    config: TokenizerConfig,
    source: str,
    target: str,
    pairs: Sequence[tuple[str, str]],
    directory: Path,
) -> tuple[Tokenizers, bool]:
    """Take the tokenizers in the directory if they were trained on just this; otherwise train and save."""
    wanted = _fingerprint(config, source, target, pairs)
    try:
        found = load(directory)
        if found.fingerprint == wanted:
            return found, True
    except InputError:
        pass  # nothing here, or something broken: made anew
    tokenizers = train(config, source, target, pairs)
    save(tokenizers, directory, config, wanted)
    return tokenizers, False


def _names(kind: str, joint: bool) -> list[str]:
    if kind == "words":
        return ["words.source.txt", "words.target.txt"]
    return ["tokenizer.model"] if joint else ["tokenizer.source.model", "tokenizer.target.model"]


def _fingerprint(
    config: TokenizerConfig, source: str, target: str, pairs: Sequence[tuple[str, str]]
) -> str:
    """SHA-256 over all that the tokenizers are a function of."""
    library = "spacy" if config.kind == "words" else "sentencepiece"
    version = (
        metadata.version(library) if util.find_spec(library) else None
    )  # absent: training says so
    settings = config.model_dump(exclude={"sampling"})  # which cuts anew, but not into other pieces
    digest = hashlib.sha256(json.dumps([settings, source, target, library, version]).encode())
    for text in chain.from_iterable(pairs):
        encoded = text.encode("utf-8", "replace")
        digest.update(b"%d:%b" % (len(encoded), encoded))
    return digest.hexdigest()
