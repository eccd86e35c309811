# SPDX-License-Identifier: Apache-2.0
"""Batches by what their samples cost, in place of a number of rows: so many tokens, pixels or bytes.

    penstock.Loader("text", batch_size=penstock.Budget(16_384, "tokens.length"), last_batch="short")

    penstock.Budget(16_384, "tokens.length", padded=True)      # for a loop that pads to the longest row
    penstock.Budget(4_000_000, lambda columns: columns["jpg.width"] * columns["jpg.height"])

Every sample has a cost. Buckets are ranges of costs, and each bucket has one open batch. The loader goes through the
order of an epoch, and adds each sample to the open batch of its bucket. If the batch would then exceed the budget, it
is complete, and the sample begins a new one. Batches come in the order in which they are completed; at the end of the
epoch the open ones follow, in the order of their first samples. So each sample comes once in an epoch, and the batches
do not depend on the number of processes: in step t of R processes, process r has batch t * R + r.
"""
from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import POINTER, byref, c_uint32, c_uint64, c_void_p, cast, pointer, sizeof
from typing import Any, Union

from . import _c, errors
from ._optional import needed
from .arguments import integer, items, switch, text
from .catalog import Catalog, no_column, opened
from .dtypes import DTYPE_NAMES
from .errors import SettingsError
from .hints import near
from .outputs import Output
from .sealed import Sealed

__all__ = ["Budget"]

Costs = Union[str, Callable[[Mapping[str, Any]], Any], Iterable[int]]

_CODES = {"uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i", "uint64": "Q", "int64": "q",
          "float32": "f", "float64": "d"}
_MAX = 2**32 - 1


def _edges(buckets: Any) -> tuple[int, ...]:
    buckets = items("Budget.buckets", buckets, "a list of rising costs, such as [128, 256, 512], or None")
    edges = tuple(integer(f"Budget.buckets[{i}]", edge, 1, _MAX) for i, edge in enumerate(buckets))
    for before, edge in zip(edges, edges[1:]):
        if edge <= before:
            raise SettingsError(f"Budget.buckets: value has {edge} after {before}; must be in rising order")
    if len(edges) >= _c.MAX_BUCKETS:
        raise SettingsError(f"Budget.buckets: value has {len(edges)} costs; must have less than {_c.MAX_BUCKETS}")
    return edges


def _listed(costs: Costs) -> Any:
    """Return costs in a form that can be compared: numbers as a list, also those of an array."""
    if isinstance(costs, str) or callable(costs):
        return costs
    return costs.tolist() if hasattr(costs, "tolist") else list(costs) if isinstance(costs, Sequence) else costs


