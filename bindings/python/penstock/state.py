# SPDX-License-Identifier: Apache-2.0
"""The state of a loader: a few numbers, as JSON can hold them, from which a loader resumes exactly.

    {"version": 1, "epoch": 3, "position": 51200, "seed": 0, "order": "full", "order_version": 1,
     "data_set": "ad30...", "n_samples": 1281167, "batch_size": 256, "global_batch_size": 2048, "world": 8}

epoch and position are the cursor just past the last delivered batch; prefetched batches do not count. The order of
samples follows from data set, seed, order and order_version, so the loader that loads the state must have the same
ones. batch_size, global_batch_size and world may differ; a loader that was opened with max_batch_size takes over
batch_size, or global_batch_size where it was opened with that. With a schedule of sizes the state has "batch_schedule",
its sizes as [step, rows], and "batch_schedule_of", the setting that has them, and these must agree. The state of a
windowed order has its ways, block and window too, that of a subset its digest, "subset", that of a mixture its weights,
segments and exhaustion, digests of its subsets, and as data_set a digest of all its data sets: these must be the same.
Weights are the same if their shares are. With a budget the state has "budget", a digest of it and of what all samples
cost, and position counts the samples of the batches before; batch_size is then the most rows of a batch.
"""
from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from . import interleave
from ._version import __version__
from .errors import SettingsError
from .hints import near

VERSION = 1
# These are the members of all states of this version. Which of them a state has follows from how its loader was opened.
_MEMBERS = frozenset(("version", "epoch", "position", "seed", "order", "order_version", *interleave.NAMES, "data_set", "n_samples",
                      "batch_size", "global_batch_size", "world", "subset", "mixture", "budget", "batch_schedule",
                      "batch_schedule_of"))
_GIVE = "give what state_dict() of a penstock loader returned"


def _number(state: Mapping[str, Any], name: str) -> int:
    if name not in state:
        raise SettingsError(f"state: value has no {name!r} ({_GIVE})")
    value = state[name]
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)  # also numbers of NumPy and PyTorch
    except TypeError:
        number = -1
    if not 0 <= number < 2**63:  # a larger number would wrap in the library
        raise SettingsError(f"state: {name} is {value!r}; must be a whole number, 0 or more and below 2^63 ({_GIVE})")
    return number


def _must_agree(state: Mapping[str, Any], own: Mapping[str, Any], name: str, advice: str) -> None:
    if name not in state:
        raise SettingsError(f"state: value has no {name!r} ({_GIVE})")
    if state[name] != own[name]:
        raise SettingsError(f"state: {name} is {state.get(name)!r}, but this loader's is {own[name]!r} ({advice})")


def _subset_of(state: Mapping[str, Any]) -> str:
    return "the whole data set" if state.get("subset") is None else repr(state["subset"])


def _same_mixture(one: Any, other: Any) -> bool:
    if one == other or one is None or other is None:
        return bool(one == other)
    from . import mixture
    return mixture.same(one, other)


def check(state: Any, own: Mapping[str, Any], path: str) -> tuple[int, int]:
    """Return (epoch, position) of a state for a loader whose own state is `own`. Raises TypeError, and SettingsError if
    the state does not fit."""
    if not isinstance(state, Mapping):
        raise TypeError(f"state: value is {state!r}; must be what state_dict() returned")
    version = _number(state, "version")
    if version < 1:
        raise SettingsError(f"state: version is {version}; must be at least 1 ({_GIVE})")
    if version > VERSION:
        raise SettingsError(f"state: version is {version}; must be at most {VERSION} (update penstock)")
    for name in state:
        if name not in _MEMBERS:
            raise SettingsError(f"state: value has {name!r}, which no state of penstock {__version__} has (update "
                                f"penstock if a newer one saved it; keep values of your own next to the state){near(name, _MEMBERS)}")
    _must_agree(state, own, "data_set", f"open the data set of the saved loader, not {path}" if "mixture" not in own else
                "open the data sets of the saved loader, in its order")
    if not _same_mixture(state.get("mixture"), own.get("mixture")):
        raise SettingsError(f"state: mixture is {state.get('mixture')!r}, but this loader's is {own.get('mixture')!r} (open "
                            "the loader with the weights, segments, exhaustion and subsets of the saved one)")
    _must_agree(state, own, "order", f"open the loader with order={state.get('order')!r}")
    _must_agree(state, own, "order_version", "resume with the penstock version that saved it, whose order differs")
    for name in interleave.NAMES:
        if name in own:
            _must_agree(state, own, name, interleave.advice(state))
    _must_agree(state, own, "seed", f"open the loader with seed={state.get('seed')!r}")
    if state.get("subset") != own.get("subset"):
        raise SettingsError(f"state: subset is {_subset_of(state)}, but this loader's is {_subset_of(own)} (open the loader "
                            "with the subset=, weights= and Order.samples_per_epoch of the saved one; a column or a file may have "
                            "changed since)")
    if state.get("batch_schedule") != own.get("batch_schedule"):
        raise SettingsError(f"state: batch_schedule is {state.get('batch_schedule')!r}, but this loader's is "
                            f"{own.get('batch_schedule')!r} (open the loader with the same schedule of batch sizes)")
    # A state of an earlier penstock has no "batch_schedule_of".
    if "batch_schedule_of" in own and state.get("batch_schedule_of", own["batch_schedule_of"]) != own["batch_schedule_of"]:
        raise SettingsError(f"state: batch_schedule_of is {state['batch_schedule_of']!r}, but this loader's is "
                            f"{own['batch_schedule_of']!r} (give the schedule to that setting)")
    if state.get("budget") != own.get("budget"):
        raise SettingsError(f"state: budget is {state.get('budget')!r}, but this loader's is {own.get('budget')!r} (open the loader "
                            "with the penstock.Budget of the saved one; its column may have changed since)")
    epoch, position = _number(state, "epoch"), _number(state, "position")
    if position > own["n_samples"]:
        raise SettingsError(f"state: position is {position}; must be at most {own['n_samples']}, the number of "
                            f"samples of {path}")
    return epoch, position
