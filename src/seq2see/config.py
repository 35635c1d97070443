"""The recipe: one TOML file says everything about one run, and nothing unknown or impossible passes."""

import difflib
import math
import os
import tomllib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from seq2see.errors import InputError

Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Paths = str | list[str]

# A recipe holds one key of each group, so that one given by --set takes the other's place.
RIVALS = (
    ("train.steps", "train.epochs", "train.minutes"),
    ("train.batch_tokens", "train.batch_sentences"),
    ("data.corpus", "data.train"),
)

# The keys of [model] that not every kind uses, and the kinds that do.
RECURRENT = ("rnn", "lstm", "gru")
BLOCKS = ("transformer", "prefix")
USED_BY = {
    **dict.fromkeys(("heads", "feed_forward", "norm", "attention_width", "attention_bias"), BLOCKS),
    **dict.fromkeys(("positions", "max_positions"), (*BLOCKS, "conv")),
    "embedding_init": BLOCKS,
    "decoder_layers": ("transformer", *RECURRENT, "conv"),  # prefix: one stack of encoder_layers
    "attend": RECURRENT,
    "kernel": ("conv",),
}


class Section(BaseModel):
    """A table of the recipe: typed, frozen, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DataConfig(Section):
    """Which text: a named corpus, or paths; two aligned files as a list, one TSV as a string."""

    source: str = "de"  # language code; picks the file ending and spaCy's rules
    target: str = "en"
    corpus: Literal["captions", "multi30k"] | None = None
    train: Paths | None = None  # relative to --data, else to the working directory
    val: Paths | None = None
    test: dict[str, Paths] | Paths | None = None  # several test sets: a table of name = path
    columns: tuple[Whole, Whole] = (0, 1)  # of a TSV: where source and target stand
    hold_out: Whole = 1000  # pairs kept from training for val, and again for test, where those are not given
    limit: Count | None = None  # train on the first so many pairs only; captions: as many, of millions
    max_length: Count = 128  # tokens on a side; longer pairs are left out of training and reported
    labels: Literal["language", "number"] | None = None  # to classify: which side, or the number of a caption's subject

    @field_validator("columns", mode="before")
    @classmethod
    def _columns_are_a_pair(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.corpus is None) == (self.train is None):
            raise ValueError("give either data.corpus (a name) or data.train (paths)")
        if self.corpus is not None and (self.val is not None or self.test is not None):
            raise ValueError(f"data.corpus {self.corpus!r} brings its own val and test; leave those keys out")
        if self.source == self.target:
            raise ValueError(f"data.source and data.target are both {self.source!r}; they must differ")
        if self.columns[0] == self.columns[1]:
            raise ValueError(f"data.columns {list(self.columns)} must name two different columns")
        tests = self.test if isinstance(self.test, dict) else {}
        lists = {"train": self.train, "val": self.val, "test": self.test}
        for key, paths in (lists | {f"test.{name}": paths for name, paths in tests.items()}).items():
            if isinstance(paths, list) and len(paths) != 2:
                raise ValueError(f"data.{key} lists {len(paths)} files; two aligned files are [source, target]")
        return self


class TokenizerConfig(Section):
    """How text becomes ids."""

    kind: Literal["unigram", "bpe", "words"] = "unigram"
    size: Annotated[int, Field(ge=8, le=1_000_000)] | None = None  # by default 8000 subwords, or all frequent words
    joint: bool = True  # one vocabulary for both languages (subwords only)
    min_frequency: Count = 2  # of words; a rarer one is <unk>
    sampling: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0  # share of training sentences cut anew each epoch

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.sampling and self.kind != "unigram":
            raise ValueError(f"tokenizer.sampling needs tokenizer.kind 'unigram', not {self.kind!r}")
        if self.joint and self.kind == "words" and "joint" in self.model_fields_set:
            raise ValueError("tokenizer.joint is for subwords; words have one vocabulary per language")
        return self


class ModelConfig(Section):
    """The network, in the paper's words (section 3, table 3)."""

    kind: Literal["transformer", "rnn", "lstm", "gru", "conv", "prefix"] = "transformer"
    width: Count = 256  # d_model
    heads: Count = 4  # h; each looks through attention_width / heads numbers
    encoder_layers: Count = 3  # N
    decoder_layers: Count = 3  # N
    feed_forward: Count | None = None  # by default 4 × width
    dropout: Share = 0.1  # P_drop: on embeddings, residuals and inside the feed-forward
    attention_dropout: Share = 0.0  # on the attention weights
    norm: Literal["pre", "post"] = "pre"  # before each sublayer, or after it as in the paper
    score: Literal["scaled_dot", "dot", "unscaled", "bilinear", "projected", "additive"] = "scaled_dot"
    attention_width: Count | None = None  # numbers that all heads together look through; by default width
    attention_bias: bool = True
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"  # none: a bag of words
    max_positions: Count = 256  # how many are learned; with the other kinds a sentence may have any length
    embedding_init: Literal["normal", "xavier"] = "normal"  # normal: standard deviation width^-0.5
    tie: Literal["all", "target", "none"] | None = None  # share embeddings; by default all with one vocabulary
    attend: bool = True  # rnn, lstm, gru: look at all states of the encoder; false: the last one is all there is
    kernel: Count = 3  # conv: words that a layer sees at once

    @model_validator(mode="after")
    def _used(self) -> Self:
        for key, kinds in USED_BY.items():
            if key in self.model_fields_set and self.kind not in kinds:
                known = " or ".join(map(repr, kinds))
                raise ValueError(f"model.{key} is for model.kind {known}, not for {self.kind!r}")
        for key in ("score", "attention_dropout"):
            if key in self.model_fields_set and not self.attend:
                raise ValueError(f"model.{key} is for attention, and model.attend is false")
        return self

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        if self.kind in RECURRENT and self.width % 2:
            raise ValueError(f"model.width ({self.width}) must be even: half of it reads the source from each end")
        if self.kind == "conv" and self.positions == "rotary":
            raise ValueError("model.positions 'rotary' is for self-attention, which model.kind 'conv' has not")
        if self.kind == "prefix" and self.positions == "rotary":
            raise ValueError(
                "model.positions 'rotary' is for one sequence; of model.kind 'prefix' both sides begin at 0"
            )
        name = "width" if self.attention_width is None else "attention_width"
        if self.kind in BLOCKS and getattr(self, name) % self.heads:
            raise ValueError(f"model.{name} ({getattr(self, name)}) must be divisible by model.heads ({self.heads})")
        if self.positions == "rotary" and self.head_size % 2:
            raise ValueError(f"model.{name} / model.heads ({self.head_size}) must be even for rotary positions")
        if self.positions == "sinusoidal" and self.width % 2:
            raise ValueError(f"model.width ({self.width}) must be even for sinusoidal positions")
        return self

    @property
    def inner(self) -> int:
        return self.feed_forward or 4 * self.width

    @property
    def head_size(self) -> int:
        return (self.attention_width or self.width) // self.heads

    @property
    def attention(self) -> dict[str, Any]:
        """What every attention of the network is told, in the words of `MultiHeadAttention`."""
        return {
            "inner": self.attention_width,
            "bias": self.attention_bias,
            "dropout": self.attention_dropout,
            "score": self.score,
        }


