# SPDX-License-Identifier: Apache-2.0
"""Check arguments that operations and monitors have in common. `what` is the argument's name as users know it:
"RandomFlip.p"."""
from __future__ import annotations

import enum
import math
import operator
import sys
from collections.abc import Mapping, Set
from typing import Any, Union

from . import _c
from .errors import SettingsError
from .hints import near_or_all

__all__ = ["FILTERS", "Interpolation", "filter_name", "items", "named", "number", "numbers", "one_of", "pair", "positive", "probability", "switch", "text",
           "unmasked", "whole"]

Interpolation = Union[str, int, enum.Enum]
FILTERS = {name: code for name, code in _c.NAMES["filter"].items() if code != _c.FILTER_DEFAULT}
_PILLOWS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # names by the number of PIL.Image.Resampling
MAX_FACTOR = 1e6  # the library's limit: a larger factor is a mistake


def is_bool(value: Any) -> bool:
    """Return whether the value is True or False, Python's or NumPy's. A bool is not taken for a number:
    RandomFlip(True) is a mistake."""
    return type(value).__name__ in ("bool", "bool_")


def is_whole(value: Any) -> bool:
    """Return whether the value is a whole number, Python's or NumPy's."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return not is_bool(value)


def is_zero(value: Any) -> bool:
    """Return whether the value is the number 0."""
    try:
        return not is_bool(value) and not getattr(value, "shape", ()) and bool(value == 0)
    except (TypeError, ValueError):
        return False


def switch(what: str, value: Any) -> bool:
    """Return a bool from True or False, Python's or NumPy's."""
    try:
        known = value in (True, False)
    except (TypeError, ValueError):  # an array of several values
        known = False
    if not known:
        raise TypeError(f"{what}: value is {value!r}; must be True or False")
    return bool(value)


def items(what: str, values: Any, must: str) -> list[Any]:
    """Return a list of the values of an iterable. Texts, mappings and sets are refused, because they have no order of
    items. must: what the message asks for, "a list of names"."""
    try:
        if isinstance(values, (str, bytes, Mapping, set, frozenset)):
            raise TypeError
        one_by_one = iter(values)
    except TypeError:
        raise TypeError(f"{what}: value is {values!r}; must be {must}") from None
    return list(one_by_one)  # not inside of a try: errors of the user's own generator pass


def named(what: str, value: Any, known: Mapping[str, Any], must: str) -> Any:
    """Look up a value in `known`. must: what the message asks for, "the name of a mode"."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{what}: value is {value!r}; must be {must}" + near_or_all(value, known))
    return known[value]


def one_of(what: str, value: Any, known: tuple[int, ...]) -> int:
    """Return the value, a whole number that must be one of `known`."""
    must = f"{what}: value is {value!r}; must be {', '.join(map(str, known[:-1]))} or {known[-1]}"
    try:
        found = -1 if is_bool(value) else operator.index(value)
    except TypeError:
        found = -1
    if found not in known:
        raise ValueError(must)
    return found


def number(what: str, value: Any, least: float, most: float) -> float:
    """Return a float, which must be from least to most."""
    must = f"{what}: value is {value!r}; must be a number from {least:g} to {most:g}"
    if isinstance(value, (str, bytes)) or is_bool(value):
        raise TypeError(must)
    try:
        found = float(value)
    except OverflowError:
        raise ValueError(must) from None
    except (TypeError, ValueError):
        raise TypeError(must) from None
    if not least <= found <= most:  # also for NaN
        raise ValueError(must)
    return found


