# SPDX-License-Identifier: Apache-2.0
"""The batches that a loader hands out: tensors in a dict, a tuple or a dataclass, with a record of the samples in them.

Every form has these attributes in addition to its tensors: epoch, position, next_position, index, n_valid, size_index,
sample_ids, data_sets, replacements, crops, record_stream and to. A dataclass of the user's has all of them except `to`
in its attribute `info`. A batch that another library makes of one has the tensors only, except where that library calls
its `to`.
"""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from ctypes import sizeof, string_at
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _c, errors, streams, tensors
from .elsewhere import BATCH_ATTRIBUTES
from .hints import Hints, kind_of, near
from .outputs import RAGGED_KINDS
from .sealed import Sealed

__all__ = ["Batch", "BatchInfo", "Crop", "TupleBatch"]


class Crop(NamedTuple):
    """The part of the decoded image that a row was made of, in pixels. For a resizing operation it is the source of the
    whole resize.

    top, left: negative where a crop pads.
    height, width: size of the part.
    image_height, image_width: size of the decoded image.
    flip, flip_vertical: whether left and right, or top and bottom, changed places.
    """

    top: int
    left: int
    height: int
    width: int
    image_height: int
    image_width: int
    flip: bool
    flip_vertical: bool = False


class ImageOutput(NamedTuple):
    """An image output: the number of its tensor in a batch, and whether the tensor's last axis is that of the channels."""

    number: int
    nhwc: bool


