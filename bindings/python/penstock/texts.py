# SPDX-License-Identifier: Apache-2.0
"""Lists of texts for C: arguments, an environment."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_char_p, cast
from typing import Any

__all__ = ["environment", "listed"]


def listed(texts: Sequence[bytes]) -> Any:
    """Return the texts as an array with NULL at its end, for a member of a struct, which keeps them alive."""
    return cast((c_char_p * (len(texts) + 1))(*texts, None), POINTER(c_char_p))


def environment(env: Mapping[str, str] = os.environ) -> Any:
    """Return the variables for a function of C that asks for them. Other threads may remove some meanwhile."""
    found = [(name, env.get(name)) for name in list(env)]
    return listed([os.fsencode(f"{name}={value}") for name, value in found if value is not None])
