# SPDX-License-Identifier: Apache-2.0
"""Find the rank of this process and the number of processes: rank="auto".

torch.distributed answers first, if it is initialised. Then come the variables of the launchers, the innermost
launcher first: torchrun inside of srun sets RANK, and there SLURM_PROCID is 0 in every process.
"""
from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from .errors import SettingsError


class Ranks(NamedTuple):
    """rank of world, which counts parts of the data; local_rank of local_world processes on this machine.

    source: who gave the numbers: "given", "torch.distributed", a launcher's name, a mesh's; "alone" without any.
    n_replicas: processes with this same rank, which get the same batches, where from_mesh or from_megatron counted them.
    """

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    source: str = "alone"
    n_replicas: int = 1


def _number(env: Mapping[str, str], name: str) -> int | None:
    """Return a variable's number, or None if it is not set or empty. Raises SettingsError for other text."""
    text = env.get(name, "")
    if text and not re.fullmatch("[0-9]{1,9}", text):
        raise SettingsError(f"rank: {name} is {text!r}; must be a whole number ({_GIVE})")
    return int(text) if text else None


_GIVE = "set it as the launcher does, or give rank= and world="


class _Names(NamedTuple):
    """The variables of a launcher; "" for one that it does not have."""

    rank: str
    world: str
    local_rank: str
    local_world: str


