# SPDX-License-Identifier: Apache-2.0
"""Operations that change colours: torchvision's for PIL images, with Pillow's pixels."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from .. import _c
from ..arguments import MAX_FACTOR, number, one_of, pair, probability, whole
from ..elsewhere import OP_KEYWORDS
from ..hints import explains
from .op import Op
from .random import apply_randomly

__all__ = ["ColorJitter", "Grayscale", "RandomAdjustSharpness", "RandomAutocontrast", "RandomChannelPermutation",
           "RandomEqualize", "RandomGrayscale", "RandomInvert", "RandomPhotometricDistort", "RandomPosterize", "RandomSolarize"]

Range = Union[float, Sequence[float]]
ONE = (1.0, 1.0)


def _is_pair(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _factors(what: str, value: Any) -> tuple[float, float]:
    """Return the range of a factor. A number x means max(0, 1 - x) to 1 + x."""
    if _is_pair(value):
        return pair(what, value, 0, MAX_FACTOR)
    reach = number(what, value, 0, MAX_FACTOR - 1)
    return max(0.0, 1.0 - reach), 1.0 + reach


def _hues(what: str, value: Any) -> tuple[float, float]:
    """Return the range of a part of the colour wheel. A number x means -x to x."""
    if _is_pair(value):
        return pair(what, value, -0.5, 0.5)
    reach = number(what, value, 0, 0.5)
    return -reach, reach


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class ColorJitter(Op):
    """Adjust brightness, contrast, saturation and hue by random factors, in a random order. 0 leaves an adjustment out.

    brightness, contrast, saturation: x for factors from max(0, 1 - x) to 1 + x; or (least, greatest).
    hue: x for -x to x, parts of the colour wheel, at most 0.5; or (least, greatest).
    """

    brightness: Range = 0
    contrast: Range = 0
    saturation: Range = 0
    hue: Range = 0

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation"):
            object.__setattr__(self, name, _factors(f"ColorJitter.{name}", getattr(self, name)))
        object.__setattr__(self, "hue", _hues("ColorJitter.hue", self.hue))

    def to_c(self) -> _c.Op:
        op = _c.Op(kind=_c.OP_COLOR_JITTER)
        ranges = (self.brightness, self.contrast, self.saturation, self.hue)
        op.params.color_jitter = _c.ColorJitterParams(*(bound for found in ranges if isinstance(found, tuple) for bound in found))
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class Grayscale(Op):
    """Convert to the luma of each pixel, as Pillow's convert("L") does: one channel, or three equal ones. It may come
    anywhere before Normalize, which then takes as many numbers. If it comes before a resize, it is applied first, as in
    torchvision."""

    num_output_channels: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_output_channels", one_of("Grayscale.num_output_channels", self.num_output_channels, (1, 3)))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_grayscale(self.num_output_channels)
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomGrayscale(Op):
    """Make all three channels the luma of the pixel, with probability p. Images of one channel stay as they are."""

    p: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("RandomGrayscale.p", self.p))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_grayscale(self.p)
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomChannelPermutation(Op):
    """Put the three channels in a random order. Images of one channel stay as they are."""

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_channel_permutation()
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomPhotometricDistort(Op):
    """Adjust brightness, contrast, saturation and hue, and permute the channels, each with probability p. Contrast
    comes after brightness or after hue, with equal chance. Images of one channel keep it.

    brightness, contrast, saturation: least and greatest factor.
    hue: least and greatest part of the colour wheel, -0.5 to 0.5.
    """

    brightness: Sequence[float] = (0.875, 1.125)
    contrast: Sequence[float] = (0.5, 1.5)
    saturation: Sequence[float] = (0.5, 1.5)
    hue: Sequence[float] = (-0.05, 0.05)
    p: float = 0.5

    def __post_init__(self) -> None:
        for name, least, most in (("brightness", 0.0, MAX_FACTOR), ("contrast", 0.0, MAX_FACTOR),
                                  ("saturation", 0.0, MAX_FACTOR), ("hue", -0.5, 0.5)):
            what, given = f"RandomPhotometricDistort.{name}", getattr(self, name)
            if not _is_pair(given):
                raise TypeError(f"{what}: value is {given!r}; must be two numbers, the least and the greatest")
            object.__setattr__(self, name, pair(what, given, least, most))
        object.__setattr__(self, "p", probability("RandomPhotometricDistort.p", self.p))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_photometric_distort(self.p)
        op.params.random_photometric_distort = _c.RandomPhotometricDistortParams(
            *self.brightness, *self.contrast, *self.saturation, *self.hue, self.p)
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomInvert(Op):
    """Replace each byte x by 255 - x, with probability p."""

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("RandomInvert.p", self.p))

    def to_c(self) -> _c.Op:
        return apply_randomly(_c.OP_INVERT, 0, self.p)


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomPosterize(Op):
    """Keep the upper `bits` of each byte, 0 to 8, with probability p."""

    bits: int
    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", whole("RandomPosterize.bits", self.bits, 0, 8))
        object.__setattr__(self, "p", probability("RandomPosterize.p", self.p))

    def to_c(self) -> _c.Op:
        return apply_randomly(_c.OP_POSTERIZE, self.bits, self.p)


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomSolarize(Op):
    """Invert the bytes that are not below `threshold`, 0 to 256, with probability p."""

    threshold: float
    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", number("RandomSolarize.threshold", self.threshold, 0, 256))
        object.__setattr__(self, "p", probability("RandomSolarize.p", self.p))

    def to_c(self) -> _c.Op:
        return apply_randomly(_c.OP_SOLARIZE, self.threshold, self.p)


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomAdjustSharpness(Op):
    """Adjust the sharpness by a factor, with probability p: 0 blurs, 1 changes nothing, 2 sharpens."""

    sharpness_factor: float
    p: float = 0.5

    def __post_init__(self) -> None:
        factor = number("RandomAdjustSharpness.sharpness_factor", self.sharpness_factor, 0, MAX_FACTOR)
        object.__setattr__(self, "sharpness_factor", factor)
        object.__setattr__(self, "p", probability("RandomAdjustSharpness.p", self.p))

    def to_c(self) -> _c.Op:
        return apply_randomly(_c.OP_SHARPNESS, self.sharpness_factor, self.p)


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomAutocontrast(Op):
    """Stretch each channel to the range 0 to 255, with probability p."""

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("RandomAutocontrast.p", self.p))

    def to_c(self) -> _c.Op:
        return apply_randomly(_c.OP_AUTOCONTRAST, 0, self.p)


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomEqualize(Op):
    """Make the levels of each channel equally frequent, with probability p."""

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("RandomEqualize.p", self.p))

    def to_c(self) -> _c.Op:
        return apply_randomly(_c.OP_EQUALIZE, 0, self.p)
