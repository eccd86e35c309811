# SPDX-License-Identifier: Apache-2.0
"""The library's loader as penstock.Loader holds it: locks, fork, waiting and closing.

Locks are taken by `with` itself: a signal handler could interrupt a context manager written in Python before it
releases its lock.
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

SLICE_NS = 50_000_000  # longest wait inside of the library, after which the interpreter handles signals; ns
_CUDA_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation


class Handle:
    """A `struct pstk_loader *` from pstk_open to pstk_close, with the locks of its users.

    Invariants:
    - A caller of pstk_next, pstk_seek or pstk_close holds `turn`: the library allows one of them at a time.
      `batch` and `error` belong to the holder of `turn`.
    - Any other user of `pointer` holds `alive`, for a short time. Nobody takes `turn` while holding it.
    - close holds both while it moves `pointer` to `dying`, so it frees nothing that another thread uses.
    - `pointer` or `dying` is set until pstk_close has returned: the next close() finishes one that a signal
      handler interrupted.
    - Only the process `pid` takes a lock: in a child of fork, a thread of the parent may seem to hold it.
    - `closing` never becomes false again: a wait that ends then raises InterruptedLoaderError.
    """

    __slots__ = ("alive", "batch", "closing", "dying", "error", "exiting", "on_device", "pid", "pointer",
                 "timeout", "traced", "turn")

    def __init__(self, on_device: bool = False, timeout: float | None = None) -> None:
        """Make a handle without a loader. on_device: whether batches are in a device's slots. timeout: seconds to wait
        for a batch; None: no limit."""
        self.turn, self.alive = threading.RLock(), threading.RLock()
        self.pid = os.getpid()
        self.pointer, self.dying = c_void_p(), c_void_p()
        self.closing = False
        self.exiting = False  # True once the interpreter ends: daemon threads then end without a traceback
        # A leased batch, from pstk_next until a share takes it. An exception may leave it here.
        self.batch, self.error = POINTER(_c.Batch)(), errors.new()
        self.on_device, self.timeout = on_device, timeout
        self.traced = False  # whether close writes a trace, and warns if it cannot

    def open(self, settings: _c.Settings) -> None:
        """Call pstk_open. If the device has no memory left, empty PyTorch's cache and call it once more."""
        error = errors.new()
        code = int(_c.lib.pstk_open(byref(self.pointer), byref(settings), byref(error)))
        torch = sys.modules.get("torch")
        if code == _c.ENOMEM and self.on_device and error.native == _CUDA_OUT_OF_MEMORY and torch is not None:
            torch.cuda.empty_cache()
            code = int(_c.lib.pstk_open(byref(self.pointer), byref(settings), byref(error)))
            if code == _c.ENOMEM:
                error.message = (error.message + b"; torch.cuda.empty_cache() did not help")[:767]
        errors.check(code, error)

    # ---- users ---------------------------------------------------------------------------------------------

    def opened(self) -> c_void_p:
        """Return the pointer. close does not free it while the caller holds one of the locks."""
        if not self.pointer:
            raise SystemExit if self.exiting else PenstockError("this loader is closed (open another one)")
        return self.pointer

    def check_process(self) -> None:
        """Raise ForkedError in a child of fork. Any thread, before it takes a lock."""
        if os.getpid() != self.pid:
            self._refuse()

    def check_turn(self) -> None:
        """Raise if this thread holds `turn`. Any thread, before it takes `turn`."""
        self.check_process()
        if self.turn._is_owned():  # type: ignore[attr-defined]
            raise PenstockError("this thread is already in a call of the loader: a signal handler or a callback "
                                "must not iterate or seek (set a flag there, and act on it in the loop)")

    def _refuse(self) -> None:
        """Raise the library's error for a child of fork. Take no lock."""
        error = errors.new()
        code = _c.lib.pstk_next(self.pointer, byref(POINTER(_c.Batch)()), None, 0, byref(error))
        errors.check(code, error)

    def interrupt(self) -> None:
        """End a wait for a batch, or the next wait. Thread: any. In a child of fork, where no thread waits, do nothing."""
        if os.getpid() != self.pid:
            return
        with self.alive:
            if self.pointer:
                _c.lib.pstk_interrupt(self.pointer)

    def counts(self) -> _c.Stats:
        """Return the library's struct of statistics. Thread: any; never waits for `turn`."""
        found = _c.Stats(size=sizeof(_c.Stats))
        self.check_process()
        with self.alive:
            errors.check(_c.lib.pstk_get_stats(self.opened(), byref(found)), errors.new())
        return found

    def stats(self) -> statistics.Stats:
        """Return the statistics. Thread: any; never waits for `turn`."""
        return statistics.of(self.counts())

    # ---- closing -------------------------------------------------------------------------------------------

    def begin_close(self) -> bool:
        """End a wait of another thread, so that it gives up `turn`. False: there is nothing to close. Thread: any that
        holds no lock."""
        if not (self.pointer or self.dying) or os.getpid() != self.pid:
            return False
        self.closing = True
        self.interrupt()
        return True

    def hand_over(self) -> None:
        """Move the pointer to `dying`, so that no other thread uses it. The caller holds both locks."""
        self.dying.value = self.pointer.value or self.dying.value  # for a moment both hold it; there is none at which neither does
        self.pointer.value = None

    def end_close(self) -> None:
        """Close the library's loader. The caller holds `turn`, not `alive`: other threads may call stats() meanwhile."""
        if self.traced and self.dying:
            from .trace import end
            self.traced = False  # first, so that it is not written again if the warning is an error
            end(self.dying)
        _c.lib.pstk_close(byref(self.dying))

    # ---- waiting, with `turn` held -------------------------------------------------------------------------

    def wait(self, stream: int | None) -> bool:
        """Lease the next batch into `batch`. Return False at the end of the epoch."""
        code = tensors.next_quick(self.pointer, byref(self.batch), stream, 0, byref(self.error))
        if code == _c.ETIMEDOUT:
            code = self._wait_long(stream)
        if code == _c.ENOBUFS:
            # Reference cycles may hold batches, for example those of a traceback.
            gc.collect()
            code = self._wait_long(stream)
        if code == _c.ENOBUFS:
            raise self._out_of_slots()
        if code < 0:
            raise self.closed_meanwhile() if self.closing else errors.of(self.error, code)
        return bool(code)

    def _wait_long(self, stream: int | None) -> int:
        """Wait in short slices. Between two of them the interpreter handles signals."""
        end = None if self.timeout is None else time.monotonic() + self.timeout
        while True:
            code = int(_c.lib.pstk_next(self.pointer, byref(self.batch), stream, SLICE_NS, byref(self.error)))
            self.check_closing()
            if code != _c.ETIMEDOUT or (end is not None and time.monotonic() >= end):
                return code

    def check_closing(self) -> None:
        """Raise if the loader is being closed."""
        if self.closing:
            raise self.closed_meanwhile()

    def closed_meanwhile(self) -> BaseException:
        """Return the exception for a wait in a loader that was closed."""
        if self.exiting:
            return SystemExit()
        return errors.InterruptedLoaderError("the loader was closed while this thread waited for a batch")

    def _out_of_slots(self) -> PenstockError:
        if b"captured" in self.error.message:  # this message is about a captured stream: there is no batch to release
            return errors.of(self.error, _c.ENOBUFS)
        counts = self.stats()
        name, n = ("Device.n_slots", counts.n_device_slots) if self.on_device else ("Memory.n_slots", counts.n_slots)
        self.error.message = (
            f"all {n} slots are held by batches that are still referenced (drop older batches before you take "
            f"another, or open the loader with {name} above {n}, or with Device.copy=True, whose tensors hold no slot)"
        ).encode()
        return errors.of(self.error, _c.ENOBUFS)
