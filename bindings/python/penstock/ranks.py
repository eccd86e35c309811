# SPDX-License-Identifier: Apache-2.0
"""Which of how many processes this one is: rank="auto".

Asked are torch.distributed where it is initialised, then the variables of the launchers, the innermost one
first: torchrun inside of srun sets RANK, and SLURM_PROCID there is 0 in every process.
"""
from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from .errors import SettingsError


class Ranks(NamedTuple):
    """rank of world processes, local_rank of local_world on this machine; source: who said so."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    source: str = "alone"


def _number(env: Mapping[str, str], name: str) -> int | None:
    """None: it is not set, or empty. Raises SettingsError where it is no number."""
    text = env.get(name, "")
    if text and not re.fullmatch("[0-9]{1,9}", text):
        raise SettingsError(f"rank: {name} is {text!r}; must be a whole number: {_GIVE}")
    return int(text) if text else None


_GIVE = "set it as the launcher does, or give rank= and world="


class _Names(NamedTuple):
    """The variables of a launcher; "": it has none."""

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
    """A rank and of how many: where there is only a rank, of `most` or as many as it shows that there are."""
    found, among = _number(env, rank) or 0, _number(env, world)
    if among == 0:
        raise SettingsError(f"rank: {world} is 0; must be at least 1: {_GIVE}")
    if among is not None and found >= among:
        raise SettingsError(f"rank: {rank} is {found}, but {world} is {among}: ranks are 0 to {among - 1}; "
                            + _GIVE)
    return found, among or max(most or 1, found + 1)


def _half(env: Mapping[str, str], source: str) -> str | None:
    """The one of the two variables that is missing where the other is set."""
    names = _LAUNCHERS[source]
    found, among = _number(env, names.rank), _number(env, names.world)
    if (found is None) == (among is None):
        return None
    if names is _SRUN and not found:  # a batch script has SLURM_PROCID=0 all alone
        return None
    return names.rank if found is None else names.world


def _told(env: Mapping[str, str], source: str) -> Ranks | None:
    """What a launcher says; None: it says nothing, or not all."""
    names = _LAUNCHERS[source]
    if _number(env, names.rank) is None or _number(env, names.world) is None:
        return None
    if names is _SRUN and _is_shell(env):
        return None
    most = _slurm_local_world(env) if names is _SRUN else None
    found = Ranks(*_of_world(env, names.rank, names.world),
                  *_of_world(env, names.local_rank, names.local_world, most), source)
    told = any(name in env for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"))
    if names is _TORCHRUN and found.world > 1 and not told:
        # Kubeflow's and others': RANK counts machines there.
        raise SettingsError(
            "rank: RANK and WORLD_SIZE are set, but LOCAL_RANK is not, so they may count machines and not "
            "processes: start the processes by torchrun, or give rank= and world=")
    return found


def _slurm_local_world(env: Mapping[str, str]) -> int:
    """Of SLURM_STEP_TASKS_PER_NODE, "8(x2),4", what this node has."""
    counts: list[int] = []
    for part in env.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?", part)
        if match:
            counts += [int(match[1])] * int(match[2] or 1)
    node = _number(env, "SLURM_NODEID") or 0
    return counts[node] if node < len(counts) else 1


def _is_shell(env: Mapping[str, str]) -> bool:
    """Is this a shell of a user's in an allocation, whose programs are no tasks of it?"""
    return env.get("SLURM_JOB_NAME") in ("bash", "interactive")


def _unstarted(env: Mapping[str, str]) -> str | None:
    """Of a SLURM batch script, which has several tasks but has not started this process as one of them: what
    is the matter. Lacking srun, it would train one process on everything."""
    rank, n_tasks = _number(env, _SRUN.rank), _number(env, "SLURM_NTASKS")
    if rank is None or _number(env, _SRUN.world) is not None or _is_shell(env) or (n_tasks or 1) < 2:
        return None
    return (f"{_SRUN.rank} is {rank} and SLURM_NTASKS is {n_tasks}, but {_SRUN.world} is not set: this process "
            f"is the job's batch script and not one of {n_tasks} tasks: start it with srun and give "
            "rank='auto', or give rank=0, world=1 where it is to get all samples alone")


def _bound(ranks: Ranks) -> bool:
    """Has the launcher given this process cores of its own? Then they are not divided once more."""
    return len(os.sched_getaffinity(0)) * ranks.local_world <= (os.cpu_count() or 1)


def distributed() -> Any:
    """torch.distributed where this process has initialised it, else None. Imports nothing."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module


def _several(env: Mapping[str, str]) -> tuple[str, int]:
    """Who says how many processes there are, be it that it cannot be known which of them this is."""
    try:
        found = find(env)
        return (_LAUNCHERS[found.source].world if found.source in _LAUNCHERS else found.source), found.world
    except SettingsError:
        for names in _LAUNCHERS.values():
            if re.fullmatch("[0-9]{1,9}", env.get(names.world, "")):
                return names.world, int(env[names.world])
    return "nobody", 1


def passed_over(env: Mapping[str, str] = os.environ) -> str | None:
    """What to warn of where a loader was given no rank: that there are several processes, and that each of
    them gets all samples. None: there is one process, as far as anybody says."""
    source, world = _several(env)
    if source == "nobody":
        with contextlib.suppress(SettingsError):
            said = _unstarted(env)
            return said and f"penstock: {said}"
    if world < 2:
        return None
    return (f"penstock: {source} says that {world} processes run together, and this loader gives each of "
            "them all samples: give rank='auto' for a part to each, or rank=0, world=1 where all is meant")


def find(env: Mapping[str, str] = os.environ) -> Ranks:
    """Find out. One process where nobody says anything. Raises SettingsError where it cannot be known."""
    torch = distributed()
    if torch is not None:
        local = _of_world(env, _TORCHRUN.local_rank, _TORCHRUN.local_world)
        return Ranks(torch.get_rank(), torch.get_world_size(), *local, "torch.distributed")
    for source in _LAUNCHERS:
        found = _told(env, source)
        if found is not None:
            share = source != "torchrun" and found.local_world > 1 and _bound(found)
            return found._replace(local_rank=0, local_world=1) if share else found
    # A batch script may set WORLD_SIZE for srun's processes: what only half says is asked last.
    for source, names in _LAUNCHERS.items():
        missing = _half(env, source)
        if missing is not None:
            other = names.rank if missing == names.world else names.world
            raise SettingsError(f"rank: {other} is {env[other]}, but {missing} is not set, so it cannot be "
                                f"known which part is this process's: {_GIVE}")
    if _number(env, _TORCHRUN.local_rank):
        raise SettingsError(f"rank: LOCAL_RANK is {env['LOCAL_RANK']}, but RANK and WORLD_SIZE are not set, "
                            f"so it cannot be known which part is this process's: {_GIVE}")
    said = _unstarted(env)
    if said is not None:
        raise SettingsError(f"rank: {said}")
    return Ranks()
