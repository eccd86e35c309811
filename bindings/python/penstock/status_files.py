# SPDX-License-Identifier: Apache-2.0
"""The status files of loaders, by which `penstock top` asks what they are doing.

Their folder is penstock in $XDG_RUNTIME_DIR, or /tmp/penstock-UID if that is not set. The command has the same rule, in
src/cli/command/status_files.c.
"""
from __future__ import annotations

import itertools
import os
import stat
import time
import warnings
from typing import TYPE_CHECKING, Any

from . import trace

if TYPE_CHECKING:
    from .handle import Handle

__all__ = ["begin", "folder", "path_of"]

_numbers = itertools.count()


def folder() -> str:
    """Return the path of the folder, which need not exist."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return os.path.join(runtime, "penstock") if runtime.startswith("/") else f"/tmp/penstock-{os.geteuid()}"


def _usable(path: str) -> bool:
    """Make the folder, and return whether it can be used. False: it cannot be made, or others may write to it."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError:
        return False
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022 \
        and os.access(path, os.W_OK)


def path_of(given: Any) -> bytes | None:
    """Return Observe.monitor_path for the library. None: a new path in the folder; False: no file."""
    if given is False:
        return None
    if given is None:
        where = folder()
        return os.fsencode(os.path.join(where, f"{os.getpid()}-{time.time_ns():x}{next(_numbers):x}")) \
            if _usable(where) else None
    return trace.path_of(given, "monitor_path")


def begin(handle: Handle) -> None:
    """Warn if the loader that was opened could not make the file that its user named."""
    if "no_monitor" in handle.stats().fallbacks:
        warnings.warn("monitor_path: the file cannot be made; the loader works, but `penstock top` does not see it",
                      RuntimeWarning, stacklevel=4)
