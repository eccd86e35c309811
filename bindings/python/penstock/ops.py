# SPDX-License-Identifier: Apache-2.0
"""Operations on images: torchvision's names, argument forms and defaults, and Pillow's pixels.

An operation is a value: frozen, comparable, and it does nothing by itself; workers of the library apply the
list that `penstock.image` is given. Sizes are (height, width) in pixels, an int is both.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from ctypes import c_float
from dataclasses import dataclass
from typing import SupportsIndex, Union

from . import _c
from .keywords import explains

__all__ = ["CenterCrop", "IMAGENET_MEAN", "IMAGENET_STD", "Normalize", "Op", "RandomFlip",
           "RandomHorizontalFlip", "RandomResizedCrop", "Resize"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Size = Union[SupportsIndex, Sequence[SupportsIndex]]
MOST = 2**32 - 1  # uint32_t width and height

# Keywords of torchvision's that have one value here.
_ELSEWHERE = {
    "antialias": "leave it out; resizing always has antialiasing, as torchvision's of PIL images",
    "interpolation": "leave it out; resizing is bilinear with antialiasing, torchvision's default; there is no "
                     "other yet, so pack masks of class ids as arrays",
    "max_size": "leave it out; Resize((height, width)) bounds both sides",
    "inplace": "leave it out; it makes no copy",
}


def _pixels(op: str, value: SupportsIndex) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{op}: size is {value!r}, must be whole numbers of pixels") from None
    if not 1 <= number <= MOST:
        raise ValueError(f"{op}: size is {number}, must be at least 1 pixel")
    return number


def _size(op: str, size: Size) -> tuple[int, int]:
    """(height, width) of a size: an int, or a sequence of one or two."""
    if isinstance(size, (str, bytes)):
        raise TypeError(f"{op}: size is {size!r}, must be an int or (height, width)")
    if not isinstance(size, Sequence):
        side = _pixels(op, size)
        return side, side
    if len(size) not in (1, 2):
        raise ValueError(f"{op}: size is {size!r}, must be an int or (height, width)")
    return _pixels(op, size[0]), _pixels(op, size[-1])


def _floats(op: str, name: str, values: Sequence[float], n: int) -> tuple[float, ...]:
    try:
        found = tuple(float(v) for v in values)
    except (TypeError, ValueError):
        raise TypeError(f"{op}: {name} is {values!r}, must be {n} numbers") from None
    if len(found) != n or not all(map(math.isfinite, found)):
        raise ValueError(f"{op}: {name} is {values!r}, must be {n} finite numbers")
    return found


class Op:
    """One operation on images. `penstock.image` takes a list of them."""

    __slots__ = ()

    def to_c(self) -> _c.Op:
        """The operation as the library takes it."""
        raise NotImplementedError


@explains(_ELSEWHERE)
@dataclass(frozen=True)
class RandomResizedCrop(Op):
    """Cut out a random part, resize it to `size`, bilinear with antialiasing.

    size: int or (height, width), pixels. scale: least and most share of the image's area. ratio: least and
    most width / height. Draws as torchvision's does: ten tries, then a central crop.
    """

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size("RandomResizedCrop", self.size))
        object.__setattr__(self, "scale", _floats("RandomResizedCrop", "scale", self.scale, 2))
        object.__setattr__(self, "ratio", _floats("RandomResizedCrop", "ratio", self.ratio, 2))

    def to_c(self) -> _c.Op:
        height, width = _size("RandomResizedCrop", self.size)
        op: _c.Op = _c.lib.pstk_random_resized_crop_range(height, width, *self.scale, *self.ratio)
        return op


@explains(_ELSEWHERE)
@dataclass(frozen=True)
class Resize(Op):
    """Resize, bilinear with antialiasing: an int is the length that the shorter side gets, the aspect ratio
    kept; (height, width) is exact."""

    size: Size

    def __post_init__(self) -> None:
        if isinstance(self.size, Sequence):
            if len(self.size) == 1:
                object.__setattr__(self, "size", _pixels("Resize", self.size[0]))
            else:
                object.__setattr__(self, "size", _size("Resize", self.size))
        else:
            object.__setattr__(self, "size", _pixels("Resize", self.size))

    def to_c(self) -> _c.Op:
        op: _c.Op
        if isinstance(self.size, Sequence):
            op = _c.lib.pstk_resize(*_size("Resize", self.size))
        else:
            op = _c.lib.pstk_resize_shorter(_pixels("Resize", self.size))
        return op


@explains(_ELSEWHERE)
@dataclass(frozen=True)
class CenterCrop(Op):
    """Cut out the middle; black where the image is smaller. size: int or (height, width), pixels."""

    size: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size("CenterCrop", self.size))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_center_crop(*_size("CenterCrop", self.size))
        return op


@explains(_ELSEWHERE)
@dataclass(frozen=True)
class RandomFlip(Op):
    """Flip left and right with probability p. torchvision calls it RandomHorizontalFlip; so may you."""

    p: float = 0.5

    def __post_init__(self) -> None:
        try:
            probability = float(self.p)
        except (TypeError, ValueError):
            raise TypeError(f"RandomFlip: p is {self.p!r}, must be a number from 0 to 1") from None
        if not 0 <= probability <= 1:  # nor NaN
            raise ValueError(f"RandomFlip: p is {self.p!r}, must be a number from 0 to 1")
        object.__setattr__(self, "p", probability)

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_flip(self.p)
        return op


RandomHorizontalFlip = RandomFlip


@explains(_ELSEWHERE)
@dataclass(frozen=True)
class Normalize(Op):
    """(x / 255 - mean) / std for each of R, G, B, in float32: ToTensor and Normalize in one. The last one of
    a list; the images are float32, or what their dtype says, float16 or bfloat16. Without arguments ImageNet's
    mean and deviation."""

    mean: Sequence[float] = IMAGENET_MEAN
    std: Sequence[float] = IMAGENET_STD

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _floats("Normalize", "mean", self.mean, 3))
        object.__setattr__(self, "std", _floats("Normalize", "std", self.std, 3))
        if not all(v > 0 for v in self.std):
            raise ValueError(f"Normalize: std is {self.std}, must be above 0")

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_normalize((c_float * 3)(*self.mean), (c_float * 3)(*self.std))
        return op
