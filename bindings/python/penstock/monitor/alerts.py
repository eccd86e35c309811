# SPDX-License-Identifier: Apache-2.0
"""An alert reports that a rule about the readings of a Monitor is raised, and later that it is resolved.

A rule gets each Reading of a Monitor (every `look` seconds). It is raised when its condition has held for `seconds`. It
is resolved when the value has been past the limit `resolve`, which is further away, for the same time. A reading whose
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

MAX_LOOKS = 100_000  # most readings of Slow, which computes their median at each look: some 6 days

log = logging.getLogger("penstock.monitor")


@dataclasses.dataclass(frozen=True)
class Alert:
    """The change of one rule.

    rule: name of the rule's class.
    state: "raised" or "resolved".
    text: a sentence; if raised, with the verdict and the advice.
    value: the value that was compared with the limit.
    verdict, advice: those of the reading.
    name, node, rank: those of the reading: the data set, the machine, the process.
    time: seconds since 1970.
    """

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
    """The base of rules: the state of a rule, and its hysteresis. The attribute `above` says whether a value above the
    limit is the bad one."""

    above = True
    what = "{value:g}"  # format of the value in the text
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
        self._since: float | None = None  # time since which the condition has held, or its end

    def value(self, reading: Reading) -> float | None:
        """Return the value to compare with the limit; None: it is not known."""
        raise NotImplementedError

    def holds(self, value: float) -> bool:
        """Return whether the value is past the limit that changes the state: `limit`, or for a raised rule `resolve`."""
        if self.raised:
            return value <= self.resolve if self.above else value >= self.resolve
        return value > self.limit if self.above else value < self.limit

    def look(self, reading: Reading) -> Alert | None:
        """Take a reading, and return the Alert if the state changes, else None. Thread: one."""
        value = self.value(reading)
        if value is None:
            return None
        if not self.holds(value):
            self._since = None
            return None
        if self._since is None:
            # The condition has held during the whole reading.
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
        """Return sentences for a raised alert: verdict and advice."""
        return f"Verdict: {reading.verdict}: {reading.advice}"

    def __repr__(self) -> str:
        return f"{self.name}({self.limit:g}, seconds={self.seconds:g})"


class Starved(Rule):
    """The loop waits for data for more than `share` of its time, 0 to 1. resolve: the share to resolve at; None: half
    of `share`."""

    what = "the loop waits for data {percent:.0f} % of its time"

    def __init__(self, share: float = 0.2, seconds: float = 60, resolve: float | None = None) -> None:
        share = positive("Starved.share", share, 1)
        super().__init__(share, share / 2 if resolve is None else positive("Starved.resolve", resolve, 1), seconds)

    def value(self, reading: Reading) -> float | None:
        return reading.waiting


class Slow(Rule):
    """Samples per second of the loop fall below `share` of their own median over the last n_looks readings.

    share: 0 to 1.
    resolve: the share to resolve at; None: halfway from `share` to 1.
    n_looks: number of readings for the median, at most 100 000.
    n_least: number of readings before the rule judges.
    """

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
    """More than `count` bad samples of one reading were replaced. The rule is raised at once, and resolved when no
    sample was replaced for `seconds`."""

    what = "{value:.0f} bad samples were replaced"

    def __init__(self, count: float = 0, seconds: float = 60) -> None:
        if not is_zero(count):
            count = positive("Replacements.count", count)
        super().__init__(count, 0, seconds)

    def value(self, reading: Reading) -> float | None:
        return reading.n_replacements

    def look(self, reading: Reading) -> Alert | None:
        if not self.raised and reading.n_replacements > self.limit:  # at once, whatever `seconds` is
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
    """The 99th percentile of reads in the last minute is above `ms` milliseconds. resolve: the milliseconds to resolve
    at; None: three quarters of `ms`. In a minute without reads nothing changes."""

    what = "99 % of the reads took up to {value:.3g} ms"

    def __init__(self, ms: float, seconds: float = 60, resolve: float | None = None) -> None:
        ms = positive("SlowReads.ms", ms)
        super().__init__(ms, 0.75 * ms if resolve is None else positive("SlowReads.resolve", resolve), seconds)

    def value(self, reading: Reading) -> float | None:
        return reading.read_p99_ms


class GpuIdle(Rule):
    """NVML's utilisation of the GPU is below `share`, 0 to 1. resolve: the share to resolve at; None: 1.5 times
    `share`, at most 1."""

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
    """The GPU's clocks are slowed for heat or power supply: hw_slowdown, sw_thermal_slowdown, hw_thermal_slowdown or
    hw_power_brake_slowdown. The power cap of a busy GPU does not count."""

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
    """The cgroup of this process uses more than `share` of its memory limit, without file pages. resolve: the share to
    resolve at; None: 0.9 of `share`."""

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
    """A rank of the job is clearly slower than the others. Only rank 0 raises it, if `ranks=` of its Monitor has a view
    of all ranks. It changes only at lines."""

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
    """The loop has got no batch for `seconds`, counted from the start of the Monitor. The next batch resolves it. The
    limit must be larger than the longest pause of a healthy run, such as an evaluation."""

    def __init__(self, seconds: float = 600) -> None:
        super().__init__(positive("NoBatch.seconds", seconds), 0, 0)
        self._without = 0.0  # seconds without a batch

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
    """A rank that wrote lines has written none for three lines and 10 s, although its Monitor did not end: it was
    killed or stopped, or its node is gone.

    Rank 0 raises it, if `ranks=` of its Monitor has a view of all ranks. For rank 0 itself rank 1 raises it, also if
    the store of torch.distributed ended with rank 0. If the first node is gone, the first rank of the second node
    raises it.
    """

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
    """Return a new rule of each kind with its default limits, except SlowReads, which has no default."""
    return [Starved(), Slow(), Replacements(), GpuIdle(), Throttled(), NearMemoryLimit(), Straggler(), NoBatch(), SilentRank()]


def rules_of(alerts: Any) -> list[Rule]:
    """Check the setting alerts= and return its rules. Raises TypeError."""
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
    """Log an alert, and give it to each receiver. An exception of a receiver is logged."""
    log.log(logging.WARNING if alert.state == "raised" else logging.INFO, "%s", alert.text)
    for receiver in to:
        try:
            receiver(alert)
        except Exception as error:
            log.warning("%s", escaped(f"penstock: {receiver!r} failed for the alert: {alert.text}: {type(error).__name__}: {error}"),
                        exc_info=log.isEnabledFor(logging.DEBUG))
