# SPDX-License-Identifier: Apache-2.0
"""penstock.Mixture: several data sets in given shares. penstock.Loader takes it in place of a path."""
from __future__ import annotations

import copy
import dataclasses
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_double, cast, pointer, sizeof
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _c, catalog, errors, paths
from .arguments import items
from .errors import SettingsError
from .hints import kind_of, level_outside, near
from .outputs import Output
from .sealed import Sealed, Shown
from .settings import integer

if TYPE_CHECKING:
    from .foreign import Opening
    from .catalog import Catalog, FieldInfo
    from .subset import Members, Subset, Weights as SampleWeights

__all__ = ["DataSetStats", "Mixture"]

Path = Union[str, "os.PathLike[str]"]
Weights = Mapping[Path, float]

_PERIOD_MAX = 65536
# This is far less than the distance of a share, times a shorter period, from a whole number of slots; and more than
# rounding errors.
_EXACT = 1e-10


class DataSetStats(NamedTuple):
    """What a loader has delivered of one data set of its mixture.

    path: directory of the data set.
    n_samples: samples of an epoch of the data set: all, those of its subset, or its draws.
    n_delivered: rows of the data set that were delivered, in all epochs.
    share: their share of all delivered rows, 0 to 1; 0 before the first.
    """

    path: str
    n_samples: int
    n_delivered: int
    share: float


