# SPDX-License-Identifier: Apache-2.0
"""Subsets choose the samples of a data set that a loader has: training and validation from one data set, folds, lists,
conditions.

    train = penstock.Loader("data", subset=penstock.Fraction(0, 0.8, seed=1), batch_size=256)
    valid = penstock.Loader("data", subset=penstock.Fraction(0.8, 1, seed=1), batch_size=256, shuffle=False,
                            last_batch="short")

    few = penstock.Loader("data", subset=[penstock.Fraction(0, 0.8, seed=1), penstock.Where("cls", in_=[3, 7])], ...)

Steps in a list apply in their order, each to the samples that the step before it left. Range counts in these samples,
Fraction and Fold divide them, Ids and Where keep those that they name. The ids of batches stay those of the data set.
All processes of a run, and a run that is resumed, must give the same subset. It depends neither on the number of
processes nor on the loader's seed.

Range, Fraction and Fold take no memory. Ids and Where keep 4 bytes for each sample that they leave (8 in data sets of
2**32 samples or more), and while the loader opens, a bit for each sample of the data set. Where reads the column once.
"""
from __future__ import annotations

import ast
import math
import operator
import os
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from ctypes import POINTER, byref, c_double, c_int64, c_uint64, c_void_p, cast, pointer, sizeof
from fractions import Fraction as Ratio
from typing import Any, BinaryIO, Union

from . import _c, errors, paths
from .arguments import integer, is_bool, number, switch, text, unmasked
from .errors import SettingsError
from .foreign import Opening
from .hints import explains, kind_of
from .sealed import Sealed

__all__ = ["Balanced", "Fold", "Fraction", "Ids", "Range", "Weighted", "Where"]

LINE_MAX = 4096  # bytes of a line of ids, at most


