# SPDX-License-Identifier: Apache-2.0
"""The numbers of a windowed order: its ways, the samples of a block, and the blocks of a window."""
from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref, sizeof
from typing import Any

from . import _c
from .errors import SettingsError

__all__ = ["NAMES", "settled", "version"]

NAMES = ("ways", "block", "window")


def settled(order: str, numbers: Mapping[str, int], n_samples: int) -> dict[str, int]:
    """Return the ways, block and window of an order; nothing where it is not windowed. What is 0 in `numbers` follows
    from the number of samples alone. Raises SettingsError where another order is given one of them."""
    if order != "windowed":
        for name in NAMES:
            if numbers[name]:
                raise SettingsError(f"{name}: value is {numbers[name]}, and order is {order!r}; must be left out unless "
                                    f"order is 'windowed' (give order=penstock.Order('windowed', {name}={numbers[name]}), or leave {name} out)")
        return {}
    # The batch does not matter here, and must be valid.
    found = _c.OrderSettings(size=sizeof(_c.OrderSettings), order=_c.ORDER_WINDOWED, n_samples=n_samples, batch_size=1,
                             world=1, **{name: numbers[name] for name in NAMES})
    code = _c.lib.pstk_order_settle(byref(found))
    if code < 0:  # every number is in its range by now
        raise SettingsError(f"order: the library refuses {({name: numbers[name] for name in NAMES})} for {n_samples} samples")
    return {name: int(getattr(found, name)) for name in NAMES}


def version(order: str) -> int:
    """Return the version of an order: what a state holds, so that no other order resumes it."""
    return _c.WINDOWED_VERSION if order == "windowed" else _c.ORDER_VERSION


def described(interleave: Mapping[str, int]) -> str:
    """Return " of 48 ways, ..." for the loader's repr; nothing where the order is not windowed."""
    if not interleave:
        return ""
    return (f" ({interleave['ways']} way{'' if interleave['ways'] == 1 else 's'}, blocks of {interleave['block']}, windows of "
            f"{interleave['window']})")


def advice(state: Mapping[str, Any]) -> str:
    """Return what to open a loader with, so that its order is that of a state."""
    return "open the loader with order=penstock.Order('windowed', " + ", ".join(
        f"{name}={state[name]!r}" for name in NAMES if name in state) + ")"
