# SPDX-License-Identifier: Apache-2.0
"""The numbers of a windowed order: ways, samples of a block, and blocks of a window."""
from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref, sizeof
from typing import Any

from . import _c
from .errors import SettingsError

__all__ = ["NAMES", "settled", "version"]

NAMES = ("ways", "block", "window")


def settled(order: str, numbers: Mapping[str, int], n_samples: int) -> dict[str, int]:
    """Return the ways, block and window of an order; {} if it is not windowed. A number that is 0 in `numbers` follows
    from the number of samples alone. Raises SettingsError if another order is given one of them."""
    if order != "windowed":
        for name in NAMES:
            if numbers[name]:
                raise SettingsError(f"{name}: value is {numbers[name]}, and order is {order!r}; must be left out unless "
                                    f"order is 'windowed' (give order=penstock.Order('windowed', {name}={numbers[name]}), or leave {name} out)")
        return {}
    # The batch size does not matter here, but must be valid.
    found = _c.OrderSettings(size=sizeof(_c.OrderSettings), order=_c.ORDER_WINDOWED, n_samples=n_samples, batch_size=1,
                             world=1, **{name: numbers[name] for name in NAMES})
    code = _c.lib.pstk_order_settle(byref(found))
    if code < 0:  # the numbers were checked before
        raise SettingsError(f"order: the library refuses {({name: numbers[name] for name in NAMES})} for {n_samples} samples")
    return {name: int(getattr(found, name)) for name in NAMES}


def version(order: str) -> int:
    """Return the version of an order. A state holds it, so that it is not resumed with another version."""
    return _c.WINDOWED_VERSION if order == "windowed" else _c.ORDER_VERSION


def described(interleave: Mapping[str, int]) -> str:
    """Return " (48 ways, ...)" for the loader's repr; "" if the order is not windowed."""
    if not interleave:
        return ""
    return (f" ({interleave['ways']} way{'' if interleave['ways'] == 1 else 's'}, blocks of {interleave['block']}, windows of "
            f"{interleave['window']})")


def advice(state: Mapping[str, Any]) -> str:
    """Return the advice how to open a loader whose order is that of a state."""
    return "open the loader with order=penstock.Order('windowed', " + ", ".join(
        f"{name}={state[name]!r}" for name in NAMES if name in state) + ")"
