# SPDX-License-Identifier: Apache-2.0
"""penstock.Loader: batches in order, before you ask.

    with penstock.Loader("train", batch_size=256, device="cuda", outputs={
            "image": penstock.image("jpg", [RandomResizedCrop(224), RandomFlip(), Normalize()],
                                    dtype="float16", layout="channels_last"),
            "label": penstock.scalar("cls")}) as loader:
        for epoch in range(90):
            for batch in loader.epoch(epoch):
                step(batch["image"], batch["label"])

Tensors look into a slot of the loader's; the slot goes back to it when the last of them is gone.

Rules of the implementation: `_turn` is held by whoever calls pstk_next, seek and close, of which the library
wants one at a time; `_alive`, behind which nobody waits for `_turn`, by whoever uses the handle otherwise,
shortly; close holds both, so that it frees nothing under anybody. A signal's handler may raise between any
two steps: `_astray` says that the library's cursor may be ahead of what was handed out, and the next call
seeks back. `_coming` is the way from there to the caller: the thread, and the cursor once it has its batch;
still there when that thread comes again, the batch was lost on the way.
"""
from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from ctypes import POINTER, byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any

from . import _c, batch as batches, catalog, errors, outputs as descriptions, paths, ranks, settings as words
from . import state, stats as statistics, streams, tensors
from .errors import PenstockError, SettingsError
from .hints import OF_LOADERS, Hints

if TYPE_CHECKING:
    from .dataset import Dataset

__all__ = ["Loader", "Pass"]

# What a framework has to know of batches before it gets one.
_REGISTER = {"jax": batches.register_jax, "torch": batches.register_torch}

SLICE_NS = 50_000_000  # a wait of the library's, between two looks at signals
PALETTES = ("some images of {path} are PNG files with a palette. Pictures come right, in the palette's "
            "colours; masks do not: resizing mixes colours, and class ids are lost. Pack masks as arrays or "
            "bytes, not as images")

