# SPDX-License-Identifier: Apache-2.0
"""Let further streams of a device use a batch, in addition to the stream that took it.

    for batch in loader:
        with torch.cuda.stream(side):
            penstock.record_stream(batch, side)
            statistics(batch["image"])

PyTorch's own Tensor.record_stream has no effect on a view of a loader's memory, which PyTorch's allocator does not own.
"""
from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import byref, c_void_p
from typing import Any

from . import _c, errors
from .hints import kind_of

__all__ = ["record_stream"]

_LEGACY, _PER_THREAD = 1, 2  # cudaStreamLegacy, cudaStreamPerThread


def handle(stream: Any) -> int:
    """Return the cudaStream_t of a PyTorch or CuPy stream, or of an int that is one. Raises TypeError."""
    found = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    if isinstance(found, bool) or not isinstance(found, int):
        raise TypeError(f"stream: value is {stream!r}; must be a PyTorch or CuPy stream, a cudaStream_t as an int, "
                        "or a function that returns one")
    return found


def numbered(stream: int | None) -> int:
    """Return the number of a stream in DLPack and __cuda_array_interface__: 1 for the default stream, never 0."""
    return int(stream or _LEGACY)


def use(share: c_void_p, stream: int) -> None:
    """Let a stream use a share's batch. The stream waits for the batch now. When the last reference goes, the loader
    waits for the stream's work before it overwrites the slot."""
    error = errors.new()
    errors.check(_c.lib.pstk_share_use(share, stream, byref(error)), error)


def current_of_threads(framework: str) -> Any:
    """Return the framework's C function that returns the current stream of the calling thread, or NULL. With it
    the loader also waits for the current stream of the thread that drops a batch's last tensor, because
    programs use a tensor on a side stream and drop it there."""
    none = _c.CurrentStreamFn()
    if framework != "torch":
        return none
    import torch
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 4):
        return none  # before 2.4 its arguments were not fixed
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cuda.so")
    try:  # PyTorch has loaded it; RTLD_NOLOAD loads no new file
        library = ctypes.CDLL(path, os.RTLD_NOLOAD | os.RTLD_NOW)
        return _c.CurrentStreamFn(("aoti_torch_get_current_cuda_stream", library))
    except (OSError, AttributeError):  # raised for a build without CUDA
        return none


def current(framework: str, index: int) -> Callable[[], int | None] | None:
    """Return a function that returns the framework's current stream; None: the framework does not report it."""
    if framework == "torch":
        import torch
        current = torch.cuda.current_stream
        return lambda: int(current(index).cuda_stream)
    if framework == "cupy":
        import cupy
        return lambda: int(cupy.cuda.get_current_stream().ptr)
    return None


class Leases:
    """The newest lease of each slot of a loader. It finds the share of a tensor on a device by the tensor's address.

    A live tensor holds its slot, so the newest lease of that slot is the tensor's, and its share is alive. This is true
    while the loader is open, because until then its slots' memory belongs to no other owner.
    """

    def __init__(self) -> None:
        self._of_slots: dict[int, tuple[c_void_p, list[tuple[int, int]]]] = {}

    def add(self, slot: int, share: c_void_p, ranges: Iterable[tuple[int, int]]) -> None:
        """Record the lease of a slot. ranges: addresses [begin, end) of the batch's tensors on the device."""
        self._of_slots[slot] = share, list(ranges)

    def find(self, address: int) -> c_void_p | None:
        """Return the share that the tensor at this address holds, or None."""
        for share, ranges in list(self._of_slots.values()):
            if any(begin <= address < end for begin, end in ranges):
                return share
        return None


# Leases of the open loaders on devices, by their id. Each entry is added or removed in one step, by any thread.
_open: dict[int, Leases] = {}


def begin(leases: Leases) -> None:
    """Begin to find the tensors of a loader."""
    _open[id(leases)] = leases


def end(leases: Leases) -> None:
    """Stop finding the tensors of a loader. Call it before the slots are freed."""
    _open.pop(id(leases), None)


def _share_at(address: int) -> c_void_p | None:
    return next((found for leases in list(_open.values()) if (found := leases.find(address))), None)


def record_stream(what: Any, stream: Any) -> None:
    """Let a further stream use tensors. When the last tensor of their batch goes, the loader waits for the work that
    the stream then has, before it overwrites the memory.

    As with PyTorch's Tensor.record_stream, you may call it before you give the stream its work. The stream waits for
    the batch, and must live as long as the tensors.

    what: a tensor or a penstock.Ragged of a loader, also a view of one; a batch of any form; or a dict, list, tuple or
        dataclass of these. For tensors in PyTorch's memory it calls PyTorch's record_stream. For tensors on the host it
        does nothing.
    stream: a PyTorch or CuPy stream, or a cudaStream_t as an int.

    A batch takes up to 64 such streams. If you have more, let one of those wait for the work of the others (PyTorch:
    recorded.wait_stream(other)) while you hold the batch; the 65th raises SettingsError.

    Raises TypeError for other values, and UnsupportedError for a tensor on a device that neither an open loader nor
    PyTorch owns.
    """
    if hasattr(what, "is_cuda"):
        if what.is_cuda:
            _record_torch(what, stream)
    elif hasattr(what, "record_stream"):  # a batch, Ragged or Tensor of penstock
        what.record_stream(stream)
    elif isinstance(what, (Mapping, list, tuple)) or dataclasses.is_dataclass(what):
        for part in _parts(what):
            record_stream(part, stream)
    elif hasattr(what, "__cuda_array_interface__"):
        _record_array(what, stream)
    elif not hasattr(what, "shape"):
        raise TypeError(f"record_stream: value is {kind_of(what)}; must be a tensor or a batch")


def _parts(what: Any) -> Iterator[Any]:
    """Yield the members that are tensors, or that hold some."""
    members: Iterable[Any] = what.values() if isinstance(what, Mapping) else what \
        if isinstance(what, (list, tuple)) else (getattr(what, f.name) for f in dataclasses.fields(what))
    return (m for m in members if hasattr(m, "shape") or hasattr(m, "record_stream")
            or isinstance(m, (Mapping, list, tuple)))


def _record_torch(tensor: Any, stream: Any) -> None:
    share = _share_at(tensor.data_ptr())
    if share is not None:
        use(share, handle(stream))
        return
    if not hasattr(stream, "cuda_stream"):
        import torch
        number = handle(stream)
        stream = torch.cuda.ExternalStream(number, tensor.device) if number > _PER_THREAD else \
            torch.cuda.default_stream(tensor.device)
    tensor.record_stream(stream)


def _record_array(array: Any, stream: Any) -> None:
    share = _share_at(array.__cuda_array_interface__["data"][0])
    if share is None:
        kind = type(array)
        raise errors.UnsupportedError(
            f"record_stream: value is a {kind.__module__}.{kind.__qualname__}; must be a tensor of an open loader "
            "or of PyTorch (keep this one until the stream has used it)")
    use(share, handle(stream))
