# SPDX-License-Identifier: Apache-2.0
"""Tensors that are views of a slot and hold it: while one of them lives, its batch is leased.

    Share     a reference to a leased batch (pstk_share), released when the object goes
    Tensor    where one tensor of the batch lies, with a Share: speaks DLPack and NumPy's array interface

NumPy arrays keep their Tensor, and with it the Share, as their base. What PyTorch and others take through DLPack has a
reference of its own. References are given up by functions of the library, which the interpreter calls from a capsule,
or PyTorch without any interpreter: on any thread, also at exit, and without a step of Python's in between, at which a
signal's handler might raise.
"""
from __future__ import annotations

import ctypes
import dataclasses
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from ctypes import POINTER, PYFUNCTYPE, Structure, byref, c_char_p, c_int32, c_int64, c_uint8, c_uint16, \
    c_uint64, c_void_p, py_object
from typing import Any, NamedTuple

from . import _c, errors, lists, streams
from .dtypes import DTYPE_NAMES, DTYPES

__all__ = ["Ragged", "Tensor"]

# These functions never wait, so they keep the interpreter's lock. To release it costs more, and if other threads run, a
# whole switch interval.
_quick = ctypes.PyDLL(_c.lib._name, handle=_c.lib._handle)


def _function(name: str) -> Any:
    function = getattr(_quick, name)
    function.restype, function.argtypes = _c.FUNCTIONS[name]
    return function


def _object_function(name: str) -> Any:
    """Return a function of the library whose void * result is a new Python object."""
    function = _function(name)
    function.restype = py_object
    return function


next_quick = _function("pstk_next")  # it is only called with a timeout of 0
_share_batch = _function("pstk_share_batch")
_capsule_share = _object_function("pstk_capsule_share")
_capsule_tensor = _object_function("pstk_capsule_tensor")

# ---- DLPack: https://dmlc.github.io/dlpack/latest/c_api.html, the unversioned structs --------------------

DL_CPU, DL_CUDA = 1, 2
DL_INT = 0


