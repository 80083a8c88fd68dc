"""Holding the garbage collector while many objects are made that stay.

Reading a grammar makes some hundred thousand small objects without cycles. The collector looks through all of them
again and again, finds nothing, and takes a sixth of the time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
_was_enabled = False


@contextmanager
def held() -> Iterator[None]:
    """Keep the collector of cycles from running; afterwards it is as it was.

    Several threads, or calls in each other, may hold it: the last to leave lets it go.
    """
    global _holders, _was_enabled
    with _lock:
        if _holders == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _was_enabled:
                gc.enable()
