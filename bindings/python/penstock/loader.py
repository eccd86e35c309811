# SPDX-License-Identifier: Apache-2.0
"""penstock.Loader: reads samples ahead, and hands out batches in a reproducible order.

    with penstock.Loader("train", batch_size=256, device="cuda", outputs={
            "image": penstock.image("jpg", [ops.RandomResizedCrop(224), ops.RandomFlip(), ops.Normalize()],
                                    dtype="float16", layout="channels_last"),
            "label": penstock.scalar("cls")}) as loader:
        for epoch in range(90):
            for batch in loader.epoch(epoch):
                step(batch["image"], batch["label"])

Tensors are views of a slot of the loader. The loader reuses the slot when the last of them is gone. On the host,
tensors with one number a row are copies.

The loader's state is two objects: its Handle (locks, fork, close) and its Place (cursor, passes).
"""
from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from ctypes import byref, c_void_p, pointer, sizeof
from typing import TYPE_CHECKING, Any

from . import _c, agreement, batch as batches, batch_size as sizes, errors, micro
from . import outputs as descriptions, settings as words, state, stats as statistics, streams, tensors, interleave
from ._version import __version__
from .closing import ClosedAtEnd
from .elsewhere import LOADER_ATTRIBUTES
from .errors import PenstockError, SettingsError
from .handle import Handle
from .hints import Hints
from .place import Coming, Pass, Place
from .ranks import Ranks, chosen, numbers as numbers_of
from .sealed import Sealed, Shown

if TYPE_CHECKING:
    from .foreign import Opening
    from . import mixture as mixtures
    from .catalog import Catalog
    from .dataset import Dataset
    from .forecast import Forecast
    from .metrics import Metrics
    from .mix import BatchMix
    from .subset import Members, Subset, Weights
    from .topics import Device, Foreign, GlobalBatch, Memory, Observe, Order, Reading

__all__ = ["Loader", "Pass"]

# By framework: the function that prepares it for batches before it gets the first one.
_REGISTER = {"jax": batches.register_jax, "torch": batches.register_torch}

PALETTES = ("some images of {path} are PNG files with a palette. Loaders read pictures correctly, in the palette's "
            "colours, but not masks: resizing mixes colours, and class ids are lost. Pack masks in a field "
            "of kind 'mask', with their image")


def _close_at_end(loader: Loader) -> None:
    """Close a loader at exit: its threads must end before the interpreter and CUDA do."""
    loader._handle.exiting = True
    loader.close()


_open_loaders: ClosedAtEnd[Loader] = ClosedAtEnd(_close_at_end)


def _no_stream() -> int | None:
    return None


def _check_device(kind: int, index: int, framework: str) -> None:
    """Raise an error unless the device exists and the framework can use it. It is called before any thread is started."""
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


def _mixed(mix: Any, outputs: Mapping[str, descriptions.Output]) \
        -> tuple[BatchMix | None, dict[str, descriptions.Output]]:
    """Return the mix, checked, and the tensors of batches, described as outputs."""
    if mix is None:
        return None, dict(outputs)
    from . import mix as mixes
    mix = mixes.checked(mix)
    return mix, {**outputs, **mix.added(outputs)}


def _located(path: Any, foreign: Any) -> tuple[Any, Opening]:
    """Return the path that the library opens, and its Opening. A mixture is returned as it is."""
    from . import paths
    from .foreign import Opening
    opening = Opening(foreign)
    return opening.at(paths.local(path)) if isinstance(path, (str, bytes, os.PathLike)) else (path, opening)


def _opened(path: Any, foreign: Opening, outputs: Any = None,
            binds: bool = True) -> tuple[str, mixtures.Mixture | None, Catalog]:
    """Return the result of mixture.opened. The module is imported here, because few programs have a mixture."""
    from . import mixture as mixtures
    return mixtures.opened(path, outputs, binds, foreign)


def _members(path: str, subset: Any, weights: Any, samples_per_epoch: Any, order: str,
             mixture: mixtures.Mixture | None, foreign: Opening) -> Members | None:
    """Return the subset of the data set, opened, with its weights; None: all samples, each once."""
    if subset is None and weights is None and samples_per_epoch is None:
        return None
    if mixture is not None:
        name, value = next((name, value) for name, value in (
            ("subset", subset), ("weights", weights), ("samples_per_epoch", samples_per_epoch)) if value is not None)
        advice = f"give {'sample_weights' if name == 'weights' else name}= to penstock.Mixture"
        raise SettingsError(f"{name}: value is {value!r}; must be None with a mixture ({advice})")
    if weights is not None and order != "full":
        raise SettingsError(f"order: value is {order!r}; must be 'full' with weights=, which draw samples at random (leave "
                            "order= and shuffle= out)")
    from . import subset as subsets
    return subsets.opened(path, subset, weights, samples_per_epoch, foreign)


