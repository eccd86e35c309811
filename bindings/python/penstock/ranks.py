# SPDX-License-Identifier: Apache-2.0
"""The rank of this process and the number of processes: ranks="auto", which asks the C library (penstock/ranks.h has the
rule). Explicit arguments come before all that it finds."""
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
    """ranks= of a Loader: this process among others, rank of world, which count parts of the data. Processes with the same
    rank get the same batches.

    rank: a number; or "auto": torch.distributed and the launcher (torchrun, srun, mpirun) say it, and all other numbers.
    world: how many. local_rank, local_world: this process among those of this machine, which share its cores and memory
        evenly. None: what the launcher says.
    compare: where torch.distributed is initialised, ask all processes whether they open the same data set, with the same
        order, seed and batches. All of them must open a loader then, within 5 minutes. A loader that was opened before
        torch.distributed was initialised is compared at its first batch; where nothing can compare, rank 0 warns.

    Where a model is split over several processes: penstock.ranks.from_mesh(mesh, "dp") or penstock.ranks.from_megatron().

    More attributes: source: who gave the numbers: "given", "torch.distributed", a launcher's name, a mesh's;
    "alone" without any. n_replicas: processes with this same rank, which get the same batches, where from_mesh or
    from_megatron counted them. is_bound: the launcher gave each process of the machine its own cores, so that only memory
    is divided further. _replace(compare=False) is a copy with another member, as of any named tuple.
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
    """Return the warning for a loader without a rank where several processes run, because each of them gets all
    samples. None: no launcher reports more than one process."""
    return launchers.alone(env)


def find(env: Mapping[str, str] = os.environ) -> Ranks:
    """Return the ranks; one process if nothing says more. Raises SettingsError if two of one level disagree, if the
    innermost launcher set only half of its numbers, or numbers that cannot be."""
    found = launchers.find(env)
    return Ranks._make((found.rank, found.world, found.local_rank, found.local_world, found.source.decode(), 1,
                        bool(found.is_bound), True))


def numbers(ranks: Ranks, max_memory: int) -> dict[str, int]:
    """Return the settings of the library. Where cores are bound they are not divided again, but memory is."""
    from .settings import integer
    found = _c.FoundRanks(size=sizeof(_c.FoundRanks), rank=ranks.rank, world=ranks.world, local_rank=ranks.local_rank,
                          local_world=ranks.local_world, is_bound=ranks.is_bound)
    settings = _c.Settings()
    settings.memory.max_memory = integer("max_memory", max_memory)
    _c.lib.pstk_use_ranks(byref(found), byref(settings))
    return {"rank": settings.ranks.rank, "world": settings.ranks.world, "local_rank": settings.ranks.local_rank,
            "local_world": settings.ranks.local_world, "max_memory": settings.memory.max_memory}


def local(env: Mapping[str, str] = os.environ) -> Ranks:
    """Return the local rank and size of this process, with rank 0 of 1. One process where nothing says more."""
    try:
        found = find(env)
    except SettingsError:  # of numbers that are not asked for here
        return ALONE
    return ALONE._replace(local_rank=found.local_rank, local_world=found.local_world, is_bound=found.is_bound)


def _completed(rank: Any, world: Any, local_rank: Any, local_world: Any) -> Ranks:
    """Return the ranks of these numbers, with what was found for those that are None."""
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
    """Return the ranks that a loader's argument chooses. Call it from Loader.__init__: the warning points at its caller."""
    if ranks is None or isinstance(ranks, Ranks) and ranks.source == "alone":  # Ranks() says no rank, either
        warning = passed_over()
        if warning is not None:
            warnings.warn(warning, stacklevel=4)  # to who opens the loader
        return ALONE if ranks is None else ranks
    if isinstance(ranks, str) and ranks == "auto":
        return find()
    if not isinstance(ranks, Ranks):
        raise TypeError(f"ranks: value is {ranks!r}; must be 'auto', a penstock.Ranks, or what penstock.ranks.from_mesh or "
                        "from_megatron returned (give ranks=penstock.Ranks(RANK, WORLD))")
    return ranks


def __getattr__(name: str) -> Any:
    """from_mesh and from_megatron."""
    if name not in ("from_mesh", "from_megatron"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import replicas
    return getattr(replicas, name)
