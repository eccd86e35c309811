# SPDX-License-Identifier: Apache-2.0
"""Read the records of a data set by their number: for inspection, evaluation and repacking, and for programs that need
a map-style data set. For training penstock.Loader is faster."""
from __future__ import annotations

import ctypes
import functools
import operator
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import byref, sizeof
from typing import Any

from . import _c, catalog, errors, paths
from ._optional import needed
from .catalog import ColumnInfo, DatasetInfo, FieldInfo
from .dtypes import DTYPES
from .elsewhere import DATASET_ATTRIBUTES
from .arguments import items, switch
from .errors import SettingsError
from .escapes import escaped
from .foreign import Opening
from .hints import Hints, explains, kind_of, near_or_all
from .lists import bytes_at, mask_of, pixels_of, read
from .moved import refusal
from .packing.schema import LIST_KINDS, Field, of_some
from .sealed import Sealed, Shown
from .topics import Foreign

__all__ = ["ColumnInfo", "Dataset", "DatasetInfo", "FieldInfo"]

ANY_SIDE = 2**31 - 1  # shorter side that no image reaches, so it keeps its size; pixels


class _Handle:
    """The library's data set. It is closed when the last call that uses it has returned."""

    def __init__(self, path: str, foreign: Opening) -> None:
        self.owner = os.getpid()
        self.pointer = ctypes.c_void_p()
        self.pointer = catalog.opened(path, foreign)

    def __del__(self, _getpid: Any = os.getpid, _close: Any = _c.lib.pstk_dataset_close,
                _byref: Any = byref) -> None:
        # These are default arguments, because the globals may be gone when the interpreter ends. A child of fork does
        # not close it: a thread of the parent may seem to hold one of its locks there.
        if self.pointer and self.owner == _getpid():
            _close(_byref(self.pointer))

    def read(self, sample_id: int, field: int) -> tuple[bytes, _c.ValueInfo]:
        """Return the plain bytes of a field, and the record's description of them."""
        data, size, info = ctypes.c_void_p(), ctypes.c_uint64(), _c.ValueInfo(size=sizeof(_c.ValueInfo))
        error = errors.new()
        errors.check(_c.lib.pstk_dataset_get(self.pointer, sample_id, field, byref(data), byref(size),
                                             byref(info), byref(error)), error)
        try:
            return bytes_at(data, size.value), info
        finally:
            _c.lib.pstk_free(data)


# ---- from bytes to values ------------------------------------------------------------------------------


def _numpy_dtype(kind: str) -> Any:
    """Return NumPy's dtype for a name in DTYPES."""
    import numpy
    if kind != "bfloat16":
        return numpy.dtype(kind).newbyteorder("<")
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        return numpy.dtype("<u2")
    return numpy.dtype(bfloat16)


def _array(data: bytes, dtype: Any, shape: Sequence[int]) -> Any:
    """Return a NumPy array with its own, writable memory."""
    import numpy
    return numpy.frombuffer(bytearray(data), dtype).reshape(shape)


def _array_decoder(field: Field) -> Callable[[bytes], Any]:
    needed("numpy", "reading array fields and pixels")
    dtype, shape = _numpy_dtype(field.kind), field.shape or ()
    n_free = sum(n is None for n in shape)
    derived = [-1 if n is None else n for n in shape]
    head = 8 * len(shape)

    def with_shape(data: bytes) -> Any:
        return _array(data[head:], dtype, struct.unpack_from(f"<{len(shape)}Q", data))

    def without(data: bytes) -> Any:
        # NumPy cannot derive a dimension of an array without elements.
        return _array(data, dtype, derived if data or n_free == 0 else [0 if n is None else n for n in shape])

    return with_shape if n_free > 1 else without


def _decoder(field: Field) -> Callable[[bytes], Any]:
    if field.is_array:
        return _array_decoder(field)
    if field.kind == "utf8":
        return bytes.decode
    if field.is_list:
        return functools.partial(read, LIST_KINDS[field.kind])
    if field.kind == "bfloat16":
        return lambda data: struct.unpack("<f", b"\0\0" + data)[0]
    if field.is_scalar:
        unpack = struct.Struct("<" + DTYPES[field.kind].format).unpack
        return lambda data: unpack(data)[0]
    return bytes


def _as_rgb(pixels: Any) -> Any:
    """Return pixels as uint8 [height, width, 3], as a loader does. Raises UnsupportedError for 16-bit gray."""
    import numpy
    if pixels.dtype.itemsize == 2:
        if pixels.ndim == 2:
            raise errors.UnsupportedError("the image is 16-bit gray, for whose 8-bit values there is no common rule "
                                          "(read it without decode=True, and convert it)")
        pixels = (pixels >> 8).astype("u1")
    if pixels.ndim == 2:
        return numpy.repeat(pixels[:, :, None], 3, axis=2)
    return numpy.ascontiguousarray(pixels[:, :, :3])


