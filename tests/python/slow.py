# SPDX-License-Identifier: Apache-2.0
"""An output whose rows wait until they are let go: what makes a loader wait, for tests."""
import ctypes
import dataclasses
import threading

import penstock
from penstock import _c


GIVE_UP = 100  # seconds: for a test that fails, no machine is so slow


@dataclasses.dataclass(frozen=True)
class Held(penstock.Output):
    """Rows of one byte, 7. The library's workers wait in Python for `let`."""

    let: threading.Event = dataclasses.field(default_factory=threading.Event)

    def __repr__(self):
        return "held()"

    def to_c(self, name):
        def decode(_user, _sample, row, _size):
            self.let.wait(GIVE_UP)
            ctypes.c_uint8.from_address(row).value = 7
            return 0

        callback = _c.DecodeFn(decode)
        # Kept for good: workers may be in it when all else is gone.
        _KEPT.append(callback)
        return _c.Output(name=name.encode(), field=self.field.encode(), kind=_c.OUTPUT_CALLBACK, dtype=_c.U8,
                         callback=_c.CallbackOutput(decode=callback))


_KEPT = []


def held(field="i"):
    return Held(field, _c.OUTPUT_CALLBACK)
