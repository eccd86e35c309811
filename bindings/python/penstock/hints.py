# SPDX-License-Identifier: Apache-2.0
"""Find what a user meant by a name that does not exist: a keyword argument, an attribute, a name of the package.

The rule is the same for all of them: the advice of penstock.elsewhere on the name, else the most similar name that
exists, by difflib.
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
LIKE = 0.7  # least similarity, by difflib, for a slip of the keyboard; words of five letters that differ in two have 0.6

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def near(wrong: Any, right: Iterable[str], before: str = "") -> str:
    """Return "; did you mean 'drop'?" if one of the names is similar, else "". before: text in front of the name."""
    import difflib  # only needed after a mistake
    found = difflib.get_close_matches(str(wrong), list(right), 1, LIKE)
    return f"; did you mean {before + found[0]!r}?" if found else ""


def level_outside() -> int:
    """Return the stacklevel that a warning needs to point at the first frame outside of the package. The caller passes
    it to warnings.warn."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def kind_of(value: Any) -> str:
    """Return the name of a value's type with its article: "a str", "an int"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeioAEIO" or name.startswith("nd") else f"a {name}"


def near_or_all(wrong: Any, right: Iterable[str]) -> str:
    """Return the result of `near`, or else "; there are: image, cls", or "; there are none"."""
    known = list(right)
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    return near(wrong, known) or "; there are" + (": " + ", ".join(known[:MAX_LISTED]) + more if known else " none")


def hint(wrong: str, right: Iterable[str], advice: Mapping[str, str]) -> str:
    """Return ": " and the advice on a name, or else the result of `near`."""
    found = advice.get(wrong)
    return f": {found}" if found else near(wrong, right)


# For each module that may lack a name: the module that may have it, and the sentence to say so.
_OTHERS = {
    "penstock": ("penstock.ops", "operations are in penstock.ops"),
    "penstock.ops": ("penstock", "it is no operation"),
}


def missing(module: str, name: str, asker: FrameType) -> Exception:
    """Return the exception for a name that penstock or penstock.ops lacks. asker: the frame that asks for it."""
    from .elsewhere import ADVICE  # only needed after a mistake
    other, why = _OTHERS[module]
    there: list[str] = sys.modules[other].__all__
    # From an AttributeError `from penstock import ToTensor` would make an ImportError without the advice.
    is_import = asker.f_globals.get("__name__") == "importlib._bootstrap" and (name in there or name in ADVICE)
    kind = ImportError if is_import else AttributeError
    if name in there:
        return kind(f"{module}.{name}: {why}: {other}.{name}")
    instead = hint(name, sys.modules[module].__all__, ADVICE) or near(name, there, f"{other}.")
    return kind(f"module '{module}' has no attribute '{name}'{instead}")


def public_name(maker: Any) -> str:
    """Return the name by which users know a class or function of the package: penstock.Monitor, penstock.monitor.Slow,
    penstock.ops.Resize."""
    package, inner = maker.__module__.split(".")[:2]
    is_inner = inner in ("monitor", "ops") and maker.__name__ != "Monitor"
    return f"{package}.{inner}.{maker.__name__}" if is_inner else f"{package}.{maker.__name__}"


def _too_many(what: str, known: list[str], n_nameless: int) -> str:
    first, others = ", ".join(known[:n_nameless]) or "nothing", known[n_nameless:]
    return f"{what} takes {first} and no more" if not others else \
        f"{what} takes {first} by position, the others by name: {others[0]}=..."


def _member_of_a_topic(what: str, keywords: Mapping[str, Any]) -> str | None:
    """Return the message if a keyword is a member of a topic; None: none is."""
    from .moved import refusal  # only needed after a mistake
    return refusal(what.rpartition(".")[2], keywords)


def explained(what: str, advice: Mapping[str, str]) -> Callable[[F], F]:
    """Return a decorator: the function then raises TypeErrors with advice for wrong keywords and too many arguments.

    what: the function's name as users know it.
    advice: {keyword that other libraries have: what to do}.
    """
    def decorated(function: F) -> F:
        @functools.lru_cache(maxsize=1)  # at the first call, because it would make imports slow
        def arguments() -> tuple[list[str], int, int]:
            """Return the names of the arguments, the number of positional ones with self, and without it."""
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
    """Remove the __setattr__ of a frozen dataclass. Its base, penstock.sealed.Sealed, then refuses with a better
    message."""
    delattr(cls, "__setattr__")
    return cls


def explains(advice: Mapping[str, str]) -> Callable[[C], C]:
    """Return a decorator of classes: it applies `explained` to the constructor, and `refused_by_base` to a frozen
    dataclass."""
    def decorated(cls: C) -> C:
        setattr(cls, "__init__", explained(public_name(cls), advice)(getattr(cls, "__init__")))
        return refused_by_base(cls) if "__setattr__" in vars(cls) else cls
    return decorated


class Hints:
    """The base of classes whose AttributeErrors say what to write instead."""

    _hints: ClassVar[Mapping[str, str]] = {}

    def _hint(self, name: str) -> str:
        return hint(name, [known for known in dir(type(self)) if known[0] != "_"], self._hints)

    if not TYPE_CHECKING:  # without this guard mypy would accept every attribute

        def __getattr__(self, name: str) -> Any:
            property_of = getattr(type(self), name, None)
            if isinstance(property_of, property):  # the property itself raised an AttributeError
                return property_of.__get__(self)
            instead = "" if name.startswith("_") else self._hint(name)
            error = AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{instead}")
            error.name = ""  # else Python's traceback appends a suggestion, a less similar name
            raise error
