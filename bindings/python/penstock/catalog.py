# SPDX-License-Identifier: Apache-2.0
"""What a loader has to know of a data set before it opens: its identity and its fields."""
from __future__ import annotations

import os
from ctypes import byref, c_void_p, sizeof
from typing import NamedTuple

from . import _c, errors


class Column(NamedTuple):
    """One field of the schema. kind and dtype are enum pstk_field_kind and pstk_dtype; shape is () but for
    arrays, 0 in it is a variable dimension."""

    name: str
    kind: int
    dtype: int
    shape: tuple[int, ...]


class Catalog(NamedTuple):
    """A data set, from its manifest."""

    path: str
    identity: str
    n_samples: int
    fields: tuple[Column, ...]


def _field(handle: c_void_p, number: int) -> Column:
    field = _c.Field()
    _c.lib.pstk_dataset_get_field(handle, number, byref(field), None)
    return Column(field.name.decode(), field.kind, field.dtype, tuple(field.shape[:field.n_dims]))


def read(path: str | os.PathLike[str]) -> Catalog:
    """Read the manifest of a data set. Raises DataSetNotFoundError, CorruptRecordError and others."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise errors.SettingsError(f"path: {path!r} has a zero byte in it")
    handle, error = c_void_p(), errors.new()
    try:
        errors.check(_c.lib.pstk_dataset_open(byref(handle), name, byref(error)), error)
        info = _c.DatasetInfo(size=sizeof(_c.DatasetInfo))
        errors.check(_c.lib.pstk_dataset_get_info(handle, byref(info)), error)
        fields = tuple(_field(handle, i) for i in range(info.n_fields))
        return Catalog(os.fspath(path), info.identity.decode(), info.n_samples, fields)
    finally:
        _c.lib.pstk_dataset_close(byref(handle))
