# SPDX-License-Identifier: Apache-2.0
"""Streams of a device that use a batch besides the one that it was taken on.

    for batch in loader:
        with torch.cuda.stream(side):
            penstock.record_stream(batch, side)
            statistics(batch["image"])

PyTorch's own Tensor.record_stream has no effect on a tensor that looks into a loader's memory: that memory is
not of PyTorch's allocator.
"""
from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from ctypes import byref, c_void_p
from typing import Any

from . import _c, errors

__all__ = ["record_stream"]

_LEGACY, _PER_THREAD = 1, 2  # cudaStreamLegacy, cudaStreamPerThread


def handle(stream: Any) -> int:
    """The cudaStream_t of a stream of PyTorch's or CuPy's, or an int that is one."""
    found = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
    if isinstance(found, bool) or not isinstance(found, int):
        raise TypeError(f"stream: value is {stream!r}; must be a stream of PyTorch's or CuPy's, a cudaStream_t as "
                        "an int, or a function that returns one")
    return found


def numbered(stream: int | None) -> int:
    """A stream as DLPack and __cuda_array_interface__ number it: the default stream is 1, and 0 is none."""
    return int(stream or _LEGACY)


def use(share: c_void_p, stream: int) -> None:
    """Let a stream use a share's batch: it waits for the batch now, and what is in it when the last reference
    goes ends before the slot is overwritten."""
    error = errors.new()
    errors.check(_c.lib.pstk_share_use(share, stream, byref(error)), error)


def current_of_threads(framework: str) -> Any:
    """The C function by which the framework names the current stream of the calling thread, without Python;
    or one that is NULL. So the loader also waits for the current stream of the thread that drops a batch's
    last tensor: programs use a tensor on a side stream and drop it there."""
    none = _c.CurrentStreamFn()
    if framework != "torch":
        return none
    import torch
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 4):
        return none  # in the C interface of earlier ones it may have had other arguments
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cuda.so")
    try:  # it is loaded already: nothing new comes in
        library = ctypes.CDLL(path, os.RTLD_NOLOAD | os.RTLD_NOW)
        return _c.CurrentStreamFn(("aoti_torch_get_current_cuda_stream", library))
    except (OSError, AttributeError):  # a build without CUDA
        return none


class Leases:
    """Which share a tensor on a device is of, by its address: the newest lease of each slot of a loader.

    A tensor that lives holds its slot, so the newest lease of that slot is the tensor's, and its share lives.
    This is true while the loader is open: until then nobody else gets the slots' memory.
    """

    def __init__(self) -> None:
        self._of_slots: dict[int, tuple[c_void_p, list[tuple[int, int]]]] = {}

    def add(self, slot: int, share: c_void_p, ranges: Iterable[tuple[int, int]]) -> None:
        """ranges: of addresses, [begin, end), of the batch's tensors on the device."""
        self._of_slots[slot] = share, list(ranges)

    def find(self, address: int) -> c_void_p | None:
        """The share that the tensor at this address holds."""
        for share, ranges in list(self._of_slots.values()):
            if any(begin <= address < end for begin, end in ranges):
                return share
        return None


# Those of open loaders on devices, by their id: an entry comes and goes in one step, on any thread.
_open: dict[int, Leases] = {}


def begin(leases: Leases) -> None:
    """Find tensors of this loader from now on."""
    _open[id(leases)] = leases


def end(leases: Leases) -> None:
    """Find none any more; before the slots are freed."""
    _open.pop(id(leases), None)


def _share_at(address: int) -> c_void_p | None:
    return next((found for leases in list(_open.values()) if (found := leases.find(address))), None)


def record_stream(what: Any, stream: Any) -> None:
    """Let a further stream use tensors: the loader overwrites their memory only after what is in the stream
    when the last tensor of their batch goes.

    As PyTorch's Tensor.record_stream, it may be called before the stream is given its work. The stream waits
    for the batch, and must live as long as the tensors.

    what: a tensor or a penstock.Ragged of a loader, also a view of one; a batch of any form; or a dict, list,
    tuple or dataclass of these. PyTorch's own tensors get PyTorch's record_stream. Tensors on the host need
    nothing. stream: of PyTorch or CuPy, or a cudaStream_t as an int.
    TypeError: not a tensor. UnsupportedError: on a device, but neither an open loader's nor PyTorch's.
    """
    if hasattr(what, "is_cuda"):
        if what.is_cuda:
            _record_torch(what, stream)
    elif hasattr(what, "record_stream"):  # ours
        what.record_stream(stream)
    elif isinstance(what, (Mapping, list, tuple)) or dataclasses.is_dataclass(what):
        for part in _parts(what):
            record_stream(part, stream)
    elif hasattr(what, "__cuda_array_interface__"):
        _record_array(what, stream)
    elif not hasattr(what, "shape"):
        raise TypeError(f"record_stream: a {type(what).__name__} is neither a tensor nor a batch")


def _parts(what: Any) -> Iterator[Any]:
    """The members that are tensors, or have some."""
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
            f"record_stream: this {kind.__module__}.{kind.__qualname__} is not a tensor of an open loader, "
            "and its library has no record_stream: keep it until its use has ended")
    use(share, handle(stream))
