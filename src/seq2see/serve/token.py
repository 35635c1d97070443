"""The token that clients must send, if the server has one."""

import hmac
from collections.abc import Iterable

BEARER = b"bearer "


def equal(token: str, given: bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(token.encode(), given)


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the token of the Authorization header, or nothing."""
    for name, value in headers:
        if name == b"authorization" and value.lower().startswith(BEARER):
            return value[len(BEARER) :].strip()
    return b""
