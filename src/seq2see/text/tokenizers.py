"""Tokenizers behind one protocol: trained for a pair of languages, saved, loaded and cached."""

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from seq2see.errors import InputError
from seq2see.files import sha256, write_atomically, write_text
from seq2see.recipe.schema import TokenizerConfig
from seq2see.text.documents.names import EMPTY, MOST, Lexicon, common_names
from seq2see.text.lines import Pair
from seq2see.text.normalising import Form
from seq2see.text.parallel import Digest, Pairs
from seq2see.text.progress import Progress, silent, watched
from seq2see.text.segmenters import LIBRARIES, name_of, segmenter
from seq2see.text.subwords import Subwords
from seq2see.text.words import Words

LEXICON = "lexicon.txt"
DEFAULT_SIZE = {"unigram": 8000, "bpe": 8000, "char": 1_000_000}  # char: every character
# More text slows SentencePiece down and hardly changes its pieces.
TRAINING_PAIRS = 200_000
TRAINING_CHARACTERS = 20_000_000  # SentencePiece takes about 20 bytes for each

# Keys that tokenizer.json lacked in earlier versions.
EARLIER: dict[str, Any] = {
    "fingerprint": None,
    "normalise": None,
    "notes": [],
    "segmenters": [{"name": "spacy", "spaced": []}] * 2,
}


class Tokenizer(Protocol):
    """Mapping between text and ids."""

    normalise: Form  # of a text before it is split

    def __len__(self) -> int: ...

    def encode(self, text: str) -> list[int]:
        """Convert text to ids, without BEGIN and END."""

    def decode(self, ids: Sequence[int]) -> str:
        """Convert ids to detokenised text; BEGIN, END and PAD are skipped."""

    def pieces(self, text: str) -> list[str]:
        """Split text into the strings that the ids of `encode(text)` stand for."""

    def sample(self, text: str, generator: random.Random) -> list[int]:
        """Draw a segmentation of the text; `encode(text)` where there is only one."""

    def piece(self, id: int) -> str:
        """Return the string of an id, as figures show it."""

    def save(self, path: Path) -> None: ...


@dataclass(frozen=True)
class Tokenizers:
    """Tokenizers of both sides; the same object twice where the vocabulary is shared."""

    source: Tokenizer
    target: Tokenizer
    languages: tuple[str, str] = ("", "")
    fingerprint: str = ""  # of the training text and settings; set by `load`
    pairs: int = 0  # that they were trained on; set by `train`
    lexicon: Lexicon = EMPTY  # the source words that subwords were trained on
    notes: tuple[str, ...] = ()  # remarks for the user on the training text


def train(
    config: TokenizerConfig, source: str, target: str, pairs: Pairs, progress: Progress = silent
) -> Tokenizers:
    """Train the tokenizers of both sides on the training pairs, subwords on a sample of them."""
    languages = (source, target)
    if config.kind == "words":
        words = []
        for side, language in enumerate(languages):
            counted = watched(pairs, f"counting the words of {language}", progress)
            spoken = (pair[side] for pair in counted)
            name = name_of(language, config.segmenter)
            limits = config.min_frequency, config.size
            words.append(Words.train(spoken, language, *limits, name, config.normalise))
        return Tokenizers(words[0], words[1], languages, pairs=len(pairs))
    drawn = sample(pairs, progress)
    sides = [list(texts) for texts in zip(*drawn, strict=True)]
    if config.joint:
        sides = [sides[0] + sides[1]]
    size = config.size or DEFAULT_SIZE[config.kind]
    bytes_and_digits = bool(config.byte_fallback), bool(config.split_digits)
    subwords = []
    notes = []
    for texts, language in zip(sides, languages, strict=False):
        whole = len(pairs) * (3 - len(sides))
        share = f"{len(texts):,} sentences"
        if len(texts) < whole:
            share = f"{len(texts):,} of {whole:,} sentences"
        progress(f"training the tokenizer on {share}", None)
        trained = Subwords.train(texts, config.kind, size, *bytes_and_digits, config.normalise)
        subwords.append(trained)
        if trained.note:
            notes.append(trained.note if config.joint else f"{language}: {trained.note}")
    lexicon = Lexicon.of((source for source, _ in drawn), common_names(drawn))
    pair = Tokenizers(subwords[0], subwords[-1], languages, lexicon=lexicon)
    return replace(pair, pairs=len(drawn), notes=tuple(notes))


