"""Token reduction in the encoder: the table [reduce] of a recipe."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from seq2see.recipe.network import Section

MODES = ("hard", "soft", "top")
# Keys of [reduce], the kind that uses them, and the modes of that kind that do.
REDUCED_BY = (
    (("r", "schedule", "match"), "merge", MODES),
    (("mode",), "prune", MODES),
    (("thresholds",), "prune", ("hard", "soft")),
    (("temperature", "penalty"), "prune", ("soft",)),
    (("keep",), "prune", ("top",)),
)


class ReduceConfig(Section):
    """Token merging (Bolya et al., 2023) or pruning (Kim et al., 2022) between encoder layers.

    `r`, `thresholds` and `keep` take one number, or a list with one per layer. A single threshold
    is that of the last layer, to which the others rise linearly; a single `keep` is the share
    after the last layer, to which the shares fall linearly.
    """

    kind: Literal["none", "merge", "prune"] = "none"
    # merge
    r: int | list[int] = 8  # tokens merged away in each layer
    schedule: Literal["constant", "decreasing"] = "constant"  # decreasing: from 2 r down to 0
    match: Literal["bipartite", "neighbours"] = "bipartite"  # neighbours: adjacent tokens only
    # prune: drop tokens below a fixed (hard) or learned (soft) threshold, or keep the best (top)
    mode: Literal["hard", "soft", "top"] = "hard"
    thresholds: float | list[float] = 0.5  # hard, soft: 1 is an equal share of the attention
    temperature: Annotated[float, Field(gt=0)] = 0.1  # soft: width of the sigmoid at a threshold
    penalty: Annotated[float, Field(gt=0)] = 0.1  # soft: added to the loss if all tokens are kept
    keep: float | list[float] = 0.5  # top: share of the tokens that is kept

    @field_validator("r", "thresholds", "keep", mode="before")
    @classmethod
    def _numbers(cls, value: Any, field: ValidationInfo) -> Any:
        whole = field.field_name == "r"
        rule = "a whole number of at least 0" if whole else "a number from 0 to 1"
        for number in value if isinstance(value, list) else [value]:
            valid_type = type(number) is int or (type(number) is float and not whole)
            if not valid_type or number < 0 or (number > 1 and not whole):
                raise ValueError(
                    f"reduce.{field.field_name} = {value!r}: must be {rule}, or one for each layer"
                )
        return value

    @model_validator(mode="after")
    def _used(self) -> Self:
        for keys, kind, modes in REDUCED_BY:
            for key in self.model_fields_set & {*keys}:
                if self.kind != kind or self.mode not in modes:
                    mode = f" and reduce.mode {' or '.join(map(repr, modes))}"
                    condition = mode if modes != MODES else ""
                    raise ValueError(f"reduce.{key} is for reduce.kind {kind!r}{condition}")
        return self

    def check(self, layers: int) -> None:
        """Check that lists have one number per layer."""
        for key in ("r", "thresholds", "keep"):
            value = getattr(self, key)
            if isinstance(value, list) and len(value) != layers:
                raise ValueError(
                    f"reduce.{key} has {len(value)} numbers; model.encoder_layers is {layers}"
                )
        if isinstance(self.r, list) and self.schedule != "constant":
            raise ValueError("reduce.schedule is for one reduce.r; a list is a schedule itself")
