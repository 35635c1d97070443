"""The recipe: one TOML file describes one run; unknown keys and impossible values are refused."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from seq2see.errors import InputError
from seq2see.recipe.diffusion import DiffusionConfig as DiffusionConfig
from seq2see.recipe.network import Count, Section, Share, Whole
from seq2see.recipe.network import ModelConfig as ModelConfig
from seq2see.recipe.reduction import ReduceConfig as ReduceConfig
from seq2see.recipe.toml import first_problem, override, read, written
from seq2see.recipe.toml import shipped as shipped

Paths = str | list[str]
LARGE_VOCABULARY = 2000  # entries, of which 256 for bytes are few


class DataConfig(Section):
    """Text or pictures: a named corpus, or paths.

    A path is a TSV, CSV (.csv), JSONL (.jsonl, .ndjson) or Parquet (.parquet) file, a pattern such
    as shards/*.tsv.gz, a folder of {split}.{language}, or a list of two aligned files; text is
    plain, gzip or zstd.
    """

    source: str = "de"  # language code; picks the file ending and spaCy's rules
    target: str = "en"
    corpus: Literal["captions", "multi30k", "digits", "fashion", "scenes"] | None = None
    # Paths are relative to --data or else to the working directory; pictures have one folder.
    train: Paths | None = None
    # Instead of train: several paths, and how often an epoch sees the pairs of each. Of 2.5, all
    # are seen twice, and half of them a third time, drawn for (seed, epoch).
    mix: dict[str, Annotated[float, Field(gt=0, le=1000)]] | None = None
    val: Paths | None = None
    test: dict[str, Paths] | Paths | None = None  # a table name = path for several
    # Source and target of a table: two numbers from 0, or two names of a header or of JSON keys.
    # By default those that the header or the keys give to the languages, else [0, 1].
    columns: tuple[int, int] | tuple[str, str] | None = None
    # Pairs held out of train for val, and for test, where these are not given: at most half of
    # them together. By default 1000 each, or 5 % of a small corpus.
    hold_out: Whole | None = None
    # Training pairs that share a sentence with val or a test set: left out, or trained on.
    overlap: Literal["drop", "keep"] = "drop"
    limit: Count | None = None  # training pairs to use; captions, scenes: to generate
    join: Count = 1  # consecutive pairs joined into one, in train, val and test alike
    # Share of the pairs with names or numbers on both sides that get others in training.
    exchange: Share = 0.0
    max_length: Count = 128  # tokens per side; longer pairs are left out and counted
    # classify: the language, or the grammatical number of a caption's subject
    labels: Literal["language", "number"] | None = None
    # Pixels per side to scale pictures to; by default as they are. Of scenes: 32, 48 or 64.
    size: Count | None = None
    colour: bool = False  # read picture files in colour; by default in grey
    language: Literal["en", "de", "both"] = "en"  # scenes: of the prompts
    # scenes: groups of like objects that a prompt names; by default one to three
    groups: Annotated[int, Field(ge=1, le=3)] | None = None

    @field_validator("columns", mode="before")
    @classmethod
    def _columns_are_a_pair(cls, value: Any) -> Any:
        if value is None:
            return None
        columns = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        numbers = all(type(column) is int and column >= 0 for column in columns)
        names = all(isinstance(column, str) for column in columns)
        if len(columns) != 2 or not (numbers or names):
            rule = "must be two numbers from 0 or two names"
            raise ValueError(f"data.columns = {value!r} {rule}, of source and target")
        if columns[0] == columns[1]:
            raise ValueError(f"data.columns = {list(columns)} must be two different columns")
        return columns

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if [self.corpus, self.train, self.mix].count(None) != 2:
            raise ValueError("give either data.corpus (a name), data.train (paths) or data.mix")
        if self.mix is not None and (not self.mix or self.limit is not None or self.join > 1):
            rule = "takes at least one path, and neither data.limit nor data.join"
            raise ValueError(f"data.mix = {self.mix!r} {rule}")
        if self.corpus is not None and (self.val is not None or self.test is not None):
            raise ValueError(
                f"data.corpus {self.corpus!r} brings its own val and test; leave those keys out"
            )
        if self.source == self.target:
            raise ValueError(
                f"data.source and data.target are both {self.source!r}; they must differ"
            )
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
    """Tokenization: words, subwords or characters."""

    kind: Literal["unigram", "bpe", "char", "words"] = "unigram"
    # Entries of a vocabulary; by default 8000 subwords, or all words or characters.
    size: Annotated[int, Field(ge=8, le=1_000_000)] | None = None
    joint: bool = True  # one vocabulary for both languages (subwords only)
    min_frequency: Count = 2  # of words; rarer ones are <unk>
    # Share of the training sentences that is segmented anew each epoch (Kudo, 2018).
    sampling: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    # Subwords: rare characters are spelled in bytes, and none is <unk>. The default for data.train
    # and data.mix, if the vocabulary may have at least 2000 entries.
    byte_fallback: bool | None = None
    # Subwords: numbers are spelled digit by digit. The default for data.train and data.mix.
    split_digits: bool | None = None
    # All kinds: nfc composes accents, nfkc also replaces variants, such as ， by a comma.
    normalise: Literal["none", "nfc", "nfkc"] = "nfc"
    segmenter: Literal["characters", "jieba"] = "characters"  # of Chinese words

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.sampling and self.kind != "unigram":
            needed = "needs tokenizer.kind 'unigram'"
            raise ValueError(f"tokenizer.sampling {needed}, not {self.kind!r}")
        if self.joint and self.kind == "words" and "joint" in self.model_fields_set:
            raise ValueError("tokenizer.joint is for subwords; each language has words of its own")
        for key in ("byte_fallback", "split_digits"):
            if self.kind == "words" and getattr(self, key):
                raise ValueError(f"tokenizer.{key} is for subwords, not for tokenizer.kind 'words'")
        if self.kind != "words" and "segmenter" in self.model_fields_set:
            raise ValueError(f"tokenizer.segmenter is for words, not for kind {self.kind!r}")
        return self


class TrainConfig(Section):
    """Budget, batches and optimizer; schedules count updates."""

    steps: Count | None = None  # the budget is exactly one of steps (updates), epochs and minutes
    epochs: Count | None = None
    # For all of the run, from reading the corpus to scoring the test sets. Training ends early
    # enough for the rest, and validation takes at most 12 % of the time, on fewer examples or less
    # often if necessary.
    minutes: Annotated[float, Field(gt=0)] | None = None
    batch_tokens: Count | None = None  # on the longer side, padding included; by default 4096
    batch_sentences: Count | None = None  # instead: a fixed number of examples
    accumulate: Count = 1  # batches summed into one update
    optimizer: Literal["adam", "muon"] = "adam"  # muon: for hidden matrices, Adam for the rest
    # Of matrix products and convolutions; bfloat16 where the processor has instructions for it.
    precision: Literal["float32", "bfloat16"] = "float32"
    schedule: Literal["inverse_sqrt", "linear"] = "inverse_sqrt"
    # The peak learning rate; by default the paper's (width × warmup)^-0.5.
    lr: Annotated[float, Field(gt=0)] | None = None
    warmup: Count = 4000  # updates until the peak; fewer in a run that would end before it
    # linear: the last share of the budget, over which the rate falls to zero
    decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.3
    label_smoothing: Share = 0.1  # ε
    # ε/V on all classes, or ε/(V−2) on all but target and padding
    smoothing: Literal["all", "others"] = "all"
    clip: Annotated[float, Field(ge=0.0)] = 1.0  # largest gradient norm; 0 for none
    checkpoint_every: Count | None = None  # updates; by default each epoch, or ten times a run
    patience: Whole = 0  # validations without improvement before a run stops; 0: never
    choose: Literal["loss", "bleu"] = "loss"  # the figure that chooses weights
    validate_sentences: Count = 500  # translated at each validation, spread over the set
    average: Count = 1  # checkpoints to average at the end, if that validates better
    average_of: Literal["last", "best"] = "last"
    keep: Whole = 0  # most further checkpoints, spread over the run: weights alone, to look into
    # Of several processes (torchrun), each holds the weights and Adam's state as a whole or a part.
    shard: Literal["none", "full"] = "none"
    # Minutes after which a process that does not answer is given up, and with it the run.
    timeout: Annotated[float, Field(gt=0)] = 10.0
    ema: Share = 0.0  # decay of an exponential moving average of the weights; 0 for none
    # Seeds weights, dropout, order and segmentation.
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1

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
        if self.shard == "full" and self.optimizer == "muon":
            rule = "needs whole matrices; with train.shard 'full' a process holds parts of them"
            raise ValueError(f"train.optimizer 'muon' {rule}")
        return self

    def peak(self, width: int) -> float:
        """The highest learning rate; by default the paper's (d · warmup)^-0.5 (section 5.3)."""
        return self.lr if self.lr is not None else (width * self.warmup) ** -0.5


class AugmentConfig(Section):
    """Random changes of training pictures, drawn for (seed, epoch, line)."""

    shift: Whole = 0  # pixels, at most, in each direction
    flip: bool = False  # mirror half of the pictures
    cut_out: Whole = 0  # pixels per side of a blank square (DeVries and Taylor, 2017)


class DecodeConfig(Section):
    """Beam search."""

    beam: Annotated[int, Field(ge=1, le=64)] = 4  # hypotheses per sentence; 1 is greedy
    length_penalty: Annotated[float, Field(ge=0.0, le=10.0)] = 0.6  # α; 0 for none
    max_ratio: Annotated[float, Field(gt=0, le=100.0)] = 2.0  # at most ratio × source tokens + 10
    min_length: Whole = 0  # target tokens before </s> is allowed
    # Search again where numbers, addresses, emoji, names or quotation marks were lost.
    keep: bool = True


class Recipe(Section):
    """One run: data → tokenizer → model → train → decode, or paint."""

    task: str = "translate"  # a name in the table of tasks, which check the keys they use
    data: DataConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    augment: AugmentConfig = AugmentConfig()
    reduce: ReduceConfig = ReduceConfig()
    train: TrainConfig
    decode: DecodeConfig = DecodeConfig()
    diffusion: DiffusionConfig = DiffusionConfig()

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
                positions = f"model.max_positions ({self.model.max_positions})"
                rule = f"must be more than {key} ({length}): </s> has a position, too"
                raise ValueError(f"{positions} {rule}")
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
    def segmentation(self) -> TokenizerConfig:
        """The table [tokenizer] with the defaults that depend on the data."""
        # Figures of the named corpora were measured without bytes and split digits.
        keys = self.tokenizer
        own = self.data.corpus is None and keys.kind != "words"
        large = keys.size is None or keys.size >= LARGE_VOCABULARY
        bytes_too = own and large if keys.byte_fallback is None else keys.byte_fallback
        digits = own if keys.split_digits is None else keys.split_digits
        return keys.model_copy(update={"byte_fallback": bytes_too, "split_digits": digits})

    @property
    def one_vocabulary(self) -> bool:
        return self.tokenizer.joint and self.tokenizer.kind != "words"

    @property
    def tie(self) -> str:
        return self.model.tie or ("all" if self.one_vocabulary else "target")

    @classmethod
    def load(cls, path: str | Path, overrides: Iterable[str] = ()) -> "Recipe":
        """Read a TOML file or a shipped recipe by name, with `section.key=value` overrides."""
        table = read(path)
        for assignment in overrides:
            override(table, assignment)
        try:
            return cls.model_validate(table)
        except ValidationError as error:
            raise InputError(f"{path}: {first_problem(error, cls.keys())}") from None

    def save(self, path: Path) -> None:
        """Write the keys that were set, so that `load` returns this recipe again."""
        tables = self.model_dump(exclude_unset=True, exclude_none=True)
        path.write_text(written(tables), encoding="utf-8")

    @classmethod
    def keys(cls) -> list[str]:
        """List every known table, each followed by its keys."""
        names: list[str] = []
        for section, field in cls.model_fields.items():
            names.append(section)
            names += (f"{section}.{key}" for key in getattr(field.annotation, "model_fields", ()))
        return names
