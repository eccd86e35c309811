# SPDX-License-Identifier: Apache-2.0
"""The library's loader as penstock.Loader holds it: its locks, fork, waiting and closing.

Locks are taken by `with` itself: a context manager written in Python might be struck by a signal's handler
before it gives its lock back.
"""
from __future__ import annotations

import gc
import os
import sys
import threading
import time
from ctypes import POINTER, byref, c_void_p, sizeof

from . import _c, errors, stats as statistics, tensors
from .errors import PenstockError

__all__ = ["Handle"]

SLICE_NS = 50_000_000  # a wait in the library, between two looks at signals
_CUDA_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation


class Handle:
    """A `struct pstk_loader *` from pstk_open to pstk_close, and who may use it when.

    Invariants:
    - `turn` is held by whoever calls pstk_next, pstk_seek or pstk_close: the library allows one of them at a
      time. `batch` and `error` belong to the holder of `turn`.
    - `alive` is held, shortly, by whoever uses `pointer` otherwise. Nobody takes `turn` while holding it.
    - close holds both while it moves `pointer` to `dying`, so it frees nothing that another thread uses.
    - `pointer` or `dying` is set as long as pstk_close has not returned: the next close() finishes one that
      a signal's handler interrupted.
    - Only the process `pid` takes a lock: in a child of fork, a thread that is not there may hold it.
    - `closing`, once true, stays: a wait that ends then ends by InterruptedLoaderError.
    """

    __slots__ = ("alive", "batch", "closing", "dying", "error", "exiting", "on_device", "pid", "pointer",
                 "timeout", "turn")

    def __init__(self, on_device: bool = False, timeout: float | None = None) -> None:
        """on_device: batches are in a device's slots. timeout: seconds to wait for a batch; None: no end."""
        self.turn, self.alive = threading.RLock(), threading.RLock()
        self.pid = os.getpid()
        self.pointer, self.dying = c_void_p(), c_void_p()
        self.closing = False
        self.exiting = False  # the interpreter ends: daemon threads end without a traceback
        # The lease of a batch from pstk_next until it has a share, or an exception kept it back.
        self.batch, self.error = POINTER(_c.Batch)(), errors.new()
        self.on_device, self.timeout = on_device, timeout

    def open(self, settings: _c.Settings) -> None:
        """Call pstk_open; once more where a device has no memory left, after PyTorch emptied its cache."""
        error = errors.new()
        code = int(_c.lib.pstk_open(byref(self.pointer), byref(settings), byref(error)))
        torch = sys.modules.get("torch")
        if code == _c.ENOMEM and self.on_device and error.native == _CUDA_OUT_OF_MEMORY and torch is not None:
            torch.cuda.empty_cache()
            code = int(_c.lib.pstk_open(byref(self.pointer), byref(settings), byref(error)))
            if code == _c.ENOMEM:
                error.message = (error.message + b"; that is after torch.cuda.empty_cache()")[:767]
        errors.check(code, error)

    # ---- who may use it ------------------------------------------------------------------------------------

    def opened(self) -> c_void_p:
        """The pointer, which close leaves alone while the caller holds one of the locks."""
        if not self.pointer:
            raise SystemExit if self.exiting else PenstockError("this loader is closed: open another one")
        return self.pointer

    def check_process(self) -> None:
        """Any thread, before it takes a lock. Raises ForkedError in a child of fork."""
        if os.getpid() != self.pid:
            self._refuse()

    def check_turn(self) -> None:
        """Any thread, before it takes `turn`."""
        self.check_process()
        if self.turn._is_owned():  # type: ignore[attr-defined]
            raise PenstockError("the loader is in the middle of a call of this thread's: a signal's handler "
                                "may neither iterate nor seek then (set a flag there, or raise, and go on "
                                "where you iterate), nor may what the loader calls")

    def _refuse(self) -> None:
        """In a child of fork: raise what the library answers there. No lock is touched."""
        error = errors.new()
        code = _c.lib.pstk_next(self.pointer, byref(POINTER(_c.Batch)()), None, 0, byref(error))
        errors.check(code, error)

    def interrupt(self) -> None:
        """End a wait for a batch, or the next one. Any thread; in a child of fork nothing: nobody waits."""
        if os.getpid() != self.pid:
            return
        with self.alive:
            if self.pointer:
                _c.lib.pstk_interrupt(self.pointer)

    def stats(self) -> statistics.Stats:
        """Any thread; never waits for `turn`."""
        found = _c.Stats(size=sizeof(_c.Stats))
        self.check_process()
        with self.alive:
            errors.check(_c.lib.pstk_get_stats(self.opened(), byref(found)), errors.new())
        return statistics.of(found)

    # ---- closing -------------------------------------------------------------------------------------------

    def begin_close(self) -> bool:
        """Any thread, holding nothing: end a wait under way. False: there is nothing to close here."""
        if not (self.pointer or self.dying) or os.getpid() != self.pid:
            return False
        self.closing = True
        self.interrupt()
        return True

    def hand_over(self) -> None:
        """With both locks held: from here on nobody may use the pointer."""
        self.dying.value = self.pointer.value or self.dying.value  # both have it for a moment, rather than none
        self.pointer.value = None

    def end_close(self) -> None:
        """With `turn` held but not `alive`: while the library's threads end, others may ask for stats()."""
        _c.lib.pstk_close(byref(self.dying))

    # ---- waiting, with `turn` held -------------------------------------------------------------------------

    def wait(self, stream: int | None) -> bool:
        """Lease the next batch in `batch`; False at the end of the epoch."""
        code = tensors.next_quick(self.pointer, byref(self.batch), stream, 0, byref(self.error))
        if code == _c.ETIMEDOUT:
            code = self._wait_long(stream)
        if code == _c.ENOBUFS:
            # Batches may hang on reference cycles, of a traceback, say.
            gc.collect()
            code = self._wait_long(stream)
        if code == _c.ENOBUFS:
            raise self._out_of_slots()
        if code < 0:
            raise self.closed_meanwhile() if self.closing else errors.of(self.error, code)
        return bool(code)

    def _wait_long(self, stream: int | None) -> int:
        """In slices, between which the interpreter sees to signals."""
        end = None if self.timeout is None else time.monotonic() + self.timeout
        while True:
            code = int(_c.lib.pstk_next(self.pointer, byref(self.batch), stream, SLICE_NS, byref(self.error)))
            if self.closing:
                raise self.closed_meanwhile()
            if code != _c.ETIMEDOUT or (end is not None and time.monotonic() >= end):
                return code

    def closed_meanwhile(self) -> BaseException:
        """What ends a wait of a loader that was closed."""
        if self.exiting:
            return SystemExit()
        return errors.InterruptedLoaderError("the loader was closed while this waited for a batch")

    def _out_of_slots(self) -> PenstockError:
        if b"captured" in self.error.message:  # there is no batch to release
            return errors.of(self.error, _c.ENOBUFS)
        counts = self.stats()
        name, n = ("n_device_slots", counts.n_device_slots) if self.on_device else ("n_slots", counts.n_slots)
        self.error.message = (
            f"all {n} slots are held by batches that are still referenced: let go of older ones before "
            f"asking for more, open the loader with {name} above {n}, or with copy=True, which gives tensors "
            "that hold no slot").encode()
        return errors.of(self.error, _c.ENOBUFS)
