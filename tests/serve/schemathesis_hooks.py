"""Rules of the interface that its description cannot say, for the values that schemathesis draws."""

from typing import Any

import schemathesis
from schemathesis.generation import GenerationMode

KNOWN = {"source": "de", "target": "en", "model": "toy"}  # of the server of the tests


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Fit a body that the description allows to rules on several keys and on the loaded models."""
    if case.meta.generation.mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
        fit(case.body)


def fit(body: dict[str, Any]) -> None:
    """Name what is loaded, pair the texts up, and ask for no prefix, which may not be kept."""
    body |= {key: KNOWN[key] for key in KNOWN.keys() & body.keys() if isinstance(body[key], str)}
    body.pop("prefix", None)
    if isinstance(body.get("target"), list):
        body["target"] = body["source"]
    if "n_best" in body:
        body["n_best"] = min(body["n_best"], body.get("beam") or 4)
