# SPDX-License-Identifier: Apache-2.0
"""Add side columns to a data set, and remove them."""
from __future__ import annotations

import ctypes
import os
from typing import Any

from .. import _c, dtypes, errors, paths
from .._optional import needed
from ..arguments import switch, text, unmasked
from ..errors import SettingsError
from ..hints import explained

__all__ = ["add_column", "remove_column"]


def _array(name: str, values: Any) -> tuple[Any, int]:
    """Return values as a contiguous little-endian array, and the code of its dtype. Raises SettingsError."""
    needed("numpy", "adding columns")
    import numpy
    array = numpy.asarray(unmasked(f"column {name}", values))
    dtype = dtypes.DTYPES.get(array.dtype.name)
    if dtype is None:
        raise SettingsError(f"column {name}: dtype of the values is {array.dtype}; must be one of "
                            + ", ".join(dtypes.DTYPES) + " (for bool: array.astype('uint8'))")
    if array.ndim != 1:
        raise SettingsError(f"column {name}: the values have {array.ndim} dimensions; must have one, with a value for "
                            "each sample")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return numpy.ascontiguousarray(array), dtype.code


@explained("penstock.add_column", {})
def add_column(path: str | os.PathLike[str], name: str, values: Any, *, overwrite: bool = False) -> None:
    """Add a side column to a data set: values[i] belongs to sample i.

    path: directory of the data set, or of a part.
    name: 1 to 79 of the characters A-Z a-z 0-9 _ . -
    values: a NumPy array of one dimension (numpy.memmap too), or values of which numpy.asarray makes one.
    overwrite: replace a column of that name.

    The column's files are written first; the last step replaces the manifest. Samples and identity stay, and open data
    sets are not affected: open the data set again to see the column. `Dataset.column` reads it.

    Raises SettingsError (another number of values, another dtype, a NaN), DataSetExistsError (there is such a column),
    DataSetBusyError (a writer is at work there), DataSetNotFoundError. After an error the columns are as they were.
    """
    array, code = _array(name, values)
    column = _c.NewColumn(size=ctypes.sizeof(_c.NewColumn), dtype=code, name=text("name", name),
                          values=array.ctypes.data, n=len(array), overwrite=int(switch("overwrite", overwrite)))
    error = errors.new()
    try:
        errors.check(_c.lib.pstk_column_add(os.fsencode(paths.local(path)), ctypes.byref(column), _c.ProgressFn(),
                                            None, ctypes.byref(error)), error)
    except errors.DataSetExistsError as exists:
        exists.args = (str(exists).replace("set overwrite to", "set overwrite=True to"),)
        raise


@explained("penstock.remove_column", {})
def remove_column(path: str | os.PathLike[str], name: str) -> None:
    """Remove a side column from a data set. Raises DataSetNotFoundError if it has no such column, and
    DataSetBusyError."""
    error = errors.new()
    errors.check(_c.lib.pstk_column_remove(os.fsencode(paths.local(path)), text("name", name), ctypes.byref(error)),
                 error)