def _of_sample(sample_id: int, name: str, read_value: Callable[[], Any], file_of: Callable[[int], str] | None = None) -> Any:
    """Return the result of `read_value`. An error of the library gets the sample, its file, and the field at its
    beginning. file_of: finds the file; None: it is not known."""
    try:
        return read_value()
    except errors.PenstockError as error:
        file = file_of(sample_id) if file_of else ""
        error.args = (f"sample {sample_id}{file and f', {file}'}, field {name}: {error}",)
        error.sample_id = sample_id
        raise


def _value_of(decode: Callable[[bytes], Any], data: bytes) -> Any:
    """Return decode(data). Raises CorruptRecordError if the bytes are no value of the type, as those of a hostile index
    or file may be."""
    try:
        return decode(data)
    except (struct.error, ValueError, OverflowError) as error:
        raise errors.CorruptRecordError(f"its {len(data)} bytes are no value of its type ({error})") from error


def _decoded(data: bytes, is_damaged: bool = False) -> Any:
    """Decode a JPEG or PNG file: NumPy uint8 [height, width, 3], RGB, equal to Pillow's. The EXIF orientation is
    ignored. is_damaged: the file may be damaged, and is decoded as Pillow loads it. Raises CorruptRecordError,
    UnsupportedError."""
    needed("numpy", "decoding images")
    out, size = ctypes.c_void_p(), ctypes.c_uint64()
    width, height = ctypes.c_uint32(), ctypes.c_uint32()
    how = _c.Convert(size=sizeof(_c.Convert), shorter_side=ANY_SIDE,
                     damaged=_c.DAMAGED_ACCEPT if is_damaged else _c.DAMAGED_UNCHECKED)
    error = errors.new()
    errors.check(_c.lib.pstk_image_convert(data, len(data), byref(how), byref(out), byref(size), byref(width),
                                           byref(height), byref(error)), error)
    try:
        return _array(bytes_at(out, size.value), "u1", (height.value, width.value, 3))
    finally:
        _c.lib.pstk_free(out)


def _rgb_of(image: Any, is_damaged: bool = False) -> Any:
    """Return uint8 [height, width, 3], decoded from the bytes of a file or made of stored pixels."""
    return _decoded(image, is_damaged) if isinstance(image, bytes) else _as_rgb(image)


def _image_of(data: bytes, info: _c.ValueInfo, is_decoded: bool, accepts_damaged: bool) -> Any:
    image = pixels_of(data, info) if info.encoding == _c.ENCODING_PIXELS else data
    return _rgb_of(image, accepts_damaged or info.damaged == 1) if is_decoded else image


def _image_in_place(data: bytes, info: _c.ValueInfo, is_decoded: bool, accepts_damaged: bool) -> Any:
    """Return _image_of() for data in another format than penstock's. An error says whether damaged="accept" would
    accept the file."""
    try:
        return _image_of(data, info, is_decoded, accepts_damaged)
    except errors.CorruptRecordError as error:
        damage = ctypes.c_uint32()
        _c.lib.pstk_image_check_damaged(data, len(data), 0, byref(damage), byref(errors.new()))
        if damage and not accepts_damaged:
            error.args = (f"{error}; Pillow loads it: "
                          "foreign=penstock.Foreign(damaged='accept') takes it as Pillow shows it",)
        raise


# ---- the data set --------------------------------------------------------------------------------------


