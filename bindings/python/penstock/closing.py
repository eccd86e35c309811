# SPDX-License-Identifier: Apache-2.0
"""Close open objects when the process ends. A child that multiprocessing forked ends by os._exit, which runs no
function of atexit. There a finalizer of multiprocessing closes them."""
from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Generic, TypeVar

__all__ = ["ClosedAtEnd"]

T = TypeVar("T")

_all: list[ClosedAtEnd[Any]] = []
_finalized_in = 0  # id of the process in which multiprocessing will call _finalize


class ClosedAtEnd(Generic[T]):
    """A set of open objects. When the process ends, `close` is called for each that is left, whatever one of the calls
    raises."""

    def __init__(self, close: Callable[[T], None]) -> None:
        self._close = close
        self._open: weakref.WeakSet[Any] = weakref.WeakSet()
        _all.append(self)
        atexit.register(self.close_all)

    def add(self, one: T) -> None:
        self._open.add(one)
        _finalize_in_child()

    def discard(self, one: T) -> None:
        self._open.discard(one)

    def close_all(self) -> None:
        with contextlib.ExitStack() as stack:
            for one in list(self._open):
                stack.callback(self._close, one)


def _finalize_in_child() -> None:
    """Have multiprocessing call _finalize, in its children. multiprocessing is never imported for this: its children
    have it."""
    global _finalized_in
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is None or util is None or process.parent_process() is None or _finalized_in == os.getpid():
        return
    _finalized_in = os.getpid()
    util.Finalize(None, _finalize, exitpriority=0)  # queues, which sinks may use, have priorities below 0 and so are closed later


def _ends_by_atexit() -> bool:
    """Return whether this child was spawned. Its interpreter then ends normally, and calls the functions of atexit in
    reverse order."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_bootstrap":
        frame = frame.f_back
    main = frame and frame.f_back
    return main is not None and main.f_back is not None and main.f_back.f_code.co_name == "spawn_main"


def _forget() -> None:
    """Forget all objects in a child of fork: the parent owns them, and nobody would release their locks here."""
    for objects in _all:
        objects._open = weakref.WeakSet()


os.register_at_fork(after_in_child=_forget)


def _finalize() -> None:
    """Close all objects. multiprocessing waits for non-daemon threads only after its finalizers, and these threads may
    still use the objects, so this waits for them first."""
    if _ends_by_atexit():
        return
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()]
    if others:
        threading.Thread(target=_close_after, args=(others,), name="penstock-end").start()
    else:
        _close_after(others)


def _close_after(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join()
    with contextlib.ExitStack() as stack:
        for objects in _all:  # as atexit: the newest set first
            stack.callback(objects.close_all)