class TrainConfig(Section):
    """The budget, the batches, the optimizer; schedules count updates."""

    steps: Count | None = None  # the budget is exactly one of steps (updates), epochs and minutes
    epochs: Count | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None
    batch_tokens: Count | None = None  # padded tokens on the longer side of a batch; by default 4096
    batch_sentences: Count | None = None  # instead: a fixed number of pairs
    accumulate: Count = 1  # batches summed into one update
    optimizer: Literal["adam", "muon"] = "adam"  # muon: for the matrices inside the network, Adam for the rest
    schedule: Literal["inverse_sqrt", "linear"] = "inverse_sqrt"
    lr: Annotated[float, Field(gt=0)] | None = None  # the peak; by default the paper's (width × warmup)^-0.5
    warmup: Count = 4000  # updates until the peak
    decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.3  # linear: the last share of the budget, down to zero
    label_smoothing: Share = 0.1  # ε
    smoothing: Literal["all", "others"] = "all"  # ε/V over all classes, or ε/(V−2) over all but target and pad
    clip: Annotated[float, Field(ge=0.0)] = 1.0  # largest gradient norm; 0 for none
    checkpoint_every: Count | None = None  # updates; by default each epoch, or ten times a run
    patience: Whole = 0  # stop after so many validations without a better one; 0 for never
    choose: Literal["loss", "bleu"] = "loss"  # what makes a validation better
    validate_sentences: Count = 500  # how many are translated at each validation
    average: Count = 1  # checkpoints averaged at the end; kept if that validates better than the best
    average_of: Literal["last", "best"] = "last"
    ema: Share = 0.0  # decay of an exponential moving average of the weights; 0 for none
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1  # of all randomness: weights, dropout, order, cuts

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        budgets = [key for key in ("steps", "epochs", "minutes") if getattr(self, key) is not None]
        if len(budgets) != 1:
            raise ValueError(
                "give exactly one of train.steps, train.epochs and train.minutes, "
                f"not {' and '.join(budgets) or 'none'}"
            )
        if self.batch_tokens is not None and self.batch_sentences is not None:
            raise ValueError("give train.batch_tokens or train.batch_sentences, not both")
        return self

    def peak(self, width: int) -> float:
        """The highest learning rate: the paper's (d · warmup)^-0.5 unless the recipe sets one (section 5.3)."""
        return self.lr if self.lr is not None else (width * self.warmup) ** -0.5


