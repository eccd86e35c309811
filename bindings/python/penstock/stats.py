# SPDX-License-Identifier: Apache-2.0
"""Statistics of a loader: its counts and times, its bottleneck, and a report for people."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from . import _c

if TYPE_CHECKING:
    from .mixture import DataSetStats

__all__ = ["StageStats", "Stats"]


def _by_code(enum: str) -> dict[int, str]:
    return {code: name for name, code in _c.NAMES[enum].items()}


READERS, KERNELS = _by_code("reader_kind"), _by_code("kernels")
BOTTLENECKS, FALLBACKS = _by_code("bottleneck"), _by_code("fallback")

ADVICE = {
    "unknown": "the loader has not run long enough, or no stage is busy enough to be the bottleneck",
    "storage": "the workers wait for reads; a faster disk, or enough memory to hold the data set in the page "
               "cache, would help; or order='windowed', which reads whole blocks of small records",
    "decode": "more cores (n_threads), or smaller images in the data set, would help",
    "copy": "batches wait for the copy to the device; smaller images would help, or uint8 instead of float32 "
            "arrays",
    "consumer": "batches are ready before the loop asks: the training step sets the pace",
    "reader": "each record costs its thread work; larger records would help",
    "cores": "more cores, or fewer workers (n_threads), would help",
}


@dataclass(frozen=True)
class StageStats:
    """Times of one kind of thread since the loop first asked for a batch, summed over its threads, in nanoseconds;
    0 until then. cpu_ns is CPU time, and core_wait_ns the time in which threads were ready to run and no core was
    free, as Linux counts it; both are 0 of the consumer, whose threads are the program's. n_items counts since open:
    reads of the reader, rows of the workers, batches of uploader and consumer."""

    busy_ns: int
    starved_ns: int
    blocked_ns: int
    cpu_ns: int
    core_wait_ns: int
    n_items: int
    n_threads: int


@dataclass(frozen=True)
class Stats:
    """Counts since open, and times since the loop first asked for a batch, with the names of pstk_stats.

    n_samples, n_batches, n_replacements (bad samples that were replaced), n_palette_images and n_damaged_images
    (samples with a JPEG that is marked as damaged, or, of data read in place, with a damaged image that
    damaged="accept" takes) and n_dropped_boxes (see penstock.boxes) count delivered batches; a batch delivered twice
    counts twice. Of a windowed order: n_lone_rows counts rows that were read by themselves,
    after open and seek, and block_memory is the memory of its blocks. cpu_ns: CPU time of the whole process since
    the loop first asked for a batch; n_rows_ahead: rows that the workers had made by then.
    n_reads counts reads; n_cached_reads, of them, those of workers, who read what the page cache holds; n_evicted_reads,
    of these, those whose bytes were gone when the worker came.
    bottleneck: the stage that limits the loader, a key of stats.ADVICE. fallbacks: what this machine refused, at
    open or later, for example no_io_uring (threads read) and no_single_issuer (the kernel lacks
    IORING_SETUP_SINGLE_ISSUER, of Linux 6.0, or IORING_SETUP_DEFER_TASKRUN, of 6.1).
    """

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
    n_cached_reads: int
    n_evicted_reads: int
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
    n_damaged_images: int
    n_dropped_boxes: int
    n_lone_rows: int
    block_memory: int
    cpu_ns: int
    n_rows_ahead: int
    data_sets: tuple[DataSetStats, ...] = ()

    @property
    def advice(self) -> str:
        """A sentence: what `bottleneck` means, with the share of time that it rests on, and what to change."""
        return advised(self.bottleneck, self)

    @property
    def starved(self) -> float:
        """Share of its time, 0 to 1, in which the loop waited for batches."""
        all_ns = self.stage_consumer.busy_ns + self.stage_consumer.starved_ns
        return self.stage_consumer.starved_ns / all_ns if all_ns else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all values as a dict for JSON."""
        values = asdict(self)
        values["fallbacks"] = list(self.fallbacks)
        values["data_sets"] = [one._asdict() for one in self.data_sets]
        return values

    def plot(self, axes: Any = None) -> Any:
        """Draw the share of its time that each stage was busy, starved (waiting for the stage before) and blocked (waiting
        until the one after has room). axes: of matplotlib, to draw into; None: those of a new figure. Returns the figure,
        which a notebook shows; .savefig(path) writes it. MissingPackageError: matplotlib is not installed."""
        from . import plot
        return plot.of_stages(self._stages(), f"limit: {self.bottleneck}", axes)

    def _stages(self) -> dict[str, StageStats]:
        """The stages that there are, by their names."""
        all_of_them = {"reader": self.stage_reader, "workers": self.stage_workers, "uploader": self.stage_uploader,
                       "consumer": self.stage_consumer}
        return {name: stage for name, stage in all_of_them.items() if name != "uploader" or self.n_device_slots}

    def __str__(self) -> str:
        lines = [f"{self.n_samples:,} samples in {self.n_batches:,} batches, "
                 f"{_bytes(self.bytes_delivered)} of records"]
        if self.n_replacements:
            lines.append(f"{_counted(self.n_replacements, 'bad sample was', 'bad samples were')} replaced")
        if self.n_palette_images:
            lines.append(f"{_counted(self.n_palette_images, 'sample has', 'samples have')} an image from a PNG "
                         "file with a palette")
        if self.n_damaged_images:
            lines.append(f"{_counted(self.n_damaged_images, 'sample has', 'samples have')} an image from a damaged "
                         "file, as Pillow loads it")
        if self.n_dropped_boxes:
            lines.append(f"{_counted(self.n_dropped_boxes, 'box was', 'boxes were')} dropped: too little was left")
        for one in self.data_sets:
            lines.append(f"{one.path}: {one.n_delivered:,} samples, {100 * one.share:.4g} % of all")
        lines.append(f"{'stage':<10}{'threads':>9}{'busy':>9}{'starved':>9}{'blocked':>9}{'CPU':>9}{'no core':>9}{'items':>14}")
        lines += [_row(name, stage) for name, stage in self._stages().items()]
        lines.append(f"reader {self.reader}, {'direct' if self.direct else 'buffered'}, "
                     f"{self.queue_depth} reads deep; kernels {self.kernels}; {_slots(self)}")
        lines.append(f"memory: slots {_bytes(self.slot_memory)}, reads {_bytes(self.io_memory)}, "
                     f"index {_bytes(self.index_memory)}"
                     f"{f', blocks {_bytes(self.block_memory)}' if self.block_memory else ''}, scratch up to {_bytes(self.scratch_memory)}")
        if self.fallbacks:
            lines.append("fallbacks on this machine: " + ", ".join(self.fallbacks))
        lines.append(f"bottleneck: {self.bottleneck}: {self.advice}")
        return "\n".join(lines)