class BatchInfo:
    """The record of a batch: which samples it has. It holds no slot, except on a device, where record_stream needs it.

    epoch: the batch's epoch.
    index: number of the batch in its epoch.
    position: position of its first sample, counted over all ranks.
    next_position: the cursor to save once the batch is used.
    n_valid: number of rows that are samples.
    size_index: index of the batch's size in `sizes` of penstock.image; 0 without sizes.
    """

    __slots__ = ("_crops", "_data_sets", "_ids", "_images", "_loader", "_n_rows", "_share", "_replacements", "epoch", "index",
                 "n_valid", "next_position", "position", "size_index")

    def __init__(self, share: tensors.Share, loader: int, images: Mapping[str, ImageOutput], hold: bool) -> None:
        """Copy the numbers of a leased batch.

        loader: number of its loader, which no other loader has.
        images: the image outputs, by their names.
        hold: whether to keep the share.
        """
        batch = share.batch().contents
        self.epoch: int = batch.epoch
        self.position: int = batch.position
        self.next_position: int = batch.next_position
        self.index: int = batch.index
        self.n_valid: int = batch.n_valid
        self.size_index: int = batch.size_index
        self._images, self._loader, self._n_rows = images, loader, batch.n_rows
        # These are copies, because the slot may be reused before this object goes.
        self._ids = string_at(batch.sample_ids, 8 * self.n_valid)
        self._replacements = string_at(batch.replacement_ids, 8 * self.n_valid) if batch.n_replacements else b""
        self._data_sets = string_at(batch.data_sets, 4 * self.n_valid) if batch.data_sets else b""
        n_crops = batch.n_tensors * batch.n_rows
        self._crops = string_at(batch.crops, sizeof(_c.Crop) * n_crops) if batch.crops else None
        self._share = share if hold else None

    def part(self, begin: int, end: int) -> BatchInfo:
        """Return the record of some valid rows, [begin, end)."""
        info = copy.copy(self)
        info.n_valid = info._n_rows = end - begin
        info._ids, info._replacements = self._ids[8 * begin:8 * end], self._replacements[8 * begin:8 * end]
        info._data_sets = self._data_sets[4 * begin:4 * end]
        if self._crops is not None:
            size = sizeof(_c.Crop)
            info._crops = b"".join(self._crops[at + size * begin:at + size * end]
                                   for at in range(0, len(self._crops), size * self._n_rows))
        return info

    def check_loader(self, loader: int) -> None:
        """Raise SettingsError unless the batch came from the loader with this number."""
        if self._loader != loader:
            raise errors.SettingsError("after: value is a batch of another loader; must be a batch that this loader gave")

    @property
    def shaped(self) -> tuple[int, int]:
        """The two numbers that fix the shapes of the batch: the index of its size, and its rows."""
        return self.size_index, self._n_rows

    @property
    def sample_ids(self) -> list[int]:
        """The ids of the samples in the valid rows. A mixture's ids count in the row's data set, see `data_sets`. A
        replaced bad sample keeps its own id here."""
        return memoryview(self._ids).cast("Q").tolist()

    @property
    def data_sets(self) -> list[int]:
        """The number of each valid row's data set, in the order of penstock.Mixture.paths; 0 without a mixture."""
        return memoryview(self._data_sets).cast("I").tolist() if self._data_sets else [0] * self.n_valid

    @property
    def replacements(self) -> dict[Any, int]:
        """The ids of the samples that replaced bad ones, by the ids of the bad ones; in a mixture by (number of the
        data set, id). Both samples are of one data set."""
        if not self._replacements:
            return {}
        others = memoryview(self._replacements).cast("Q").tolist()
        keys: list[Any] = list(zip(self.data_sets, self.sample_ids)) if self._data_sets else self.sample_ids
        return {bad: other for bad, other in zip(keys, others) if other != _c.NONE}

    @property
    def crops(self) -> dict[str, list[Crop]]:
        """The crop of each valid row of each image output, by the output's name. Raises SettingsError if the loader was
        opened without Observe.report_crops."""
        if self._crops is None:
            raise errors.SettingsError("report_crops: value is False; must be True for batches to have crops "
                                       "(open the loader with observe=penstock.Observe(report_crops=True))")
        size = sizeof(_c.Crop) * self._n_rows
        return {name: [Crop(c.top, c.left, c.height, c.width, c.image_height, c.image_width, bool(c.flip),
                            bool(c.flip_vertical))
                       for c in (_c.Crop * self.n_valid).from_buffer_copy(self._crops, image.number * size)]
                for name, image in self._images.items()}

    def image_is_nhwc(self, key: str | int) -> bool | None:
        """Return whether the channels are the last axis of an image output. key: the output's name, or its number in a
        tuple. None: no image output has this key."""
        for name, image in self._images.items():
            if key == (name if isinstance(key, str) else image.number):
                return image.nhwc
        return None

    def record_stream(self, stream: Any) -> None:
        """Let a further stream use the views of the loader's memory in this batch: see penstock.record_stream. On the
        host, and for copies, it does nothing."""
        if self._share is not None:
            streams.use(self._share.pointer, streams.handle(stream))

    def __reduce__(self) -> Any:
        return _unpickle, (self.epoch, self.position, self.next_position, self.index, self.n_valid,
                           self._images, self._n_rows, self._ids, self._replacements, self._crops, self._data_sets,
                           self.size_index, self._loader)

    def __repr__(self) -> str:
        return f"epoch {self.epoch}, batch {self.index}, {self.n_valid} rows"


def _unpickle(*values: Any) -> BatchInfo:
    info = BatchInfo.__new__(BatchInfo)
    info._share = None
    (info.epoch, info.position, info.next_position, info.index, info.n_valid, info._images, info._n_rows,
     info._ids, info._replacements, info._crops, info._data_sets, info.size_index, info._loader) = values
    return info


