# SPDX-License-Identifier: Apache-2.0
"""The numbers and fields of a data set, taken from its manifest: no record is read."""
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

# encodings of image fields
_ENCODINGS = {name: code for name, code in _c.NAMES["encoding"].items() if code != _c.ENCODING_NONE}
_FACTS = {code: name for name, code in _c.NAMES["column_fact"].items()}


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """The numbers of a whole data set.

    n_samples: number of samples.
    n_shards: number of shards.
    bytes: size of all shards and dictionaries.
    identity: a digest of schema and content, the same for any sharding.
    format_version: version of the format; 0: the format has none.
    names: class names; () if there are none.
    format: name of the record format: "pstk", "tar", ...
    has_checksums: True: checksums cover every sample, and every read checks them. False: loaders cannot find damaged
        content.
    n_left_out: of a folder of images: the number of images next to its class folders, which are no samples, as for
        ImageFolder. Of folders of tar archives, TFRecord files, Megatron-LM's pairs or arrays: the number of files that
        `left_out` describes. Else 0.
    left_out: a sentence about those files of the format that are not read; "": there are none.
    """
    n_samples: int
    n_shards: int
    bytes: int
    identity: str
    format_version: int
    names: tuple[str, ...] = dataclasses.field(repr=False)  # class names
    format: str = "pstk"
    has_checksums: bool = True  # see above; a loader without them cannot find damaged content
    n_left_out: int = 0
    left_out: str = ""


@dataclasses.dataclass(frozen=True)
class FieldInfo:
    """A field of a data set, with maxima and sums over its records.

    name: name of the field.
    field: its penstock.Field.
    max_stored_size, max_plain_size: bytes of the largest value, as stored and decompressed.
    stored_bytes, plain_bytes: bytes of all values, as stored and decompressed.
    max_width, max_height: pixels of the widest and of the highest image; images only.
    encodings: numbers of records by "jpeg", "png", "pixels".
    n_damaged: number of records with a JPEG that is marked as damaged.
    n_absent: number of records of TFRecord files without the field. Their value is the field's default, or empty if the
        field is variable; else they are errors.
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
    """A side column of a data set: one scalar for each record.

    name: name of the column.
    dtype: "int64", "float32", ...
    fact: the fact about the field `field` that its values are: "value", "size" (bytes), "length", "width" or "height".
        None: penstock.add_column made it.
    field: name of that field; None: penstock.add_column made it.
    bytes: size of its files.
    """
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
        """Warn of files that are left out, at the line outside of the package that opened the data set."""
        said = left_out(self.info, path)
        if said:
            warnings.warn(said, stacklevel=level_outside())


def left_out(info: DatasetInfo, path: str) -> str:
    """Describe the files that a data set leaves out, in the words of `penstock pack`; "": there are none."""
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
    """Return the error for a column that a data set lacks. Only data sets in penstock's own format have columns."""
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