def advised(limit: str, of: Any) -> str:
    """The advice on a limit, a key of ADVICE, after the share that it rests on. of: Stats, or a Monitor's Interval."""
    workers, reader, uploader, consumer = of.stage_workers, of.stage_reader, of.stage_uploader, of.stage_consumer
    timed = of.stream_used_ns + of.stream_starved_ns
    shown = {"storage": f"the reader waits for storage {_percent(reader.starved_ns, reader)} of the time",
             "decode": f"the workers are busy {_percent(workers.busy_ns, workers)} of the time",
             "copy": f"the uploader copies {_percent(uploader.busy_ns + (uploader.blocked_ns if timed else 0), uploader)} "
                     "of the time",
             "reader": f"the reader is busy {_percent(reader.busy_ns, reader)} of the time",
             "cores": f"the reader is ready to run but has no core {_percent(reader.core_wait_ns, reader)} of the time",
             "consumer": f"the loop waits for batches {_percent(consumer.starved_ns, consumer)} of the time"}
    if consumer.starved_ns * 10 >= consumer.busy_ns + consumer.starved_ns:  # on a device it asks long before it uses one
        shown["consumer"] = (f"the streams wait for batches {100 * of.stream_starved_ns / timed:.0f} % of the time" if timed
                             else f"the uploader waits for room {_percent(uploader.blocked_ns, uploader)} of the time")
    return f"{shown[limit]}; {ADVICE[limit]}" if limit in shown else ADVICE[limit]


def _percent(part: int, stage: StageStats) -> str:
    return f"{100 * part / (stage.busy_ns + stage.starved_ns + stage.blocked_ns or 1):.0f} %"


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
    times = stage.busy_ns, stage.starved_ns, stage.blocked_ns, stage.cpu_ns, stage.core_wait_ns
    shares = "".join(f"{100 * ns / whole:>7.0f} %" for ns in times)
    return f"{name:<10}{stage.n_threads:>9}{shares}{stage.n_items:>14,}"


def of(found: _c.Stats) -> Stats:
    """Return the library's statistics as a Stats."""
    values: dict[str, Any] = {}
    for name, kind, *_ in _c.Stats._fields_:
        value = getattr(found, name)
        if kind is _c.StageStats:
            value = StageStats(*(int(getattr(value, member)) for member in StageStats.__dataclass_fields__))
        values[name] = value
    del values["size"]
    for name in ("direct", "registered", "page_locked"):
        values[name] = bool(values[name])
    values["reader"] = READERS.get(found.reader, "?")
    values["kernels"] = KERNELS.get(found.kernels, "?")
    values["bottleneck"] = BOTTLENECKS.get(found.bottleneck, "unknown")
    values["fallbacks"] = tuple(name for bit, name in FALLBACKS.items() if found.fallbacks & bit)
    return Stats(**values)
