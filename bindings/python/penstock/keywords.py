# SPDX-License-Identifier: Apache-2.0
"""Keyword arguments that a function does not have, told with what to write instead."""
from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

__all__ = ["explained", "explains", "near"]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def near(wrong: Any, right: Iterable[str]) -> str:
    """"; did you mean 'drop'?" where one of them is like it, else ""."""
    found = difflib.get_close_matches(str(wrong), list(right), 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def _too_many(what: str, known: list[str], n_nameless: int) -> str:
    first, others = ", ".join(known[:n_nameless]), known[n_nameless:]
    return f"{what} takes {first} and no more" if not others else \
        f"{what} takes {first} by position, the others by name: {others[0]}=..."


def explained(what: str, elsewhere: Mapping[str, str]) -> Callable[[F], F]:
    """Make a function tell arguments too many, and wrong keywords by the nearest right one or by what became
    of them: {keyword that other libraries have: advice}. what: the function as users know it. They are
    TypeErrors."""
    def decorated(function: F) -> F:
        parameters = inspect.signature(function).parameters
        known = [name for name in parameters if name != "self"]
        n_nameless = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values())

        @functools.wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            if len(args) > n_nameless:
                raise TypeError(_too_many(what, known, len(known) - len(parameters) + n_nameless))
            for name in keywords:
                if name in known:
                    continue
                if name in elsewhere:
                    raise TypeError(f"{what} has no '{name}': {elsewhere[name]}")
                found = difflib.get_close_matches(name, known, 1)
                hint = f": did you mean {found[0]}?" if found else f"; it has: {', '.join(known)}"
                raise TypeError(f"{what} has no argument '{name}'{hint}")
            return function(*args, **keywords)
        return checked  # type: ignore[return-value]
    return decorated


def explains(elsewhere: Mapping[str, str]) -> Callable[[C], C]:
    """`explained` for the constructor of a class of the package."""
    def decorated(cls: C) -> C:
        setattr(cls, "__init__", explained(f"penstock.{cls.__name__}", elsewhere)(getattr(cls, "__init__")))
        return cls
    return decorated