class _Form(Hints, Sealed):
    """The attributes that every form of a batch has. `info` is None in a batch that other code made. A user's subclass
    of Batch or TupleBatch may have attributes of its own: see Sealed."""

    _hints = BATCH_ATTRIBUTES
    info: BatchInfo | None = None

    def _may_set(self, name: str) -> bool:
        return name == "info" or super()._may_set(name)

    def _refusal(self, name: str) -> str:
        return "it can only be read" if hasattr(type(self), name) else "there is no such attribute" + near(name, self._parts())

    def _hint(self, name: str) -> str:
        if isinstance(self, dict) and dict.__contains__(self, name):
            return f": tensors go by their names, batch[{name!r}]; form='dataclass' makes attributes of them"
        return super()._hint(name)

    @property
    def _known(self) -> BatchInfo:
        if self.info is None:
            raise AttributeError("only batches as they come from a loader have epoch, position, sample_ids "
                                 "and the like; this one was made from another")
        return self.info

    epoch = property(lambda self: self._known.epoch, doc="The batch's epoch.")
    position = property(lambda self: self._known.position, doc="Position of the first sample, counted over all ranks.")
    next_position = property(lambda self: self._known.next_position, doc="The cursor just after the batch.")
    index = property(lambda self: self._known.index, doc="Number of the batch in its epoch.")
    n_valid = property(lambda self: self._known.n_valid, doc="Number of rows that are samples.")
    size_index = property(lambda self: self._known.size_index, doc="Index of the batch's size in sizes of penstock.image.")
    sample_ids = property(lambda self: self._known.sample_ids, doc=BatchInfo.sample_ids.__doc__)
    data_sets = property(lambda self: self._known.data_sets, doc=BatchInfo.data_sets.__doc__)
    replacements = property(lambda self: self._known.replacements, doc=BatchInfo.replacements.__doc__)
    crops = property(lambda self: self._known.crops, doc=BatchInfo.crops.__doc__)

    def record_stream(self, stream: Any) -> None:
        """Let a further stream use all tensors of the batch: see penstock.record_stream."""
        if self.info is not None:
            self.info.record_stream(stream)
        for value in self._parts().values():
            streams.record_stream(value, stream)

    def to(self, device: Any, non_blocking: bool = False) -> Any:
        """Copy PyTorch's tensors to a device, by their own to(device, non_blocking=...).

        Returns a batch of the same form and names, with the same epoch, sample_ids and the rest; or this batch, if all
        tensors are on the device already. The offsets of a Ragged stay on the host. Values that are not arrays are
        kept. Raises TypeError for arrays of other libraries than PyTorch.
        """
        if type(device).__name__ == "dtype":
            raise TypeError(f"batch.to: takes a device, not the dtype {device}, which labels would get as well: "
                            "convert tensors one by one, batch['image'].to(dtype), or give dtype= to "
                            "penstock.image")
        parts = self._parts()
        moved = {name: _moved(name, value, device, non_blocking) for name, value in parts.items()}
        if all(moved[name] is value for name, value in parts.items()):
            return self
        made = self._made_of(moved)
        made.info = copy.copy(self.info)  # the copy has no share: these tensors are not in the slot
        return made

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        from . import notebook
        return notebook.of_batch(f"penstock.{type(self).__name__}", self._parts(), self.info)

    # Each form has its own two methods.

    def _parts(self) -> dict[str, Any]:
        """Return the tensors by their names, or by their numbers as text."""
        raise NotImplementedError

    def _made_of(self, parts: dict[str, Any]) -> Any:
        """Return a batch of this form with other tensors."""
        raise NotImplementedError


def _moved(name: str, value: Any, device: Any, non_blocking: bool) -> Any:
    if hasattr(value, "to"):
        return value.to(device, non_blocking=non_blocking)
    if not hasattr(value, "shape"):
        return value
    kind = type(value)
    raise TypeError(f"batch.to: tensor '{name}' is a {kind.__module__}.{kind.__qualname__}, which has no "
                    "to(); open the loader with framework='torch', or with device='cuda' for batches that are "
                    "there already (JAX: jax.device_put(batch, device))")


def _shape(value: Any) -> str:
    if isinstance(value, tensors.Ragged):
        return f"ragged {_shape(value.data)} of {tensors.counted_rows(value)}"
    dtype = str(getattr(value, "dtype", "?")).replace("torch.", "")
    return f"{dtype} {list(getattr(value, 'shape', []))}"


