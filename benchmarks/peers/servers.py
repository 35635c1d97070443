"""Servers to compare: ours, LibreTranslate's own, and a plain loop over CTranslate2."""

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import venvs

from seq2see.bench.serve import BATCHING_OFF, PATH, WITHOUT_CACHE, command
from seq2see.ct2.library import cores
from seq2see.recipe.schema import Recipe

HERE = Path(__file__).parent.resolve()
OURS, ALONE = "seq2see", "seq2see-alone"
ONE_EACH = {"ARGOS_INTER_THREADS": str(cores()), "ARGOS_INTRA_THREADS": "1"}

Body = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A server: how it is started and asked."""

    name: str
    label: str
    setup: str  # in a few words
    command: list[str]
    body: Callable[[str], Body]
    path: str = PATH
    ready: str = "/ready"
    environment: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def peers(export: Path, home: Path) -> list[Peer]:
    """Return all servers, ours first; installs those of others, and writes their model to `home`."""
    ours = [
        Peer(OURS, "seq2see serve", "without its cache", command(export, *WITHOUT_CACHE), _ours),
        Peer(
            ALONE,
            "seq2see serve, batching off",
            "every sentence alone, without cache",
            command(export, *WITHOUT_CACHE, *BATCHING_OFF),
            _ours,
        ),
    ]
    return [*ours, *_libretranslate(export, home), *_plain(export)]


def _ours(text: str) -> Body:
    return {"text": text}


def _libretranslate(export: Path, home: Path) -> list[Peer]:
    interpreter = str(venvs.ensure("libretranslate").absolute())
    data = Recipe.load(export / "recipe.toml").data
    package = [str(HERE / "argos_package.py"), str(export), str(home), data.source, data.target]
    subprocess.run([interpreter, *package], check=True)
    environment = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("DATA", "CACHE")}
    environment |= {"XDG_CONFIG_HOME": str(home / "config"), "ARGOS_CHUNK_TYPE": "SPACY"}
    languages = f"{data.source},{data.target}"
    call = [interpreter, "-P", "-m", "libretranslate.main", "--host", "127.0.0.1"]
    call += ["--load-only", languages, "--disable-files-translation"]

    def body(text: str) -> Body:
        return {"q": text, "source": data.source, "target": data.target, "format": "text"}

    def peer(name: str, setup: str, settings: dict[str, str]) -> Peer:
        return Peer(
            name,
            "LibreTranslate",
            setup,
            call,
            body,
            path="/translate",
            ready="/languages",
            environment=environment | settings,
            versions=_versions("libretranslate", "libretranslate", "ctranslate2"),
        )

    return [
        peer("libretranslate", "as installed; sentences split by spaCy's rules", {}),
        peer("libretranslate-tuned", "the same with a CTranslate2 worker per core", ONE_EACH),
    ]


def _plain(export: Path) -> list[Peer]:
    interpreter = str(venvs.ensure("plain-server").absolute())
    decode = Recipe.load(export / "recipe.toml").decode
    call = [interpreter, "-P", str(HERE / "plain_server.py"), "--model", str(export)]
    call += ["--beam", str(decode.beam), "--length-penalty", str(decode.length_penalty)]
    call += ["--max-ratio", str(decode.max_ratio)]

    def peer(name: str, setup: str, options: Sequence[str]) -> Peer:
        return Peer(
            name,
            "FastAPI over CTranslate2",
            setup,
            [*call, *options],
            _ours,
            versions=_versions("plain-server", "fastapi", "ctranslate2"),
        )

    return [
        peer("plain", "a request at a time in each thread; CTranslate2's own settings", []),
        peer("plain-tuned", "the same with a worker per core", ["--workers", str(cores())]),
    ]


def _versions(requirements: str, *names: str) -> dict[str, str]:
    """Read the pinned versions of libraries."""
    text = (HERE / "requirements" / f"{requirements}.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^(\S+)==(\S+)", text, re.MULTILINE))
    return {name: pins[name] for name in names}