class Step(Sealed):
    """The base of the steps of a subset. Two steps with the same arguments are equal."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._said = arguments, {name: value for name, value in keywords.items() if value is not None}

    def to_c(self) -> list[_c.Subset]:
        """Return the step as structs for the library: one, or several if it has several conditions."""
        raise NotImplementedError

    def __repr__(self) -> str:
        arguments, keywords = self._said
        said = [repr(value) for value in arguments] + [f"{name}={value!r}" for name, value in keywords.items()]
        return f"{type(self).__name__}({', '.join(said)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


Subset = Union[Step, Sequence[Any]]  # a step, or a list of steps and of such lists


def _step(kind: int, **members: Any) -> _c.Subset:
    return _c.Subset(size=sizeof(_c.Subset), kind=kind, **members)


class Range(Step):
    """The samples first .. last - 1, counted in those that the steps before left. Reads stay together.

    Raises TypeError, and SettingsError if the range is empty; when the loader opens, also if last is larger than the
    number of samples.
    """

    def __init__(self, first: int, last: int) -> None:
        self._first, self._last = integer("Range.first", first), integer("Range.last", last)
        if self._first >= self._last:
            raise SettingsError(f"Range: value is {self._first} to {self._last}, which is empty; first must be below last")
        super().__init__(self._first, self._last)

    def to_c(self) -> list[_c.Subset]:
        return [_step(_c.SUBSET_RANGE, first=self._first, last=self._last)]


def _part(name: str, value: Any) -> int:
    """Return a fraction in billionths, rounded to the nearest. Raises TypeError, SettingsError."""
    try:
        number = Ratio(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: value is {value!r}; must be a number from 0 to 1") from None
    if not 0 <= number <= 1:
        raise SettingsError(f"{name}: value is {value!r}; must be from 0 to 1")
    return round(number * _c.SUBSET_WHOLE)


class Fraction(Step):
    """A random part of the samples: from the fraction `start` to the fraction `stop` of a permutation. It depends only
    on the seed, and is the same on every machine.

    Fractions of one seed have no sample in common if one begins where the other ends; fractions that cover 0 to 1 have
    all samples, for every number n of them. A bound is rounded to a billionth, and then is the position floor(n *
    bound), exactly: 0.7 of 10 is 7. Another seed draws another permutation; the default is 0.

    The samples lie scattered in the data set, so they are read one by one. For large reads pack the data set in random
    order, and give a Range.

    Raises TypeError, SettingsError (bounds outside of 0 to 1, or start not below stop; no sample is left).
    """

    def __init__(self, start: float, stop: float, *, seed: int = 0) -> None:
        self._first, self._last = _part("Fraction.start", start), _part("Fraction.stop", stop)
        self._seed = integer("Fraction.seed", seed)
        if self._first >= self._last:
            raise SettingsError(f"Fraction: value is {start!r} to {stop!r}, which is empty; start must be below stop")
        super().__init__(start, stop, seed=self._seed)

    def to_c(self) -> list[_c.Subset]:
        return [_step(_c.SUBSET_FRACTION, first=self._first, last=self._last, seed=self._seed)]


@explains({"stratify": "folds are drawn without regard to classes; give penstock.Ids(ids) the places that "
           "sklearn.model_selection.StratifiedKFold has"})
class Fold(Step):
    """Part k of `of` equal parts of the samples, which a seed draws: for validation. With rest=True it is all parts
    except k: for training.

    Parts of one seed have no sample in common, and their sizes differ by at most 1. Fold(0, 5, seed=1) is Fraction(0,
    0.2, seed=1).

    k: number of the part, from 0.
    of: number of parts, at least 2.
    seed: another seed draws other parts; the default is 0.

    Raises TypeError, SettingsError (k is not below `of`; no sample is left).
    """

    def __init__(self, k: int, of: int, *, seed: int = 0, rest: bool = False) -> None:
        self._n = integer("Fold.of", of, 2, 2**32 - 1)
        self._k, self._seed = integer("Fold.k", k, 0, self._n - 1), integer("Fold.seed", seed)
        self._rest = switch("Fold.rest", rest)
        super().__init__(self._k, self._n, seed=self._seed, rest=True if self._rest else None)

    def to_c(self) -> list[_c.Subset]:
        return [_step(_c.SUBSET_FOLD, fold=self._k, n_folds=self._n, seed=self._seed, inverted=int(self._rest))]


def _of_text(file: BinaryIO, path: str) -> array[int]:
    ids = array("Q")
    for number, line in enumerate(iter(lambda: file.readline(LINE_MAX), b""), 1):
        if not line.strip():
            continue
        try:
            if len(line) == LINE_MAX and line[-1:] != b"\n":  # only the beginning of a line
                raise ValueError
            ids.append(int(line))
        except (ValueError, OverflowError):
            shown = line.strip()[:40].decode(errors="backslashreplace")
            raise SettingsError(f"Ids: line {number} of {path} is {shown!r}; must be a sample id, one on each line") from None
    return ids


def _of_npy(file: BinaryIO, path: str) -> array[int]:
    """Return the ids of a .npy file: an array of one dimension, of whole numbers. NumPy is not needed. Raises
    TypeError, SettingsError."""
    start = file.read(10)
    wide = start[6:7] != b"\x01"
    length = int.from_bytes(start[8:10] + (file.read(2) if wide else b""), "little")
    try:
        if start[:6] != b"\x93NUMPY":
            raise ValueError
        head = ast.literal_eval(file.read(length).decode("latin-1"))
        dtype, shape = str(head["descr"]), tuple(head["shape"])
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        raise SettingsError(f"Ids: {path} is not a .npy file; must be a .npy file, or text with an id on each line") from None
    kinds = {"<i8": "q", "<u8": "Q", "<i4": "i", "<u4": "I", "<i2": "h", "<u2": "H", "|u1": "B", "|i1": "b"}
    if dtype not in kinds or len(shape) != 1 or not isinstance(shape[0], int) or not 0 <= shape[0] < 2**48:
        raise SettingsError(f"Ids: {path} has an array of dtype {dtype} and shape {shape}; must have one dimension and "
                            "whole numbers")
    values = array(kinds[dtype])
    n_bytes = os.fstat(file.fileno()).st_size - file.seek(0, os.SEEK_CUR)
    if n_bytes >= shape[0] * values.itemsize:
        found = file.read(shape[0] * values.itemsize)
        values.frombytes(found[: len(found) // values.itemsize * values.itemsize])  # the file may have been cut since its size was read
    if len(values) != shape[0]:
        raise SettingsError(f"Ids: {path} has fewer than its {shape[0]} values; must be whole")
    if sys.byteorder != "little":
        values.byteswap()
    return values if values.typecode == "Q" else _of_numbers(values)


def _of_numbers(values: Iterable[Any]) -> array[int]:
    ids = array("Q")
    for i, value in enumerate(values):
        try:
            if isinstance(value, bool):
                raise TypeError
            ids.append(operator.index(value))
        except TypeError:
            mask = " (of a mask give its places: numpy.flatnonzero(mask))" if isinstance(value, bool) else ""
            raise TypeError(f"Ids[{i}]: value is {value!r}; must be a sample id{mask}") from None
        except OverflowError:
            raise SettingsError(f"Ids[{i}]: value is {value}; must be a sample id, 0 or more") from None
    return ids


def _of_array(values: Any) -> array[int]:
    """Return the ids of a NumPy array, all at once. Raises TypeError, SettingsError."""
    unmasked("Ids", values)
    ids = array("Q")
    if values.ndim != 1 or values.dtype.kind not in "iu":
        mask = " (of a mask give its places: numpy.flatnonzero(mask))" if values.dtype.kind == "b" else ""
        raise TypeError(f"Ids: value is an array of dtype {values.dtype} and shape {values.shape}; must have one dimension "
                        f"and whole numbers{mask}")
    if len(values) and int(values.min()) < 0:
        raise SettingsError(f"Ids: value has {int(values.min())}; must be sample ids, 0 or more")
    ids.frombytes(values.astype("uint64").tobytes())
    return ids


class Ids(Step):
    """The listed samples, in the order of the list. After other steps, only those of them that are left.

    ids: sample ids, each once: a list, a NumPy array or a tensor of one dimension; or the path of a .npy file, or of a
        text file with an id on each line. To get samples several times, give weights=, or pack them several times.

    Raises TypeError, SettingsError. When the loader opens, SettingsError also for an id that the data set does not
    have, or that comes twice.
    """

    def __init__(self, ids: Iterable[int] | str | os.PathLike[str]) -> None:
        if isinstance(ids, (str, bytes, os.PathLike)):
            path = paths.local(ids, "Ids", "the name of a file")
            with paths.regular(path, "Ids", "the path of a .npy file or of text with an id on each line") as file, \
                    paths.naming("Ids", "read", path):
                self._ids = (_of_npy if path.endswith(".npy") else _of_text)(file, path)
            shown: Any = path
        else:
            if hasattr(ids, "__array__") and hasattr(ids, "tolist") and not hasattr(ids, "typecode"):
                values = ids if hasattr(ids, "dtype") and hasattr(ids, "astype") else None
                self._ids = _of_array(values) if values is not None else _of_numbers(ids.tolist())
            elif isinstance(ids, Iterable) and not isinstance(ids, Mapping):
                self._ids = _of_numbers(ids)
            else:
                raise TypeError(f"Ids: value is {ids!r}; must be sample ids, or the path of a file of them")
            shown = self._ids.tolist() if len(self._ids) <= 8 else _Many(len(self._ids))
        if not self._ids:
            raise SettingsError("Ids: value has no ids; must have 1 or more")
        super().__init__(shown)

    def to_c(self) -> list[_c.Subset]:
        address, n = self._ids.buffer_info()
        return [_step(_c.SUBSET_IDS, ids=cast(c_void_p(address), POINTER(c_uint64)), n_ids=n)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ids) and self._ids == other._ids

    def __hash__(self) -> int:
        return hash(self._ids.tobytes())


class _Many:
    """The repr of a long list."""

    def __init__(self, n: int, what: str = "ids") -> None:
        self._n, self._what = n, what

    def __repr__(self) -> str:
        return f"<{self._n:,} {self._what}>"


def _values(name: str, given: Any) -> array[int]:
    """Return the values to compare a column with, whole numbers that fit 64 bits with a sign. False and True are 0 and
    1, as in columns. Raises TypeError, SettingsError."""
    listed = [given] if (is_bool(given) or hasattr(given, "__index__")) and not hasattr(given, "__len__") else given
    try:
        found = [integer(name, int(value) if is_bool(value) else value, -2**63, 2**63 - 1) for value in listed]
    except TypeError:
        raise TypeError(f"{name}: value is {given!r}; must be whole numbers (for others give at_least=, below=)") from None
    if not found:
        raise SettingsError(f"{name}: value is empty; must have 1 or more values")
    return array("q", found)


def _bound(name: str, value: Any, default: float) -> tuple[float, int]:
    """Return the float next to a bound, and the difference from that float if the bound is a whole number. Raises
    TypeError, SettingsError."""
    if value is None:
        return default, 0
    try:
        nearest = number(name, value, -math.inf, math.inf)
        try:
            rest = operator.index(value) - int(nearest)
        except (TypeError, OverflowError):  # no whole number, such as an array of one float; or infinity
            rest = 0
        return nearest, max(-1024, min(1024, rest))  # beyond 64 bits only the sign matters
    except TypeError:
        raise TypeError(f"{name}: value is {value!r}; must be a number") from None
    except ValueError:  # NaN, or a whole number above all floats
        raise SettingsError(f"{name}: value is {value!r}; must be a number that a float can hold") from None


class Where(Step):
    """The samples whose value in a side column meets a condition. Several conditions must all be met.

    column: name of the column; Dataset.columns has the names.
    in_: the value is one of these; for columns of whole numbers.
    not_in: the value is none of these; for columns of whole numbers.
    at_least, below: at_least <= value < below, for any column. Whole numbers are compared exactly, of any size. Without
        below, inf is included; NaN never is.

    The samples are found when the loader opens. Columns are no part of a data set's identity: if one was replaced, a
    run can only be resumed if the same samples are found.

    Raises TypeError, SettingsError (no such column, no sample is left).
    """

    def __init__(self, column: str, *, in_: Iterable[int] | None = None, not_in: Iterable[int] | None = None,
                 at_least: float | None = None, below: float | None = None) -> None:
        if not isinstance(column, str):
            raise TypeError(f"Where.column: value is {column!r}; must be the name of a side column")
        self._column = text("Where.column", column)
        if in_ is None and not_in is None and at_least is None and below is None:
            raise SettingsError("Where: value has no condition; must have in_=, not_in=, at_least= or below=")
        self._lists = [(inverted, _values(name, given)) for inverted, name, given in
                       ((0, "Where.in_", in_), (1, "Where.not_in", not_in)) if given is not None]
        self._bounds = None
        if at_least is not None or below is not None:
            least, most = _bound("Where.at_least", at_least, -math.inf), _bound("Where.below", below, math.inf)
            if most == (math.inf, 0) and below is not None:  # inf is not below inf, but all finite numbers are
                most = sys.float_info.max, 1
            if not (least < most or below is None):
                raise SettingsError(f"Where: value is at_least={at_least!r}, below={below!r}, which no value fits; at_least "
                                    "must be less than below")
            self._bounds = least, most
        shown = {name: list(values) for name, (_, values) in zip(
            [name for name, given in (("in_", in_), ("not_in", not_in)) if given is not None], self._lists)}
        super().__init__(column, **shown, at_least=at_least, below=below)

    def to_c(self) -> list[_c.Subset]:
        steps = [_step(_c.SUBSET_WHERE, column=self._column, inverted=inverted, n_values=len(values),
                       values=cast(c_void_p(values.buffer_info()[0]), POINTER(c_int64))) for inverted, values in self._lists]
        if self._bounds is not None:
            (least, least_rest), (below, below_rest) = self._bounds
            steps.append(_step(_c.SUBSET_BETWEEN, column=self._column, least=least, least_rest=least_rest, below=below,
                               below_rest=below_rest))
        return steps


class Weights(Step):
    """The base of weights=, which draws samples with replacement. It is the last step, and not a part of subset=."""


def _doubles(values: Any) -> array[float]:
    """Return the numbers of a list, an array or a tensor of one dimension. Raises TypeError, SettingsError."""
    listed = unmasked("Weighted", values).tolist() if hasattr(values, "tolist") else values
    try:
        if isinstance(values, Mapping):  # the keys of a mapping are no weights
            raise TypeError
        return array("d", [float(value) for value in listed])
    except (TypeError, ValueError):
        raise TypeError(f"Weighted: value is {kind_of(values)}; must be the name of a side column, or a number for "
                        "each sample") from None


class Weighted(Weights):
    """Draw samples at random with replacement, with probabilities in proportion to their weights:
    weights=penstock.Weighted(...) of penstock.Loader. A sample may come several times in an epoch, or not at all, and
    its augmentations differ each time.

    weights: the name of a side column, or a number for each sample of the data set, by id, also where subset= leaves
        fewer. Samples of weight 0 never come.

    A draw takes constant time. It depends only on the seed, the epoch and its position, so a run can be resumed at any
    position with any number of processes. Weights become whole numbers of up to 53 bits, so all machines draw the same
    samples. The loader keeps 12 bytes for each sample to draw from.

    Raises TypeError. When the loader opens, raises SettingsError if a weight is negative, infinite or NaN, or all are
    0; if there are more or fewer numbers than samples; or if there is no such column.
    """

    def __init__(self, weights: str | Iterable[float]) -> None:
        self._column = text("Weighted", weights) if isinstance(weights, str) else None
        self._numbers = array("d") if isinstance(weights, str) else _doubles(weights)
        if not weights if isinstance(weights, str) else not self._numbers:
            raise SettingsError("Weighted: value is empty; must be the name of a side column, or a number for each sample")
        super().__init__(weights if isinstance(weights, str) else _Many(len(self._numbers), "weights"))

    def to_c(self) -> list[_c.Subset]:
        if self._column is not None:
            return [_step(_c.SUBSET_WEIGHTED, column=self._column)]
        address, n = self._numbers.buffer_info()
        return [_step(_c.SUBSET_WEIGHTED, n_weights=n, weights=cast(c_void_p(address), POINTER(c_double)))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weighted) and (self._column, self._numbers) == (other._column, other._numbers)

    def __hash__(self) -> int:
        return hash((self._column, self._numbers.tobytes()))


class Balanced(Weights):
    """Draw samples with replacement: each class comes equally often, and so does each sample of a class:
    weights=penstock.Balanced("cls") of penstock.Loader. Everything else is as in Weighted.

    column: name of a side column of whole numbers, the classes. They count in the samples that subset= leaves.
    """

    def __init__(self, column: str) -> None:
        if not isinstance(column, str):
            raise TypeError(f"Balanced: value is {column!r}; must be the name of a side column")
        self._column = text("Balanced", column)
        super().__init__(column)

    def to_c(self) -> list[_c.Subset]:
        return [_step(_c.SUBSET_BALANCED, column=self._column)]


def flat(subset: Any) -> list[Step]:
    """Return the steps of a subset as a flat list. Raises TypeError, SettingsError."""
    if isinstance(subset, Weights):
        raise SettingsError(f"subset: value has {subset!r}, which selects no part of the samples; give weights={subset!r}")
    if isinstance(subset, Step):
        return [subset]
    if not isinstance(subset, (list, tuple)):
        raise TypeError(f"subset: value is {subset!r}; must be penstock.Range, Fraction, Fold, Ids or Where, or a list of "
                        "them")
    steps = [step for part in subset for step in flat(part)]
    if not steps:
        raise SettingsError("subset: value is empty; must have 1 or more steps (or be None)")
    return steps


class Members:
    """The samples of a subset of one data set, which were found, and the weights to draw from them."""

    def __init__(self, path: str, steps: Sequence[Step], weights: Weights | None, n_draws: int,
                 foreign: Opening | None = None) -> None:
        self._pointer, self._steps, self._weights = c_void_p(), list(steps), weights
        chain = [part for step in [*steps, *([] if weights is None else [weights])] for part in step.to_c()]
        chain[-1].n_draws = n_draws
        for this, following in zip(chain, chain[1:]):
            this.next = pointer(following)
        error = errors.new()
        dataset = (foreign or Opening()).opened(path)
        try:
            errors.check(_c.lib.pstk_members_open(byref(self._pointer), dataset, byref(chain[0]), byref(error)), error)
        finally:
            _c.lib.pstk_dataset_close(byref(dataset))
        digest = (c_uint64 * 2)()
        _c.lib.pstk_members_digest(self._pointer, digest)
        self.n = int(_c.lib.pstk_members_n_draws(self._pointer))  # samples or draws of an epoch
        self.digest = f"{digest[0]:016x}{digest[1]:016x}"

    def fill(self, settings: _c.Settings) -> None:
        """Set these members in the settings. They must live until the loader is open."""
        settings.subset = pointer(self.step())

    def step(self) -> _c.Subset:
        """Return these members as the only step of a subset. They must live as long as it is used."""
        return _step(_c.SUBSET_MEMBERS, members=self._pointer.value)

    def __repr__(self) -> str:
        parts = [] if not self._steps else [f"subset {self._steps[0] if len(self._steps) == 1 else self._steps!r}"]
        return ", ".join(parts + ([] if self._weights is None else [f"weights {self._weights!r}"]))

    def __del__(self) -> None:
        if self._pointer:
            _c.lib.pstk_members_close(byref(self._pointer))


def opened(path: str, subset: Any, weights: Any, samples_per_epoch: Any, foreign: Opening | None = None) -> Members:
    """Find the samples of a subset, and return them with their weights. Raises TypeError, SettingsError, and the errors
    of opening a data set."""
    if weights is not None and not isinstance(weights, Weights):
        raise TypeError(f"weights: value is {kind_of(weights)}; must be penstock.Weighted or penstock.Balanced")
    n_draws = 0 if samples_per_epoch is None else integer("samples_per_epoch", samples_per_epoch, 1, 2**62)
    if n_draws and weights is None:
        raise SettingsError(f"samples_per_epoch: value is {n_draws}; must be None without weights=, which draw samples (give "
                            "subset= for fewer)")
    return Members(path, [] if subset is None else flat(subset), weights, n_draws, foreign)
