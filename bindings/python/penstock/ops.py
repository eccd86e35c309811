# SPDX-License-Identifier: Apache-2.0
"""Operations on images: torchvision's names, argument forms and defaults, and Pillow's pixels.

An operation is a value: frozen and comparable. The library's workers apply the list that you give to
`penstock.image`. Sizes are (height, width) in pixels; an int means both.

Operations that resize take `interpolation`, the filter: "nearest", "box", "bilinear", "hamming", "bicubic" or
"lanczos", with the pixels of Pillow's Image.resize; or "random": bilinear or bicubic, drawn for each image, as timm
has it. torchvision's InterpolationMode and PIL.Image.Resampling, or their values, mean the same.
"""
from __future__ import annotations

import operator
from collections.abc import Sequence
from ctypes import c_float
from dataclasses import InitVar, dataclass
from typing import Optional, SupportsIndex, Union

from . import _c
from .arguments import FILTERS, Interpolation, filter_name, is_bool, numbers, one_of, probability, switch
from .elsewhere import OP_KEYWORDS
from .hints import explains
from .sealed import Sealed

__all__ = ["CenterCrop", "Grayscale", "IMAGENET_MEAN", "IMAGENET_STD", "Normalize", "RandomCrop", "RandomErasing",
           "RandomFlip", "RandomHorizontalFlip", "RandomResizedCrop", "RandomVerticalFlip", "Resize", "ToFloat"]

IMAGENET_MEAN = _c.IMAGENET_MEAN
IMAGENET_STD = _c.IMAGENET_STD

Size = Union[SupportsIndex, Sequence[SupportsIndex]]
MOST = 2**32 - 1  # uint32_t width and height


def _pixels(op: str, value: SupportsIndex) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or is_bool(value):
        raise TypeError(f"{op}.size: value is {value!r}; must be whole numbers of pixels")
    if not 1 <= number <= MOST:
        raise ValueError(f"{op}.size: value is {number}; must be at least 1 pixel")
    return number


def _size(op: str, size: Size) -> tuple[int, int]:
    """Return (height, width) of a size: an int, or a sequence of one or two."""
    if isinstance(size, (str, bytes)):
        raise TypeError(f"{op}.size: value is {size!r}; must be an int or (height, width)")
    if not isinstance(size, Sequence):
        side = _pixels(op, size)
        return side, side
    if len(size) not in (1, 2):
        raise ValueError(f"{op}.size: value is {size!r}; must be an int or (height, width)")
    return _pixels(op, size[0]), _pixels(op, size[-1])


def _antialias(op: str, value: Optional[bool]) -> None:
    if value is not True and value is not None:
        raise ValueError(f"{op}.antialias: value is {value!r}; must be True or None, as resizing has antialiasing "
                         "like torchvision's of PIL images; interpolation='nearest' copies pixels")


def _floats(op: str, name: str, values: Sequence[float], n: int) -> tuple[float, ...]:
    return numbers(f"{op}.{name}", values, n, must=f"{n} finite number{'s' if n > 1 else ''}")


