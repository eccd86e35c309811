# SPDX-License-Identifier: Apache-2.0
"""Operations that move or blur pixels at random: torchvision's for PIL images, with Pillow's pixels."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from .. import _c
from ..arguments import number, numbers, pair, probability, switch, whole
from ..elsewhere import OP_KEYWORDS
from ..hints import explains, near_or_all
from .op import Op

__all__ = ["GaussianBlur", "RandomAffine", "RandomBoxBlur", "RandomPerspective", "RandomRotation"]

MAX_ANGLE = 3600  # degrees
MAX_CENTER = 1e9  # pixels
MAX_RADIUS = 1e4  # pixels
MAX_KERNEL = 127  # pixels
FILTERS = {"nearest": _c.FILTER_NEAREST, "bilinear": _c.FILTER_BILINEAR, "bicubic": _c.FILTER_BICUBIC}
# filters by the numbers of PIL.Image.Resampling
PILLOW = {0: "nearest", 2: "bilinear", 3: "bicubic"}

Fill = Union[int, Sequence[int], None]
Degrees = Union[float, Sequence[float]]


def warp_filter(what: str, interpolation: Any) -> str:
    """Return the name of a filter. The value is a name, a member of torchvision's InterpolationMode, or Pillow's
    number. Raises ValueError."""
    name = getattr(interpolation, "value", interpolation)
    name = PILLOW.get(name, name) if isinstance(name, int) else name
    if not isinstance(name, str) or name not in FILTERS:
        raise ValueError(f"{what}: value is {interpolation!r}; must be nearest, bilinear or bicubic"
                         + (near_or_all(name, FILTERS) if isinstance(name, str) else ""))
    return name


def fill_of(what: str, fill: Fill) -> tuple[int, ...]:
    """Return the four bytes of pixels from outside. fill: None, one byte for all channels, or one for each. Raises
    TypeError and ValueError."""
    if fill is None:
        return (0, 0, 0, 0)
    if not isinstance(fill, Sequence):
        return (whole(what, fill, 0, 255),) * 4
    if len(fill) not in (1, 3, 4):
        raise ValueError(f"{what}: value is {fill!r}; must be a number, or one for each channel")
    found = tuple(whole(what, value, 0, 255) for value in fill)
    return found * 4 if len(found) == 1 else found + (0,) * (4 - len(found))


def warp(kind: int, params: Sequence[float], interpolation: str, fill: tuple[int, ...]) -> _c.Op:
    """Return a warp as a struct for the library."""
    op = _c.Op(kind=kind, filter=FILTERS[interpolation])
    op.params.values[:len(params)] = params
    op.fill[:] = fill
    return op


def _angles(what: str, degrees: Degrees) -> tuple[float, float]:
    """Return a range of angles. A number x means -x to x. Raises TypeError and ValueError."""
    if isinstance(degrees, Sequence) and not isinstance(degrees, (str, bytes)):
        return pair(what, degrees, -MAX_ANGLE, MAX_ANGLE)
    most = number(what, degrees, 0, MAX_ANGLE)
    return -most, most


def _center(what: str, center: Optional[Sequence[float]]) -> Optional[tuple[float, ...]]:
    if center is None:
        return None
    return numbers(what, center, 2, -MAX_CENTER, MAX_CENTER, "two numbers, x and y, or None")


def check_warp(op: Op) -> None:
    """Check `interpolation` and `fill` of a frozen operation. Stores a name and four bytes."""
    name = type(op).__name__
    object.__setattr__(op, "interpolation", warp_filter(f"{name}.interpolation", getattr(op, "interpolation")))
    object.__setattr__(op, "fill", fill_of(f"{name}.fill", getattr(op, "fill")))


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomRotation(Op):
    """Rotate by a random angle, counter-clockwise.

    degrees: x for -x to x, or (least, greatest).
    interpolation: "nearest", "bilinear" or "bicubic".
    expand: grow the image to hold all of the rotated one; a crop or a resize must follow.
    center: the fixed point (x, y), pixels from the top left; None: the middle.
    fill: value of pixels from outside; None: 0.
    """

    degrees: Degrees
    interpolation: Any = "nearest"
    expand: bool = False
    center: Optional[Sequence[float]] = None
    fill: Fill = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degrees", _angles("RandomRotation.degrees", self.degrees))
        object.__setattr__(self, "expand", switch("RandomRotation.expand", self.expand))
        object.__setattr__(self, "center", _center("RandomRotation.center", self.center))
        check_warp(self)

    def to_c(self) -> _c.Op:
        place = (0.0, 0.0, 0.0) if self.center is None else (1.0, *self.center)
        params = (*self.degrees, float(self.expand), *place)  # type: ignore[misc]
        return warp(_c.OP_RANDOM_ROTATION, params, self.interpolation, self.fill)  # type: ignore[arg-type]


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomAffine(Op):
    """Rotate, move, scale and shear, each at random.

    degrees: x for -x to x, or (least, greatest), clockwise.
    translate: greatest parts of width and of height, 0 to 1; None: the image is not moved.
    scale: (least, greatest); None: the image is not scaled.
    shear: degrees: x for -x to x along x; (least, greatest) along x; or four numbers, along x and then along y. None:
        the image is not sheared.
    interpolation, fill, center: as in RandomRotation.
    """

    degrees: Degrees
    translate: Optional[Sequence[float]] = None
    scale: Optional[Sequence[float]] = None
    shear: Union[float, Sequence[float], None] = None
    interpolation: Any = "nearest"
    fill: Fill = 0
    center: Optional[Sequence[float]] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _center("RandomAffine.center", self.center))
        object.__setattr__(self, "degrees", _angles("RandomAffine.degrees", self.degrees))
        object.__setattr__(self, "translate", self._translations())
        object.__setattr__(self, "scale", (1.0, 1.0) if self.scale is None else
                           pair("RandomAffine.scale", self.scale, 1e-6, 1e6))
        object.__setattr__(self, "shear", self._shears())
        check_warp(self)

    def _translations(self) -> tuple[float, ...]:
        if self.translate is None:
            return (0.0, 0.0)
        return numbers("RandomAffine.translate", self.translate, 2, 0, 1)

    def _shears(self) -> tuple[float, ...]:
        """Return the ranges along x and along y, four numbers. Raises TypeError and ValueError."""
        given = self.shear
        if given is None:
            return (0.0, 0.0, 0.0, 0.0)
        if isinstance(given, Sequence) and len(given) == 4:
            return (*_angles("RandomAffine.shear", given[:2]), *_angles("RandomAffine.shear", given[2:]))
        return (*_angles("RandomAffine.shear", given), 0.0, 0.0)

    def to_c(self) -> _c.Op:
        params = (*self.degrees, *self.translate, *self.scale, *self.shear)  # type: ignore[misc]
        op = warp(_c.OP_RANDOM_AFFINE, params, self.interpolation, self.fill)  # type: ignore[arg-type]
        if self.center is not None:
            op.flags = _c.OP_HAS_CENTER
            op.params.random_affine.center[:] = self.center
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomPerspective(Op):
    """Move the corners inwards at random, with probability p.

    distortion_scale: the largest move, 0 to 1; 1 is up to the middle.
    interpolation, fill: as in RandomRotation.
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: Any = "bilinear"
    fill: Fill = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "distortion_scale",
                           number("RandomPerspective.distortion_scale", self.distortion_scale, 0, 1))
        object.__setattr__(self, "p", probability("RandomPerspective.p", self.p))
        check_warp(self)

    def to_c(self) -> _c.Op:
        return warp(_c.OP_RANDOM_PERSPECTIVE, (self.distortion_scale, self.p),
                    self.interpolation, self.fill)  # type: ignore[arg-type]


