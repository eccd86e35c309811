# SPDX-License-Identifier: Apache-2.0
"""Operations that resize, fit, pad or flip images."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Optional, SupportsIndex, Union

from .. import _c
from ..arguments import FILTERS, Interpolation, filter_name, pair, probability, whole
from ..elsewhere import OP_KEYWORDS
from ..hints import explains, near_or_all
from .crop import PADDING_MODES, padding_of
from .op import MOST, Op, Size, check_antialias, pixels, size_of
from .warp import Fill, fill_of

__all__ = ["CornerCrop", "Letterbox", "Pad", "PadToSize", "RandomFlip", "RandomHorizontalFlip", "RandomResize", "RandomShortestSize",
           "RandomVerticalFlip", "RandomZoomOut", "Resize", "ResizeLongest", "ScaleJitter"]

MAX_SIDE = 65535  # pixels
MAX_SIDES = 16  # largest side of a canvas, in sides of the image
MIN_SCALE = 1e-3


def _name_of(what: str, given: object, known: dict[str, int]) -> str:
    if not isinstance(given, str) or given not in known:
        raise ValueError(f"{what}: value is {given!r}; must be one of {', '.join(map(repr, known))}"
                         + (near_or_all(given, known) if isinstance(given, str) else ""))
    return given


def _check_filter(op: Op, antialias: Optional[bool]) -> None:
    """Check `interpolation` of a frozen operation and its argument antialias. Stores the filter's name."""
    name = type(op).__name__
    check_antialias(name, antialias)
    object.__setattr__(op, "interpolation", filter_name(name, getattr(op, "interpolation")))


