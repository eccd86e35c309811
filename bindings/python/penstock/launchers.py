# SPDX-License-Identifier: Apache-2.0
"""Find the ranks of this process. The C library reads the variables of launchers (penstock/ranks.h says which of them
counts). It gets from here what other Python libraries of this process report, which it cannot ask."""
from __future__ import annotations

import sys
from collections.abc import Mapping
from ctypes import byref, sizeof
from typing import Any

from . import _c, errors
from .errors import SettingsError
from .escapes import escaped
from .texts import environment

__all__ = ["alone", "distributed", "find"]

_TERMINAL = _c.TERMINAL_ASK  # tests set another value


def distributed() -> Any:
    """Return torch.distributed if this process has initialised it, else None. Nothing is imported."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module


def _of_torch() -> _c.KnownRanks | None:
    torch = distributed()
    if torch is None:
        return None
    return _c.KnownRanks(b"torch.distributed", _c.KNOWN_BY_GROUP, torch.get_rank(), torch.get_world_size())


def _of_jax() -> _c.KnownRanks | None:
    """Return the ranks of jax.distributed if it was initialised: a process has a rank, not a device."""
    module = sys.modules.get("jax")
    asked = getattr(getattr(module, "distributed", None), "is_initialized", None)
    if module is None or asked is None or not asked():
        return None
    return _c.KnownRanks(b"jax.distributed", _c.KNOWN_BY_GROUP, module.process_index(), module.process_count())


def _of_ray() -> _c.KnownRanks | None:
    """Return the ranks that Ray Train gives a worker. Outside of a worker it raises, or gives no numbers: None."""
    module = sys.modules.get("ray.train")
    if module is None:
        return None
    try:
        context = module.get_context()
        found = [context.get_world_rank(), context.get_world_size(), context.get_local_rank(),
                 context.get_local_world_size()]
    except Exception:  # which exception depends on Ray's version
        return None
    if not all(isinstance(value, int) for value in found):
        return None
    return _c.KnownRanks(b"Ray Train", _c.KNOWN_BY_LAUNCHER, *found)


def _shown(error: _c.Error) -> str:
    """Return the message, escaped, because it quotes variables."""
    return escaped(error.message.decode(errors="surrogateescape"))


def _query(env: Mapping[str, str], option: bytes) -> _c.RankQuery:
    """Return the query to the C library about this environment, with the words of this package. option: begins each
    message."""
    known = [one for one in (_of_torch(), _of_jax(), _of_ray()) if one is not None]
    return _c.RankQuery(
        size=sizeof(_c.RankQuery), terminal=_TERMINAL,
        environment=environment(env),
        known=(_c.KnownRanks * len(known))(*known), n_known=len(known), known_size=sizeof(_c.KnownRanks),
        option=option, automatic=b"ranks='auto'", numbers=b"ranks=penstock.Ranks(RANK, WORLD)",
        alone=b"ranks=penstock.Ranks(0, 1)")


def find(env: Mapping[str, str]) -> _c.FoundRanks:
    """Return the ranks; rank 0 of 1 if nothing reports others. Raises SettingsError if two sources of one level
    disagree, or if the innermost launcher set only half of its numbers, or impossible ones."""
    found, error = _c.FoundRanks(size=sizeof(_c.FoundRanks)), errors.new()
    if _c.lib.pstk_find_ranks(byref(_query(env, b"rank")), byref(found), byref(error)) < 0:
        raise SettingsError(_shown(error))
    return found


def alone(env: Mapping[str, str]) -> str | None:
    """Return the warning for a loader that was given no rank where several processes run; None: only one runs."""
    error = errors.new()
    result = _c.lib.pstk_check_alone(byref(_query(env, b"")), byref(error))
    return None if result == 0 else "penstock: " + _shown(error)
