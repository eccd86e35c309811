# SPDX-License-Identifier: Apache-2.0
"""Count boxes whose numbers contradict their field: pixels where it has fractions of the image, or fractions where it
has pixels."""
from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..hints import level_outside
from .schema import Field

__all__ = ["OddBoxes"]

MAX_UNIT = 2  # largest fraction of its image that a box may reach to; beyond it the numbers are pixels
WHY = {
    "unit": f"a number above {MAX_UNIT}; coordinates='unit' are fractions of the image, from 0 to 1, and a loader drops boxes "
            "outside of it (declare Boxes(coordinates='pixels') where they are pixels)",
    "pixels": "only numbers from 0 to 1, not all whole; coordinates='pixels' count pixels, so that such a box lies in the "
              "first one (declare Boxes(coordinates='unit') where they are fractions of the image)"}


def _count(boxes: Any, coordinates: str) -> int:
    """Return the number of odd boxes. boxes: an array; without NumPy bytes, which are not counted."""
    if isinstance(boxes, bytes):
        return 0
    rows = boxes.reshape(-1, 4)
    if coordinates == "unit":
        return int((rows > MAX_UNIT).any(1).sum())
    return int((((rows >= 0) & (rows <= 1)).all(1) & (rows % 1 != 0).any(1)).sum())


class OddBoxes:
    """A count of odd boxes while a data set is written."""

    def __init__(self, schema: Mapping[str, Field]) -> None:
        # bfloat16 is stored as whole numbers, and left out.
        self._fields = [(i, name, str(field.coordinates)) for i, (name, field) in enumerate(schema.items())
                        if field.meaning == "boxes" and field.kind != "bfloat16"]
        self._n = {name: 0 for _, name, _ in self._fields}

    def count(self, stored: Any) -> None:
        """Count the odd boxes of a record. stored: the stored value of each field."""
        for i, name, coordinates in self._fields:
            self._n[name] += _count(stored[i], coordinates)

    def take(self) -> dict[str, int]:
        """Return the counts by field, and begin at 0 again."""
        taken, self._n = self._n, dict.fromkeys(self._n, 0)
        return taken

    def add(self, taken: Mapping[str, int]) -> None:
        """Add the result of another's take()."""
        for name, n in taken.items():
            self._n[name] += n

    def warn(self, path: str) -> None:
        """Warn of odd boxes, at the line outside of the package."""
        taken = self.take()
        for _, name, coordinates in self._fields:
            n = taken[name]
            if n:
                warnings.warn(f"{path}: field {name}: {n:,} box{'es have' if n > 1 else ' has'} {WHY[coordinates]}",
                              stacklevel=level_outside())