_TORCHRUN = _Names("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_SRUN = _Names("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "")
_MPI = {"Open MPI": "OMPI_COMM_WORLD_", "MVAPICH": "MV2_COMM_WORLD_"}
_LAUNCHERS = {
    "torchrun": _TORCHRUN, "srun": _SRUN,
    **{source: _Names(*(prefix + end for end in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")))
       for source, prefix in _MPI.items()},
    "PMI": _Names("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")}


def _of_world(env: Mapping[str, str], rank: str, world: str, most: int | None = None) -> tuple[int, int]:
    """Return a rank and the number of ranks. If only a rank is set, there are `most` ranks, or at least as many
    as that rank shows."""
    found, among = _number(env, rank) or 0, _number(env, world)
    if among == 0:
        raise SettingsError(f"rank: {world} is 0; must be at least 1 ({_GIVE})")
    if among is not None and found >= among:
        raise SettingsError(f"rank: {rank} is {found}, but {world} is {among}; must be from 0 to {among - 1} "
                            f"({_GIVE})")
    return found, among or max(most or 1, found + 1)


def _half(env: Mapping[str, str], source: str) -> str | None:
    """Return which of a launcher's two variables is missing while the other is set, or None."""
    names = _LAUNCHERS[source]
    found, among = _number(env, names.rank), _number(env, names.world)
    if (found is None) == (among is None):
        return None
    if names is _SRUN and not found:  # a batch script has SLURM_PROCID=0 all alone
        return None
    return names.rank if found is None else names.world


def _ranks_of(env: Mapping[str, str], source: str) -> Ranks | None:
    """Return the ranks that a launcher set, or None if it did not set both variables."""
    names = _LAUNCHERS[source]
    if _number(env, names.rank) is None or _number(env, names.world) is None:
        return None
    if names is _SRUN and _is_shell(env):
        return None
    most = _slurm_local_world(env) if names is _SRUN else None
    found = Ranks(*_of_world(env, names.rank, names.world),
                  *_of_world(env, names.local_rank, names.local_world, most), source)
    has_local = any(name in env for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"))
    if names is _TORCHRUN and found.world > 1 and not has_local:
        # Under Kubeflow and others RANK counts machines.
        raise SettingsError(
            "rank: RANK and WORLD_SIZE are set, but LOCAL_RANK is not, so they may count machines instead of "
            "processes (start the processes with torchrun, or give rank= and world=)")
    return found


def _slurm_local_world(env: Mapping[str, str]) -> int:
    """Return this node's number of tasks in SLURM_STEP_TASKS_PER_NODE, such as "8(x2),4"."""
    counts: list[int] = []
    for part in env.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?", part)
        if match:
            counts += [int(match[1])] * int(match[2] or 1)
    node = _number(env, "SLURM_NODEID") or 0
    return counts[node] if node < len(counts) else 1


def _is_shell(env: Mapping[str, str]) -> bool:
    """Return whether this is a user's shell in an allocation: its programs are not tasks of the allocation."""
    return env.get("SLURM_JOB_NAME") in ("bash", "interactive")


def _unstarted(env: Mapping[str, str]) -> str | None:
    """Return the message for a SLURM batch script that has several tasks, but started this process directly and
    not with srun. It would train one process on everything. None: all is well."""
    rank, n_tasks = _number(env, _SRUN.rank), _number(env, "SLURM_NTASKS")
    if rank is None or _number(env, _SRUN.world) is not None or _is_shell(env) or (n_tasks or 1) < 2:
        return None
    return (f"{_SRUN.rank} is {rank} and SLURM_NTASKS is {n_tasks}, but {_SRUN.world} is not set: this process "
            f"is the job's batch script, not one of {n_tasks} tasks (start it with srun and give rank='auto'; or "
            "give rank=0, world=1 if it should get all samples alone)")


def _bound(ranks: Ranks) -> bool:
    """Return whether the launcher gave this process its own cores, so that nobody divides them again."""
    return len(os.sched_getaffinity(0)) * ranks.local_world <= (os.cpu_count() or 1)


def distributed() -> Any:
    """Return torch.distributed if this process has initialised it, else None. Import nothing."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module


def _several(env: Mapping[str, str]) -> tuple[str, int]:
    """Return the variable or library that has the number of processes, and the number, even if the rank of this
    process is not known."""
    try:
        found = find(env)
        return (_LAUNCHERS[found.source].world if found.source in _LAUNCHERS else found.source), found.world
    except SettingsError:
        for names in _LAUNCHERS.values():
            if re.fullmatch("[0-9]{1,9}", env.get(names.world, "")):
                return names.world, int(env[names.world])
    return "nobody", 1


def passed_over(env: Mapping[str, str] = os.environ) -> str | None:
    """Return the warning for a loader without a rank where several processes run, because each of them gets all
    samples. None: no launcher reports more than one process."""
    source, world = _several(env)
    if source == "nobody":
        with contextlib.suppress(SettingsError):
            problem = _unstarted(env)
            return problem and f"penstock: {problem}"
    if world < 2:
        return None
    return (f"penstock: {source} reports {world} processes, and this loader gives each of them all samples (give "
            "rank='auto' for a part each, or rank=0, world=1 if each should get all)")


def find(env: Mapping[str, str] = os.environ) -> Ranks:
    """Return the ranks; one process if no launcher set anything. Raises SettingsError if a launcher set only
    half of it."""
    torch = distributed()
    if torch is not None:
        local = _of_world(env, _TORCHRUN.local_rank, _TORCHRUN.local_world)
        return Ranks(torch.get_rank(), torch.get_world_size(), *local, "torch.distributed")
    for source in _LAUNCHERS:
        found = _ranks_of(env, source)
        if found is not None:
            share = source != "torchrun" and found.local_world > 1 and _bound(found)
            return found._replace(local_rank=0, local_world=1) if share else found
    # A batch script may set WORLD_SIZE alone for srun's processes, so incomplete launchers come last.
    for source, names in _LAUNCHERS.items():
        missing = _half(env, source)
        if missing is not None:
            other = names.rank if missing == names.world else names.world
            raise SettingsError(f"rank: {other} is {env[other]}, but {missing} is not set; this process's part "
                                f"follows from both ({_GIVE})")
    if _number(env, _TORCHRUN.local_rank):
        raise SettingsError(f"rank: LOCAL_RANK is {env['LOCAL_RANK']}, but RANK and WORLD_SIZE are not set; this "
                            f"process's part follows from them ({_GIVE})")
    problem = _unstarted(env)
    if problem is not None:
        raise SettingsError(f"rank: {problem}")
    return Ranks()


def local(env: Mapping[str, str] = os.environ) -> Ranks:
    """Return the local rank and size of this process, with rank 0 of 1. One process where nothing says more."""
    try:
        found = find(env)
    except SettingsError:  # of numbers that are not asked for here
        return Ranks()
    return Ranks(local_rank=found.local_rank, local_world=found.local_world)


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
    elif rank == "auto":
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
    given = {"rank": None if rank == "auto" else rank, "world": world, "local_rank": local_rank,
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
