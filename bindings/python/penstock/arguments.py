# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments that operations and monitors share. `what` is the argument as users know it: "RandomFlip.p"."""
from __future__ import annotations

import enum
import math
import operator
import sys
from collections.abc import Sequence
from typing import Any, Union

from . import _c
from .errors import SettingsError
from .hints import near_or_all

__all__ = ["FILTERS", "Interpolation", "filter_name", "number", "pair", "positive", "probability", "text", "unmasked", "whole"]

Interpolation = Union[str, int, enum.Enum]
FILTERS = {name: code for name, code in _c.NAMES["filter"].items() if code != _c.FILTER_DEFAULT}
_PILLOWS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # by PIL.Image.Resampling
MOST_FACTOR = 1e6  # as in the library: more is a mistake


def number(what: str, value: Any, least: float, most: float) -> float:
    """Return a float from least to most."""
    must = f"{what}: value is {value!r}; must be a number from {least:g} to {most:g}"
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(must) from None
    if isinstance(value, (str, bytes)):
        raise TypeError(must)
    if not least <= found <= most:  # nor NaN
        raise ValueError(must)
    return found


def positive(what: str, value: Any, most: float | None = None) -> float:
    """Return a finite float above 0, at most `most`. A bool is no number here: Starved(True) is a mistake."""
    limit = "" if most is None else f" and at most {most:g}"
    must = f"{what}: value is {value!r}; must be a number above 0{limit}"
    if isinstance(value, (str, bytes)) or type(value).__name__ in ("bool", "bool_"):  # bool_: NumPy's
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
    """Return a float from 0 to 1."""
    return number(what, value, 0, 1)


def whole(what: str, value: Any, least: int, most: int) -> int:
    """Return an int from least to most."""
    must = f"{what}: value is {value!r}; must be a whole number from {least} to {most}"
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(must) from None
    if not least <= found <= most:
        raise ValueError(must)
    return found


def text(what: str, value: Any) -> bytes:
    """Return a str as the library takes it. It ends texts at a zero byte, so none may be in it."""
    if not isinstance(value, str) or "\0" in value:
        raise SettingsError(f"{what}: value is {value!r}; must be text without a zero byte")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise SettingsError(f"{what}: value is {value!r}; must be text that UTF-8 can hold") from None


def unmasked(what: str, values: Any) -> Any:
    """Return the values, unless they are a NumPy array that masks some: an array without the mask shows what it hides."""
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(values, ma.MaskedArray) and ma.is_masked(values):
        raise SettingsError(f"{what}: value is an array that masks {int(ma.count_masked(values))} of {values.size} "
                            "values; must have none masked (give array.filled(VALUE))")
    return values


def pair(what: str, values: Sequence[Any], least: float, most: float) -> tuple[float, float]:
    """Return two floats from least to most, in rising order."""
    must = f"{what}: value is {values!r}; must be two numbers in rising order, from {least:g} to {most:g}"
    if isinstance(values, (str, bytes)):
        raise TypeError(must)
    if len(values) != 2:
        raise ValueError(must)
    found = number(what, values[0], least, most), number(what, values[1], least, most)
    if found[0] > found[1]:
        raise ValueError(must)
    return found


def filter_name(op: str, value: Interpolation) -> str:
    """Return the name of a filter: of a name, or a value of torchvision's or Pillow's enum."""
    given = value.value if isinstance(value, enum.Enum) else value
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(_PILLOWS):
        return _PILLOWS[given]
    name = "nearest" if given == "nearest-exact" else given  # the same of PIL images
    if not isinstance(name, str) or name not in FILTERS:
        raise ValueError(f"{op}.interpolation: value is {value!r}; must be the name of a filter"
                         + near_or_all(given, FILTERS))
    return name