class Op(Sealed):
    """One operation on images. `penstock.image` takes a list of them."""

    __slots__ = ()

    def to_c(self) -> _c.Op:
        """Return the operation as the library takes it."""
        raise NotImplementedError


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomResizedCrop(Op):
    """Cut out a random part, and resize it to `size`, with antialiasing.

    size: int or (height, width), pixels. scale: smallest and largest share of the image's area. ratio: smallest
    and largest width / height. interpolation: "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos" or
    "random"; so, too, torchvision's InterpolationMode. antialias: True or None. As torchvision's, it tries ten times
    to draw a part, then takes a central crop.
    """

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: Interpolation = "bilinear"
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        _antialias("RandomResizedCrop", antialias)
        object.__setattr__(self, "interpolation", filter_name("RandomResizedCrop", self.interpolation))
        object.__setattr__(self, "size", _size("RandomResizedCrop", self.size))
        object.__setattr__(self, "scale", _floats("RandomResizedCrop", "scale", self.scale, 2))
        object.__setattr__(self, "ratio", _floats("RandomResizedCrop", "ratio", self.ratio, 2))

    def to_c(self) -> _c.Op:
        height, width = _size("RandomResizedCrop", self.size)
        op: _c.Op = _c.lib.pstk_random_resized_crop_range(height, width, *self.scale, *self.ratio)
        op.filter = FILTERS[filter_name("RandomResizedCrop", self.interpolation)]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class Resize(Op):
    """Resize, with antialiasing.

    size: an int for the shorter side, which keeps the aspect ratio, or (height, width), or None. interpolation: as of
    RandomResizedCrop. max_size: with an int, the most pixels of the longer side; the shorter one then gets less than
    `size` where it must. With None, the pixels of the longer side, as ResizeLongest. antialias: True or None.
    """

    size: Optional[Size]
    interpolation: Interpolation = "bilinear"
    max_size: Optional[SupportsIndex] = None
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        _antialias("Resize", antialias)
        object.__setattr__(self, "interpolation", filter_name("Resize", self.interpolation))
        if self.size is None:
            if self.max_size is None:
                raise ValueError("Resize.max_size: value is None; must be the pixels of the longer side where size is "
                                 "None")
        elif isinstance(self.size, Sequence):
            if len(self.size) == 1:
                object.__setattr__(self, "size", _pixels("Resize", self.size[0]))
            else:
                object.__setattr__(self, "size", _size("Resize", self.size))
        else:
            object.__setattr__(self, "size", _pixels("Resize", self.size))
        object.__setattr__(self, "max_size", self._longest())

    def _longest(self) -> Optional[int]:
        """Return max_size, checked."""
        if self.max_size is None:
            return None
        if isinstance(self.size, Sequence):
            raise ValueError(f"Resize.max_size: value is {self.max_size!r}; must be None where size is (height, width)")
        try:
            longest = operator.index(self.max_size)
        except TypeError:
            raise TypeError(f"Resize.max_size: value is {self.max_size!r}; must be a whole number of pixels") from None
        if not (0 if self.size is None else _pixels("Resize", self.size)) < longest <= MOST:
            raise ValueError(f"Resize.max_size: value is {longest}; must be above "
                             + ("0" if self.size is None else f"size, {self.size}"))
        return longest

    def to_c(self) -> _c.Op:
        op: _c.Op
        if self.size is None:
            op = _c.lib.pstk_resize_longest(self._longest())
        elif isinstance(self.size, Sequence):
            op = _c.lib.pstk_resize(*_size("Resize", self.size))
        else:
            op = _c.lib.pstk_resize_shorter_max(_pixels("Resize", self.size), self._longest() or 0)
        op.filter = FILTERS[filter_name("Resize", self.interpolation)]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class CenterCrop(Op):
    """Cut out the middle; black where the image is smaller. size: int or (height, width), pixels."""

    size: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size("CenterCrop", self.size))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_center_crop(*_size("CenterCrop", self.size))
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomFlip(Op):
    """Flip left and right with probability p. It is also called RandomHorizontalFlip, as in torchvision."""

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("RandomFlip.p", self.p))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_flip(self.p)
        return op


RandomHorizontalFlip = RandomFlip


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class Grayscale(Op):
    """Convert to the luma of each pixel, as Pillow's convert("L"): one channel, or three equal ones. It may come
    anywhere before Normalize, which then takes as many numbers. Before a resize it is applied first, as
    torchvision does."""

    num_output_channels: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_output_channels", one_of("Grayscale.num_output_channels", self.num_output_channels, (1, 3)))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_grayscale(self.num_output_channels)
        return op


SCALES = _c.NAMES["scale"]


def _scale(op: str, given: str) -> int:
    """Return the code of a scale."""
    if not isinstance(given, str) or given not in SCALES:
        raise ValueError(f"{op}.scale: value is {given!r}; must be 'divide' or 'multiply'")
    return SCALES[given]


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class ToFloat(Op):
    """Compute x / 255, in float32, where a list has no Normalize.

    It must be the last operation of a list; only RandomErasing may follow. scale: "divide", as torchvision's ToTensor
    and as an output without this operation, or "multiply", by 1 / 255, as its v2.ToDtype(torch.float32, scale=True).
    Of 256 bytes 126 differ, in the last bit of float32.
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
    """Compute (x / 255 - mean) / std for each channel, in float32: ToTensor and Normalize in one.

    It must be the last operation of a list; only RandomErasing may follow. The images are float32, or float16 or
    bfloat16 by the output's dtype. mean, std: a number for each channel, 1, 3 or 4. Default: ImageNet's mean and
    deviation of R, G, B. scale: how x / 255 is computed, as of ToFloat: "divide", or "multiply" as torchvision's v2.
    """

    mean: Sequence[float] = IMAGENET_MEAN
    std: Sequence[float] = IMAGENET_STD
    scale: str = "divide"

    def __post_init__(self) -> None:
        n = self._n_channels()
        _scale("Normalize", self.scale)
        object.__setattr__(self, "mean", _floats("Normalize", "mean", self.mean, n))
        object.__setattr__(self, "std", _floats("Normalize", "std", self.std, n))
        if not all(v > 0 for v in self.std):
            raise ValueError(f"Normalize.std: value is {self.std}; must be above 0")

    def _n_channels(self) -> int:
        """Return the length of mean: 1, 3 or 4, as an image may have channels."""
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
        op.params[8] = _scale("Normalize", self.scale)
        return op


PADDING_MODES = ("constant", "edge", "reflect", "symmetric")  # by enum pstk_pad_mode
MAX_PADDING = 65535


def _padding(op: str, padding: Size | None) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of torchvision's padding: None, an int, or a sequence of one, two or
    four."""
    given = [0] if padding is None else list(padding) if isinstance(padding, Sequence) else [padding]
    message = f"{op}.padding: value is {padding!r}; must be an int, or 1, 2 or 4 of them, from 0 to {MAX_PADDING}"
    try:
        pixels = [operator.index(v) for v in given]
    except TypeError:
        raise TypeError(message) from None
    if len(pixels) not in (1, 2, 4) or not all(0 <= v <= MAX_PADDING for v in pixels):
        raise ValueError(message)
    left, top, right, bottom = (pixels * 4)[:4]  # two: left and right, top and bottom
    return left, top, right, bottom


