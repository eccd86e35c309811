# SPDX-License-Identifier: Apache-2.0
"""Which of how many processes this one is: rank="auto".

Asked are torch.distributed where it is initialised, then the variables of the launchers, the innermost one
first: torchrun inside of srun sets RANK, and SLURM_PROCID there is 0 in every process.
"""
from __future__ import annotations

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
    text = env.get(name, "")
    return int(text) if text.isdigit() else None


def _of(env: Mapping[str, str], source: str, rank: str, world: str, local_rank: str,
        local_world: str) -> Ranks | None:
    found, among = _number(env, rank), _number(env, world)
    if found is None or among is None:
        return None
    return Ranks(found, among, _number(env, local_rank) or 0, _number(env, local_world) or 1, source)


def _torchrun(env: Mapping[str, str]) -> Ranks | None:
    found = _of(env, "RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    told = any(name in env for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"))
    if found is not None and found.world > 1 and not told:
        # Kubeflow's and others': RANK counts machines there.
        raise SettingsError(
            "rank: RANK and WORLD_SIZE are set, but LOCAL_RANK is not, so they may count machines and not "
            "processes: start the processes by torchrun, or give rank= and world=")
    return found


def _slurm_local_world(env: Mapping[str, str]) -> int:
    """Of SLURM_STEP_TASKS_PER_NODE, "8(x2),4", what this node has."""
    counts: list[int] = []
    for part in env.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match:
            counts += [int(match[1])] * int(match[2] or 1)
    node = _number(env, "SLURM_NODEID") or 0
    return counts[node] if node < len(counts) else 1


def _slurm(env: Mapping[str, str]) -> Ranks | None:
    # Only srun sets the step's number of tasks; a batch script has SLURM_PROCID=0 all alone.
    found = _of(env, "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "")
    if found is None or env.get("SLURM_JOB_NAME") in ("bash", "interactive"):
        return None
    return found._replace(local_world=max(_slurm_local_world(env), found.local_rank + 1))


_MPI = {"Open MPI": "OMPI_COMM_WORLD_", "MVAPICH": "MV2_COMM_WORLD_"}


def _mpi(env: Mapping[str, str]) -> Ranks | None:
    for source, prefix in _MPI.items():
        found = _of(env, source, prefix + "RANK", prefix + "SIZE", prefix + "LOCAL_RANK",
                    prefix + "LOCAL_SIZE")
        if found is not None:
            return found
    return _of(env, "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")


def _bound(ranks: Ranks) -> bool:
    """Has the launcher given this process cores of its own? Then they are not divided once more."""
    return len(os.sched_getaffinity(0)) * ranks.local_world <= (os.cpu_count() or 1)


def distributed() -> Any:
    """torch.distributed where this process has initialised it, else None. Imports nothing."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module


# Of the sources, the variable that says how many processes there are.
_SIZES = {"RANK": "WORLD_SIZE", "srun": "SLURM_STEP_NUM_TASKS", "PMI": "PMI_SIZE",
          **{source: prefix + "SIZE" for source, prefix in _MPI.items()}}


def passed_over(env: Mapping[str, str] = os.environ) -> str | None:
    """What to warn of where a loader was given no rank: that there are several processes, and that each of
    them gets all samples. None: there is one process, as far as anybody says."""
    try:
        found = find(env)
    except SettingsError:  # it cannot be known which of them this is, but there are several
        found = Ranks(0, _number(env, "WORLD_SIZE") or 1, source="RANK")
    if found.world < 2:
        return None
    said = "torch.distributed says" if found.source not in _SIZES else f"{_SIZES[found.source]} says"
    return (f"penstock: {said} that {found.world} processes run together, and this loader gives each of them "
            "all samples: give rank='auto' for a part to each, or rank=0, world=1 where all is meant")


def find(env: Mapping[str, str] = os.environ) -> Ranks:
    """Find out. One process where nobody says anything. Raises SettingsError where it cannot be known."""
    torch = distributed()
    if torch is not None:
        return Ranks(torch.get_rank(), torch.get_world_size(), _number(env, "LOCAL_RANK") or 0,
                     _number(env, "LOCAL_WORLD_SIZE") or 1, "torch.distributed")
    found = _torchrun(env)
    if found is not None:
        return found
    found = _slurm(env) or _mpi(env)
    if found is None:
        return Ranks()
    if found.local_world > 1 and _bound(found):
        return found._replace(local_rank=0, local_world=1)
    return found