class Batch(dict[str, Any], _Form):
    """The tensors of a batch by their names.

    Iterating, and with it unpacking, gives the tensors in the order of the outputs: `for x, y in loader`. Everything
    else works as on a dict, by names: batch["x"], "x" in batch, len, keys(), values(), items(), get, ==, dict(batch),
    {**batch}, f(**batch). copy(), |, pickle, copy.copy and to(device) give batches with the same epoch, sample_ids and
    the rest. Code that iterates over a mapping for its names, such as torch's default_collate or `for name in batch`,
    needs dict(batch) or batch.keys().
    """

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self.values())

    def _may_set(self, name: str) -> bool:
        return name == "info" or (super()._may_set(name) and not dict.__contains__(self, name))

    def _refusal(self, name: str) -> str:
        return super()._refusal(name) if hasattr(type(self), name) and not dict.__contains__(self, name) else \
            f"tensors go by their names (write batch[{name!r}] = ...)"

    def __getitem__(self, name: str) -> Any:
        try:
            return super().__getitem__(name)
        except (KeyError, TypeError):  # an array cannot be hashed: TypeError
            raise KeyError(self._no_tensor(name)) from None

    def _no_tensor(self, name: Any) -> str:
        has = "it has " + ", ".join(map(str, self.keys()))
        if isinstance(name, str):
            return f"batch[{name!r}]: no tensor has this name; {has}{near(name, self.keys())}"
        if isinstance(name, int):
            return f"batch[{name}]: no tensor has a number; {has}; form='tuple' gives batches with numbers"
        return f"batch[...]: {kind_of(name)} is not a name; {has}; iterate over batch.keys() for names"

    def copy(self) -> Batch:
        return copy.copy(self)

    def __or__(self, other: Any) -> Any:
        return self._joined(self, other, other)

    def __ror__(self, other: Any) -> Any:
        return self._joined(other, self, other)

    def _joined(self, left: Any, right: Any, other: Any) -> Any:
        if not isinstance(other, dict):
            return NotImplemented
        made = type(self)({**left, **right})
        made.info = self.info
        return made

    def _parts(self) -> dict[str, Any]:
        return dict(self)

    def _made_of(self, parts: dict[str, Any]) -> Batch:
        return type(self)(parts)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {_shape(value)}" for name, value in self.items())
        return f"<penstock.Batch {{{parts}}}" + (f" {self.info}>" if self.info else ">")


class TupleBatch(tuple[Any, ...], _Form):
    """The tensors of a batch in the order of the outputs, with the attributes of penstock.BatchInfo."""

    index = _Form.index  # number of the batch, as in all forms; a tuple's own method would search for arrays

    def _parts(self) -> dict[str, Any]:
        return {str(i): value for i, value in enumerate(self)}

    def _made_of(self, parts: dict[str, Any]) -> TupleBatch:
        return type(self)(parts.values())

    def __repr__(self) -> str:
        parts = ", ".join(map(_shape, self))
        return f"<penstock.TupleBatch ({parts})" + (f" {self.info}>" if self.info else ">")


# ---- for jax.jit and torch.utils._pytree, which take nested values apart -----------------------------------


class _Node(NamedTuple):
    """A type that jax.tree_util and torch.utils._pytree take apart. key: the kind of keys by which they name its
    values."""

    kind: type
    key: str
    names: Callable[[Any], tuple[Any, ...]]
    values: Callable[[Any], tuple[Any, ...]]
    together: Callable[[Any, Any], Any]  # function of (names, values)


_RAGGED = ("data", "offsets", "device_offsets")
_NODES = (
    _Node(Batch, "dict", lambda batch: tuple(batch.keys()), lambda batch: tuple(batch.values()),
          lambda names, values: Batch(zip(names, values))),
    _Node(TupleBatch, "sequence", lambda batch: tuple(range(len(batch))), tuple,
          lambda _numbers, values: TupleBatch(values)),
    _Node(tensors.Ragged, "attribute", lambda ragged: (*_RAGGED, ragged.list_kind),
          lambda ragged: tuple(getattr(ragged, name) for name in _RAGGED),
          lambda names, values: tensors.Ragged(values[0], values[1], values[2], list_kind=names[len(_RAGGED)])),
)