def _fill(op: str, fill: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return one byte per channel: an int is all of them."""
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
class RandomCrop(Op):
    """Cut out a random part. size: int or (height, width), pixels.

    First the image is padded. padding: pixels on all sides, or (left and right, top and bottom), or (left, top,
    right, bottom). pad_if_needed: pad what is smaller than the part; without it, such an image is a bad sample.
    fill: of padding_mode "constant": a byte, or one for each channel; the other modes are "edge", "reflect"
    and "symmetric". Padding with a fill decodes no more of a JPEG than the part; the others need the whole image.
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
        object.__setattr__(self, "size", _size("RandomCrop", self.size))
        object.__setattr__(self, "padding", _padding("RandomCrop", self.padding))
        object.__setattr__(self, "pad_if_needed", switch("RandomCrop.pad_if_needed", self.pad_if_needed))
        object.__setattr__(self, "fill", _fill("RandomCrop", self.fill))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_crop(*_size("RandomCrop", self.size), 0)
        mode = PADDING_MODES.index(self.padding_mode)
        for i, value in enumerate((*_padding("RandomCrop", self.padding), self.pad_if_needed, mode)):
            op.params[i] = value
        for i, value in enumerate(_fill("RandomCrop", self.fill)):
            op.fill[i] = value
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomVerticalFlip(Op):
    """Flip top and bottom with probability p."""

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("RandomVerticalFlip.p", self.p))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_vertical_flip(self.p)
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomErasing(Op):
    """Overwrite random boxes of the finished image, with probability p. It follows Normalize, at the end of a list.

    scale: smallest and largest share of the area. ratio: smallest and largest height / width. value: of the
    tensor's elements, one number or one for each channel; "random" for normally distributed ones; "channel" for a
    normally distributed one for each channel of a box. count: number of boxes, or (least, greatest); each gets its
    part of the area. As torchvision's, it tries ten times to draw a box, then leaves it out. On a GPU, elements of the
    output's dtype are copied there, where otherwise bytes are.

    timm's RandomErasing has other defaults: RandomErasing(p, (0.02, 1 / 3), (0.3, 1 / 0.3), value, count), with a value
    of 0 for its mode "const", "channel" for "rand" and "random" for "pixel".
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | str = 0
    count: int | Sequence[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", *_floats("RandomErasing", "p", (self.p,), 1))
        object.__setattr__(self, "scale", _floats("RandomErasing", "scale", self.scale, 2))
        object.__setattr__(self, "ratio", _floats("RandomErasing", "ratio", self.ratio, 2))
        object.__setattr__(self, "count", self._counts())
        given = self.value
        if isinstance(given, str):
            if given not in ("random", "channel"):
                raise ValueError(f"RandomErasing.value: value is {given!r}; must be numbers, 'random' or 'channel'")
            return
        values = [given] if isinstance(given, (int, float)) else given
        object.__setattr__(self, "value", numbers("RandomErasing.value", values, (1, 3, 4), must="1, 3 or 4 numbers"))

    def _counts(self) -> tuple[int, int]:
        """Return the least and the greatest number of boxes."""
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
        op.params[10:12] = self._counts()
        values = self.value if isinstance(self.value, tuple) else (0.0,)  # "random" has no number
        for i, value in enumerate((*self.scale, *self.ratio, *(values if len(values) > 1 else values * 4))):
            op.params[1 + i] = value
        op.params[9] = {"random": 1, "channel": 2}.get(self.value, 0) if isinstance(self.value, str) else 0
        return op