class Budget(Sealed):
    """Batches whose samples cost at most `total` together: batch_size=penstock.Budget(...) of penstock.Loader.

    total: the most that the samples of one process's batch may cost together.
    column: the cost of each sample, a whole number from 0 to 2**32 - 1. It is the name of a side column
        (Dataset.columns has their names: packing makes "tokens.length" of a field `tokens` of variable length). Or it
        is a function: it gets the columns by their names, NumPy arrays, of int64 for whole numbers except uint64, and
        returns an array. Or it is one number for each sample of the data set, by id, also where subset= leaves fewer.
    buckets: the costs at which buckets begin, in rising order; [] is a single bucket. None: the first bucket begins at
        the smallest cost of the loader's samples (at least 1), each further one at 5/4 of the one before, rounded down,
        and at least 1 above it. So the costs in one batch differ by a quarter at most.
    max_rows: the most rows of a batch; None: as many as the budget allows. Slots have memory for this number of rows.
    padded: True: a batch costs its rows times its largest cost, for loops that pad rows to the longest. False: it costs
        the sum.
    too_long: the treatment of samples that cost more than `total`: "error" raises SettingsError when the loader opens,
        "drop" leaves them out, "alone" gives each a batch of its own.

    With last_batch="short" each sample comes once in an epoch; processes without a batch in the last step get one of 0
    rows. "pad" gives these processes batches from the start of the epoch. "drop" leaves out the last step if some
    process has no batch in it, unless it is the only step. All processes have the same number of batches; it may differ
    from epoch to epoch.

    A budget takes memory of the loader, which max_memory includes: 4 bytes for each sample of the data set; and for
    each of two epochs 4 bytes for each sample of an epoch (8 from 2**32 samples on), and 8 for each possible batch. The
    loader forms the batches of an epoch when it opens; a reader thread forms those of each further epoch before it
    reads the first.

    Raises TypeError and SettingsError for a wrong value. When the loader opens, it raises them also if there is no such
    column; if a cost is negative, above 2**32 - 1 or not whole; if there are more or fewer costs than samples; with
    order="windowed" or a mixture; and for samples that cost more than `total`.
    """

    total: int
    column: Costs
    buckets: tuple[int, ...] | None
    max_rows: int | None
    padded: bool
    too_long: str

    def __init__(self, total: int, column: Costs, *, buckets: Iterable[int] | None = None, max_rows: int | None = None,
                 padded: bool = False, too_long: str = "error") -> None:
        total = integer("Budget.total", total, 1, 2**62, " (tokens or pixels of a batch)")
        if not (isinstance(column, (str, Iterable)) or callable(column)) or isinstance(column, (bytes, Mapping)):
            raise TypeError(f"Budget.column: value is {column!r}; must be the name of a side column, a function of the columns, "
                            "or a number for each sample")
        edges = None if buckets is None else _edges(buckets)
        max_rows = None if max_rows is None else integer("Budget.max_rows", max_rows, 1, 2**30)
        padded = switch("Budget.padded", padded)
        if not isinstance(too_long, str) or too_long not in _c.NAMES["too_long"]:
            raise SettingsError(f"Budget.too_long: value is {too_long!r}; must be 'error', 'drop' or 'alone'"
                                + near(too_long, _c.NAMES["too_long"]))
        self._fix(total=total, column=column, buckets=edges, max_rows=max_rows, padded=padded, too_long=too_long)

    def _rest(self) -> tuple[Any, ...]:
        """Return all members except the costs."""
        return self.total, self.buckets, self.max_rows, self.padded, self.too_long

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self._rest() == other._rest() and _listed(self.column) == _listed(other.column)

    def __hash__(self) -> int:
        return hash(self._rest())

    def __repr__(self) -> str:
        said = [str(self.total)]
        if isinstance(self.column, str):
            said.append(repr(self.column))
        else:
            said.append(getattr(self.column, "__name__", "<function>") if callable(self.column) else "<costs>")
        said += [f"{name}={value!r}" for name, value, default in (
            ("buckets", self.buckets if self.buckets is None else list(self.buckets), None), ("max_rows", self.max_rows, None),
            ("padded", self.padded, False), ("too_long", self.too_long, "error")) if value != default]
        return f"Budget({', '.join(said)})"


class _Columns(Mapping[str, Any]):
    """The columns of a data set by their names. Each is read when it is asked for."""

    def __init__(self, path: str, catalog: Catalog) -> None:
        self._path, self._catalog, self._found = path, catalog, {column.name: column for column in catalog.columns}

    def __getitem__(self, name: str) -> Any:
        import numpy
        values = numpy.frombuffer(self.read(name), _CODES[self._found[name].dtype])
        return values.astype("int64") if values.dtype.kind in "iu" and values.dtype != "uint64" else values

    def __iter__(self) -> Any:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def read(self, name: str) -> array[Any]:
        """Return the values of a column, in the column's own type. Raises SettingsError."""
        if name not in self._found:
            raise no_column("Budget.column", name, self._path, self._catalog)
        dtype = self._found[name].dtype
        if dtype not in _CODES:
            raise SettingsError(f"Budget.column: value is {name!r}, a column of {dtype}; must have whole numbers")
        handle, error = opened(self._path), errors.new()
        try:
            n = _n_samples(handle)
            values = array(_CODES[dtype], bytes(n * array(_CODES[dtype]).itemsize))
            address, _ = values.buffer_info()
            errors.check(_c.lib.pstk_dataset_read_column(handle, text("Budget", name), 0, n, address, n * values.itemsize,
                                                         byref(error)), error)
        finally:
            _c.lib.pstk_dataset_close(byref(handle))
        return values


def _n_samples(handle: c_void_p) -> int:
    info = _c.DatasetInfo(size=_c.DatasetInfo.n_left_out.offset)  # short: the library then looks for no files left out
    errors.check(_c.lib.pstk_dataset_get_info(handle, byref(info)), errors.new())
    return int(info.n_samples)


def _refuse(i: int, value: Any) -> SettingsError:
    return SettingsError(f"Budget.column: sample {i} costs {value!r}; must be a whole number from 0 to {_MAX}")


def _one_by_one(values: Iterable[Any]) -> array[int]:
    costs = array("I")
    for i, value in enumerate(values):
        try:
            cost = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
            costs.append(cost)
        except (TypeError, OverflowError):
            raise _refuse(i, value) from None
    return costs


