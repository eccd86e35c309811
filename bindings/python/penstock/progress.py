# SPDX-License-Identifier: Apache-2.0
"""Show progress on stderr: a bar on a terminal, else a line now and then."""
from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time

REDRAW_SECONDS = 0.1
QUIET_SECONDS = 10.0  # seconds between two lines
STALLED_SECONDS = 10.0  # seconds without progress after which no rate is shown
MAX_BAR = 30


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _spaced(n: int) -> str:
    return f"{n:,}".replace(",", " ")


def say(text: str) -> None:
    """Print a line on stderr. It is escaped, because paths in it may have any character."""
    if sys.stderr is not None:
        said = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
        with contextlib.suppress(OSError, ValueError):  # stderr may be closed
            bar = "\r\033[K" if sys.stderr.isatty() else ""
            print(f"{bar}penstock: {said}", file=sys.stderr, flush=True)


class Progress:
    """A display of n of `total` (None: unknown). Its end as a context manager removes the bar."""

    def __init__(self, doing: str, what: str, total: int | None, shown: bool = True) -> None:
        self._doing, self._what, self._total = doing, what, total
        self._shown = shown and sys.stderr is not None
        self._is_terminal = self._shown and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._start = self._last = self._moved = time.monotonic()
        self._first: int | None = None  # n at _start; the rate counts from it, because another process may have begun
        self._n = 0
        self._is_drawn = False

    def _facts(self, n: int) -> str:
        elapsed, gain = max(self._last - self._start, 1e-9), n - (self._first or 0)
        if self._last - self._moved >= STALLED_SECONDS:  # the time left would grow, and be wrong
            return f"{_spaced(n)} {self._what}, no more for {_clock(self._last - self._moved)}"
        text = f"{_spaced(n)} {self._what}, {_spaced(round(gain / elapsed))}/s"
        if self._total and 0 < gain and n <= self._total and elapsed > 0.5:
            text += f", {_clock(elapsed * (self._total - n) / gain)} left"
        return text

    def _draw(self, n: int) -> None:
        width, text = shutil.get_terminal_size().columns, self._facts(n)
        cells = min(MAX_BAR, width - 12 - len(self._doing) - len(text))
        if self._total and cells >= 8:
            part = min(n / self._total, 1.0)
            full = int(part * cells)
            text = f"{self._doing} [{'#' * full}{'.' * (cells - full)}] {100 * part:3.0f}%  {text}"
        sys.stderr.write("\r\033[K" + text[:max(width - 1, 1)])
        sys.stderr.flush()
        self._is_drawn = True

    def update(self, n: int) -> None:
        """Show that n are done. Most calls only read the clock."""
        now = time.monotonic()
        if self._first is None:
            self._first, self._start = n, now
        if n != self._n:
            self._n, self._moved = n, now
        if not self._shown or now - self._last < (REDRAW_SECONDS if self._is_terminal else QUIET_SECONDS):
            return
        self._last = now
        if self._is_terminal:
            self._draw(n)
        else:
            print(f"penstock: {self._doing}: {self._facts(n)}", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
