# SPDX-License-Identifier: Apache-2.0
"""Make fields of Arrow's columns, by their types."""
from __future__ import annotations

from typing import Any

from ..dtypes import DTYPES
from ..errors import SettingsError
from .schema import Field

__all__ = ["field_of", "number_of"]

_KINDS = {"bool": "uint8", "halffloat": "float16", "float": "float32", "double": "float64", "string": "utf8",
          "large_string": "utf8", "binary": "bytes", "large_binary": "bytes", "string_view": "utf8", "binary_view": "bytes"}
_LISTS = ("list<", "large_list<", "fixed_size_list<")


def _plain(kind: Any) -> str | None:
    """Return the kind of a column without lists; None: no field has it."""
    text = str(kind)
    if text.startswith("fixed_size_binary["):
        return "bytes"
    return _KINDS.get(text, text if text in DTYPES else None)


def number_of(kind: Any) -> str | None:
    """Return the dtype of a column of numbers, or of lists of numbers to any depth; None: it is another column."""
    while str(kind).startswith(_LISTS):
        kind = kind.value_type
    found = _plain(kind)
    return found if found in DTYPES and str(kind) != "bool" else None


def field_of(name: str, kind: Any) -> Field:
    """Return the field of a column of numbers, bool (uint8), text, binary, lists of text or binary, or lists of numbers
    to any depth. Raises SettingsError, which names the column.

    name: name of the column.
    kind: its pyarrow.DataType.
    """
    found = _plain(kind)
    if found is not None:
        return Field(found)
    shape, inner = [], kind
    while str(inner).startswith(_LISTS):
        size = inner.list_size if str(inner).startswith("fixed_size_list<") else None
        shape.append(size or None)
        inner = inner.value_type
    found = _plain(inner) if shape else None
    if found in DTYPES:
        return Field(found, tuple(shape))
    if found is not None and len(shape) == 1:
        return Field([found])
    raise SettingsError(f"schema: column {name} has the type {kind}, which no field has; must be numbers, text, binary, or "
                        "lists of them (convert or drop the column, or give a schema)")
