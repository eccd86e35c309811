# SPDX-License-Identifier: Apache-2.0
"""Check lists of operations: those of outputs, of operations that have others, and of draw."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Set
from typing import Any

from ..elsewhere import ADVICE, MIXES
from ..hints import hint
from .op import Op

__all__ = ["operations"]


def _not_an_op(what: str, value: Any) -> TypeError:
    if isinstance(value, type) and issubclass(value, Op):
        return TypeError(f"{what}: value is the class {value.__name__}; must be an operation (write "
                         f"{value.__name__}(...))")
    name = value if isinstance(value, str) else type(value).__name__
    package = sys.modules[__package__]
    # The classes are looked up by name, because modules of operations that have others import this one.
    public = ((one, getattr(package, one)) for one in package.__all__ if one[:1].isupper())
    known = [one for one, kind in public if isinstance(kind, type) and issubclass(kind, Op) and kind is not Op]
    written = {op: f"write penstock.ops.{op}(...)" for op in known}
    instead = hint(name, known, {**ADVICE, **MIXES, **written}) or ": " + ", ".join(known)
    return TypeError(f"{what}: value is {value!r}; must be an operation of penstock.ops{instead}")


def operations(what: str, given: Any) -> tuple[Op, ...]:
    """Return the operations of a list, or of a single one, as a tuple. what: the argument's name as users know it:
    "image.ops". Raises TypeError."""
    if isinstance(given, (Op, str, bytes)) or not isinstance(given, Iterable):
        given = (given,)
    if isinstance(given, Mapping):
        raise TypeError(f"{what}: value is a dict of {', '.join(map(repr, given))}; must be a list of operations, in their "
                        "order (of a recipe with several views: outputs={**penstock.recipes.views(field, recipe)})")
    if isinstance(given, Set):
        raise TypeError(f"{what}: value is {given!r}; must be a list of operations, in their order")
    try:
        found = tuple(given)
    except TypeError:  # an array of NumPy's without a dimension
        raise TypeError(f"{what}: value is {given!r}; must be a list of operations, in their order") from None
    for op in found:
        if not isinstance(op, Op):
            raise _not_an_op(what, op)
    return found
