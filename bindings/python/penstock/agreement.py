# SPDX-License-Identifier: Apache-2.0
"""Whether the processes that share a data set open their loaders alike, asked of PyTorch's process group.

Processes whose seeds, data sets or batches differ would train on samples twice and on others never, in silence. So
where torch.distributed is initialised, each says what fixes its order, and all raise the same error if two differ, or
if one of them could not open its loader: none is left alone in a loop.
"""
from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from .errors import SettingsError, TimedOutError
from .ranks import Ranks, distributed

__all__ = ["agreeing", "can_compare", "changing"]

SECONDS = 300  # that processes wait for each other
_OPEN = "open a loader", "open one in each, or give compare_ranks=False"
_group: tuple[Any, Any] | None = None  # the default group, and ours with its processes


def _gathered(torch: Any, own: Any, doing: str, otherwise: str) -> list[Any]:
    """What each process says, by its rank. All processes call it."""
    global _group
    # A group of ours: it needs no GPU, and it does not wait as long as training does.
    if _group is None or _group[0] is not torch.group.WORLD:
        import datetime
        _group = torch.group.WORLD, torch.new_group(backend="gloo", timeout=datetime.timedelta(seconds=SECONDS))
    everyone: list[Any] = [None] * torch.get_world_size()
    try:
        torch.all_gather_object(everyone, own, group=_group[1])
    except RuntimeError as error:
        raise TimedOutError(f"rank: the {len(everyone)} processes did not all {doing} within {SECONDS} s ({error}); "
                            f"{otherwise}") from error
    return everyone


def _differing(everyone: Sequence[Mapping[str, Any]]) -> str | None:
    """The first thing that two processes say differently. What a name with _ before it says of another is not compared:
    it is for the message."""
    for name, first in everyone[0].items():
        for rank, other in enumerate(everyone):
            if other.get(name) != first and not name.startswith("_"):
                return (f"{name}: value is {_told(other, name)} on process {rank}, and {_told(everyone[0], name)} on process "
                        f"0; must be the same on all processes{_ADVICE.get(name, '')}")
    return None


_ADVICE = {"data_set": " (if they read copies of one data set, copy it again to those where it differs)"}


def _told(said: Mapping[str, Any], name: str) -> str:
    more = said.get("_" + name)
    return f"{said.get(name)!r} ({more})" if more else repr(said.get(name))


def _failure(everyone: Sequence[tuple[str | None, int, Mapping[str, Any]]], doing: str) -> str | None:
    failed = [(rank, said[0]) for rank, said in enumerate(everyone) if said[0] is not None]
    return f"process {failed[0][0]} could not {doing}: {failed[0][1]}" if failed else None


def _listed(processes: Sequence[int]) -> str:
    named = [f"process {process}" for process in processes[:4]] + (["others"] if len(processes) > 4 else [])
    return " and on ".join(named) if named else "no process"


def _repeated(ranks: Sequence[int], world: int) -> str | None:
    """The first rank that more processes have than should: one each, or, where a model is split, equally many."""
    each = len(ranks) // world
    for rank in ranks:
        processes = [process for process, other in enumerate(ranks) if other == rank]
        if rank >= world:
            return f"rank: value is {rank} on {_listed(processes)}; must be below world, {world}"
        if len(processes) > each:
            wanted = "another one on each (give rank='auto')" if each == 1 else \
                f"so on {each} of {len(ranks)} processes, for world={world} (give ranks=penstock.ranks.from_mesh(mesh, 'dp'))"
            return f"rank: value is {rank} on {_listed(processes)}; must be {wanted}"
    return None


def _problem(everyone: Sequence[tuple[str | None, int, Mapping[str, Any]]]) -> str | None:
    failure = _failure(everyone, "open its loader")
    if failure is not None:
        return failure
    orders = [said[2] for said in everyone]
    return (_differing([{"world": order["world"]} for order in orders])
            or _repeated([said[1] for said in everyone], orders[0]["world"]) or _differing(orders))


@contextlib.contextmanager
def agreeing(ranks: Ranks, order: Mapping[str, Any], wanted: bool) -> Generator[None, None, None]:
    """Around what may fail before a loader starts. `order` is filled meanwhile: what fixes the order of samples.

    Nothing is asked where `wanted` is false, where there is no process group, or where the loader is not for its
    processes: where `ranks.world` does not divide their number, or is 1 although nobody counted replicas. Raises
    SettingsError on all processes if they differ.
    """
    torch = distributed() if wanted and max(ranks.world, ranks.n_replicas) > 1 else None
    if torch is None or torch.get_world_size() % ranks.world:
        yield
        return
    try:
        yield
    except Exception as error:
        _gathered(torch, (f"{type(error).__name__}: {error}", ranks.rank, {}), *_OPEN)
        raise
    problem = _problem(_gathered(torch, (None, ranks.rank, {"world": ranks.world, **order}), *_OPEN))
    if problem is not None:
        raise SettingsError(problem)


def can_compare(ranks: Ranks) -> bool:
    """Whether there is a process group that has all processes that a loader is for."""
    torch = distributed()
    return torch is not None and bool(torch.get_world_size() % ranks.world == 0)


@contextlib.contextmanager
def changing(ranks: Ranks, doing: str) -> Generator[dict[str, Any], None, None]:
    """Around what may fail before open loaders change, on all processes; can_compare was true. The dict that it gives is
    filled meanwhile: what must be the same on all. Raises SettingsError on all processes if it is not, or if one failed.
    """
    torch, said = distributed(), dict[str, Any]()
    how = doing, "call it in each before the same batch, or give unchecked=True"
    try:
        yield said
    except Exception as error:
        _gathered(torch, (f"{type(error).__name__}: {error}", ranks.rank, {}), *how)
        raise
    everyone = _gathered(torch, (None, ranks.rank, said), *how)
    problem = _failure(everyone, doing) or _differing([other[2] for other in everyone])
    if problem is not None:
        raise SettingsError(problem)
