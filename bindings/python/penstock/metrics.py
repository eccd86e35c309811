# SPDX-License-Identifier: Apache-2.0
"""Metrics of a loader: counts and distributions of times in a window of time."""
from __future__ import annotations

from ctypes import byref, sizeof
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from . import _c, errors
from .errors import SettingsError
from .stats import FALLBACKS

if TYPE_CHECKING:
    from .handle import Handle

__all__ = ["Distribution", "Metrics"]

WINDOWS = {"open": _c.WINDOW_OPEN, "look": _c.WINDOW_LOOK, "minute": _c.WINDOW_MINUTE}


@dataclass(frozen=True)
class Distribution:
    """The distribution of n values. Times are in nanoseconds.

    n: number of values.
    sum: their sum.
    p50, p95, p99: half, 95 % and 99 % of the values are at most this. A quantile is at most 1/8 above the true one.
    max: the largest value.

    All are 0 if there is no value.
    """

    n: int
    sum: int
    p50: int
    p95: int
    p99: int
    max: int

    def __str__(self) -> str:
        return f"p50 {_time(self.p50)}, p95 {_time(self.p95)}, p99 {_time(self.p99)}, max {_time(self.max)}"


@dataclass(frozen=True)
class Metrics:
    """Counts and times of a window of time, with the names of pstk_metrics.

    window: "open", "look" or "minute".
    duration_ns: length of the window. n_batches, n_samples, n_replacements, bytes_delivered: counters of
        penstock.Stats, for this window.
    bytes_read, n_reads, n_slow_reads, n_index_hits, n_index_misses: counters of penstock.Stats, for this window.
    n_ready: batches for which the loop did not wait.
    fallbacks: names of the fallbacks in use, since open.

    These are distributions of times in ns:

    wait: of the loop, for each delivered batch.
    read: of each read.
    decode: of a worker, for a run of rows.
    copy: of the copies of a batch to the device.
    finish: from a batch's last row until the batch is complete: functions of whole batches, MixUp, ragged rows.
    stream: of the stream's wait for each batch, on the device; only with Device.measure.

    These are distributions of counts:

    jobs: jobs left in the queue of a worker that took one.
    ready, leased, free: slots of batches when the loop asked for a batch; noted every 10 ms at most.
    """

    window: str
    duration_ns: int
    n_batches: int
    n_samples: int
    n_replacements: int
    bytes_delivered: int
    bytes_read: int
    n_reads: int
    n_slow_reads: int
    n_index_hits: int
    n_index_misses: int
    n_ready: int
    wait: Distribution
    read: Distribution
    decode: Distribution
    copy: Distribution
    fallbacks: tuple[str, ...]
    finish: Distribution
    stream: Distribution
    jobs: Distribution
    ready: Distribution
    leased: Distribution
    free: Distribution

    @property
    def samples_per_second(self) -> float:
        """Samples delivered in a second of the window."""
        return self.n_samples * 1e9 / self.duration_ns if self.duration_ns else 0.0

    @property
    def waiting(self) -> float:
        """Share of the window, 0 to 1, in which the loop waited for the batches that it got."""
        return min(1.0, self.wait.sum / self.duration_ns) if self.duration_ns else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all values as a dict for JSON."""
        return {**asdict(self), "fallbacks": list(self.fallbacks)}

    def __str__(self) -> str:
        return (f"{self.duration_ns / 1e9:.1f} s: {self.samples_per_second:,.0f} samples/s, waited {100 * self.waiting:.1f} % "
                f"(for a batch {self.wait})")


def _time(ns: float) -> str:
    for unit in ("ns", "us", "ms"):
        if ns < 1000:
            return f"{ns:.3g} {unit}"
        ns /= 1000
    return f"{ns:.3g} s"


def get(handle: Handle, window: Any) -> Metrics:
    """Return the metrics of a window. Raises SettingsError for another name. Thread: any."""
    if not isinstance(window, str) or window not in WINDOWS:
        raise SettingsError(f"window: value is {window!r}; must be one of {', '.join(map(repr, WINDOWS))}")
    found = _c.Metrics(size=sizeof(_c.Metrics))
    handle.check_process()
    with handle.alive:
        errors.check(_c.lib.pstk_get_metrics(handle.opened(), WINDOWS[window], byref(found)), errors.new())
    values: dict[str, Any] = {}
    for name in Metrics.__dataclass_fields__:
        value = getattr(found, name)
        values[name] = value if not isinstance(value, _c.Distribution) else Distribution(
            *(int(getattr(value, member)) for member in Distribution.__dataclass_fields__))
    values["window"] = window
    values["fallbacks"] = tuple(name for bit, name in FALLBACKS.items() if found.fallbacks & bit)
    return Metrics(**values)
