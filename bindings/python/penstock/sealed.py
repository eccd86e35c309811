# SPDX-License-Identifier: Apache-2.0
"""Objects that refuse attributes which would do nothing: `loader.weights = ...`, `loader.shufle = False`,
`loader.epoch = 3`. The AttributeError says what to do instead. What can only be read is not deleted either."""
from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .hints import near, public_name

__all__ = ["Sealed", "Shown"]

_PACKAGE = __name__.partition(".")[0]


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == _PACKAGE


def _has(cls: type, name: str) -> bool:
    """Whether the class itself, not one of its bases, has an attribute or an annotation of this name."""
    return name in vars(cls) or name in _annotations(cls)


def _annotations(cls: type) -> Mapping[str, Any]:
    """The class's own, none of which is evaluated: it may name what only a type checker imports."""
    if sys.version_info >= (3, 14):
        import annotationlib
        return annotationlib.get_annotations(cls, format=annotationlib.Format.STRING)
    own: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return own


def _is_open(cls: type, name: str) -> bool:
    """Whether a public attribute may be set: of the package's classes a property with a setter. A user's subclass may have
    attributes of its own."""
    base = next((base for base in cls.__mro__ if _has(base, name)), cls)
    found = vars(base).get(name)
    if isinstance(found, property):
        return found.fset is not None
    return not any(_is_ours(one) and base in one.__mro__ for one in cls.__mro__)  # a batch is a dict, whose methods stay


def _settable(cls: type) -> Iterator[str]:
    return (name for name in dir(cls) if name[0] != "_" and _is_open(cls, name))


class Sealed:
    """The base of classes with public attributes of which only some may be set. The others, and names that do not exist, raise
    AttributeError. Names that begin with "_" are free. One rule for subclasses of the user's: they may set each attribute that
    the package's class does not have, and refuse to set those that it has, unless they define it themselves."""

    __slots__ = ()
    _instead: ClassVar[Mapping[str, str]] = {}  # {attribute: what to do instead of setting it}

    def _maker(self) -> Callable[..., Any]:
        """What users call to make such an object."""
        return next(base for base in type(self).__mro__ if _is_ours(base) and "__init__" in vars(base))

    def _another(self, name: str) -> str:
        """What to do for another value of an argument of the maker."""
        return f"make another one with {name}=..."

    def _refusal(self, name: str) -> str:
        """Why the attribute cannot be set, and what to do."""
        cls, maker = type(self), self._maker()
        arguments = list(inspect.signature(maker).parameters)
        if name in self._instead:
            return self._instead[name]
        if name in arguments:
            return f"it is an argument of {public_name(maker)} ({self._another(name)})"
        if name in getattr(cls, "_hints", ()):
            return str(cls._hints[name])  # type: ignore[attr-defined]
        if callable(getattr(cls, name, None)):
            return "it is a method"
        if hasattr(cls, name) or name in vars(self):
            return "it can only be read"
        return "there is no such attribute" + near(name, {*arguments, *self._instead, *_settable(cls)})

    def _may_set(self, name: str) -> bool:
        """Whether a public attribute may be set."""
        return _is_open(type(self), name)

    def _fix(self, **values: Any) -> None:
        """Give the object public attributes that may only be read."""
        vars(self).update(values)

    if not TYPE_CHECKING:  # else mypy would take every name for one that may be set

        def __setattr__(self, name: str, value: Any) -> None:
            if name[:1] != "_" and not self._may_set(name):
                raise AttributeError(f"{type(self).__name__}.{name} cannot be set: {self._refusal(name)}")
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            if name[:1] != "_" and not self._may_set(name):
                raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted: " + (
                    "it can only be read" if hasattr(self, name) else "there is no such attribute"))
            super().__delattr__(name)


class Shown(dict[str, Any]):
    """A dict of a property, which a change would not reach. Its copies and pickles are plain dicts."""

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this mapping does not support item assignment: it only shows what there is (change a copy, dict(...))")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refused

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return dict, (dict(self),)
