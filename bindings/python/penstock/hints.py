# SPDX-License-Identifier: Apache-2.0
"""Names that a user asks for and that are not here: keyword arguments, attributes, names of the package.

One rule for all of them: the advice that penstock.elsewhere has on the name, else the nearest name that is
here, as difflib finds it.
"""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

__all__ = ["Hints", "explained", "explains", "hint", "kind_of", "level_outside", "missing", "near", "near_or_all", "public_name",
           "refused_by_base"]

MAX_LISTED = 20  # names in a message
LIKE = 0.7  # difflib's ratio of a slip of the keyboard; words of five letters of which two differ have 0.6

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def near(wrong: Any, right: Iterable[str], before: str = "") -> str:
    """"; did you mean 'drop'?" where one of them is like it, else "". before: stands before what is meant."""
    import difflib  # for who made a mistake alone
    found = difflib.get_close_matches(str(wrong), list(right), 1, LIKE)
    return f"; did you mean {before + found[0]!r}?" if found else ""


def level_outside() -> int:
    """The stacklevel of a warning, for the function that calls this one: the first frame that is none of the package."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def kind_of(value: Any) -> str:
    """The name of a value's type, with its article: "a str", "an int"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeioAEIO" or name.startswith("nd") else f"a {name}"


def near_or_all(wrong: Any, right: Iterable[str]) -> str:
    """What `near` finds, else "; there are: image, cls", or "; there are none"."""
    known = list(right)
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    return near(wrong, known) or "; there are" + (": " + ", ".join(known[:MAX_LISTED]) + more if known else " none")


def hint(wrong: str, right: Iterable[str], advice: Mapping[str, str]) -> str:
    """": what to write instead", or what `near` finds."""
    found = advice.get(wrong)
    return f": {found}" if found else near(wrong, right)


# By module that lacks a name: the one that may have it, and what that says of it.
_OTHERS = {
    "penstock": ("penstock.ops", "operations are in penstock.ops"),
    "penstock.ops": ("penstock", "it is no operation"),
}


def missing(module: str, name: str, asker: FrameType) -> Exception:
    """Return the exception for a name that penstock or penstock.ops lacks. asker: the frame that asks for it."""
    from .elsewhere import ADVICE  # for who made a mistake alone
    other, why = _OTHERS[module]
    there: list[str] = sys.modules[other].__all__
    # `from penstock import ToTensor` turns an AttributeError into an ImportError without the advice.
    is_import = asker.f_globals.get("__name__") == "importlib._bootstrap" and (name in there or name in ADVICE)
    kind = ImportError if is_import else AttributeError
    if name in there:
        return kind(f"{module}.{name}: {why}: {other}.{name}")
    instead = hint(name, sys.modules[module].__all__, ADVICE) or near(name, there, f"{other}.")
    return kind(f"module '{module}' has no attribute '{name}'{instead}")


def public_name(maker: Any) -> str:
    """What users write for a class or a function of the package: penstock.Monitor, penstock.monitor.Slow, penstock.ops.Resize."""
    package, inner = maker.__module__.split(".")[:2]
    is_inner = inner in ("monitor", "ops") and maker.__name__ != "Monitor"
    return f"{package}.{inner}.{maker.__name__}" if is_inner else f"{package}.{maker.__name__}"


def _too_many(what: str, known: list[str], n_nameless: int) -> str:
    first, others = ", ".join(known[:n_nameless]) or "nothing", known[n_nameless:]
    return f"{what} takes {first} and no more" if not others else \
        f"{what} takes {first} by position, the others by name: {others[0]}=..."


def _member_of_a_topic(what: str, keywords: Mapping[str, Any]) -> str | None:
    """What penstock.moved.refusal says."""
    from .moved import refusal  # for who made a mistake alone
    return refusal(what.rpartition(".")[2], keywords)


def explained(what: str, advice: Mapping[str, str]) -> Callable[[F], F]:
    """Make a function raise TypeErrors that say what to write, for wrong keywords and too many arguments.

    what: the function as users know it. advice: {keyword that other libraries have: what to do}.
    """
    def decorated(function: F) -> F:
        @functools.lru_cache(maxsize=1)  # at the first call: an import would take long with all of them
        def arguments() -> tuple[list[str], int, int]:
            """The names of the arguments, how many positions there are, and how many of these are no self."""
            parameters = inspect.signature(function).parameters
            known = [name for name in parameters if name != "self"]
            n_nameless = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values())
            return known, n_nameless, len(known) - len(parameters) + n_nameless

        @functools.wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            known, n_nameless, n_named_first = arguments()
            if len(args) > n_nameless:
                raise TypeError(_too_many(what, known, n_named_first))
            for name in keywords:
                if name not in known:
                    raise TypeError(_member_of_a_topic(what, keywords) or f"{what} has no argument '{name}'"
                                    + (hint(name, known, advice) or f"; it has: {', '.join(known)}"))
            return function(*args, **keywords)
        return checked  # type: ignore[return-value]
    return decorated


def refused_by_base(cls: C) -> C:
    """Let the base of a frozen dataclass refuse what is set: penstock.sealed.Sealed, whose errors say what to do."""
    delattr(cls, "__setattr__")
    return cls


def explains(advice: Mapping[str, str]) -> Callable[[C], C]:
    """`explained` for the constructor of a class of the package, and `refused_by_base` if it is a frozen dataclass."""
    def decorated(cls: C) -> C:
        setattr(cls, "__init__", explained(public_name(cls), advice)(getattr(cls, "__init__")))
        return refused_by_base(cls) if "__setattr__" in vars(cls) else cls
    return decorated


class Hints:
    """The base of classes whose AttributeErrors say what to write instead."""

    _hints: ClassVar[Mapping[str, str]] = {}

    def _hint(self, name: str) -> str:
        return hint(name, [known for known in dir(type(self)) if known[0] != "_"], self._hints)

    if not TYPE_CHECKING:  # else every name would pass for an attribute

        def __getattr__(self, name: str) -> Any:
            property_of = getattr(type(self), name, None)
            if isinstance(property_of, property):  # it raised an AttributeError of its own
                return property_of.__get__(self)
            instead = "" if name.startswith("_") else self._hint(name)
            error = AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{instead}")
            error.name = ""  # else Python's traceback adds a suggestion of its own, a name that is less like it
            raise error