class Loader(Hints, Sealed):
    """Open a data set, and read samples ahead of the training loop.

    Wrong arguments raise an error before anything is started: TypeError, SettingsError (a ValueError),
    UnsupportedError, DataSetNotFoundError, CorruptRecordError.

    Only batch_size and global_batch_size of an open loader can be set. `loader.seed = 3`, or a misspelt name, raises
    AttributeError, which says what to do instead.

    A loader is an iterable, not an iterator: `iter(loader)` begins an epoch, and `next(iter(loader))` gives its first
    batch. `next(loader)` is a TypeError, and isinstance(loader, collections.abc.Iterator) is False.

    path: directory of a data set; or penstock.Mixture({path: weight}), several data sets in given shares. Data of other
        formats is read in place: a folder of archives, or a pattern of files ("shards/{000..127}.tar"); see foreign=.

    These arguments say what a batch is:

    batch_size: rows for this process; or penstock.GlobalBatch(rows), rows of all processes together. A dict is a
        schedule: {0: 256, 10_000: 512} gives batches 512 rows from step 10 000 on. A step is a batch of all processes
        together; steps count from 0, the first batch of epoch 0, in whichever epoch the loader starts. A
        penstock.Budget limits the cost of a batch, such as its tokens or pixels, and not its rows.
    outputs: {name: penstock.image(...) | scalar | tensor | ragged, or a field's name}; or a list of them; None: every
        field by its kind.
    form: "dict", "tuple", "dataclass", or a dataclass of yours: the type of a batch. A "dict" is a penstock.Batch,
        which iterates over its tensors in the order of the outputs: `for x, y in loader`. The first three have epoch,
        sample_ids, n_valid and the like as attributes; a dataclass of yours has them in its attribute `info`.
    framework: the library whose tensors a batch has: "torch", "numpy", "jax", "cupy", "dlpack" (penstock.Tensor).
        "auto" on the host: PyTorch if it is imported before the first batch, else NumPy, with a warning if PyTorch is
        installed. "auto" on a GPU, decided when the loader opens: PyTorch, or CuPy or JAX if only they are imported.
        NumPy has no bfloat16: without ml_dtypes it is the bits as uint16. JAX on a GPU gets copies.
    device: "cpu", "cuda" (the current device of PyTorch, else 0), "cuda:1", a torch.device; or a penstock.Device, which
        also says how batches come there.

    These arguments say which samples come, and in which order:

    seed: seed of the order and of augmentation; 0, the default, is the same in each run. torch.manual_seed and
        numpy.random.seed have no effect on a loader.
    shuffle: True is order="full", False is order="sequential"; without both the order is "full". With False and
        last_batch="drop", the same samples, those at the end of the data set, never come, and rank 0 warns;
        last_batch="short" gives all samples.
    last_batch: the treatment of a last batch that is not full. "drop" leaves it out (the default; a DataLoader keeps
        it, as "short" does). "pad" fills it from the start of the epoch. With "short" the tensors have fewer rows, on
        some ranks perhaps none.
    mix: penstock.MixUp, CutMix, MixUpCutMix or OneHot: mix the rows of each batch, and make targets of its labels.
        penstock.Mosaic: make pictures of four rows, with their masks and boxes.
    subset: penstock.Range, Fraction, Fold, Ids or Where, or a list of them: a part of the data set. The ids of batches
        stay those of the data set; see penstock.subset.
    weights: penstock.Weighted or Balanced: draw samples with replacement.
    bad_sample: "error"; or "replace": another sample of the same shard replaces a bad one; or a function of (error,
        id), which implies "replace". The loader calls the function for each bad sample that it replaced, with the id of
        the replacement, before it hands out the batch, in the thread that iterates and in the order of the rows. It
        describes the first 8 of a batch; one more call, with id None and an error without sample_id, gives the number
        of the others. An exception of the function comes out of the loop (StopIteration as RuntimeError), and the batch
        comes again at the next step, with its reports. The function may call stats(), interrupt() and close(), which
        ends the loop by InterruptedLoaderError, but it may neither iterate nor seek.

    These arguments say how the loader works. Most are objects of a topic, whose members their classes describe:

    n_threads: number of workers; 0: one for each core that this process may use, less one for the readers of each
        NUMA node that make all reads or whose node has 32 cores or more, and one for copies to a GPU, while 4 workers a
        node remain.
    order: "full", "windowed" or "sequential"; or a penstock.Order: also the start, numbers of a windowed order, and the
        draws of an epoch. shuffle=True goes with "windowed", too.
    ranks: this process among others. "auto" asks torch.distributed and the launcher (torchrun, srun, mpirun); or
        penstock.Ranks(rank, world), penstock.ranks.from_mesh(mesh, "dp") or penstock.ranks.from_megatron().
    memory: penstock.Memory: slots, bytes, and the largest images and records.
    reading: penstock.Reading: reading, kernels, and the timeout of a wait.
    observe: penstock.Observe: crops, traces, marks for a profiler, the file for `penstock top`.
    foreign: penstock.Foreign: how data of another format is read in place.
    """

    _hints = LOADER_ATTRIBUTES
    _instead = {"epoch": "call loader.set_epoch(3), or iterate over loader.epoch(3)",
                **dict.fromkeys(("position", "cursor", "current_epoch"), "call loader.seek(epoch, position)"),
                "dataset": "open a new Loader on the other data set's path"}
    _handle = Handle()  # close does nothing with it if __init__ did not finish
    _dataset: Dataset | None = None
    _last_stats: statistics.Stats | None = None  # statistics at close
    _n_samples: int | None = None  # samples of an epoch, once the library has said it
    _own: Any = None  # the loader's own stream, once it is needed
    _convert: Callable[[tensors.Tensor], Any] | None = None  # makes the framework's tensor; None: not decided yet
    _agreement: agreement.Agreement | None = None  # None once the other processes' loaders are known to be alike

    @words.suggesting
    def __init__(
            self, path: str | os.PathLike[str] | mixtures.Mixture, *,
            batch_size: sizes.Rows | GlobalBatch | None = None, outputs: descriptions.Outputs = None, form: Any = "dict",
            framework: str = "auto", device: Any = "cpu", seed: int = 0, shuffle: bool | None = None,
            last_batch: str = "drop", mix: BatchMix | None = None, subset: Subset | None = None,
            weights: Weights | None = None,
            bad_sample: str | Callable[[PenstockError, int | None], Any] = "error", n_threads: int = 0,
            order: str | Order | None = None, ranks: Ranks | str | None = None, memory: Memory | None = None,
            reading: Reading | None = None, observe: Observe | None = None, foreign: Foreign | None = None) -> None:
        from . import topics
        asked = topics.Topics(topics.order_of(order), topics.given("memory", memory, topics.Memory),
                              topics.given("reading", reading, topics.Reading), topics.given("observe", observe, topics.Observe),
                              topics.device_of(device))
        where, observe = asked.device, asked.observe
        order = words.order(shuffle, asked.order.kind)
        kind, index = words.device(where.device)
        self._ranks = chosen(ranks)
        self._agreement = agreement.Agreement(self._ranks, self._ranks.compare)
        with self._agreement.opening():
            self._rows = sizes.of(*topics.rows_of(batch_size), asked.memory.max_batch_size, self._ranks.world)
            word, self._on_bad_sample = words.bad_sample(bad_sample)
            numbers = words.numbers(self._rows.settings, asked, {"order": order, "last_batch": last_batch, "bad_sample": word},
                                    {"seed": seed, "n_threads": n_threads, **numbers_of(self._ranks, asked.memory.max_memory)})
            self._copies = words.switch("Device.copy", where.copy)
            self._framework = words.framework(framework, kind != _c.HOST)
            timeout = words.seconds("timeout", asked.reading.timeout)
            given, self._foreign = _located(path, foreign)
            path, self._mixture, self._catalog = _opened(given, self._foreign, outputs)
            self._members = _members(path, subset, weights, asked.order.samples_per_epoch, order, self._mixture,
                                     self._foreign)
            self._costed = self._rows.costed(path, self._catalog, order, self._mixture)
            self._outputs = descriptions.resolve(outputs, self._catalog)
            self._check_device(where, kind)
            self._mix, self._tensors = _mixed(mix, self._outputs)
            self._make = batches.maker(words.form(form, self._tensors), tuple(self._tensors))
            if self._framework != "auto":
                self._decide_framework()
            _check_device(kind, index or 0, self._framework)
            numbers["device"] = kind
            numbers["device_index"] = _default_index(self._framework) if index is None else index
            self._numbers, self._path = numbers, path
            self._device = (tensors.DL_CPU, 0) if kind == _c.HOST else (tensors.DL_CUDA, numbers["device_index"])
            # Whether tensors are views of a device's slots. JAX gets copies there.
            self._has_views = kind != _c.HOST and not self._copies and self._framework != "jax"
            self._named_stream, self._guard = self._stream_of(where.stream), self._guard_of()
            self._order, self._interleave = order, interleave.settled(order, numbers, self.n_samples)
            self._agreement.order.update(self._fixed(last_batch))
        self._start(words.to_c(path, self._outputs, numbers, asked, self._mix, self._members), timeout)
        self._agreement.begin()
        if observe.trace_path is not None:
            from . import trace
            trace.begin(self._handle)
        if observe.monitor_path not in (None, False):
            from . import status_files
            status_files.begin(self._handle)
        # The library has read the manifest by itself, and may have read another one.
        if _opened(given, self._foreign, binds=False)[2].info.identity != self._catalog.info.identity:
            self.close()
            raise errors.DataSetNotFoundError(f"{path} was replaced while it was being opened: open it again")
        sizes.warn_of_dropped(self)
        if not self._ranks.rank:
            self._catalog.warn_of_left_out(path)

    def _check_device(self, where: Device, kind: int) -> None:
        """Raise SettingsError for what the framework, or copies, cannot have."""
        if self._framework == "jax" and any(o.layout == "channels_last" for o in self._outputs.values()):
            raise SettingsError("outputs: layout is 'channels_last'; must be 'nhwc' or 'nchw' for JAX (give "
                                "layout='nhwc')")
        if where.stream is not None and self._copies and kind != _c.HOST:
            raise SettingsError(f"stream: value is {where.stream!r}; must be None with Device.copy=True: copies are made on the "
                                "framework's current stream (make yours the current one, or give copy=False)")

    def _start(self, settings: _c.Settings, timeout: float | None) -> None:
        """Open the library's loader. The settings point to objects that live until then."""
        foreign = self._foreign.to_c()
        settings.foreign = pointer(foreign)
        if self._mixture is not None:
            self._mixture._fill(settings)
        steps = self._rows.schedule_to(settings)
        if self._costed is not None:
            self._costed.fill(settings, self._outputs)
        self._open(settings, timeout)
        del steps, foreign  # the settings point to these

    def _fixed(self, last_batch: str) -> dict[str, Any]:
        """Return the values that must be the same on all processes, so that each sample comes once."""
        info = self._catalog.info
        return {"data_set": info.identity,
                "_data_set": f"{self._path}: {info.n_samples} samples and {info.bytes} bytes in {info.n_shards} shards",
                "n_samples": self.n_samples, "subset": self._subset(), "order": self._order,
                "order_version": interleave.version(self._order), **self._interleave,
                "seed": self._numbers["seed"], "epoch": self._numbers["epoch"],
                "position": self._numbers["position"], "last_batch": last_batch,
                "global_batch_size": self._rows.world_wide, "batch_schedule": self._rows.schedule,
                "version": __version__, **self._mixed_as()}

    def _mixed_as(self) -> dict[str, Any]:
        """Return the entries of a mixture and a budget, for _fixed and for the state."""
        return {**({} if self._mixture is None else {"mixture": self._mixture._state()}),
                **({} if self._costed is None else {"budget": self._costed.digest})}

    def _subset(self) -> str | None:
        """Return the digest of the subset, as states and ranks compare it; None: all samples."""
        return None if self._members is None else self._members.digest

    def _stream_of(self, stream: Any) -> Callable[[], int | None] | None:
        """Return the function that gives the stream for each batch; None: the loader uses its own stream."""
        if self._device[0] == tensors.DL_CPU:
            return _no_stream
        if callable(stream):
            return lambda: None if (current := stream()) is None else streams.handle(current)
        if stream is not None:
            handle = streams.handle(stream)
            return lambda _kept=stream: handle  # type: ignore[misc]
        return streams.current(self._framework, self._device[1])

    def _stream(self) -> int | None:
        """Return the stream on which the next batch is leased."""
        return self._own_stream() if self._named_stream is None else self._named_stream()

    def _own_stream(self) -> int:
        """Return a stream of the loader's own, for frameworks that do not report theirs. Nothing runs on it; readers of
        the tensors wait for it. The library closes it after the last batch."""
        if not self._own:  # also true if a former call was interrupted
            self._own, error = c_void_p(), errors.new()
            errors.check(_c.lib.pstk_stream_open(self._handle.pointer, byref(self._own), byref(error)), error)
        return int(self._own.value)

    def _guard_of(self) -> Callable[[], Any]:
        """Return a function that makes the loader's device the current one of PyTorch: its default stream has no handle
        of its own, and belongs to the current device."""
        nothing = contextlib.nullcontext()
        if self._device[0] == tensors.DL_CPU or self._framework != "torch":
            return lambda: nothing
        import torch
        index, current, enter = self._device[1], torch.cuda.current_device, torch.cuda.device
        return lambda: nothing if current() == index else enter(index)

    def _decide_framework(self) -> None:
        """Decide which framework's tensors batches have. "auto" on the host is decided at the first batch."""
        if self._framework == "auto":
            self._framework, is_unsure = words.host_framework()
            if is_unsure and words.is_first_unsure():
                warnings.warn(words.NOT_TORCH, stacklevel=5)  # points at the caller's loop
        self._convert = tensors.converter(self._framework, self._copies)
        if self._framework in _REGISTER:
            _REGISTER[self._framework]()

    def _open(self, settings: _c.Settings, timeout: float | None) -> None:
        self._layouts: dict[tuple[int, int], tuple[tensors.Layout, ...]] = {}  # by BatchInfo.shaped, which fixes the shapes
        self._warned = False  # whether this loader warned of images with a palette
        self._number = int.from_bytes(os.urandom(8), "little")  # the loader's number in its batches, also when they are pickled
        self._images = {name: batches.ImageOutput(i, output.layout == "nhwc")
                        for i, (name, output) in enumerate(self._outputs.items())
                        if output.kind == _c.OUTPUT_IMAGE}
        self._leases = streams.Leases()
        on_device = self._device[0] != tensors.DL_CPU
        if on_device:
            settings.device.current_stream = streams.current_of_threads(self._framework)
        self._handle = Handle(on_device, timeout)
        numbers = self._numbers
        order = _c.OrderSettings(size=sizeof(_c.OrderSettings), n_samples=self.n_samples, **{
            name: numbers[name] for name in ("order", "seed", "rank", "world", "last_batch", *interleave.NAMES)})
        self._place = Place(self._handle, order, numbers["epoch"], numbers["position"], self._rows)
        try:
            self._handle.open(settings)
        except PenstockError as refused:
            refused.args = (descriptions.in_python(str(refused), self._outputs),)
            raise
        if self._costed is not None:
            self._place.size = self._rows = self._rows.opened(self._handle.pointer, self._ranks.world)
        self._n_samples = order.n_samples = int(_c.lib.pstk_n_samples(self._handle.pointer))
        _open_loaders.add(self)
        streams.begin(self._leases)

    # ---- description -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Number of batches of a whole epoch, the same on every rank. With a budget it is that of the epoch at the
        cursor."""
        self._handle.check_process()
        with self._handle.alive:
            return int(_c.lib.pstk_n_batches(self._handle.opened()))

    @property
    def n_samples(self) -> int:
        """Number of samples of an epoch: draws by weights, or samples of the subset, the data set or the mixture."""
        if self._n_samples is not None:
            return self._n_samples
        return self._catalog.info.n_samples if self._members is None else self._members.n

    @property
    def mixture(self) -> mixtures.Mixture | None:
        """The mixture that was opened; None: the loader has one data set."""
        return self._mixture

    @property
    def dataset(self) -> Dataset:
        """The data set as a penstock.Dataset; SettingsError for a mixture. len(loader.dataset) is the number of
        samples, on every rank; loader.dataset[i] reads sample i. It is opened at the first use, and closed with the
        loader."""
        self._handle.check_process()
        with self._handle.alive:
            self._handle.opened()
            found = self._dataset
        return self._kept(self._opened_dataset()) if found is None else found

    def _kept(self, opened: Dataset) -> Dataset:
        """Keep a data set that was opened without a lock, and return it. If another thread was faster, return that
        thread's."""
        with self._handle.alive:
            self._handle.opened()
            if self._dataset is None:
                self._dataset = opened
            return self._dataset

    def _opened_dataset(self) -> Dataset:
        from .dataset import Dataset
        if self._mixture is not None:
            raise SettingsError(f"dataset: the loader has {self._path}; must have one (open penstock.Dataset(path) for a path "
                                "of loader.mixture.paths)")
        found = Dataset(self._path, foreign=self._foreign.given)
        if found.info.identity != self._catalog.info.identity:
            found.close()
            raise errors.DataSetNotFoundError(f"{self._path} was replaced after the loader opened it: open "
                                              "the loader again")
        return found

    @property
    def n_batches_left(self) -> int:
        """Number of batches from the cursor to the end of its epoch."""
        return self._place.n_left(*self.cursor)

    @property
    def path(self) -> str:
        """Absolute path of the data set; of a mixture, text such as "the mixture of 2 data sets"."""
        return self._path

    @property
    def batch_size(self) -> int:
        """Rows of a batch of this process; with uneven=True or a budget the most. Setting it calls set_batch_size."""
        return -(-self._place.rows() // self._ranks.world)

    @batch_size.setter
    def batch_size(self, rows: int) -> None:
        self.set_batch_size(rows)

    @property
    def global_batch_size(self) -> int:
        """Rows of a batch of all processes together. Setting it calls set_global_batch_size."""
        return self._place.rows()

    @global_batch_size.setter
    def global_batch_size(self, rows: int) -> None:
        self.set_global_batch_size(rows)

    @property
    def ways(self) -> int | None:
        """Ways of a windowed order; None: the order is another one."""
        return self._interleave.get("ways")

    @property
    def block(self) -> int | None:
        """Samples of a block of a windowed order; None: the order is another one."""
        return self._interleave.get("block")

    @property
    def window(self) -> int | None:
        """Blocks of a window of a windowed order; None: the order is another one."""
        return self._interleave.get("window")

    @property
    def outputs(self) -> Mapping[str, descriptions.Output]:
        """The outputs by their names."""
        return Shown(self._outputs)

    @property
    def ranks(self) -> Ranks:
        """This process among others, a penstock.Ranks: rank, world, local_rank, local_world, and the source of these
        numbers."""
        return self._ranks

    @property
    def cursor(self) -> tuple[int, int]:
        """(epoch, position) after the batch that was handed out last."""
        return self._place.seen()

    @property
    def current_epoch(self) -> int:
        """The epoch of the next batch. After the last batch of an epoch it stays that epoch until the loop asks for
        more."""
        return self._place.current_epoch()

    @property
    def closed(self) -> bool:
        return not self._handle.pointer

    def _lines(self) -> list[str]:
        """Return lines that describe the loader, without its outputs."""
        where = "cpu" if self._device[0] == tensors.DL_CPU else f"cuda:{self._device[1]}"
        rank = "" if self._ranks.world == 1 else f", rank {self._ranks.rank} of {self._ranks.world}" \
            f" ({self._ranks.source})"
        state_of = "closed" if self.closed else "at epoch {}, position {:,}".format(*self.cursor)
        return [f"{self._path!r}", f"{self.n_samples:,} samples, batches of {self._rows.budget or self.batch_size}, {self._order} order"
                f"{interleave.described(self._interleave)}, seed {self._numbers['seed']}, {self._framework} on {where}{rank}"
                + ("" if self._members is None else f", {self._members!r}")
                + ("" if self._mix is None else f", {self._mix!r}"), state_of]

    def __repr__(self) -> str:
        if not hasattr(self, "_order"):
            return "<penstock.Loader, not open>"
        path, what, state_of = self._lines()
        outputs = "".join(f"\n  {name}: {output!r}" for name, output in self._outputs.items())
        return f"<penstock.Loader {path}: {what}; {state_of}{outputs}>"

    def _repr_html_(self) -> str | None:
        """Return the table that a notebook shows; None: it shows the repr."""
        if not hasattr(self, "_order"):
            return None
        from . import notebook
        return notebook.of_loader(self, self._lines(), {field.name: field.field for field in self._catalog.fields})

    def _another(self, name: str) -> str:
        return f"open a new Loader with {name}=..."

    def _refusal(self, name: str) -> str:
        from .moved import spelling
        written = None if name in self._instead else spelling("Loader", name)
        return super()._refusal(name) if written is None else f"it is given to penstock.Loader (open a new Loader with {written})"

    def __reduce__(self) -> Any:
        raise TypeError("a penstock.Loader has threads and cannot be pickled or sent to another process: "
                        "open it in the process that uses it; it needs no DataLoader around it, and no "
                        "num_workers")

    # ---- closing -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the threads, and free all memory except slots that batches still hold. A wait in another thread ends
        with InterruptedLoaderError. It is also called at the end of `with`, at exit, and when the object goes."""
        handle = self._handle
        if not handle.begin_close():
            return
        if self._agreement is not None:
            self._agreement.end()
        with handle.turn:
            with handle.alive:
                self._give_back()
                if not self.closed:  # closed already if a signal handler interrupted a former close
                    self._last_stats = self.stats()
                streams.end(self._leases)
                if self._dataset is not None:
                    self._dataset.close()
                handle.hand_over()
            handle.end_close()

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def interrupt(self) -> None:
        """End a wait for a batch, or the next wait, by InterruptedLoaderError. Thread: any."""
        self._handle.interrupt()

    def stats(self) -> statistics.Stats:
        """Return the counts and times so far, and the stage that limits, as a penstock.Stats; after close(), those at
        close. print() it. Thread: any; never waits."""
        self._handle.check_process()
        with self._handle.alive:
            if self.closed and self._last_stats is not None:
                return self._last_stats
            found = self._handle.stats()
            if self._mixture is None:
                return found
            return dataclasses.replace(found, data_sets=self._mixture._stats(self._handle.opened()))

    def metrics(self, window: str = "open") -> Metrics:
        """Return counts and times of a window: since "open", since the last "look" (which all callers share), or the
        last "minute". print() them. Thread: any; the loop never waits for it."""
        from . import metrics
        return metrics.get(self._handle, window)

    def forecast(self, more_workers: int | None = None, storage: float | None = None,
                 no_consumer: bool = False) -> Forecast:
        """Predict samples per second after a change: more_workers additional workers, storage that is `storage` times
        as fast, or a loop that takes every batch at once (no_consumer). Without arguments it predicts the usual
        changes, one by one. print() the result. Thread: any."""
        from . import forecast
        return forecast.of(self._handle, more_workers, storage, no_consumer)

    def write_trace(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write what each thread did when, so far, to a file for ui.perfetto.dev. path: None: Observe.trace_path.
        Threads go on meanwhile; see penstock.trace. Thread: any."""
        from . import trace
        trace.write(self._handle, path)

    # ---- positions -----------------------------------------------------------------------------------------

    def _begin_turn(self) -> None:
        """Begin a call that holds the turn: check that the loader is open, and give back a lost batch."""
        self._handle.opened()
        self._place.settle()
        self._give_back()

    def _give_back(self) -> None:
        """End the lease of a batch that an exception kept from being handed out."""
        if self._handle.batch:
            _c.lib.pstk_release(byref(self._handle.batch), self._stream())

    def seek(self, epoch: int, position: int = 0) -> None:
        """Go to a position of an epoch, counted in samples over all ranks. The next pass begins there. Takes constant
        time."""
        epoch, position = words.integer("epoch", epoch), words.integer("position", position)
        self._handle.check_turn()
        with self._handle.turn:
            self._begin_turn()
            self._place.go(epoch, position)

    def set_epoch(self, epoch: int) -> None:
        """Make `epoch` the epoch of the next pass. It begins at the epoch's start, or at the position of a loaded state
        of that epoch that was not used yet."""
        epoch = words.integer("epoch", epoch)
        self._handle.check_turn()
        with self._handle.turn:
            self._begin_turn()
            self._place.ask(epoch)

    def epoch(self, epoch: int) -> Pass:
        """Iterate over the batches of epoch `epoch`, or, after a state of that epoch was loaded and not used yet, over
        those that are left."""
        epoch = words.integer("epoch", epoch)
        self._handle.check_turn()
        with self._handle.turn:
            self._begin_turn()
            self._place.ask(epoch)
            return Pass(self, *self._place.begin())

    def __iter__(self) -> Pass:
        """Iterate over one epoch. The first call gives the epoch in which the loader starts, or goes on after
        load_state_dict. Each further call begins the next epoch, also if the loop left the last one early."""
        self._handle.check_turn()
        with self._handle.turn:
            self._begin_turn()
            return Pass(self, *self._place.begin_next())

    def micro_batches(self, n_parts: int, epoch: int | None = None) -> Pass:
        """Iterate over an epoch in batches of n_parts parts each, for the accumulation of gradients.

            for parts in loader.micro_batches(4):  # a step of the optimizer
                for part in parts:
                    x, y = part
                    (loss(model(x), y) * part.n_valid / parts.n_valid).backward()

        Gives penstock.MicroBatches: tuples of n_parts batches. They are views of one slot, and hold it until the last
        of them is gone. Of n valid rows, part i has the rows [n * i // n_parts, n * (i + 1) // n_parts): the numbers of
        rows differ by 1 at most, and the last part has the most. In a batch with fewer rows than parts, some parts are
        empty. Ragged parts have data and offsets of their own rows; with framework="dlpack" data is that of the whole
        batch, and offsets count in it.

        n_parts: number of parts, at least 1.
        epoch: the epoch, as in epoch(); None: as in iter(loader).
        """
        found = micro.number(n_parts)
        batches_of = iter(self) if epoch is None else self.epoch(epoch)
        batches_of.n_parts = found
        return batches_of

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("a penstock.Loader gives batches in its order, not by number: iterate over it, "
                        "without a DataLoader around it; penstock.Dataset(path)[i] is sample i")

    def set_batch_size(self, rows: int, *, unchecked: bool = False) -> None:
        """Give batches of this process another number of rows, from the next one on. `loader.batch_size = rows` does
        the same.

        Every sample of an epoch still comes once. Batches that were read ahead are dropped, and their rows are read and
        decoded again: a change costs what a seek costs. len(loader) and n_batches_left count batches of the new size.

        rows: at most max_batch_size of penstock.Memory.
        unchecked: True: do not compare processes. Otherwise all processes must set the same size before the same batch:
            where torch.distributed is initialised they compare size and cursor, and all raise SettingsError if these
            differ.

        Raises SettingsError, and changes nothing: there are too many rows; last_batch="drop" leaves no batch; nothing
        can compare several processes; or the loader has a budget, a schedule or a global batch size.
        """
        sizes.change(self, "batch_size", rows, unchecked)

    def set_global_batch_size(self, rows: int, *, unchecked: bool = False) -> None:
        """Give batches of all processes together another number of rows, as set_batch_size does for one process. The
        loader was opened with penstock.GlobalBatch. rows: at most max_batch_size * world."""
        sizes.change(self, "global_batch_size", rows, unchecked)

    # ---- state -------------------------------------------------------------------------------------------

    def state_dict(self, after: Any = None) -> dict[str, Any]:
        """Return the position of the loader, as a dict that JSON holds (see penstock.state). It is just after the batch
        that was handed out last, or after the batch `after`, which this loader gave."""
        epoch, position = self.cursor
        if after is not None:
            info = batches.info_of(after)
            info.check_loader(self._number)
            epoch, position = info.epoch, info.next_position
        return {"version": state.VERSION, "epoch": epoch, "position": position, "seed": self._numbers["seed"],
                "order": self._order, "order_version": interleave.version(self._order), **self._interleave,
                "data_set": self._catalog.info.identity, "n_samples": self.n_samples,
                "batch_size": self.batch_size, "global_batch_size": self.global_batch_size,
                "world": self._ranks.world, **({} if self._members is None else {"subset": self._members.digest}),
                **self._mixed_as(),
                **self._rows.state}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called: the next pass begins there. A loader that was opened with max_batch_size
        goes on with the batch size of the state, any other one with its own.

        Raises SettingsError, and changes nothing: the state is of another data set, seed or order; a newer penstock
        made it; its batches are too large; or it has keys that no state has.
        """
        epoch, position = state.check(state_dict, self.state_dict(), self._path)
        size = sizes.restored(self, state_dict)
        self._handle.check_turn()
        with self._handle.turn:
            self._begin_turn()
            is_changed = not size.is_fixed and size != self._place.size
            if not size.is_fixed:
                self._place.resize(size)
            self._place.go(epoch, position)
        if is_changed:
            sizes.warn_of_dropped(self)

    # ---- batches -----------------------------------------------------------------------------------------

    def _next(self, number: int, epoch: int, n_parts: int | None) -> tuple[Any, Coming | None]:
        """Return the next batch of a pass over `epoch`, in n_parts parts if that is not None, and the place's `coming`
        for it. (None, None): the epoch has ended."""
        handle, place = self._handle, self._place
        handle.check_turn()
        if self._agreement is not None and self._agreement.is_over(handle.check_closing):
            self._agreement = None
        with handle.turn:
            self._begin_turn()
            if number != place.number:
                raise PenstockError("this pass is over: the loader moved to another position, or began a "
                                    "newer pass")
            if place.cursor[0] != epoch:
                return None, None
            if place.astray:
                place.seek(*place.cursor)
            place.astray = True
            with self._guard():
                batch, info = self._take(n_parts)
            if info is None:
                place.cursor, place.astray = (epoch + 1, 0), False
                return None, None
            coming = threading.get_ident(), (info.epoch, info.next_position)
            place.coming, place.astray = coming, False
        return batch, coming

    def _take(self, n_parts: int | None) -> tuple[Any, batches.BatchInfo | None]:
        if self._convert is None:
            self._decide_framework()
        stream, handle = self._stream(), self._handle
        try:
            found = handle.wait(stream)
        except PenstockError:
            # An error takes no batch, and the next call raises it again. An exception of a signal handler may leave a
            # batch.
            self._place.astray = bool(handle.batch)
            raise
        if not found:
            return None, None
        handle.check_closing()  # a signal handler may have called close, which has given the batch back
        share = tensors.Share(handle.batch, stream)
        try:
            self._report(share.batch().contents)
        except BaseException:
            del share  # else the frame of a kept exception would hold the batch
            raise
        info = batches.BatchInfo(share, self._number, self._images, hold=self._has_views)
        layouts = self._layouts.get(info.shaped)
        if layouts is None:
            layouts = batches.layouts(share.batch().contents, self._tensors, self._device)
            self._layouts[info.shaped] = layouts
        found_in = tensors.find(share, layouts, info.n_valid)
        if self._has_views:
            self._leases.add(share.batch().contents.slot, share.pointer, tensors.ranges(found_in))
        if n_parts is not None:
            splitter = micro.Splitter(self._converted, micro.shifting(self._framework, self._device[1]), self._make)
            return splitter.split(found_in, info, n_parts, stream), info
        return self._make([self._converted(tensor) for tensor in found_in], info), info

    def _report(self, batch: Any) -> None:
        """Warn of palettes, and call the function of bad_sample, for a batch that is about to be handed out. An
        exception keeps the batch back; the next call seeks to it."""
        if batch.n_palette_images and not self._warned:
            self._warned = True
            warnings.warn(PALETTES.format(path=self._path), stacklevel=5)  # points at the caller's loop
        if self._on_bad_sample is None:
            return
        for report in batch.reports[:batch.n_reports]:
            other = report.replacement_id
            self._on_bad_sample(errors.of(report.error), None if other == _c.NONE else other)
        self._handle.check_closing()

    def _converted(self, tensor: Any) -> Any:
        convert = self._convert
        assert convert is not None
        if not isinstance(tensor, tensors.Ragged):
            return convert(tensor)
        data, offsets = convert(tensor.data), convert(tensor.offsets)
        if tensor.device_offsets is tensor.offsets:
            return tensors.Ragged(data, offsets, offsets, tensor.list_kind)
        return tensors.Ragged(data, offsets, convert(tensor.device_offsets), tensor.list_kind)
