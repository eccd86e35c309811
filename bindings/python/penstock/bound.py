# SPDX-License-Identifier: Apache-2.0
"""Whether a launcher gave this process cores of its own, and the memory of the machine that processes share.

A launcher that binds (mpirun, srun --cpu-bind) has divided the cores, so the library must not divide them again. It did
not divide the memory.
"""
from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

__all__ = ["is_bound", "memory"]

_CGROUPS = pathlib.Path("/sys/fs/cgroup")


def _cgroup_files(version2: str, version1: str) -> Iterator[str]:
    """The text of a file of this process's cgroups, from its own to the root; version1 is "controller/file"."""
    try:
        lines = pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return
    controller, name = version1.split("/")
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, file = _CGROUPS, version2
        elif controller in controllers.split(","):
            top, file = _CGROUPS / controllers, name
        else:
            continue
        folder = top / path.strip("/")
        for at in [folder, *folder.parents]:
            if not at.is_relative_to(top):
                break
            try:
                yield (at / file).read_text(encoding="ascii").strip()
            except (OSError, ValueError):
                continue


def _cpus(text: str) -> set[int]:
    """The processors of a list such as "0-3,8"."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _of_launcher(from_parent: bool) -> int:
    """The number of cores that all processes of this machine have together."""
    if from_parent:
        try:
            return len(os.sched_getaffinity(os.getppid()))
        except OSError:
            return 0
    for text in _cgroup_files("cpuset.cpus.effective", "cpuset/cpuset.cpus"):
        if text:
            return len(_cpus(text))
    return os.cpu_count() or 1


def is_bound(local_world: int, from_parent: bool) -> bool:
    """Return whether this process has cores of its own: fewer than its cgroup, and so few that those of `local_world`
    processes fit. from_parent: fewer than its parent, for launchers that leave processes the cores that they have
    themselves, which an outer launcher may have bound."""
    own = len(os.sched_getaffinity(0))
    return local_world > 1 and own * local_world <= _of_launcher(from_parent)


def memory() -> int:
    """Return the bytes of this machine, or of the cgroup where that has fewer: above memory.high the kernel slows the
    process down, so that it counts as memory.max does, as in the library."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory.high"):
        for text in _cgroup_files(name, "memory/memory.limit_in_bytes"):
            if text.isdigit():
                found = min(found, int(text))
    return found
