"""Rules of the interface that its description cannot say, for the values that schemathesis draws."""

from typing import Any

import schemathesis
from schemathesis.generation import GenerationMode

KNOWN = {"source": "de", "target": "en", "model": "toy"}  # of the server of the tests
# Of its model, and a rule that no search can break.
INSIDE = {"layer": "decoder.0.cross", "head": 0, "query": 0, "method": "erasure", "forbidden": []}
# Models that do not translate, by the routes that are for them.
OTHERS = {"next": "writer", "blanks": "filler", "label": "labeller", "picture": "pictured"}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
LONGEST = 50  # characters of a sentence that fits the model


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Fit a body that the description allows to rules on several keys and on the loaded models."""
    if case.meta.generation.mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
        fit(case.body)
        if case.operation.path.startswith("/v1/explore"):
            fit_inside(case.body, case.operation.path.rpartition("/")[2])


def fit(body: dict[str, Any]) -> None:
    """Name what is loaded, pair the texts up, and ask for no prefix, which may not be kept."""
    body |= {key: KNOWN[key] for key in KNOWN.keys() & body.keys() if isinstance(body[key], str)}
    body.pop("prefix", None)
    if isinstance(body.get("target"), list):
        body["target"] = body["source"]
    if "n_best" in body:
        body["n_best"] = min(body["n_best"], body.get("beam") or 4)


def fit_inside(body: dict[str, Any], view: str) -> None:
    """Name heads that there are, and a sentence that is neither empty nor too long."""
    if view in OTHERS:
        body["model"] = OTHERS[view]
    if "picture" in body:
        body["picture"] = PIXEL
        return
    body |= {key: INSIDE[key] for key in INSIDE.keys() & body.keys()}
    if isinstance(body.get("target"), str):
        body["target"] = "three"
    body["text"] = body["text"].strip()[:LONGEST] or "drei"
    for head in body.get("off", []):
        head |= {"layer": INSIDE["layer"], "head": INSIDE["head"]}
