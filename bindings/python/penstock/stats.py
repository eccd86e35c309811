# SPDX-License-Identifier: Apache-2.0
"""What a loader did and what limits it: readable when printed, plain numbers otherwise."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from . import _c

__all__ = ["StageStats", "Stats"]


def _by_code(enum: str) -> dict[int, str]:
    return {code: name for name, code in _c.NAMES[enum].items()}


READERS, KERNELS = _by_code("reader_kind"), _by_code("kernels")
BOTTLENECKS, FALLBACKS = _by_code("bottleneck"), _by_code("fallback")

ADVICE = {
    "unknown": "too little time to say",
    "storage": "the workers wait for reads; a faster disk, or enough memory to hold the data set in the page "
               "cache, would help",
    "decode": "the workers are busy all the time; more cores (n_threads), or smaller images in the data set, "
              "would help",
    "copy": "batches wait for their way to the device; smaller images would help, or uint8 instead of "
            "float32 arrays",
    "consumer": "batches lie ready: the training step is what limits, not the loader",
    "reader": "its thread is always busy with the cost of single records; larger records would help",
}


@dataclass(frozen=True)
class StageStats:
    """One kind of thread since open, summed over its threads, in nanoseconds. n_items: of the reader, reads;
    of the workers, rows; of uploader and consumer, batches."""

    busy_ns: int
    starved_ns: int
    blocked_ns: int
    n_items: int
    n_threads: int


@dataclass(frozen=True)
class Stats:
    """Counts and times since open, with the C names (pstk_stats). n_samples, n_batches, n_replacements (bad
    samples that others replaced) and n_palette_images: delivered; a batch delivered twice counts twice.
    bottleneck: what keeps the loader from being faster, one of the keys of stats.ADVICE. fallbacks: what this
    machine refused, at open or later, among them no_io_uring (threads read) and no_single_issuer (the kernel
    lacks IORING_SETUP_SINGLE_ISSUER, of Linux 6.0, or IORING_SETUP_DEFER_TASKRUN, of 6.1)."""

    reader: str
    direct: bool
    registered: bool
    fallbacks: tuple[str, ...]
    n_threads: int
    n_slots: int
    n_nodes: int
    queue_depth: int
    rows_per_job: int
    kernels: str
    bottleneck: str
    n_samples: int
    bytes_delivered: int
    n_batches: int
    n_replacements: int
    bytes_read: int
    n_reads: int
    n_index_hits: int
    n_index_misses: int
    n_slow_reads: int
    slot_memory: int
    io_memory: int
    index_memory: int
    scratch_memory: int
    stage_reader: StageStats
    stage_workers: StageStats
    stage_consumer: StageStats
    stage_uploader: StageStats
    n_device_slots: int
    page_locked: bool
    device_memory: int
    copy_ns: int
    copy_bytes: int
    stream_used_ns: int
    stream_starved_ns: int
    n_palette_images: int

    @property
    def advice(self) -> str:
        """What `bottleneck` means and what to change, in a sentence."""
        return ADVICE[self.bottleneck]

    @property
    def starved(self) -> float:
        """Share of its time, 0 to 1, that the loop waited for batches."""
        all_ns = self.stage_consumer.busy_ns + self.stage_consumer.starved_ns
        return self.stage_consumer.starved_ns / all_ns if all_ns else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as a dict that JSON holds."""
        told = asdict(self)
        told["fallbacks"] = list(self.fallbacks)
        return told

    def __str__(self) -> str:
        lines = [f"{self.n_samples:,} samples in {self.n_batches:,} batches, "
                 f"{_bytes(self.bytes_delivered)} of records"]
        if self.n_replacements:
            lines.append(f"{_counted(self.n_replacements, 'bad sample was', 'bad samples were')} replaced")
        if self.n_palette_images:
            lines.append(f"{_counted(self.n_palette_images, 'sample has', 'samples have')} an image from a PNG "
                         "file with a palette")
        lines.append(f"{'stage':<10}{'threads':>9}{'busy':>9}{'starved':>9}{'blocked':>9}{'items':>14}")
        lines += [_row(name, stage) for name, stage in (
            ("reader", self.stage_reader), ("workers", self.stage_workers), ("uploader", self.stage_uploader),
            ("consumer", self.stage_consumer)) if name != "uploader" or self.n_device_slots]
        lines.append(f"reader {self.reader}, {'direct' if self.direct else 'buffered'}, "
                     f"{self.queue_depth} reads deep; kernels {self.kernels}; {_slots(self)}")
        lines.append(f"memory: slots {_bytes(self.slot_memory)}, reads {_bytes(self.io_memory)}, "
                     f"index {_bytes(self.index_memory)}, scratch up to {_bytes(self.scratch_memory)}")
        if self.fallbacks:
            lines.append("fallbacks on this machine: " + ", ".join(self.fallbacks))
        lines.append(f"bottleneck: {self.bottleneck}: {self.advice}")
        return "\n".join(lines)


def _slots(stats: Stats) -> str:
    if not stats.n_device_slots:
        return f"{stats.n_slots} slots"
    return f"{stats.n_slots} slots, {stats.n_device_slots} on the device ({_bytes(stats.device_memory)})"


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} TB"


def _row(name: str, stage: StageStats) -> str:
    whole = stage.busy_ns + stage.starved_ns + stage.blocked_ns or 1
    times = stage.busy_ns, stage.starved_ns, stage.blocked_ns
    shares = "".join(f"{100 * ns / whole:>7.0f} %" for ns in times)
    return f"{name:<10}{stage.n_threads:>9}{shares}{stage.n_items:>14,}"


def of(told: _c.Stats) -> Stats:
    """The library's statistics as Python has them."""
    values: dict[str, Any] = {}
    for name, kind, *_ in _c.Stats._fields_:
        value = getattr(told, name)
        if kind is _c.StageStats:
            value = StageStats(*(int(getattr(value, member)) for member in StageStats.__dataclass_fields__))
        values[name] = value
    del values["size"]
    for name in ("direct", "registered", "page_locked"):
        values[name] = bool(values[name])
    values["reader"] = READERS.get(told.reader, "?")
    values["kernels"] = KERNELS.get(told.kernels, "?")
    values["bottleneck"] = BOTTLENECKS.get(told.bottleneck, "unknown")
    values["fallbacks"] = tuple(name for bit, name in FALLBACKS.items() if told.fallbacks & bit)
    return Stats(**values)