def _check_side(op: Op, name: str) -> None:
    """Check a side of a frozen operation and store it as an int."""
    object.__setattr__(op, name, whole(f"{type(op).__name__}.{name}", getattr(op, name), 1, MAX_SIDE))


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class Resize(Op):
    """Resize, with antialiasing.

    size: an int for the shorter side, and the aspect ratio stays; or (height, width); or None.
    interpolation: as in RandomResizedCrop.
    max_size: with an int as size: the most pixels of the longer side; if needed the shorter side gets less than `size`.
        With None as size: the pixels of the longer side, as in ResizeLongest.
    antialias: True or None.
    """

    size: Optional[Size]
    interpolation: Interpolation = "bilinear"
    max_size: Optional[SupportsIndex] = None
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        check_antialias("Resize", antialias)
        object.__setattr__(self, "interpolation", filter_name("Resize", self.interpolation))
        if self.size is None:
            if self.max_size is None:
                raise ValueError("Resize.max_size: value is None; must be the pixels of the longer side where size is "
                                 "None")
        elif isinstance(self.size, Sequence):
            if len(self.size) == 1:
                object.__setattr__(self, "size", pixels("Resize", self.size[0]))
            else:
                object.__setattr__(self, "size", size_of("Resize", self.size))
        else:
            object.__setattr__(self, "size", pixels("Resize", self.size))
        object.__setattr__(self, "max_size", self._longest())

    def _longest(self) -> Optional[int]:
        """Return max_size as an int or None. Raises TypeError and ValueError."""
        if self.max_size is None:
            return None
        if isinstance(self.size, Sequence):
            raise ValueError(f"Resize.max_size: value is {self.max_size!r}; must be None where size is (height, width)")
        try:
            longest = operator.index(self.max_size)
        except TypeError:
            raise TypeError(f"Resize.max_size: value is {self.max_size!r}; must be a whole number of pixels") from None
        if not (0 if self.size is None else pixels("Resize", self.size)) < longest <= MOST:
            raise ValueError(f"Resize.max_size: value is {longest}; must be above "
                             + ("0" if self.size is None else f"size, {self.size}"))
        return longest

    def to_c(self) -> _c.Op:
        op: _c.Op
        if self.size is None:
            op = _c.lib.pstk_resize_longest(self._longest())
        elif isinstance(self.size, Sequence):
            op = _c.lib.pstk_resize(*size_of("Resize", self.size))
        else:
            op = _c.lib.pstk_resize_shorter_max(pixels("Resize", self.size), self._longest() or 0)
        op.filter = FILTERS[filter_name("Resize", self.interpolation)]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class ResizeLongest(Op):
    """Resize the longer side to `size` pixels, with antialiasing; the aspect ratio stays. PadToSize may follow.

    It is Resize(None, max_size=size). SAM's ResizeLongestSide and albumentations' LongestMaxSize do the same, but round
    the shorter side, which torchvision and this operation cut down.

    interpolation, antialias: as in Resize.
    """

    size: SupportsIndex
    interpolation: Interpolation = "bilinear"
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        _check_filter(self, antialias)
        _check_side(self, "size")

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_resize_longest(self.size)
        op.filter = FILTERS[self.interpolation]  # type: ignore[index]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class PadToSize(Op):
    """Pad to height x width pixels. An image that is larger is a bad sample: resize it first, for example by
    ResizeLongest.

    position: position of the image in the result: "center", with the smaller half of the padding at the left and at the
        top, or "top_left".
    fill: one byte, or one for each channel.
    """

    height: SupportsIndex
    width: SupportsIndex
    position: str = "center"
    fill: Fill = 0

    def __post_init__(self) -> None:
        _check_side(self, "height")
        _check_side(self, "width")
        _name_of("PadToSize.position", self.position, _c.NAMES["position"])
        object.__setattr__(self, "fill", fill_of("PadToSize.fill", self.fill))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_pad_to_size(self.height, self.width, _c.NAMES["position"][self.position])
        op.fill[:] = self.fill
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class Letterbox(Op):
    """Resize to fit into `size`, so that the aspect ratio stays, and pad the rest: Pillow's ImageOps.pad.

    size: int or (height, width), pixels.
    fill: one byte, or one for each channel. YOLO fills with 114.
    position: position of the image in the result: "center" or "top_left".
    interpolation, antialias: as in Resize.
    """

    size: Size
    fill: Fill = 0
    position: str = "center"
    interpolation: Interpolation = "bilinear"
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        _check_filter(self, antialias)
        _name_of("Letterbox.position", self.position, _c.NAMES["position"])
        object.__setattr__(self, "size", size_of("Letterbox", self.size))
        object.__setattr__(self, "fill", fill_of("Letterbox.fill", self.fill))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_letterbox(*size_of("Letterbox", self.size), _c.NAMES["position"][self.position])
        op.filter = FILTERS[self.interpolation]  # type: ignore[index]
        op.fill[:] = self.fill
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class Pad(Op):
    """Pad by pixels on all sides.

    padding: pixels on all sides, or (left and right, top and bottom), or (left, top, right, bottom).
    fill: for padding_mode="constant": a byte, or one for each channel.
    padding_mode: "constant", "edge", "reflect" or "symmetric".
    """

    padding: Size
    fill: Fill = 0
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        _name_of("Pad.padding_mode", self.padding_mode, {mode: i for i, mode in enumerate(PADDING_MODES)})
        object.__setattr__(self, "padding", padding_of("Pad", self.padding))
        object.__setattr__(self, "fill", fill_of("Pad.fill", self.fill))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_pad(*padding_of("Pad", self.padding), PADDING_MODES.index(self.padding_mode))
        op.fill[:] = self.fill
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class CornerCrop(Op):
    """Cut out one part of torchvision's FiveCrop. An image that is smaller is a bad sample. penstock.ops.five_crop
    makes outputs of all five parts.

    size: int or (height, width), pixels.
    corner: "top_left", "top_right", "bottom_left", "bottom_right" or "center".
    """

    size: Size
    corner: str

    def __post_init__(self) -> None:
        _name_of("CornerCrop.corner", self.corner, _c.NAMES["corner"])
        object.__setattr__(self, "size", size_of("CornerCrop", self.size))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_corner_crop(*size_of("CornerCrop", self.size), _c.NAMES["corner"][self.corner])
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class ScaleJitter(Op):
    """Resize by a random scale, so that the aspect ratio stays: torchvision.transforms.v2.ScaleJitter, the large-scale
    jitter of detectors. A crop or padding must follow: RandomCrop(size, pad_if_needed=True).

    target_size: two numbers of pixels. At scale 1 the image just fits into them; as in torchvision, the first one
        limits the width.
    scale_range: smallest and largest scale.
    interpolation, antialias: as in Resize.
    """

    target_size: Sequence[SupportsIndex]
    scale_range: Sequence[float] = (0.1, 2.0)
    interpolation: Interpolation = "bilinear"
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        _check_filter(self, antialias)
        if isinstance(self.target_size, (str, bytes)) or not isinstance(self.target_size, Sequence) \
                or len(self.target_size) != 2:
            raise ValueError(f"ScaleJitter.target_size: value is {self.target_size!r}; must be two numbers of pixels")
        target = tuple(whole("ScaleJitter.target_size", side, 1, MAX_SIDE) for side in self.target_size)
        object.__setattr__(self, "target_size", target)
        object.__setattr__(self, "scale_range", pair("ScaleJitter.scale_range", self.scale_range, MIN_SCALE,
                                                     MAX_SIDE / max(target)))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_scale_jitter(*self.target_size, *self.scale_range)
        op.filter = FILTERS[self.interpolation]  # type: ignore[index]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomZoomOut(Op):
    """Put the image at a random position of a larger canvas, with probability p:
    torchvision.transforms.v2.RandomZoomOut, of SSD. The whole canvas is made before the next operation: it takes side *
    side times the memory of the image.

    fill: value of the canvas, a byte or one for each channel.
    side_range: smallest and largest side of the canvas, in sides of the image, 1 to 16.
    """

    fill: Fill = 0
    side_range: Sequence[float] = (1.0, 4.0)
    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "fill", fill_of("RandomZoomOut.fill", self.fill))
        object.__setattr__(self, "side_range", pair("RandomZoomOut.side_range", self.side_range, 1, MAX_SIDES))
        object.__setattr__(self, "p", probability("RandomZoomOut.p", self.p))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_zoom_out(*self.side_range, self.p)
        op.fill[:] = self.fill
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomShortestSize(Op):
    """Resize the shorter side to one of several sizes, drawn for each image:
    torchvision.transforms.v2.RandomShortestSize. A crop or padding must follow.

    min_size: pixels of the shorter side, a number or up to 12 of them.
    max_size: the most pixels of the longer side; if needed the shorter side gets less. None: no limit, but an image
        whose longer side would become longer than 16 times the largest min_size is a bad sample.
    interpolation, antialias: as in Resize.
    """

    min_size: Union[SupportsIndex, Sequence[SupportsIndex]]
    max_size: Optional[SupportsIndex] = None
    interpolation: Interpolation = "bilinear"
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        _check_filter(self, antialias)
        given = self.min_size if isinstance(self.min_size, Sequence) else (self.min_size,)
        if isinstance(given, (str, bytes)) or not 1 <= len(given) <= _c.MAX_OP_PARAMS:
            raise ValueError(f"RandomShortestSize.min_size: value is {self.min_size!r}; must be 1 to "
                             f"{_c.MAX_OP_PARAMS} numbers of pixels")
        object.__setattr__(self, "min_size", tuple(whole("RandomShortestSize.min_size", side, 1, MAX_SIDE)
                                                   for side in given))
        if self.max_size is not None:
            _check_side(self, "max_size")

    def to_c(self) -> _c.Op:
        op = _c.Op(kind=_c.OP_RANDOM_SHORTEST_SIZE, width=self.max_size or 0, filter=FILTERS[
            self.interpolation])  # type: ignore[index]
        op.params.random_shortest_size.sides[:len(self.min_size)] = self.min_size  # type: ignore[arg-type]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomResize(Op):
    """Resize the shorter side to a random number of pixels, drawn for each image; the aspect ratio stays:
    torchvision.transforms.v2.RandomResize. A crop or padding must follow.

    min_size: least number of pixels.
    max_size: end of the range: the number is below it.
    interpolation, antialias: as in Resize.
    """

    min_size: SupportsIndex
    max_size: SupportsIndex
    interpolation: Interpolation = "bilinear"
    antialias: InitVar[Optional[bool]] = True

    def __post_init__(self, antialias: Optional[bool]) -> None:
        _check_filter(self, antialias)
        _check_side(self, "min_size")
        _check_side(self, "max_size")
        if not self.min_size < self.max_size:  # type: ignore[operator]
            raise ValueError(f"RandomResize.max_size: value is {self.max_size}; must be above min_size, "
                             f"{self.min_size}")

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_resize(self.min_size, self.max_size)
        op.filter = FILTERS[self.interpolation]  # type: ignore[index]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomFlip(Op):
    """Exchange left and right with probability p. RandomHorizontalFlip is the same class, by torchvision's name."""

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("RandomFlip.p", self.p))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_flip(self.p)
        return op


RandomHorizontalFlip = RandomFlip


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomVerticalFlip(Op):
    """Exchange top and bottom with probability p."""

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("RandomVerticalFlip.p", self.p))

    def to_c(self) -> _c.Op:
        op: _c.Op = _c.lib.pstk_random_vertical_flip(self.p)
        return op
