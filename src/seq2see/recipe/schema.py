"""The recipe: one TOML file says everything about one run, and nothing unknown or impossible passes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from seq2see.errors import InputError
from seq2see.recipe.network import Count, Section, Share, Whole
from seq2see.recipe.network import ModelConfig as ModelConfig
from seq2see.recipe.reduction import ReduceConfig as ReduceConfig
from seq2see.recipe.toml import first_problem, override, read, written
from seq2see.recipe.toml import shipped as shipped

Paths = str | list[str]


class DataConfig(Section):
    """Which text: a named corpus, or paths; two aligned files as a list, one TSV as a string. Or which pictures."""

    source: str = "de"  # language code; picks the file ending and spaCy's rules
    target: str = "en"
    corpus: Literal["captions", "multi30k", "digits", "fashion"] | None = None
    train: Paths | None = (
        None  # relative to --data, else to the working directory; of pictures: their folder
    )
    val: Paths | None = None
    test: dict[str, Paths] | Paths | None = None  # several test sets: a table of name = path
    columns: tuple[Whole, Whole] = (0, 1)  # of a TSV: where source and target stand
    hold_out: Whole = (
        1000  # pairs kept from training for val, and again for test, where those are not given
    )
    limit: Count | None = None  # train on the first so many only; captions: as many, of millions
    join: Count = 1  # so many consecutive pairs, of train, val and test alike, become one long pair
    max_length: Count = 128  # tokens on a side; longer pairs are left out of training and reported
    labels: Literal["language", "number"] | None = (
        None  # to classify: which side, or the number of a caption's subject
    )
    size: Count | None = (
        None  # pixels on a side that pictures are scaled to; else all are as large as the first
    )
    colour: bool = False  # picture files in red, green and blue; else in grey

    @field_validator("columns", mode="before")
    @classmethod
    def _columns_are_a_pair(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.corpus is None) == (self.train is None):
            raise ValueError("give either data.corpus (a name) or data.train (paths)")
        if self.corpus is not None and (self.val is not None or self.test is not None):
            raise ValueError(
                f"data.corpus {self.corpus!r} brings its own val and test; leave those keys out"
            )
        if self.source == self.target:
            raise ValueError(
                f"data.source and data.target are both {self.source!r}; they must differ"
            )
        if self.columns[0] == self.columns[1]:
            raise ValueError(f"data.columns {list(self.columns)} must name two different columns")
        tests = self.test if isinstance(self.test, dict) else {}
        lists = {"train": self.train, "val": self.val, "test": self.test}
        for key, paths in (
            lists | {f"test.{name}": paths for name, paths in tests.items()}
        ).items():
            if isinstance(paths, list) and len(paths) != 2:
                raise ValueError(
                    f"data.{key} lists {len(paths)} files; two aligned files are [source, target]"
                )
        return self


class TokenizerConfig(Section):
    """How text becomes ids."""

    kind: Literal["unigram", "bpe", "char", "words"] = "unigram"
    size: Annotated[int, Field(ge=8, le=1_000_000)] | None = (
        None  # by default 8000 subwords, else all there are
    )
    joint: bool = True  # one vocabulary for both languages (subwords only)
    min_frequency: Count = 2  # of words; a rarer one is <unk>
    sampling: Annotated[float, Field(ge=0.0, le=1.0)] = (
        0.0  # share of training sentences cut anew each epoch
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.sampling and self.kind != "unigram":
            raise ValueError(
                f"tokenizer.sampling needs tokenizer.kind 'unigram', not {self.kind!r}"
            )
        if self.joint and self.kind == "words" and "joint" in self.model_fields_set:
            raise ValueError(
                "tokenizer.joint is for subwords; words have one vocabulary per language"
            )
        return self


class TrainConfig(Section):
    """The budget, the batches, the optimizer; schedules count updates."""

    steps: Count | None = None  # the budget is exactly one of steps (updates), epochs and minutes
    epochs: Count | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None
    batch_tokens: Count | None = (
        None  # padded tokens on the longer side of a batch; by default 4096
    )
    batch_sentences: Count | None = None  # instead: a fixed number of pairs, or of pictures
    accumulate: Count = 1  # batches summed into one update
    optimizer: Literal["adam", "muon"] = (
        "adam"  # muon: for the matrices inside the network, Adam for the rest
    )
    schedule: Literal["inverse_sqrt", "linear"] = "inverse_sqrt"
    lr: Annotated[float, Field(gt=0)] | None = (
        None  # the peak; by default the paper's (width × warmup)^-0.5
    )
    warmup: Count = 4000  # updates until the peak
    decay: Annotated[float, Field(ge=0.0, le=1.0)] = (
        0.3  # linear: the last share of the budget, down to zero
    )
    label_smoothing: Share = 0.1  # ε
    smoothing: Literal["all", "others"] = (
        "all"  # ε/V over all classes, or ε/(V−2) over all but target and pad
    )
    clip: Annotated[float, Field(ge=0.0)] = 1.0  # largest gradient norm; 0 for none
    checkpoint_every: Count | None = None  # updates; by default each epoch, or ten times a run
    patience: Whole = 0  # stop after so many validations without a better one; 0 for never
    choose: Literal["loss", "bleu"] = "loss"  # what makes a validation better
    validate_sentences: Count = 500  # how many are translated at each validation
    average: Count = (
        1  # checkpoints averaged at the end; kept if that validates better than the best
    )
    average_of: Literal["last", "best"] = "last"
    ema: Share = 0.0  # decay of an exponential moving average of the weights; 0 for none
    seed: Annotated[int, Field(ge=0, lt=2**63)] = (
        1  # of all randomness: weights, dropout, order, cuts
    )

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


class AugmentConfig(Section):
    """How a training picture changes each time it is seen, drawn by seed, epoch and line."""

    shift: Whole = 0  # pixels that it moves at most, up or down and left or right
    flip: bool = False  # mirrored, every other time
    cut_out: Whole = 0  # pixels on a side of a square without content (DeVries and Taylor, 2017)


class DecodeConfig(Section):
    """How translations are searched."""

    beam: Annotated[int, Field(ge=1, le=64)] = 4  # hypotheses side by side; 1 is greedy
    length_penalty: Annotated[float, Field(ge=0.0, le=10.0)] = 0.6  # α; 0 for none
    max_ratio: Annotated[float, Field(gt=0, le=100.0)] = 2.0  # at most ratio × source tokens + 10
    min_length: Whole = 0  # target tokens before </s> may come


class Recipe(Section):
    """One run: data → tokenizer → model → train → decode."""

    task: str = "translate"  # one of the table in `tasks`, which checks the keys that are for some
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    augment: AugmentConfig = AugmentConfig()
    reduce: ReduceConfig = ReduceConfig()
    train: TrainConfig
    decode: DecodeConfig = DecodeConfig()

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.model.tie == "all" and not self.one_vocabulary:
            raise ValueError(
                "model.tie 'all' needs one vocabulary: tokenizer.joint = true and subwords"
            )
        for key, length in (
            ("data.max_length", self.data.max_length),
            ("decode.min_length", self.decode.min_length),
        ):
            if self.model.positions == "learned" and self.model.max_positions <= length:
                raise ValueError(
                    f"model.max_positions ({self.model.max_positions}) must be more than {key} ({length}): "
                    "</s> has a position, too"
                )
        return self

    @model_validator(mode="after")
    def _reducible(self) -> Self:
        self.reduce.check(self.model.encoder_layers)
        if self.reduce.kind == "none":
            return self
        if self.model.kind != "transformer":
            rule = "is for encoders of model.kind 'transformer'"
            raise ValueError(f"reduce.kind {self.reduce.kind!r} {rule}")
        if self.model.positions == "rotary":
            rule = "with [reduce] their positions change"
            raise ValueError(f"model.positions 'rotary' is for all tokens; {rule}")
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
        table = read(path)
        for each in overrides:
            override(table, each)
        try:
            return cls.model_validate(table)
        except ValidationError as error:
            raise InputError(f"{path}: {first_problem(error, cls.keys())}") from None

    def save(self, path: Path) -> None:
        """Write what was set (derived values stay derived) so that `load` gives this recipe again."""
        path.write_text(
            written(self.model_dump(exclude_unset=True, exclude_none=True)), encoding="utf-8"
        )

    @classmethod
    def keys(cls) -> list[str]:
        """All that a recipe may hold: each table, then its keys."""
        return [
            name
            for section, field in cls.model_fields.items()
            for name in (
                section,
                *(f"{section}.{key}" for key in getattr(field.annotation, "model_fields", ())),
            )
        ]