class DecodeConfig(Section):
    """How translations are searched."""

    beam: Annotated[int, Field(ge=1, le=64)] = 4  # hypotheses side by side; 1 is greedy
    length_penalty: Annotated[float, Field(ge=0.0, le=10.0)] = 0.6  # α; 0 for none
    max_ratio: Annotated[float, Field(gt=0, le=100.0)] = 2.0  # at most ratio × source tokens + 10
    min_length: Whole = 0  # target tokens before </s> may come


class Recipe(Section):
    """One run: data → tokenizer → model → train → decode."""

    task: Literal["translate", "language", "masked", "classify"] = "translate"  # all but the first read data.target
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig
    decode: DecodeConfig = DecodeConfig()

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.model.tie == "all" and not self.one_vocabulary:
            raise ValueError("model.tie 'all' needs one vocabulary: tokenizer.joint = true and subwords")
        for key, length in (("data.max_length", self.data.max_length), ("decode.min_length", self.decode.min_length)):
            if self.model.positions == "learned" and self.model.max_positions <= length:
                raise ValueError(
                    f"model.max_positions ({self.model.max_positions}) must be more than {key} ({length}): "
                    "</s> has a position, too"
                )
        return self

    @model_validator(mode="after")
    def _of_one_side(self) -> Self:
        if (self.task == "classify") != (self.data.labels is not None):
            raise ValueError("data.labels says what task 'classify' learns: both, or neither")
        if self.data.labels == "number" and self.data.corpus != "captions":
            raise ValueError("data.labels 'number' is known of data.corpus 'captions' alone")
        if self.data.labels == "language" and not self.one_vocabulary:
            raise ValueError("data.labels 'language' needs one vocabulary: tokenizer.joint = true and subwords")
        if self.task != "translate":
            if self.model.kind != "transformer" or "decoder_layers" in self.model.model_fields_set:
                keys = "leave model.kind and model.decoder_layers out"
                raise ValueError(f"task {self.task!r} is one stack of model.encoder_layers; {keys}")
            if self.train.choose == "bleu":
                raise ValueError(f"train.choose 'bleu' is for task 'translate'; {self.task!r} is chosen by its loss")
        return self

    @property
    def one_vocabulary(self) -> bool:
        return self.tokenizer.joint and self.tokenizer.kind != "words"

    @property
    def tie(self) -> str:
        return self.model.tie or ("all" if self.one_vocabulary else "target")

    @classmethod
    def load(cls, path: str | Path, overrides: Iterable[str] = ()) -> "Recipe":
        """Read a TOML file, or a recipe that seq2see ships by its bare name, with `section.key=value` overrides."""
        table = _read(path)
        for override in overrides:
            _override(table, override)
        try:
            return cls.model_validate(table)
        except ValidationError as error:
            raise InputError(f"{path}: {_first_problem(error)}") from None

    def save(self, path: Path) -> None:
        """Write what was set (derived values stay derived) so that `load` gives this recipe again."""
        sections = self.model_dump(exclude_unset=True, exclude_none=True)
        lines: list[str] = []
        if "task" in sections:  # what belongs to no table stands before the first
            lines += [f"task = {_toml(sections.pop('task'))}", ""]
        for name, section in sections.items():
            lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in section.items()), ""]
        path.write_text("\n".join(lines), encoding="utf-8")