_open_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads of a loader must not outlive what the interpreter, and CUDA, take down at exit."""
    with contextlib.ExitStack() as stack:  # all of them, whatever one of them raises
        for loader in list(_open_loaders):
            loader._exiting = True
            stack.callback(loader.close)


def _no_stream() -> int | None:
    return None


def _current_stream(framework: str, index: int) -> Callable[[], int | None] | None:
    """What names the stream that the framework works on; None: the framework does not say."""
    if framework == "torch":
        import torch
        current = torch.cuda.current_stream
        return lambda: int(current(index).cuda_stream)
    if framework == "cupy":
        import cupy
        return lambda: int(cupy.cuda.get_current_stream().ptr)
    return None


def _check_device(kind: int, index: int, framework: str) -> None:
    """Is there such a device, and can the framework use it? Asked before anything is started."""
    if kind == _c.HOST:
        return
    device, error = _c.Device(size=sizeof(_c.Device)), errors.new()
    errors.check(_c.lib.pstk_get_device(kind, index, byref(device), byref(error)), error)
    if framework == "torch":
        import torch
        if not torch.cuda.is_available():
            raise errors.UnsupportedError(
                f"device: there is a CUDA device, but PyTorch {torch.__version__} is built without CUDA or "
                "cannot use it: install a build for CUDA (https://pytorch.org), or take device='cpu'")


def _default_index(framework: str) -> int:
    if framework == "torch":
        import torch
        return int(torch.cuda.current_device()) if torch.cuda.is_available() else 0
    return 0


def _ranks(rank: Any, world: Any, local_rank: Any, local_world: Any) -> ranks.Ranks:
    """Who we are among the processes: what was given, or what was found out where that is wanted."""
    if rank == "auto":
        found = ranks.find()
    elif rank is None and world is None:
        found = ranks.Ranks()
        told = ranks.passed_over()
        if told is not None:
            warnings.warn(told, stacklevel=4)  # to who opens the loader
    else:
        if rank is None:
            raise SettingsError(f"rank: not given, but world is {world}: every process would be rank 0; give "
                                "rank, or rank='auto'")
        found = ranks.Ranks(source="given")
    given = {"rank": None if rank == "auto" else rank, "world": world, "local_rank": local_rank,
             "local_world": local_world}
    said = {name: words.integer(name, value) for name, value in given.items() if value is not None}
    if rank == "auto" and said.get("world", found.world) != found.world:
        raise SettingsError(f"world: is {said['world']}, but rank='auto' found {found.world} "
                            f"process{'' if found.world == 1 else 'es'} ({found.source}); must be as many (leave "
                            "world= out, or give rank= as well)")
    return ranks.Ranks(**{**found._asdict(), **said})


_CUDA_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation


def _open_library(handle: c_void_p, settings: _c.Settings, error: _c.Error) -> int:
    """pstk_open. Where a device has no memory left, once more, after PyTorch gave up what it only caches."""
    code = int(_c.lib.pstk_open(byref(handle), byref(settings), byref(error)))
    torch = sys.modules.get("torch")
    if code != _c.ENOMEM or settings.device == _c.HOST or error.native != _CUDA_OUT_OF_MEMORY or torch is None:
        return code
    torch.cuda.empty_cache()
    code = int(_c.lib.pstk_open(byref(handle), byref(settings), byref(error)))
    if code == _c.ENOMEM:
        error.message = (error.message + b"; that is after torch.cuda.empty_cache()")[:767]
    return code


class Pass(Iterator[Any]):
    """One go over an epoch, or what is left of it. len() is the number of its batches."""

    def __init__(self, loader: Loader, number: int, epoch: int, n_batches: int) -> None:
        self._loader: Loader | None = loader
        self._number, self._epoch, self._n_batches = number, epoch, n_batches

    def __len__(self) -> int:
        return self._n_batches

    def __iter__(self) -> Pass:
        return self

    def __next__(self) -> Any:
        if self._loader is None:
            raise StopIteration
        loader = self._loader
        try:
            batch, coming = loader._next(self._number, self._epoch)
        except StopIteration as error:
            raise RuntimeError("a function that was given to the loader raised StopIteration, which would end "
                               "the loop as if the epoch were over") from error
        if coming is None:
            self._loader = None
            raise StopIteration
        # No call from here on, behind which a handler might raise. (Python 3.9 looks at signals between any
        # two steps: there a batch may be lost on its last one.)
        if loader._coming is coming:
            loader._cursor, loader._coming = coming[1], None
        return batch


class Loader(Hints):
    """Opens a data set and starts to read ahead.

    What is wrong with an argument is said before anything is started: TypeError, SettingsError (a
    ValueError), UnsupportedError, DataSetNotFoundError, CorruptRecordError.

    path: directory of a data set.
    batch_size: rows for this process.
    outputs: {name: penstock.image(...) | scalar | tensor | ragged, or a field's name}; a list of them; None:
        every field by its kind.
    device: "cpu", "cuda" (the current device of PyTorch, else 0), "cuda:1", a torch.device.
    framework: whose tensors: "torch", "numpy", "jax", "cupy", "dlpack" (penstock.Tensor); "auto": PyTorch
        where it is imported, else NumPy; on a GPU PyTorch, or CuPy or JAX where only they are imported.
        NumPy has no bfloat16: where ml_dtypes is not installed, it is the bits as uint16. JAX on a GPU gets
        copies.
    form: a batch is a "dict", "tuple", "dataclass", or of a dataclass that is given. A "dict" is a
        penstock.Batch, which iterates over its tensors in the order of the outputs: `for x, y in loader`. The
        first three have epoch, sample_ids, n_valid and the like as attributes, one of yours has them in its
        attribute `info`.
    copy: True: tensors of their own instead of views, so that any number of batches may be kept.
    stream: on a device: the stream that uses the batches: PyTorch's or CuPy's, an int (cudaStream_t), or a
        function that returns one; it lives as long as batches that were handed out on it; None: the
        framework's current one at each batch, or, for JAX and "dlpack", one of the loader's own.
    timeout: seconds (above 0) after which waiting for a batch raises TimedOutError; None: never.
    shuffle: True is order="full", False is order="sequential". Without both: "full". With False and
        last="drop" the same samples, the end of the data set, never come: to see all say last="short".
    seed: of order and augmentation. epoch, position: start there.
    last: what of the last batch that is not full: "drop" it (the default; a DataLoader keeps it: "short");
        "pad" it from the start of the epoch; "short": the tensors have fewer rows, on some ranks perhaps
        none.
    rank, world: this process, of how many; rank="auto" asks torch.distributed and the launcher (torchrun,
        srun, mpirun). local_rank, local_world: the same on this machine: they share its cores and memory
        evenly; where the launcher binds processes to cores, leave them.
    n_threads: workers. n_slots: batches in memory; n_device_slots: and in the device's. queue_depth: reads in
        flight. io_memory, index_memory, max_memory, max_record_size: bytes. max_pixels: refuse larger images.
        0 lets the library choose; what it chose is in stats().
    reader: "auto", "io_uring", "threads". io: "auto", "direct", "buffered".
    bad_sample: "error", or "substitute": another sample of the same shard replaces a bad one.
    on_bad_sample: function of (error, id), called for each bad sample that was replaced, with the id of its
        replacement, before its batch is handed out and by the thread that iterates, in the order of the rows.
        Of a batch the first 8 are described; one more call, with id None and an error without sample_id,
        gives the number of the others. What the function raises comes out of the loop (StopIteration as
        RuntimeError), and the batch comes again at the next step, with its reports. It may call stats(), interrupt() and close(), which ends the loop by
        InterruptedLoaderError, but neither iterate nor seek.
    with_crops: batch.crops has where images were cut from, and flips. pin_threads: False leaves workers to
        the scheduler (in C: no_pinning). variant: of the kernels: "auto", "c", "avx2", "avx512". topology:
        hwloc's, for tests. timed: measure copies and waits of the device. trace: mark what threads do for
        Nsight Systems.
    """

    _hints = OF_LOADERS
    _handle: Any = None  # of as much of a loader as __init__ got to
    _dying: Any = None  # the handle, from when nobody may use it any more until pstk_close has returned
    _dataset: Dataset | None = None
    _exiting = False
    _own: Any = None  # the loader's own stream, once it is needed
    _asked = False  # set_epoch named the epoch of the next pass, be it empty

    @words.suggesting
    def __init__(
            self, path: str | os.PathLike[str], *, batch_size: int, outputs: descriptions.Outputs = None,
            device: Any = "cpu", framework: str = "auto", form: Any = "dict", copy: bool = False,
            stream: Any = None, timeout: float | None = None,
            shuffle: bool | None = None, order: str | None = None, seed: int = 0, epoch: int = 0,
            position: int = 0, last: str = "drop", rank: int | str | None = None, world: int | None = None,
            local_rank: int | None = None, local_world: int | None = None, n_threads: int = 0,
            n_slots: int = 0, n_device_slots: int = 0, reader: str = "auto", io: str = "auto",
            queue_depth: int = 0, io_memory: int = 0, index_memory: int = 0, max_memory: int = 0,
            max_pixels: int = 0, max_record_size: int = 0, bad_sample: str = "error",
            on_bad_sample: Callable[[PenstockError, int | None], Any] | None = None, with_crops: bool = False,
            pin_threads: bool = True, variant: str = "auto", topology: str | os.PathLike[str] | None = None,
            timed: bool = False, trace: bool = False) -> None:
        order = words.order(shuffle, order)
        kind, index = words.device(device)
        self._ranks = _ranks(rank, world, local_rank, local_world)
        numbers = {name: words.integer(name, value) for name, value in {
            "batch_size": batch_size, "seed": seed, "epoch": epoch, "position": position,
            "rank": self._ranks.rank, "world": self._ranks.world, "local_rank": self._ranks.local_rank,
            "local_world": self._ranks.local_world, "n_threads": n_threads, "n_slots": n_slots,
            "n_device_slots": n_device_slots, "queue_depth": queue_depth, "io_memory": io_memory,
            "index_memory": index_memory, "max_memory": max_memory, "max_pixels": max_pixels,
            "max_record_size": max_record_size, "with_crops": with_crops, "no_pinning": not pin_threads,
            "timed": timed, "trace": trace}.items()}
        numbers.update({name: words.choice(name, value) for name, value in {
            "order": order, "last": last, "reader": reader, "io": io, "bad_sample": bad_sample,
            "variant": variant}.items()})
        words.switch("copy", copy)
        words.switch("pin_threads", pin_threads)
        self._framework = words.framework(framework, kind != _c.HOST)
        self._timeout = words.seconds("timeout", timeout)
        path = os.path.abspath(paths.local(path))
        self._catalog = catalog.read(path)
        self._outputs = descriptions.resolve(outputs, self._catalog)
        if self._framework == "jax" and any(o.layout == "channels_last" for o in self._outputs.values()):
            raise SettingsError("outputs: channels_last is PyTorch's; JAX takes layout='nhwc'")
        if stream is not None and copy and kind != _c.HOST:
            raise SettingsError("stream: copies are made on the current stream of the framework: leave stream "
                                "out, and make yours the current one; or copy=False")
        self._convert = tensors.converter(self._framework, copy)
        self._make = batches.maker(words.form(form, self._outputs), tuple(self._outputs))
        if self._framework in _REGISTER:
            _REGISTER[self._framework]()
        _check_device(kind, index or 0, self._framework)
        numbers["device"] = kind
        numbers["device_index"] = _default_index(self._framework) if index is None else index
        self._numbers, self._path = numbers, path
        self._device = (tensors.DL_CPU, 0) if kind == _c.HOST else (tensors.DL_CUDA, numbers["device_index"])
        # Of a device's slots; JAX has copies there.
        self._has_views = kind != _c.HOST and not copy and self._framework != "jax"
        self._named_stream, self._guard = self._stream_of(stream), self._guard_of()
        self._order = order
        self._on_bad_sample = words.callback("on_bad_sample", on_bad_sample, bad_sample)
        self._open(words.to_c(path, self._outputs, numbers, topology))
        # The library has read the manifest by itself, and perhaps another one.
        if catalog.read(path).info.identity != self._catalog.info.identity:
            self.close()
            raise errors.DataSetNotFoundError(f"{path}: was replaced while it was being opened: open it again")

    def _stream_of(self, stream: Any) -> Callable[[], int | None] | None:
        """What names the stream for each batch; None: it is the loader's own."""
        if self._device[0] == tensors.DL_CPU:
            return _no_stream
        if callable(stream):
            return lambda: None if (current := stream()) is None else streams.handle(current)
        if stream is not None:
            handle = streams.handle(stream)
            return lambda _kept=stream: handle  # type: ignore[misc]
        return _current_stream(self._framework, self._device[1])

    def _stream(self) -> int | None:
        """The stream that a batch is leased on now."""
        return self._own_stream() if self._named_stream is None else self._named_stream()

    def _own_stream(self) -> int:
        """A stream of the loader's own, for frameworks that say nothing of theirs: on it nothing runs, and what
        reads the tensors waits for it. The library closes it after the last batch."""
        if not self._own:  # also where opening it was interrupted
            self._own, error = c_void_p(), errors.new()
            errors.check(_c.lib.pstk_stream_open(self._handle, byref(self._own), byref(error)), error)
        return int(self._own.value)

    def _guard_of(self) -> Callable[[], Any]:
        """PyTorch's default stream is no handle, but means the current device's."""
        nothing = contextlib.nullcontext()
        if self._device[0] == tensors.DL_CPU or self._framework != "torch":
            return lambda: nothing
        import torch
        index, current, enter = self._device[1], torch.cuda.current_device, torch.cuda.device
        return lambda: nothing if current() == index else enter(index)

    def _open(self, settings: _c.Settings) -> None:
        self._turn, self._alive = threading.RLock(), threading.RLock()
        self._pid, self._closing = os.getpid(), False
        self._pass = 0  # number of the newest; earlier ones are over
        self._astray = False
        self._coming: tuple[int, tuple[int, int]] | None = None
        self._layouts: tuple[tensors.Layout, ...] = ()
        self._warned = False  # of images with a palette
        self._images = {name: i for i, (name, output) in enumerate(self._outputs.items())
                        if output.kind == _c.OUTPUT_IMAGE}
        self._leases = streams.Leases()
        self._cursor = (self._numbers["epoch"], self._numbers["position"])
        # The place that was asked for last, and where the newest pass began.
        self._resume = self._cursor
        self._start = self._cursor
        self._error, self._batch = errors.new(), POINTER(_c.Batch)()
        if self._device[0] != tensors.DL_CPU:
            settings.current_stream = streams.current_of_threads(self._framework)
        error = errors.new()
        self._handle, self._dying = c_void_p(), c_void_p()
        code = _open_library(self._handle, settings, error)
        if code < 0:
            refused = errors.of(error, code)
            refused.args = (descriptions.in_python(str(refused), self._outputs),)
            raise refused
        _open_loaders.add(self)
        streams.begin(self._leases)

    # ---- what it is --------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Number of batches of a whole epoch, the same on every rank."""
        self._check_process()
        with self._alive:
            return int(_c.lib.pstk_n_batches(self._open_handle()))

    @property
    def n_samples(self) -> int:
        """Number of samples of the data set."""
        return self._catalog.info.n_samples

    @property
    def dataset(self) -> Dataset:
        """The data set as a penstock.Dataset: len(loader.dataset) is its number of samples, on every rank;
        loader.dataset[i] reads sample i. It is opened when first asked for, and closed with the loader."""
        self._check_process()
        with self._alive:
            self._open_handle()
            found = self._dataset
        return self._kept(self._opened_dataset()) if found is None else found

    def _kept(self, opened: Dataset) -> Dataset:
        """The data set that was opened first: opening takes its time, and holds no lock."""
        with self._alive:
            self._open_handle()
            if self._dataset is None:
                self._dataset = opened
            return self._dataset

    def _opened_dataset(self) -> Dataset:
        from .dataset import Dataset
        found = Dataset(self._path)
        if found.info.identity != self._catalog.info.identity:
            found.close()
            raise errors.DataSetNotFoundError(f"{self._path}: was replaced after the loader opened it: open "
                                              "the loader again")
        return found

    @property
    def n_batches_left(self) -> int:
        """Number of batches behind the cursor in its epoch."""
        return self._n_left(*self.cursor)

    @property
    def path(self) -> str:
        """Directory of the data set, an absolute path."""
        return self._path

    @property
    def batch_size(self) -> int:
        """Rows of a batch, for this process."""
        return self._numbers["batch_size"]

    @property
    def outputs(self) -> dict[str, descriptions.Output]:
        """The outputs by their names."""
        return dict(self._outputs)

    @property
    def ranks(self) -> ranks.Ranks:
        """rank, world, local_rank, local_world, and who said so."""
        return self._ranks

    @property
    def cursor(self) -> tuple[int, int]:
        """(epoch, position) behind the batch that was handed out last."""
        coming = self._coming
        return self._cursor if coming is None or coming[0] == threading.get_ident() else coming[1]

    @property
    def current_epoch(self) -> int:
        """The epoch that the next batch is of; behind the last batch of one, until it is asked for more, still
        that one."""
        epoch, position = self.cursor
        return epoch + (self._resume == (epoch, position) and not self._n_left(epoch, position))

    @property
    def closed(self) -> bool:
        return not self._handle

    def __repr__(self) -> str:
        if not hasattr(self, "_order"):
            return "<penstock.Loader, not open>"
        where = "cpu" if self._device[0] == tensors.DL_CPU else f"cuda:{self._device[1]}"
        rank = "" if self._ranks.world == 1 else f", rank {self._ranks.rank} of {self._ranks.world}" \
            f" ({self._ranks.source})"
        outputs = "".join(f"\n  {name}: {output!r}" for name, output in self._outputs.items())
        state_of = "closed" if self.closed else "at epoch {}, position {:,}".format(*self.cursor)
        return (f"<penstock.Loader '{self._path}': {self.n_samples:,} samples, batches of {self.batch_size}, "
                f"{self._order} order, seed {self._numbers['seed']}, {self._framework} on {where}{rank}; "
                f"{state_of}{outputs}>")

    def __reduce__(self) -> Any:
        raise TypeError("a penstock.Loader has threads and cannot be pickled or sent to another process: "
                        "open it in the process that uses it; it needs no DataLoader around it, and no "
                        "num_workers")

    # ---- the handle --------------------------------------------------------------------------------------

    # Locks are taken by `with` itself: a context manager written in Python might be struck by a signal's
    # handler before it gives its lock back.

    def _open_handle(self) -> Any:
        """The handle, which close leaves alone while one of the locks is held."""
        if not self._handle:
            raise SystemExit if self._exiting else PenstockError("this loader is closed: open another one")
        return self._handle

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            self._refuse()

    def _check_turn(self) -> None:
        """In front of taking the turn."""
        self._check_process()
        if self._turn._is_owned():  # type: ignore[attr-defined]
            raise PenstockError("the loader is in the middle of a call of this thread's: a signal's handler "
                                "may neither iterate nor seek then (set a flag there, or raise, and go on "
                                "where you iterate), nor may what the loader calls")

    def _begin_turn(self) -> None:
        self._open_handle()
        self._settle()

    def _settle(self) -> None:
        """With the turn held: what became of the batch that was handed out last."""
        coming = self._coming
        if coming is None:
            return
        if coming[0] == threading.get_ident():
            self._astray = True
        else:
            self._cursor = coming[1]
        self._coming = None

    def _refuse(self) -> None:
        """In a child of fork. The locks may be held by threads that are not here: none is touched."""
        error = errors.new()
        code = _c.lib.pstk_next(self._handle, byref(POINTER(_c.Batch)()), None, 0, byref(error))
        errors.check(code, error)

    def close(self) -> None:
        """Stop and free all but what batches still hold. A wait in another thread ends with
        InterruptedLoaderError. Also at the end of `with`, at exit, and when the object goes."""
        if not (self._handle or self._dying) or os.getpid() != self._pid:
            return
        self._closing = True
        self.interrupt()
        with self._turn:
            with self._alive:  # not while the threads are waited for: others may ask for stats()
                self._give_back()
                self._hand_to_close()
            _c.lib.pstk_close(byref(self._dying))

    def _hand_to_close(self) -> None:
        streams.end(self._leases)
        if self._dataset is not None:
            self._dataset.close()
        # Both have it for a moment, rather than none.
        self._dying.value = self._handle.value or self._dying.value
        self._handle.value = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def interrupt(self) -> None:
        """End a wait for a batch, or the next one, by InterruptedLoaderError. Any thread."""
        if os.getpid() != self._pid:
            return  # nobody waits in a child of fork, and the lock may be held for ever there
        with self._alive:
            if self._handle:
                _c.lib.pstk_interrupt(self._handle)

    def stats(self) -> statistics.Stats:
        """What was done so far, and what limits. Any thread; never waits. print() it."""
        told = _c.Stats(size=sizeof(_c.Stats))
        self._check_process()
        with self._alive:
            errors.check(_c.lib.pstk_get_stats(self._open_handle(), byref(told)), errors.new())
        return statistics.of(told)

    # ---- places ------------------------------------------------------------------------------------------

    def _seek(self, epoch: int, position: int) -> None:
        """With the turn held. The library refuses a place that is none before it moves."""
        self._give_back()
        error, before, self._astray = errors.new(), self._astray, True
        code = _c.lib.pstk_seek(self._handle, epoch, position, byref(error))
        if code < 0:
            self._astray = before
            raise errors.of(error, code)
        self._cursor, self._astray = (epoch, position), False

    def _go(self, epoch: int, position: int) -> None:
        self._seek(epoch, position)
        self._resume = self._start = self._cursor
        self._pass += 1
        self._asked = False

    def seek(self, epoch: int, position: int = 0) -> None:
        """Go to a global sample position of an epoch, O(1): the next pass goes on there."""
        epoch, position = words.integer("epoch", epoch), words.integer("position", position)
        self._check_turn()
        with self._turn:
            self._begin_turn()
            self._go(epoch, position)

    def set_epoch(self, epoch: int) -> None:
        """The next pass is epoch `epoch`: from its start, or, where a state of that epoch was loaded and not
        yet used, from there."""
        epoch = words.integer("epoch", epoch)
        self._check_turn()
        with self._turn:
            self._begin_turn()
            self._ask(epoch)

    def _ask(self, epoch: int) -> None:
        if self._cursor != self._resume or self._resume[0] != epoch:
            self._go(epoch, 0)
        self._asked = True

    def epoch(self, epoch: int) -> Pass:
        """Iterate over epoch `epoch`: its batches, or, where a state of that epoch was loaded and not yet
        used, those that are left."""
        epoch = words.integer("epoch", epoch)
        self._check_turn()
        with self._turn:
            self._begin_turn()
            self._ask(epoch)
            return self._begin()

    def __iter__(self) -> Pass:
        """Iterate over one epoch: at first the one that the loader starts in, or goes on in after
        load_state_dict; each further call begins the next, also where one was left early."""
        self._check_turn()
        with self._turn:
            self._begin_turn()
            left_early = self._cursor[1] > 0 and self._cursor != self._start
            if not self._asked and (left_early or not self._n_left(*self._cursor)):
                self._seek(self._cursor[0] + 1, 0)
            return self._begin()

    def _begin(self) -> Pass:
        self._start, self._asked = self._cursor, False
        self._pass += 1
        return Pass(self, self._pass, self._cursor[0], self._n_left(*self._cursor))

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("a penstock.Loader gives batches in its order, not by number: iterate over it, "
                        "without a DataLoader around it; penstock.Dataset(path)[i] is sample i")

    def _n_left(self, epoch: int, position: int) -> int:
        numbers = self._numbers
        order = _c.OrderSettings(
            size=sizeof(_c.OrderSettings), order=numbers["order"], n_samples=self.n_samples,
            seed=numbers["seed"], epoch=epoch, batch_size=numbers["batch_size"],
            rank=numbers["rank"], world=numbers["world"], last=numbers["last"])
        return int(_c.lib.pstk_order_n_batches(byref(order), position))

    # ---- state -------------------------------------------------------------------------------------------

    def state_dict(self, after: Any = None) -> dict[str, Any]:
        """Where the loader is, as a dict that JSON holds (see penstock.state): behind the batch that was
        handed out last, or behind the batch `after`."""
        epoch, position = self.cursor
        if after is not None:
            told = batches.told_by(after)
            epoch, position = told.epoch, told.next_position
        return {"version": state.VERSION, "epoch": epoch, "position": position, "seed": self._numbers["seed"],
                "order": self._order, "order_version": state.ORDER_VERSION,
                "data_set": self._catalog.info.identity, "n_samples": self.n_samples,
                "batch_size": self.batch_size, "world": self._ranks.world}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called: the next pass begins there. SettingsError: it is of another
        data set, seed, order, or of a newer penstock; nothing has changed then."""
        self.seek(*state.check(state_dict, self.state_dict(), self._path))

    # ---- batches -----------------------------------------------------------------------------------------

    def _give_back(self) -> None:
        """End the lease of a batch that an exception kept from being handed out."""
        if self._batch:
            _c.lib.pstk_release(byref(self._batch), self._stream())

    def _next(self, number: int, epoch: int) -> tuple[Any, tuple[int, tuple[int, int]] | None]:
        """The next batch of a pass over `epoch`, and what `_coming` is until it arrived; None: the end."""
        self._check_turn()
        with self._turn:
            self._begin_turn()
            if number != self._pass:
                raise PenstockError("this pass is over: the loader went to another place, or on with a newer "
                                    "one")
            if self._cursor[0] != epoch:
                return None, None
            if self._astray:
                self._seek(*self._cursor)
            self._astray = True
            with self._guard():
                batch, info = self._take()
            if info is None:
                self._cursor, self._astray = (epoch + 1, 0), False
                return None, None
            coming = threading.get_ident(), (info.epoch, info.next_position)
            self._coming, self._astray = coming, False
        return batch, coming

    def _take(self) -> tuple[Any, batches.BatchInfo | None]:
        stream = self._stream()
        try:
            found = self._wait(stream)
        except PenstockError:
            # An error takes no batch, and stays: the next call raises it again. What a handler raises may.
            self._astray = bool(self._batch)
            raise
        if not found:
            return None, None
        if self._closing:  # by a signal's handler, which has given the batch back
            raise self._closed_meanwhile()
        share = tensors.Share(self._batch, stream)
        try:
            self._report(share.batch().contents)
        except BaseException:
            del share  # an exception that is kept keeps this frame
            raise
        info = batches.BatchInfo(share, self._images, hold=self._has_views)
        if not self._layouts:
            self._layouts = batches.layouts(share.batch().contents, self._outputs, self._device)
        found_in = tensors.find(share, self._layouts, info.n_valid)
        if self._has_views:
            self._leases.add(share.batch().contents.slot, share.pointer, tensors.ranges(found_in))
        return self._make([self._converted(tensor) for tensor in found_in], info), info

    def _report(self, batch: Any) -> None:
        """Warn, and call on_bad_sample, for a batch that is about to be handed out. What is raised here keeps
        it back, and the next call seeks to it."""
        if batch.n_palette_images and not self._warned:
            self._warned = True
            warnings.warn(PALETTES.format(path=self._path), stacklevel=5)  # to who iterates
        if self._on_bad_sample is None:
            return
        for report in batch.reports[:batch.n_reports]:
            other = report.substitute_id
            self._on_bad_sample(errors.of(report.error), None if other == _c.NONE else other)
        if self._closing:
            raise self._closed_meanwhile()

    def _converted(self, tensor: Any) -> Any:
        if not isinstance(tensor, tensors.Ragged):
            return self._convert(tensor)
        data, offsets = self._convert(tensor.data), self._convert(tensor.offsets)
        if tensor.device_offsets is tensor.offsets:
            return tensors.Ragged(data, offsets, offsets)
        return tensors.Ragged(data, offsets, self._convert(tensor.device_offsets))

    def _wait(self, stream: int | None) -> bool:
        """Lease the next batch in self._batch; False at the end of the epoch."""
        code = tensors.next_quick(self._handle, byref(self._batch), stream, 0, byref(self._error))
        if code == _c.ETIMEDOUT:
            code = self._wait_long(stream)
        if code == _c.ENOBUFS:
            # Batches may hang on reference cycles, of a traceback, say.
            gc.collect()
            code = self._wait_long(stream)
        if code == _c.ENOBUFS:
            raise self._out_of_slots()
        if code < 0:
            raise self._closed_meanwhile() if self._closing else errors.of(self._error, code)
        return bool(code)

    def _wait_long(self, stream: int | None) -> int:
        """In slices, between which the interpreter sees to signals."""
        end = None if self._timeout is None else time.monotonic() + self._timeout
        while True:
            code = int(_c.lib.pstk_next(self._handle, byref(self._batch), stream, SLICE_NS,
                                        byref(self._error)))
            if self._closing:
                raise self._closed_meanwhile()
            if code != _c.ETIMEDOUT or (end is not None and time.monotonic() >= end):
                return code

    def _closed_meanwhile(self) -> BaseException:
        if self._exiting:  # in a daemon thread, whose traceback would only disturb
            return SystemExit()
        return errors.InterruptedLoaderError("the loader was closed while this waited for a batch")

    def _out_of_slots(self) -> PenstockError:
        name = "n_slots" if self._device[0] == tensors.DL_CPU else "n_device_slots"
        told = self.stats()
        n = told.n_slots if name == "n_slots" else told.n_device_slots
        if b"captured" in self._error.message:  # there is no batch to let go of
            return errors.of(self._error, _c.ENOBUFS)
        self._error.message = (
            f"all {n} slots are held by batches that are still referenced: let go of older ones before "
            f"asking for more, open the loader with {name} above {n}, or with copy=True, which gives tensors "
            "that hold no slot").encode()
        return errors.of(self._error, _c.ENOBUFS)
