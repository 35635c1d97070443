"""Settings of a server: its bounds, its token and the origins that may call it."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from seq2see.errors import InputError

TOKEN = "SEQ2SEE_TOKEN"
SHORTEST_TOKEN = 16  # characters


@dataclass(frozen=True)
class Limits:
    """Bounds on what one client, and all together, may ask for."""

    body: int = 1 << 20  # bytes
    head: int = 1 << 16  # bytes of a request's first line and headers
    characters: int = 100_000  # of all texts of a request
    texts: int = 1000  # of a request
    beam: int = 16
    queue: int = 5000  # sentences that wait for a model
    deadline: float = 30.0  # seconds from the end of the body to the translation
    # From the connection, or the first byte of a further request, to the end of its head.
    head_seconds: float = 10.0
    body_seconds: float = 15.0  # for the whole body
    send_seconds: float = 30.0  # that an answer may wait for its client to read on
    connections: int = 4096


@dataclass(frozen=True)
class Settings:
    """Everything that a server is started with, beside its models."""

    limits: Limits = field(default_factory=Limits)
    token: str | None = None
    origins: tuple[str, ...] = ()  # allowed by CORS
    hosts: tuple[str, ...] = ()  # names of this server, beside loopback
    cache: int = 10_000  # sentences per model; 0: none
    batch_tokens: int | None = None  # source tokens × beam of a batch; None: the engine's


def read_token(path: Path | None) -> str | None:
    """Read the token from a file, or else from the environment; None where there is neither."""
    if path is None:
        token = os.environ.get(TOKEN)
        place = TOKEN
    else:
        place = str(path)
        try:
            token = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--token-file {path}: cannot read the token: {error}") from None
    if token is None:
        return None
    token = token.strip()
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        rule = f"a token is one line of at least {SHORTEST_TOKEN} printable ASCII characters"
        raise InputError(f"{place}: {rule}")
    return token