def _with_keys(node: _Node, keys: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return a function of a value, which returns its parts with their keys, and their names. keys: the framework's
    type of each kind of key."""
    key = keys[node.key]

    def apart(value: Any) -> Any:
        names = node.names(value)
        return [(key(name), part) for name, part in zip(names, node.values(value))], names
    return apart


def register_jax() -> None:
    """Let jax.jit and other functions of JAX take our batches apart. The batches that they make have the tensors only."""
    from jax import tree_util
    keys = {"dict": tree_util.DictKey, "sequence": tree_util.SequenceKey, "attribute": tree_util.GetAttrKey}
    with contextlib.suppress(ValueError):  # ValueError: the types are registered already
        for node in _NODES:
            tree_util.register_pytree_with_keys(node.kind, _with_keys(node, keys), node.together, _apart(node))


def register_torch() -> None:
    """Let torch.utils._pytree take our batches apart, for torch.func and torch.export. The batches that they make have
    the tensors only."""
    from torch.utils import _pytree
    register = getattr(_pytree, "register_pytree_node", None)  # from PyTorch 2.2 on
    if register is None:
        return
    keys = {"dict": getattr(_pytree, "MappingKey", None), "sequence": getattr(_pytree, "SequenceKey", None),
            "attribute": getattr(_pytree, "GetAttrKey", None)}  # from PyTorch 2.3 on
    with contextlib.suppress(ValueError):
        for node in _NODES:
            ways = {"flatten_with_keys_fn": _with_keys(node, keys)} if keys["dict"] else {}
            register(node.kind, _apart(node), _values_first(node.together),
                     serialized_type_name=f"{node.kind.__module__}.{node.kind.__qualname__}",
                     to_dumpable_context=list, from_dumpable_context=tuple, **ways)  # JSON has no tuples


def _apart(node: _Node) -> Callable[[Any], Any]:
    return lambda value: (node.values(value), node.names(value))


def _values_first(together: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda values, names: together(names, values)


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


class _Made(_Form):
    """The base of dataclasses that this module makes. Pickle cannot find these by their name."""

    def _may_set(self, name: str) -> bool:
        """Return whether the name is that of a tensor, or `info`."""
        return name == "info" or name in type(self).__dataclass_fields__  # type: ignore[attr-defined]

    def _parts(self) -> dict[str, Any]:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields}

    def _made_of(self, parts: dict[str, Any]) -> Any:
        return type(self)(**parts)

    def __reduce__(self) -> Any:
        parts = self._parts()
        return _unpickle_made, (tuple(parts), tuple(parts.values()), self.info)


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
        raise errors.SettingsError(f"form: {cls.__name__} has slots and none for the batch's info: add "
                                   "the field `info: object = None`")

    def make(found: list[Any], info: BatchInfo) -> Any:
        batch = cls(**dict(zip(names, found)), **({"info": info} if needs_info else {}))
        object.__setattr__(batch, "info", info)  # also of frozen dataclasses
        return batch
    return make


def info_of(batch: Any) -> BatchInfo:
    """Return the record of a batch. Raises TypeError for a value that did not come from a loader."""
    info = batch if isinstance(batch, BatchInfo) else getattr(batch, "info", None)
    if not isinstance(info, BatchInfo):
        raise TypeError(f"after: value is of type {type(batch).__name__}, without info; must be a batch "
                        "that the loader gave, not a value made from one")
    return info


def maker(form: Any, names: tuple[str, ...]) -> Maker:
    """Return the function that makes a batch of a list of tensors and their BatchInfo.

    form: "dict", "tuple", "dataclass", or a dataclass of the user's whose fields are the outputs. Its objects get an
        attribute `info`, a BatchInfo.
    """
    if form == "dict":
        return _dict_maker(names)
    if form == "tuple":
        return _tuple_maker
    if form == "dataclass":
        return _dataclass_maker(_dataclass_of(names), names)
    if isinstance(form, type) and dataclasses.is_dataclass(form):
        return _dataclass_maker(form, names)
    raise errors.SettingsError(f"form: value is {form!r}; must be 'dict', 'tuple', 'dataclass' or a dataclass")


def layouts(batch: Any, outputs: Mapping[str, Any], device: tuple[int, int]) -> tuple[tensors.Layout, ...]:
    """Return the layouts of the tensors, which all batches of one size have in common. batch: any batch of that size."""
    found = []
    for index, (name, output) in enumerate(outputs.items()):
        given = batch.tensors[index]
        shape, strides = tuple(given.shape[:given.n_dims]), tuple(given.strides[:given.n_dims])
        turned = output.layout == "channels_last"
        if turned:
            shape, strides = (tuple(values[i] for i in (0, 3, 1, 2)) for values in (shape, strides))
        ragged = given.kind in RAGGED_KINDS
        found.append(tensors.Layout(name, given.dtype, shape, strides, _c.lib.pstk_dtype_size(given.dtype),
                                    ragged, not turned, device, output.list_kind))
    return tuple(found)
