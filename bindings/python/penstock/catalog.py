# SPDX-License-Identifier: Apache-2.0
"""The numbers and fields of a data set, from its manifest, without reading a record."""
from __future__ import annotations

import dataclasses
import os
import warnings
from ctypes import byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _c, errors, paths
from .dtypes import DTYPE_NAMES
from .hints import level_outside, near_or_all
from .packing.schema import Field

if TYPE_CHECKING:
    from .foreign import Opening

# Of images.
_ENCODINGS = {name: code for name, code in _c.NAMES["encoding"].items() if code != _c.ENCODING_NONE}
_FACTS = {code: name for name, code in _c.NAMES["column_fact"].items()}


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """The numbers of a whole data set. identity: a digest of schema and content, the same for any sharding. n_left_out: of a
    folder of images, those next to its class folders: they are no samples, as for ImageFolder. Of folders of tar archives,
    TFRecord files, Megatron-LM's pairs or arrays: what left_out says, a sentence about files of the format that are not read."""
    n_samples: int
    n_shards: int
    bytes: int
    identity: str
    format_version: int
    names: tuple[str, ...] = dataclasses.field(repr=False)  # class names
    format: str = "pstk"
    has_checksums: bool = True  # of each sample; False: loaders cannot find damaged content
    n_left_out: int = 0
    left_out: str = ""


@dataclasses.dataclass(frozen=True)
class FieldInfo:
    """A field, with the maxima and sums of its values in bytes (plain: decompressed) and pixels.

    encodings: numbers of records by "jpeg", "png", "pixels". n_damaged: records with a JPEG that is marked as
    damaged. n_absent: records of TFRecord files without the field: their value is its default, or empty if the field is
    variable; else they are errors.
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
    n_absent: int = 0


@dataclasses.dataclass(frozen=True)
class ColumnInfo:
    """A side column: one scalar for each record. dtype: "int64", ... fact: what of the field `field` it has:
    "value", "size" (bytes), "length", "width" or "height"; None: it was added. bytes: of its files."""
    name: str
    dtype: str
    fact: str | None
    field: str | None
    bytes: int


class Catalog(NamedTuple):
    """A data set's numbers, its fields in the order of its schema, and its side columns."""

    info: DatasetInfo
    fields: tuple[FieldInfo, ...]
    columns: tuple[ColumnInfo, ...]

    def warn_of_left_out(self, path: str) -> None:
        """Warn of files that are left out, outside of the package."""
        said = left_out(self.info, path)
        if said:
            warnings.warn(said, stacklevel=level_outside())


def left_out(info: DatasetInfo, path: str) -> str:
    """What to say of the files that a data set leaves out, in the words of `penstock pack`; "": there are none."""
    if info.left_out or not info.n_left_out:
        return info.left_out
    s, are = ("", "is") if info.n_left_out == 1 else ("s", "are")
    return f"{info.n_left_out} image{s} next to the class folders of {path} {are} left out, as ImageFolder does"


def opened(path: str | os.PathLike[str], foreign: Opening | None = None) -> c_void_p:
    """Open a data set; the caller closes the handle. Raises DataSetNotFoundError, CorruptRecordError and others."""
    if foreign is None:
        from .foreign import Opening
        foreign = Opening()
    return foreign.opened(paths.local(path))


def _field(handle: c_void_p, number: int) -> FieldInfo:
    field, stats = _c.Field(), _c.FieldStats(size=sizeof(_c.FieldStats))
    errors.check(_c.lib.pstk_dataset_get_field(handle, number, byref(field), byref(stats)), errors.new())
    encodings = {name: int(stats.n_encoding[code]) for name, code in _ENCODINGS.items()
                 if stats.n_encoding[code]}
    return FieldInfo(field.name.decode(), Field.of_c(field), stats.max_stored_size, stats.max_plain_size,
                     stats.stored_bytes, stats.plain_bytes, stats.max_width, stats.max_height, encodings,
                     stats.n_damaged, stats.n_absent)


def _column(handle: c_void_p, number: int, fields: tuple[FieldInfo, ...]) -> ColumnInfo:
    column = _c.ColumnInfo(size=sizeof(_c.ColumnInfo))
    errors.check(_c.lib.pstk_dataset_get_column_info(handle, number, byref(column)), errors.new())
    is_added = column.fact == _c.COLUMN_ADDED
    return ColumnInfo(column.name.decode(), DTYPE_NAMES[column.dtype], None if is_added else _FACTS[column.fact],
                      None if is_added else fields[column.field].name, column.bytes)


def of(handle: c_void_p) -> Catalog:
    """Return the catalog of an open data set."""
    raw = _c.DatasetInfo(size=sizeof(_c.DatasetInfo))
    errors.check(_c.lib.pstk_dataset_get_info(handle, byref(raw)), errors.new())
    names = tuple((_c.lib.pstk_dataset_name(handle, i) or b"").decode() for i in range(raw.n_names))
    info = DatasetInfo(raw.n_samples, raw.n_shards, raw.bytes, raw.identity.decode(), raw.format_version,
                       names, raw.format.decode(), raw.has_checksums == 1, raw.n_left_out,
                       raw.left_out.decode(errors="replace"))
    fields = tuple(_field(handle, i) for i in range(raw.n_fields))
    n_columns = _c.lib.pstk_dataset_n_columns(handle)
    return Catalog(info, fields, tuple(_column(handle, i, fields) for i in range(n_columns)))


def no_column(what: str, name: Any, path: str, known: Catalog) -> errors.SettingsError:
    """The error for a column that a data set lacks. Other formats than penstock's have none."""
    must = f"{what}: value is {name!r}; must be a side column of {path}"
    if known.info.format == "pstk":
        return errors.SettingsError(must + near_or_all(name, (column.name for column in known.columns)))
    return errors.SettingsError(f"{must}; the format {known.info.format} has no side columns (pack it: "
                                f"penstock.pack({path!r}, OUT), and open OUT)")


def read(path: str | os.PathLike[str], foreign: Opening | None = None) -> Catalog:
    """Return the catalog of the data set at a path. Raises the errors of `opened`."""
    handle = opened(path, foreign)
    try:
        return of(handle)
    finally:
        _c.lib.pstk_dataset_close(byref(handle))
