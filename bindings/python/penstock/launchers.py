# SPDX-License-Identifier: Apache-2.0
"""The ranks that launchers give a process: their variables, and which of them counts.

LEVELS has the launchers from the innermost to the outermost: torchrun is started by mpirun, mpirun by a SLURM step, a
step by a batch script. The innermost one that has set a rank and a size counts. Those of one level must agree, and so
must what inner ones have set by half.
"""
from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from .errors import SettingsError

__all__ = ["GIVE", "LEVELS", "NAMES", "Found", "Names", "complete", "contradiction", "distributed", "half_set", "libraries",
           "may_count_machines", "number", "of_world", "unstarted"]

GIVE = "set it as the launcher does, or give ranks=penstock.Ranks(RANK, WORLD)"
_SHELLS = ("bash", "interactive")


class Names(NamedTuple):
    """The variables of a launcher; "" for one that it does not have. needed: one that must be set, too, because the
    others are common words."""

    rank: str
    world: str
    local_rank: str = ""
    local_world: str = ""
    needed: str = ""


class Found(NamedTuple):
    """What one launcher says. local: None where it says nothing of this machine."""

    rank: int
    world: int
    local: tuple[int, int] | None
    source: str


def _mpi(prefix: str) -> Names:
    return Names(*(prefix + end for end in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")))


NAMES = {
    "torchrun": Names("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "Open MPI": _mpi("OMPI_COMM_WORLD_"), "MVAPICH": _mpi("MV2_COMM_WORLD_"),
    "PMI": Names("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "PMIx": Names("PMIX_RANK", ""),
    "srun": Names("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
    "Kubeflow JAXJob": Names("PROCESS_ID", "NUM_PROCESSES", needed="COORDINATOR_ADDRESS"),
    "LeaderWorkerSet": Names("LWS_WORKER_INDEX", "LWS_GROUP_SIZE"),
    "Kubernetes Job": Names("JOB_COMPLETION_INDEX", ""),
}
# Before the first: the libraries that this process has initialised, torch.distributed and jax.distributed. Ray Train is
# asked of its library as well, and stands at torchrun's level, whose variables it sets.
LEVELS = (("torchrun",), ("Open MPI", "MVAPICH", "PMI", "PMIx"), ("srun",),
          ("Kubeflow JAXJob", "LeaderWorkerSet", "Kubernetes Job"))


def number(env: Mapping[str, str], name: str) -> int | None:
    """Return a variable's number, or None if it is not set or empty. Raises SettingsError for other text."""
    text = env.get(name, "")
    if text and not re.fullmatch("[0-9]{1,9}", text):
        raise SettingsError(f"rank: {name} is {text!r}; must be a whole number ({GIVE})")
    return int(text) if text else None


def of_world(env: Mapping[str, str], rank: str, world: str, most: int | None = None) -> tuple[int, int]:
    """Return a rank and the number of ranks. If only a rank is set, there are `most` ranks, or at least as many
    as that rank shows."""
    found, among = number(env, rank) or 0, number(env, world)
    if among == 0:
        raise SettingsError(f"rank: {world} is 0; must be at least 1 ({GIVE})")
    if among is not None and found >= among:
        raise SettingsError(f"rank: {rank} is {found}, but {world} is {among}; must be from 0 to {among - 1} "
                            f"({GIVE})")
    return found, among or max(most or 1, found + 1)


def _has_terminal() -> bool:
    """Return whether this process has a controlling terminal: srun gives its tasks none, except with --pty."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _is_shell(env: Mapping[str, str]) -> bool:
    """Return whether this is a user's shell in an allocation: its programs are not tasks of the allocation. The job's
    name alone does not say so: tasks that srun starts from such a shell, or `srun bash -c ...`, have the same name."""
    if env.get("SLURM_JOB_NAME") not in _SHELLS:
        return False
    return number(env, NAMES["srun"].world) is None or _has_terminal()


def _tasks_of_node(env: Mapping[str, str]) -> int:
    """Return this node's number of tasks in SLURM_STEP_TASKS_PER_NODE, such as "8(x2),4"."""
    counts: list[int] = []
    for part in env.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?", part)
        if match:
            counts += [int(match[1])] * min(int(match[2] or 1), 1 << 20)
    node = number(env, "SLURM_NODEID") or 0
    return counts[node] if node < len(counts) else 1


def _is_absent(env: Mapping[str, str], source: str) -> bool:
    needed = NAMES[source].needed
    return bool(needed and not env.get(needed)) or source == "srun" and _is_shell(env)


def complete(env: Mapping[str, str], source: str) -> Found | None:
    """Return what a launcher set, or None if it did not set both rank and size. Raises SettingsError if the numbers
    cannot be."""
    names = NAMES[source]
    if _is_absent(env, source) or number(env, names.rank) is None or number(env, names.world) is None:
        return None
    rank, world = of_world(env, names.rank, names.world)
    local = None
    if names.local_rank and number(env, names.local_rank) is not None:
        local = of_world(env, names.local_rank, names.local_world, _tasks_of_node(env) if source == "srun" else None)
    return Found(rank, world, local, source)


def may_count_machines(env: Mapping[str, str]) -> bool:
    """Return whether RANK may be a machine's number, as under Kubeflow's PyTorchJob, unless each has one process."""
    return not any(name in env for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")) and \
        env.get("PET_NPROC_PER_NODE") != "1"


def half_set(env: Mapping[str, str], source: str) -> tuple[str, int, str] | None:
    """Return the variable that is set, its number and the one that is missing, where a launcher set one of its two;
    or None."""
    names = NAMES[source]
    if _is_absent(env, source):
        return None
    rank, world = number(env, names.rank), number(env, names.world)
    if (rank is None) == (world is None):
        return None
    if source == "srun" and not rank:  # a batch script has SLURM_PROCID=0 all alone
        return None
    if rank is not None:
        return names.rank, rank, names.world
    assert world is not None
    return names.world, world, names.rank


def contradiction(env: Mapping[str, str], source: str, winner: Found) -> str | None:
    """Return how a launcher that set one variable contradicts the one that counts, or None."""
    half = half_set(env, source)
    if half is None:
        return None
    name, value, missing = half
    is_rank = name == NAMES[source].rank
    other = winner.rank if is_rank else winner.world
    if value == other:
        return None
    also = f" and {missing} is not set" if missing else ""
    return (f"{name} is {value}{also}, but {winner.source} reports {'rank' if is_rank else 'a size of'} {other}; must "
            f"agree (unset {name}, or give ranks=penstock.Ranks(RANK, WORLD))")


def unstarted(env: Mapping[str, str]) -> str | None:
    """Return the message for a SLURM batch script that has several tasks, but started this process directly and
    not with srun. It would train one process on everything. None: all is well."""
    names = NAMES["srun"]
    rank, n_tasks = number(env, names.rank), number(env, "SLURM_NTASKS")
    if rank is None or number(env, names.world) is not None or _is_shell(env) or (n_tasks or 1) < 2:
        return None
    return (f"{names.rank} is {rank} and SLURM_NTASKS is {n_tasks}, but {names.world} is not set: this process "
            f"is the job's batch script, not one of {n_tasks} tasks (start it with srun and give ranks='auto'; or "
            "give ranks=penstock.Ranks(0, 1) if it should get all samples alone)")


# ---- libraries of this process -------------------------------------------------------------------------------


def distributed() -> Any:
    """Return torch.distributed if this process has initialised it, else None. Import nothing."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module


def _of_jax() -> Found | None:
    """What jax.distributed says, if it was initialised: a process, not a device, has a rank."""
    module = sys.modules.get("jax")
    asked = getattr(getattr(module, "distributed", None), "is_initialized", None)
    if module is None or asked is None or not asked():
        return None
    return Found(int(module.process_index()), int(module.process_count()), None, "jax.distributed")


def _of_ray() -> Found | None:
    """What Ray Train says in a worker; outside of one it raises, or knows no numbers."""
    module = sys.modules.get("ray.train")
    if module is None:
        return None
    try:
        context = module.get_context()
        found = [context.get_world_rank(), context.get_world_size(), context.get_local_rank(),
                 context.get_local_world_size()]
    except Exception:  # whatever Ray's version raises in a driver
        return None
    if not all(isinstance(value, int) for value in found):
        return None
    return Found(found[0], found[1], (found[2], found[3]), "Ray Train")


def libraries(level: int) -> list[Found]:
    """What libraries of this process say: 0: process groups, 1: Ray Train."""
    if level == 1:
        ray = _of_ray()
        return [ray] if ray is not None else []
    torch, jax = distributed(), _of_jax()
    found = [] if torch is None else [Found(torch.get_rank(), torch.get_world_size(), None, "torch.distributed")]
    return found + ([] if jax is None else [jax])