def _of_array(values: Any) -> array[int]:
    """Return the costs in a NumPy array. Raises TypeError and SettingsError."""
    import numpy
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise TypeError(f"Budget.column: value is an array of dtype {values.dtype} and shape {values.shape}; must have one "
                        "dimension and whole numbers")
    with numpy.errstate(invalid="ignore"):
        wrong = ~((values >= 0) & (values <= _MAX))  # also true for NaN
        if values.dtype.kind == "f":
            wrong |= numpy.floor(values) != values
    if wrong.any():
        i = int(wrong.argmax())
        raise _refuse(i, values[i].item())
    costs = array("I")
    costs.frombytes(values.astype("uint32").tobytes())
    return costs


def _costs(budget: Budget, path: str, catalog: Catalog) -> array[int]:
    """Return the cost of each sample of the data set. Raises TypeError and SettingsError."""
    given, columns = budget.column, _Columns(path, catalog)
    if isinstance(given, str):
        values: Any = columns.read(given)
        if values.typecode == "I":
            return values  # type: ignore[no-any-return]
    elif callable(given):
        needed("numpy", "costs of columns")
        values = given(columns)
    else:
        values = given
    try:
        import numpy
    except ImportError:
        numpy = None  # type: ignore[assignment]
    if hasattr(values, "detach"):  # a tensor of PyTorch's
        values = values.detach().cpu().numpy()
    if numpy is not None and isinstance(values, array):
        values = numpy.frombuffer(values, values.typecode) if len(values) else numpy.empty(0, "u4")
    if hasattr(values, "ndim") and hasattr(values, "astype"):
        return _of_array(values)
    if not isinstance(values, Iterable):
        raise TypeError(f"Budget.column: the function returned {values!r}; must be a number for each sample")
    return _one_by_one(values)


class Costed:
    """A budget with the costs of one data set's samples."""

    def __init__(self, budget: Budget, path: str, catalog: Catalog, order: str, mixture: Any) -> None:
        if order == "windowed":
            raise SettingsError(f"batch_size: value is {budget!r}; must be a number of rows with order='windowed', whose blocks "
                                "are read in its order (give order='full')")
        if mixture is not None:
            raise SettingsError(f"batch_size: value is {budget!r}; must be a number of rows with a mixture (open each data set "
                                "by itself)")
        self._catalog, self._budget = catalog, budget
        self._values, n = _costs(budget, path, catalog), catalog.info.n_samples
        if len(self._values) != n:
            raise SettingsError(f"Budget.column: value has {len(self._values)} costs; must have {n}, one for each sample of "
                                f"{path}, also where subset= leaves fewer")
        address, _ = self._values.buffer_info()
        edges = (c_uint32 * max(1, len(budget.buckets or ())))(*(budget.buckets or ()))
        self._edges = edges
        self._struct = _c.Budget(
            size=sizeof(_c.Budget), total=budget.total, max_rows=budget.max_rows or 0, padded=int(budget.padded),
            costs=cast(c_void_p(address), POINTER(c_uint32)), n_costs=n, too_long=_c.NAMES["too_long"][budget.too_long])
        if budget.buckets is not None:
            self._struct.edges, self._struct.n_edges = cast(edges, POINTER(c_uint32)), len(budget.buckets)
        words = (c_uint64 * 2)()
        errors.check(_c.lib.pstk_budget_digest(byref(self._struct), words), errors.new())
        self.digest = f"{words[0]:016x}{words[1]:016x}"  # digest of the budget and all costs

    def fill(self, settings: _c.Settings, outputs: Mapping[str, Output]) -> None:
        """Point the settings to this budget, which must live until the loader is open. Outputs whose items the costs
        count get room for them."""
        settings.budget = pointer(self._struct)
        for i, output in enumerate(outputs.values()):
            size = self._item_size(output)
            if size and not output.bytes_per_batch:
                settings.outputs[i].bytes_per_batch = max(self._budget.total, max(self._values)) * size

    def _item_size(self, output: Output) -> int:
        """Return the bytes of an item of an output, if the costs count its items; else 0."""
        column = next((column for column in self._catalog.columns if column.name == self._budget.column), None)
        if column is None or column.field != output.field:
            return 0
        if column.fact == "size" and output.kind == _c.OUTPUT_BYTES:
            return 1
        field = next(field.field for field in self._catalog.fields if field.name == output.field)
        if column.fact != "length" or output.kind != _c.OUTPUT_RAGGED or not field.shape or field.shape[0] is not None:
            return 0
        dtype = output.dtype or next(code for code, name in DTYPE_NAMES.items() if name == field.kind)
        return int(_c.lib.pstk_dtype_size(dtype)) * math.prod(size or 1 for size in field.shape[1:])
