# SPDX-License-Identifier: Apache-2.0
"""Masks of objects, made of the polygons and the runs in COCO's annotations: uint8 arrays [height, width] of 0 and 1,
with the bytes that pycocotools gives.

`size` is (height, width), as in COCO's files. All functions need NumPy, and raise TypeError, ValueError or
SettingsError for wrong arguments.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ctypes import POINTER, byref, c_double, c_uint8, c_uint32, c_uint64
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _c, errors
from ._optional import needed
from .arguments import whole

if TYPE_CHECKING:
    import numpy
    Array = numpy.ndarray[Any, Any]

__all__ = ["polygon_mask", "rle_counts", "rle_decode"]

MAX_RUN = 2**32 - 1


def _check(name: str, result: int, error: _c.Error) -> None:
    """Raise the exception of a call that failed, with the function's name before the message."""
    if result < 0:
        error.message = f"{name}: {error.message.decode(errors='replace')}".encode()[:400]
        raise errors.of(error, result)


def _sides(name: str, size: Sequence[SupportsIndex]) -> tuple[int, int]:
    try:
        height, width = size
    except (TypeError, ValueError):
        raise ValueError(f"{name}.size: value is {size!r}; must be (height, width)") from None
    return (whole(f"{name}.size, height", height, 1, _c.MAX_MASK_SIDE),
            whole(f"{name}.size, width", width, 1, _c.MAX_MASK_SIDE))


def rle_counts(counts: str | bytes) -> Array:
    """Return the runs of COCO's compressed counts: an array of uint32, COCO's uncompressed counts."""
    numpy = needed("numpy", "penstock.masks")
    if not isinstance(counts, (str, bytes)):
        raise TypeError(f"rle_counts.counts: value is of {type(counts).__name__}; must be str or bytes")
    text = counts.encode() if isinstance(counts, str) else counts
    runs, n, error = numpy.empty(len(text), numpy.uint32), c_uint64(), errors.new()
    _check("rle_counts", _c.lib.pstk_rle_parse(text, len(text), runs.ctypes.data_as(POINTER(c_uint32)), len(text),
                                               byref(n), byref(error)), error)
    found: Array = runs[:n.value].copy()
    return found


def _runs(counts: Any) -> Array:
    numpy = needed("numpy", "penstock.masks")
    if isinstance(counts, Mapping):
        raise TypeError("rle_decode.counts: value is a dict; must be its counts: write rle_decode(rle['counts'], rle['size'])")
    found = numpy.asarray(counts)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise TypeError(f"rle_decode.counts: value is an array of {found.dtype}, of shape {found.shape}; must be whole "
                        "numbers in one dimension, or COCO's compressed text")
    if found.size and not (0 <= int(found.min()) and int(found.max()) <= MAX_RUN):
        raise ValueError(f"rle_decode.counts: values are {found.min()} to {found.max()}; must be 0 to {MAX_RUN}")
    runs: Array = numpy.ascontiguousarray(found, numpy.uint32)
    return runs


def rle_decode(counts: Any, size: Sequence[SupportsIndex]) -> Array:
    """Decode runs to a mask. Runs are of 0 and 1 in turn, 0 first, down the columns of the image. counts: a list or
    array of whole numbers (a value of a field of kind rle), or COCO's compressed text."""
    numpy = needed("numpy", "penstock.masks")
    height, width = _sides("rle_decode", size)
    runs = rle_counts(counts) if isinstance(counts, (str, bytes)) else _runs(counts)
    mask: Array = numpy.empty((height, width), numpy.uint8)
    error = errors.new()
    _check("rle_decode", _c.lib.pstk_rle_decode(runs.ctypes.data_as(POINTER(c_uint32)), len(runs), height, width,
                                                mask.ctypes.data_as(POINTER(c_uint8)), byref(error)), error)
    return mask


_ONE = "write [polygon] for one"


def _corners(polygon: Any) -> Array:
    numpy = needed("numpy", "penstock.masks")
    try:
        points: Array = numpy.asarray(polygon, numpy.float64)
    except (TypeError, ValueError):
        raise TypeError(f"polygon_mask.polygons: a polygon is {str(polygon)[:60]!r}; must be numbers, [points, 2], or flat: "
                        "x, y, x, y, ...") from None
    if points.ndim == 0:
        raise ValueError(f"polygon_mask.polygons: value has the number {points.item()} where a polygon must be; {_ONE}")
    if points.size % 2 or not (points.ndim == 1 or (points.ndim == 2 and points.shape[1] == 2)):
        raise ValueError(f"polygon_mask.polygons: a polygon has the shape {points.shape}; must be (points, 2), or "
                         "flat: x, y, x, y, ...")
    corners: Array = numpy.ascontiguousarray(points.reshape(-1, 2))
    return corners


def polygon_mask(polygons: Sequence[Any], size: Sequence[SupportsIndex]) -> Array:
    """Draw the union of polygons, by COCO's rule. A polygon is an array [points, 2] of x and y in pixels, or a flat
    list as in COCO's files. It may reach outside of the image, and may cross itself."""
    numpy = needed("numpy", "penstock.masks")
    height, width = _sides("polygon_mask", size)
    if isinstance(polygons, Mapping):
        raise TypeError("polygon_mask.polygons: value is a dict; must be a list of polygons; for runs write "
                        "rle_decode(rle['counts'], rle['size'])")
    if isinstance(polygons, (str, bytes)) or not isinstance(polygons, Iterable):
        raise TypeError(f"polygon_mask.polygons: value is of {type(polygons).__name__}; must be a list of polygons")
    corners = [_corners(polygon) for polygon in polygons]
    if len(corners) > 2 and all(len(each) == 1 for each in corners):
        raise ValueError(f"polygon_mask.polygons: value has {len(corners)} polygons of one corner each; must be a list of "
                         f"polygons; {_ONE}")
    points = numpy.concatenate([numpy.zeros((0, 2)), *corners])
    lengths = numpy.array([len(each) for each in corners], numpy.uint32)
    mask: Array = numpy.empty((height, width), numpy.uint8)
    error = errors.new()
    _check("polygon_mask", _c.lib.pstk_polygon_mask(
        points.ctypes.data_as(POINTER(c_double)), lengths.ctypes.data_as(POINTER(c_uint32)), len(corners), height,
        width, mask.ctypes.data_as(POINTER(c_uint8)), byref(error)), error)
    return mask