def kernel_of(what: str, size: Any) -> tuple[int, int]:
    """Return (width, height) of a kernel, odd numbers; an int is both. Raises TypeError and ValueError."""
    sizes = tuple(size) if isinstance(size, Sequence) and not isinstance(size, (str, bytes)) else (size, size)
    found = tuple(whole(what, value, 1, MAX_KERNEL) for value in sizes)
    if len(found) != 2 or not all(value % 2 for value in found):
        raise ValueError(f"{what}: value is {size!r}; must be an odd number of pixels, or (width, height) of such")
    return found[0], found[1]


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class GaussianBlur(Op):
    """Blur with a random sigma: torchvision's GaussianBlur. Pillow's ImageFilter.GaussianBlur, which timm and DINO use,
    is RandomBoxBlur.

    kernel_size: an odd number of pixels, or (width, height).
    sigma: a number, or (least, greatest), in pixels.
    """

    kernel_size: Union[int, Sequence[int]]
    sigma: Union[float, Sequence[float]] = (0.1, 2.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel_size", kernel_of("GaussianBlur.kernel_size", self.kernel_size))
        given = self.sigma if isinstance(self.sigma, Sequence) else (self.sigma, self.sigma)
        object.__setattr__(self, "sigma", pair("GaussianBlur.sigma", given, 1e-6, MAX_RADIUS))

    def to_c(self) -> _c.Op:
        op = _c.Op(kind=_c.OP_RANDOM_GAUSSIAN_BLUR)
        op.params.random_gaussian_blur = _c.RandomGaussianBlurParams(self.kernel_size, *self.sigma)  # type: ignore[misc]
        return op


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomBoxBlur(Op):
    """Blur as Pillow's ImageFilter.GaussianBlur, by three boxes, with a random radius: the blur of timm and DINO. For a
    probability, put it into RandomApply.

    radius: (least, greatest), in pixels.
    """

    radius: Sequence[float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", pair("RandomBoxBlur.radius", self.radius, 0, MAX_RADIUS))

    def to_c(self) -> _c.Op:
        op = _c.Op(kind=_c.OP_RANDOM_BOX_BLUR)
        op.params.random_box_blur = _c.RandomBoxBlurParams(*self.radius)
        return op
