# SPDX-License-Identifier: Apache-2.0
"""Differences of a loader's counters between two looks, and the verdict on them. All functions are pure."""
from __future__ import annotations

from ctypes import sizeof
from dataclasses import dataclass
from typing import Any

from .. import _c, forecast as forecasts
from ..forecast import Forecast
from ..stats import StageStats, Stats

__all__ = ["Interval", "predicted", "verdict"]

_COUNTS = ("n_samples", "bytes_delivered", "n_batches", "n_replacements", "bytes_read", "n_reads", "stream_used_ns",
           "stream_starved_ns", "cpu_ns", "n_rows_ahead")
_STAGES = ("stage_reader", "stage_workers", "stage_consumer", "stage_uploader")


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


def _share(part: int, stage: StageStats) -> float:
    whole = stage.busy_ns + stage.starved_ns + stage.blocked_ns
    return part / whole if whole else 0.0


def verdict(of: Interval | Stats) -> str:
    """Return the stage that limits the loader, a key of penstock.stats.ADVICE. The rule is that of stats().bottleneck,
    which the library applies to the time since the loop first asked for a batch. In an interval with 2 s of loop_s, one
    step is enough."""
    consumer, workers, reader, uploader = of.stage_consumer, of.stage_workers, of.stage_reader, of.stage_uploader
    few = of.n_batches < (1 if isinstance(of, Interval) and of.loop_s >= 2 else 4)  # the library's rule needs 4 batches
    stalled = few and consumer.starved_ns > 1_000_000_000
    if few and not stalled or consumer.busy_ns + consumer.starved_ns < 100_000_000:
        return "unknown"
    if _share(consumer.starved_ns, consumer) < 0.1:
        return "consumer"
    timed = of.stream_used_ns + of.stream_starved_ns > 0
    if of.stream_starved_ns < of.stream_used_ns // 10 if timed else _share(uploader.blocked_ns, uploader) > 0.5:
        return "consumer"
    copy = _share(uploader.busy_ns + (uploader.blocked_ns if timed else 0), uploader)
    decode, reads = _share(workers.busy_ns, workers), _share(reader.busy_ns, reader)
    storage = _share(reader.starved_ns, reader)
    if max(copy, decode, reads, storage) < 0.1:
        return "unknown"
    if copy > max(decode, reads, storage):
        return "copy"
    if decode >= max(reads, storage):
        return "decode"
    return "reader" if reads >= storage else "storage"


def predicted(of: Interval, limit: str, settings: Stats, cores: float) -> Forecast | None:
    """Return the predictions for one more worker, storage that is twice as fast, and a loop that takes every batch at
    once, from an interval alone. None: the interval is too short to predict.

    limit: the verdict on the interval.
    settings: any Stats of the loader, for its settings.
    cores: cores that the process may use.
    """
    found = _c.Stats(size=sizeof(_c.Stats), bottleneck=_c.NAMES["bottleneck"][limit], n_threads=settings.n_threads,
                     n_device_slots=settings.n_device_slots, **{name: getattr(of, name) for name in _COUNTS})
    for name in _STAGES:
        stage = getattr(of, name)
        setattr(found, name, _c.StageStats(**{one: getattr(stage, one) for one in StageStats.__dataclass_fields__}))
    all_of_them = forecasts.of_counts(found, cores, forecasts.SINGLE)
    return all_of_them if all_of_them.cases else None
