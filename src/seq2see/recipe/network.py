"""The network of a recipe: its tables [model] and [reduce], and what every table is made of."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]

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

# The keys of [reduce], the kind that uses them, and its modes that do.
REDUCED_BY = (
    (("r", "schedule", "match"), "merge", ("hard", "soft", "top")),
    (("mode",), "prune", ("hard", "soft", "top")),
    (("thresholds",), "prune", ("hard", "soft")),
    (("temperature", "penalty"), "prune", ("soft",)),
    (("keep",), "prune", ("top",)),
)


class Section(BaseModel):
    """A table of the recipe: typed, frozen, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


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
    score: Literal["scaled_dot", "dot", "unscaled", "bilinear", "projected", "additive"] = (
        "scaled_dot"
    )
    attention_width: Count | None = (
        None  # numbers that all heads together look through; by default width
    )
    attention_bias: bool = True
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = (
        "sinusoidal"  # none: a bag of words
    )
    max_positions: Count = (
        256  # how many are learned; with the other kinds a sentence may have any length
    )
    embedding_init: Literal["normal", "xavier"] = "normal"  # normal: standard deviation width^-0.5
    tie: Literal["all", "target", "none"] | None = (
        None  # share embeddings; by default all with one vocabulary
    )
    attend: bool = True  # rnn, lstm, gru: look at all states of the encoder; false: the last one is all there is
    kernel: Count = 3  # conv: words that a layer sees at once
    patch: Count = 4  # images: pixels on a side of a patch, which is what a word is in text
    overlap: Whole = 0  # images: pixels on each side by which a patch reaches into its neighbours
    pool: Literal["class", "mean"] = (
        "class"  # images: what is classified, a token of its own or the mean of all
    )

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
            raise ValueError(
                f"model.width ({self.width}) must be even: half of it reads the source from each end"
            )
        if self.kind == "conv" and self.positions == "rotary":
            raise ValueError(
                "model.positions 'rotary' is for self-attention, which model.kind 'conv' has not"
            )
        if self.kind == "prefix" and self.positions == "rotary":
            raise ValueError(
                "model.positions 'rotary' is for one sequence; of model.kind 'prefix' both sides begin at 0"
            )
        name = "width" if self.attention_width is None else "attention_width"
        if self.kind in BLOCKS and getattr(self, name) % self.heads:
            raise ValueError(
                f"model.{name} ({getattr(self, name)}) must be divisible by model.heads ({self.heads})"
            )
        if self.positions == "rotary" and self.head_size % 2:
            raise ValueError(
                f"model.{name} / model.heads ({self.head_size}) must be even for rotary positions"
            )
        if self.positions == "sinusoidal" and self.width % 2:
            raise ValueError(f"model.width ({self.width}) must be even for sinusoidal positions")
        if self.overlap > 2 * self.patch:
            raise ValueError(
                f"model.overlap ({self.overlap}) must be at most twice model.patch ({self.patch})"
            )
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


class ReduceConfig(Section):
    """Fewer tokens from layer to layer of the encoder: merged (Bolya et al., 2023) or pruned (Kim et al., 2022)."""

    kind: Literal["none", "merge", "prune"] = "none"
    r: int | list[int] = 8  # merge: so many tokens in each layer, or a number for each
    schedule: Literal["constant", "decreasing"] = (
        "constant"  # merge: r everywhere, or from 2 r down to 0
    )
    match: Literal["bipartite", "neighbours"] = (
        "bipartite"  # merge: the most alike, or the most alike side by side
    )
    mode: Literal["hard", "soft", "top"] = (
        "hard"  # prune: below thresholds; these learned; or all but the best
    )
    thresholds: float | list[float] = (
        0.5  # hard, soft: 1 is an even share of attention; one rises to the last layer
    )
    temperature: Annotated[float, Field(gt=0)] = (
        0.1  # soft: how far around its threshold a token counts in part
    )
    penalty: Annotated[float, Field(gt=0)] = 0.1  # soft: what keeping all tokens adds to the loss
    keep: float | list[float] = (
        0.5  # top: the share of the tokens left; one falls to the last layer
    )

    @field_validator("r", "thresholds", "keep", mode="before")
    @classmethod
    def _numbers(cls, value: Any, field: ValidationInfo) -> Any:
        whole = field.field_name == "r"
        rule = "a whole number of at least 0" if whole else "a number from 0 to 1"
        for each in value if isinstance(value, list) else [value]:
            number = type(each) is int or (type(each) is float and not whole)
            if not number or each < 0 or (each > 1 and not whole):
                raise ValueError(
                    f"reduce.{field.field_name} = {value!r}: must be {rule}, or one for each layer"
                )
        return value

    @model_validator(mode="after")
    def _used(self) -> Self:
        for keys, kind, modes in REDUCED_BY:
            for key in self.model_fields_set & {*keys}:
                if self.kind != kind or self.mode not in modes:
                    how = (
                        f" and reduce.mode {' or '.join(map(repr, modes))}"
                        if len(modes) < 3
                        else ""
                    )
                    raise ValueError(f"reduce.{key} is for reduce.kind {kind!r}{how}")
        return self

    def check(self, layers: int) -> None:
        """A list has a number for each layer."""
        for key in ("r", "thresholds", "keep"):
            value = getattr(self, key)
            if isinstance(value, list) and len(value) != layers:
                raise ValueError(
                    f"reduce.{key} has {len(value)} numbers; model.encoder_layers is {layers}"
                )
        if isinstance(self.r, list) and self.schedule != "constant":
            raise ValueError("reduce.schedule is for one reduce.r; a list is a schedule itself")
