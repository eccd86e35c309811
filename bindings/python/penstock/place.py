# SPDX-License-Identifier: Apache-2.0
"""The position of a penstock.Loader: its cursor, and its passes over epochs.

A signal handler may raise between any two instructions of Python. So the cursor moves in two steps, and a batch that
was lost between them comes again.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from ctypes import byref
from typing import TYPE_CHECKING, Any

from . import _c, errors
from .batch_size import BatchSize
from .handle import Handle

if TYPE_CHECKING:
    from .loader import Loader

__all__ = ["Coming", "Pass", "Place"]

# A batch on its way to the caller: (thread that asked for it, cursor after it).
Coming = tuple[int, tuple[int, int]]


class Place:
    """The cursor of a loader and its newest pass. Callers hold the handle's `turn`, unless noted.

    Invariants:
    - `cursor` (epoch, position) is just after the last batch that certainly reached the caller.
    - `astray`: the library's cursor may be ahead of `cursor`; the loader seeks back before the next batch.
    - `coming`: the last batch that was handed out, until it reaches the caller. If it is still set when its thread asks
      again, the batch was lost. The batch of another thread counts as received.
    - `resume` is the last place that open, a seek or a loaded state set. The next pass begins there if `cursor` has not
      left it. `start` is the place where the newest pass began.
    - `number` is the number of the newest pass; earlier passes are over.
    - `asked`: set_epoch named the epoch of the next pass, even if nothing of it is left.
    - `size` is the size of the next batch. If `astray`, the library may still have another one.
    - `counted` (batches, cursor): the number of batches that the newest pass had given when the size last changed, and
      the cursor at that moment.
    """

    __slots__ = ("_handle", "_order", "asked", "astray", "coming", "counted", "cursor", "number", "resume", "size",
                 "start", "_schedule")

    def __init__(self, handle: Handle, order: _c.OrderSettings, epoch: int, position: int, size: BatchSize) -> None:
        """Make the place of a loader that starts at a position. order: all settings that fix the order, except the
        epoch and the rows of batches."""
        self._handle, self._order, self.size = handle, order, size
        self._schedule = size.schedule_to(order)  # kept, because the order points to it
        self.cursor = self.resume = self.start = (epoch, position)
        self.number, self.counted = 0, (0, self.cursor)
        self.asked = self.astray = False
        self.coming: Coming | None = None

    # ---- any thread, holding no lock ------------------------------------------------------------------------

    def seen(self) -> tuple[int, int]:
        """Return the cursor, as the calling thread knows it."""
        coming = self.coming
        return self.cursor if coming is None or coming[0] == threading.get_ident() else coming[1]

    def current_epoch(self) -> int:
        """Return the epoch of the next batch. A pass that reached the end of its epoch is still in it."""
        epoch, position = self.seen()
        return epoch + (self.resume == (epoch, position) and not self.n_left(epoch, position))

    def n_left(self, epoch: int, position: int) -> int:
        """Return the number of batches from a position to the end of its epoch. With a budget the loader must be open."""
        if self.size.budget is not None:
            with self._handle.alive:
                return int(_c.lib.pstk_n_batches_left(self._handle.opened(), epoch, position))
        return int(_c.lib.pstk_order_n_batches(byref(self._order_of(epoch)), position))

    def rows(self) -> int:
        """Return the rows of the next batch, of all processes together."""
        if self.size.budget is not None:
            return self.size.world_wide
        epoch, position = self.seen()
        if self.size.schedule and not self.n_left(epoch, position):
            epoch, position = epoch + 1, 0
        return int(_c.lib.pstk_order_rows(byref(self._order_of(epoch)), position))

    def _order_of(self, epoch: int) -> _c.OrderSettings:
        order = _c.OrderSettings.from_buffer_copy(self._order)
        order.epoch = epoch
        for name, rows in self.size.for_order().items():
            setattr(order, name, rows)
        return order

    # ---- moving --------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Decide whether the last batch that was handed out reached its caller. If it did, move the cursor past it."""
        coming = self.coming
        if coming is None:
            return
        if coming[0] == threading.get_ident():
            self.astray = True
        else:
            self.cursor = coming[1]
        self.coming = None

    def seek(self, epoch: int, position: int) -> None:
        """Move the cursor and the library to a position. The library refuses a position outside of the data set before
        it moves."""
        error, before, self.astray = errors.new(), self.astray, True
        # A change of the size may have been interrupted. To set the same size again costs nothing.
        code = 0
        if not self.size.is_fixed:
            code = _c.lib.pstk_set_batch_size(self._handle.pointer, self.size.given, byref(error))
        if code >= 0:
            code = _c.lib.pstk_seek(self._handle.pointer, epoch, position, byref(error))
        if code < 0:
            self.astray = before
            raise errors.of(error, code)
        self.cursor, self.astray = (epoch, position), False

    def resize(self, size: BatchSize) -> None:
        """Give batches another size, from the next one on. The library refuses a size before it changes anything."""
        error, before, self.astray = errors.new(), self.astray, True
        code = _c.lib.pstk_set_batch_size(self._handle.pointer, size.given, byref(error))
        if code < 0:
            self.astray = before
            raise errors.of(error, code)
        n, mark = self.counted
        if mark[0] == self.cursor[0]:
            self.counted = n + self.n_left(*mark) - self.n_left(*self.cursor), self.cursor
        self.size, self.astray = size, before

    def length(self) -> int:
        """Return the number of batches of the newest pass. Those that are still to come count in the present size."""
        return self.counted[0] + self.n_left(*self.counted[1])

    def go(self, epoch: int, position: int) -> None:
        """Go to a position, and end all earlier passes."""
        self.seek(epoch, position)
        self.resume = self.start = self.cursor
        self.number += 1
        self.asked = False

    def ask(self, epoch: int) -> None:
        """Make `epoch` the next pass. It begins at the epoch's start, or at a position of it that was set and not used
        yet."""
        if self.cursor != self.resume or self.resume[0] != epoch:
            self.go(epoch, 0)
        self.asked = True

    def begin(self) -> tuple[int, int, int]:
        """Begin a pass at the cursor. Return its number, its epoch and its number of batches."""
        self.start, self.asked = self.cursor, False
        self.counted = 0, self.cursor
        self.number += 1
        return self.number, self.cursor[0], self.n_left(*self.cursor)

    def begin_next(self) -> tuple[int, int, int]:
        """Begin a pass, in the next epoch if the loop left this one early, or if it has ended. Return as begin()."""
        left_early = self.cursor[1] > 0 and self.cursor != self.start
        if not self.asked and (left_early or not self.n_left(*self.cursor)):
            self.seek(self.cursor[0] + 1, 0)
        return self.begin()


