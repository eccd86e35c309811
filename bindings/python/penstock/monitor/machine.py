# SPDX-License-Identifier: Apache-2.0
"""Read CPU time and memory of this process, and the memory limit of its cgroup."""
from __future__ import annotations

import os
import time
from dataclasses import dataclass

__all__ = ["Cgroup", "MachineReading", "read"]

UNLIMITED = 1 << 60  # bytes; version 1 of cgroups writes a number near 2^63 for no limit


@dataclass(frozen=True)
class MachineReading:
    """CPU time and memory of this process.

    cpu_s: CPU seconds of all threads since the process started.
    rss: resident bytes; None: /proc does not say.
    memory_used: bytes of the cgroup without file pages, which the kernel frees before it kills; None: no cgroup has a
        limit.
    memory_limit: bytes; None: no cgroup has a limit.
    """

    cpu_s: float
    rss: int | None
    memory_used: int | None
    memory_limit: int | None


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _number(path: str) -> int | None:
    text = (_text(path) or "").strip()
    return int(text) if text.isdigit() else None


class Cgroup:
    """The cgroup with the lowest memory limit, of this process's cgroup and those above it. root, membership: other
    paths, for tests."""

    def __init__(self, root: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> None:
        self.folder, self._is_v1 = "", False
        self.limit: int | None = None
        for line in (_text(membership) or "").splitlines():
            number, controllers, path = (line.split(":", 2) + ["", ""])[:3]
            if number == "0" and not controllers:
                self._find(root, path, "memory.max")
            elif "memory" in controllers.split(","):
                self._is_v1 = self._find(os.path.join(root, "memory"), path, "memory.limit_in_bytes")

    def _find(self, root: str, path: str, name: str) -> bool:
        """Keep the lowest limit from `path` up to the root, and return whether there was one. In a container `path` may
        not exist, but the root is then the container's cgroup."""
        parts, found = [part for part in path.split("/") if part not in ("", "..")], False
        for n in range(len(parts), -1, -1):
            folder = os.path.join(root, *parts[:n])
            limit = _number(os.path.join(folder, name))
            if limit is not None and limit < (UNLIMITED if self.limit is None else self.limit):
                self.folder, self.limit, found = folder, limit, True
        return found

    def used(self) -> int | None:
        """Return the bytes in use without file pages; None: there is no limit, or no number."""
        if self.limit is None:
            return None
        current = _number(os.path.join(self.folder, "memory.usage_in_bytes" if self._is_v1 else "memory.current"))
        if current is None:
            return None
        prefix = "total_" if self._is_v1 else ""
        files = (prefix + "inactive_file", prefix + "active_file")
        pages = 0
        for line in (_text(os.path.join(self.folder, "memory.stat")) or "").splitlines():
            name, _, value = line.partition(" ")
            if name in files and value.isdigit():
                pages += int(value)
        return max(0, current - pages)


def _rss() -> int | None:
    fields = (_text("/proc/self/statm") or "").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else None


def read(cgroup: Cgroup) -> MachineReading:
    used = cgroup.used()
    return MachineReading(time.process_time(), _rss(), used, None if used is None else cgroup.limit)