class Mixture(Sealed):
    """Several data sets as one, in given shares: penstock.Loader(Mixture({"web": 0.7, "books": 0.3}), ...).

    weights: {path: weight}, numbers of 0 or more in any unit. Or segments, [(0, {path: weight}), (begin, {path:
        weight}), ...]: other weights hold from the sample number `begin` on. A data set that a segment leaves out has
        the weight 0 in it. Samples are not repeated or lost where weights change. With exhaustion="repeat" `begin`
        counts the samples of the whole run, over all ranks: position + epoch * samples_per_epoch. Otherwise it counts
        those of each epoch.
    exhaustion: what happens when a data set has no more samples. "stop": the epoch ends. "repeat": the data set begins
        its next epoch, by itself, with another order and other random draws. "drop": the data set is left out, and the
        others go on by their weights, until each sample has come once.
    samples_per_epoch: with "repeat": samples of an epoch of the mixture; None: those of all data sets together.
    subset: a part of each data set, as for penstock.Loader: penstock.Fraction(0, 0.8, seed=1), for example. Or {path:
        subset}; data sets that it does not name are whole. Sample ids stay those of the data set, and a bad sample is
        replaced by one of the same subset. Sizes and epochs of a data set are then those of its subset.
    sample_weights: {path: penstock.Weighted(...) or penstock.Balanced(...)}: samples of that data set, or of its
        subset, are drawn with replacement. An epoch of it has as many draws as there are samples to draw from.

    Of the first p samples of a segment, a data set with the share w has p * w, rounded down or up. Shares are multiples
    of 1/T for the least whole T up to 65536 that makes them exact, or else of 1/65536, rounded.

    The fields that outputs read must be alike in all data sets (kind, dtype, shape); others may differ. Batches have
    `data_sets`, the number of each row's data set in the order of the first mention; `sample_ids` count within it. If
    an output reads integers, and one number has different class names in two data sets, the loader warns.

    foreign= of the loader holds for each data set of another format, so a field has the same default in all of them.
    For a default of its own, first pack that data set: penstock.pack(path, OUT,
    foreign=penstock.Foreign(fields={...})), and give OUT here. A Parquet table of images must first be written as CSV
    or JSON lines, or packed.

    Raises TypeError, SettingsError.
    """

    def __init__(self, weights: Weights | Sequence[tuple[int, Weights]], *, exhaustion: str = "stop",
                 samples_per_epoch: int | None = None, subset: Subset | Mapping[Path, Subset] | None = None,
                 sample_weights: Mapping[Path, SampleWeights] | None = None) -> None:
        if not isinstance(exhaustion, str) or exhaustion not in _c.NAMES["exhaustion"]:
            raise SettingsError(f"Mixture.exhaustion: value is {exhaustion!r}; must be one of "
                                f"{', '.join(map(repr, _c.NAMES['exhaustion']))}"
                                + near(str(exhaustion), _c.NAMES["exhaustion"]))
        segments = _segments(weights)
        names: dict[str, None] = {}
        for _, given in segments:
            names.update(dict.fromkeys(given))
        if not 1 <= len(names) <= _c.MAX_DATA_SETS:
            raise SettingsError(f"Mixture.weights: value has {len(names)} data sets; must have 1 to {_c.MAX_DATA_SETS}")
        if len(segments) > _c.MAX_SEGMENTS:
            raise SettingsError(f"Mixture.weights: value has {len(segments)} segments; must have at most {_c.MAX_SEGMENTS}")
        if samples_per_epoch is not None and exhaustion != "repeat":
            raise SettingsError(f"Mixture.samples_per_epoch: value is {samples_per_epoch!r}; must be None with exhaustion="
                                f"{exhaustion!r}: the data sets end the epoch (give exhaustion='repeat')")
        self._paths = tuple(names)
        self._segments = tuple((begin, tuple(given.get(name, 0.0) for name in names)) for begin, given in segments)
        self._exhaustion = exhaustion
        self._samples = 0 if samples_per_epoch is None else integer("samples_per_epoch", samples_per_epoch)
        if samples_per_epoch is not None and self._samples < 1:
            raise SettingsError(f"Mixture.samples_per_epoch: value is {samples_per_epoch!r}; must be at least 1, or None")
        self._subsets = _of_paths("subset", subset, self._paths) if isinstance(subset, Mapping) else \
            {} if subset is None else dict.fromkeys(self._paths, subset)
        if sample_weights is not None and not isinstance(sample_weights, Mapping):
            raise TypeError(f"Mixture.sample_weights: value is {sample_weights!r}; must be {{path: penstock.Weighted(...) or "
                            "penstock.Balanced(...)}")
        self._drawn = _of_paths("sample_weights", sample_weights or {}, self._paths)
        if self._subsets or self._drawn:
            _check_subsets(self._subsets, self._drawn)
        self._members: tuple[Members | None, ...] = ()  # samples of each data set, in a mixture that a loader has

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mixture) and self._shares() == other._shares() \
            and (self._subsets, self._drawn) == (other._subsets, other._drawn)

    def __hash__(self) -> int:
        return hash(self._shares())

    def _shares(self) -> tuple[Any, ...]:
        return self._paths, self._segments, self._exhaustion, self._samples

    @property
    def paths(self) -> tuple[str, ...]:
        """The directories of the data sets, in the order of their numbers."""
        return self._paths

    @property
    def segments(self) -> list[tuple[int, dict[str, float]]]:
        """The segments: (first sample, {path: weight})."""
        return [(begin, dict(zip(self._paths, weights))) for begin, weights in self._segments]

    @property
    def exhaustion(self) -> str:
        """What happens when a data set has no more samples: "stop", "repeat" or "drop"."""
        return self._exhaustion

    @property
    def samples_per_epoch(self) -> int | None:
        """Samples of an epoch, as they were given; None: not given."""
        return self._samples or None

    @property
    def subsets(self) -> Mapping[str, Subset]:
        """The subsets by path. Data sets that are whole have no entry."""
        return Shown(self._subsets)

    @property
    def sample_weights(self) -> Mapping[str, SampleWeights]:
        """The weights of samples, by path. Data sets without weights have no entry."""
        return Shown(self._drawn)

    def __repr__(self) -> str:
        more = f", samples_per_epoch={self._samples}" if self._samples else ""
        weights: Any = self.segments if len(self._segments) > 1 else self.segments[0][1]
        more += f", subset={self._subsets!r}" if self._subsets else ""
        more += f", sample_weights={self._drawn!r}" if self._drawn else ""
        return f"Mixture({weights!r}, exhaustion={self._exhaustion!r}{more})"

    # ---- for the loader ------------------------------------------------------------------------------------

    def _bound(self, foreign: Opening | None) -> Mixture:
        """Return a copy with the samples of its subsets, or this mixture if all data sets are whole. Raises the errors
        of penstock.subset."""
        if not self._subsets and not self._drawn:
            return self
        found = copy.copy(self)
        found._members = tuple(_members(path, self._subsets.get(path), self._drawn.get(path), foreign) for path in self._paths)
        return found

    def _state(self) -> dict[str, Any]:
        """Return the values that fix the order, for JSON, without the identities of the data sets."""
        return {"version": _c.MIXTURE_VERSION, "exhaustion": self._exhaustion, "samples_per_epoch": self._samples,
                "segments": [[begin, list(weights)] for begin, weights in self._segments],
                **({"subsets": [found and found.digest for found in self._members]} if self._members else {})}

    def _fill(self, settings: _c.Settings) -> None:
        """Set the mixture in the library's settings, which keep alive the objects that it points to."""
        mixture, n = _c.Mixture(), len(self._paths)
        _c.lib.pstk_mixture_init(byref(mixture), sizeof(mixture))
        from .foreign import parquet_of
        for path in filter(parquet_of, self._paths):
            raise SettingsError(f"path: value has {path}, a Parquet table; must be CSV or JSON lines in a mixture (write the table as "
                                "one of these)")
        names = (c_char_p * n)(*map(os.fsencode, self._paths))
        arrays = [(c_double * n)(*weights) for _, weights in self._segments]
        segments = (_c.MixtureSegment * len(arrays))(*(
            _c.MixtureSegment(begin, cast(array, POINTER(c_double))) for (begin, _), array in zip(self._segments, arrays)))
        mixture.paths, mixture.n_data_sets = cast(names, POINTER(c_char_p)), n
        mixture.segments, mixture.n_segments = cast(segments, POINTER(_c.MixtureSegment)), len(arrays)
        mixture.exhaustion, mixture.samples_per_epoch = _c.NAMES["exhaustion"][self._exhaustion], self._samples
        subsets = (POINTER(_c.Subset) * n)(*(
            POINTER(_c.Subset)() if found is None else pointer(found.step()) for found in self._members or [None] * n))
        if self._members:
            mixture.subsets = cast(subsets, POINTER(POINTER(_c.Subset)))
        settings._mixture = mixture, names, arrays, segments, subsets
        settings.path, settings.mixture = None, cast(byref(mixture), POINTER(_c.Mixture))

    def _stats(self, loader: Any) -> tuple[DataSetStats, ...]:
        """Return the statistics of each data set. loader: a pointer to an open loader."""
        found = []
        for number in range(len(self._paths)):
            stats = _c.MixtureStats(size=sizeof(_c.MixtureStats))
            errors.check(_c.lib.pstk_mixture_get_stats(loader, number, byref(stats)), errors.new())
            found.append(stats)
        n = sum(stats.n_delivered for stats in found)
        return tuple(DataSetStats(path, stats.n_samples, stats.n_delivered, stats.n_delivered / n if n else 0.0)
                     for path, stats in zip(self._paths, found))


