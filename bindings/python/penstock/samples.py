# SPDX-License-Identifier: Apache-2.0
"""What is packed: samples of any form become records {name: value}; their schema is found out from a few of
them."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import errors
from ._optional import is_a
from .dataset import Dataset
from .dtypes import dtype_name
from .errors import SettingsError
from .schema import Field, schema_of
from .values import as_numpy, is_array, is_image_file, is_pil_image

N_LOOKED_AT = 8  # samples that the schema is found out from: enough to see which dimensions differ


class SchemaError(errors.PenstockError, TypeError, ValueError):
    """The schema cannot be found out from the samples; the message says what to declare."""


def is_map_style(source: Any) -> bool:
    """Can samples be had by their number, so that several processes may share the work?"""
    if is_a(source, "torch.utils.data", "IterableDataset") or isinstance(source, Mapping):
        return False
    return hasattr(source, "__len__") and hasattr(source, "__getitem__")


def check_source(source: Any) -> None:
    """Refuse what is no data set. Raises TypeError, SettingsError."""
    if is_a(source, "torch.utils.data", "DataLoader"):
        raise TypeError("this is a DataLoader, whose items are batches: give its data set (loader.dataset)")
    if isinstance(source, (str, bytes)) or not (is_map_style(source) or isinstance(source, Iterable)):
        raise TypeError(f"a {type(source).__name__} cannot be packed: give a map-style data set (len and "
                        "[i]), an iterable of dicts or tuples, a dict of arrays, or the path of a file")
    if is_map_style(source) and len(source) == 0:
        raise SettingsError("there is nothing to pack: the data set has no samples")


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
    """(image, class), as torchvision's classification sets have it, by name; else numbers."""
    if len(values) == 2 and _is_image(values[0]) and _is_integer(values[1]):
        return "image", "cls"
    return tuple(str(i) for i in range(len(values)))


def record_of(sample: Any, names: Sequence[str] | None) -> Mapping[str, Any]:
    """A sample as {name: value}. `names`: of a tuple's members, the schema's; None: by what they are."""
    if isinstance(sample, Mapping):
        return sample
    if dataclasses.is_dataclass(sample) and not isinstance(sample, type):
        return {field.name: getattr(sample, field.name) for field in dataclasses.fields(sample)}
    if isinstance(sample, tuple) and hasattr(sample, "_asdict"):
        return dict(sample._asdict())
    values = tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)
    if names is None:
        names = _tuple_names(values) if isinstance(sample, (tuple, list)) else (
            ("image",) if _is_image(sample) else ("data",))
    if len(values) != len(names):
        raise SchemaError(f"the sample has {len(values)} values, the schema {len(names)} fields: "
                          + ", ".join(names))
    return dict(zip(names, values))


# ---- the schema ----------------------------------------------------------------------------------------


def _array_field(name: str, values: Sequence[Any]) -> Field:
    arrays = [as_numpy(value) for value in values]
    typed = [(v, a) for v, a in zip(values, arrays) if a.size or is_array(v)]  # an empty list has no type
    kinds = {dtype_name(getattr(v, "dtype", a.dtype)) for v, a in typed or zip(values, arrays)}
    if kinds <= {"int64", "float64"} and len(kinds) == 2:  # lists of numbers: some have a point
        kinds = {"float64"}
    ranks = {a.ndim for a in arrays}
    if len(kinds) != 1 or len(ranks) != 1:
        differ = "types: " + ", ".join(sorted(kinds)) if len(kinds) > 1 else "numbers of dimensions"
        raise SchemaError(f"field {name}: the first samples have arrays of different {differ}; "
                          f"declare it, such as schema={{{name!r}: ('float32', (None,)), ...}}")
    if arrays[0].ndim == 0:
        return Field(kinds.pop())
    sides = zip(*(a.shape for a in arrays))
    shape = [sizes[0] if len(set(sizes)) == 1 and sizes[0] else None for sizes in sides]
    return Field(kinds.pop(), shape)


def _field_of(name: str, values: Sequence[Any]) -> Field:
    """The field that holds all these values."""
    if all(_is_image(v) for v in values):
        return Field("image")
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
    if all(is_array(v) or isinstance(v, (list, tuple)) for v in values):
        try:
            return _array_field(name, values)
        except (SettingsError, ValueError) as error:
            if isinstance(error, SchemaError):
                raise
            raise SchemaError(f"field {name}: these arrays cannot be stored: {error}") from error
    kinds = sorted({type(v).__name__ for v in values})
    raise SchemaError(f"field {name}: {' and '.join(kinds)} cannot be stored; give images, bytes, text, "
                      "numbers or arrays, the same kind in every sample")


def inferred_schema(records: Sequence[Mapping[str, Any]]) -> dict[str, Field]:
    """The schema of these records. Raises SchemaError, which names the field."""
    names = list(records[0])
    for record in records:
        if list(record) != names and set(record) != set(names):
            raise SchemaError(f"the samples differ in their fields: {', '.join(map(str, names))}, and "
                              f"{', '.join(map(str, record))}; give every sample all of them, or declare the "
                              "schema")
    return schema_of({name: _field_of(str(name), [record[name] for record in records]) for name in names})


def known_schema(source: Any) -> dict[str, Field] | None:
    """The schema of a source that knows its own."""
    return source.schema if isinstance(source, Dataset) else None


def class_names(source: Any) -> list[str] | None:
    """Class names as torchvision's data sets (`classes`) and ours (`names`) tell them."""
    found = source.names if isinstance(source, Dataset) else getattr(source, "classes", None)
    if isinstance(found, (list, tuple)) and found and all(isinstance(name, str) for name in found):
        return list(found)
    return None
