# SPDX-License-Identifier: Apache-2.0
"""A loader's state: a few numbers that JSON holds, enough to go on exactly where it was.

    {"version": 1, "epoch": 3, "position": 51200, "seed": 0, "order": "full", "order_version": 1,
     "data_set": "ad30...", "n_samples": 1281167, "batch_size": 256, "world": 8}

epoch and position are the cursor behind the batch that was delivered last: what is prefetched does not
count. The order of samples follows from data set, seed, order and order_version, so those must agree where
it is loaded; batch_size and world may be others.
"""
from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from .errors import SettingsError

VERSION = 1


def _number(state: Mapping[str, Any], name: str) -> int:
    if name not in state:
        raise SettingsError(f"state: it has no {name!r}; this is not the state of a penstock loader")
    value = state[name]
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)  # of NumPy's and PyTorch's too
    except TypeError:
        number = -1
    if number < 0:
        raise SettingsError(f"state: {name} is {value!r}; must be a whole number; this is not the state of a "
                            "penstock loader")
    return number


def _must_agree(state: Mapping[str, Any], own: Mapping[str, Any], name: str, advice: str) -> None:
    if name not in state:
        raise SettingsError(f"state: it has no {name!r}; this is not the state of a penstock loader")
    if state[name] != own[name]:
        raise SettingsError(f"state: its {name} is {state.get(name)!r}, this loader's is {own[name]!r}: "
                            + advice)


def check(state: Any, own: Mapping[str, Any], path: str) -> tuple[int, int]:
    """(epoch, position) of a state that fits a loader whose own is `own`. SettingsError: it does not."""
    if not isinstance(state, Mapping):
        raise TypeError(f"state: value is {state!r}; must be what state_dict() gave")
    version = _number(state, "version")
    if version < 1:
        raise SettingsError(f"state: version is {version}; must be at least 1; this is not the state of a "
                            "penstock loader")
    if version > VERSION:
        raise SettingsError(f"state: it is of version {version}, and this penstock knows up to {VERSION}: "
                            "update penstock")
    _must_agree(state, own, "data_set", f"open the data set that it was saved with, not {path}")
    _must_agree(state, own, "order_version", "it was saved by a penstock whose order is another one; take "
                "that version to go on")
    _must_agree(state, own, "order", f"open the loader with order={state.get('order')!r}")
    _must_agree(state, own, "seed", f"open the loader with seed={state.get('seed')!r}")
    epoch, position = _number(state, "epoch"), _number(state, "position")
    if position > own["n_samples"]:
        raise SettingsError(f"state: position is {position}, past the {own['n_samples']} samples of {path}")
    return epoch, position