def _weight(path: str, value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"Mixture.weights: value is {value!r} for {path}; must be a number") from None
    if not (weight >= 0 and math.isfinite(weight)):
        raise SettingsError(f"Mixture.weights: value is {value!r} for {path}; must be a number, 0 or more (give each data set "
                            "its share, in any unit)")
    return weight


def _weights(given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise TypeError(f"Mixture.weights: value is {given!r}; must be {{path: weight}}")
    found: dict[str, float] = {}
    for path, value in given.items():
        name = os.path.abspath(paths.local(path))
        if name in found:
            raise SettingsError(f"Mixture.weights: value has {name} twice; must have each data set once (give it once, with "
                                "the sum of both weights)")
        found[name] = _weight(name, value)
    if not sum(found.values()) > 0:
        raise SettingsError(f"Mixture.weights: value is {dict(given)!r}; must have a weight above 0")
    return found


def _of_paths(name: str, given: Mapping[Any, Any], known: Sequence[str]) -> dict[str, Any]:
    """Return {path: value} with the mixture's names of the paths, in the order of its data sets. Raises SettingsError."""
    found: dict[str, Any] = {}
    for path, value in given.items():
        local = os.path.abspath(paths.local(path))
        if local not in known:
            raise SettingsError(f"Mixture.{name}: value has the path {local}, which has no weight; must be of a data set of the "
                                "mixture" + near(local, known))
        if local in found:
            raise SettingsError(f"Mixture.{name}: value has {local} twice; must have each data set once")
        if value is not None:
            found[local] = value
    return {path: found[path] for path in known if path in found}


def _check_subsets(subsets: Mapping[str, Any], drawn: Mapping[str, Any]) -> None:
    from . import subset as steps
    for given in subsets.values():
        steps.flat(given)
    for path, given in drawn.items():
        if not isinstance(given, steps.Weights):
            raise TypeError(f"Mixture.sample_weights: value is {kind_of(given)} for {path}; must be penstock.Weighted or "
                            "penstock.Balanced")


def _members(path: str, subset: Subset | None, drawn: SampleWeights | None, foreign: Opening | None) -> Members | None:
    """Return the samples of a data set; None: all samples, each once. Errors name the data set."""
    if subset is None and drawn is None:
        return None
    from . import subset as subsets
    try:
        return subsets.opened(path, subset, drawn, None, foreign)
    except errors.PenstockError as error:
        error.args = (f"data set {path}: {error}",)
        raise


def _shares(weights: Sequence[float]) -> tuple[float, ...]:
    """Return the shares in a form that does not depend on the unit of the weights: whole slots of the shortest period
    that makes them exact, as the order has them, or else numbers whose sum is 1."""
    total = sum(weights)
    shares = [weight / total for weight in weights]
    for period in range(1, _PERIOD_MAX + 1):
        if all(abs(share * period - round(share * period)) < _EXACT for share in shares):
            return tuple(round(share * period) for share in shares)
    return tuple(shares)


def same(one: Any, other: Any) -> bool:
    """Return whether two states of mixtures mean the same order. Weights with equal shares do."""
    if one == other:
        return True
    try:
        forms = [{**form, "segments": [(begin, _shares(weights)) for begin, weights in form["segments"]]}
                 for form in (one, other)]
    except (TypeError, KeyError, ValueError, ZeroDivisionError):  # raised for a state that _state() did not make
        return False
    return forms[0] == forms[1]


def _segments(given: Any) -> list[tuple[int, dict[str, float]]]:
    if isinstance(given, Mapping):
        return [(0, _weights(given))]
    given = items("Mixture.weights", given, "{path: weight}, or [(from, {path: weight}), ...]")
    found: list[tuple[int, dict[str, float]]] = []
    for segment in given:
        if isinstance(segment, (str, bytes, Mapping)) or not isinstance(segment, Sequence) or len(segment) != 2:
            raise TypeError(f"Mixture.weights: value has the segment {segment!r}; must be (from, {{path: weight}})")
        found.append((integer("from", segment[0]), _weights(segment[1])))
    if not found or found[0][0] != 0:
        raise SettingsError("Mixture.weights: the first segment is from "
                            f"{found[0][0] if found else None}; must be from 0 (the first weights hold from the start)")
    for (before, _), (begin, _) in zip(found, found[1:]):
        if begin <= before:
            raise SettingsError(f"Mixture.weights: a segment from {begin} follows one from {before}; must be above it (sort "
                                "the segments)")
    return found


# ---- the data sets together --------------------------------------------------------------------------------


def _difference(one: FieldInfo, other: FieldInfo) -> str | None:
    """Describe a difference between two fields; None: there is none. The way in which they are stored does not count."""
    for name in ("kind", "shape", "form", "coordinates", "of", "rows", "splits", "meaning"):
        if getattr(one.field, name) != getattr(other.field, name):
            return name
    return None


def _joined_field(same: Sequence[FieldInfo]) -> FieldInfo:
    encodings: dict[str, int] = {}
    for field in same:
        for name, n in field.encodings.items():
            encodings[name] = encodings.get(name, 0) + n
    most = {name: max(getattr(field, name) for field in same)
            for name in ("max_stored_size", "max_plain_size", "max_width", "max_height")}
    sums = {name: sum(getattr(field, name) for field in same) for name in ("stored_bytes", "plain_bytes", "n_damaged", "n_absent")}
    return dataclasses.replace(same[0], encodings=encodings, **most, **sums)


def _joined(catalogs: Sequence[Catalog], paths: Sequence[str]) -> Catalog:
    """Return a catalog with the numbers of all data sets together, and with the fields that are alike in all of them."""
    by_name = [{field.name: field for field in found.fields} for found in catalogs]
    fields = []
    for field in catalogs[0].fields:
        same = [names[field.name] for names in by_name if field.name in names]
        if len(same) == len(catalogs) and not any(_difference(field, other) for other in same):
            fields.append(_joined_field(same))
    infos = [found.info for found in catalogs]
    # A hash function of the library's would need open data sets.
    import hashlib
    identity = hashlib.sha256("\n".join(info.identity for info in infos).encode()).hexdigest()[:32]
    info = catalog.DatasetInfo(sum(info.n_samples for info in infos), sum(info.n_shards for info in infos),
                               sum(info.bytes for info in infos), identity, max(info.format_version for info in infos),
                               (), "mixture", all(info.has_checksums for info in infos), sum(info.n_left_out for info in infos),
                               "; ".join(filter(None, map(catalog.left_out, infos, paths))))
    return catalog.Catalog(info, tuple(fields), ())


def _fields_read(outputs: Any) -> list[Any]:
    """Return the names of the fields that outputs read."""
    values = [outputs] if isinstance(outputs, (str, Output)) else \
        outputs.values() if isinstance(outputs, Mapping) else outputs if isinstance(outputs, (list, tuple)) else []
    return [value.field if isinstance(value, Output) else value for value in values]


def _check_fields(outputs: Any, mixture: Mixture, catalogs: Sequence[Catalog], joined: Catalog) -> None:
    """Raise SettingsError for an output whose field differs between two data sets."""
    alike = {field.name for field in joined.fields}
    by_name = [{field.name: field for field in found.fields} for found in catalogs]
    for name in _fields_read(outputs):
        has = [i for i, names in enumerate(by_name) if name in names]
        if name in alike or not has:
            continue
        lacks = [i for i, names in enumerate(by_name) if name not in names]
        if lacks:
            raise SettingsError(f"Mixture: the field {name!r}, which an output reads, is in the data set "
                                f"{mixture.paths[has[0]]}, but not in {mixture.paths[lacks[0]]}; must be in all (leave the "
                                "output or the data set out)")
        for i in has[1:]:
            what = _difference(by_name[0][name], by_name[i][name])
            if what is not None:
                values_of = [getattr(by_name[k][name].field, what) for k in (0, i)]
                raise SettingsError(f"Mixture: the field {name!r}, which an output reads, has {what} {values_of[0]!r} in the "
                                    f"data set {mixture.paths[0]}, and {values_of[1]!r} in {mixture.paths[i]}; must be the "
                                    "same in all (leave the output or the data set out)")


def _warn_of_classes(outputs: Any, mixture: Mixture, catalogs: Sequence[Catalog], joined: Catalog) -> None:
    """Warn if an output reads integers, and a number has different class names in two data sets."""
    integers = {field.name for field in joined.fields if str(field.field.kind).startswith(("int", "uint"))}
    read = integers if outputs is None else integers.intersection(name for name in _fields_read(outputs) if isinstance(name, str))
    if not read:
        return
    first: dict[int, int] = {}  # by number: the data set that first gave it a name
    for i, found in enumerate(catalogs):
        for number, name in enumerate(found.info.names):
            k = first.setdefault(number, i)
            other = catalogs[k].info.names[number]
            if name != other:
                warnings.warn(f"Mixture: class {number} is {other!r} in {mixture.paths[k]} and {name!r} in {mixture.paths[i]}: "
                              "equal labels do not mean the same (map them by batch.data_sets, or pack all with the same classes)",
                              stacklevel=level_outside())
                return


def opened(path: Any, outputs: Any = None, binds: bool = True, foreign: Opening | None = None) -> tuple[str, Mixture | None, Catalog]:
    """Return what a loader opens: its path, or text for it; its mixture, with its subsets found if `binds`, or None;
    and the catalog of all data sets. outputs: the loader's argument."""
    if not isinstance(path, Mixture):
        if isinstance(path, Mapping):
            raise TypeError(f"path: value is {kind_of(path)}; must be the name of a directory, or a penstock.Mixture (give "
                            "penstock.Mixture({path: weight}))")
        name = os.path.abspath(paths.local(path))
        return name, None, catalog.read(name, foreign)
    catalogs = [catalog.read(name, foreign) for name in path.paths]
    joined = _joined(catalogs, path.paths)
    _check_fields(outputs, path, catalogs, joined)
    if binds:
        _warn_of_classes(outputs, path, catalogs, joined)
    n = len(catalogs)
    return f"the mixture of {n} data set{'' if n == 1 else 's'}", path._bound(foreign) if binds else path, joined
