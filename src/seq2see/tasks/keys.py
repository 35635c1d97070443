"""Recipe keys that only some tasks use."""

from collections.abc import Sequence

from seq2see.recipe.schema import Recipe

FOR_PICTURES = (
    "data.size",
    "data.colour",
    "model.patch",
    "model.overlap",
    "model.pool",
    "augment",
)
FOR_TEXT = (
    "data.source",
    "data.target",
    "data.mix",
    "data.val",
    "data.test",
    "data.columns",
    "data.hold_out",
    "data.overlap",
    "data.join",
    "data.exchange",
    "data.max_length",
    "data.labels",
    "model.kind",
    "model.decoder_layers",
    "model.positions",
    "model.max_positions",
    "model.embedding_init",
    "model.tie",
    "tokenizer",
    "decode",
    "train.choose",
    "train.validate_sentences",
)
FOR_TRANSLATION = ("data.exchange", "decode.keep")
FOR_PAINTING = ("data.language", "data.groups", "diffusion")
PICTURES = ("digits", "fashion")  # corpora
PAINTED = (*PICTURES, "scenes")  # corpora of pictures with prompts, or classes that serve as such


def refuse_keys(recipe: Recipe, names: Sequence[str], medium: str) -> None:
    """Raise ValueError if the recipe sets a key that is for another medium."""
    for name in names:
        section, _, key = name.partition(".")
        if section not in recipe.model_fields_set:
            continue
        if not key or key in getattr(recipe, section).model_fields_set:
            raise ValueError(f"{name} is for {medium}, not for task {recipe.task!r}")


def refuse_reduction(recipe: Recipe) -> None:
    """Raise ValueError if the recipe reduces the tokens of a model that needs all of them."""
    if recipe.reduce.kind != "none":
        raise ValueError(
            f"reduce.kind {recipe.reduce.kind!r} is for encoders that are pooled or attended to, "
            f"not for task {recipe.task!r}"
        )
