# SPDX-License-Identifier: Apache-2.0
"""Operations that cut a part out of an image: a random one, or the middle."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Optional, SupportsIndex

from .. import _c
from ..arguments import FILTERS, Interpolation, filter_name, number, numbers, switch, whole
from ..elsewhere import OP_KEYWORDS
from ..hints import explains
from .op import Op, Size, check_antialias, floats, size_of

__all__ = ["CenterCrop", "RandomCrop", "RandomIoUCrop", "RandomResizedCrop"]

PADDING_MODES = ("constant", "edge", "reflect", "symmetric")  # in the order of enum pstk_pad_mode
MAX_PADDING = 65535
MAX_RATIO = 65535
MAX_OPTIONS = 7


def padding_of(op: str, padding: Size | None) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of torchvision's padding: None, an int, or a sequence of one, two or four.
    Raises TypeError and ValueError."""
    given = [0] if padding is None else list(padding) if isinstance(padding, Sequence) else [padding]
    message = f"{op}.padding: value is {padding!r}; must be an int, or 1, 2 or 4 of them, from 0 to {MAX_PADDING}"
    try:
        pixels = [operator.index(v) for v in given]
    except TypeError:
        raise TypeError(message) from None
    if len(pixels) not in (1, 2, 4) or not all(0 <= v <= MAX_PADDING for v in pixels):
        raise ValueError(message)
    left, top, right, bottom = (pixels * 4)[:4]  # two numbers are left and right, top and bottom
    return left, top, right, bottom


