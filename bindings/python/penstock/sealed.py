# SPDX-License-Identifier: Apache-2.0
"""Objects that refuse to set attributes that would have no effect: `loader.weights = ...`, `loader.shufle = False`,
`loader.epoch = 3`. The AttributeError says what to do instead. An attribute that can only be read cannot be deleted,
either."""
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
    """Return whether the class itself, not a base of it, has an attribute or an annotation of this name."""
    return name in vars(cls) or name in _annotations(cls)


def _annotations(cls: type) -> Mapping[str, Any]:
    """Return the class's own annotations. None is evaluated, because it may name an import of type checkers."""
    if sys.version_info >= (3, 14):
        import annotationlib
        return annotationlib.get_annotations(cls, format=annotationlib.Format.STRING)
    own: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return own


def _is_open(cls: type, name: str) -> bool:
    """Return whether a public attribute may be set. In the package's classes only a property with a setter may. A
    user's subclass may have attributes of its own."""
    base = next((base for base in cls.__mro__ if _has(base, name)), cls)
    found = vars(base).get(name)
    if isinstance(found, property):
        return found.fset is not None
    return not any(_is_ours(one) and base in one.__mro__ for one in cls.__mro__)  # a batch is a dict, whose methods must stay


def _settable(cls: type) -> Iterator[str]:
    return (name for name in dir(cls) if name[0] != "_" and _is_open(cls, name))


class Sealed:
    """The base of classes with public attributes of which only some may be set. The others, and names that do not
    exist, raise AttributeError. Names that begin with "_" may be set.

    A user's subclass may set each attribute that the package's class does not have. It may set one that the package's
    class has only if it defines the attribute itself.
    """

    __slots__ = ()
    _instead: ClassVar[Mapping[str, str]] = {}  # {attribute: what to do instead of setting it}

    def _maker(self) -> Callable[..., Any]:
        """Return the class or function by which users make such an object."""
        return next(base for base in type(self).__mro__ if _is_ours(base) and "__init__" in vars(base))

    def _another(self, name: str) -> str:
        """Return the advice for another value of an argument of the maker."""
        return f"make another one with {name}=..."

    def _refusal(self, name: str) -> str:
        """Return why the attribute cannot be set, and what to do."""
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
        """Return whether a public attribute may be set."""
        return _is_open(type(self), name)

    def _fix(self, **values: Any) -> None:
        """Set public attributes that users may only read."""
        vars(self).update(values)

    if not TYPE_CHECKING:  # without this guard mypy would accept every attribute

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
    """A dict that a property returns. To change it would have no effect, so it refuses. Its copies and pickles are
    plain dicts."""

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this mapping does not support item assignment: it only shows what there is (change a copy, dict(...))")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refused

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return dict, (dict(self),)
