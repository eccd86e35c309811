# SPDX-License-Identifier: Apache-2.0
"""Whether the processes that share a data set open their loaders alike, asked of PyTorch's process group.

Processes whose seeds, data sets or batches differ would train on samples twice and on others never, in silence. So
where torch.distributed is initialised, each reports what fixes its order, and all raise the same error if two differ,
or if one of them could not open its loader: none is left alone in a loop. A loader that was opened before there was a
group is compared at its first batch.
"""
from __future__ import annotations

import contextlib
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import SettingsError, TimedOutError
from .ranks import Ranks

if TYPE_CHECKING:  # imported where processes are compared: most programs are one
    from .exchange import Exchange

__all__ = ["Agreement", "can_compare", "changing"]

SECONDS = 300.0  # that processes wait for each other
_AGAIN = 10.0  # seconds from one look to the next, after that
_OPEN = "open"  # the subject of exchanges about loaders
_waiting: weakref.WeakSet[Agreement] = weakref.WeakSet()
_warned = False  # that nothing compared the loaders of this process


def _differing(everyone: Sequence[Mapping[str, Any]]) -> str | None:
    """The first thing that two processes say differently. What a name with _ before it says of another is not compared:
    it is for the message."""
    for name in dict.fromkeys(name for said in everyone for name in said if not name.startswith("_")):
        for rank, other in enumerate(everyone):
            if other.get(name) != everyone[0].get(name):
                return (f"{name}: value is {_told(other, name)} on process {rank}, and {_told(everyone[0], name)} on process "
                        f"0; must be the same on all processes{_ADVICE.get(name, '')}")
    return None


_ADVICE = {"data_set": " (if they read copies of one data set, copy it again to those where it differs)"}


def _told(said: Mapping[str, Any], name: str) -> str:
    value, more = said.get(name), said.get("_" + name)
    text = repr(tuple(value) if isinstance(value, list) else value)  # JSON has no tuples
    return f"{text} ({more})" if more else text


def _failure(everyone: Sequence[Mapping[str, Any]], doing: str) -> str | None:
    failed = [(process, said["failed"]) for process, said in enumerate(everyone) if said["failed"] is not None]
    return f"process {failed[0][0]} could not {doing}: {failed[0][1]}" if failed else None


def _listed(processes: Sequence[int]) -> str:
    named = [f"process {process}" for process in processes[:4]] + (["others"] if len(processes) > 4 else [])
    return " and on ".join(named) if named else "no process"


def _named(processes: Sequence[int]) -> str:
    """Processes as the subject of a sentence."""
    first = ", ".join(map(str, processes[:8])) + (f" and {len(processes) - 8} more" if len(processes) > 8 else "")
    return f"process{'' if len(processes) == 1 else 'es'} {first}"


def _repeated(ranks: Sequence[int], world: int) -> str | None:
    """The first rank that more processes have than should: one each, or, where a model is split, equally many."""
    each = len(ranks) // world
    for rank in ranks:
        processes = [process for process, other in enumerate(ranks) if other == rank]
        if rank >= world:
            return f"rank: value is {rank} on {_listed(processes)}; must be below world, {world}"
        if len(processes) > each:
            wanted = "another one on each (give ranks='auto')" if each == 1 else \
                f"so on {each} of {len(ranks)} processes, for world={world} (give ranks=penstock.ranks.from_mesh(mesh, 'dp'))"
            return f"rank: value is {rank} on {_listed(processes)}; must be {wanted}"
    return None


def _refuse(verdict: Mapping[str, Any]) -> None:
    if verdict["problem"] is not None:
        raise (TimedOutError if verdict.get("late") else SettingsError)(verdict["problem"])


def _reachable() -> Any:
    """What penstock.exchange.reachable returns."""
    from .exchange import reachable
    return reachable()


def _exchange(torch: Any, subject: str) -> Exchange:
    from .exchange import Exchange
    return Exchange(torch, subject)


