# SPDX-License-Identifier: Apache-2.0
"""Call: a compiled function of yours, as an operation in a list."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from .. import _c
from ..arguments import whole
from ..elsewhere import OP_KEYWORDS
from ..hints import explains
from .op import Op

__all__ = ["Call"]

MAX_SCRATCH = 2**32  # bytes
_FUNCTION: Any = type(_c.PixelsFn()).__mro__[1]  # base class of all ctypes functions
_N_ARGUMENTS = (5, 6)  # without the error, and with it: a function ignores arguments that it does not take
_MUST = ("must be a compiled function: a function of ctypes.CDLL, or what numba.cfunc makes (penstock.python calls "
         "functions of Python)")
_OF_ADDRESS = "ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)(address)"


def _has_python(function: Any) -> bool:
    """Return whether a ctypes function is a callback that ctypes made of a Python function."""
    kept = getattr(function, "_objects", None)
    return isinstance(kept, dict) and any(type(each).__name__ == "CThunkObject" for each in kept.values())


def _address(function: Any) -> int:
    """Return the address of a function. Raises TypeError and ValueError."""
    known = getattr(function, "ctypes", function)  # numba's functions have their types there
    if isinstance(function, _FUNCTION):
        if _has_python(function):
            raise TypeError(f"Call.function: value is {function!r}, a function of Python; {_MUST}")
        address = ctypes.cast(function, ctypes.c_void_p).value
    else:
        address = getattr(function, "address", None)
    if isinstance(function, int) and not isinstance(function, bool):
        raise TypeError(f"Call.function: value is {function!r}; {_MUST}; of an address: {_OF_ADDRESS}")
    if isinstance(address, bool) or not isinstance(address, int):
        raise TypeError(f"Call.function: value is {function!r}; {_MUST}")
    if address <= 0:
        raise ValueError(f"Call.function: value is {function!r}, whose address is {address}; {_MUST}")
    arguments = getattr(known, "argtypes", None) if isinstance(known, _FUNCTION) else None
    if arguments is not None and len(arguments) not in _N_ARGUMENTS:
        raise ValueError(f"Call.function: value takes {len(arguments)} arguments; must take 5 or 6: user, pixels, shape, "
                         "random, scratch, error (see pstk_pixels_fn in penstock/ops.h)")
    return address


def _user(value: Any) -> int:
    """Return the function's first argument as an address; 0 for NULL. Raises TypeError."""
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
        return value
    if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData)):
        return ctypes.addressof(value)
    interface = getattr(value, "__array_interface__", None)
    if isinstance(interface, dict):
        return int(interface["data"][0])
    raise TypeError(f"Call.user: value is {value!r}; must be None, an address, a ctypes structure, array or number, or a "
                    "NumPy array")


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class Call(Op):
    """Call a compiled function of yours, which changes the pixels in place. No Python runs: worker threads call it,
    several at once.

    function: a function of ctypes.CDLL or numba.cfunc, or another object with an `address`. It is a pstk_pixels_fn of
        penstock/ops.h: `int function(void *user, uint8_t *pixels, const struct pstk_shape *shape, const uint64_t
        *random, void *scratch, struct pstk_error *error)`, perhaps without the last argument. It returns 0. Any other
        result makes the sample bad, and FunctionError quotes the text that it wrote into error->message.
    scratch: bytes of scratch memory that it gets.
    user: its first argument: an address; or a ctypes object or a NumPy array, whose address it gets; None: NULL.

    A loader keeps a reference to function and user.
    """

    function: Any
    scratch: int = 0
    user: Any = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scratch", whole("Call.scratch", self.scratch, 0, MAX_SCRATCH))
        _address(self.function)
        _user(self.user)

    def to_c(self) -> _c.Op:
        function = ctypes.cast(_address(self.function), _c.PixelsFn)
        op: _c.Op = _c.lib.pstk_call(function, _user(self.user) or None, self.scratch)
        return op
