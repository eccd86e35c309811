# SPDX-License-Identifier: Apache-2.0
"""Operations on pixels of your own: torchvision's functional names and arguments, on NumPy arrays.

All functions return a new array. Its pixels are those that torchvision.transforms.functional gives for a PIL image, and
those that a loader makes.

img: a uint8 array, [height, width] or [height, width, channels] with 1, 3 or 4 channels; it is not changed.
kernels: "auto", "c", "avx2", "avx512" or "neon"; all give the same pixels.
reference: "pil", or "tensor" for the pixels that torchvision.transforms.v2.functional gives for a uint8 tensor, if it
    has the function.

Wrong arguments raise TypeError, ValueError or SettingsError; an operation that a reference lacks raises
UnsupportedError.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import byref, c_double
from typing import TYPE_CHECKING, Any, SupportsIndex, Union

from . import _c, errors
from ._optional import needed
from .arguments import Interpolation, is_bool, items, named, number, numbers, switch, whole
from .ops.call import Call
from .ops.colour import Grayscale
from .ops.crop import CenterCrop, RandomResizedCrop
from .ops.geometry import CornerCrop, Resize
from .ops.op import Size
from .ops.warp import Fill, fill_of, kernel_of, warp, warp_filter
from .outputs import renamed

if TYPE_CHECKING:
    import numpy
    Array = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]

__all__ = ["adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
           "adjust_sharpness", "affine", "autocontrast", "box_blur", "call", "center_crop", "crop", "equalize", "five_crop",
           "gaussian_blur", "hflip", "invert", "jpeg", "mix", "pad", "permute_channels", "perspective", "posterize", "resize",
           "resized_crop", "rgb_to_grayscale", "rotate", "solarize", "solarize_add", "ten_crop",
           "to_grayscale", "transform", "vflip"]

MAX_SIDE = 65535  # pixels
REFERENCES = _c.NAMES["reference"]

# ---- one operation on one array ----------------------------------------------------------------------------


def shape_of(name: str, shape: Sequence[SupportsIndex]) -> _c.Shape:
    """Return an image's shape as the library's struct. shape: (height, width) or (height, width, channels)."""
    must = "(height, width) or (height, width, channels)"
    sides = tuple(items(f"{name}.shape", shape, must))
    if any(not isinstance(side, SupportsIndex) for side in sides):
        raise TypeError(f"{name}.shape: value is {sides}; must be {must}")
    if len(sides) not in (2, 3):
        raise ValueError(f"{name}: shape is {sides}; must be (height, width) or (height, width, channels)")
    channels = int(sides[2]) if len(sides) == 3 else 1
    if channels not in (1, 3, 4):
        raise ValueError(f"{name}: shape is {sides}; must have 1, 3 or 4 channels, the last dimension")
    if not all(1 <= int(side) <= MAX_SIDE for side in sides[:2]):
        raise ValueError(f"{name}: shape is {sides}; must have a height and a width from 1 to {MAX_SIDE} pixels")
    return _c.Shape(height=int(sides[0]), width=int(sides[1]), channels=channels)


def _pixels(name: str, img: Any) -> Any:
    """Return the array's pixels, in rows without gaps."""
    numpy = needed("numpy", "penstock.functional")
    if not isinstance(img, numpy.ndarray):
        raise TypeError(f"{name}.img: value is of {type(img).__name__}; must be a NumPy array (write "
                        "numpy.asarray(image))")
    if img.dtype != numpy.uint8:
        raise TypeError(f"{name}.img: dtype is {img.dtype}; must be uint8")
    return numpy.ascontiguousarray(img)


def _check(name: str, result: int, error: _c.Error) -> None:
    """Raise the exception of a call that failed, with the function's name before the message."""
    if result < 0:
        message = renamed(error.message.decode(errors="replace").removeprefix("op: "))
        error.message = f"{name}: {message}".encode()[:400]
        raise errors.of(error, result)


def _kernels(name: str, kernels: str) -> int:
    found: int = named(f"{name}.kernels", kernels, _c.NAMES["kernels"], "the name of an instruction set")
    return found