def _fail(exchange: Exchange, report: Mapping[str, Any], judge: Callable[[Sequence[Any]], Any]) -> None:
    """Report that this process failed. What it raises then may end it: process 0 stays until the others have the word."""
    exchange.report(report, judge)
    if exchange.process:
        exchange.leave()
    elif exchange.wait(SECONDS):
        exchange.verdict()


def _judged(exchange: Exchange, doing: str, otherwise: str) -> Any:
    """The verdict on what this process has reported. If some processes do not come in time, that is the verdict for all."""
    if not exchange.wait(SECONDS):
        missing = exchange.missing()
        problem = f"rank: {_named(missing)} did not {doing} within {SECONDS:g} s, as the others of {exchange.n} did; must do so " \
                  f"({otherwise})"
        if not missing:  # the last one compares what all reported
            if exchange.wait(_AGAIN):
                return exchange.verdict()
            problem = f"rank: all {exchange.n} processes did {doing}, and the last one ended before it compared what they " \
                      "reported; must go on (see its log)"
        exchange.decide({"problem": problem, "late": True, "alike": []})
    return exchange.verdict()


def _comparing(ranks: Ranks) -> Any:
    """torch.distributed where a loader with these ranks is for all processes of its group, else None."""
    torch = _reachable()
    return None if torch is None or torch.get_world_size() % ranks.world else torch


class Agreement:
    """What a loader has in common with those of the other processes, and whether that has been compared.

    order: what fixes the order of samples; whoever opens the loader fills it in. wanted: False compares nothing, and so
    does a loader that is for this process alone: where `ranks.world` is 1 although nobody counted replicas.
    """

    def __init__(self, ranks: Ranks, wanted: bool) -> None:
        self.order: dict[str, Any] = {"world": ranks.world}
        self._ranks = ranks
        self._is_over = not wanted or max(ranks.world, ranks.n_replicas) < 2
        self._lock = threading.RLock()  # of the comparison at a batch
        self._exchange: Exchange | None = None
        self._has_reported = False  # in it
        self._again = 0.0  # time of the next look, if processes did not come in time

    @contextlib.contextmanager
    def opening(self) -> Generator[None, None, None]:
        """Around what may fail before a loader starts. Raises SettingsError on all processes if they differ. Compares
        nothing yet where there is no process group, or one whose number of processes `ranks.world` does not divide."""
        torch = None if self._is_over else _comparing(self._ranks)
        try:
            yield
        except Exception as error:
            if torch is not None:
                _fail(_exchange(torch, _OPEN), self._report(f"{type(error).__name__}: {error}"), _opened_alike)
            raise
        if torch is not None:
            exchange = _exchange(torch, _OPEN)
            exchange.report(self._report(), _opened_alike)
            self._accept(_judged(exchange, "open a loader", "open one in each, or give each penstock.Ranks compare=False"))

    def begin(self) -> None:
        """The loader is open: it is compared at its first batch, unless it has been."""
        if not self._is_over:
            _waiting.add(self)

    def end(self) -> None:
        """There is no more to compare."""
        self._is_over = True
        _waiting.discard(self)

    def is_over(self, check: Callable[[], object]) -> bool:
        """Compare if it can be done now. Return whether that was the last time: call it before each batch until then, from
        what Pass.__next__ calls, because warnings point at the loop. check: ends the wait by what it raises. Raises
        SettingsError if processes differ."""
        with self._lock:
            if not self._is_over and time.monotonic() >= self._again:
                self._compare(check)
            return self._is_over

    @property
    def digest(self) -> str:
        compared = {name: value for name, value in self.order.items() if not name.startswith("_")}
        import hashlib
        import json
        return hashlib.sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()[:32]

    def _report(self, failed: str | None = None) -> dict[str, Any]:
        """What this process reports of the loader, and of those that it has open and that wait to be compared."""
        return {"failed": failed, "rank": self._ranks.rank, "order": self.order,
                "digests": [self.digest, *(one.digest for one in list(_waiting))]}

    def _accept(self, verdict: Mapping[str, Any]) -> None:
        _refuse(verdict)
        self.end()
        for one in list(_waiting):
            if one.digest in verdict["alike"]:
                one.end()

    def _compare(self, check: Callable[[], object]) -> None:
        torch = _comparing(self._ranks)
        if torch is None:  # no group yet, or none any more
            self._exchange, self._has_reported = None, False
            return self._warn()
        is_first = not self._has_reported
        if self._exchange is None:
            self._exchange = _exchange(torch, _OPEN)
        if is_first:  # again where it failed: the others wait in this exchange
            self._exchange.report(self._report(), _opened_alike)
            self._has_reported = True
        if self._exchange.wait(SECONDS if is_first else 0, check):
            self._accept(self._exchange.verdict())
        else:
            self._again = time.monotonic() + _AGAIN
            if is_first:
                self._warn_of(self._exchange)

    def _warn_of(self, exchange: Exchange) -> None:
        """Warn of processes that did not come in time. The first of those that waited does."""
        missing = exchange.missing()
        if not missing:  # the last one is about to find the verdict
            return
        if exchange.process == next(process for process in range(exchange.n) if process not in missing):
            warnings.warn(f"penstock: {_named(missing)} of {exchange.n} took no batch within {SECONDS:g} s after the others, so "
                          "nothing has compared their loaders yet (give penstock.Ranks compare=False for a loader that only "
                          "some processes use)", stacklevel=6)

    def _warn(self) -> None:
        """Warn that there is nothing to compare by. The first of the ranks does, once."""
        global _warned
        if _warned or self._ranks.rank:
            return
        _warned = True
        warnings.warn(
            f"penstock: world is {self._ranks.world}, and nothing has compared the loaders of these processes: another seed or "
            "data set on one of them repeats samples, and loses others (initialise torch.distributed before the first batch; "
            "or compare loader.state_dict() of all processes yourself, and give penstock.Ranks compare=False)", stacklevel=6)


