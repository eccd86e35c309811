# SPDX-License-Identifier: Apache-2.0
"""The rank of this process, and the number of processes. ranks="auto" asks the C library (penstock/ranks.h has the
rule). Explicit arguments come first."""
from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from ctypes import byref, sizeof
from typing import Any, NamedTuple

from . import _c, launchers
from .arguments import integer as whole, switch
from .errors import SettingsError
from .launchers import distributed

__all__ = ["Ranks", "chosen", "distributed", "find", "local", "passed_over"]


class _Numbers(NamedTuple):
    rank: int
    world: int
    local_rank: int
    local_world: int
    source: str
    n_replicas: int
    is_bound: bool
    compare: bool


class Ranks(_Numbers):
    """ranks= of a Loader: this process among others. `rank` of `world` numbers the parts of the data. Processes with
    the same rank get the same batches.

    rank: number of this process; or "auto": torch.distributed or the launcher (torchrun, srun, mpirun) gives it, and
        all other numbers.
    world: number of ranks.
    local_rank, local_world: this process among those of this machine, which share its cores and memory evenly; None:
        the launcher's numbers.
    compare: True: where torch.distributed is initialised, compare data set, order, seed and batches of all processes.
        All of them must then open a loader within 5 minutes. A loader that was opened before torch.distributed was
        initialised is compared at its first batch. If nothing can compare, rank 0 warns.

    For a model that is split over several processes give penstock.ranks.from_mesh(mesh, "dp") or
    penstock.ranks.from_megatron().

    These attributes are set by the package:

    source: source of the numbers: "given", "torch.distributed", a launcher's name, a mesh's; "alone" if there is none.
    n_replicas: number of processes with this same rank, which get the same batches, if from_mesh or from_megatron
        counted them.
    is_bound: True: the launcher gave each process of the machine its own cores, so that only memory is divided further.

    _replace(compare=False) returns a copy with another member, as in any named tuple.
    """

    __slots__ = ()

    def __new__(cls, rank: int | str | None = None, world: int | None = None, local_rank: int | None = None,
                local_world: int | None = None, *, compare: bool = True) -> Ranks:
        return _completed(rank, world, local_rank, local_world)._replace(compare=switch("Ranks.compare", compare))

    def _replace(self, **members: Any) -> Ranks:
        for name, least in (("rank", 0), ("world", 1), ("local_rank", 0), ("local_world", 1), ("n_replicas", 1)):
            if name in members:
                members[name] = whole(f"Ranks.{name}", members[name], least, 2**32 - 1)
        for name in ("is_bound", "compare"):
            if name in members:
                members[name] = switch(f"Ranks.{name}", members[name])
        return super()._replace(**members)

    __replace__ = _replace  # copy.replace of Python 3.13

    def __reduce__(self) -> Any:
        return Ranks._make, (tuple(self),)


ALONE = Ranks._make((0, 1, 0, 1, "alone", 1, False, True))


def passed_over(env: Mapping[str, str] = os.environ) -> str | None:
    """Return the warning for a loader without a rank where several processes run, because each of them would get all
    samples; None if no launcher reports more than one process."""
    return launchers.alone(env)


def find(env: Mapping[str, str] = os.environ) -> Ranks:
    """Return the ranks; rank 0 of 1 if nothing reports others. Raises SettingsError if two sources of one level
    disagree, or if the innermost launcher set only half of its numbers, or impossible ones."""
    found = launchers.find(env)
    return Ranks._make((found.rank, found.world, found.local_rank, found.local_world, found.source.decode(), 1,
                        bool(found.is_bound), True))


def numbers(ranks: Ranks, max_memory: int) -> dict[str, int]:
    """Return the numbers for the library's settings. Bound cores are not divided again, but memory is."""
    from .settings import integer
    found = _c.FoundRanks(size=sizeof(_c.FoundRanks), rank=ranks.rank, world=ranks.world, local_rank=ranks.local_rank,
                          local_world=ranks.local_world, is_bound=ranks.is_bound)
    settings = _c.Settings()
    settings.memory.max_memory = integer("max_memory", max_memory)
    _c.lib.pstk_use_ranks(byref(found), byref(settings))
    return {"rank": settings.ranks.rank, "world": settings.ranks.world, "local_rank": settings.ranks.local_rank,
            "local_world": settings.ranks.local_world, "max_memory": settings.memory.max_memory}


def local(env: Mapping[str, str] = os.environ) -> Ranks:
    """Return the local rank of this process, and the number of processes on this machine; 0 and 1 if nothing reports
    others."""
    try:
        found = find(env)
    except SettingsError:  # an error about other numbers, which are not needed here
        return ALONE
    return ALONE._replace(local_rank=found.local_rank, local_world=found.local_world, is_bound=found.is_bound)


def _completed(rank: Any, world: Any, local_rank: Any, local_world: Any) -> Ranks:
    """Return the ranks of these numbers. Those that are None are taken from the launcher."""
    from .settings import integer
    is_auto = isinstance(rank, str) and rank == "auto"
    if is_auto:
        found = find()
    elif rank is None and world is None:
        found = ALONE
    elif rank is None:
        raise SettingsError(f"rank: value is None, and world is {world}; must be given, or every process "
                            "would be rank 0 (give penstock.Ranks(RANK, WORLD), or ranks='auto')")
    else:
        found = local()._replace(source="given")
    if local_world is not None and local_rank is None:
        found = found._replace(local_rank=0)
    elif local_rank is not None and local_world is None:
        found = found._replace(local_world=1)
    if local_rank is not None or local_world is not None:
        found = found._replace(is_bound=False)
    given = {"rank": None if is_auto else rank, "world": world, "local_rank": local_rank, "local_world": local_world}
    said: dict[str, Any] = {name: integer(name, value) for name, value in given.items() if value is not None}
    if is_auto and said.get("world", found.world) != found.world:
        raise SettingsError(f"world: value is {said['world']}, and rank 'auto' found {found.world} "
                            f"process{'' if found.world == 1 else 'es'} ({found.source}); must be as many (leave "
                            "world out, or give the rank as a number)")
    return found._replace(**said)


def chosen(ranks: Any) -> Ranks:
    """Return the ranks for a loader's argument. Call it from Loader.__init__, because the warning points at its caller."""
    if ranks is None or isinstance(ranks, Ranks) and ranks.source == "alone":  # Ranks() gives no rank, either
        warning = passed_over()
        if warning is not None:
            warnings.warn(warning, stacklevel=4)  # points at the caller of Loader
        return ALONE if ranks is None else ranks
    if isinstance(ranks, str) and ranks == "auto":
        return find()
    if not isinstance(ranks, Ranks):
        raise TypeError(f"ranks: value is {ranks!r}; must be 'auto', a penstock.Ranks, or what penstock.ranks.from_mesh or "
                        "from_megatron returned (give ranks=penstock.Ranks(RANK, WORLD))")
    return ranks


def __getattr__(name: str) -> Any:
    """Import from_mesh and from_megatron at their first use."""
    if name not in ("from_mesh", "from_megatron"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import replicas
    return getattr(replicas, name)
