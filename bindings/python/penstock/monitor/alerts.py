# SPDX-License-Identifier: Apache-2.0
"""Alerts: rules over readings, each raised once and resolved once, and where they are sent.

A rule looks at each Reading of a Monitor (every `look` seconds). It is raised when its condition has held for `seconds`,
and resolved when the value has been past its `resolve` limit, which is further away, for as long. A reading in which the
value is not known changes nothing.
"""
from __future__ import annotations

import collections
import dataclasses
import logging
import operator
import os
import statistics
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..arguments import is_whole, is_zero, items, positive
from ..errors import SettingsError
from ..escapes import escaped
from ..sealed import Sealed
from .reading import Reading

__all__ = ["Alert", "GpuIdle", "NearMemoryLimit", "NoBatch", "Replacements", "Rule", "SilentRank", "Slow", "SlowReads",
           "Starved", "Straggler", "Throttled", "defaults"]

MAX_LOOKS = 100_000  # of Slow, whose median is taken at each look: some 6 days of looks

log = logging.getLogger("penstock.monitor")


@dataclasses.dataclass(frozen=True)
class Alert:
    """One change of a rule. state: "raised" or "resolved". value: what was found. text: a sentence with the verdict and
    the advice. time: seconds since 1970."""

    rule: str
    state: str
    text: str
    value: float
    verdict: str
    advice: str
    name: str
    node: str
    rank: int
    time: float

    def to_dict(self) -> dict[str, Any]:
        """Return the values as a dict for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return self.text


class Rule(Sealed):
    """The base of rules: the state of one, and its hysteresis. above: the condition is a value above the limit."""

    above = True
    what = "{value:g}"  # of the text
    if TYPE_CHECKING:  # else a rule of the user's could not set its own
        name: str
        seconds: float
        limit: float
        resolve: float
        raised: bool

    def __init__(self, limit: float, resolve: float, seconds: Any) -> None:
        name = type(self).__name__
        self._fix(name=name, limit=limit, resolve=resolve, raised=False,
                  seconds=0.0 if is_zero(seconds) else positive(f"{name}.seconds", seconds))
        if (resolve > limit) if self.above else (resolve < limit):
            side = "at most" if self.above else "at least"
            raise SettingsError(f"{self.name}.resolve: value is {resolve:g}; must be {side} {limit:g}, the limit")
        self._since: float | None = None  # the condition, or its end, has held since then

    def value(self, reading: Reading) -> float | None:
        """What the limit is for; None: not known."""
        raise NotImplementedError

    def holds(self, value: float) -> bool:
        """Whether the state has reason to change: the limit is passed, or, of a raised one, the way back."""
        if self.raised:
            return value <= self.resolve if self.above else value >= self.resolve
        return value > self.limit if self.above else value < self.limit

    def look(self, reading: Reading) -> Alert | None:
        """Take a reading; return the change where there is one. One thread calls it."""
        value = self.value(reading)
        if value is None:
            return None
        if not self.holds(value):
            self._since = None
            return None
        if self._since is None:
            # It has held over the whole reading.
            self._since = reading.time - reading.seconds
        if reading.time - self._since < self.seconds - 1e-6:
            return None
        self._fix(raised=not self.raised)
        self._since = None
        return self._alert(reading, value)

    def _alert(self, reading: Reading, value: float) -> Alert:
        who = f"{reading.name} on {reading.node}" + (f", rank {reading.rank}" if reading.world > 1 else "")
        found = self.describe(value, reading)
        held = f" for {self.seconds:g} s" if self.seconds else ""
        if self.raised:
            text = f"penstock: {self.name}: {who}: {found}{held}. {self.advise(reading)}"
        else:
            text = f"penstock: {self.name}: {who}: resolved, {found}{held}"
        return Alert(self.name, "raised" if self.raised else "resolved", escaped(text), value, reading.verdict, reading.advice,
                     reading.name, reading.node, reading.rank, reading.time)

    def describe(self, value: float, reading: Reading) -> str:
        return self.what.format(value=value, percent=100 * value, limit=self.limit)

    def advise(self, reading: Reading) -> str:
        """Sentences for a raised alert: verdict and advice."""
        return f"Verdict: {reading.verdict}: {reading.advice}"

    def __repr__(self) -> str:
        return f"{self.name}({self.limit:g}, seconds={self.seconds:g})"


class Starved(Rule):
    """The loop waited for data for more than `share` of its time, 0 to 1. resolve: share; None: half of it."""

    what = "the loop waits for data {percent:.0f} % of its time"

    def __init__(self, share: float = 0.2, seconds: float = 60, resolve: float | None = None) -> None:
        share = positive("Starved.share", share, 1)
        super().__init__(share, share / 2 if resolve is None else positive("Starved.resolve", resolve, 1), seconds)

    def value(self, reading: Reading) -> float | None:
        return reading.waiting


class Slow(Rule):
    """Samples per second of the loop are below `share` of their own median over the last n_looks readings. resolve: share;
    None: halfway from `share` to 1. Nothing is judged before n_least readings."""

    above = False
    what = "{percent:.0f} % of the median samples/s"

    def __init__(self, share: float = 0.5, seconds: float = 60, resolve: float | None = None, n_looks: int = 720,
                 n_least: int = 12) -> None:
        share = positive("Slow.share", share, 1)
        back = (1 + share) / 2 if resolve is None else positive("Slow.resolve", resolve, 1)
        super().__init__(share, back, seconds)
        for name, n in (("n_looks", n_looks), ("n_least", n_least)):
            if not is_whole(n):
                raise TypeError(f"Slow.{name}: value is {n!r}; must be a whole number")
        n_looks, n_least = operator.index(n_looks), operator.index(n_least)
        if n_looks > MAX_LOOKS:
            raise SettingsError(f"Slow.n_looks: value is {n_looks}; must be at most {MAX_LOOKS:,}")
        if not 1 <= n_least <= n_looks:
            raise SettingsError(f"Slow.n_least: value is {n_least}; must be from 1 to n_looks, {n_looks}")
        self._paces: collections.deque[float] = collections.deque(maxlen=n_looks)
        self._n_least = n_least

    def value(self, reading: Reading) -> float | None:
        pace = reading.pace
        if pace is None:
            return None
        median = statistics.median(self._paces) if len(self._paces) >= self._n_least else None
        self._paces.append(pace)
        return pace / median if median else None


class Replacements(Rule):
    """More than `count` bad samples of one reading were replaced. Resolved when none was for `seconds`."""

    what = "{value:.0f} bad samples were replaced"

    def __init__(self, count: float = 0, seconds: float = 60) -> None:
        if not is_zero(count):
            count = positive("Replacements.count", count)
        super().__init__(count, 0, seconds)

    def value(self, reading: Reading) -> float | None:
        return reading.n_replacements

    def look(self, reading: Reading) -> Alert | None:
        if not self.raised and reading.n_replacements > self.limit:  # at once: the count is what matters
            self._fix(raised=True)
            self._since = None
            return self._alert(reading, reading.n_replacements)
        return super().look(reading) if self.raised else None

    def describe(self, value: float, reading: Reading) -> str:
        if not self.raised:
            return "no bad sample was replaced"
        return f"{value:.0f} of {reading.n_samples:,} samples were bad and were replaced"

    def advise(self, reading: Reading) -> str:
        return (f"bad_sample=FUNCTION names them, and penstock verify finds all of them. Verdict: {reading.verdict}: "
                f"{reading.advice}")


class SlowReads(Rule):
    """The 99th percentile of reads took more than `ms` milliseconds. resolve: ms; None: three quarters. The loader must
    measure reads: Reading.read_p99_ms is None where it does not."""

    what = "99 % of the reads took up to {value:.3g} ms"

    def __init__(self, ms: float, seconds: float = 60, resolve: float | None = None) -> None:
        ms = positive("SlowReads.ms", ms)
        super().__init__(ms, 0.75 * ms if resolve is None else positive("SlowReads.resolve", resolve), seconds)

    def value(self, reading: Reading) -> float | None:
        return reading.read_p99_ms


class GpuIdle(Rule):
    """NVML's utilisation of the GPU is below `share`, 0 to 1. resolve: share; None: 1.5 times as much."""

    above = False
    what = "the GPU is busy {percent:.0f} % of the time"

    def __init__(self, share: float = 0.5, seconds: float = 120, resolve: float | None = None) -> None:
        share = positive("GpuIdle.share", share, 1)
        super().__init__(share, min(1, 1.5 * share) if resolve is None else positive("GpuIdle.resolve", resolve, 1), seconds)

    def value(self, reading: Reading) -> float | None:
        return None if reading.gpu is None else reading.gpu.utilisation

    def advise(self, reading: Reading) -> str:
        if reading.verdict == "consumer":
            return ("Verdict: consumer: batches are ready before the loop asks; what the loop does on the CPU between kernels, "
                    "or in communication, leaves the GPU idle")
        return super().advise(reading)


