# SPDX-License-Identifier: Apache-2.0
"""Images whose size differs from batch to batch: a list of operations for each size.

    penstock.image("jpg", [ops.RandomResizedCrop(224), ops.Normalize()], sizes=[192, 224, 256], every=10)
    penstock.image("jpg", lambda size: [ops.Resize(size * 8 // 7), ops.CenterCrop(size), ops.Normalize()], sizes=[192, 224, 256])
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, SupportsIndex, Union

from . import _c
from .errors import SettingsError
from .ops.lists import operations
from .ops.op import Op

__all__: list[str] = []

Ops = Union[Iterable[Op], Callable[[Any], Iterable[Op]]]

# members of operations that are, or fix, a size in pixels
_SIZED = ("size", "target_size", "height")


def _is_sized(op: Op) -> bool:
    return any(getattr(op, name, None) is not None for name in _SIZED)


def _resized(op: Op, size: Any) -> Op:
    """Return the operation with another size, of one number if it is a square. Its own check refuses wrong values."""
    if isinstance(getattr(op, "size", None), tuple) and isinstance(size, SupportsIndex):
        size = (size, size)
    if hasattr(op, "size"):
        return dataclasses.replace(op, size=size)  # type: ignore[type-var]
    height, width = size if isinstance(size, (tuple, list)) and len(size) == 2 else (size, size)
    return dataclasses.replace(op, height=height, width=width)  # type: ignore[type-var]


def _function_of(ops: Any) -> Callable[[Any], Iterable[Op]]:
    """Return a function of a size, made of a list: the only operation with a size gets it. Raises SettingsError."""
    listed = operations("image.ops", ops)
    sized = [i for i, op in enumerate(listed) if _is_sized(op)]
    if len(sized) != 1 or hasattr(listed[sized[0]], "target_size"):
        names = ", ".join(type(listed[i]).__name__ for i in sized) or "none"
        raise SettingsError(
            f"image.sizes: the operations that have a size are {names}; must be one, which gets those of sizes (give "
            "ops as a function of the size: lambda size: [Resize(size * 8 // 7), CenterCrop(size)])")
    at = sized[0]
    return lambda size: [*listed[:at], _resized(listed[at], size), *listed[at + 1:]]


def _last_sized(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return the last operation that has a size, and those after it; all, if none has one."""
    return ops[max((i for i, op in enumerate(ops) if _is_sized(op)), default=0):]


def _refuse_equal(sizes: tuple[Any, ...], lists: tuple[tuple[Op, ...], ...]) -> None:
    """Raise SettingsError if lists give the same size of images for two sizes."""
    for i, size in enumerate(sizes):
        for other, ops in zip(sizes[:i], lists[:i]):
            if repr(size) != repr(other) and _last_sized(ops) == _last_sized(lists[i]):
                raise SettingsError(f"image.ops: the function makes images of the same size for {other!r} and {size!r}; "
                                    "must make another for each (use its argument: lambda size: [Resize(size), "
                                    "CenterCrop(size)])")


def lists_of(ops: Ops, sizes: Any) -> tuple[tuple[Any, ...], tuple[tuple[Op, ...], ...]]:
    """Return the sizes, and the list of operations of each. ops: a list, or a function of a size. Raises TypeError,
    SettingsError."""
    if isinstance(sizes, (str, bytes, Mapping, Set)) or not isinstance(sizes, Iterable):
        raise TypeError(f"image.sizes: value is {sizes!r}; must be a list of sizes, ints or (height, width)")
    try:
        found = tuple(sizes)
    except TypeError:  # an array of NumPy's without a dimension
        raise TypeError(f"image.sizes: value is {sizes!r}; must be a list of sizes, ints or (height, width)") from None
    if not 1 <= len(found) <= _c.MAX_SIZES:
        raise SettingsError(f"image.sizes: value has {len(found)} sizes; must have from 1 to {_c.MAX_SIZES}")
    make = ops if callable(ops) and not isinstance(ops, Op) else _function_of(ops)
    lists = tuple(operations(f"image.ops({size!r})", make(size)) for size in found)
    _refuse_equal(found, lists)
    return found, lists
