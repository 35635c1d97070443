"""Tables of the READMEs and docs, generated from the raw JSON in `results`: `make tables`.

A table stands between `<!-- NAME -->` and `<!-- /NAME -->`; none of it is typed by hand.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path

from tables import (
    attention,
    attribution,
    distributed,
    documents,
    models,
    painting,
    peers,
    pictures,
    readme,
    reproduction,
    scores,
    serving,
    speed,
    stable_diffusion,
    store,
)

ROOT = Path(__file__).parents[2]
PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"results": functools.partial(readme.results, "en")},
    "README.zh-CN.md": {"results": functools.partial(readme.results, "zh")},
    "docs/attention.md": {
        "score functions": attention.score_functions,
        "attention cost": attention.attention_cost,
    },
    "docs/after.md": {
        "perplexities": models.perplexities,
        "blanks": models.blanks,
        "pretraining": models.pretraining,
    },
    "docs/before.md": {"architectures": models.architectures},
    "docs/cheaper.md": {
        "plain": pictures.plain,
        "merged": pictures.merged,
        "pruned": pictures.pruned,
        "trained": pictures.trained,
        "long": pictures.long,
    },
    "docs/cluster.md": {
        "equality": distributed.equality,
        "kills": distributed.kills,
        "speed": distributed.speed,
        "large": distributed.large,
    },
    "docs/cost.md": {"complexity": attention.complexity},
    "docs/data.md": {"store": store.store},
    "docs/documents.md": {"glossary": documents.glossary, "hard": documents.hard},
    "docs/looking.md": {"attribution": attribution.attribution},
    "docs/painting.md": {
        "judge": painting.judge,
        "painted": painting.painted,
        "classes": painting.classes,
        "paint merging": painting.paint_merging,
        "paint parts": painting.paint_parts,
        "stable diffusion": stable_diffusion.steps,
        "stable diffusion parts": stable_diffusion.parts,
    },
    "docs/pictures.md": {"accuracies": pictures.accuracies},
    "docs/reproduction.md": {
        "reproduction": reproduction.reproduction,
        "samples": reproduction.samples,
    },
    "docs/serving.md": {"explorer": serving.explorer, "fuzzed": serving.fuzzed},
    "docs/speed.md": {
        "peers training": peers.training,
        "peers training, quiet": functools.partial(peers.training, "peers-train-quiet"),
        "peers translation": peers.translation,
        "utilisation": speed.utilisation,
        "frontier": speed.frontier,
        "serve": serving.servers,
        "serve, several": serving.several,
        "serve, sustained": serving.sustained,
        "busy": speed.busy,
        "optimizers": speed.optimizers,
    },
    "docs/scores.md": {
        "recipes": scores.recipes,
        "multi30k": scores.multi30k,
        "choices": scores.choices,
    },
}
PAGES |= {  # the Chinese guide shows the same tables
    page.replace("docs/", "docs/zh/"): tables
    for page, tables in PAGES.items()
    if page.startswith("docs/")
}


def filled(page: str, text: str) -> str:
    """Return the text of a page with its tables generated anew."""
    for name, make in PAGES[page].items():
        body = make()
        if page.startswith("docs/zh/"):
            body = body.replace("](images/", "](../images/")
        block = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        text, count = block.subn(lambda match, body=body: match[1] + body + match[2], text)
        if count != 1:
            raise SystemExit(f"{page}: the table {name!r} must occur once, not {count} times")
    return text
