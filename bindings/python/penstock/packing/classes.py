# SPDX-License-Identifier: Apache-2.0
"""Find the class names of a data set. Names in a field of text become class numbers, and are kept."""
from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._optional import is_a
from ..dataset import Dataset
from ..errors import SettingsError
from ..hints import level_outside, near_or_all
from .samples import failed, is_map_style, record_of
from .values import FieldError, plain_text

__all__ = ["names_of", "numbered"]


class _Numbers:
    """The number of each class name. fields: names of the members of samples that are tuples; None: inferred."""

    def __init__(self, field: str, names: Sequence[str], fields: Sequence[str] | None) -> None:
        self.classes = list(names)
        self._field, self._fields = field, fields
        self._numbers = {name: i for i, name in enumerate(names)}
        if len(self._numbers) != len(self.classes):
            twice = next(name for i, name in enumerate(names) if self._numbers[name] != i)
            raise SettingsError(f"names: value has {twice!r} twice; must have each class name once")

    def of(self, sample: Any) -> dict[str, Any]:
        """Return the record of a sample, with the number in place of the name. Raises FieldError."""
        record = dict(record_of(sample, self._fields))
        name = _name(record, self._field)
        if name not in self._numbers:
            raise FieldError(self._field, f"value is {name!r}; must be one of the class names"
                             + near_or_all(name, self.classes))
        record[self._field] = self._numbers[name]
        return record


class _Samples(_Numbers):
    """A map-style source whose samples have class numbers."""

    def __init__(self, source: Any, *of: Any) -> None:
        super().__init__(*of)
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.of(self._source[index])


class _Stream(_Numbers):
    """An iterable source whose samples have class numbers."""

    def __init__(self, source: Any, *of: Any) -> None:
        super().__init__(*of)
        self._source = source

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.of, self._source)


def _name(record: Mapping[str, Any], field: str) -> str:
    if field not in record:
        raise FieldError(field, "the sample has no value; must have one, since classes names this field"
                         + near_or_all(field, map(str, record)))
    name = plain_text(record[field])
    if not isinstance(name, str):
        raise FieldError(field, f"value is of type {type(name).__name__}; must be text, since classes names "
                                "this field")
    return name


def _all_names(source: Any, field: str, fields: Sequence[str] | None) -> list[str]:
    """Return the sorted class names of a map-style source. Every sample is read. Raises PackError."""
    found = set()
    for index in range(len(source)):
        try:
            found.add(_name(record_of(source[index], fields), field))
        except Exception as error:
            raise failed(index, error) from error
    return sorted(found)


def numbered(source: Any, field: str, names: Sequence[str] | None, fields: Sequence[str] | None) -> Any:
    """Return the source with class numbers in place of names. Its attribute `classes` has the names. Raises
    SettingsError, PackError.

    names: the names in the order of their numbers; None: the sorted names of all samples, for which every sample is
        read once more.
    """
    if is_map_style(source):
        if names is None:
            names = _all_names(source, field, fields)
        return _Samples(source, field, names, fields)
    if names is None:
        raise SettingsError("names: value is None; must be the class names, since samples of an iterable are read "
                            "once (names=[...])")
    return _Stream(source, field, names, fields)


def _contradicts(source: Any, names: Sequence[str]) -> bool:
    """Return whether `class_to_idx` of the source gives a name another number than its position in `classes`; it then
    warns."""
    numbers = getattr(source, "class_to_idx", None)
    if not isinstance(numbers, Mapping):
        return False
    for number, name in enumerate(names):
        if name in numbers and numbers[name] != number:
            warnings.warn(f"{type(source).__name__}: class {name!r} is number {number} in `classes` and {numbers[name]} in "
                          "`class_to_idx`: no class names are kept (make both alike, or give names= for the labels)",
                          stacklevel=level_outside())
            return True
    return False


def names_of(source: Any) -> list[str] | None:
    """Return the class names of a source: `classes` of torchvision's data sets, `names` of ours, the only ClassLabel of
    Hugging Face's, also within torch's Subset and ConcatDataset. None: there are none; or, with a warning, the source
    has a target_transform, or a `class_to_idx` that contradicts its names."""
    found = source.names if isinstance(source, Dataset) else getattr(source, "classes", None)
    if isinstance(found, (list, tuple)) and found and all(isinstance(name, str) for name in found):
        if _contradicts(source, found):
            return None
        if getattr(source, "target_transform", None) is None:
            return list(found)
        warnings.warn(f"target_transform of the {type(source).__name__} changes labels: its class names may not fit them, and "
                      "none are kept (give names= for the new labels)", stacklevel=level_outside())
        return None
    if is_a(source, "torch.utils.data", "Subset"):
        return names_of(source.dataset)
    if is_a(source, "torch.utils.data", "ConcatDataset"):
        return _joined([names_of(one) for one in source.datasets])
    if is_a(source, "datasets", "Dataset", "IterableDataset"):
        labels = [one.names for one in (source.features or {}).values() if is_a(one, "datasets", "ClassLabel")]
        return list(labels[0]) if len(labels) == 1 else None
    return None


def _joined(names: Sequence[list[str] | None]) -> list[str] | None:
    """Return the longest of the lists if all others are its beginning. None: one is missing; or, with a warning, two
    contradict each other."""
    known = [one for one in names if one is not None]
    if not known or len(known) < len(names):
        return None
    longest = max(known, key=len)
    for one in known:
        for number, name in enumerate(one):
            if name != longest[number]:
                warnings.warn(f"ConcatDataset: class {number} is {longest[number]!r} and {name!r} in two of its data sets: equal "
                              "labels do not mean the same, and no class names are kept (number the classes alike, or give "
                              "names= for labels that are right)", stacklevel=level_outside())
                return None
    return longest
