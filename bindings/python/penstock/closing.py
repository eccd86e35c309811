# SPDX-License-Identifier: Apache-2.0
"""Objects that are closed when the process ends. A child that multiprocessing forked ends by os._exit, which runs no function
of atexit, so there a finalizer of multiprocessing closes them."""
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
_finalized_in = 0  # the process in which multiprocessing calls _finalize


class ClosedAtEnd(Generic[T]):
    """A set of open objects. `close` gets those left when the process ends; every one of them, whatever one of them raises."""

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
    """Let multiprocessing call _finalize, in its children. It is never imported for this: its children have it."""
    global _finalized_in
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is None or util is None or process.parent_process() is None or _finalized_in == os.getpid():
        return
    _finalized_in = os.getpid()
    util.Finalize(None, _finalize, exitpriority=0)  # those of queues, which sinks may use, are below 0


def _ends_by_atexit() -> bool:
    """Whether this child was spawned: its interpreter ends as any other, by atexit, after what users registered there."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_bootstrap":
        frame = frame.f_back
    main = frame and frame.f_back
    return main is not None and main.f_back is not None and main.f_back.f_code.co_name == "spawn_main"


def _forget() -> None:
    """In a child of fork: what the parent has open is the parent's, and its locks may be held for ever here."""
    for objects in _all:
        objects._open = weakref.WeakSet()


os.register_at_fork(after_in_child=_forget)


def _finalize() -> None:
    """Close all. Threads that multiprocessing waits for after its finalizers may still use them, and are waited for first."""
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
        for objects in _all:  # the newest first, as atexit does
            stack.callback(objects.close_all)
