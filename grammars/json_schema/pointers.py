"""JSON pointers (RFC 6901) as URI fragments."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, unquote

# What may stand in a fragment unescaped (RFC 3986, section 3.5), without "/" and "~".
_SAFE = "!$&'()*+,;=:@?-._"


@lru_cache(maxsize=8192)
def token(key: str) -> str:
    """Return ``key`` as one reference token of a fragment pointer."""
    if key.isascii() and key.isidentifier():
        return key
    # Lone surrogates have no UTF-8; they are shown, not resolved.
    text = key.replace("~", "~0").replace("/", "~1")
    return quote(text, safe=_SAFE + "~", errors="backslashreplace")


def tokens(fragment: str) -> list[str]:
    """Return the keys a fragment pointer such as ``"/properties/a~1b"`` goes along."""
    return [
        unquote(part).replace("~1", "/").replace("~0", "~") if "%" in part or "~" in part else part
        for part in fragment.split("/")[1:]
    ]