class _DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("n_dims", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


_capsule_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


class Share:
    """A reference to a leased batch. It is released when this object goes.

    pointer: the library's reference, pstk_share.
    stream: on a device: the stream on which the batch was leased.
    """

    __slots__ = ("_capsule", "pointer", "stream")

    def __init__(self, batch: Any, stream: int | None = None) -> None:
        """Take the lease `batch`, a pointer to _c.Batch, and set it to NULL."""
        try:
            self._capsule = _capsule_share(byref(batch), stream, None)
        except RuntimeError:
            self._capsule = _again(_capsule_share, byref(batch), stream)
        self.pointer = c_void_p(_capsule_pointer(self._capsule, b"penstock.share"))
        self.stream = stream

    def batch(self) -> Any:
        """Return the batch, a pointer to _c.Batch, which is valid while this object lives."""
        return _share_batch(self.pointer)


def _again(make: Callable[..., Any], *arguments: Any) -> Any:
    """Repeat a call that failed, and raise the library's error."""
    error = errors.new()
    try:
        return make(*arguments, byref(error))
    except RuntimeError:  # RuntimeError or a subclass may also be the interpreter's own
        if not error.code:
            raise
        raise errors.of(error) from None


class Layout(NamedTuple):
    """The facts about one tensor that all batches have in common.

    shape, strides: in elements, as they are handed out; those of a ragged tensor are in the batch.
    device: DLPack's (type, id).
    """

    name: str
    dtype: int  # enum pstk_dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    ragged: bool
    contiguous: bool  # in C's order; channels_last is not
    device: tuple[int, int]
    list_kind: int = 0  # enum pstk_field_kind of a list field; else 0

    @property
    def is_copied(self) -> bool:
        """Whether batches have copies of the tensor, not views: if it has one number a row, and is on the host. Such
        copies are small, and `labels.append(y)` should hold no slot. On a device a copy would belong to the stream on
        which it was made."""
        return len(self.shape) == 1 and not self.ragged and self.device[0] == DL_CPU


_TYPESTRS = {_c.U8: "|u1", _c.I8: "|i1", _c.U16: "<u2", _c.I16: "<i2", _c.U32: "<u4", _c.I32: "<i4",
             _c.U64: "<u8", _c.I64: "<i8", _c.F16: "<f2", _c.BF16: "<u2", _c.F32: "<f4", _c.F64: "<f8"}


def _capsule_of(tensor: Tensor) -> Any:
    """Return a capsule with a DLManagedTensor, which holds its own reference."""
    try:
        capsule = _capsule_tensor(tensor.share.pointer, tensor.index, None)
    except RuntimeError:
        capsule = _again(_capsule_tensor, tensor.share.pointer, tensor.index)
    if tensor.patched:
        _patch(_capsule_pointer(capsule, b"dltensor"), tensor)
    return capsule


def _patch(pointer: int, tensor: Tensor) -> None:
    """Correct a DLManagedTensor for a part of a tensor, for another order of axes, or for offsets."""
    dl = _DLTensor.from_address(pointer)  # the first member of a DLManagedTensor
    dl.data = tensor.address
    dl.n_dims = len(tensor.shape)
    for i, (n, stride) in enumerate(zip(tensor.shape, tensor.strides)):
        dl.shape[i], dl.strides[i] = n, stride
    if tensor.is_offsets:
        dl.code, dl.bits = DL_INT, 64
    dl.device_type, dl.device_id = tensor.device


class Tensor:
    """One tensor of a batch, in memory of the host or of a device. It holds the batch.

    numpy.asarray, memoryview() (host), torch.from_dlpack, cupy.from_dlpack and similar functions take it without a
    copy, and hold the batch as well.

    shape, strides: in elements.
    dtype: "uint8", "bfloat16", ...
    address: address of the first element.
    """

    __slots__ = ("address", "index", "is_offsets", "layout", "patched", "shape", "share", "strides")

    def __init__(self, share: Share, index: int, layout: Layout, address: int) -> None:
        self.share, self.index, self.layout, self.address = share, index, layout, address
        self.shape, self.strides = layout.shape, layout.strides
        self.patched, self.is_offsets = not layout.contiguous, False

    def cut(self, n: int) -> Tensor:
        """Cut the tensor to its first n rows (a ragged one to elements), and return it."""
        if self.shape[0] != n:
            self.shape = (n, *self.shape[1:])
            self.patched = True
        return self

    @property
    def device(self) -> tuple[int, int]:
        """DLPack's (type, id): (1, 0) is the host, (2, 1) CUDA's device 1."""
        return self.layout.device

    @property
    def dtype(self) -> str:
        return DTYPE_NAMES[self.layout.dtype]

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.layout.itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.layout.itemsize

    def __reduce__(self) -> Any:
        raise TypeError("a penstock.Tensor looks into memory of its loader and cannot be pickled: pickle a "
                        "copy, numpy.array(tensor) or tensor.read(), or open the loader with device=penstock.Device(..., copy=True)")

    def __repr__(self) -> str:
        where = "cpu" if self.device[0] == DL_CPU else f"cuda:{self.device[1]}"
        return f"<penstock.Tensor {list(self.shape)} of {self.dtype} on {where}>"

    # -- DLPack --

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        """Return a DLPack capsule. stream: the consumer's stream, as the protocol defines it. It waits for the batch;
        when the last reference goes, the loader waits for its work before it overwrites the slot. With -1 the library
        does neither. Raises BufferError if a copy is asked for."""
        if copy or (dl_device is not None and tuple(map(int, dl_device)) != self.device):
            raise BufferError("penstock.Tensor: it is a view of a slot and makes no copies; copy the result")
        if self.device[0] != DL_CPU and stream != -1:
            streams.use(self.share.pointer, streams.numbered(stream))
        return _capsule_of(self)

    # -- NumPy's protocol, and the protocol of CUDA libraries --

    def _interface(self) -> dict[str, Any]:
        layout = self.layout
        strides = None
        if not layout.contiguous:
            strides = tuple(s * layout.itemsize for s in self.strides)
        return {"version": 3, "typestr": _TYPESTRS[layout.dtype], "shape": self.shape,
                "data": (self.address, False), "strides": strides}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.layout.device[0] != DL_CPU:
            raise AttributeError("penstock.Tensor: NumPy cannot see the memory of a device; use read()")
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device[0] != DL_CUDA:
            raise AttributeError("penstock.Tensor: it is on the host")
        return {**self._interface(), "stream": streams.numbered(self.share.stream)}

    def record_stream(self, stream: Any) -> None:
        """Let a further stream use this tensor: see penstock.record_stream."""
        if self.device[0] != DL_CPU:
            streams.use(self.share.pointer, streams.handle(stream))

    # -- without any other library --

    def memoryview(self) -> memoryview:
        """Return the bytes of a tensor on the host, in memory order (NHWC for channels_last), without a copy. The
        format is "B" for every dtype; cast() gives numbers. The view and its slices hold the batch. Raises BufferError
        for a tensor on a device."""
        if self.device[0] != DL_CPU:
            raise BufferError("penstock.Tensor: it is on a device; read() copies it to the host")
        buffer = _buffer(self.nbytes).from_address(self.address)
        buffer.owner = self
        return memoryview(buffer).cast("B")

    def __getitem__(self, rows: slice) -> Tensor:
        """Return consecutive rows, as a view. Raises TypeError for another index."""
        if not isinstance(rows, slice):
            raise TypeError("penstock.Tensor: an index must be [begin:end], which gives rows; for more "
                            "use numpy.asarray(t)")
        begin, end, step = rows.indices(self.shape[0])
        if step != 1:
            raise TypeError("penstock.Tensor: [begin:end:step]: step must be 1; for others use numpy.asarray(t)")
        address = self.address + begin * self.strides[0] * self.itemsize
        part = Tensor(self.share, self.index, self.layout, address)
        part.shape = (max(0, end - begin), *self.shape[1:])
        part.patched, part.is_offsets = True, self.is_offsets
        return part

    def tolist(self) -> Any:
        """Return the numbers as lists of lists; a tensor on a device is copied first. Raises TypeError for bfloat16 and
        channels_last."""
        form = DTYPES[self.dtype].format
        if not form or not self.layout.contiguous:
            raise TypeError("penstock.Tensor: make an array of it for that")
        whole = memoryview(self.read())
        cast: Any = whole.cast  # the format is no literal
        return cast(form, self.shape).tolist() if self.nbytes else []

    def read(self, stream: int | None = None) -> bytes:
        """Copy the tensor to the host, in memory order, and return its bytes. It waits for the copy.

        stream: on a device: the copy comes after the work in this stream; None: the stream on which the batch was
            leased.
        """
        if self.device[0] == DL_CPU:
            return self.memoryview().tobytes()
        if self.is_offsets:
            raise BufferError("penstock.Tensor: device_offsets cannot be read; offsets has them on the host")
        stream = getattr(self.share, "stream", None) if stream is None else stream
        batch = self.share.batch()
        begin = self.address - batch.contents.tensors[self.index].data  # the library reads from the first byte on
        size = begin + self.nbytes
        to, error = ctypes.create_string_buffer(max(1, size)), errors.new()
        errors.check(_c.lib.pstk_batch_read(batch, self.index, to, size, stream, byref(error)), error)
        return to.raw[begin:size]


_buffers: dict[int, Any] = {}


def _buffer(size: int) -> Any:
    """Return a ctypes type of `size` bytes, whose objects can have an owner."""
    found = _buffers.get(size)
    if found is None:
        if len(_buffers) >= 64:  # ragged batches have any size, and each type takes a kilobyte
            _buffers.clear()
        found = _buffers[size] = type("Bytes", (c_uint8 * size,), {})
    return found


@dataclasses.dataclass(eq=False, repr=False)
class Ragged:
    """Rows of different lengths, end to end: row i is data[offsets[i]:offsets[i + 1]]. len(), iteration and [i] work on
    rows, which are views of data.

    data: [items] of uint8 for a field of bytes, or [items, shape...] for an array whose first dimension is variable.
    offsets: [B + 1] of int64, on the host.
    device_offsets: the same numbers, where data is.
    list_kind: enum pstk_field_kind of a list field, whose rows are the bytes of lists; else 0.
    """

    data: Any
    offsets: Any
    device_offsets: Any
    list_kind: int = 0

    @property
    def n_rows(self) -> int:
        return int(self.offsets.shape[0]) - 1

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, index: int) -> Any:
        try:
            i = operator.index(index)
        except TypeError:
            raise TypeError(f"ragged[{index!r}]: an index must be a whole number, which gives one row") from None
        i = i + self.n_rows if i < 0 else i
        if not 0 <= i < self.n_rows:
            raise IndexError(f"there is no row {index} in a batch of {self.n_rows}")
        begin, end = _numbers(self.offsets[i:i + 2])
        return self.data[begin:end]

    def __iter__(self) -> Iterator[Any]:
        ends = _numbers(self.offsets)
        return (self.data[a:b] for a, b in zip(ends, ends[1:]))

    def __repr__(self) -> str:
        dtype = str(getattr(self.data, "dtype", "?")).replace("torch.", "")
        return f"<penstock.Ragged {counted_rows(self)}, {dtype} {list(getattr(self.data, 'shape', []))}>"

    def tolist(self) -> list[Any]:
        """Return copies of all rows: bytes if data is of uint8, else lists of numbers. Rows of a list field are lists
        of str, of bytes (also of files), or of arrays of pixels."""
        data = self.data
        if hasattr(data, "cpu"):
            data = data.cpu()
        elif hasattr(data, "get"):
            data = data.get()
        ends = _numbers(self.offsets)
        if str(data.dtype).rpartition(".")[2] != "uint8" or len(data.shape) > 1:
            whole = data.tolist()
        else:
            whole = data.read() if isinstance(data, Tensor) else bytes(memoryview(data.numpy())) \
                if hasattr(data, "numpy") else bytes(data)
        rows = [whole[a:b] for a, b in zip(ends, ends[1:])]
        return [lists.read(self.list_kind, row) for row in rows] if self.list_kind else rows

    def to(self, *args: Any, **keywords: Any) -> Ragged:
        """Move data and device_offsets by PyTorch's to(...); offsets stays on the host. Returns a new Ragged, or this
        one if both stay."""
        data, device_offsets = (part.to(*args, **keywords) for part in (self.data, self.device_offsets))
        if data is self.data and device_offsets is self.device_offsets:
            return self
        return Ragged(data, self.offsets, device_offsets, self.list_kind)

    def record_stream(self, stream: Any) -> None:
        """Let a further stream use data and device_offsets: see penstock.record_stream."""
        streams.record_stream(self.data, stream)
        streams.record_stream(self.device_offsets, stream)


