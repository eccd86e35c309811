# SPDX-License-Identifier: Apache-2.0
"""The figures over time that a Monitor keeps for its report, in bounded memory."""
from __future__ import annotations

from typing import Any

from .reading import Reading

__all__ = ["History"]

# This is twice the number of points that the page draws of a rank. With a look every 5 s, the first 40 minutes are kept
# in full, and each halving doubles that time. A point takes some 1 kB, so all take 0.5 MB.
MAX_POINTS = 480
_SUMS = ("n_samples", "n_batches", "n_replacements")
_MEANS = ("samples_per_s", "read_bytes_per_s", "waiting", "cpu_cores", "rss")


def _point(reading: Reading) -> dict[str, Any]:
    """Return the entries of Reading.to_dict() that a page shows over time."""
    whole = reading.to_dict()
    point = {name: whole[name] for name in ("time", "seconds", "name", "node", "rank", "world", "verdict", *_SUMS, *_MEANS)}
    point["gpu"] = {"utilisation": None if reading.gpu is None else reading.gpu.utilisation}
    return point


def _mean(a: Any, a_seconds: float, b: Any, b_seconds: float) -> Any:
    """Return the mean of two values, weighted by their seconds. A value of None does not count."""
    if a is None or b is None:
        return b if a is None else a
    return (a * a_seconds + b * b_seconds) / (a_seconds + b_seconds)


def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Return two consecutive points as one."""
    times = a["seconds"], b["seconds"]
    point = {**b, "seconds": sum(times), **{name: a[name] + b[name] for name in _SUMS}}
    point.update({name: _mean(a[name], times[0], b[name], times[1]) for name in _MEANS})
    point["gpu"] = {"utilisation": _mean(a["gpu"]["utilisation"], times[0], b["gpu"]["utilisation"], times[1])}
    return point


class History:
    """At most MAX_POINTS points over time. When that many are full, they are merged in pairs, and each further point
    has twice as many looks. Thread: one calls add(); any calls points()."""

    def __init__(self) -> None:
        self._points: list[dict[str, Any]] = []  # replaced as a whole, so that readers need no lock
        self._per_point = 1  # looks in a full point
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
        """Return the points, the oldest first."""
        return self._points
