# SPDX-License-Identifier: Apache-2.0
"""Tensors that look into a slot and own it: while one of them lives, its batch is leased.

    Share     a reference to a leased batch (pstk_share), given up when the object goes
    Tensor    where one tensor of the batch lies, with a Share: speaks DLPack and NumPy's array interface
    Transit   a DLManagedTensor on its way to PyTorch, which from then on owns it

NumPy arrays keep their Tensor, and with it the Share, as their base. What PyTorch and others take through
DLPack is deleted by a function of the library, which needs no interpreter: on any thread, also at exit.
"""
from __future__ import annotations

import ctypes
import math
import sys
import weakref
from collections.abc import Callable
from ctypes import POINTER, PYFUNCTYPE, Structure, byref, c_char_p, c_int, c_int32, c_int64, c_uint8, \
    c_uint16, c_uint64, c_void_p, py_object
from typing import Any, NamedTuple

from . import _c, errors

__all__ = ["Ragged", "Tensor"]

# Calls that never wait keep the interpreter's lock: giving it up costs more, and where other threads run,
# a whole switch interval.
_quick = ctypes.PyDLL(_c.lib._name, handle=_c.lib._handle)


def _function(name: str) -> Any:
    function = getattr(_quick, name)
    function.restype, function.argtypes = _c.FUNCTIONS[name]
    return function


share_open = _function("pstk_share_open")
next_quick = _function("pstk_next")  # only with no time to wait
_share_batch = _function("pstk_share_batch")
_share_tensor = _function("pstk_share_tensor")
_share_unref = _function("pstk_share_unref")

# ---- DLPack: https://dmlc.github.io/dlpack/latest/c_api.html, the unversioned structs --------------------

DL_CPU, DL_CUDA = 1, 2
DL_INT = 0