def numbers(what: str, values: Any, n: int | tuple[int, ...], least: float = -sys.float_info.max,
            most: float = sys.float_info.max, must: str | None = None) -> tuple[float, ...]:
    """Return a tuple of n finite floats, each from least to most.

    n: their number, or the numbers that are allowed.
    must: the message's request.
    """
    if must is None:
        within = "finite" if most == sys.float_info.max else f"from {least:g} to {most:g}"
        must = f"{n} numbers, {within}"
    given = items(what, values, must)
    try:
        if len(given) not in (n if isinstance(n, tuple) else (n,)):
            raise ValueError
        return tuple(number(what, value, least, most) for value in given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: value is {values!r}; must be {must}") from None


def positive(what: str, value: Any, most: float | None = None) -> float:
    """Return a finite float, which must be above 0 and at most `most`."""
    limit = "" if most is None else f" and at most {most:g}"
    must = f"{what}: value is {value!r}; must be a number above 0{limit}"
    if isinstance(value, (str, bytes)) or is_bool(value):
        raise TypeError(must)
    try:
        found = float(value)
    except OverflowError:
        raise SettingsError(must) from None
    except (TypeError, ValueError):
        raise TypeError(must) from None
    if not math.isfinite(found) or found <= 0 or most is not None and found > most:
        raise SettingsError(must)
    return found


def probability(what: str, value: Any) -> float:
    """Return a float, which must be from 0 to 1."""
    return number(what, value, 0, 1)


def whole(what: str, value: Any, least: int, most: int) -> int:
    """Return an int, which must be from least to most."""
    must = f"{what}: value is {value!r}; must be a whole number from {least} to {most}"
    if is_bool(value):
        raise TypeError(must)
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(must) from None
    if not least <= found <= most:
        raise ValueError(must)
    return found


def integer(name: str, value: Any, least: int = 0, most: int = 2**64 - 1, meaning: str = "") -> int:
    """Return an int for a setting of the library, which must be from least to most. meaning: the end of the message."""
    try:
        if is_bool(value):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: value is {value!r}; must be a whole number{meaning}") from None
    if not least <= found <= most:
        raise SettingsError(f"{name}: value is {found}; must be from {least} to {most}{meaning}")
    return found


def text(what: str, value: Any) -> bytes:
    """Return a str as the bytes that the library takes. It must have no zero byte, because the library's texts end
    there."""
    if not isinstance(value, str) or "\0" in value:
        raise SettingsError(f"{what}: value is {value!r}; must be text without a zero byte")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise SettingsError(f"{what}: value is {value!r}; must be text that UTF-8 can hold") from None


def unmasked(what: str, values: Any) -> Any:
    """Return the values. Refuse a NumPy array that masks some of them: without its mask, an array shows the masked
    values."""
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(values, ma.MaskedArray) and ma.is_masked(values):
        raise SettingsError(f"{what}: value is an array that masks {int(ma.count_masked(values))} of {values.size} "
                            "values; must have none masked (give array.filled(VALUE))")
    return values


def pair(what: str, values: Any, least: float, most: float) -> tuple[float, float]:
    """Return a tuple of two floats from least to most, which must rise."""
    must = f"two numbers in rising order, from {least:g} to {most:g}"
    if isinstance(values, (str, bytes, Mapping, Set)) or not hasattr(values, "__len__") or getattr(values, "shape", 1) == ():
        raise TypeError(f"{what}: value is {values!r}; must be {must}")
    if len(values) != 2:
        raise ValueError(f"{what}: value is {values!r}; must be {must}")
    first, last = (number(what, value, least, most) for value in values)
    if first > last:
        raise ValueError(f"{what}: value is {values!r}; must be {must}")
    return first, last


def filter_name(op: str, value: Interpolation) -> str:
    """Return the name of a filter. The value is a name, or a member or number of torchvision's or Pillow's enum."""
    given = value.value if isinstance(value, enum.Enum) else value
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(_PILLOWS):
        return _PILLOWS[given]
    name = "nearest" if isinstance(given, str) and given == "nearest-exact" else given  # on PIL images torchvision treats both alike
    if not isinstance(name, str) or name not in FILTERS:
        raise ValueError(f"{op}.interpolation: value is {value!r}; must be the name of a filter"
                         + near_or_all(given, FILTERS))
    return name