def counted_rows(ragged: Ragged) -> str:
    """Return "4 rows"; "? rows" if other values are in place of the arrays, as after tree_map."""
    shape = getattr(ragged.offsets, "shape", None)
    return f"{shape[0] - 1 if shape else '?'} rows"


def _numbers(offsets: Any) -> list[int]:
    return [int(i) for i in offsets.tolist()]


def ranges(found: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """Yield the addresses, [begin, end), of a batch's tensors on a device."""
    for tensor in found:
        for part in (tensor.data, tensor.device_offsets) if isinstance(tensor, Ragged) else (tensor,):
            yield part.address, part.address + part.nbytes


def find(share: Share, layouts: tuple[Layout, ...], n_valid: int) -> list[Any]:
    """Return the tensors of a batch, cut to its valid rows."""
    batch = share.batch().contents
    found: list[Any] = []
    whole = n_valid == batch.n_rows
    for index, layout in enumerate(layouts):
        given = batch.tensors[index]
        tensor = Tensor(share, index, layout, given.data)
        if layout.ragged:
            found.append(_find_ragged(tensor, given, n_valid, layout.list_kind))
        else:
            found.append(tensor if whole else tensor.cut(n_valid))
    return found


def _find_ragged(tensor: Tensor, given: Any, n_valid: int, list_kind: int) -> Ragged:
    tensor.cut(given.shape[0])
    offsets = _offsets(tensor, given.offsets, n_valid, (DL_CPU, 0))
    if not given.device_offsets:
        return Ragged(tensor, offsets, offsets, list_kind)
    return Ragged(tensor, offsets, _offsets(tensor, given.device_offsets, n_valid, tensor.device), list_kind)


def _offsets(tensor: Tensor, at: Any, n_valid: int, device: tuple[int, int]) -> Tensor:
    layout = Layout(tensor.layout.name, _c.I64, (n_valid + 1,), (1,), 8, False, True, device)
    offsets = Tensor(tensor.share, tensor.index, layout, ctypes.cast(at, c_void_p).value or 0)
    offsets.patched = offsets.is_offsets = True
    return offsets


# ---- tensors of other libraries --------------------------------------------------------------------------

def _to_numpy() -> Callable[[Tensor], Any]:
    import numpy

    try:
        from ml_dtypes import bfloat16  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        bfloat16 = None  # NumPy has no bfloat16; the bits are uint16
    asarray = numpy.asarray

    def convert(tensor: Tensor) -> Any:
        array = asarray(tensor)
        if tensor.layout.dtype == _c.BF16 and bfloat16 is not None:
            return array.view(bfloat16)
        return array
    return convert


def _to_torch() -> Callable[[Tensor], Any]:
    from torch.utils.dlpack import from_dlpack

    def convert(tensor: Tensor) -> Any:
        return from_dlpack(_capsule_of(tensor))
    return convert


def _to_jax() -> Callable[[Tensor], Any]:
    import jax

    def convert(tensor: Tensor) -> Any:
        array = jax.dlpack.from_dlpack(tensor)
        if tensor.device[0] != DL_CPU:
            # XLA's streams are hidden, so nothing reports when the slot is free: hand out a copy.
            array = jax.numpy.array(array, copy=True)
            array.block_until_ready()
        return array
    return convert


def _to_cupy() -> Callable[[Tensor], Any]:
    import cupy  # type: ignore[import-not-found, unused-ignore]
    from_dlpack: Callable[[Tensor], Any] = cupy.from_dlpack
    return from_dlpack


def _to_itself() -> Callable[[Tensor], Any]:
    return lambda tensor: tensor


_CONVERTERS = {"numpy": _to_numpy, "torch": _to_torch, "jax": _to_jax, "cupy": _to_cupy, "dlpack": _to_itself}


def _jax_copy(array: Any) -> Any:
    import jax
    return jax.numpy.array(array, copy=True).block_until_ready()


def _copied(framework: str) -> Callable[[Any], Any]:
    if framework == "torch":
        return lambda tensor: tensor.clone()
    if framework == "jax":
        return _jax_copy
    return lambda array: array.copy(order="K")  # keeps the order of the memory


def converter(framework: str, copy: bool) -> Callable[[Tensor], Any]:
    """Return a function that makes a framework's tensor of a Tensor. copy: True: copies, which hold no batch. Tensors
    with one number a row are copied in any case, except with "dlpack". Raises UnsupportedError, SettingsError."""
    try:
        convert = _CONVERTERS[framework]()
    except ImportError as error:
        raise errors.UnsupportedError(
            f"framework: {framework} is not installed here ({error}): pip install {framework}, or take "
            "another framework") from None
    if framework == "dlpack":
        if copy:
            raise errors.SettingsError("copy: framework='dlpack' hands out views only; use their read()")
        return convert
    duplicate = _copied(framework)
    if copy:
        return lambda tensor: duplicate(convert(tensor))
    return lambda tensor: duplicate(convert(tensor)) if tensor.layout.is_copied else convert(tensor)