class Pass(Iterator[Any]):
    """One pass over an epoch, or over the rest of it. len() is its number of batches; those that are still to come
    count in the present size."""

    def __init__(self, loader: Loader, number: int, epoch: int, n_batches: int) -> None:
        self._loader: Loader | None = loader
        self._number, self._epoch, self._n_batches = number, epoch, n_batches
        self.n_parts: int | None = None  # parts of each batch; None: batches are whole

    def __len__(self) -> int:
        place = None if self._loader is None else self._loader._place
        if place is not None and place.number == self._number:
            self._n_batches = place.length()  # the size may have changed
        return self._n_batches

    def __iter__(self) -> Pass:
        return self

    def __next__(self) -> Any:
        if self._loader is None:
            raise StopIteration
        place = self._loader._place
        try:
            profiler = sys.modules.get("torch.autograd.profiler")
            if profiler is not None and getattr(profiler, "_is_profiler_enabled", False):
                with profiler.record_function("penstock.next"):  # a range for torch.profiler
                    batch, coming = self._loader._next(self._number, self._epoch, self.n_parts)
            else:
                batch, coming = self._loader._next(self._number, self._epoch, self.n_parts)
        except StopIteration as error:
            raise RuntimeError("a callback of the loader raised StopIteration, which would end the loop as if the "
                               "epoch were over") from error
        if coming is None:
            self._n_batches, self._loader = len(self), None
            raise StopIteration
        # No call follows, so no handler can raise. Python 3.9 handles signals between any two instructions: there a
        # batch may be lost on the last one.
        if place.coming is coming:
            place.cursor, place.coming = coming[1], None
        return batch
