# SPDX-License-Identifier: Apache-2.0
"""Compare the loaders of processes that share a data set, by way of PyTorch's process group.

Processes whose seeds, data sets or batches differ would train on some samples twice and never on others, in silence. So
where torch.distributed is initialised, each process reports the settings that fix its order of samples. All processes
raise the same error if two reports differ, or if one process could not open its loader, so that no process waits for
another forever. A loader that was opened before the group was initialised is compared at its first batch.
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

if TYPE_CHECKING:  # imported only to compare: most programs are one process
    from .exchange import Exchange

__all__ = ["Agreement", "can_compare", "changing"]

SECONDS = 300.0  # longest wait of a process for the others
_AGAIN = 10.0  # seconds between two looks after that wait
_OPEN = "open"  # subject of the exchanges about loaders
_waiting: weakref.WeakSet[Agreement] = weakref.WeakSet()
_warned = False  # whether this process has warned that nothing compares its loaders


def _differing(everyone: Sequence[Mapping[str, Any]]) -> str | None:
    """Describe the first name whose values differ between two processes; None: there is none. Values whose names begin
    with _ are not compared: the message quotes them."""
    for name in dict.fromkeys(name for said in everyone for name in said if not name.startswith("_")):
        for rank, other in enumerate(everyone):
            if other.get(name) != everyone[0].get(name):
                return (f"{name}: value is {_told(other, name)} on process {rank}, and {_told(everyone[0], name)} on process "
                        f"0; must be the same on all processes{_ADVICE.get(name, '')}")
    return None


_ADVICE = {"data_set": " (if they read copies of one data set, copy it again to those where it differs)"}


def _told(said: Mapping[str, Any], name: str) -> str:
    value, more = said.get(name), said.get("_" + name)
    text = repr(tuple(value) if isinstance(value, list) else value)  # as tuples, because the values came through JSON
    return f"{text} ({more})" if more else text


def _failure(everyone: Sequence[Mapping[str, Any]], doing: str) -> str | None:
    failed = [(process, said["failed"]) for process, said in enumerate(everyone) if said["failed"] is not None]
    return f"process {failed[0][0]} could not {doing}: {failed[0][1]}" if failed else None


def _listed(processes: Sequence[int]) -> str:
    named = [f"process {process}" for process in processes[:4]] + (["others"] if len(processes) > 4 else [])
    return " and on ".join(named) if named else "no process"


def _named(processes: Sequence[int]) -> str:
    """Name processes, as the subject of a sentence."""
    first = ", ".join(map(str, processes[:8])) + (f" and {len(processes) - 8} more" if len(processes) > 8 else "")
    return f"process{'' if len(processes) == 1 else 'es'} {first}"


def _repeated(ranks: Sequence[int], world: int) -> str | None:
    """Describe the first rank that too many processes have; None: there is none. Each rank must have one process, or,
    where a model is split, equally many."""
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
    """Call penstock.exchange.reachable, which is imported only here."""
    from .exchange import reachable
    return reachable()


def _exchange(torch: Any, subject: str) -> Exchange:
    from .exchange import Exchange
    return Exchange(torch, subject)


def _fail(exchange: Exchange, report: Mapping[str, Any], judge: Callable[[Sequence[Any]], Any]) -> None:
    """Report that this process failed. Its error may end the process: process 0 waits here until the others have read
    the verdict, because the store may end with it."""
    exchange.report(report, judge)
    if exchange.process:
        exchange.leave()
    elif exchange.wait(SECONDS):
        exchange.verdict()


def _judged(exchange: Exchange, doing: str, otherwise: str) -> Any:
    """Return the verdict on this process's report. If some processes do not report in time, this process decides, and
    its verdict holds for all."""
    if not exchange.wait(SECONDS):
        missing = exchange.missing()
        problem = f"rank: {_named(missing)} did not {doing} within {SECONDS:g} s, as the others of {exchange.n} did; must do so " \
                  f"({otherwise})"
        if not missing:  # all have reported, and the last one is comparing
            if exchange.wait(_AGAIN):
                return exchange.verdict()
            problem = f"rank: all {exchange.n} processes did {doing}, and the last one ended before it compared what they " \
                      "reported; must go on (see its log)"
        exchange.decide({"problem": problem, "late": True, "alike": []})
    return exchange.verdict()


def _comparing(ranks: Ranks) -> Any:
    """Return torch.distributed if a loader with these ranks uses all processes of its group, else None."""
    torch = _reachable()
    return None if torch is None or torch.get_world_size() % ranks.world else torch


class Agreement:
    """The comparison of one loader with those of the other processes.

    order: the settings that fix the order of samples, by their names; the caller fills it in.
    wanted: False: compare nothing. A loader for this process alone is not compared either: its `ranks.world` is 1, and
        no replicas were counted.
    """

    def __init__(self, ranks: Ranks, wanted: bool) -> None:
        self.order: dict[str, Any] = {"world": ranks.world}
        self._ranks = ranks
        self._is_over = not wanted or max(ranks.world, ranks.n_replicas) < 2
        self._lock = threading.RLock()  # held during the comparison at a batch
        self._exchange: Exchange | None = None
        self._has_reported = False  # whether this process has reported to _exchange
        self._again = 0.0  # time before which is_over does not look again

    @contextlib.contextmanager
    def opening(self) -> Generator[None, None, None]:
        """Return a context manager for the work that may fail before a loader starts. At its end it compares, and
        raises SettingsError on all processes if they differ, and TimedOutError if one of them opens none in time. It
        compares nothing yet if there is no process group, or if `ranks.world` does not divide the group's number of
        processes."""
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
        """Take note that the loader is open. It is compared at its first batch, unless it has been compared already."""
        if not self._is_over:
            _waiting.add(self)

    def end(self) -> None:
        """Compare nothing from now on."""
        self._is_over = True
        _waiting.discard(self)

    def is_over(self, check: Callable[[], object]) -> bool:
        """Compare now, if that is possible, and return whether the comparison is done. Call it before each batch until
        it returns True, and from a function that Pass.__next__ calls, so that warnings point at the loop. check: called
        while this waits; an exception of it ends the wait. Raises SettingsError if processes differ."""
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
        """Return this process's report: the loader's order, and the digests of this loader and of all other open
        loaders that are not compared yet."""
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
        if torch is None:  # there is no group yet, or no longer
            self._exchange, self._has_reported = None, False
            return self._warn()
        is_first = not self._has_reported
        if self._exchange is None:
            self._exchange = _exchange(torch, _OPEN)
        if is_first:  # also after a failure: the others wait in this exchange
            self._exchange.report(self._report(), _opened_alike)
            self._has_reported = True
        if self._exchange.wait(SECONDS if is_first else 0, check):
            self._accept(self._exchange.verdict())
        else:
            self._again = time.monotonic() + _AGAIN
            if is_first:
                self._warn_of(self._exchange)

    def _warn_of(self, exchange: Exchange) -> None:
        """Warn of processes that did not report in time. Only the first of the processes that waited warns."""
        missing = exchange.missing()
        if not missing:  # all have reported: the last one is about to write the verdict
            return
        if exchange.process == next(process for process in range(exchange.n) if process not in missing):
            warnings.warn(f"penstock: {_named(missing)} of {exchange.n} took no batch within {SECONDS:g} s after the others, so "
                          "nothing has compared their loaders yet (give penstock.Ranks compare=False for a loader that only "
                          "some processes use)", stacklevel=6)

    def _warn(self) -> None:
        """Warn that nothing can compare the loaders: once in this process, and only if its rank is 0."""
        global _warned
        if _warned or self._ranks.rank:
            return
        _warned = True
        warnings.warn(
            f"penstock: world is {self._ranks.world}, and nothing has compared the loaders of these processes: another seed or "
            "data set on one of them repeats samples, and loses others (initialise torch.distributed before the first batch; "
            "or compare loader.state_dict() of all processes yourself, and give penstock.Ranks compare=False)", stacklevel=6)


def _opened_alike(everyone: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Judge the reports on a loader of each process: return the problem, if any, and the digests that every process
    has.

    Processes with two loaders, one for training and one for validation, may take a first batch from different ones.
    """
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
    """Return whether a process group has all the processes that a loader is for."""
    return _comparing(ranks) is not None


@contextlib.contextmanager
def changing(ranks: Ranks, doing: str) -> Generator[dict[str, Any], None, None]:
    """Return a context manager for the work that may fail before open loaders change, on all processes; can_compare was
    true. Its body fills the dict that it gets with the values that must be the same everywhere. At the end all
    processes raise SettingsError if the values differ, or if one process failed."""
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
