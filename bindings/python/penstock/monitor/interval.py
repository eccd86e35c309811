# SPDX-License-Identifier: Apache-2.0
"""Differences of a loader's counters between two looks, and the verdict on them. All functions are pure."""
from __future__ import annotations

from ctypes import byref, sizeof
from dataclasses import dataclass
from typing import Any

from .. import _c, forecast as forecasts
from ..forecast import Forecast
from ..stats import BOTTLENECKS, StageStats, Stats

__all__ = ["Interval", "predicted", "verdict"]

_COUNTS = ("n_samples", "bytes_delivered", "n_batches", "n_replacements", "bytes_read", "n_reads", "stream_used_ns",
           "stream_starved_ns", "stream_start_ns", "cpu_ns", "n_rows_ahead")
_STAGES = ("stage_reader", "stage_workers", "stage_consumer", "stage_uploader")
_ENOUGH = 4  # batches; the library's rule does not judge fewer


@dataclass(frozen=True)
class Interval:
    """The differences between two Stats of the same loader, under the same names, and the seconds between them."""

    seconds: float
    n_samples: int
    bytes_delivered: int
    n_batches: int
    n_replacements: int
    bytes_read: int
    n_reads: int
    stream_used_ns: int
    stream_starved_ns: int
    stream_start_ns: int
    cpu_ns: int
    n_rows_ahead: int
    stage_reader: StageStats
    stage_workers: StageStats
    stage_consumer: StageStats
    stage_uploader: StageStats

    @classmethod
    def between(cls, before: Stats, after: Stats, seconds: float) -> Interval:
        values: dict[str, Any] = {name: getattr(after, name) - getattr(before, name) for name in _COUNTS}
        values.update({name: _stage(getattr(before, name), getattr(after, name)) for name in _STAGES})
        return cls(seconds, **values)

    @property
    def loop_s(self) -> float:
        """Seconds of the training loop that the loader has counted: between batches, and waiting for them. The work on
        a batch counts once the loop asks for the next one."""
        return (self.stage_consumer.busy_ns + self.stage_consumer.starved_ns) / 1e9

    @property
    def waiting(self) -> float | None:
        """Share of loop_s, 0 to 1, in which the loop waited for data; None: no time was counted."""
        return self.stage_consumer.starved_ns / 1e9 / self.loop_s if self.loop_s else None

    @property
    def pace(self) -> float | None:
        """Samples in a second of loop_s; None: no time was counted. It does not depend on where in a step the interval
        ends, unlike samples in a second of the clock."""
        return self.n_samples / self.loop_s if self.loop_s else None

    @property
    def step_ms(self) -> float | None:
        """Milliseconds of a step, with its wait; None: there was no step."""
        return 1e3 * self.loop_s / self.n_batches if self.n_batches else None

    @property
    def wait_ms(self) -> float | None:
        """Milliseconds in which the loop waited for data in a step; None: there was no step."""
        return self.stage_consumer.starved_ns / 1e6 / self.n_batches if self.n_batches else None


def _stage(before: StageStats, after: StageStats) -> StageStats:
    return StageStats(after.busy_ns - before.busy_ns, after.starved_ns - before.starved_ns,
                      after.blocked_ns - before.blocked_ns, after.cpu_ns - before.cpu_ns,
                      after.core_wait_ns - before.core_wait_ns, after.n_items - before.n_items, after.n_threads)


def _counts(of: Interval | Stats, **more: int) -> _c.Stats:
    """Return the counters as the library's struct."""
    found = _c.Stats(size=sizeof(_c.Stats), **{**{name: getattr(of, name) for name in _COUNTS}, **more})
    for name in _STAGES:
        stage = getattr(of, name)
        setattr(found, name, _c.StageStats(**{one: getattr(stage, one) for one in StageStats.__dataclass_fields__}))
    return found


def verdict(of: Interval | Stats) -> str:
    """Return the stage that limits the loader, a key of penstock.stats.ADVICE, by the library's rule
    (pstk_find_bottleneck), which needs 4 batches. In an interval with 2 s of loop_s one step is enough. If the loop waited
    for 1 s, none is needed."""
    few = of.n_batches < (1 if isinstance(of, Interval) and of.loop_s >= 2 else _ENOUGH)
    if few and of.stage_consumer.starved_ns <= 1_000_000_000:
        return "unknown"
    found = _counts(of, n_batches=max(of.n_batches, _ENOUGH))
    return BOTTLENECKS.get(_c.lib.pstk_find_bottleneck(byref(found)), "unknown")


def predicted(of: Interval, limit: str, settings: Stats, cores: float) -> Forecast | None:
    """Return the predictions for one more worker, storage that is twice as fast, and a loop that takes every batch at
    once, from an interval alone. None: the interval is too short to predict.

    limit: the verdict on the interval.
    settings: any Stats of the loader, for its settings.
    cores: cores that the process may use.
    """
    found = _counts(of, bottleneck=_c.NAMES["bottleneck"][limit], n_threads=settings.n_threads,
                    n_device_slots=settings.n_device_slots)
    all_of_them = forecasts.of_counts(found, cores, forecasts.SINGLE)
    return all_of_them if all_of_them.cases else None
