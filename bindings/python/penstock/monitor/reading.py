# SPDX-License-Identifier: Apache-2.0
"""Reading: the figures that a Monitor found over some seconds, as numbers, as a dict and as one line."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..escapes import escaped
from ..stats import ADVICE, Stats
from .gpu import GpuReading

if TYPE_CHECKING:
    from ..forecast import Forecast
    from ..metrics import Metrics

__all__ = ["Reading", "averaged"]

_INNER = ("total", "minute", "gpu", "forecast")  # members that to_dict has no number of
# For each case of a forecast: its name in scalars(), the verdict for which a line shows it, and its words there.
_CASES = {"workers": ("predicted_samples_per_s_1_more_worker", "decode", "with 1 more worker"),
          "storage": ("predicted_samples_per_s_storage_x2", "storage", "with storage twice as fast"),
          "consumer": ("predicted_samples_per_s_no_consumer", "consumer", "without it")}
# Figures of the GPU of which a line has the average over its looks.
_AVERAGED = ("utilisation", "memory_utilisation", "power_w", "sm_clock", "pcie_rx", "pcie_tx")


@dataclass(frozen=True)
class Reading:
    """The figures of `seconds` seconds, up to `time`. None: a figure is not known, or was not asked for.

    time: seconds since 1970.
    seconds: length of the time.
    name, node, rank, world: name of the data set, host name, and the loader's rank and world.
    epoch, position: the cursor of the loader.
    n_samples, n_batches, n_replacements: samples, batches, and bad samples that were replaced, in these seconds.
    samples_per_s, tokens_per_s, read_bytes_per_s: samples, tokens, and bytes from the storage, in a second of the
        clock.
    pace: samples in a second that the loop spent in steps and waits, without pauses such as an evaluation.
    step_ms: milliseconds of a step with its wait.
    wait_ms: milliseconds of the wait for data in a step.
    waiting: share of the loop's time, 0 to 1, in which it waited for data.
    verdict: the stage that limits, a key of penstock.stats.ADVICE.
    read_p99_ms: 99th percentile of reads in the last minute, milliseconds.
    mfu: share of the GPU's peak FLOPs that the model used.
    cpu_cores: cores that this process kept busy.
    rss: resident bytes of this process.
    memory_used, memory_limit: bytes of its cgroup, without file pages.
    gpu: a GpuReading.
    total: loader.stats().
    minute: the loader's metrics of the last minute.
    forecast: predictions for one more worker, storage twice as fast, and a loop that takes every batch at once; None:
        the seconds are too few.
    alerts: names of the rules that are raised.
    stragglers: on rank 0, a sentence for each rank that was clearly slower than the others at the last line.
    silent: on rank 0, a sentence for each rank that leaves no lines any more; on rank 1, for rank 0; on the first rank
        of the second node, for ranks 0 and 1.
    """

    time: float
    seconds: float
    name: str
    node: str
    rank: int
    world: int
    epoch: int
    position: int
    n_samples: int
    n_batches: int
    n_replacements: int
    samples_per_s: float
    read_bytes_per_s: float
    verdict: str
    total: Stats
    minute: Metrics | None = None
    pace: float | None = None
    tokens_per_s: float | None = None
    step_ms: float | None = None
    wait_ms: float | None = None
    waiting: float | None = None
    read_p99_ms: float | None = None
    mfu: float | None = None
    cpu_cores: float | None = None
    rss: int | None = None
    memory_used: int | None = None
    memory_limit: int | None = None
    gpu: GpuReading | None = None
    forecast: Forecast | None = None
    alerts: tuple[str, ...] = ()
    stragglers: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()

    @property
    def advice(self) -> str:
        """A sentence: what `verdict` means, and what to change."""
        return ADVICE[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return all values except `total` and `minute` as a dict for JSON. The GPU's are under "gpu"; predictions are
        under "forecast", each with "is_prediction"."""
        values = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name not in _INNER}
        values.update({name: list(getattr(self, name)) for name in ("alerts", "stragglers", "silent")})
        values["forecast"] = None if self.forecast is None else self.forecast.to_dict()
        values["gpu"] = None
        if self.gpu is not None:
            values["gpu"] = dataclasses.asdict(self.gpu)
            values["gpu"]["throttle"] = None if self.gpu.throttle is None else list(self.gpu.throttle)
        return values

    def scalars(self, prefix: str = "penstock/") -> dict[str, float]:
        """Return the known numbers by flat names, for trackers such as Weights & Biases and MLflow. Names of the GPU's
        begin with "gpu_", names of predictions with "predicted_". "gpu_throttled" is 1 for a slowdown that needs a
        person's attention."""
        found: dict[str, float] = {}
        for name, value in self.to_dict().items():
            if name not in ("time", "seconds", "rank", "world"):
                _add(found, prefix + name, value)
        for case in () if self.forecast is None else self.forecast.cases:
            found[prefix + _CASES[case.what][0]] = case.samples_per_second
        if self.gpu is not None:
            for one in dataclasses.fields(self.gpu):
                _add(found, f"{prefix}gpu_{one.name}", getattr(self.gpu, one.name))
            if self.gpu.throttle is not None:
                found[prefix + "gpu_throttled"] = float(bool(self.gpu.slowed))
        return found

    def __str__(self) -> str:
        return escaped(f"penstock {self.name}{self._who()}: " + "; ".join(part for part in (
            self._speed(), self._data(), self._gpu(), self._host(), self._trouble()) if part))

    def _who(self) -> str:
        return f" rank {self.rank}" if self.world > 1 else ""

    def _speed(self) -> str:
        if not self.n_batches:
            return f"no batch in {self.seconds:.3g} s"
        parts = [f"{_figure(self.samples_per_s)} samples/s"]
        if self.tokens_per_s is not None:
            parts.append(f"{_figure(self.tokens_per_s)} tokens/s")
        if self.step_ms is not None:
            parts.append(f"step {_figure(self.step_ms)} ms")
        return ", ".join(parts)

    def _data(self) -> str:
        waits = "" if self.waiting is None else f"{100 * self.waiting:.0f} % waiting for data"
        p99 = "" if self.read_p99_ms is None else f"read p99 {self.read_p99_ms:.3g} ms"
        limit = "" if self.verdict == "unknown" else f"limit: {self.verdict}{self._cure()}"
        return ", ".join(part for part in (waits, p99, limit) if part)

    def _cure(self) -> str:
        """Return text on the prediction for a change of the stage that limits; "": there is none."""
        if self.forecast is None:
            return ""
        for case in self.forecast.cases:
            _, verdict, words = _CASES[case.what]
            if verdict == self.verdict and self.forecast.is_faster(case):
                return f" (predicted: {_figure(case.samples_per_second)} {words})"
            if verdict == self.verdict:
                return f" (predicted: no faster {words}, limit {case.limit})"
        return ""

    def _gpu(self) -> str:
        gpu = self.gpu
        if gpu is None or gpu.state.startswith(("no GPU", "this process")):
            return ""
        if gpu.state != "ok":
            return f"gpu {gpu.state}"
        parts = ["gpu" if gpu.utilisation is None else f"gpu {100 * gpu.utilisation:.0f} %"]
        if self.mfu is not None:
            parts.append(f"MFU {100 * self.mfu:.3g} %")
        if gpu.memory_used is not None and gpu.memory_total:
            parts.append(f"{gpu.memory_used / 1e9:.3g} of {gpu.memory_total / 1e9:.3g} GB")
        if gpu.power_w is not None:
            parts.append(f"{gpu.power_w:.0f} W")
        if gpu.sm_clock is not None:
            parts.append(f"{gpu.sm_clock:.0f} MHz")
        if gpu.slowed:
            parts.append("slowed by " + " and ".join(gpu.slowed))
        return ", ".join(parts)

    def _host(self) -> str:
        parts = []
        if self.cpu_cores is not None:
            parts.append(f"cpu {self.cpu_cores:.1f} cores")
        if self.rss is not None:
            parts.append(f"rss {self.rss / 1e9:.3g} GB")
        if self.memory_used is not None and self.memory_limit:
            parts.append(f"cgroup {100 * self.memory_used / self.memory_limit:.0f} % of its limit")
        return ", ".join(parts)

    def _trouble(self) -> str:
        parts = [f"{self.n_replacements:,} replaced"] if self.n_replacements else []
        if self.alerts:
            parts.append("alerts: " + ", ".join(self.alerts))
        return "; ".join(part for part in (", ".join(parts), *self.silent, *self.stragglers) if part)


def _add(found: dict[str, float], name: str, value: Any) -> None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        found[name] = float(value)


def _figure(value: float) -> str:
    """Return a number with at least three digits, and commas between thousands."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def averaged(looks: Sequence[GpuReading]) -> GpuReading | None:
    """Return the last reading of a GPU, with the averages of figures that change from look to look, and with the
    throttle reasons of all looks."""
    if not looks:
        return None
    last = looks[-1]
    if last.state != "ok":
        return last
    fine = [one for one in looks if one.state == "ok"]
    values: dict[str, Any] = {}
    for name in _AVERAGED:
        known = [getattr(one, name) for one in fine if getattr(one, name) is not None]
        values[name] = sum(known) / len(known) if known else None
    seen = [one.throttle for one in fine if one.throttle is not None]
    if seen:
        values["throttle"] = tuple(dict.fromkeys(name for names in seen for name in names))
    return dataclasses.replace(last, **values)
