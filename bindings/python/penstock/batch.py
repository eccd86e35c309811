# SPDX-License-Identifier: Apache-2.0
"""What a loader hands out: tensors, as a dict, a tuple or a dataclass, and what the batch tells of itself.

Every form has these beside its tensors: epoch, position, next_position, index, n_valid, sample_ids,
substituted, crops and record_stream; a dataclass of the user's has them in its attribute `info`. What other
libraries make of a batch (a copy on another device, say) has the tensors only.
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping
from ctypes import byref, sizeof, string_at
from typing import Any, NamedTuple

from . import _c, errors, settings as words, tensors
from .hints import OF_BATCHES, Hints

__all__ = ["Batch", "BatchInfo", "Crop", "TupleBatch"]


class Crop(NamedTuple):
    """Where a row was cut from, in pixels of the decoded image; top and left are negative where a crop pads.
    With a resizing operation it is the source of the whole resize."""

    top: int
    left: int
    height: int
    width: int
    image_height: int
    image_width: int
    flip: bool


class BatchInfo:
    """What a batch tells of itself. It holds no slot, but on a device, where record_stream needs it.

    epoch, index: of the batch. position: of its first sample over all ranks; next_position: the cursor to
    save once the batch is used. n_valid: rows that are samples.
    """

    __slots__ = ("_crops", "_ids", "_names", "_n_rows", "_share", "_substitutes", "epoch", "index", "n_valid",
                 "next_position", "position")

    def __init__(self, share: tensors.Share, names: tuple[str, ...], hold: bool) -> None:
        batch = share.batch().contents
        self.epoch: int = batch.epoch
        self.position: int = batch.position
        self.next_position: int = batch.next_position
        self.index: int = batch.index
        self.n_valid: int = batch.n_valid
        self._names, self._n_rows = names, batch.n_rows
        # Copies: the slot may go before this object.
        self._ids = string_at(batch.sample_ids, 8 * self.n_valid)
        self._substitutes = string_at(batch.substitute_ids, 8 * self.n_valid) if batch.n_replaced else b""
        n_crops = len(names) * self._n_rows if batch.crops else 0
        self._crops = string_at(batch.crops, sizeof(_c.Crop) * n_crops) if n_crops else b""
        self._share = share if hold else None

    @property
    def sample_ids(self) -> list[int]:
        """Numbers in the data set of the valid rows; also where another sample stands in."""
        return memoryview(self._ids).cast("Q").tolist()

    @property
    def substituted(self) -> dict[int, int]:
        """Of the samples that were bad: the id of the one that stands in, by the id of the bad one."""
        if not self._substitutes:
            return {}
        stands_in = memoryview(self._substitutes).cast("Q").tolist()
        return {bad: other for bad, other in zip(self.sample_ids, stands_in) if other != _c.NONE}

    @property
    def crops(self) -> dict[str, list[Crop]]:
        """With with_crops=True: where each valid row of each output was cut from."""
        if not self._crops:
            return {}
        all_crops = (_c.Crop * (len(self._names) * self._n_rows)).from_buffer_copy(self._crops)
        return {name: [Crop(c.top, c.left, c.height, c.width, c.image_height, c.image_width, bool(c.flip))
                       for c in all_crops[i * self._n_rows:i * self._n_rows + self.n_valid]]
                for i, name in enumerate(self._names)}

    def record_stream(self, stream: Any) -> None:
        """Tell that a further stream uses the batch: what is in it by now ends before the slot is
        overwritten. stream: of PyTorch or CuPy, or a cudaStream_t as an int. On the host, nothing."""
        if self._share is None:
            return
        error = errors.new()
        errors.check(_c.lib.pstk_batch_record(self._share.batch(), words.stream(stream), byref(error)), error)

    def __reduce__(self) -> Any:
        return _unpickle, (self.epoch, self.position, self.next_position, self.index, self.n_valid,
                           self._names, self._n_rows, self._ids, self._substitutes, self._crops)

    def __repr__(self) -> str:
        return f"epoch {self.epoch}, batch {self.index}, {self.n_valid} rows"


def _unpickle(*values: Any) -> BatchInfo:
    info = BatchInfo.__new__(BatchInfo)
    info._share = None
    (info.epoch, info.position, info.next_position, info.index, info.n_valid, info._names, info._n_rows,
     info._ids, info._substitutes, info._crops) = values
    return info


class _Told(Hints):
    """The attributes that every form of a batch has. `info` is None in what others made of a batch."""

    _hints = OF_BATCHES
    info: BatchInfo | None = None

    def _hint(self, name: str) -> str:
        if isinstance(self, dict) and dict.__contains__(self, name):
            return f": tensors go by their names, batch[{name!r}]; form='dataclass' makes attributes of them"
        return super()._hint(name)

    @property
    def _told(self) -> BatchInfo:
        if self.info is None:
            raise AttributeError("only batches as they come from a loader tell epoch, position, sample_ids "
                                 "and the like; this one was made from another")
        return self.info

    epoch = property(lambda self: self._told.epoch, doc="Epoch.")
    position = property(lambda self: self._told.position, doc="Of the first sample over all ranks.")
    next_position = property(lambda self: self._told.next_position, doc="The cursor behind the batch.")
    index = property(lambda self: self._told.index, doc="Number of the batch in its epoch.")
    n_valid = property(lambda self: self._told.n_valid, doc="Rows that are samples.")
    sample_ids = property(lambda self: self._told.sample_ids, doc=BatchInfo.sample_ids.__doc__)
    substituted = property(lambda self: self._told.substituted, doc=BatchInfo.substituted.__doc__)
    crops = property(lambda self: self._told.crops, doc=BatchInfo.crops.__doc__)

    def record_stream(self, stream: Any) -> None:
        self._told.record_stream(stream)

    record_stream.__doc__ = BatchInfo.record_stream.__doc__


def _shape(value: Any) -> str:
    if isinstance(value, tensors.Ragged):
        return f"ragged {_shape(value.data)} of {value.n_rows} rows"
    dtype = str(getattr(value, "dtype", "?")).replace("torch.", "")
    return f"{dtype} {list(getattr(value, 'shape', []))}"


class Batch(dict[str, Any], _Told):
    """The tensors of a batch by their names."""

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {_shape(value)}" for name, value in self.items())
        return f"<penstock.Batch {{{parts}}}" + (f" {self.info}>" if self.info else ">")


class TupleBatch(tuple[Any, ...], _Told):
    """The tensors of a batch in the order of the outputs."""

    def __repr__(self) -> str:
        parts = ", ".join(map(_shape, self))
        return f"<penstock.TupleBatch ({parts})" + (f" {self.info}>" if self.info else ">")


def register_jax() -> None:
    """Let jax.jit and others take our batches apart; what they make is a plain dict or tuple."""
    import jax
    register = jax.tree_util.register_pytree_node
    with contextlib.suppress(ValueError):  # they are registered already
        register(Batch, _dict_parts, lambda names, values: dict(zip(names, values)))
        register(TupleBatch, lambda batch: (tuple(batch), None), lambda _names, values: tuple(values))
        register(tensors.Ragged, lambda ragged: ((ragged.data, ragged.offsets, ragged.device_offsets), None),
                 lambda _nothing, parts: tensors.Ragged(*parts))


def _dict_parts(batch: Batch) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    return tuple(batch.values()), tuple(batch)


Maker = Callable[["list[Any]", BatchInfo], Any]


def _dict_maker(names: tuple[str, ...]) -> Maker:
    def make(found: list[Any], info: BatchInfo) -> Any:
        batch = Batch(zip(names, found))
        batch.info = info
        return batch
    return make


def _tuple_maker(found: list[Any], info: BatchInfo) -> Any:
    batch = TupleBatch(found)
    batch.info = info
    return batch


class _Made(_Told):
    """The base of dataclasses that are made here, which pickle cannot find by their name."""

    def __reduce__(self) -> Any:
        names = tuple(field.name for field in dataclasses.fields(self))  # type: ignore[arg-type]
        return _unpickle_made, (names, tuple(getattr(self, name) for name in names), self.info)


@functools.lru_cache(maxsize=None)
def _dataclass_of(names: tuple[str, ...]) -> type:
    wrong = [name for name in names if not name.isidentifier() or hasattr(_Made, name)]
    if wrong:
        raise errors.SettingsError(f"form: an output named '{wrong[0]}' cannot be an attribute; name it "
                                   "otherwise in outputs={...}")
    fields: list[tuple[str, Any]] = [(name, Any) for name in names]
    return dataclasses.make_dataclass("Batch", fields, bases=(_Made,), eq=False)


def _unpickle_made(names: tuple[str, ...], values: tuple[Any, ...], info: BatchInfo | None) -> Any:
    batch = _dataclass_of(names)(*values)
    batch.info = info
    return batch


def _dataclass_maker(cls: type, names: tuple[str, ...]) -> Maker:
    fields = {field.name for field in dataclasses.fields(cls) if field.init}
    needs_info = "info" in fields
    if not set(names) <= fields:
        raise errors.SettingsError(f"form: {cls.__name__} has no field for "
                                   + ", ".join(sorted(set(names) - fields)))
    unfilled = [field.name for field in dataclasses.fields(cls)
                if field.init and field.name not in (*names, "info")
                and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING]
    if unfilled:
        raise errors.SettingsError(f"form: {cls.__name__} needs {', '.join(unfilled)}, and no output has that "
                                   "name: give the field a default, or an output of its name")
    if "info" not in fields and not getattr(cls, "__dictoffset__", 0):
        raise errors.SettingsError(f"form: {cls.__name__} has slots and none for what the batch tells of "
                                   "itself: add the field `info: object = None`")

    def make(found: list[Any], info: BatchInfo) -> Any:
        batch = cls(**dict(zip(names, found)), **({"info": info} if needs_info else {}))
        object.__setattr__(batch, "info", info)  # also of frozen ones
        return batch
    return make


def told_by(batch: Any) -> BatchInfo:
    """What a batch tells of itself. TypeError: it is none as it came from a loader."""
    info = batch if isinstance(batch, BatchInfo) else getattr(batch, "info", None)
    if not isinstance(info, BatchInfo):
        raise TypeError(f"a {type(batch).__name__} does not tell where it is from: give the batch as it came "
                        "from the loader, not what was made of it")
    return info


def maker(form: Any, names: tuple[str, ...]) -> Maker:
    """What makes a batch of its tensors and its info.

    form: "dict", "tuple", "dataclass", or a dataclass of yours whose fields are the outputs; its objects get
    an attribute `info`, a BatchInfo.
    """
    if form == "dict":
        return _dict_maker(names)
    if form == "tuple":
        return _tuple_maker
    if form == "dataclass":
        return _dataclass_maker(_dataclass_of(names), names)
    if isinstance(form, type) and dataclasses.is_dataclass(form):
        return _dataclass_maker(form, names)
    raise errors.SettingsError(f"form: is {form!r}; it must be 'dict', 'tuple', 'dataclass' or a dataclass")


def layouts(batch: Any, outputs: Mapping[str, Any], device: tuple[int, int]) -> tuple[tensors.Layout, ...]:
    """What all batches have in common, from one of them."""
    found = []
    for index, (name, output) in enumerate(outputs.items()):
        told = batch.tensors[index]
        shape, strides = tuple(told.shape[:told.n_dims]), tuple(told.strides[:told.n_dims])
        turned = output.layout == "channels_last"
        if turned:
            shape, strides = (tuple(values[i] for i in (0, 3, 1, 2)) for values in (shape, strides))
        ragged = told.kind in (_c.OUTPUT_BYTES, _c.OUTPUT_RAGGED)
        found.append(tensors.Layout(name, told.dtype, shape, strides, _c.lib.pstk_dtype_size(told.dtype),
                                    ragged, not turned, device))
    return tuple(found)
