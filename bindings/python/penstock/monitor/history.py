# SPDX-License-Identifier: Apache-2.0
"""What a Monitor keeps of its looks for a report: figures over time, in bounded memory."""
from __future__ import annotations

from typing import Any

from .reading import Reading

__all__ = ["History"]

# Twice the points that the page draws of a rank. At the default of a look each 5 s these are the first 40 minutes in full;
# each halving doubles that, and some 1 kB for each make 0.5 MB.
MAX_POINTS = 480
_SUMS = ("n_samples", "n_batches", "n_replacements")
_MEANS = ("samples_per_s", "read_bytes_per_s", "waiting", "cpu_cores", "rss")


def _point(reading: Reading) -> dict[str, Any]:
    """The keys of Reading.to_dict() that a page shows over time."""
    whole = reading.to_dict()
    point = {name: whole[name] for name in ("time", "seconds", "name", "node", "rank", "world", "verdict", *_SUMS, *_MEANS)}
    point["gpu"] = {"utilisation": None if reading.gpu is None else reading.gpu.utilisation}
    return point


def _mean(a: Any, a_seconds: float, b: Any, b_seconds: float) -> Any:
    """None is not known, and does not count."""
    if a is None or b is None:
        return b if a is None else a
    return (a * a_seconds + b * b_seconds) / (a_seconds + b_seconds)


def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Two points that follow each other, as one."""
    times = a["seconds"], b["seconds"]
    point = {**b, "seconds": sum(times), **{name: a[name] + b[name] for name in _SUMS}}
    point.update({name: _mean(a[name], times[0], b[name], times[1]) for name in _MEANS})
    point["gpu"] = {"utilisation": _mean(a["gpu"]["utilisation"], times[0], b["gpu"]["utilisation"], times[1])}
    return point


class History:
    """Points of add(), at most MAX_POINTS: when they are full, they are merged in pairs, and from then on as many looks
    make a point. One thread adds; any thread reads points()."""

    def __init__(self) -> None:
        self._points: list[dict[str, Any]] = []  # replaced, never changed, so that readers need no lock
        self._per_point = 1  # looks of a full point
        self._in_last = 0

    def add(self, reading: Reading) -> None:
        points, new = self._points, _point(reading)
        if points and self._in_last < self._per_point:
            self._points = [*points[:-1], _merged(points[-1], new)]
            self._in_last += 1
            return
        if len(points) == MAX_POINTS:
            points = [_merged(a, b) for a, b in zip(points[::2], points[1::2])]
            self._per_point *= 2
        self._points, self._in_last = [*points, new], 1

    def points(self) -> list[dict[str, Any]]:
        """The points, the oldest first."""
        return self._points
