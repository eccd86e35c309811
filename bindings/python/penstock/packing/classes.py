# SPDX-License-Identifier: Apache-2.0
"""Class names in a field of text become class numbers; the names are kept in the data set."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import SettingsError
from ..hints import near_or_all
from .samples import failed, is_map_style, record_of
from .values import FieldError, plain_text

__all__ = ["numbered"]


class _Numbers:
    """The number of each class name. fields: of samples that are tuples; None: found out."""

    def __init__(self, field: str, names: Sequence[str], fields: Sequence[str] | None) -> None:
        self.classes = list(names)
        self._field, self._fields = field, fields
        self._numbers = {name: i for i, name in enumerate(names)}
        if len(self._numbers) != len(self.classes):
            twice = next(name for i, name in enumerate(names) if self._numbers[name] != i)
            raise SettingsError(f"names: value has {twice!r} twice; must have each class name once")

    def of(self, sample: Any) -> dict[str, Any]:
        """The record of a sample, with the number in place of the name. Raises FieldError."""
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
    """The sorted names of a map-style source. Raises PackError."""
    found = set()
    for index in range(len(source)):
        try:
            found.add(_name(record_of(source[index], fields), field))
        except Exception as error:
            raise failed(index, error) from error
    return sorted(found)


def numbered(source: Any, field: str, names: Sequence[str] | None, fields: Sequence[str] | None) -> Any:
    """The source with class numbers, and with `classes`, the names. names: in the order of their numbers; None:
    those of all samples, sorted, for which every sample is read once more. Raises SettingsError, PackError."""
    if is_map_style(source):
        if names is None:
            names = _all_names(source, field, fields)
        return _Samples(source, field, names, fields)
    if names is None:
        raise SettingsError("names: value is None; must be the class names, since samples of an iterable are read "
                            "once (names=[...])")
    return _Stream(source, field, names, fields)
