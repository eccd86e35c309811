# SPDX-License-Identifier: Apache-2.0
"""Build and read the bytes of a list field's value."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref
from typing import Any

from . import _c, errors
from ._optional import needed

# ctypes.string_at takes a C int for the size, which is too small.
bytes_at = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi))


def pixels_of(data: bytes, info: Any) -> Any:
    """Return the array of a decoded image as it is stored: uint8 or uint16, [height, width] or [height, width,
    channels]. info: a ValueInfo or ListItem of the library."""
    numpy = needed("numpy", "reading pixels")
    channels = () if info.channels == 1 else (info.channels,)
    dtype = "<u2" if info.bit_depth == 16 else "u1"
    return numpy.frombuffer(bytearray(data), dtype).reshape(info.height, info.width, *channels)


def mask_of(data: bytes, about: Any) -> Any:
    """Return the class numbers of a mask: NumPy uint8 or uint16 [height, width]. about: the ValueInfo or ListItem that
    was read with the data. Raises CorruptRecordError."""
    needed("numpy", "reading masks")
    names = ("encoding", "width", "height", "channels", "bit_depth", "has_palette")
    info = _c.ValueInfo(size=ctypes.sizeof(_c.ValueInfo), **{name: getattr(about, name) for name in names})
    out, dtype, error = ctypes.c_void_p(), ctypes.c_uint32(), errors.new()
    errors.check(_c.lib.pstk_mask_decode(data, len(data), byref(info), byref(out), byref(dtype), byref(error)), error)
    try:
        bits = 16 if dtype.value == _c.U16 else 8
        info.bit_depth = bits
        return pixels_of(bytes_at(out, info.height * info.width * bits // 8), info)
    finally:
        _c.lib.pstk_free(out)


def build(kind: int, items: Sequence[tuple[Any, Any]]) -> bytes:
    """Return the bytes of a list.

    kind: enum pstk_field_kind.
    items: (data, pixels) for each item: bytes, or an array that has them; and the size of decoded pixels, an object
        with height, width, channels and bit_depth, else None.

    Raises CorruptRecordError, SettingsError.
    """
    given = (_c.ListItem * len(items))()
    for item, (data, pixels) in zip(given, items):
        if isinstance(data, bytes):
            item.data, item.size = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data)
        else:
            item.data, item.size = data.ctypes.data, data.nbytes
        if pixels is not None:
            item.encoding = _c.ENCODING_PIXELS
            item.height, item.width, item.channels, item.bit_depth = (
                pixels.height, pixels.width, pixels.channels, pixels.bit_depth)
    out, size, error = ctypes.c_void_p(), ctypes.c_uint64(), errors.new()
    errors.check(_c.lib.pstk_list_build(kind, given, len(given), byref(out), byref(size), byref(error)), error)
    try:
        return bytes(bytes_at(out, size.value))
    finally:
        _c.lib.pstk_free(out)


def read(kind: int, data: bytes) -> list[Any]:
    """Return the items of a list: str; bytes, of image files too; or arrays of masks and of pixels. Raises
    CorruptRecordError."""
    error = errors.new()
    n = errors.check(_c.lib.pstk_list_read(kind, data, len(data), None, 0, byref(error)), error)
    items = (_c.ListItem * n)()
    errors.check(_c.lib.pstk_list_read(kind, data, len(data), items, n, byref(error)), error)
    found = [bytes(bytes_at(item.data, item.size)) for item in items]
    if kind == _c.FIELD_UTF8_LIST:
        return [text.decode() for text in found]
    if kind == _c.FIELD_MASK_LIST:
        return [mask_of(each, item) for each, item in zip(found, items)]
    return [pixels_of(each, item) if item.encoding == _c.ENCODING_PIXELS else each for each, item in zip(found, items)]
