"""The token that clients must send, if the server has one."""

import hmac
from collections.abc import Iterable
from typing import Any

from fastapi import Security
from fastapi.security import HTTPBearer

BEARER = b"bearer "
SCHEME = HTTPBearer(auto_error=False, description="The token, which the operator has.")


def equal(token: str, given: bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(token.encode(), given)


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the token of the Authorization header, or nothing."""
    for name, value in headers:
        if name == b"authorization" and value.lower().startswith(BEARER):
            return value[len(BEARER) :].strip()
    return b""


def described(token: str | None) -> list[Any]:
    """Dependencies that describe a route as one that needs the token; they do not compare it."""
    return [] if token is None else [Security(SCHEME)]
