# SPDX-License-Identifier: Apache-2.0
"""Predict what a loader would do with more workers, faster storage, or a loop that takes every batch at once.

The model is that of `penstock/diagnostics.h`. It takes the times of the loader's stages since the loop first asked for
a batch, the cores that the process may use, and the CPU time that it used.
"""
from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, sizeof
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from . import _c, errors
from .arguments import number, whole
from .cores import n_cores
from .stats import BOTTLENECKS

if TYPE_CHECKING:
    from .handle import Handle

__all__ = ["Case", "Forecast"]

SINGLE: tuple[dict[str, Any], ...] = ({"more_workers": 1}, {"storage": 2.0}, {"no_consumer": True})  # arguments of _case


@dataclass(frozen=True)
class Case:
    """A change and its prediction.

    what: "workers", "storage" or "consumer", or several of them joined by "+".
    change: "+1", "x2" and "none", for example, joined by ",".
    samples_per_second: the predicted rate.
    limit: the stage that would limit then, a key of penstock.stats.ADVICE.
    is_prediction: True, for readers of the JSON.
    """

    what: str
    change: str
    samples_per_second: float
    limit: str
    is_prediction: bool = True


@dataclass(frozen=True)
class Forecast:
    """Predictions for a loader.

    measured: samples per second since the loop first asked for a batch; of a Monitor's reading, in its seconds.
    cases: the changes, each with its prediction; () while no limit is known.
    """

    measured: float
    cases: tuple[Case, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all values as a dict for JSON, in the form of "forecast" in `penstock bench --json`."""
        return {"measured": self.measured, "cases": [asdict(case) for case in self.cases]}

    def __str__(self) -> str:
        if not self.cases:
            return "no prediction: the loop has not run long enough, or nothing shows a bottleneck"
        return "\n".join([f"{self.measured:,.0f} samples/s so far; predictions:"] + [self._line(case) for case in self.cases])

    def is_faster(self, case: Case) -> bool:
        """Return whether a case is predicted to be at least 2 % faster than the measured rate."""
        return case.samples_per_second >= self.measured * (_c.FORECAST_NO_CHANGE / 100)

    def _line(self, case: Case) -> str:
        rate = f"{case.samples_per_second:,.0f} samples/s" if self.is_faster(case) else "no faster"
        return f"{case.what} {case.change}: {rate} (limit: {case.limit})"


def usual(n_threads: int) -> list[dict[str, Any]]:
    """Return the usual changes, as arguments of _case. n_threads: workers of the loader."""
    twice = [] if n_threads == 1 else [{"more_workers": n_threads}]
    return [SINGLE[0], *twice, *SINGLE[1:]]


def _case(found: _c.Stats, cores: float, more_workers: int | None = None, storage: float | None = None,
          no_consumer: bool = False) -> tuple[float, Case]:
    settings = _c.ForecastSettings(size=sizeof(_c.ForecastSettings), n_threads=found.n_threads + (more_workers or 0),
                                   storage_factor=storage or 0, n_cores=cores, no_consumer=no_consumer)
    out = _c.Forecast(size=sizeof(_c.Forecast))
    errors.check(_c.lib.pstk_predict(byref(found), byref(settings), byref(out)), errors.new())
    parts = [("workers", f"+{more_workers}")] if more_workers is not None else []
    parts += [("storage", f"x{storage:g}")] if storage is not None else []
    parts += [("consumer", "none")] if no_consumer else []
    what, change = "+".join(what for what, _ in parts), ",".join(change for _, change in parts)
    return float(out.measured), Case(what, change, float(out.samples_per_second), BOTTLENECKS.get(out.limit, "unknown"))


def of(handle: Handle, more_workers: Any, storage: Any, no_consumer: Any) -> Forecast:
    """Return the predictions for an open loader. Raises TypeError, ValueError and PenstockError. Thread: any."""
    change: dict[str, Any] = {}
    if more_workers is not None:
        change["more_workers"] = whole("more_workers", more_workers, 1, 65535)
    if storage is not None:
        change["storage"] = number("storage", storage, 0.001, 1000)
    if no_consumer:
        change["no_consumer"] = True
    found = handle.counts()
    return of_counts(found, n_cores(), [change] if change else usual(int(found.n_threads)))


def of_counts(found: _c.Stats, cores: float, changes: Sequence[dict[str, Any]]) -> Forecast:
    """Return the predictions for some statistics. cores: those that the process may use. changes: arguments of _case.
    Pure."""
    rates = [_case(found, cores, **one) for one in changes]
    return Forecast(rates[0][0], tuple(case for _, case in rates if case.samples_per_second > 0))