@explains({"transform": "a Dataset returns the stored values: transform them yourself, or use penstock.Loader"})
class Dataset(Hints, Sealed):
    """The records of a data set: `dataset[i]` reads and checks record i, and returns a dict of its fields.

    Values are of these types. bytes -> bytes, utf8 -> str, scalars -> int or float, arrays -> NumPy arrays with their
    own memory (bfloat16: the dtype of ml_dtypes if that is installed, else the bits as uint16). Images -> the bytes of
    the JPEG or PNG file that was packed; with decode=True uint8 [height, width, 3]. Images stored as pixels -> uint8 or
    uint16 [height, width] (gray) or [height, width, 3 or 4]; with decode=True also uint8 [height, width, 3], except
    gray ones of 16 bits, which raise UnsupportedError. Masks -> class numbers, uint8 or uint16 [height, width]. Lists
    -> lists of such items.

    path: the data set's directory; for a data set of another format also a file, or a pattern of files.
    fields: names of the fields to read; None: all.
    decode: True: decode images in full, as Pillow does, also damaged JPEGs that packing accepted.
    foreign: a penstock.Foreign: how data of another format is read in place. Unless it has damaged="accept", decoding a
        damaged image raises CorruptRecordError.

    It is a map-style data set for torch.utils.data.DataLoader, with any number of workers. You may pickle it (it opens
    the data set again), use it after fork, and use it in several threads at once. `dataset[10:20]` and `dataset[::2]`
    are data sets of those records. Negative numbers count from the end; numbers out of range raise IndexError.

    Raises DataSetNotFoundError, CorruptRecordError (which names shard, record and byte range), SettingsError,
    UnsupportedError.
    """

    path: str
    _hints = DATASET_ATTRIBUTES

    def __init__(self, path: str | os.PathLike[str], fields: Sequence[str] | None = None, *, decode: bool = False,
                 foreign: Foreign | None = None) -> None:
        if isinstance(fields, Mapping):
            raise TypeError(f"fields: value is {fields!r}; must be a list of names of fields, or None ("
                            f"{refusal('Dataset', {'fields': fields})})")
        self._foreign = Opening(foreign)
        self._fix(path=os.path.abspath(paths.local(path)))
        self._decode = switch("decode", decode)
        self._is_closed = False
        self._handle: _Handle | None = _Handle(self.path, self._foreign)
        self._catalog = known = catalog.of(self._handle.pointer)
        self._info, self._fields = known.info, {field.name: field for field in known.fields}
        self._columns = {column.name: column for column in known.columns}
        self._names = self._checked_names(fields)
        self._ids = range(self._info.n_samples)
        self._prepare()
        known.warn_of_left_out(self.path)

    def _prepare(self) -> None:
        """Make a reader for each field, from the other attributes."""
        numbers = {name: i for i, name in enumerate(self._fields)}
        self._readers = {name: (numbers[name], _decoder(self._fields[name].field)) for name in self._names}

    def _checked_names(self, fields: Sequence[str] | None) -> tuple[str, ...]:
        if isinstance(fields, str):
            fields = [fields]
        names = tuple(self._fields if fields is None else items("fields", fields, "a list of names of fields"))
        for name in names:
            if not isinstance(name, str) or name not in self._fields:
                raise SettingsError(f"fields: value is {name!r}; must be a field of {self.path}"
                                    + near_or_all(name, self._fields))
        if not names:
            raise SettingsError("fields: value is empty; must name at least 1 of " + ", ".join(self._fields))
        return names

    # ---- records ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: Any) -> Any:
        """Return a dict[str, Any] for a number, a Dataset for a slice."""
        if isinstance(index, slice):
            return self._part(self._ids[index])
        sample_id = self._sample_id(index)
        handle = self._open()
        return {name: self._read(handle, sample_id, name, self._decode) for name in self._names}

    def get(self, index: int, field: str) -> Any:
        """Return one field of a record. No other field is read."""
        return self._get(index, field, self._decode)

    def _get(self, index: int, field: str, is_decoded: bool) -> Any:
        if field not in self._readers:
            raise SettingsError(f"field: value is {field!r}; must be a field that this Dataset of {self.path} reads"
                                + near_or_all(field, self._names))
        return self._read(self._open(), self._sample_id(index), field, is_decoded)

    def _picture(self, index: int, field: str) -> Any:
        """Return the pixels of an image: the stored ones, or those decoded from its file."""
        value = self._get(index, field, False)
        return self._get(index, field, True) if isinstance(value, bytes) else value

    def _sample_id(self, index: Any) -> int:
        try:
            i = operator.index(index)
        except TypeError:
            raise TypeError(f"index: value is {kind_of(index)}; must be a whole number or a slice") from None
        try:
            return self._ids[i]
        except IndexError:
            raise IndexError(f"index: value is {index}; out of range, the data set has {len(self._ids)} "
                             "records") from None

    def _read(self, handle: _Handle, sample_id: int, name: str, is_decoded: bool) -> Any:
        number, value_of = self._readers[name]
        data, info = handle.read(sample_id, number)
        kind = self._fields[name].field.kind
        if kind == "mask":
            return _of_sample(sample_id, name, lambda: mask_of(data, info))
        if info.encoding != _c.ENCODING_NONE:
            if self._info.format == "pstk":
                return _of_sample(sample_id, name, lambda: _image_of(data, info, is_decoded, False))
            accepts = self._foreign.damaged == "accept"
            return _of_sample(sample_id, name, lambda: _image_in_place(data, info, is_decoded, accepts),
                              functools.partial(self._file_of, handle))
        value = _of_sample(sample_id, name, lambda: _value_of(value_of, data))
        if is_decoded and kind == "image_list":
            return _of_sample(sample_id, name, lambda: [_rgb_of(item) for item in value])
        return value

    def _file_of(self, handle: _Handle, sample_id: int) -> str:
        """Return the path of a sample's image in a folder or table of images, escaped for messages; "": unknown."""
        if self._info.format not in ("folder", "table") or "path" not in self._fields:
            return ""
        try:
            data, _ = handle.read(sample_id, list(self._fields).index("path"))
        except errors.PenstockError:
            return ""
        return escaped(os.fsdecode(data))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for i in range(len(self)):
            yield self[i]

    def _part(self, ids: range) -> Dataset:
        made = Dataset.__new__(Dataset)
        made.__dict__.update(self.__dict__)
        made._ids = ids
        return made

    @property
    def _path_lacks(self) -> str:
        """The advice for a user who passes this Dataset as a path: a path has neither the slice nor the foreign= of the
        Dataset."""
        ids, lacks = self._ids, ""
        if ids != range(self._info.n_samples):
            subset = f"Range({ids.start}, {ids.stop})" if ids.step == 1 else f"Ids({ids})"
            lacks = ", which is the whole data set; " + (f"a Loader takes this slice as subset=penstock.{subset}" if ids else
                                                         "this slice is empty")
        return lacks + ("; a Loader takes the same foreign=, too" if self._foreign.given != Foreign() else "")

    # ---- side columns ----------------------------------------------------------------------------------

    @property
    def columns(self) -> Mapping[str, ColumnInfo]:
        """The side columns, as they were when the data set was opened. A side column has one scalar for each record,
        and is read without the records: classes, sizes, lengths, and columns of `penstock.add_column`."""
        return Shown(self._columns)

    def column(self, name: str, start: int = 0, stop: int | None = None) -> Any:
        """Return the values of a side column as a NumPy array: those of the records start .. stop - 1 of this Dataset,
        by default all. It reads the pages of the column's file with these values, and no record.

        Raises SettingsError (no such column, the Dataset is closed), DataSetNotFoundError (the file is missing, or was
        replaced), CorruptRecordError.
        """
        needed("numpy", "reading columns")
        import numpy
        if name not in self._columns:
            raise catalog.no_column("name", name, self.path, self._catalog)
        ids = self._ids[start:stop]
        if not ids:
            return numpy.empty(0, _numpy_dtype(self._columns[name].dtype))
        first, last = min(ids[0], ids[-1]), max(ids[0], ids[-1])
        array = numpy.empty(last - first + 1, _numpy_dtype(self._columns[name].dtype))
        error = errors.new()
        errors.check(_c.lib.pstk_dataset_read_column(self._open().pointer, name.encode(), first, len(array),
                                                     array.ctypes.data, array.nbytes, byref(error)), error)
        return array if ids.step == 1 else numpy.ascontiguousarray(array[::ids.step])

    # ---- opening and closing ---------------------------------------------------------------------------

    def _open(self) -> _Handle:
        # There is no lock: if two threads open it again at once, one of the two handles closes itself.
        handle = self._handle
        if self._is_closed or handle is None:
            raise SettingsError(f"the data set {self.path} is closed (open it again)")
        if handle.owner != os.getpid():
            self._handle = handle = self._opened_again()
        return handle

    def _opened_again(self) -> _Handle:
        handle = _Handle(self.path, self._foreign)
        info = catalog.of(handle.pointer).info
        if info.identity != self._info.identity:
            raise SettingsError(f"the data set {self.path} was replaced after this Dataset opened it: its identity "
                                f"was {self._info.identity}, and is {info.identity} (open it again)")
        return handle

    def close(self) -> None:
        """Close the files once calls in progress have returned. Slices of this Dataset stay open."""
        self._is_closed = True
        self._handle = None

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ("_handle", "_readers"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._handle = None if self._is_closed else self._opened_again()
        self._prepare()

    # ---- description -----------------------------------------------------------------------------------

    def _another(self, name: str) -> str:
        return f"open a new Dataset with {name}=..."

    @property
    def info(self) -> DatasetInfo:
        """The numbers of the whole data set, also for a slice of it."""
        return self._info

    @property
    def fields(self) -> Mapping[str, FieldInfo]:
        """The fields that this Dataset reads, in the order of `fields`, or else of the schema."""
        return Shown({name: self._fields[name] for name in self._names})

    @property
    def schema(self) -> dict[str, Field]:
        """The schema, as penstock.Writer takes it. If the image that boxes or others belong to is not among the fields,
        they are plain arrays."""
        return of_some({name: self._fields[name].field for name in self._names})

    @property
    def names(self) -> tuple[str, ...]:
        """Class names; () if the data set has none."""
        return self._info.names

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {field}" for name, field in self.schema.items())
        of = "" if len(self) == self._info.n_samples else f" of {self._info.n_samples}"
        return f"penstock.Dataset({self.path!r}, {len(self)}{of} records, {fields})"

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        from . import notebook
        return notebook.of_dataset(self, self._is_closed)
