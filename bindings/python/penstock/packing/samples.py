# SPDX-License-Identifier: Apache-2.0
"""Make records {name: value} of samples of any form, and infer their schema from a few of them."""
from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import _c, errors
from .._optional import is_a, needed
from ..dataset import Dataset
from ..dtypes import dtype_name, parse
from ..errors import SettingsError
from .schema import Field, schema_of
from .values import as_numpy, is_array, is_image_file, is_null, is_pil_image, null_advice, plain_text

N_LOOKED_AT = 8  # samples from which the schema is inferred; enough to see which dimensions differ

NO_SAMPLES = "dataset: value has no samples; must have at least 1 to pack"
# WebDataset's additions to a sample; and suffixes whose files its decode() makes one value of, or a structure of
# several.
BOOKKEEPING = ("__url__", "__local_path__")
_ONE_VALUE = ("cls", "cls2", "id", "index", "inx", "npy", "text", "transcript", "txt")
_SEVERAL = ("cbor", "json", "jsn", "mp", "msg", "npz", "pickle", "pkl", "pth", "pyd", "tb", "ten")


class PackError(errors.PenstockError):
    """A sample could not be packed; nothing was.

    sample: number of the sample; None for a folder of images, whose bad files the message names.
    __cause__: the exception of the source.
    """

    def __init__(self, message: str, sample: int | None = None) -> None:
        super().__init__(message)
        self.sample = sample


def failed(index: int, error: BaseException) -> PackError:
    """Return the exception for an error of a sample."""
    what = str(error) if isinstance(error, errors.PenstockError) else f"{type(error).__name__}: {error}"
    return PackError(f"sample {index} could not be packed, and so nothing was: {what}", index)


class SchemaError(errors.PenstockError, TypeError, ValueError):
    """The schema cannot be inferred from the samples; the message says what to declare."""


def is_map_style(source: Any) -> bool:
    """Return whether samples can be read by their number, so that several processes may share the work."""
    if is_a(source, "torch.utils.data", "IterableDataset") or isinstance(source, Mapping):
        return False
    return hasattr(source, "__len__") and hasattr(source, "__getitem__")


def check_source(source: Any) -> None:
    """Raise TypeError or SettingsError for a value that is no source of samples."""
    if is_a(source, "torch.utils.data", "DataLoader"):
        raise TypeError("dataset: value is a DataLoader, whose items are batches; must be its data set "
                        "(loader.dataset)")
    for kind in ("Table", "RecordBatch"):  # their [i] is column i
        if is_a(source, "pyarrow", kind):
            name = "table" if kind == "Table" else "batch"
            raise TypeError(f"dataset: value is an Arrow {kind}; must be rows or a DataFrame of pandas "
                            f"({name}.to_pylist() or {name}.to_pandas())")
    if is_a(source, "pyarrow", "Array", "ChunkedArray"):
        raise TypeError("dataset: value is an Arrow array; must be rows, or a dict of columns ({'x': array.to_pylist()})")
    if is_a(source, "polars", "DataFrame"):
        raise TypeError("dataset: value is a DataFrame of Polars; must be rows (frame.to_dicts())")
    if is_array(source) and tuple(getattr(source, "shape", (1,))) == ():
        raise TypeError("dataset: value is an array without dimensions; must have samples in its first "
                        "dimension")
    if isinstance(source, (str, bytes)) or not (is_map_style(source) or isinstance(source, Iterable)):
        raise TypeError(f"dataset: value is of type {type(source).__name__}; must be a map-style data set "
                        "(len and [i]), an iterable of dicts or tuples, a dict of arrays, or the path of a "
                        "file")
    if is_map_style(source) and len(source) == 0:
        raise SettingsError(NO_SAMPLES)


# ---- from samples to records -------------------------------------------------------------------------


def _is_image(value: Any) -> bool:
    if is_pil_image(value):
        return True
    if isinstance(value, (bytes, bytearray)):
        return is_image_file(value)
    shape = tuple(getattr(value, "shape", ()))
    is_bytes = str(getattr(value, "dtype", "")) in ("uint8", "torch.uint8")
    if not is_array(value) or not is_bytes or len(shape) != 3:
        return False
    return shape[2] == 3 or (is_a(value, "torch", "Tensor") and shape[0] == 3)


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not (is_array(value) and tuple(getattr(value, "shape", ())) != ())


