"""Names under which a server answers.

A page elsewhere can let its own name point to 127.0.0.1 and then read what a server here answers
(DNS rebinding). The browser still sends that name, as the request's host.
"""

import ipaddress
import re
from collections.abc import Collection

HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:[0-9]*)?")  # and its port


def is_loopback(address: str) -> bool:
    """Tell whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Hosts:
    """Hosts for which a server answers: loopback and further names; without names, any host."""

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = {"localhost", *map(_name, names)} if names else None

    def allow(self, header: bytes) -> bool:
        """Tell whether a request with this Host header is answered."""
        if self._names is None:
            return True
        name = _name(header.decode("latin-1"))
        return name in self._names or is_loopback(name)


def _name(host: str) -> str:
    """Return a host without its port, the brackets of an address, or the dot of a full name."""
    match = HOST.fullmatch(host)
    return (match[1] if match else host).strip("[]").rstrip(".").lower()
