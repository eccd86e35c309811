# SPDX-License-Identifier: Apache-2.0
"""Operations that have others: RandomApply, RandomChoice and RandomOrder. The others keep the size and the channels of
the image, so that all images of a batch have one shape."""
from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, cast
from dataclasses import dataclass
from typing import Any, Optional

from .. import _c
from ..arguments import MAX_FACTOR, number, probability
from ..elsewhere import OP_KEYWORDS
from ..hints import explains
from .lists import operations
from .op import Op

__all__ = ["RandomApply", "RandomChoice", "RandomOrder"]

MAX_CHILDREN = 64


def parent(kind: int, children: Sequence[_c.Op], params: Sequence[float] = ()) -> _c.Op:
    """Return an operation with these children. It keeps their memory alive, and so does each array and struct that it
    is copied to: ctypes keeps the target of a pointer with the object that has the pointer."""
    op = _c.Op(kind=kind, n_children=len(children))
    op.children = cast((_c.Op * len(children))(*children), POINTER(_c.Op))
    op.params.values[:len(params)] = params
    return op


def apply_randomly(kind: int, value: float, p: float) -> _c.Op:
    """Return a RandomApply of one adjustment of colours. kind, value: the adjustment and its parameter."""
    return parent(_c.OP_RANDOM_APPLY, [_c.lib.pstk_adjust(kind, value)], [p])


def _transforms(what: str, given: Any) -> tuple[Op, ...]:
    """Return the children. Raises TypeError and ValueError."""
    found = operations(what, given)
    if not 1 <= len(found) <= MAX_CHILDREN:
        raise ValueError(f"{what}: value has {len(found)} operations; must have from 1 to {MAX_CHILDREN}")
    return found


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomApply(Op):
    """Apply all of `transforms`, in their order, with probability p; else none of them. transforms: 1 to 64 operations."""

    transforms: Sequence[Op]
    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "transforms", _transforms("RandomApply.transforms", self.transforms))
        object.__setattr__(self, "p", probability("RandomApply.p", self.p))

    def to_c(self) -> _c.Op:
        return parent(_c.OP_RANDOM_APPLY, [op.to_c() for op in self.transforms], [self.p])


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomChoice(Op):
    """Apply one of `transforms`. transforms: 1 to 64 operations. p: a weight for each, of at most 12; None: they are
    equally likely."""

    transforms: Sequence[Op]
    p: Optional[Sequence[float]] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "transforms", _transforms("RandomChoice.transforms", self.transforms))
        object.__setattr__(self, "p", self._weights())

    def _weights(self) -> Optional[tuple[float, ...]]:
        """Return the weights as a tuple; None: there are none. Raises TypeError and ValueError."""
        if self.p is None:
            return None
        n, given = len(self.transforms), self.p
        if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
            raise TypeError(f"RandomChoice.p: value is {given!r}; must be None or a list of {n} weights")
        found = tuple(number("RandomChoice.p", weight, 0, MAX_FACTOR) for weight in given)
        if len(found) != n or not any(found):
            raise ValueError(f"RandomChoice.p: value is {given!r}; must have a weight for each of {n} operations, and "
                             "one above 0")
        if n > _c.MAX_OP_PARAMS:
            raise ValueError(f"RandomChoice.p: value has {n} weights; must have at most {_c.MAX_OP_PARAMS} (put some "
                             "of the operations into a RandomChoice of their own)")
        return found

    def to_c(self) -> _c.Op:
        return parent(_c.OP_RANDOM_CHOICE, [op.to_c() for op in self.transforms], self.p or ())


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomOrder(Op):
    """Apply all of `transforms`, in a random order. transforms: 1 to 64 operations."""

    transforms: Sequence[Op]

    def __post_init__(self) -> None:
        object.__setattr__(self, "transforms", _transforms("RandomOrder.transforms", self.transforms))

    def to_c(self) -> _c.Op:
        return parent(_c.OP_RANDOM_ORDER, [op.to_c() for op in self.transforms])
