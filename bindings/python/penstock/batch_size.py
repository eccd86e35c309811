# SPDX-License-Identifier: Apache-2.0
"""How many rows a batch has: those of this process, or those of all processes together, which are then divided."""
from __future__ import annotations

from typing import Any, NamedTuple

from .errors import SettingsError
from .settings import integer, switch

__all__ = ["BatchSize", "of"]


class BatchSize(NamedTuple):
    """own: rows of this process's batches, the most where they vary. world_wide: of all processes' together. settings:
    those of the library."""

    own: int
    world_wide: int
    settings: dict[str, int]

    def for_order(self) -> dict[str, int]:
        """The members of struct pstk_order_settings."""
        rows = self.settings["global_batch_size"]
        return {"batch_size": 0 if rows else self.own, "global_batch_size": rows}


def _divided(rows: int, uneven: bool, world: int) -> BatchSize:
    if rows < max(world, 1):
        raise SettingsError(f"global_batch_size: value is {rows}, and world is {world}; must be at least world, so that "
                            "each process has a row")
    rest = rows % world
    if rest and not uneven:
        raise SettingsError(
            f"global_batch_size: value is {rows}, and world is {world}; must be a multiple of it, as {rows - rest} and "
            f"{rows - rest + world} are (or give uneven=True: some processes then have one row more than others)")
    return BatchSize(-(-rows // world), rows, {"batch_size": 1, "global_batch_size": rows, "uneven": int(uneven)})


def of(batch_size: Any, global_batch_size: Any, uneven: Any, world: int) -> BatchSize:
    """Return the rows of a batch from the arguments of penstock.Loader. Raises TypeError and SettingsError."""
    uneven = switch("uneven", uneven)
    if batch_size is None and global_batch_size is None:
        raise TypeError("batch_size: must be given, the rows of this process's batches; or global_batch_size, those of "
                        "all processes together")
    if batch_size is not None and global_batch_size is not None:
        raise SettingsError(f"batch_size: value is {batch_size!r}, and global_batch_size is {global_batch_size!r}; must be "
                            "left out with it (give one of them)")
    if global_batch_size is not None:
        return _divided(integer("global_batch_size", global_batch_size), uneven, world)
    if uneven:
        raise SettingsError("uneven: value is True; must be False with batch_size (give global_batch_size)")
    rows = integer("batch_size", batch_size)
    return BatchSize(rows, rows * world, {"batch_size": rows, "global_batch_size": 0, "uneven": 0})
