"""Bodies of answers of the explorer's routes."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Nats = Annotated[float, Field(description="In nats.")]


class AttentionKind(BaseModel):
    """The layers of one kind of attention."""

    kind: str
    layers: int
    heads: int


class Explorable(BaseModel):
    """A served model as the explorer sees it."""

    name: str
    source: str | None = Field(description="None if the model does not translate.")
    target: str | None = Field(description="None of pictures.")
    available: bool
    reason: str | None = Field(description="The reason why it is not available.")
    inside: str = Field(
        description="Its views: of a translation, a continuation, blanks, a label or a picture."
    )
    kind: str
    parameters: int
    beam: int | None
    length_penalty: float | None
    maps: list[AttentionKind]
    methods: list[str] = Field(description="Methods of attribution that the model allows.")
    checkpoints: list[int] = Field(description="Updates of the run's checkpoints, oldest first.")
    gold: bool = Field(description="Whether the captions' grammar gives gold alignments.")


class Explorables(BaseModel):
    """All served models."""

    models: list[Explorable]


class Tokens(BaseModel):
    """Tokens, the word that each is part of, and whether it is special."""

    pieces: list[str]
    words: list[int | None]
    special: list[bool]


class Likely(BaseModel):
    """A token and its probability."""

    token: str
    probability: float


class Prediction(Likely):
    """The distribution behind one predicted token."""

    log_probability: float
    entropy: Nats
    top: list[Likely] = Field(description="The five likeliest tokens.")


class Hypothesis(BaseModel):
    """One of the n best translations; </s> is the last of its tokens."""

    text: str
    tokens: list[str]
    log_probability: float
    score: float


class Translation(BaseModel):
    """A translation, token by token."""

    source: Tokens
    target: Tokens
    text: str
    log_probability: float
    score: float
    steps: list[Prediction]
    hypotheses: list[Hypothesis]


class AttentionLayer(BaseModel):
    """All heads of a layer."""

    name: str
    kind: str
    heads: int
    rows: int
    columns: int
    maps: list[str] = Field(
        description="Of each head, a character per weight, row by row: its place in 0–9A–Za–z-_ is "
        "the weight × 63, rounded."
    )


class Words(BaseModel):
    """Words that a gold alignment links."""

    source: list[str]
    target: list[str]


class Attention(BaseModel):
    """All heads of all layers."""

    source: Tokens
    input: Tokens = Field(description="The decoder's input, <s> first.")
    target: Tokens
    text: str
    axes: dict[str, list[str]] = Field(description="Names of rows and columns, by kind.")
    layers: list[AttentionLayer]
    gold: list[list[int]] | None = Field(description="Links: source word, target word.")
    gold_words: Words | None


class HeadWeights(BaseModel):
    """One head, exactly."""

    layer: str
    head: int
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]
    mask: list[list[bool]] = Field(description="True = may attend.")
    reasons: list[list[str]]
    entropy: list[float] = Field(description="Of each row, in nats.")
    axes: list[str]


class RankedHead(BaseModel):
    """A head, and the translation's log-probability without it."""

    layer: str
    head: int
    log_probability: float
    change: float


class Ranking(BaseModel):
    """Heads by the harm of switching each off; the most harmful is first."""

    text: str
    log_probability: float
    heads: list[RankedHead]


class BeamNode(BaseModel):
    """A continuation that the search compared with others."""

    id: int
    parent: int | None
    step: int
    token: str
    log_probability: float
    total: float
    score: float
    status: Literal["kept", "pruned", "finished"]
    reason: str
    greedy: bool


class BeamLeaf(BaseModel):
    """A hypothesis, and the node where it ends."""

    node: int
    text: str
    log_probability: float
    score: float


class Beams(BaseModel):
    """A search as a tree; parents come before their children."""

    nodes: list[BeamNode]
    hypotheses: list[BeamLeaf]
    left_greedy: int | None = Field(
        description="First step at which the best hypothesis is not the greedy one."
    )
    beam: int


class LayerStep(BaseModel):
    """A layer's likeliest token, and its view of the translation's token."""

    token: str
    probability: float
    final_rank: int
    final_probability: float


class DecoderLayer(BaseModel):
    """Predictions after one decoder layer."""

    layer: int
    steps: list[LayerStep]


class Layers(BaseModel):
    """Predictions after each decoder layer; the last one is the model itself."""

    target: Tokens
    layers: list[DecoderLayer]


class NamedTensor(BaseModel):
    """A tensor of the pass."""

    name: str
    what: str
    axes: list[str]
    shape: list[int]
    parameters: int


class Positions(BaseModel):
    """Position encodings that are added to the source, feature by feature."""

    encoder: list[list[float]] | None


class Anatomy(BaseModel):
    """Every tensor of the pass, from ids to logits."""

    shapes: list[NamedTensor]
    parameters: int
    positions: Positions


class ByHandRow(BaseModel):
    """One key, and its part in the query's output."""

    key: str
    key_vector: list[float]
    product: float = Field(description="⟨q, k⟩")
    scaled: float = Field(description="⟨q, k⟩ / √K")
    masked: bool
    reason: str
    exp: float = Field(description="e to the scaled product minus the largest of them.")
    weight: float
    value_vector: list[float]


class ByHand(BaseModel):
    """Attention of one query of one head, number by number."""

    query: list[float]
    keys: list[str]
    rows: list[ByHandRow]
    sum: float = Field(description="Of exp.")
    output: list[float] = Field(description="Sum of the values, weighted.")
    size: int = Field(description="K")


class CheckpointView(BaseModel):
    """A head as it was at one checkpoint; all but the text is of one fixed translation."""

    update: int
    text: str = Field(description="The checkpoint's own translation.")
    log_probability: float
    entropy: float = Field(description="Mean over the rows, in nats.")
    map: str = Field(description="As in /v1/explore/attention.")
    rows: int
    columns: int


class Training(BaseModel):
    """A head through training, on the last checkpoint's translation unless another is given."""

    row_tokens: list[str] = Field(description="Tokens of the rows of every map.")
    column_tokens: list[str] = Field(description="Tokens of the columns of every map.")
    checkpoints: list[CheckpointView]


class Attribution(BaseModel):
    """The part of each source token in each target token."""

    method: str
    source: Tokens
    target: Tokens
    values: list[list[float]] = Field(description="Target tokens × source tokens.")
    signed: bool = Field(description="Whether a source token can speak against a target token.")
    seconds: float
