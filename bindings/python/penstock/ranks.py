# SPDX-License-Identifier: Apache-2.0
"""Find the rank of this process and the number of processes: ranks="auto".

The first of these that has set both counts, because a launcher that is started inside of another one is nearer to the
process:

1. torch.distributed, jax.distributed, where this process has initialised them
2. Ray Train; torchrun, and others with its variables
3. Open MPI, MVAPICH, MPICH and Intel MPI (PMI), PMIx
4. a SLURM step, srun
5. Kubernetes: Kubeflow's JAXJob, LeaderWorkerSet

Explicit arguments come before all of them. Launchers on one line that disagree are an error.
"""
from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import bound, launchers
from .arguments import switch
from .errors import SettingsError
from .launchers import GIVE, NAMES, Found, distributed

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

    def __reduce__(self) -> Any:
        return Ranks._make, (tuple(self),)


ALONE = Ranks._make((0, 1, 0, 1, "alone", 1, False, True))


def _several(env: Mapping[str, str]) -> tuple[str, int]:
    """Return the variable or library that has the number of processes, and the number, even if the rank of this
    process is not known."""
    try:
        found = find(env)
        return (NAMES[found.source].world if found.source in NAMES else found.source), found.world
    except SettingsError:
        for names in NAMES.values():
            if names.world and re.fullmatch("[0-9]{1,9}", env.get(names.world, "")):
                return names.world, int(env[names.world])
    return "nobody", 1


def passed_over(env: Mapping[str, str] = os.environ) -> str | None:
    """Return the warning for a loader without a rank where several processes run, because each of them gets all
    samples. None: no launcher reports more than one process."""
    source, world = _several(env)
    if source == "nobody":
        with contextlib.suppress(SettingsError):
            problem = launchers.unstarted(env)
            return problem and f"penstock: {problem}"
    if world < 2:
        return None
    return (f"penstock: {source} reports {world} processes, and this loader gives each of them all samples (give "
            "ranks='auto' for a part each, or ranks=penstock.Ranks(0, 1) if each should get all)")


def _at_level(env: Mapping[str, str], level: int) -> list[Found]:
    """What libraries and launchers of one level say that have set both numbers."""
    sources = launchers.LEVELS[level - 1] if level else ()
    said = [launchers.complete(env, source) for source in sources]
    return launchers.libraries(level) + [one for one in said if one is not None]


def _outer(env: Mapping[str, str], level: int, winner: Found) -> list[Found]:
    """The launchers from `level` on that say the same as the one that counts; what is wrong with theirs is not asked."""
    found: list[Found] = []
    for outer in range(level, len(launchers.LEVELS) + 1):
        with contextlib.suppress(SettingsError):
            found += [one for one in _at_level(env, outer) if one[:2] == winner[:2]]
    return found


def _local(env: Mapping[str, str], level: int, winner: Found) -> tuple[tuple[int, int], bool]:
    """Return local rank and size, and whether the one who says so leaves processes the cores that it has itself."""
    for one in [winner, *_outer(env, level, winner)]:
        if one.local is not None:
            return one.local, one.source in ("torchrun", "Ray Train")
    if level == 0:
        with contextlib.suppress(SettingsError):
            return launchers.of_world(env, *NAMES["torchrun"][2:4]), True
    return (0, 1), True


def _agreeing(env: Mapping[str, str], level: int, said: list[Found]) -> Found:
    """The one that counts among those of the innermost level. Raises SettingsError if another contradicts it."""
    winner = said[0]
    for other in said[1:]:
        if other[:2] != winner[:2]:
            raise SettingsError(f"rank: {winner.source} reports rank {winner.rank} of {winner.world}, and {other.source} "
                                f"rank {other.rank} of {other.world}; must agree (unset the variables of the one that did "
                                "not start this process, or give ranks=penstock.Ranks(RANK, WORLD))")
    for sources in launchers.LEVELS[:level]:
        for source in sources:
            problem = launchers.contradiction(env, source, winner)
            if problem is not None:
                raise SettingsError("rank: " + problem)
    if winner.source == "torchrun" and winner.world > 1 and launchers.may_count_machines(env) and \
            not _outer(env, level + 1, winner):
        raise SettingsError(
            "rank: RANK and WORLD_SIZE are set, but LOCAL_RANK is not, so they may count machines instead of "
            "processes (start the processes with torchrun, or give ranks=penstock.Ranks(RANK, WORLD))")
    return winner


def _refuse_half(env: Mapping[str, str]) -> None:
    """Raise SettingsError if launchers have set something, but none has set both numbers."""
    for source in NAMES:
        half = launchers.half_set(env, source)
        if half is not None:
            name, value, missing = half
            missing = f"{missing} is not set" if missing else "the number of processes is in no variable"
            raise SettingsError(f"rank: {name} is {value}, but {missing}; this process's part follows from both ({GIVE})")
    if launchers.number(env, "LOCAL_RANK"):
        raise SettingsError(f"rank: LOCAL_RANK is {env['LOCAL_RANK']}, but RANK and WORLD_SIZE are not set; this "
                            f"process's part follows from them ({GIVE})")
    problem = launchers.unstarted(env)
    if problem is not None:
        raise SettingsError(f"rank: {problem}")


def find(env: Mapping[str, str] = os.environ) -> Ranks:
    """Return the ranks; one process if nothing says more. Raises SettingsError if two of one level disagree, if the
    innermost launcher set only half of its numbers, or numbers that cannot be."""
    for level in range(len(launchers.LEVELS) + 1):
        said = _at_level(env, level)
        if said:
            winner = _agreeing(env, level, said)
            (local_rank, local_world), from_parent = _local(env, level, winner)
            return Ranks._make((winner.rank, winner.world, local_rank, local_world, winner.source, 1,
                                bound.is_bound(local_world, from_parent), True))
    _refuse_half(env)
    return ALONE


def numbers(ranks: Ranks, max_memory: int) -> dict[str, int]:
    """Return the settings of the library. Where cores are bound they are not divided again, but memory is."""
    local_rank, local_world = ranks.local_rank, ranks.local_world
    if ranks.is_bound:
        max_memory = max_memory or bound.memory() // 4 * 3 // local_world
        local_rank, local_world = 0, 1
    return {"rank": ranks.rank, "world": ranks.world, "local_rank": local_rank, "local_world": local_world,
            "max_memory": max_memory}


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