def shipped() -> list[str]:
    """The names of the recipes that come with the package."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files("seq2see.recipes").iterdir()
        if entry.name.endswith(".toml")
    )


def _read(path: str | Path) -> dict[str, Any]:
    try:
        if str(path) in shipped() and not Path(path).is_file():
            text = (resources.files("seq2see.recipes") / f"{path}.toml").read_text(encoding="utf-8")
        else:
            text = Path(path).read_bytes().decode("utf-8-sig")
        return tomllib.loads(text)
    except FileNotFoundError:
        known = ", ".join(shipped())
        raise InputError(f"{path}: no such recipe; a path, or one that is shipped: {known}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the recipe: {os.strerror(error.errno or 0)}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; a recipe is a TOML text file") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None


def _override(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and section and name):
        raise InputError(f"--set {override!r}: write it as section.key=value, like train.lr=0.002")
    try:
        value: Any = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string: --set model.norm=post
    rows = table.setdefault(section, {})
    if not isinstance(rows, dict):
        raise InputError(f"--set {override!r}: {section!r} is not a table of the recipe")
    for rivals in RIVALS:
        if key.strip() in rivals:
            for rival in rivals:
                rows.pop(rival.partition(".")[2], None)
    rows[name] = value


def _first_problem(error: ValidationError) -> str:
    # An unknown key is often the misspelt one that then counts as missing: it comes first.
    problem = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    place = [str(part) for part in problem["loc"] if part not in ("str", "list[str]", "dict[str,union[str,list[str]]]")]
    key = ".".join(place)
    if problem["type"] == "extra_forbidden":
        nearest = _nearest(place)
        hint = f"did you mean {nearest}?" if nearest else f"known: {', '.join(_siblings(place))}"
        return f"unknown key {key}; {hint}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    if problem["type"] == "value_error":
        return problem["msg"].removeprefix("Value error, ")
    return f"{key} = {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _known_keys() -> list[str]:
    return [
        name
        for section, field in Recipe.model_fields.items()
        for name in (section, *(f"{section}.{key}" for key in getattr(field.annotation, "model_fields", ())))
    ]


def _nearest(place: list[str]) -> str | None:
    """The known key that an unknown one stands for: misspelt, or else in the wrong table."""
    for keys, cutoff in ((_siblings(place), 0.6), (_known_keys(), 0.8)):
        names = {key.rpartition(".")[2]: key for key in keys}
        for name in difflib.get_close_matches(place[-1], names, n=1, cutoff=cutoff):
            return names[name]
    return None


def _siblings(place: list[str]) -> list[str]:
    prefix = ".".join(place[:-1])
    return [key for key in _known_keys() if key.rpartition(".")[0] == prefix]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(
            f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else f"\\{c}" if c in '"\\' else c for c in value
        )
        return f'"{escaped}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    return str(value)
