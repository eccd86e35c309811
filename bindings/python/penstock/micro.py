# SPDX-License-Identifier: Apache-2.0
"""Batches in parts, for the accumulation of gradients. A part has consecutive rows, and is a view of the batch's slot."""
from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable
from typing import Any

from . import batch as batches, tensors
from .errors import SettingsError

__all__ = ["MicroBatches"]


class MicroBatches(tuple[Any, ...]):
    """The parts of one batch, in the order of its rows: a tuple.

    A part has the form of the loader's batches. Its `n_valid`, `sample_ids`, `data_sets`, `replacements` and `crops`
    are those of its rows; its other attributes are those of the whole batch. The parts share one slot, which goes back
    to the loader with the last tensor of the last part.

    info: the penstock.BatchInfo of the whole batch.
    n_valid: number of valid rows of the whole batch.
    """

    info: batches.BatchInfo

    @property
    def n_valid(self) -> int:
        return self.info.n_valid

    def __repr__(self) -> str:
        return f"<penstock.MicroBatches of {', '.join(str(batches.info_of(part).n_valid) for part in self)} rows, {self.info}>"


def number(n_parts: Any) -> int:
    """Return a number of parts. Raises TypeError and SettingsError."""
    try:
        found = operator.index(n_parts)
    except TypeError:
        raise TypeError(f"micro_batches.n_parts: value is {n_parts!r}; must be a whole number") from None
    if found < 1:
        raise SettingsError(f"micro_batches.n_parts: value is {found}; must be at least 1")
    return found


def shifting(framework: str, index: int) -> Callable[[Any, int, int | None], Any] | None:
    """Return a function that subtracts a number from a framework's array: (array, number, stream that a batch on a
    device was leased on). None: the framework's arrays cannot compute."""
    if framework == "dlpack":
        return None
    if framework != "torch":
        return lambda array, first, _stream: array - first
    import torch

    def shift(array: Any, first: int, stream: int | None) -> Any:
        on = contextlib.nullcontext()
        if array.is_cuda and stream != torch.cuda.current_stream(index).cuda_stream:
            on = torch.cuda.stream(torch.cuda.ExternalStream(stream or 0, device=index))
        with on:
            return array - first
    return shift


class Splitter:
    """The maker of the parts of batches.

    converted: function that makes a framework's array of a tensor.
    shift: result of `shifting`.
    make: function that makes a batch of arrays and its info.
    """

    def __init__(self, converted: Callable[[Any], Any], shift: Callable[[Any, int, int | None], Any] | None,
                 make: Callable[[list[Any], batches.BatchInfo], Any]) -> None:
        self._converted, self._shift, self._make = converted, shift, make

    def split(self, found: Iterable[Any], info: batches.BatchInfo, n_parts: int, stream: int | None) -> MicroBatches:
        """Return the parts of a batch: the rows [n * i // n_parts, n * (i + 1) // n_parts) of its n valid rows."""
        edges = [info.n_valid * i // n_parts for i in range(n_parts + 1)]
        columns = [self._rows(tensor, edges, stream) for tensor in found]
        parts = MicroBatches(self._make([column[i] for column in columns], info.part(edges[i], edges[i + 1]))
                             for i in range(n_parts))
        parts.info = info
        return parts

    def _rows(self, tensor: Any, edges: list[int], stream: int | None) -> list[Any]:
        """Return a tensor in parts. edges: the first row of each part, and the number of rows."""
        spans = list(zip(edges, edges[1:]))
        if not isinstance(tensor, tensors.Ragged):
            return [self._converted(tensor[begin:end]) for begin, end in spans]
        ends = tensor.offsets.tolist()
        return [self._ragged(tensor, begin, end, ends, stream) for begin, end in spans]

    def _ragged(self, tensor: tensors.Ragged, begin: int, end: int, ends: list[int], stream: int | None) -> tensors.Ragged:
        first, data = ends[begin], tensor.data
        if self._shift is None:
            first = 0
        else:
            data = data[first:ends[end]]
        offsets = self._offsets(tensor.offsets[begin:end + 1], first, stream)
        device_offsets = offsets
        if tensor.device_offsets is not tensor.offsets:
            device_offsets = self._offsets(tensor.device_offsets[begin:end + 1], first, stream)
        return tensors.Ragged(self._converted(data), offsets, device_offsets, tensor.list_kind)

    def _offsets(self, tensor: Any, first: int, stream: int | None) -> Any:
        array = self._converted(tensor)
        return self._shift(array, first, stream) if first and self._shift is not None else array
