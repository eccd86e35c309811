# SPDX-License-Identifier: Apache-2.0
"""Find the rank of this process and the number of processes: rank="auto".

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
from .errors import SettingsError
from .launchers import GIVE, NAMES, Found, distributed

__all__ = ["Ranks", "chosen", "distributed", "find", "local", "passed_over"]


class Ranks(NamedTuple):
    """rank of world, which counts parts of the data; local_rank of local_world processes on this machine.

    source: who gave the numbers: "given", "torch.distributed", a launcher's name, a mesh's; "alone" without any.
    n_replicas: processes with this same rank, which get the same batches, where from_mesh or from_megatron counted them.
    is_bound: the launcher gave each process of the machine its own cores, so that only memory is divided further.
    """

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    source: str = "alone"
    n_replicas: int = 1
    is_bound: bool = False


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
            "rank='auto' for a part each, or rank=0, world=1 if each should get all)")


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
                                "not start this process, or give rank= and world=)")
    for sources in launchers.LEVELS[:level]:
        for source in sources:
            problem = launchers.contradiction(env, source, winner)
            if problem is not None:
                raise SettingsError("rank: " + problem)
    if winner.source == "torchrun" and winner.world > 1 and launchers.may_count_machines(env) and \
            not _outer(env, level + 1, winner):
        raise SettingsError(
            "rank: RANK and WORLD_SIZE are set, but LOCAL_RANK is not, so they may count machines instead of "
            "processes (start the processes with torchrun, or give rank= and world=)")
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
            return Ranks(winner.rank, winner.world, local_rank, local_world, winner.source,
                         is_bound=bound.is_bound(local_world, from_parent))
    _refuse_half(env)
    return Ranks()


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
        return Ranks()
    return Ranks(local_rank=found.local_rank, local_world=found.local_world, is_bound=found.is_bound)


def _whole(ranks: Any, rank: Any, world: Any) -> Ranks:
    """Ranks that were given as one argument."""
    if not isinstance(ranks, Ranks):
        raise TypeError(f"ranks: value is {ranks!r}; must be what penstock.ranks.from_mesh or from_megatron returned (or "
                        "give rank= and world=, two numbers)")
    for name, value in (("rank", rank), ("world", world)):
        if value is not None:
            raise SettingsError(f"ranks: value is {ranks!r}, and {name} is {value!r}; must be left out with it (give one of "
                                "them)")
    return ranks


def chosen(ranks: Any, rank: Any, world: Any, local_rank: Any, local_world: Any) -> Ranks:
    """Return the ranks that a loader's arguments choose: those that are given, or those that were found where that is
    wanted. Call it from Loader.__init__: the warning points at its caller."""
    from .settings import integer
    if ranks is not None:
        found, rank, world = _whole(ranks, rank, world), None, None
    elif isinstance(rank, str) and rank == "auto":
        found = find()
    elif rank is None and world is None:
        found = Ranks()
        warning = passed_over()
        if warning is not None:
            warnings.warn(warning, stacklevel=4)  # to who opens the loader
    elif rank is None:
        raise SettingsError(f"rank: value is None, and world is {world}; must be given, or every process "
                            "would be rank 0 (give rank=, or rank='auto')")
    else:
        found = local()._replace(source="given")
    if local_world is not None and local_rank is None:
        found = found._replace(local_rank=0)
    elif local_rank is not None and local_world is None:
        found = found._replace(local_world=1)
    if local_rank is not None or local_world is not None:
        found = found._replace(is_bound=False)
    given = {"rank": None if isinstance(rank, str) and rank == "auto" else rank, "world": world, "local_rank": local_rank,
             "local_world": local_world}
    said = {name: integer(name, value) for name, value in given.items() if value is not None}
    if rank == "auto" and said.get("world", found.world) != found.world:
        raise SettingsError(f"world: value is {said['world']}, and rank='auto' found {found.world} "
                            f"process{'' if found.world == 1 else 'es'} ({found.source}); must be as many (leave "
                            "world= out, or give rank= as well)")
    return Ranks(**{**found._asdict(), **said})


def __getattr__(name: str) -> Any:
    """from_mesh and from_megatron."""
    if name not in ("from_mesh", "from_megatron"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import replicas
    return getattr(replicas, name)