class _DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("n_dims", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _DLManagedTensor(Structure):
    _fields_ = [("tensor", _DLTensor), ("manager", c_void_p), ("deleter", PYFUNCTYPE(None, c_void_p))]


_MANAGED = POINTER(_DLManagedTensor)
_NAME = b"dltensor"

_capsule_new = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_capsule_is_valid = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
# For a capsule that is being deleted, which no new reference may be made to.
_dying_is_valid = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_dying_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _delete_dying(capsule: int, is_valid: Any = _dying_is_valid, pointer_of: Any = _dying_pointer,
                  managed: Any = _MANAGED, cast: Any = ctypes.cast, name: bytes = _NAME) -> None:
    """Delete what nobody took out of a capsule. Module variables are gone at exit, so it asks for none."""
    if is_valid(capsule, name):
        pointer = pointer_of(capsule, name)
        cast(pointer, managed).contents.deleter(pointer)


_capsule_delete = PYFUNCTYPE(None, c_void_p)(_delete_dying)
_CAPSULE_DELETE = ctypes.cast(_capsule_delete, c_void_p)
# A capsule may outlive this module.
ctypes.pythonapi.Py_IncRef(py_object(_capsule_delete))


class _Finalizer(weakref.ref):  # type: ignore[type-arg]
    """Calls a C function with `_as_parameter_` when its object goes: without a step of the interpreter's, at
    which a signal's handler might raise, as it might in __del__."""

    _as_parameter_: Any = byref(c_void_p())  # until it has its own: nothing to give up


# Finalizers that still have to run, by id: garbage together with its finalizer would be collected without a
# call. Never freed itself, for tensors that die later than this module.
_finalizers: dict[int, _Finalizer] = {}
ctypes.pythonapi.Py_IncRef(py_object(_finalizers))
_n_finalizers_kept = 64  # sweep when there are as many


def _sweep() -> None:
    """Forget the finalizers that have run."""
    global _n_finalizers_kept
    for key, finalizer in list(_finalizers.items()):
        if finalizer() is None:
            _finalizers.pop(key, None)
    _n_finalizers_kept = max(64, 2 * len(_finalizers))


class Share:
    """A reference to a leased batch. Whatever call fills `pointer`, it is given up when this object goes.

    stream: of a device: the one that the batch was leased on.
    """

    __slots__ = ("__weakref__", "pointer", "stream")

    def __init__(self, stream: int | None = None, on_device: bool = False) -> None:
        self.pointer, self.stream = c_void_p(), stream
        # On a device, giving back the last batch of a closed loader waits: not with the interpreter's lock.
        finalizer = _Finalizer(self, _c.lib.pstk_share_unref if on_device else _share_unref)
        finalizer._as_parameter_ = byref(self.pointer)
        if len(_finalizers) >= _n_finalizers_kept:
            _sweep()
        _finalizers[id(finalizer)] = finalizer

    def batch(self) -> Any:
        """The batch (a pointer to _c.Batch), while this object lives."""
        return _share_batch(self.pointer)


class Layout(NamedTuple):
    """What all batches have in common of one tensor. shape and strides (elements) are as handed out; those
    of ragged ones are in the batch. device: DLPack's (type, id)."""

    name: str
    dtype: int  # enum pstk_dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    ragged: bool
    contiguous: bool  # as in C; channels_last is not
    device: tuple[int, int]


_TYPESTRS = {_c.U8: "|u1", _c.I8: "|i1", _c.U16: "<u2", _c.I16: "<i2", _c.U32: "<u4", _c.I32: "<i4",
             _c.U64: "<u8", _c.I64: "<i8", _c.F16: "<f2", _c.BF16: "<u2", _c.F32: "<f4", _c.F64: "<f8"}


def _fill(pointer: c_void_p, tensor: Tensor) -> None:
    """Make a DLManagedTensor, which holds a reference of its own."""
    code = _share_tensor(tensor.share.pointer, tensor.index, byref(pointer), None)
    if code < 0:
        raise errors.of(errors.new(), code)
    if tensor.patched:
        _patch(pointer, tensor)


def _patch(pointer: c_void_p, tensor: Tensor) -> None:
    """Where not the whole tensor is meant, or not in its own order, or the offsets beside it."""
    dl = ctypes.cast(pointer, _MANAGED).contents.tensor
    dl.data = tensor.address
    dl.n_dims = len(tensor.shape)
    for i, (n, stride) in enumerate(zip(tensor.shape, tensor.strides)):
        dl.shape[i], dl.strides[i] = n, stride
    if tensor.is_offsets:
        dl.code, dl.bits = DL_INT, 64
    dl.device_type, dl.device_id = tensor.device


class _Parcel:
    """One DLManagedTensor on its way: not there yet (cell is NULL), ours, taken (its capsule has another
    name), or freed by us (box is empty)."""

    __slots__ = ("box", "capsule", "cell")

    def __init__(self) -> None:
        self.cell = c_void_p()
        self.box: list[Any] = [None, self.cell]
        self.capsule: Any = None


class Transit:
    """Hands DLManagedTensors to who takes them out of a capsule (and renames that); they are ours until then.

    An exception on the way, a signal's too, leaves the parcel here; the next use, or sweep, frees it. No step
    of this can be repeated or left half done, wherever a signal strikes. One thread at a time.
    """

    __slots__ = ("_parcel",)

    def __init__(self) -> None:
        self._parcel = _Parcel()

    def hand(self, tensor: Tensor, taker: Callable[[Any], Any]) -> Any:
        """What `taker` makes of a capsule with the tensor."""
        self.sweep()
        self._parcel = parcel = _Parcel()
        _fill(parcel.cell, tensor)
        parcel.capsule = _capsule_new(parcel.cell, _NAME, None)
        return taker(parcel.capsule)

    def sweep(self) -> None:
        """Free what nobody took."""
        parcel = self._parcel
        ours = parcel.capsule is None or _capsule_is_valid(parcel.capsule, _NAME)
        if parcel.cell and parcel.box and ours:
            deleter = ctypes.cast(parcel.cell, _MANAGED).contents.deleter
            # Taken out of the box and freed in one step of the interpreter's, between two looks at signals.
            list(map(deleter, iter(parcel.box.pop, None)))


class Tensor:
    """Where one tensor of a batch lies, in memory of the host or of a device. It holds the batch.

    shape, strides: in elements. dtype: "uint8", "bfloat16", ... address: of the first element.
    numpy.asarray, memoryview() (host), torch.from_dlpack, cupy.from_dlpack and the like take it without a
    copy, and hold the batch as well.
    """

    __slots__ = ("address", "index", "is_offsets", "layout", "patched", "shape", "share", "strides")

    def __init__(self, share: Share, index: int, layout: Layout, address: int) -> None:
        self.share, self.index, self.layout, self.address = share, index, layout, address
        self.shape, self.strides = layout.shape, layout.strides
        self.patched, self.is_offsets = not layout.contiguous, False

    def cut(self, n: int) -> Tensor:
        """The first n rows (of a ragged one: elements)."""
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
        from .outputs import DTYPE_NAMES
        return DTYPE_NAMES[self.layout.dtype]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.layout.itemsize

    def __repr__(self) -> str:
        where = "cpu" if self.device[0] == DL_CPU else f"cuda:{self.device[1]}"
        return f"<penstock.Tensor {list(self.shape)} of {self.dtype} on {where}>"

    # -- DLPack --

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        """A capsule. stream: the consumer's, as the protocol has it; it is made to wait for the batch."""
        if copy or (dl_device is not None and tuple(map(int, dl_device)) != self.device):
            raise BufferError("penstock.Tensor: it looks into a slot and makes no copies; copy what you get")
        if self.device[0] != DL_CPU and stream not in (None, -1):
            error = errors.new()
            code = _c.lib.pstk_batch_wait(self.share.batch(), int(stream), byref(error))
            errors.check(code, error)
        pointer = c_void_p()
        _fill(pointer, self)
        return _capsule_new(pointer, _NAME, _CAPSULE_DELETE)

    # -- NumPy's protocol, and that of CUDA libraries --

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
        return self._interface()

    # -- without any other library --

    def memoryview(self) -> memoryview:
        """The bytes of a tensor on the host, in memory order, without a copy."""
        if self.device[0] != DL_CPU:
            raise BufferError("penstock.Tensor: it is on a device; read() copies it to the host")
        buffer = _buffer(self.nbytes).from_address(self.address)
        buffer.owner = self
        return memoryview(buffer).cast("B")

    def read(self, stream: int | None = None) -> bytes:
        """Copy to the host, in memory order; waits for it. stream: of a device: the copy comes behind what is
        in it; None is the stream that the batch was taken on."""
        if self.device[0] == DL_CPU:
            return self.memoryview().tobytes()
        if self.is_offsets:
            raise BufferError("penstock.Tensor: device_offsets cannot be read; offsets has them on the host")
        stream = getattr(self.share, "stream", None) if stream is None else stream
        to, error = ctypes.create_string_buffer(max(1, self.nbytes)), errors.new()
        code = _c.lib.pstk_batch_read(self.share.batch(), self.index, to, self.nbytes, stream, byref(error))
        errors.check(code, error)
        return to.raw[:self.nbytes]


_buffers: dict[int, Any] = {}


def _buffer(size: int) -> Any:
    """A ctypes type of `size` bytes whose objects can have an owner."""
    if size not in _buffers:
        if len(_buffers) >= 64:  # ragged batches have any size, and each type takes a kilobyte
            _buffers.clear()
        _buffers[size] = type("Bytes", (c_uint8 * size,), {})
    return _buffers[size]


class Ragged(NamedTuple):
    """Rows of different lengths: row i is data[offsets[i]:offsets[i + 1]].

    data: bytes end to end, [bytes] of uint8. offsets: [B + 1] of int64, on the host. device_offsets: the
    same where data is.
    """

    data: Any
    offsets: Any
    device_offsets: Any

    @property
    def n_rows(self) -> int:
        return int(self.offsets.shape[0]) - 1

    def row(self, i: int) -> Any:
        """Row i, a view of data. Negative numbers count from the end."""
        i = i + self.n_rows if i < 0 else i
        if not 0 <= i < self.n_rows:
            raise IndexError(f"there is no row {i} in a batch of {self.n_rows}")
        return self.data[int(self.offsets[i]):int(self.offsets[i + 1])]

    def tolist(self) -> list[bytes]:
        """Copies of all rows, as bytes."""
        data = self.data
        if hasattr(data, "cpu"):
            data = data.cpu().numpy()
        elif hasattr(data, "get"):
            data = data.get()
        whole = data.read() if isinstance(data, Tensor) else bytes(data)
        ends = _numbers(self.offsets)
        return [whole[a:b] for a, b in zip(ends, ends[1:])]


def _numbers(offsets: Any) -> list[int]:
    if isinstance(offsets, Tensor):
        return list(offsets.memoryview().cast("q"))
    return [int(i) for i in offsets.tolist()]


def find(share: Share, layouts: tuple[Layout, ...], n_valid: int) -> list[Any]:
    """The tensors of a batch, cut to its valid rows."""
    batch = share.batch().contents
    found: list[Any] = []
    whole = n_valid == batch.n_rows
    for index, layout in enumerate(layouts):
        told = batch.tensors[index]
        tensor = Tensor(share, index, layout, told.data)
        if layout.ragged:
            found.append(_find_ragged(tensor, told, n_valid))
        else:
            found.append(tensor if whole else tensor.cut(n_valid))
    return found


def _find_ragged(tensor: Tensor, told: Any, n_valid: int) -> Ragged:
    tensor.cut(told.size)
    offsets = _offsets(tensor, told.offsets, n_valid, (DL_CPU, 0))
    if not told.device_offsets:
        return Ragged(tensor, offsets, offsets)
    return Ragged(tensor, offsets, _offsets(tensor, told.device_offsets, n_valid, tensor.device))


def _offsets(tensor: Tensor, at: Any, n_valid: int, device: tuple[int, int]) -> Tensor:
    layout = Layout(tensor.layout.name, _c.I64, (n_valid + 1,), (1,), 8, False, True, device)
    offsets = Tensor(tensor.share, tensor.index, layout, ctypes.cast(at, c_void_p).value or 0)
    offsets.patched = offsets.is_offsets = True
    return offsets


# ---- to the libraries that compute -------------------------------------------------------------------------

FRAMEWORKS = ("auto", "torch", "numpy", "jax", "cupy", "dlpack")


def _to_numpy(_transit: Transit) -> Callable[[Tensor], Any]:
    import numpy

    try:
        from ml_dtypes import bfloat16  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        bfloat16 = None  # NumPy has none of its own: the bits, as uint16
    asarray = numpy.asarray

    def convert(tensor: Tensor) -> Any:
        array = asarray(tensor)
        if tensor.layout.dtype == _c.BF16 and bfloat16 is not None:
            return array.view(bfloat16)
        return array
    return convert


def _to_torch(transit: Transit) -> Callable[[Tensor], Any]:
    from torch.utils.dlpack import from_dlpack

    def convert(tensor: Tensor) -> Any:
        return transit.hand(tensor, from_dlpack)
    return convert


def _to_jax(_transit: Transit) -> Callable[[Tensor], Any]:
    import jax

    def convert(tensor: Tensor) -> Any:
        array = jax.dlpack.from_dlpack(tensor)
        if tensor.device[0] != DL_CPU:
            # XLA's streams are not ours to see, so nothing says when the slot is free: hand out a copy.
            array = jax.numpy.array(array, copy=True)
            array.block_until_ready()
        return array
    return convert


def _to_cupy(_transit: Transit) -> Callable[[Tensor], Any]:
    import cupy  # type: ignore[import-not-found, unused-ignore]
    from_dlpack: Callable[[Tensor], Any] = cupy.from_dlpack
    return from_dlpack


def _to_itself(_transit: Transit) -> Callable[[Tensor], Any]:
    return lambda tensor: tensor


_CONVERTERS = {"numpy": _to_numpy, "torch": _to_torch, "jax": _to_jax, "cupy": _to_cupy, "dlpack": _to_itself}


def _copied(framework: str) -> Callable[[Any], Any]:
    if framework == "torch":
        return lambda tensor: tensor.clone()
    if framework == "jax":
        import jax
        return lambda array: jax.numpy.array(array, copy=True).block_until_ready()
    return lambda array: array.copy(order="K")  # in the order that its memory has


def _importable(name: str) -> bool:
    from importlib.util import find_spec
    return name in sys.modules or find_spec(name) is not None


def choose(framework: str, on_device: bool) -> str:
    """The framework that "auto" means: PyTorch where it is imported, else NumPy, and on a device CuPy or JAX
    where they are; our own Tensor where there is nothing else."""
    if framework not in FRAMEWORKS:
        raise errors.SettingsError(f"framework: is {framework!r}; it must be one of {', '.join(FRAMEWORKS)}")
    if framework == "auto":
        if "torch" in sys.modules:
            return "torch"
        if on_device:
            return next((name for name in ("cupy", "jax") if name in sys.modules), "dlpack")
        return "numpy" if _importable("numpy") else "dlpack"
    if framework == "numpy" and on_device:
        raise errors.SettingsError(
            "framework: NumPy cannot see the memory of a device; take torch, cupy or jax, or device='cpu'")
    return framework


def converter(framework: str, copy: bool, transit: Transit) -> Callable[[Tensor], Any]:
    """What makes a framework's tensors of ours. copy: tensors of their own, which hold no batch. transit:
    used for it; to be swept when nothing is converted any more."""
    try:
        convert = _CONVERTERS[framework](transit)
    except ImportError as error:
        raise errors.UnsupportedError(
            f"framework: {framework} is not installed here ({error}): pip install {framework}, or take "
            "another framework") from None
    if not copy:
        return convert
    if framework == "dlpack":
        raise errors.SettingsError("copy: framework='dlpack' hands out views only; use their read()")
    duplicate = _copied(framework)
    return lambda tensor: duplicate(convert(tensor))
