# SPDX-License-Identifier: Apache-2.0
"""Handle Ctrl-C during a call of the library that has a callback: an exception that a callback raises is lost."""
from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

__all__ = ["collected"]


@contextlib.contextmanager
def collected() -> Iterator[list[int]]:
    """Return a context manager that collects each Ctrl-C in a list while the library works. The caller then raises
    KeyboardInterrupt. In other threads than the main one, or with a handler of the user's, nothing is collected."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread() or \
            signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield seen
        return
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
