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
    """Times of one kind of thread, in nanoseconds, summed over its threads. They count from the loop's first request
    for a batch, and are 0 until then.

    busy_ns: time at work.
    starved_ns: time of waiting for the stage before.
    blocked_ns: time of waiting until the stage after has room.
    cpu_ns: CPU time; 0 for the consumer, whose threads are the program's.
    core_wait_ns: time in which threads were ready to run and no core was free, as Linux counts it; 0 for the consumer.
    n_items: number of items since open: reads of the reader, rows of the workers, batches of uploader and consumer.
    n_threads: number of threads.
    """

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

    reader: kind of reader in use: "io_uring" or "threads".
    direct: whether reads use O_DIRECT.
    registered: whether I/O buffers are registered.
    fallbacks: features that this machine refused, at open or later, for example no_io_uring (threads read) and
        no_single_issuer (the kernel lacks IORING_SETUP_SINGLE_ISSUER, of Linux 6.0, or IORING_SETUP_DEFER_TASKRUN, of
        6.1).
    n_threads: number of workers.
    n_slots, n_nodes: number of slots, and of NUMA nodes in use.
    queue_depth: reads in flight of each reader.
    rows_per_job: rows that a worker takes at once.
    kernels: kernels in use.
    bottleneck: the stage that limits the loader, a key of stats.ADVICE.
    n_samples, n_batches: delivered samples and batches. A batch that is delivered twice counts twice, also below.
    bytes_delivered: bytes read for delivered batches, without index pages.
    n_replacements: delivered rows whose bad sample was replaced.
    n_palette_images: delivered rows with a PNG image that has a palette.
    n_damaged_images: delivered rows with a JPEG that is marked as damaged; for data read in place, with a damaged image
        that damaged="accept" takes.
    n_dropped_boxes: dropped boxes of delivered rows, see penstock.boxes.
    bytes_read, n_reads: bytes and reads of the storage, also for read-ahead and index pages.
    n_cached_reads: of n_reads, those of workers, who read what the page cache holds.
    n_evicted_reads: of n_cached_reads, those whose bytes were gone when the worker came.
    n_index_hits, n_index_misses: look-ups of index pages in the cache.
    n_slow_reads: rows whose read-ahead failed, so that they were read again, one by one.
    slot_memory, io_memory, index_memory: bytes of slots, of I/O buffers, and of index caches.
    scratch_memory: bytes of address space of all workers; images touch only what they need.
    stage_reader, stage_workers, stage_uploader, stage_consumer: a StageStats for each kind of thread. All of the
        uploader are 0 on the host.
    n_device_slots, page_locked, device_memory: slots of a device, whether copies run straight from the host's slots,
        and bytes on the device; 0 on the host.
    copy_ns, copy_bytes: time and bytes of copies to the device; with Device.measure, else 0.
    stream_used_ns, stream_starved_ns: time in which streams used batches, and waited for them; with Device.measure,
        else 0.
    stream_start_ns: of stream_starved_ns, the wait for the loader's first batch, for which the pipeline fills.
    n_lone_rows, block_memory: for a windowed order: rows that were read by themselves, after open and seek, and bytes
        of its blocks.
    cpu_ns: CPU time of the whole process since the loop first asked for a batch.
    n_rows_ahead: rows that the workers had made by then.
    data_sets: for a mixture: a penstock.DataSetStats for each data set.
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
    stream_start_ns: int
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
        """A sentence: what `bottleneck` means, with the share of time that shows it, and what to change."""
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
        """Draw the shares of time in which each stage was busy, starved (it waited for the stage before) and blocked
        (it waited until the stage after had room). Returns the figure, which a notebook shows; .savefig(path) writes
        it. axes: axes of matplotlib; None: those of a new figure. Raises MissingPackageError if matplotlib is not
        installed."""
        from . import plot
        return plot.of_stages(self._stages(), f"limit: {self.bottleneck}", axes)

    def _stages(self) -> dict[str, StageStats]:
        """Return the stages of this loader, by their names."""
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
    """Return the advice on a limit, a key of ADVICE, after the share of time that shows it. of: Stats, or a Monitor's
    Interval."""
    workers, reader, uploader, consumer = of.stage_workers, of.stage_reader, of.stage_uploader, of.stage_consumer
    waits = of.stream_starved_ns - of.stream_start_ns
    timed = of.stream_used_ns + waits
    shown = {"storage": f"the reader waits for storage {_percent(reader.starved_ns, reader)} of the time",
             "decode": f"the workers are busy {_percent(workers.busy_ns, workers)} of the time",
             "copy": f"the uploader copies {_percent(uploader.busy_ns + (uploader.blocked_ns if timed else 0), uploader)} "
                     "of the time",
             "reader": f"the reader is busy {_percent(reader.busy_ns, reader)} of the time",
             "cores": f"the reader is ready to run but has no core {_percent(min(reader.core_wait_ns, _whole(reader)), reader)} of the time",
             "consumer": f"the loop waits for batches {_percent(consumer.starved_ns, consumer)} of the time"}
    if consumer.starved_ns * 10 >= consumer.busy_ns + consumer.starved_ns:  # it asks long before a device uses a batch
        shown["consumer"] = (f"the streams wait for batches {100 * waits / timed:.0f} % of the time" if timed
                             else f"the uploader waits for room {_percent(uploader.blocked_ns, uploader)} of the time")
    return f"{shown[limit]}; {ADVICE[limit]}" if limit in shown else ADVICE[limit]


def _percent(part: int, stage: StageStats) -> str:
    return f"{100 * part / (_whole(stage) or 1):.0f} %"


def _whole(stage: StageStats) -> int:
    return stage.busy_ns + stage.starved_ns + stage.blocked_ns


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
    whole = _whole(stage) or 1
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
