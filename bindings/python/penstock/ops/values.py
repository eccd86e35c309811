# SPDX-License-Identifier: Apache-2.0
"""Operations on the finished image: they make the numbers of its tensor, and erase boxes of them."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from ctypes import c_float
from dataclasses import dataclass

from .. import _c
from ..arguments import numbers
from ..elsewhere import OP_KEYWORDS
from ..hints import explains
from .op import Op, floats

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "Normalize", "RandomErasing", "ToFloat"]

IMAGENET_MEAN = _c.IMAGENET_MEAN
IMAGENET_STD = _c.IMAGENET_STD

SCALES = _c.NAMES["scale"]


def _scale(op: str, given: str) -> int:
    """Return the code of a scale. Raises ValueError."""
    if not isinstance(given, str) or given not in SCALES:
        raise ValueError(f"{op}.scale: value is {given!r}; must be 'divide' or 'multiply'")
    return SCALES[given]


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class ToFloat(Op):
    """Compute x / 255, in float32, for a list without Normalize. It must be the last operation of a list; only
    RandomErasing may follow.

    scale: "divide", as torchvision's ToTensor, and as an output without this operation; or "multiply", by 1 / 255, as
        torchvision's v2.ToDtype(torch.float32, scale=True). For 126 of 256 bytes the last bit of the float32 differs.
    """

    scale: str = "divide"

    def __post_init__(self) -> None:
        _scale("ToFloat", self.scale)

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_to_float(_scale("ToFloat", self.scale))
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class Normalize(Op):
    """Compute (x / 255 - mean) / std for each channel, in float32: ToTensor and Normalize in one. It must be the last
    operation of a list; only RandomErasing may follow.

    The images are float32, or float16 or bfloat16 by the output's dtype.

    mean, std: a number for each channel, 1, 3 or 4 of them. Default: ImageNet's mean and deviation of R, G, B.
    scale: computation of x / 255, as in ToFloat: "divide", or "multiply" as torchvision's v2.
    """

    mean: Sequence[float] = IMAGENET_MEAN
    std: Sequence[float] = IMAGENET_STD
    scale: str = "divide"

    def __post_init__(self) -> None:
        n = self._n_channels()
        _scale("Normalize", self.scale)
        object.__setattr__(self, "mean", floats("Normalize", "mean", self.mean, n))
        object.__setattr__(self, "std", floats("Normalize", "std", self.std, n))
        if not all(v > 0 for v in self.std):
            raise ValueError(f"Normalize.std: value is {self.std}; must be above 0")

    def _n_channels(self) -> int:
        """Return the number of channels, 1, 3 or 4. Raises TypeError and ValueError."""
        try:
            n = len(self.mean)
        except TypeError:
            raise TypeError(f"Normalize.mean: value is {self.mean!r}; must be 1, 3 or 4 numbers") from None
        if n not in (1, 3, 4):
            raise ValueError(f"Normalize.mean: value is {self.mean!r}; must be 1, 3 or 4 finite numbers")
        return n

    def to_c(self) -> _c.Op:
        n = len(self.mean)
        numbers = c_float * n
        op: _c.Op = _c.lib.pstk_normalize_channels(n, numbers(*self.mean), numbers(*self.std))
        op.params.normalize.scale = _scale("Normalize", self.scale)
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomErasing(Op):
    """Overwrite random boxes of the finished image, with probability p. It comes at the end of a list, after Normalize
    or ToFloat if there is one. As torchvision does, it tries ten times to draw a box, and then leaves it out.

    scale: smallest and largest share of the area.
    ratio: smallest and largest height / width.
    value: the tensor's elements in a box: one number, or one for each channel; "random": a normally distributed number
        for each element; "channel": one for each channel of a box.
    count: number of boxes, 1 to 32, or (least, greatest). Each box gets its part of the area.

    On a GPU, elements of the output's dtype are copied to it; without erasing they are bytes.

    timm's RandomErasing has other defaults: RandomErasing(p, (0.02, 1 / 3), (0.3, 1 / 0.3), value, count). Its modes
    are values: 0 is "const", "channel" is "rand", and "random" is "pixel".
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | str = 0
    count: int | Sequence[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", *floats("RandomErasing", "p", (self.p,), 1))
        object.__setattr__(self, "scale", floats("RandomErasing", "scale", self.scale, 2))
        object.__setattr__(self, "ratio", floats("RandomErasing", "ratio", self.ratio, 2))
        object.__setattr__(self, "count", self._counts())
        given = self.value
        if isinstance(given, str):
            if given not in ("random", "channel"):
                raise ValueError(f"RandomErasing.value: value is {given!r}; must be numbers, 'random' or 'channel'")
            return
        values = [given] if isinstance(given, (int, float)) else given
        object.__setattr__(self, "value", numbers("RandomErasing.value", values, (1, 3, 4), must="1, 3 or 4 numbers"))

    def _counts(self) -> tuple[int, int]:
        """Return the least and the greatest number of boxes. Raises TypeError and ValueError."""
        given = self.count
        must = f"RandomErasing.count: value is {given!r}; must be a whole number, or two in rising order, from 1 to 32"
        try:
            found = [operator.index(n) for n in (given if isinstance(given, Sequence) else (given, given))]
        except TypeError:
            raise TypeError(must) from None
        if len(found) != 2 or not 1 <= found[0] <= found[1] <= 32:
            raise ValueError(must)
        return found[0], found[1]

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_erasing(self.p, 0)
        values = self.value if isinstance(self.value, tuple) else (0.0,)  # "random" and "channel" have no number
        kind = {"random": 1, "channel": 2}.get(self.value, 0) if isinstance(self.value, str) else 0
        op.params.random_erasing = _c.RandomErasingParams(
            self.p, *self.scale, *self.ratio, values if len(values) > 1 else values * 4, kind, *self._counts())
        return op