def _opened_alike(everyone: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The verdict on a loader of each process: what is wrong, and the digests that every process has.

    Processes that have two loaders, as for training and validation, may use different ones first."""
    failure = _failure(everyone, "open its loader")
    if failure is not None:
        return {"problem": failure, "alike": []}
    orders = [said["order"] for said in everyone]
    alike = set.intersection(*(set(said["digests"]) for said in everyone))
    problem = _differing([{"world": order["world"]} for order in orders]) \
        or _repeated([said["rank"] for said in everyone], orders[0]["world"])
    if problem is None and not all(said["digests"][0] in alike for said in everyone):
        problem = _differing(orders)
    return {"problem": problem, "alike": sorted(alike)}


def can_compare(ranks: Ranks) -> bool:
    """Whether there is a process group that has all processes that a loader is for."""
    return _comparing(ranks) is not None


@contextlib.contextmanager
def changing(ranks: Ranks, doing: str) -> Generator[dict[str, Any], None, None]:
    """Around what may fail before open loaders change, on all processes; can_compare was true. The dict that it gives is
    filled meanwhile: what must be the same on all. Raises SettingsError on all processes if it is not, or if one failed.
    """
    torch, said = _reachable(), dict[str, Any]()
    exchange = _exchange(torch, doing)

    def judge(everyone: Sequence[Any]) -> dict[str, Any]:
        return {"problem": _failure(everyone, doing) or _differing([other["said"] for other in everyone])}

    try:
        yield said
    except Exception as error:
        _fail(exchange, {"failed": f"{type(error).__name__}: {error}", "said": {}}, judge)
        raise
    exchange.report({"failed": None, "said": said}, judge)
    _refuse(_judged(exchange, doing, "call it in each before the same batch, or give unchecked=True"))