def _tuple_names(values: Sequence[Any]) -> tuple[str, ...]:
    """Return the names image and cls for a tuple of an image and a number, as in torchvision's classification sets;
    else numbers as text."""
    if len(values) == 2 and _is_image(values[0]) and _is_integer(values[1]):
        return "image", "cls"
    return tuple(str(i) for i in range(len(values)))


_LIST = ("; a list is taken for a tuple of fields: where it is the values of one, give {'tokens': [...]}, or "
         "an array")


def _of_webdataset(sample: Any) -> bool:
    return isinstance(sample, Mapping) and "__key__" in sample and any(name in sample for name in BOOKKEEPING)


def advice_on(samples: Iterable[Any]) -> str:
    """Return advice on samples whose schema is inferred, or "". Only WebDataset's samples need it: WebDataset adds keys
    of its own, and gives files undecoded."""
    for sample in samples:
        if not _of_webdataset(sample):
            continue
        parts = [" and ".join(name for name in BOOKKEEPING if name in sample) + ": left out, where WebDataset read "
                "a sample (a schema that has them keeps them)"]
        files = [str(name) for name, value in sample.items() if isinstance(value, bytes)]
        one = [name for name in files if name.lower().rpartition(".")[2] in _ONE_VALUE]
        several = [name for name in files if name.lower().rpartition(".")[2] in _SEVERAL]
        if one:
            parts.append(f"{', '.join(one)}: stored as the bytes of a file; for values pack "
                        f"dataset.decode(only={one})")
        if several:
            parts.append(f"{', '.join(several)}: stored as the bytes of a file; for values make fields of "
                        "them, by dataset.decode().map(function)")
        return "penstock.pack: " + "; ".join(parts)
    return ""


_OF_FEW_BYTES = ("PBM", "PGM", "PPM", "PAM", "JPEG XL")  # short signatures: text and other data may begin with them


