# SPDX-License-Identifier: Apache-2.0
"""Which field of a data set is the picture, its class, its boxes, by the library's rule (penstock/role.h)."""
from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref, c_uint32, sizeof

from . import _c, errors
from .packing.schema import Field


def find(schema: Mapping[str, Field], role: int, of: str | None = None, name: str | None = None) -> str | None:
    """Return the field that has a role, a _c.ROLE_...; None: no field is known to have it.

    of: the field that the role belongs to: the image of boxes, the boxes of their classes. name: look at this field alone.
    """
    if name is not None and name not in schema:
        return None
    fields = (_c.Field * len(schema))(*(field.to_c(key) for key, field in schema.items()))
    search = _c.RoleSearch(size=sizeof(_c.RoleSearch), field_size=sizeof(_c.Field), fields=fields, n_fields=len(schema), role=role,
                           of=None if of is None else of.encode(), name=None if name is None else name.encode())
    index, error = c_uint32(), errors.new()
    errors.check(_c.lib.pstk_role_find(byref(search), byref(index), byref(error)), error)
    return None if index.value == _c.NO_FIELD else list(schema)[index.value]