def _flags(name: str, reference: str) -> int:
    named(f"{name}.reference", reference, REFERENCES, "the name of a reference")
    return _c.OP_TENSOR if reference == "tensor" else 0


def _apply(name: str, img: Any, op: _c.Op, kernels: str, reference: str) -> Array:
    """Apply a fixed operation, and return the new array. name: the function's, for messages."""
    op.flags |= _flags(name, reference)
    pixels, code, error = _pixels(name, img), _kernels(name, kernels), errors.new()
    before, after = shape_of(f"{name}.img", img.shape), _c.Shape()

    def call(out: Any) -> None:
        _check(name, _c.lib.pstk_op_apply(byref(op), code, pixels.ctypes.data, byref(before), out, byref(after),
                                          byref(error)), error)
    call(None)
    shape = (after.height, after.width, after.channels)
    found: Array = needed("numpy", "penstock.functional").empty(shape, "uint8")
    call(found.ctypes.data)
    return found[:, :, 0] if img.ndim == 2 and after.channels == 1 else found


def _adjust(name: str, img: Any, kind: int, params: Sequence[Any], kernels: str,
            reference: str) -> Array:
    """Apply an operation whose parameters are numbers. The library checks their ranges."""
    op = _c.Op(kind=kind)
    must = f"{name}: value is {', '.join(map(repr, params))}; must be {len(params)} number{'s' if len(params) > 1 else ''}"
    if any(map(is_bool, params)):
        raise TypeError(must)
    try:
        op.params.values[:len(params)] = [float(value) for value in params]
    except OverflowError:
        raise ValueError(must) from None
    except (TypeError, ValueError):
        raise TypeError(must) from None
    return _apply(name, img, op, kernels, reference)


def _warp(name: str, img: Any, kind: int, params: Sequence[Any], interpolation: Any, fill: Fill, kernels: str,
          reference: str) -> Array:
    """Apply a warp."""
    given = [number(name, value, -1e9, 1e9) for value in params]
    op = warp(kind, given, warp_filter(f"{name}.interpolation", interpolation), fill_of(f"{name}.fill", fill))
    return _apply(name, img, op, kernels, reference)


# ---- geometry ----------------------------------------------------------------------------------------------


def resize(img: Array, size: Size | None, interpolation: Interpolation = "bilinear",
           max_size: SupportsIndex | None = None, antialias: bool | None = True, *,
           kernels: str = "auto", reference: str = "pil") -> Array:
    """Resize, as penstock.ops.Resize: to size (height, width), or the shorter side to an int. With size=None, resize
    the longer side to max_size."""
    return _apply("resize", img, Resize(size, interpolation, max_size, antialias).to_c(), kernels, reference)


def resized_crop(img: Array, top: int, left: int, height: int, width: int, size: Size,
                 interpolation: Interpolation = "bilinear", antialias: bool | None = True, *,
                 kernels: str = "auto", reference: str = "pil") -> Array:
    """Cut out height x width pixels at (top, left), and resize them to size, (height, width) or an int for both."""
    op = RandomResizedCrop(size, interpolation=interpolation, antialias=antialias).to_c()
    op.kind = _c.DRAWN_RESIZED_CROP
    op.params.resized_crop = _c.ResizedCropParams(**{
        name: whole(f"resized_crop.{name}", value, 0, MAX_SIDE) for name, value in
        (("top", top), ("left", left), ("height", height), ("width", width))})
    return _apply("resized_crop", img, op, kernels, reference)


