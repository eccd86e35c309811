# SPDX-License-Identifier: Apache-2.0
"""Tasks: each attempt at a task writes one part of a pack whose number of parts is not known in advance."""
from __future__ import annotations

import dataclasses
import hashlib
import re

from ..errors import SettingsError

__all__ = ["Task", "pack_id_of"]

_PACK_ID = re.compile(r"[0-9a-f]{32}\Z")
_KEY = re.compile(r"[A-Za-z0-9_.:=/-]{1,200}\Z")


def pack_id_of(name: str, value: object) -> str:
    """Return the id of a pack. Raises SettingsError, which names the setting."""
    if not isinstance(value, str) or not _PACK_ID.match(value):
        raise SettingsError(f"{name}: value is {value!r}; must be 32 lower-case hex digits (make them once for a "
                            "pack: uuid.uuid4().hex)")
    return value


@dataclasses.dataclass(frozen=True)
class Task:
    """One attempt at one task of a pack: the part of a Writer or of penstock.pack. penstock.merge joins such parts in
    the order in which they are given.

    pack: id of the pack, the same in all its parts: 32 hex digits, as uuid.uuid4().hex makes them.
    key: name of the task within the pack: 1 to 200 of A-Z a-z 0-9 _ . : = / -
    attempt: number of the attempt, from 0. Merging takes one attempt at each task.

    Raises SettingsError.
    """
    pack: str
    key: str
    attempt: int = 0

    def __post_init__(self) -> None:
        pack_id_of("pack", self.pack)
        if not isinstance(self.key, str) or not _KEY.match(self.key):
            raise SettingsError(f"key: value is {self.key!r}; must be 1 to 200 of the characters A-Z a-z 0-9 "
                                "_ . : = / -")
        if isinstance(self.attempt, bool) or not isinstance(self.attempt, int) or not 0 <= self.attempt < 2**32:
            raise SettingsError(f"attempt: value is {self.attempt!r}; must be a whole number from 0 to 2**32 - 1")

    def share(self, number: int) -> Task:
        """Return the task of a process that writes a share of this task's part. It has another pack's id, so that its
        files and tags are those of no other task."""
        text = f"{self.pack}/{self.key}/{self.attempt}"
        return Task(hashlib.sha256(text.encode()).hexdigest()[:32], str(number))
