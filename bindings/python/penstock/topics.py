# SPDX-License-Identifier: Apache-2.0
"""Topics of penstock.Loader are small frozen objects with settings that few programs give.

    penstock.Loader("train", batch_size=penstock.GlobalBatch(4096), order=penstock.Order("windowed", window=8),
                    memory=penstock.Memory(n_slots=4), reading=penstock.Reading(timeout=60))

The loader checks the members when it opens.
"""
from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, TypeVar, Union

from .errors import SettingsError
from .hints import explains
from .sealed import Sealed

__all__ = ["Device", "Foreign", "GlobalBatch", "Memory", "Observe", "Order", "Reading"]

Path = Union[str, "os.PathLike[str]"]
T = TypeVar("T", bound="Topic")
C = TypeVar("C", bound=type)


def _first(*, default: Any = dataclasses.MISSING, kw_only: bool) -> Any:
    """Return a member that may be given by position. kw_only is for type checkers: False."""
    return dataclasses.field(default=default)


class Topic(Sealed):
    """The base of topics. Its repr has the members that are not at their defaults. Dicts are copied."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, dict):
                object.__setattr__(self, name, dict(value))

    def __repr__(self) -> str:
        said = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self)  # type: ignore[arg-type]
                if getattr(self, field.name) != field.default]
        return f"{type(self).__name__}({', '.join(said)})"


if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    @dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(_first,))
    def _topic(n_positions: int) -> Callable[[C], C]: ...
else:
    def _topic(n_positions):
        """Return a decorator that makes a frozen dataclass. Its first n_positions members may be given by position.
        (kw_only came with Python 3.10.)"""
        def decorated(cls):
            made = dataclasses.dataclass(frozen=True, repr=False)(cls)
            signature = inspect.signature(made.__init__)
            parameters = list(signature.parameters.values())
            parameters[n_positions + 1:] = [parameter.replace(kind=parameter.KEYWORD_ONLY)
                                            for parameter in parameters[n_positions + 1:]]
            made.__init__.__signature__ = signature.replace(parameters=parameters)
            return explains({})(made)
        return decorated


@_topic(2)
class GlobalBatch(Topic):
    """batch_size= of a Loader: rows of all processes together. Each process has a part of them. The global batches are
    the same sets of samples for any number of processes.

    rows: a number, or a schedule {0: 4096, 10_000: 8192}.
    uneven: True: the number of processes need not divide the rows. Some processes then have one row more than others,
        not always the same ones. A mean over the rows of a process then counts n_valid * world / rows in the mean over
        all.
    """

    rows: Union[int, Mapping[int, int]] = _first(kw_only=False)
    uneven: bool = _first(default=False, kw_only=False)


@_topic(1)
class Device(Topic):
    """device= of a Loader, and how its batches come there.

    device: "cpu", "cuda" (the current device of PyTorch, else 0), "cuda:1", a torch.device.
    n_slots: number of batches in the device's memory; 0: the library chooses.
    stream: the stream that uses the batches: PyTorch's or CuPy's, an int (cudaStream_t), or a function that returns
        one. It must live as long as batches that were handed out on it. None: the framework's current stream at each
        batch; for JAX and "dlpack" a stream of the loader's own.
    copy: True: batches have tensors of their own instead of views, so that any number of batches may be kept. On the
        host a tensor with one number a row, such as a label, is a copy in any case, except with "dlpack".
    measure: True: measure copies and waits of the device, for stats().
    """

    device: Any = _first(default="cpu", kw_only=False)
    n_slots: int = 0
    stream: Any = None
    copy: bool = False
    measure: bool = False


@_topic(1)
class Order(Topic):
    """order= of a Loader: the order of samples, where it starts, and the length of an epoch.

    kind: "full": a random permutation of all samples in each epoch; "windowed": blocks of neighbouring samples in a
        random order, mixed inside windows of blocks, for storage that is slow at small random reads; "sequential": by
        sample id. None: by shuffle=, else "full".
    epoch, position: start of the loader.
    ways: for "windowed": number of pieces of an epoch that are interleaved, at most 65536; 0: 48, 12, 4 or 1, by the
        number of samples. Each rank reads only its own blocks if world divides it.
    block: for "windowed": samples of a block, at most 1048576; 0: 64.
    window: for "windowed": blocks of a window, at most 4096; 0: 4.
    samples_per_epoch: draws of an epoch, for a Loader with weights=; None: as many as there are samples.

    A windowed order depends on ways, block and window, so a state resumes only with the same ones. `penstock order DATA
    --order windowed --explain` prints what they cost.
    """

    kind: Optional[str] = _first(default=None, kw_only=False)
    epoch: int = 0
    position: int = 0
    ways: int = 0
    block: int = 0
    window: int = 0
    samples_per_epoch: Optional[int] = None


@_topic(0)
class Memory(Topic):
    """memory= of a Loader. 0 lets the library choose; stats() has what it chose.

    n_slots: number of batches in memory.
    max_batch_size: the most rows of a batch of this process, for set_batch_size; slots have memory for them. None:
        batches never grow.
    max_memory, io_memory, index_memory: bytes of all memory, of I/O buffers, and of index caches.
    max_pixels: pixels; larger images are refused.
    max_record_size: bytes; larger records are refused.
    """

    n_slots: int = 0
    max_batch_size: Optional[int] = None
    max_memory: int = 0
    io_memory: int = 0
    index_memory: int = 0
    max_pixels: int = 0
    max_record_size: int = 0


@_topic(0)
class Reading(Topic):
    """reading= of a Loader: reading and computing. 0 and "auto" let the library choose.

    reader: "auto", "io_uring", "threads".
    io: "auto", "direct", "buffered".
    queue_depth: reads in flight of each reader.
    pin_threads: True: keep threads on the cores of their NUMA node; False: leave them to the scheduler.
    kernels: "auto", "c", "avx2", "avx512", "neon".
    topology: hwloc's description of a machine, for tests; None: this machine.
    timeout: seconds (above 0) after which a wait for a batch raises TimedOutError; None: no limit.
    """

    reader: str = "auto"
    io: str = "auto"
    queue_depth: int = 0
    pin_threads: bool = True
    kernels: str = "auto"
    topology: Optional[Path] = None
    timeout: Optional[float] = None


@_topic(0)
class Observe(Topic):
    """observe= of a Loader: records of its work.

    report_crops: True: batch.crops has the cropped part and the flips of each image.
    nvtx: True: mark the work of threads for Nsight Systems.
    trace_path: a file for a trace of the threads, written at close as plain JSON (penstock.trace); None: none.
    trace_events: number of events that the trace keeps of each thread, the newest, 64 bytes each; 0: 16384 with
        trace_path, else no trace.
    monitor_path: a small file by which `penstock top` asks what the loader is doing; None: a file in $XDG_RUNTIME_DIR,
        or in /tmp; False: none.
    """

    report_crops: bool = False
    nvtx: bool = False
    trace_path: Optional[Path] = None
    trace_events: int = 0
    monitor_path: Union[Path, bool, None] = None


@_topic(0)
class Foreign(Topic):
    """foreign= of a Loader, a Dataset and penstock.pack: how data of another format is read in place.

    fields: {name: field} as in a schema, in place of the fields that the first samples show: {"cls": "int32"}. In tar
        archives a field may also be the first of several members of a sample, "jpg;png", or with a type ("cls;id",
        "int32"); and {"__key__": "utf8"} is the key of a sample. In TFRecords a field may have a value for records
        without it: {"label": ("int64", (), 0)}; n_absent in dataset.fields counts these records.
    cache_path: a folder for the index, if the data's own folder cannot be written to; None: $PENSTOCK_CACHE, or
        penstock in $XDG_CACHE_HOME, or ~/.cache/penstock.
    cache_size: bytes that unpacked files there may take, those of all programs together; 0: $PENSTOCK_CACHE_SIZE, or
        half of what the disk has free.
    root_path: the folder below which the paths in a table of images lie; None: the table's own.
    split_at: the dot of a file name in a tar archive that ends the sample's key: "first" or "last". "auto": the first,
        but names that contradict it are refused.
    by_content: True: every JPEG and PNG file of a folder of images is a sample, found by its first bytes, also one
        whose name is not an image's (x.jfif, or no suffix).
    damaged: "accept": damaged images are decoded as Pillow loads them, JPEGs by guessing and PNGs whose fault comes
        after their rows, and stats().n_damaged_images counts them. "refuse": they are bad samples.
    """

    fields: Optional[Mapping[str, Any]] = None
    cache_path: Optional[Path] = None
    cache_size: int = 0
    root_path: Optional[Path] = None
    split_at: str = "auto"
    by_content: bool = False
    damaged: str = "refuse"


_EXAMPLES = {"memory": "n_slots=4", "reading": "timeout=60", "observe": "report_crops=True", "foreign": "fields={'cls': 'int64'}"}


def given(name: str, value: Any, kind: type[T]) -> T:
    """Return the topic of an argument; for None one with the defaults. Raises TypeError."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        what = f"penstock.{kind.__name__}"
        raise TypeError(f"{name}: value is {value!r}; must be a {what} (give {name}={what}({_EXAMPLES[name]}))")
    return value


class Topics(NamedTuple):
    """The topics of a loader that become settings of the library."""

    order: Order
    memory: Memory
    reading: Reading
    observe: Observe
    device: Device


def order_of(value: Any) -> Order:
    """Return the Order of order=, which is an Order or its kind."""
    return value if isinstance(value, Order) else Order(value)


def device_of(value: Any) -> Device:
    """Return the Device of device=, which is a Device or its name."""
    return value if isinstance(value, Device) else Device(value)


def rows_of(value: Any) -> tuple[Any, Any, Any]:
    """Return batch_size, global_batch_size and uneven for batch_size=."""
    if not isinstance(value, GlobalBatch):
        return value, None, False
    if value.rows is None:
        raise SettingsError("GlobalBatch.rows: value is None; must be a number of rows, or a schedule {0: 4096}")
    return None, value.rows, value.uneven