def center_crop(img: Array, output_size: Size, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Cut out the middle. Pixels that the image lacks are black."""
    return _apply("center_crop", img, CenterCrop(output_size).to_c(), kernels, reference)


def hflip(img: Array, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Exchange left and right."""
    return _adjust("hflip", img, _c.OP_FLIP_HORIZONTAL, (), kernels, reference)


def vflip(img: Array, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Exchange top and bottom."""
    return _adjust("vflip", img, _c.OP_FLIP_VERTICAL, (), kernels, reference)


def crop(img: Array, top: int, left: int, height: int, width: int, fill: Fill = None, *,
         kernels: str = "auto", reference: str = "pil") -> Array:
    """Cut out height x width pixels at (top, left), which may be negative. Pixels that the image lacks get fill; None
    is black."""
    op = _c.Op(kind=_c.OP_CROP, height=whole("crop.height", height, 1, MAX_SIDE),
               width=whole("crop.width", width, 1, MAX_SIDE))
    op.params.crop = _c.CropParams(**{name: whole(f"crop.{name}", value, -MAX_SIDE, MAX_SIDE) for name, value in
                                      (("top", top), ("left", left))})
    op.fill[:] = fill_of("crop.fill", fill)
    return _apply("crop", img, op, kernels, reference)


def five_crop(img: Array, size: Size, *, kernels: str = "auto", reference: str = "pil") -> tuple[Array, ...]:
    """Return five parts of the image: its corners, top left, top right, bottom left and bottom right, and the middle."""
    return tuple(_apply("five_crop", img, CornerCrop(size, corner).to_c(), kernels, reference) for corner in _c.NAMES["corner"])


def ten_crop(img: Array, size: Size, vertical_flip: bool = False, *, kernels: str = "auto", reference: str = "pil") -> tuple[Array, ...]:
    """Return five_crop of the image, and then five_crop of the mirrored image. Left and right are exchanged, or with
    vertical_flip top and bottom."""
    flipped = vflip(img, kernels=kernels, reference=reference) if switch("ten_crop.vertical_flip", vertical_flip) else hflip(img, kernels=kernels, reference=reference)
    return five_crop(img, size, kernels=kernels, reference=reference) + five_crop(flipped, size, kernels=kernels, reference=reference)


def pad(img: Array, padding: int | Sequence[int], fill: Fill = 0, padding_mode: str = "constant", *,
        kernels: str = "auto", reference: str = "pil") -> Array:
    """Add pixels on all sides.

    padding: pixels on all sides, or (left and right, top and bottom), or (left, top, right, bottom).
    padding_mode: "constant", which adds fill, "edge", "reflect" or "symmetric".
    """
    sides = tuple(padding) if isinstance(padding, Sequence) else (padding,)
    sides = sides * 4 if len(sides) == 1 else sides * 2 if len(sides) == 2 else sides
    if len(sides) != 4:
        raise ValueError(f"pad.padding: value is {padding!r}; must be one, two or four numbers of pixels")
    mode = named("pad.padding_mode", padding_mode, _c.NAMES["pad_mode"], "the name of a mode")
    op = _c.Op(kind=_c.OP_PAD)
    op.params.pad = _c.PadParams(*(whole("pad.padding", side, 0, MAX_SIDE) for side in sides), mode=mode)
    op.fill[:] = fill_of("pad.fill", fill)
    return _apply("pad", img, op, kernels, reference)


# ---- warps and blurs ---------------------------------------------------------------------------------------


def rotate(img: Array, angle: float, interpolation: Any = "nearest", expand: bool = False,
           center: Sequence[float] | None = None, fill: Fill = None, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Rotate by an angle in degrees, counter-clockwise.

    center: the fixed point (x, y), pixels; None: the middle.
    expand: grow the image to hold all of the rotated one.
    interpolation: "nearest", "bilinear" or "bicubic".
    fill: value of pixels from outside; None: 0.
    """
    place = (0.0, 0.0, 0.0) if center is None else (1.0, *numbers("rotate.center", center, 2))
    return _warp("rotate", img, _c.OP_ROTATE, (angle, float(switch("rotate.expand", expand)), *place), interpolation, fill, kernels, reference)


def affine(img: Array, angle: float, translate: Sequence[float], scale: float, shear: float | Sequence[float],
           interpolation: Any = "nearest", fill: Fill = None, center: Sequence[float] | None = None, *,
           kernels: str = "auto", reference: str = "pil") -> Array:
    """Rotate clockwise, move, scale and shear.

    angle: degrees.
    translate: pixels (x, y).
    scale: factor.
    shear: degrees along x, or (x, y).
    center: the fixed point (x, y), pixels; None: half the width, half the height.
    """
    shape = shape_of("affine.img", _pixels("affine", img).shape)
    sheared = numbers("affine.shear", shear, (1, 2)) if isinstance(shear, Sequence) else (number("affine.shear", shear, -1e9, 1e9),)
    about = (shape.width * 0.5, shape.height * 0.5) if center is None else numbers("affine.center", center, 2)
    matrix, pair_of = (c_double * 6)(), c_double * 2
    if _c.lib.pstk_affine_matrix(matrix, number("affine.angle", angle, -1e9, 1e9), pair_of(*numbers("affine.translate", translate, 2)),
                                 number("affine.scale", scale, -1e9, 1e9), pair_of(*(*sheared, 0.0)[:2]), pair_of(*about)) < 0:
        raise ValueError(f"affine: angle is {angle!r}, scale {scale!r}, shear {shear!r}; angles must be below 3600 "
                         "degrees, and the scale above 0")
    return _warp("affine", img, _c.OP_AFFINE, tuple(matrix), interpolation, fill, kernels, reference)


def _corners(what: str, points: Any) -> tuple[float, ...]:
    """Return the eight coordinates of four points."""
    must = "four points, each of two numbers, x and y"
    try:
        given = [tuple(point) for point in points]
    except TypeError:
        raise TypeError(f"{what}: value is {points!r}; must be {must}") from None
    if [len(point) for point in given] != [2] * 4:
        raise ValueError(f"{what}: value is {points!r}; must be {must}")
    return numbers(what, [value for point in given for value in point], 8, must=must)


def perspective(img: Array, startpoints: Sequence[Sequence[float]], endpoints: Sequence[Sequence[float]],
                interpolation: Any = "bilinear", fill: Fill = None, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Move the corners of the image. startpoints, endpoints: four times (x, y), clockwise from the top left."""
    matrix, corners = (c_double * 8)(), [(c_double * 8)(*_corners(f"perspective.{name}", points)) for name, points in
                                         (("startpoints", startpoints), ("endpoints", endpoints))]
    if _c.lib.pstk_perspective_matrix(matrix, *corners) < 0:
        raise ValueError(f"perspective: endpoints are {endpoints!r}; no three corners may be on one line")
    return _warp("perspective", img, _c.OP_PERSPECTIVE, tuple(matrix), interpolation, fill, kernels, reference)


def transform(img: Array, matrix: Sequence[float], interpolation: Any = "nearest", fill: Fill = None, *,
              kernels: str = "auto", reference: str = "pil") -> Array:
    """Move pixels as Pillow's Image.transform does; the size stays. Random affine operations draw this function.

    matrix: six numbers, for which (x, y) gets the pixel at (a x + b y + c, d x + e y + f); or eight, for which both
        coordinates are divided by g x + h y + 1.
    """
    matrix = numbers("transform.matrix", matrix, (6, 8), must="six numbers (affine) or eight (perspective)")
    kind = _c.OP_AFFINE if len(matrix) == 6 else _c.OP_PERSPECTIVE
    return _warp("transform", img, kind, matrix, interpolation, fill, kernels, reference)


def gaussian_blur(img: Array, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None, *,
                  kernels: str = "auto", reference: str = "pil") -> Array:
    """Blur by a Gaussian kernel. A few bytes of a million differ from torchvision's by 1.

    kernel_size: an odd number of pixels, or (width, height).
    sigma: pixels, or (x, y); None: 0.3 * ((size - 1) / 2 - 1) + 0.8, as in torchvision.
    """
    sizes = kernel_of("gaussian_blur.kernel_size", kernel_size)
    if sigma is None:
        sigma = [size * 0.15 + 0.35 for size in sizes]
    sigmas = numbers("gaussian_blur.sigma", sigma if isinstance(sigma, Sequence) else [sigma], (1, 2), must="a number of pixels, or two")
    return _adjust("gaussian_blur", img, _c.OP_GAUSSIAN_BLUR, (*sizes, *(sigmas * 2)[:2]), kernels, reference)


def box_blur(img: Array, radius: float, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Blur as Pillow's ImageFilter.GaussianBlur(radius) does, by three boxes along each axis."""
    return _adjust("box_blur", img, _c.OP_BOX_BLUR, (radius, radius), kernels, reference)


def jpeg(img: Array, quality: int, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Save as a JPEG file of this quality, 1 to 100, and read it again. The image has 1 or 3 channels. Both references
    have the same pixels."""
    return _adjust("jpeg", img, _c.OP_JPEG, [whole("jpeg.quality", quality, 1, 100)], kernels, reference)


# ---- colours -----------------------------------------------------------------------------------------------


def rgb_to_grayscale(img: Array, num_output_channels: int = 1, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Convert to the luma of each pixel, as Pillow's convert("L") does: one channel, or three equal ones."""
    return _apply("rgb_to_grayscale", img, Grayscale(num_output_channels).to_c(), kernels, reference)


def to_grayscale(img: Array, num_output_channels: int = 1, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Do the same as rgb_to_grayscale: torchvision has both names."""
    return _apply("to_grayscale", img, Grayscale(num_output_channels).to_c(), kernels, reference)


def adjust_brightness(img: Array, brightness_factor: float, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Multiply by a factor: 0 is black, 1 changes nothing."""
    return _adjust("adjust_brightness", img, _c.OP_BRIGHTNESS, [brightness_factor], kernels, reference)


def adjust_contrast(img: Array, contrast_factor: float, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Blend each pixel with the mean luma of the image: factor 0 gives that gray, 1 changes nothing, more increases the
    contrast."""
    return _adjust("adjust_contrast", img, _c.OP_CONTRAST, [contrast_factor], kernels, reference)


def adjust_saturation(img: Array, saturation_factor: float, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Blend each pixel with its luma: factor 0 gives gray, 1 changes nothing, more increases the saturation."""
    return _adjust("adjust_saturation", img, _c.OP_SATURATION, [saturation_factor], kernels, reference)


def adjust_hue(img: Array, hue_factor: float, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Turn the colours by a part of the colour wheel, -0.5 to 0.5."""
    return _adjust("adjust_hue", img, _c.OP_HUE, [hue_factor], kernels, reference)


def adjust_gamma(img: Array, gamma: float, gain: float = 1, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Replace each byte x by 255 * gain * (x / 255) ** gamma."""
    return _adjust("adjust_gamma", img, _c.OP_GAMMA, [gamma, gain], kernels, reference)


def adjust_sharpness(img: Array, sharpness_factor: float, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Blend the image with a smoothed one: factor 0 blurs, 1 changes nothing, 2 sharpens."""
    return _adjust("adjust_sharpness", img, _c.OP_SHARPNESS, [sharpness_factor], kernels, reference)


def invert(img: Array, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Replace each byte x by 255 - x."""
    return _adjust("invert", img, _c.OP_INVERT, (), kernels, reference)


def posterize(img: Array, bits: int, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Keep the upper bits of each byte. bits: their number, 0 to 8."""
    return _adjust("posterize", img, _c.OP_POSTERIZE, [bits], kernels, reference)


def solarize(img: Array, threshold: float, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Invert the bytes that are not below the threshold, 0 to 256."""
    return _adjust("solarize", img, _c.OP_SOLARIZE, [threshold], kernels, reference)


def solarize_add(img: Array, addition: int, threshold: int = 128, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Add a number to each byte below the threshold, and clip the result: timm's SolarizeAdd."""
    return _adjust("solarize_add", img, _c.OP_SOLARIZE_ADD, [addition, threshold], kernels, reference)


def autocontrast(img: Array, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Stretch each channel to the range 0 to 255."""
    return _adjust("autocontrast", img, _c.OP_AUTOCONTRAST, (), kernels, reference)


def equalize(img: Array, *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Make the levels of each channel equally frequent."""
    return _adjust("equalize", img, _c.OP_EQUALIZE, (), kernels, reference)


def call(img: Array, function: Any, random: Sequence[int] = (0, 0), scratch: int = 0, user: Any = None, *,
         kernels: str = "auto") -> Array:
    """Return a copy of img that a compiled function has changed, as penstock.ops.Call.

    random: two numbers below 2^64, which the function gets.
    scratch: bytes of scratch memory that the function gets.
    user: the function's first argument.
    """
    op = Call(function, scratch, user).to_c()
    random = items("call.random", random, "two whole numbers below 2^64")  # an array of two numbers is fine, too
    if len(random) != 2:
        raise ValueError(f"call.random: value is {random!r}; must be two whole numbers below 2^64")
    words = [whole("call.random", value, 0, 2**64 - 1) for value in random]
    op.params.call.random[:] = [word >> shift & 0xffffffff for word in words for shift in (0, 32)]
    return _apply("call", img, op, kernels, "pil")


_MIXES = _c.NAMES["chain_mode"]


def mix(img: Array, chains: Sequence[Sequence[Callable[..., Array]]], weights: Sequence[float], weight: float = 0,
        mode: str = "sum", *, kernels: str = "auto") -> Array:
    """Apply each chain of functions to img itself, and mix the results, in float32, as AugMix does.

    chains: lists of functions of an array and kernels=.
    weights: one for each chain.
    weight: the weight of img.
    mode: "sum": add img and the results, times their weights. "blended_sum": Image.blend from img to the sum of the
        results, by `weight`, as timm does. "blends": Image.blend from img to each result in turn, as timm does with
        blended=True.
    """
    numpy = needed("numpy", "penstock.functional")
    pixels: Array = _pixels("mix", img)
    changed = []
    named("mix.mode", mode, _MIXES, "the name of a mode")
    weight = number("mix.weight", weight, -1e9, 1e9)
    _kernels("mix", kernels)
    if not isinstance(chains, Sequence) or not all(isinstance(chain, Sequence) and all(map(callable, chain)) for chain in chains):
        raise TypeError(f"mix.chains: value is {chains!r}; must be lists of functions")
    weights = numbers("mix.weights", weights, len(chains), -1e9, 1e9, f"numbers, as many as there are chains ({len(chains)})")
    for chain in chains:
        found = pixels
        for function in chain:
            found = function(found, kernels=kernels)
        changed.append(found)

    def blend(first: Array, second: Array, alpha: float) -> Array:
        difference = second.astype("float32") - first
        return cut(first + numpy.float32(alpha) * difference)

    def cut(values: Any) -> Array:
        whole_parts: Array = numpy.clip(values, 0, 255).astype("uint8")
        return whole_parts

    if mode == "blends":
        for found, alpha in zip(changed, weights):
            pixels = blend(pixels, found, alpha)
        return pixels
    total = numpy.float32(weight if mode == "sum" else 0) * pixels.astype("float32")
    for found, share in zip(changed, weights):
        total += numpy.float32(share) * found.astype("float32")
    return cut(total) if mode == "sum" else blend(pixels, cut(total), weight)


def permute_channels(img: Array, permutation: Sequence[int], *, kernels: str = "auto", reference: str = "pil") -> Array:
    """Reorder the three channels: channel i of the result is channel permutation[i] of img."""
    permutation = items("permute_channels.permutation", permutation, "three numbers")  # torchvision's is a tensor
    if len(permutation) != 3 or shape_of("permute_channels.img", _pixels("permute_channels", img).shape).channels != 3:
        raise ValueError(f"permute_channels: permutation is {permutation!r}, the image's shape {img.shape}; must be "
                         "three numbers, and an image of three channels")
    permutation = [whole("permute_channels.permutation", value, 0, 2) for value in permutation]
    return _adjust("permute_channels", img, _c.OP_PERMUTE_CHANNELS, permutation, kernels, reference)
