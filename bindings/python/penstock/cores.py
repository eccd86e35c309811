# SPDX-License-Identifier: Apache-2.0
"""The number of cores of this process."""
from __future__ import annotations

import ctypes
import os

from . import _c


def n_cores() -> int:
    """Return the number of cores that this process may use, with its cgroup's quota."""
    machine = _c.Machine(size=_c.Machine.io_uring.offset)  # short: no ring is tried, no device looked for
    if _c.lib.pstk_get_machine(None, ctypes.byref(machine), None) == 0 and machine.n_usable:
        return int(machine.n_usable)
    return os.cpu_count() or 1