def _fill(op: str, fill: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return one byte for each channel. An int is the byte of all channels. Raises TypeError and ValueError."""
    given = list(fill) if isinstance(fill, Sequence) else [fill] * 4
    message = f"{op}.fill: value is {fill!r}; must be an int from 0 to 255, or one for each of 1, 3 or 4 channels"
    try:
        found = tuple(operator.index(v) for v in given)
    except TypeError:
        raise TypeError(message) from None
    if len(found) not in (1, 3, 4) or not all(0 <= v <= 255 for v in found):
        raise ValueError(message)
    return found


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomResizedCrop(Op):
    """Cut out a random part, and resize it to `size`, with antialiasing. As torchvision does, it tries ten times to
    draw a part, and then takes a central crop.

    size: int or (height, width), pixels.
    scale: smallest and largest share of the image's area.
    ratio: smallest and largest width / height.
    interpolation: "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos" or "random"; or a member of
        torchvision's InterpolationMode.
    antialias: True or None.
    """

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: Interpolation = "bilinear"
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        check_antialias("RandomResizedCrop", antialias)
        object.__setattr__(self, "interpolation", filter_name("RandomResizedCrop", self.interpolation))
        object.__setattr__(self, "size", size_of("RandomResizedCrop", self.size))
        object.__setattr__(self, "scale", floats("RandomResizedCrop", "scale", self.scale, 2))
        object.__setattr__(self, "ratio", floats("RandomResizedCrop", "ratio", self.ratio, 2))

    def to_c(self) -> _c.Op:
        height, width = size_of("RandomResizedCrop", self.size)
        op: _c.Op = _c.lib.pstk_random_resized_crop_range(height, width, *self.scale, *self.ratio)
        op.filter = FILTERS[filter_name("RandomResizedCrop", self.interpolation)]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class CenterCrop(Op):
    """Cut out the middle. Pixels that the image lacks are black. size: int or (height, width), pixels."""

    size: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", size_of("CenterCrop", self.size))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_center_crop(*size_of("CenterCrop", self.size))
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomCrop(Op):
    """Cut out a random part, after padding.

    size: int or (height, width), pixels.
    padding: pixels on all sides, or (left and right, top and bottom), or (left, top, right, bottom); None: none.
    pad_if_needed: True: pad an image that is smaller than the part. False: such an image is a bad sample.
    fill: for padding_mode="constant": a byte, or one for each channel.
    padding_mode: "constant", "edge", "reflect" or "symmetric". With "constant" no more of a JPEG than the part is
        decoded; the others need the whole image.
    """

    size: Size
    padding: Size | None = None
    pad_if_needed: bool = False
    fill: SupportsIndex | Sequence[SupportsIndex] = 0
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        if not isinstance(self.padding_mode, str) or self.padding_mode not in PADDING_MODES:
            raise ValueError(f"RandomCrop.padding_mode: value is {self.padding_mode!r}; must be one of "
                             f"{', '.join(map(repr, PADDING_MODES))}")
        object.__setattr__(self, "size", size_of("RandomCrop", self.size))
        object.__setattr__(self, "padding", padding_of("RandomCrop", self.padding))
        object.__setattr__(self, "pad_if_needed", switch("RandomCrop.pad_if_needed", self.pad_if_needed))
        object.__setattr__(self, "fill", _fill("RandomCrop", self.fill))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_crop(*size_of("RandomCrop", self.size), 0)
        mode = PADDING_MODES.index(self.padding_mode)
        op.params.random_crop = _c.RandomCropParams(*padding_of("RandomCrop", self.padding), self.pad_if_needed, mode)
        for i, value in enumerate(_fill("RandomCrop", self.fill)):
            op.fill[i] = value
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomIoUCrop(Op):
    """The crop of SSD: torchvision.transforms.v2.RandomIoUCrop.

    It draws an IoU from sampler_options. Then it draws parts of the image, at most `trials`, until the part has the
    centre of a box that overlaps the part by this IoU; otherwise it draws another IoU. An option of 1 leaves the image
    as it is, and so do 100 options without a part. Boxes whose centres are outside of the part are dropped.

    min_scale, max_scale: share of the width and of the height, each.
    min_aspect_ratio, max_aspect_ratio: width / height.
    sampler_options: 1 to 7 numbers from 0 to 1; None: (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1).
    trials: parts that are drawn for an option, 1 to 1000.

    The image needs an output of boxes that follows it, penstock.boxes. A resize to one size must come later in the
    list.
    """

    min_scale: float = 0.3
    max_scale: float = 1.0
    min_aspect_ratio: float = 0.5
    max_aspect_ratio: float = 2.0
    sampler_options: Optional[Sequence[float]] = None
    trials: int = 40

    def __post_init__(self) -> None:
        for name, least, most in (("min_scale", 0, 1), ("max_scale", 0, 1),
                                  ("min_aspect_ratio", 1 / MAX_RATIO, MAX_RATIO),
                                  ("max_aspect_ratio", 1 / MAX_RATIO, MAX_RATIO)):
            object.__setattr__(self, name, number(f"RandomIoUCrop.{name}", getattr(self, name), least, most))
        for least_of, most_of in (("min_scale", "max_scale"), ("min_aspect_ratio", "max_aspect_ratio")):
            if not 0 < getattr(self, least_of) <= getattr(self, most_of):
                raise ValueError(f"RandomIoUCrop.{least_of}: value is {getattr(self, least_of)!r}; must be above 0, and "
                                 f"at most {most_of}, {getattr(self, most_of)!r}")
        object.__setattr__(self, "trials", whole("RandomIoUCrop.trials", self.trials, 1, 1000))
        if self.sampler_options is None:
            return
        options = numbers("RandomIoUCrop.sampler_options", self.sampler_options, tuple(range(1, MAX_OPTIONS + 1)), 0, 1,
                          f"from 1 to {MAX_OPTIONS} numbers from 0 to 1")
        object.__setattr__(self, "sampler_options", options)

    def to_c(self) -> _c.Op:
        op = _c.Op(kind=_c.OP_RANDOM_IOU_CROP)
        options = (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1) if self.sampler_options is None else self.sampler_options
        op.params.random_iou_crop = _c.RandomIouCropParams(
            self.min_scale, self.max_scale, self.min_aspect_ratio, self.max_aspect_ratio, self.trials,
            (*options, *(-1,) * (MAX_OPTIONS - len(options))))
        return op