def sample(pairs: Pairs, progress: Progress = silent) -> list[Pair]:
    """Draw pairs to train subwords on; all if there is little text.

    Pairs with a character that none before them has are taken, too: every character of the
    training text is to have a piece.
    """
    if len(pairs) <= TRAINING_PAIRS:
        drawn = list(pairs)
    else:
        stage = f"drawing {TRAINING_PAIRS:,} of {len(pairs):,} pairs for the tokenizer"
        drawn = _drawn(watched(pairs, stage, progress), len(pairs), TRAINING_PAIRS)
    characters = sum(len(source) + len(target) for source, target in drawn)
    if characters <= TRAINING_CHARACTERS:
        return drawn
    return _drawn(drawn, len(drawn), len(drawn) * TRAINING_CHARACTERS // characters)


def _drawn(pairs: Iterable[Pair], size: int, count: int) -> list[Pair]:
    """Draw `count` of `size` pairs, and take those with a new character."""
    is_drawn = bytearray(size)
    for line in random.Random("tokenizer").sample(range(size), count):
        is_drawn[line] = True
    characters: set[str] = set()
    chosen = []
    for pair, taken in zip(pairs, is_drawn, strict=True):
        if taken or not characters.issuperset(pair[0] + pair[1]):
            characters.update(*pair)
            chosen.append(pair)
    return chosen


def save(
    tokenizers: Tokenizers, directory: Path, config: TokenizerConfig, fingerprint: str
) -> None:
    """Write the tokenizers' files, then `tokenizer.json` with their checksums."""
    names = _file_names(config.kind, config.joint)
    directory.mkdir(parents=True, exist_ok=True)
    checksums = {}
    for name, tokenizer in zip(names, (tokenizers.source, tokenizers.target), strict=False):
        write_atomically(directory / name, tokenizer.save)
        checksums[name] = sha256(directory / name)
    if tokenizers.lexicon.words:
        write_text(directory / LEXICON, tokenizers.lexicon.text())
        checksums[LEXICON] = sha256(directory / LEXICON)
    about: dict[str, Any] = {
        "kind": config.kind,
        "joint": len(names) == 1,
        "languages": tokenizers.languages,
        "sizes": [len(tokenizers.source), len(tokenizers.target)],
        "normalise": tokenizers.source.normalise,
        "fingerprint": fingerprint,
        "notes": tokenizers.notes,
        "files": checksums,
    }
    sides = (tokenizers.source, tokenizers.target)
    rules = [side.segmenter for side in sides if isinstance(side, Words)]
    if rules:
        about["segmenters"] = [{"name": rule.name, "spaced": rule.spaced} for rule in rules]
    write_text(directory / "tokenizer.json", json.dumps(about, indent=2) + "\n")


def load(directory: Path) -> Tokenizers:
    """Read the tokenizers that `save` wrote; refuse files with other checksums."""
    try:
        about = EARLIER | json.loads((directory / "tokenizer.json").read_bytes())
        names = _file_names(about["kind"], about["joint"])
        if LEXICON in about["files"]:  # absent where words are the vocabulary
            names.append(LEXICON)
        languages = str(about["languages"][0]), str(about["languages"][1])
        changed = [name for name in names if sha256(directory / name) != about["files"][name]]
        form = about["normalise"] or _earlier_form(about["kind"])
        rules = [(str(rule["name"]), rule["spaced"]) for rule in about["segmenters"]]
    except OSError as error:
        raise InputError(f"{error.filename}: cannot read the tokenizer: {error.strerror}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{directory}/tokenizer.json: does not describe a tokenizer: {error!r}"
        ) from None
    if changed:
        raise InputError(f"{directory / changed[0]}: its SHA-256 is not the one in tokenizer.json")
    lexicon = EMPTY
    if names[-1] == LEXICON:
        names.pop()
        lexicon = Lexicon.read((directory / LEXICON).read_text(encoding="utf-8"))
    sides: list[Tokenizer] = []
    for name, language, (rule, spaced) in zip(names, languages, rules, strict=False):
        path = directory / name
        if about["kind"] == "words":
            sides.append(Words.load(path, segmenter(rule, language, spaced), form))
        else:
            sides.append(Subwords.load(path, form))
    fingerprint, notes = str(about["fingerprint"]), tuple(map(str, about["notes"]))
    return Tokenizers(sides[0], sides[-1], languages, fingerprint, notes=notes, lexicon=lexicon)


def identity(directory: Path) -> dict[str, Any]:
    """The facts that the ids of a text depend on: the files' SHA-256, and the settings.

    Settings as in earlier versions, which did not say them, are left out.
    """
    about = EARLIER | json.loads((directory / "tokenizer.json").read_bytes())
    sums: dict[str, Any] = {name: sum for name, sum in about["files"].items() if name != LEXICON}
    if about["normalise"] not in (None, _earlier_form(about["kind"])):
        sums["normalise"] = about["normalise"]
    names = [rule["name"] for rule in about["segmenters"]]
    if set(names) != {"spacy"}:
        sums["segmenters"] = names
    return sums


def cached(
    config: TokenizerConfig,
    source: str,
    target: str,
    pairs: Pairs,
    directory: Path,
    progress: Progress = silent,
    digest: str | None = None,
    shared: Path | None = None,
) -> tuple[Tokenizers, bool]:
    """Load the directory's tokenizers if their fingerprint fits; otherwise train and save new ones.

    The flag is true where they were loaded. The digest is that of the pairs, if it is known. A
    `shared` folder keeps tokenizers for all runs.
    """
    fingerprint = _fingerprint(config, source, target, digest or Digest.of(pairs))
    places = [directory]
    if shared is not None:
        places.append(shared / f"tokenizer-{fingerprint[:16]}")
    for place in places:
        try:
            tokenizers = load(place)
        except InputError:
            continue  # absent or damaged
        if tokenizers.fingerprint == fingerprint:
            if place != directory:
                save(tokenizers, directory, config, fingerprint)
            return tokenizers, True
    tokenizers = train(config, source, target, pairs, progress)
    for place in places:
        save(tokenizers, place, config, fingerprint)
    return tokenizers, False


def _file_names(kind: str, joint: bool) -> list[str]:
    if kind == "words":
        return ["words.source.txt", "words.target.txt"]
    return ["tokenizer.model"] if joint else ["tokenizer.source.model", "tokenizer.target.model"]


def _earlier_form(kind: str) -> Form:
    """The normalisation of earlier versions, which had no key for it."""
    return "none" if kind == "words" else "nfc"


def _fingerprint(config: TokenizerConfig, source: str, target: str, digest: str) -> str:
    """Hash everything that training depends on: settings, languages, library versions, text."""
    libraries = ["sentencepiece"]
    settings = config.model_dump(exclude={"sampling"})  # sampling leaves the pieces as they are
    # As in earlier versions, which did not have these keys.
    for key in ("byte_fallback", "split_digits"):
        if not settings[key]:
            del settings[key]
    if config.kind == "words":
        names = [name_of(language, config.segmenter) for language in (source, target)]
        libraries = sorted({library for name in names for library in LIBRARIES[name]})
    else:
        del settings["segmenter"]
    if config.normalise == _earlier_form(config.kind):
        del settings["normalise"]
    versions = [_version(library) for library in libraries]
    limits = [TRAINING_PAIRS, TRAINING_CHARACTERS, MOST]
    about = [settings, source, target, *libraries, *versions, digest, limits]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _version(library: str) -> str | None:
    """The version of a library; if it is not installed, training raises the error."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None