class Throttled(Rule):
    """The GPU's clocks are slowed for heat or power supply (hw_slowdown, sw_thermal_slowdown, hw_thermal_slowdown,
    hw_power_brake_slowdown); the power cap of a busy GPU does not count."""

    def __init__(self, seconds: float = 30) -> None:
        super().__init__(0.5, 0.5, seconds)

    def value(self, reading: Reading) -> float | None:
        if reading.gpu is None or reading.gpu.throttle is None:
            return None
        return float(bool(reading.gpu.slowed))

    def describe(self, value: float, reading: Reading) -> str:
        gpu = reading.gpu
        if gpu is None or not gpu.slowed:
            return "the GPU's clocks are not slowed"
        at = f" at {gpu.sm_clock:.0f} MHz" if gpu.sm_clock is not None else ""
        heat = f", {gpu.temperature} degrees" if gpu.temperature is not None else ""
        return f"the GPU's clocks are slowed{at}{heat}: {', '.join(gpu.slowed)}"

    def advise(self, reading: Reading) -> str:
        return f"Cooling and power supply of the node need a look. Verdict: {reading.verdict}: {reading.advice}"


class NearMemoryLimit(Rule):
    """The cgroup of this process uses more than `share` of its memory limit, file pages excluded. resolve: share; None:
    0.9 of it."""

    what = "the cgroup uses {percent:.0f} % of its memory limit"

    def __init__(self, share: float = 0.9, seconds: float = 10, resolve: float | None = None) -> None:
        share = positive("NearMemoryLimit.share", share, 1)
        back = 0.9 * share if resolve is None else positive("NearMemoryLimit.resolve", resolve, 1)
        super().__init__(share, back, seconds)

    def value(self, reading: Reading) -> float | None:
        if reading.memory_used is None or not reading.memory_limit:
            return None
        return reading.memory_used / reading.memory_limit

    def advise(self, reading: Reading) -> str:
        own = reading.total.slot_memory + reading.total.io_memory + reading.total.index_memory + reading.total.block_memory
        return (f"The loader has {own / 1e6:,.0f} MB of slots, reads, index and blocks; Memory.max_memory of penstock.Loader bounds "
                f"it. Verdict: {reading.verdict}: {reading.advice}")