def images_kept_as_bytes(schema: Mapping[str, Field], records: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the fields of this inferred schema that would hold image files of formats that are not
    packed as images, or ""."""
    parts = []
    for name, field in schema.items():
        formats = {_other_image_format(record[name]) for record in records} if field.kind == "bytes" else {""}
        if "" not in formats:
            parts.append(f"{name}: {' and '.join(sorted(formats))} images")
    return (f"penstock.pack: {', '.join(parts)}, stored as bytes, which a loader does not decode (give Pillow's images, "
            "PIL.Image.open(io.BytesIO(value)), to have them stored as pixels; or the schema, to have bytes)") if parts else ""


def _other_image_format(data: Any) -> str:
    """Return the format of an image file that is neither JPEG nor PNG, by its first bytes; "": it is none."""
    view, is_packed = memoryview(data), ctypes.c_int()
    head = bytes(view.cast("B")[:64]) if view.c_contiguous else view.tobytes()[:64]
    name = (_c.lib.pstk_image_format(head, len(head), ctypes.byref(is_packed)) or b"").decode()
    return "" if is_packed.value or name in _OF_FEW_BYTES else name


def record_of(sample: Any, names: Sequence[str] | None) -> Mapping[str, Any]:
    """Return a sample as {name: value}. WebDataset's additions to a sample are left out, unless the schema has them.

    names: the schema's names, for the members of a tuple; None: they are inferred.
    """
    if is_a(sample, "pyarrow", "Table", "RecordBatch", "Array", "ChunkedArray"):
        raise SchemaError(f"the sample is an Arrow {type(sample).__name__}; must be a row (of batches, give "
                          "(row for batch in batches for row in batch.to_pylist()))")
    if _of_webdataset(sample):
        left_out = set(BOOKKEEPING).difference(names or ())
        return {name: value for name, value in sample.items() if name not in left_out}
    if isinstance(sample, Mapping):
        return dict(sample)  # a copy by dict(), because iterating over a batch, for example, does not give names
    if dataclasses.is_dataclass(sample) and not isinstance(sample, type):
        return {field.name: getattr(sample, field.name) for field in dataclasses.fields(sample)}
    if isinstance(sample, tuple) and hasattr(sample, "_asdict"):
        return dict(sample._asdict())
    values = tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)
    if names is None:
        names = _tuple_names(values) if isinstance(sample, (tuple, list)) else (
            ("image",) if _is_image(sample) else ("data",))
    if len(values) != len(names):
        raise SchemaError(f"the sample has {len(values)} values; must have {len(names)}, one for each field: "
                          + ", ".join(names) + (_LIST if isinstance(sample, list) else ""))
    return dict(zip(names, values))


# ---- the schema ----------------------------------------------------------------------------------------


class _Where:
    """The samples that were looked at, and the words for them. numbers: their numbers in the data set; None: not known."""

    def __init__(self, numbers: Sequence[int] | None) -> None:
        self._numbers = numbers

    def __call__(self, i: int) -> str:
        return f"sample {self._numbers[i]}" if self._numbers else f"sample {i} of those looked at"

    def differ(self, found: Sequence[Any]) -> str:
        """Return "sample 0 has x, sample 3 has y": the first sample, and the first that differs. found: the x of each
        sample."""
        other = next(i for i, what in enumerate(found) if what != found[0])
        return f"{self(0)} has {found[0]}, {self(other)} has {found[other]}"


def _not_numbers(name: str, array: Any, where: str) -> SchemaError:
    """Return the error for an array whose elements no field holds."""
    kind, advice = f"{array.dtype.str}", "convert it to numbers first"
    if array.dtype.kind in "US":
        kind = f"{'text' if array.dtype.kind == 'U' else 'bytes'} ({kind})"
        advice = "give a list of them, such as x.ravel().tolist(), or a field for each"
    elif array.dtype.names:
        kind = f"records ({', '.join(array.dtype.names)})"
        advice = "give each of its members a field of its own"
    elif array.dtype.kind in "Mm":
        kind, advice = str(array.dtype), "give numbers, such as x.astype('int64')"
    elif array.dtype.kind == "c":
        kind, advice = str(array.dtype), "give x.real and x.imag, a field each"
    return SchemaError(f"field {name}: {where} has an array of {kind}; must be of numbers ({advice})")


def _array_field(name: str, values: Sequence[Any], where: _Where) -> Field:
    needed("numpy", f"packing arrays (field {name})")
    arrays = [as_numpy(value) for value in values]
    for i, array in enumerate(arrays):
        if array.dtype.kind in "USMmcVO" and parse(array.dtype) is None:
            raise _not_numbers(name, array, where(i))
    # An empty list has no type. Among lists of numbers some may have floats.
    typed = [i for i, a in enumerate(arrays) if a.size or is_array(values[i])] or list(range(len(values)))
    kinds = {i: dtype_name(getattr(values[i], "dtype", arrays[i].dtype)) for i in typed}
    if set(kinds.values()) == {"int64", "float64"}:
        kinds = dict.fromkeys(typed, "float64")
    kind = kinds[typed[0]]
    if len(set(kinds.values())) > 1 or len({a.ndim for a in arrays}) > 1:
        found = [kinds.get(i, kind) for i in range(len(values))] if len(set(kinds.values())) > 1 else \
            [f"{a.ndim} dimensions" for a in arrays]
        raise SchemaError(f"field {name}: {where.differ(found)}; must be the same in all samples (or declare "
                          f"it, such as schema={{{name!r}: ('float32', (None,)), ...}})")
    if arrays[0].ndim == 0:
        return Field(kind)
    sides = zip(*(a.shape for a in arrays))
    shape = [sizes[0] if len(set(sizes)) == 1 and sizes[0] else None for sizes in sides]
    return Field(kind, shape)


def _shown(value: Any) -> str:
    """Describe a value for a message: by its first bytes, its shape or its type."""
    if isinstance(value, (bytes, bytearray)):
        return f"bytes that begin {bytes(value[:8])!r}"
    shape = tuple(getattr(value, "shape", ()))
    return f"{type(value).__name__} of shape {shape}" if shape else type(value).__name__


def _not_all_images(name: str, values: Sequence[Any], are: Sequence[bool], where: _Where) -> SchemaError:
    """Return the error if some values are images and others are not: one bad file must not turn all into bytes."""
    other = are.index(False)
    return SchemaError(
        f"field {name}: {where(are.index(True))} has an image, {where(other)} has {_shown(values[other])}; "
        "must be images in all samples: JPEG, PNG, PIL, uint8 of height x width x 3 (repair it or leave it "
        f"out, or declare what the field is, such as schema={{{name!r}: 'bytes', ...}})")


def _are_lists(values: Sequence[Any]) -> bool:
    """Return whether all values are lists, or arrays, of texts, bytes or images. Some of them may be empty, but not
    all."""
    def has_items(value: Any) -> bool:
        if getattr(getattr(value, "dtype", None), "kind", "") in ("U", "S") and len(value.shape) == 1:
            return True
        return isinstance(value, (list, tuple)) and any(
            isinstance(item, (str, bytes, bytearray)) or _is_image(item) for item in value)

    def is_list(value: Any) -> bool:
        return isinstance(value, (list, tuple)) or has_items(value)

    return all(map(is_list, values)) and any(map(has_items, values))


def _list_field(name: str, values: Sequence[Any], where: _Where) -> Field:
    """Return the list field that holds all these lists. Raises SchemaError."""
    items = [plain_text(item) for value in values for item in value]
    image = [_is_image(item) for item in items]
    if all(image):
        return Field("image_list")
    if all(isinstance(item, str) for item in items):
        return Field("utf8_list")
    if all(isinstance(item, (bytes, bytearray)) for item in items) and not any(image):
        return Field("bytes_list")
    kinds = sorted({_shown(item) if not is_image else "an image" for item, is_image in zip(items, image)})
    raise SchemaError(f"field {name}: the lists of the samples have {', '.join(kinds[:4])}; must be lists of text, of "
                      "bytes, or of images alone")


_FILLS = {str: "''", bytes: "b''", bool: "False", int: "0", float: "0"}


def _check_nulls(name: str, values: Sequence[Any], where: _Where) -> None:
    """Raise SchemaError for a null, unless it is a NaN among numbers."""
    nulls = list(map(is_null, values))
    if not any(nulls) or all(isinstance(v, (int, float)) or is_array(v) for v in values):
        return
    i, others = nulls.index(True), {type(v) for v, null in zip(values, nulls) if not null}
    fill = _FILLS.get(others.pop()) if len(others) == 1 else None
    extent = "" if not all(nulls) else ", as all samples that were looked at"
    raise SchemaError(f"field {name}: {where(i)} has a null ({values[i]}{extent}); must have a value in every sample, "
                      f"which is a row of a table{null_advice(name, fill)}")


def _field_of(name: str, values: Sequence[Any], where: _Where) -> Field:
    """Return the field that holds all these values. Raises SchemaError."""
    values = [plain_text(value) for value in values]
    _check_nulls(name, values, where)
    images = [_is_image(v) for v in values]
    if all(images):
        return Field("image")
    if any(images):
        raise _not_all_images(name, values, images, where)
    if all(isinstance(v, (bytes, bytearray, memoryview)) for v in values):
        return Field("bytes")
    if all(isinstance(v, str) for v in values):
        return Field("utf8")
    if all(isinstance(v, bool) for v in values):
        return Field("uint8")
    if all(isinstance(v, int) for v in values):
        return Field("int64")
    if all(isinstance(v, (int, float)) and not is_array(v) for v in values):
        return Field("float64")
    if _are_lists(values):
        return _list_field(name, values, where)
    if all(is_array(v) or isinstance(v, (list, tuple)) for v in values):
        try:
            return _array_field(name, values, where)
        except (SettingsError, ValueError) as error:
            if isinstance(error, SchemaError):
                raise
            raise SchemaError(f"field {name}: {where(0)} has an array that no field holds: "
                              f"{error}") from error
    kinds = [type(v).__name__ for v in values]
    said = where.differ(kinds) if len(set(kinds)) > 1 else f"{where(0)} has {_shown(values[0])}"
    raise SchemaError(f"field {name}: {said}; must be images, bytes, text, numbers or arrays, the same kind "
                      "in every sample")


def _check_names(records: Sequence[Mapping[str, Any]], where: _Where) -> None:
    """Raise SchemaError for records whose fields differ from those of the first."""
    names = set(records[0])
    if all(set(record) == names for record in records):
        return
    found = [", ".join(map(str, record)) or "none" for record in records]
    hint = " (give every sample all of them, or declare the schema)"
    if all(str(name).isdigit() for record in records for name in record):
        hint = _LIST
    elif any(list(record) == ["0", "1"] for record in records):
        hint = ("; fields 0 and 1 are of a tuple whose first member is not an image of a known format (repair it or "
                "leave it out)")
    raise SchemaError(f"fields: {where.differ(found)}; must be the same in all samples{hint}")


def inferred_schema(records: Sequence[Mapping[str, Any]],
                    numbers: Sequence[int] | None = None) -> dict[str, Field]:
    """Return the schema of these records. numbers: numbers of their samples, for messages. Raises SchemaError, which
    names field and sample."""
    where = _Where(numbers)
    _check_names(records, where)
    return schema_of({name: _field_of(str(name), [record[name] for record in records], where)
                      for name in records[0]})


def known_schema(source: Any) -> dict[str, Field] | None:
    """Return the schema of a source that knows its own; None: it does not."""
    return source.schema if isinstance(source, Dataset) else None
