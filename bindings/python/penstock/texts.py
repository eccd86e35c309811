# SPDX-License-Identifier: Apache-2.0
"""Lists of texts for C: arguments, an environment."""
from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, c_char_p, cast
from typing import Any

__all__ = ["listed"]


def listed(texts: Sequence[bytes]) -> Any:
    """Return the texts as an array with NULL at its end, for a member of a struct, which keeps them alive."""
    return cast((c_char_p * (len(texts) + 1))(*texts, None), POINTER(c_char_p))