class Straggler(Rule):
    """A rank of the job is clearly slower than the others; raised on rank 0 alone, where `ranks=` of the Monitor has a view
    of all ranks. Raised and resolved at lines."""

    what = "{value:g} stragglers"

    def __init__(self, seconds: float = 90) -> None:
        super().__init__(0.5, 0.5, seconds)

    def value(self, reading: Reading) -> float | None:
        return float(len(reading.stragglers))

    def advise(self, reading: Reading) -> str:
        return ". ".join(reading.stragglers)

    def describe(self, value: float, reading: Reading) -> str:
        return "no straggler" if not value else f"{value:g} straggler{'s' if value > 1 else ''}"

    def __repr__(self) -> str:
        return f"Straggler(seconds={self.seconds:g})"


class NoBatch(Rule):
    """The loop has got no batch for `seconds`, counted from the start of the Monitor. Resolved by the next batch. What takes
    longer in a run that is well, such as an evaluation, needs a larger limit."""

    def __init__(self, seconds: float = 600) -> None:
        super().__init__(positive("NoBatch.seconds", seconds), 0, 0)
        self._without = 0.0  # seconds

    def value(self, reading: Reading) -> float | None:
        self._without = 0.0 if reading.n_batches else self._without + reading.seconds
        return self._without

    def describe(self, value: float, reading: Reading) -> str:
        return f"no batch for {value:.0f} s" if value else "there are batches again"

    def advise(self, reading: Reading) -> str:
        if reading.waiting is not None and reading.waiting > 0.5:
            return f"The loop asked for a batch and waits for it. {super().advise(reading)}"
        return ("The loop did not ask for a batch: a step, a collective, an evaluation or a checkpoint takes that long (py-spy "
                f"dump --pid {os.getpid()} prints where)")

    def __repr__(self) -> str:
        return f"NoBatch(seconds={self.limit:g})"


class SilentRank(Rule):
    """A rank that left lines leaves none for three lines and 10 s, without that its Monitor ended: it was killed or stopped,
    or its node is gone. Raised on rank 0, where `ranks=` of the Monitor has a view of all; for rank 0 on rank 1, also where
    the store of torch.distributed ended with rank 0; and where the first node is gone, on the first rank of the second."""

    def __init__(self) -> None:
        super().__init__(0.5, 0.5, 0)

    def value(self, reading: Reading) -> float | None:
        return float(len(reading.silent))

    def describe(self, value: float, reading: Reading) -> str:
        return ". ".join(reading.silent) or "no rank is silent"

    def advise(self, reading: Reading) -> str:
        return "The process was killed or stopped, or its node is gone: look at its log, and at the kernel's for the OOM killer"

    def __repr__(self) -> str:
        return "SilentRank()"


def defaults() -> list[Rule]:
    """Return a new rule of each kind, with its default limits, except SlowReads, which has none."""
    return [Starved(), Slow(), Replacements(), GpuIdle(), Throttled(), NearMemoryLimit(), Straggler(), NoBatch(), SilentRank()]


def rules_of(alerts: Any) -> list[Rule]:
    """The setting alerts=, checked: True, False or None, or rules."""
    if alerts is None or alerts is False:
        return []
    if alerts is True:
        return defaults()
    if isinstance(alerts, Rule):
        alerts = [alerts]
    must = "True, None, or a list of rules such as penstock.monitor.Starved(0.2, seconds=60)"
    rules = items("alerts", alerts, must)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise TypeError(f"alerts: value is {rule!r}; must be {must}")
    return rules


def send(alert: Alert, to: Iterable[Callable[[Alert], Any]]) -> None:
    """Log the alert and give it to each receiver; what one raises is logged."""
    log.log(logging.WARNING if alert.state == "raised" else logging.INFO, "%s", alert.text)
    for receiver in to:
        try:
            receiver(alert)
        except Exception as error:
            log.warning("%s", escaped(f"penstock: {receiver!r} failed for the alert: {alert.text}: {type(error).__name__}: {error}"),
                        exc_info=log.isEnabledFor(logging.DEBUG))
