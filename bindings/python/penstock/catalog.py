# SPDX-License-Identifier: Apache-2.0
"""The numbers and fields of a data set, from its manifest, without reading a record."""
from __future__ import annotations

import dataclasses
import os
from ctypes import byref, c_void_p, sizeof
from typing import NamedTuple

from . import _c, errors, paths
from .packing.schema import Field

# Of images.
_ENCODINGS = {name: code for name, code in _c.NAMES["encoding"].items() if code != _c.ENCODING_NONE}


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """The numbers of a whole data set. identity: a digest of schema and content, the same for any sharding."""
    n_samples: int
    n_shards: int
    bytes: int
    identity: str
    format_version: int
    names: tuple[str, ...] = dataclasses.field(repr=False)  # class names
    format: str = "pstk"
    has_checksums: bool = True  # False: the format has none, so penstock cannot find damaged content


@dataclasses.dataclass(frozen=True)
class FieldInfo:
    """A field, with the maxima and sums of its values in bytes (plain: decompressed) and pixels.

    encodings: numbers of records by "jpeg", "png", "pixels". n_damaged: records with a JPEG that is marked as
    damaged.
    """
    name: str
    field: Field
    max_stored_size: int
    max_plain_size: int
    stored_bytes: int
    plain_bytes: int
    max_width: int
    max_height: int
    encodings: dict[str, int]
    n_damaged: int = 0


class Catalog(NamedTuple):
    """A data set's numbers, and its fields in the order of its schema."""

    info: DatasetInfo
    fields: tuple[FieldInfo, ...]


def opened(path: str | os.PathLike[str]) -> c_void_p:
    """Open a data set; the caller closes the handle. Raises DataSetNotFoundError, CorruptRecordError and others."""
    handle, error = c_void_p(), errors.new()
    errors.check(_c.lib.pstk_dataset_open(byref(handle), os.fsencode(paths.local(path)), byref(error)), error)
    return handle


def _field(handle: c_void_p, number: int) -> FieldInfo:
    field, stats = _c.Field(), _c.FieldStats(size=sizeof(_c.FieldStats))
    errors.check(_c.lib.pstk_dataset_get_field(handle, number, byref(field), byref(stats)), errors.new())
    encodings = {name: int(stats.n_encoding[code]) for name, code in _ENCODINGS.items()
                 if stats.n_encoding[code]}
    return FieldInfo(field.name.decode(), Field.of_c(field), stats.max_stored_size, stats.max_plain_size,
                     stats.stored_bytes, stats.plain_bytes, stats.max_width, stats.max_height, encodings,
                     stats.n_damaged)


def of(handle: c_void_p) -> Catalog:
    """Return the catalog of an open data set."""
    raw = _c.DatasetInfo(size=sizeof(_c.DatasetInfo))
    errors.check(_c.lib.pstk_dataset_get_info(handle, byref(raw)), errors.new())
    names = tuple((_c.lib.pstk_dataset_name(handle, i) or b"").decode() for i in range(raw.n_names))
    info = DatasetInfo(raw.n_samples, raw.n_shards, raw.bytes, raw.identity.decode(), raw.format_version,
                       names, raw.format.decode(), bool(raw.has_checksums))
    return Catalog(info, tuple(_field(handle, i) for i in range(raw.n_fields)))


def read(path: str | os.PathLike[str]) -> Catalog:
    """Return the catalog of the data set at a path. Raises the errors of `opened`."""
    handle = opened(path)
    try:
        return of(handle)
    finally:
        _c.lib.pstk_dataset_close(byref(handle))
