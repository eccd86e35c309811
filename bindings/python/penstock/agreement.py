# SPDX-License-Identifier: Apache-2.0
"""Whether the processes that share a data set open their loaders alike, asked of PyTorch's process group.

Processes whose seeds, data sets or batches differ would train on samples twice and on others never, in silence. So
where torch.distributed is initialised, each says what fixes its order, and all raise the same error if two differ, or
if one of them could not open its loader: none is left alone in a loop.
"""
from __future__ import annotations

import contextlib
import datetime
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from .errors import SettingsError, TimedOutError
from .ranks import Ranks, distributed

__all__ = ["agreeing"]

SECONDS = 300  # that processes wait for each other
_group: tuple[Any, Any] | None = None  # the default group, and ours with its processes


def _gathered(torch: Any, own: Any) -> list[Any]:
    """What each process says, by its rank. All processes call it."""
    global _group
    # A group of ours: it needs no GPU, and it does not wait as long as training does.
    if _group is None or _group[0] is not torch.group.WORLD:
        _group = torch.group.WORLD, torch.new_group(backend="gloo", timeout=datetime.timedelta(seconds=SECONDS))
    everyone: list[Any] = [None] * torch.get_world_size()
    try:
        torch.all_gather_object(everyone, own, group=_group[1])
    except RuntimeError as error:
        raise TimedOutError(f"rank: the {len(everyone)} processes did not all open a loader within {SECONDS} s ({error}); "
                            "open one in each, or give compare_ranks=False") from error
    return everyone


def _differing(everyone: Sequence[Mapping[str, Any]]) -> str | None:
    """The first thing that two processes say differently."""
    for name, first in everyone[0].items():
        for rank, other in enumerate(everyone):
            if other.get(name) != first:
                return (f"{name}: value is {other.get(name)!r} on process {rank}, and {first!r} on process 0; must be the "
                        "same on all processes")
    return None


def _problem(everyone: Sequence[tuple[str | None, int, Mapping[str, Any]]]) -> str | None:
    failed = [(rank, said[0]) for rank, said in enumerate(everyone) if said[0] is not None]
    if failed:
        return f"process {failed[0][0]} could not open its loader: {failed[0][1]}"
    ranks = [said[1] for said in everyone]
    for rank in ranks:
        if ranks.count(rank) > 1:
            both = [process for process, other in enumerate(ranks) if other == rank][:2]
            return (f"rank: value is {rank} on process {both[0]} and on process {both[1]}; must be another one on each (give "
                    "rank='auto')")
    return _differing([said[2] for said in everyone])


@contextlib.contextmanager
def agreeing(ranks: Ranks, order: Mapping[str, Any], wanted: bool) -> Generator[None, None, None]:
    """Around what may fail before a loader starts. `order` is filled meanwhile: what fixes the order of samples.

    Nothing is asked where `wanted` is false, where there is no process group, or where the loader is not for as many
    processes as it has. Raises SettingsError on all processes if they differ.
    """
    torch = distributed() if wanted and ranks.world > 1 else None
    if torch is None or torch.get_world_size() != ranks.world:
        yield
        return
    try:
        yield
    except Exception as error:
        _gathered(torch, (f"{type(error).__name__}: {error}", ranks.rank, {}))
        raise
    problem = _problem(_gathered(torch, (None, ranks.rank, dict(order))))
    if problem is not None:
        raise SettingsError(problem)
