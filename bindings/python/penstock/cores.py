# SPDX-License-Identifier: Apache-2.0
"""The cores of this process."""
from __future__ import annotations

import ctypes
import os

from . import _c


def n_cores() -> int:
    """Return the cores that this process may use, its cgroup's quota included."""
    machine = _c.Machine(size=_c.Machine.io_uring.offset)  # up to there: no ring is tried, no device is looked for
    if _c.lib.pstk_get_machine(None, ctypes.byref(machine), None) == 0 and machine.n_usable:
        return int(machine.n_usable)
    return os.cpu_count() or 1
