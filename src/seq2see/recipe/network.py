"""The table [model] of a recipe, and the base and number types of all tables."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Score = Literal["scaled_dot", "dot", "unscaled", "bilinear", "projected", "additive"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
Kind = Literal["transformer", "rnn", "lstm", "gru", "conv", "prefix", "unet", "dit"]

RECURRENT = ("rnn", "lstm", "gru")
BLOCKS = ("transformer", "prefix")
PAINTERS = ("unet", "dit")  # width and encoder_layers are those of the prompt's encoder
# Keys of [model] that only some kinds use, and those kinds.
USED_BY = {
    **dict.fromkeys(("heads", "feed_forward", "norm"), (*BLOCKS, *PAINTERS)),
    **dict.fromkeys(("attention_width", "attention_bias", "embedding_init"), BLOCKS),
    **dict.fromkeys(("positions", "max_positions"), (*BLOCKS, "conv")),
    "decoder_layers": ("transformer", *RECURRENT, "conv", "dit"),  # prefix: encoder_layers alone
    "attend": RECURRENT,
    "kernel": ("conv",),
}


class Section(BaseModel):
    """Table of a recipe: typed, immutable, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ModelConfig(Section):
    """Network, in the terms of the paper (section 3, table 3)."""

    kind: Kind = "transformer"
    width: Count = 256  # d_model
    heads: Count = 4  # h; each has attention_width / heads dimensions
    encoder_layers: Count = 3  # N
    decoder_layers: Count = 3  # N
    feed_forward: Count | None = None  # d_ff; by default 4 × width
    dropout: Share = 0.1  # P_drop: on embeddings, residuals and inside the feed-forward
    attention_dropout: Share = 0.0  # on the attention weights
    norm: Literal["pre", "post"] = "pre"  # before each sublayer, or after it as in the paper
    score: Score = "scaled_dot"  # of a query and a key
    attention_width: Count | None = None  # dimensions of all heads together; by default width
    attention_bias: bool = True  # in the projections of query, key and value, and of the output
    positions: Positions = "sinusoidal"  # none: a bag of words
    max_positions: Count = 256  # longest sequence of learned positions; other kinds have no limit
    embedding_init: Literal["normal", "xavier"] = "normal"  # normal: standard deviation width^-0.5
    # Share the embeddings of source, target and output (all), or of target and output (target);
    # by default all with one vocabulary, else target.
    tie: Literal["all", "target", "none"] | None = None
    attend: bool = True  # rnn, lstm, gru: false gives the decoder the last encoder state alone
    kernel: Count = 3  # conv: receptive field of one layer, in tokens
    patch: Count = 4  # pictures: side in pixels of a patch, the counterpart of a token
    overlap: Whole = 0  # images: pixels by which a patch extends into each neighbour
    pool: Literal["class", "mean"] = "class"  # images: classify a class token or the mean of all

    @model_validator(mode="after")
    def _used(self) -> Self:
        for key, kinds in USED_BY.items():
            if key in self.model_fields_set and self.kind not in kinds:
                users = " or ".join(map(repr, kinds))
                raise ValueError(f"model.{key} is for model.kind {users}, not for {self.kind!r}")
        for key in ("score", "attention_dropout"):
            if key in self.model_fields_set and not self.attend:
                raise ValueError(f"model.{key} is for attention, and model.attend is false")
        return self

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        if self.kind in RECURRENT and self.width % 2:
            rule = "must be even: half of it reads the source from each end"
            raise ValueError(f"model.width ({self.width}) {rule}")
        if self.kind == "conv" and self.positions == "rotary":
            rule = "is for self-attention, which model.kind 'conv' does not have"
            raise ValueError(f"model.positions 'rotary' {rule}")
        if self.kind == "prefix" and self.positions == "rotary":
            rule = "is for one sequence; in model.kind 'prefix' both sides start at position 0"
            raise ValueError(f"model.positions 'rotary' {rule}")
        name = "width" if self.attention_width is None else "attention_width"
        width = self.attention_width or self.width
        if self.kind in (*BLOCKS, *PAINTERS) and width % self.heads:
            rule = f"must be divisible by model.heads ({self.heads})"
            raise ValueError(f"model.{name} ({width}) {rule}")
        if self.positions == "rotary" and self.head_size % 2:
            rule = "must be even for rotary positions"
            raise ValueError(f"model.{name} / model.heads ({self.head_size}) {rule}")
        if self.positions == "sinusoidal" and self.width % 2:
            raise ValueError(f"model.width ({self.width}) must be even for sinusoidal positions")
        return self

    @property
    def inner(self) -> int:
        return self.feed_forward or 4 * self.width

    @property
    def head_size(self) -> int:
        return (self.attention_width or self.width) // self.heads
