# SPDX-License-Identifier: Apache-2.0
"""The base of all operations, and checks of arguments that several have."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Optional, SupportsIndex, Union

from .. import _c
from ..arguments import is_bool, numbers
from ..sealed import Sealed

__all__ = ["MOST", "Op", "Size", "check_antialias", "floats", "pixels", "size_of"]

Size = Union[SupportsIndex, Sequence[SupportsIndex]]
MOST = 2**32 - 1  # the width and height of the library are uint32_t


def pixels(op: str, value: SupportsIndex) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or is_bool(value):
        raise TypeError(f"{op}.size: value is {value!r}; must be whole numbers of pixels")
    if not 1 <= number <= MOST:
        raise ValueError(f"{op}.size: value is {number}; must be at least 1 pixel")
    return number


def size_of(op: str, size: Size) -> tuple[int, int]:
    """Return (height, width) of a size: an int, or a sequence of one or two. Raises TypeError and ValueError."""
    if isinstance(size, (str, bytes)):
        raise TypeError(f"{op}.size: value is {size!r}; must be an int or (height, width)")
    if not isinstance(size, Sequence):
        side = pixels(op, size)
        return side, side
    if len(size) not in (1, 2):
        raise ValueError(f"{op}.size: value is {size!r}; must be an int or (height, width)")
    return pixels(op, size[0]), pixels(op, size[-1])


def check_antialias(op: str, value: Optional[bool]) -> None:
    if value is not True and value is not None:
        raise ValueError(f"{op}.antialias: value is {value!r}; must be True or None, as resizing has antialiasing "
                         "like torchvision's of PIL images; interpolation='nearest' copies pixels")


def floats(op: str, name: str, values: Sequence[float], n: int) -> tuple[float, ...]:
    return numbers(f"{op}.{name}", values, n, must=f"{n} finite number{'s' if n > 1 else ''}")


class Op(Sealed):
    """The base of operations on images. penstock.image takes a list of them. They are frozen: equal arguments make
    equal operations."""

    __slots__ = ()

    def to_c(self) -> _c.Op:
        """Return the struct for the library."""
        raise NotImplementedError
