"""A diffusion model at one or more picture sizes, as `bench paint` runs it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from seq2see.batches import spread
from seq2see.bench.paint_quality import QualityTest, class_test, scene_test
from seq2see.decoding.denoising import Denoising
from seq2see.errors import InputError
from seq2see.models import merged
from seq2see.models.merged import TokenMerging
from seq2see.pictures.prompted import PromptedPictures, ScenePictures
from seq2see.tasks.diffusion import Diffusion
from seq2see.tasks.painted_classes import by_class, corpus_of
from seq2see.tasks.painter import Painter
from seq2see.tasks.table import load_painter, load_pictures

UNTOUCHED = "untouched"
LAYER = "layer"  # merging as by `all`, in cross-attention and feed-forward, too
METHODS = (*merged.METHODS, LAYER)


@dataclass(frozen=True)
class Setting:
    """A picture size and the merging of positions; ratio 0 is the untouched model."""

    size: int  # pixels: the height of pictures
    ratio: float = 0.0
    method: str = UNTOUCHED
    every: int = 1

    def __str__(self) -> str:
        return f"{self.size} pixels, {self.merging}"

    @property
    def merging(self) -> str:
        if self.method == UNTOUCHED:
            return UNTOUCHED
        reused = f", every {self.every} steps" if self.every > 1 else ""
        return f"{self.ratio:g} {self.method}{reused}"

    @property
    def untouched(self) -> "Setting":
        """The setting that this one is compared with."""
        return Setting(self.size)


def settings(
    sizes: Sequence[int],
    ratios: Sequence[float],
    methods: Sequence[str],
    every: Sequence[int] = (1,),
) -> list[Setting]:
    """Combine all of them; the untouched model comes first at each size."""
    for method in methods:
        if method not in METHODS:
            raise InputError(f"method {method!r} is not one of {', '.join(METHODS)}")
    chosen: list[Setting] = []
    for size in sizes:
        chosen.append(Setting(size))
        chosen += (
            Setting(size, ratio, method, steps)
            for method in methods
            for steps in every
            for ratio in sorted(ratios)
            if ratio > 0
        )
    return list(dict.fromkeys(chosen))


@dataclass(frozen=True)
class Workload:
    """A painter for each size, prompts to time it with, and prompts to measure its quality."""

    painters: dict[int, Painter]  # by size, the model's own first
    prompts: list[str]
    sampling: Denoising
    test: QualityTest | None  # for the model's own size
    min_tokens: int = TokenMerging.min_tokens  # grids with fewer positions are left alone

    @property
    def own_size(self) -> int:
        return next(iter(self.painters))

    @property
    def seeds(self) -> list[int]:
        return [*range(1, len(self.prompts) + 1)]

    def painter(self, setting: Setting) -> Painter:
        """Return the painter of a setting; refuse merging that is impossible at its size."""
        painter = self.painters[setting.size]
        if setting.method == UNTOUCHED:
            return painter
        whole_layer = setting.method == LAYER
        merging = TokenMerging(
            setting.ratio,
            "all" if whole_layer else setting.method,
            min_tokens=self.min_tokens,
            every=setting.every,
            cross=whole_layer,
            feed_forward=whole_layer,
        )
        try:
            return painter.merged(merging)
        except InputError as error:
            raise InputError(f"pictures of {setting.size} pixels: {error}") from None


def workload_of(
    directory: Path,
    sizes: Sequence[int] = (),
    *,
    min_tokens: int = TokenMerging.min_tokens,
    count: int = 16,
    steps: int | None = None,
    test_pictures: int | None = None,
    classifier: Path | None = None,
    data: Path | None = None,
) -> Workload:
    """Open a model directory; prompts are those of the first test set of its recipe."""
    painter = load_painter(directory, "cpu")
    if test_pictures is None:
        test_pictures = painter.recipe.diffusion.test_pictures
    own_size = painter.format.shape[1]
    others = [size for size in dict.fromkeys(sizes) if size != own_size]
    painters = {own_size: painter} | {size: resized(painter, size) for size in others}
    pictures = _test_pictures(painter, max(test_pictures, count), data)
    prompts = pictures.read(spread(len(pictures), count)).prompts
    return Workload(
        painters,
        list(islice(cycle(prompts), count)),
        painter.settings(steps),
        _quality_test(pictures, test_pictures, classifier),
        min_tokens,
    )


def _test_pictures(painter: Painter, count: int, data: Path | None) -> PromptedPictures:
    """Read the first test set; as many scenes are drawn as are needed."""
    config = painter.recipe.diffusion.model_copy(update={"test_pictures": count})
    recipe = painter.recipe.model_copy(update={"diffusion": config})
    corpus = corpus_of(replace(painter, recipe=recipe), data)
    return next(iter(corpus.tests.values()))


def _quality_test(
    pictures: PromptedPictures, count: int, classifier: Path | None
) -> QualityTest | None:
    """Choose the judge: a program for scenes, a classifier for pictures by class, or none."""
    if count == 0:
        return None
    if classifier is not None:
        stored = by_class(pictures)
        lines = spread(len(stored), count)
        return class_test(stored, lines, load_pictures(classifier, "cpu"), str(classifier))
    if isinstance(pictures, ScenePictures):
        return scene_test(pictures, [*range(count)])
    return None


def resized(painter: Painter, size: int) -> Painter:
    """Return a painter of size × size pixels with the same weights, if they fit every size."""
    channels, height, width = painter.format.shape
    if height != width:
        raise InputError(f"--size {size}: the model's pictures are {height} × {width}, not square")
    format = replace(painter.format, shape=(channels, size, size))
    try:
        model = Diffusion(painter.recipe).network(format)
    except InputError as error:
        raise InputError(f"--size {size}: {error}") from None
    weights = painter.model.state_dict()
    for name, weight in model.state_dict().items():
        if weight.shape != weights[name].shape:
            rule = f"{name} is only for the model's own pictures of {height} × {width}"
            raise InputError(f"--size {size}: {rule}")
    model.load_state_dict(weights, assign=True)
    return replace(painter, format=format, model=model)
