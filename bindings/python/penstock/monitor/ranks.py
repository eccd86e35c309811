# SPDX-License-Identifier: Apache-2.0
"""All ranks of a job in one view: each Monitor leaves its newest line where the others find it, and compares.

The place is the key-value store of torch.distributed, or a folder that all ranks share. No collective is called, so that
neither a rank that is late nor one that is gone can hold up training, and nothing comes between the trainer's own
collectives.
"""
from __future__ import annotations

import concurrent.futures
import contextlib
import datetime
import functools
import json
import os
import queue
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from .. import paths
from ..errors import SettingsError, TimedOutError
from ..escapes import escaped
from ..launchers import distributed
from .reading import Reading

__all__ = ["Exchange", "RankView", "Run", "Silence", "begins_second_node", "compared", "exchange_of", "looks_of",
           "n_watched"]

WAITS = 0.1  # a straggler waits for data for at least this share of its time, and
TIMES = 2.0  # for at least so many times the median of the ranks; or, where that is most of the time, halfway from it to all
SLOWER = 0.7  # or has at most this share of the median's pace
STAGE_TIMES = 1.5  # a stage is named where its median is so many times that of the ranks
STALE = 3  # lines that a rank did not leave
GRACE = 10.0  # seconds more
TIMEOUT = 3.0  # seconds of an operation of the store
WATCHED = 7 * 86400.0  # seconds that a watch of rank 0 lasts; poll(2) counts milliseconds up to 2^31
STAGES = ("read", "decode", "copy")
T = TypeVar("T")


class Exchange(Protocol):
    """Where ranks leave their looks for the others: texts by rank. outlives: it may have what a run left that was killed."""

    outlives: bool

    def put(self, rank: int, text: str) -> None:
        """Replace the text of a rank."""

    def all(self, ranks: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Give those of the ranks that have a text, and these texts. Never waits for one that is missing."""

    def kept(self) -> str:
        """Return what the exchange ends with: "process": this process; "node": this node; "": neither."""

    def end(self, began: float) -> None:
        """Report to those who watch rank 0 that its Monitor of this time ended; returns once they can read it."""

    def watch(self, began: float) -> None:
        """Wait, in a thread of its own, for the end of rank 0's Monitor of this time; nothing if called again."""

    def has_ended(self, began: float) -> bool:
        """Return whether that Monitor ended. Called once the exchange does not answer, with which a watch ends."""

    def close(self) -> None:
        """Hold nothing any more; the next call takes it anew."""


class Run(NamedTuple):
    """A Monitor: when it began, and what the exchange ends with, as Exchange.kept has it."""

    began: float
    kept: str


def _listens(port: int) -> bool:
    """Whether this process listens on a TCP port."""
    own = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing is closed
            own.add(os.readlink(f"/proc/self/fd/{fd}"))
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/self/net/{name}", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                of = line.split()
                if of[3] == "0A" and int(of[1].rpartition(":")[2], 16) == port and f"socket:[{of[9]}]" in own:
                    return True
    return False


def _is_here(host: str) -> bool:
    """Whether a host is this node: only an address of this node can be bound to."""
    for family, _, _, _, address in socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as one:
            one.bind((address[0], 0))
            return True
    return False


class _StoreExchange:
    """In a store of torch.distributed, with a connection and a time-out of its own where the store can be cloned. A store of
    TCP or of one process is in memory, and a launcher that keeps it gives each start of its workers a prefix."""

    def __init__(self, store: Any, prefix: str) -> None:
        if hasattr(store, "clone"):
            with contextlib.suppress(Exception):  # a store that only other kinds of stores can clone
                store = store.clone()
                store.set_timeout(datetime.timedelta(seconds=TIMEOUT))
        self._store, self._prefix = store, prefix
        self.outlives = type(self._innermost()).__name__ not in ("TCPStore", "HashStore")

    def _innermost(self) -> Any:
        store = self._store
        while hasattr(store, "underlying_store"):
            store = store.underlying_store
        return store

    def _key(self, rank: int) -> str:
        return f"{self._prefix}/{rank}"

    def put(self, rank: int, text: str) -> None:
        self._store.set(self._key(rank), text)

    def all(self, ranks: Sequence[int]) -> Iterator[tuple[int, str]]:
        for rank in ranks:
            if self._store.check([self._key(rank)]):
                yield rank, self._store.get(self._key(rank)).decode()

    def kept(self) -> str:
        store = self._innermost()
        if type(store).__name__ != "TCPStore" or not _is_here(store.host):
            return ""
        return "process" if _listens(store.port) else "node"  # else the launcher's

    def _watchers_key(self, began: float) -> str:
        return f"{self._prefix}/0/watchers/{began!r}"

    def end_key(self, began: float, watcher: int) -> str:
        return f"{self._prefix}/0/ended/{began!r}/{watcher}"

    def end(self, began: float) -> None:
        self.wake(self.end_key(began, 0))  # before the number is read, as watcher() does it the other way round
        for watcher in range(1, int(self._store.add(self._watchers_key(began), 0)) + 1):
            self.wake(self.end_key(began, watcher))

    def wake(self, key: str) -> None:
        """Let a watch return."""
        self._store.set(key, "ended")
        self._store.check([key])  # set() waits for no answer; the server handles one after the other

    def watcher(self, began: float) -> str | None:
        """The key of one more who watches, which its own process can set, too; None: the end is there already."""
        key = self.end_key(began, int(self._store.add(self._watchers_key(began), 1)))
        return None if self._store.check([self.end_key(began, 0)]) else key

    def wait_for_end(self, key: str) -> None:
        """Return once the key is set. A connection of its own: others wait while one is asked. Raises what the store raises."""
        self._store.clone().wait([key], datetime.timedelta(seconds=WATCHED))

    def close(self) -> None:
        pass


class _PatientExchange:
    """An exchange that is asked in a thread of its own: the store of a stopped process, or of a node that is gone, never answers,
    whatever its time-out. Raises TimedOutError then. Any thread."""

    def __init__(self, exchange: _StoreExchange) -> None:
        self._exchange, self.outlives = exchange, exchange.outlives
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], concurrent.futures.Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._late: concurrent.futures.Future[Any] | None = None  # the question that nobody waits for any more
        self._lock = threading.Lock()  # held while a question is put, and while the thread begins or ends
        self._watches: dict[float, tuple[threading.Thread, str]] = {}
        self._ended: set[float] = set()

    def put(self, rank: int, text: str) -> None:
        self._ask(lambda: self._exchange.put(rank, text), TIMEOUT)

    def all(self, ranks: Sequence[int]) -> Iterator[tuple[int, str]]:
        return iter(self._ask(lambda: list(self._exchange.all(ranks)), TIMEOUT + len(ranks) / 100))

    def kept(self) -> str:
        return self._ask(self._exchange.kept, TIMEOUT)

    def end(self, began: float) -> None:
        self._ask(lambda: self._exchange.end(began), TIMEOUT)

    def watch(self, began: float) -> None:
        if began in self._watches or began in self._ended:
            return
        key = self._ask(lambda: self._exchange.watcher(began), TIMEOUT)
        if key is None:
            self._ended.add(began)
            return
        thread = threading.Thread(target=self._watch, args=(began, key), name="penstock-rank-0", daemon=True)
        thread.start()
        self._watches[began] = thread, key

    def _watch(self, began: float, key: str) -> None:
        with contextlib.suppress(Exception):  # the store ended without the word
            self._exchange.wait_for_end(key)
            self._ended.add(began)

    def has_ended(self, began: float) -> bool:
        if began in self._watches:
            self._watches[began][0].join(TIMEOUT)
        return began in self._ended

    def close(self) -> None:
        # A thread that comes back from C++ while the interpreter ends aborts the process (before CPython 3.14).
        for thread, key in self._watches.values():
            if thread.is_alive():
                with contextlib.suppress(Exception):  # the store is gone, and then so is the wait; or it hangs
                    self._ask(functools.partial(self._exchange.wake, key), TIMEOUT)
                    thread.join(TIMEOUT)
        self._watches.clear()
        with self._lock:
            if self._thread is not None:
                self._asked.put(None)
            self._thread = None

    def _ask(self, question: Callable[[], T], seconds: float) -> T:
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()
        with self._lock:
            hangs = self._late is not None and not self._late.done()
            if not hangs:
                if self._thread is None:
                    thread = threading.Thread(target=self._answer, name="penstock-ranks", daemon=True)
                    thread.start()
                    self._thread = thread
                self._asked.put((question, answer))
        if hangs or not concurrent.futures.wait([answer], seconds).done:
            self._late = self._late if hangs else answer
            raise TimedOutError(f"ranks: the store gave no answer within {seconds:g} s; must answer (see whether process 0, which "
                                "may keep it, was stopped, or its node is gone)")
        return answer.result()

    def _answer(self) -> None:
        while (asked := self._asked.get()) is not None:
            question, answer = asked
            try:
                answer.set_result(question())
            except Exception as error:
                answer.set_exception(error)
            del asked, question, answer


class _FolderExchange:
    """In files of a folder: NAME-rankR.json, each replaced in one step. They stay, with the word of an end in them."""

    outlives = True

    def __init__(self, folder: str, prefix: str) -> None:
        self._folder, self._prefix = folder, prefix.replace("/", "-")

    def _path(self, rank: int) -> str:
        return os.path.join(self._folder, f"{self._prefix}-rank{rank}.json")

    def put(self, rank: int, text: str) -> None:
        path = self._path(rank)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def all(self, ranks: Sequence[int]) -> Iterator[tuple[int, str]]:
        for rank in ranks:
            with contextlib.suppress(FileNotFoundError), open(self._path(rank), encoding="utf-8") as file:
                yield rank, file.read()

    def kept(self) -> str:
        return ""

    def end(self, began: float) -> None:
        pass

    def watch(self, began: float) -> None:
        pass

    def has_ended(self, began: float) -> bool:
        return False

    def close(self) -> None:
        pass


def exchange_of(setting: Any, name: str) -> Exchange | None:
    """The setting ranks=, checked: "auto", a folder, a store, or None. None: there is nobody to compare with."""
    run = "-".join(os.environ.get(one, "") for one in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"))
    prefix = f"penstock/{run.strip('-') or 'run'}/{name.replace('/', '-')}"
    if setting is None:
        return None
    if isinstance(setting, str) and setting == "auto":
        if distributed() is None:
            return None
        from torch.distributed import distributed_c10d
        return _PatientExchange(_StoreExchange(distributed_c10d._get_default_store(), prefix))
    if isinstance(setting, (str, os.PathLike)):
        folder = paths.local(setting, "ranks")
        if not os.path.isdir(folder):
            raise SettingsError(f"ranks: value is {folder!r}; must be a folder that exists, and that all ranks share")
        return _FolderExchange(folder, prefix)
    if all(callable(getattr(setting, method, None)) for method in ("set", "get", "check")):
        return _PatientExchange(_StoreExchange(setting, prefix))
    raise TypeError(f"ranks: value is {setting!r}; must be 'auto', None, a folder, or a store of torch.distributed")


def text_of(run: Run, reading: Reading, when: float, every: float, ended: bool) -> str:
    """What a rank leaves for the others: one line of JSON, some 400 bytes. when: it was still there.
    every: seconds between two of them. ended: its Monitor was closed, so that no other follows."""
    minute, stages = reading.minute, {}
    for stage in STAGES:
        times = None if minute is None else getattr(minute, stage)
        if times is not None and times.n:
            stages[stage] = times.p50 / 1e6
    return json.dumps({"rank": reading.rank, "node": reading.node, "time": when, "every": every, "pace": reading.pace,
                       "step_ms": reading.step_ms, "wait_ms": reading.wait_ms, "waiting": reading.waiting,
                       "verdict": reading.verdict, "ended": ended, "began": run.began, "kept": run.kept,
                       "stages_ms": stages})


@dataclass(frozen=True)
class RankView:
    """The ranks of a job at one time.

    looks: by rank, its newest line in which a step ended, a dict of rank, node, time, every, pace (samples/s without
    pauses), step_ms, wait_ms, waiting (0 to 1), verdict, and stages_ms: the p50 of read, decode and copy in the last minute.
    missing: ranks that left nothing for three lines, or whose Monitor ended that long ago. slowest: the rank that waits longest for data, or where no two waits
    differ, that with the lowest pace; None: no rank had a step. spread: of waiting, the largest less the smallest.
    stragglers: a sentence for each rank that is clearly slower than the others, by the stage; empty where all is well.
    """

    looks: dict[int, dict[str, Any]]
    missing: tuple[int, ...]
    slowest: int | None
    spread: float | None
    stragglers: tuple[str, ...]


def _median(values: list[float]) -> float:
    """Of an even number the lower one: of two ranks one can be the straggler."""
    return statistics.median_low(values)


def _reason(look: dict[str, Any], looks: list[dict[str, Any]]) -> str:
    """Which stage makes a rank slow: the one whose p50 is furthest above the median of the ranks, else its verdict."""
    found = ""
    most = STAGE_TIMES
    for stage, own in look["stages_ms"].items():
        usual = _median([one["stages_ms"][stage] for one in looks if stage in one["stages_ms"]])
        if usual > 0 and own / usual >= most:
            most = own / usual
            found = f"; {stage} takes {own:.3g} ms, {most:.1f} times the median"
    return found or (f"; limit: {look['verdict']}" if look["verdict"] != "unknown" else "")


def compared(looks: dict[int, dict[str, Any]], world: int, now: float) -> RankView:
    """Compare the looks of ranks. Pure."""
    fresh = {rank: look for rank, look in looks.items() if now - look["time"] <= _patience(look)}
    missing = tuple(rank for rank in range(world) if rank not in fresh)
    stepping = [look for look in fresh.values() if look["waiting"] is not None and look["pace"]]
    if not stepping:
        return RankView(fresh, missing, None, None, ())
    waits, paces = [look["waiting"] for look in stepping], [look["pace"] for look in stepping]
    usual_wait, usual_pace = _median(waits), statistics.median_high(paces)
    stragglers = []
    for look in stepping:
        who = f"rank {look['rank']} on {look['node']}"
        if look["waiting"] >= max(WAITS, min(TIMES * usual_wait, (1 + usual_wait) / 2)) and len(stepping) > 1:
            stragglers.append(escaped(f"{who} waits for data {100 * look['waiting']:.0f} % of its time, the median is "
                                      f"{100 * usual_wait:.0f} %{_reason(look, stepping)}"))
        elif look["pace"] <= SLOWER * usual_pace:
            stragglers.append(escaped(f"{who} takes {look['pace']:,.0f} samples/s, the median is {usual_pace:,.0f}"
                                      f"{_reason(look, stepping)}"))
    spread = max(waits) - min(waits)
    slowest = max(stepping, key=lambda look: look["waiting"]) if spread > 0.01 else min(stepping, key=lambda look: look["pace"])
    return RankView(fresh, missing, int(slowest["rank"]), spread, tuple(stragglers))


def _patience(look: dict[str, Any]) -> float:
    """Seconds within which a rank has to leave its next look."""
    return float(STALE * look["every"] + GRACE)


def n_watched(rank: int, world: int, is_second_node: bool) -> int:
    """How many ranks, from 0 on, a rank looks after: rank 0 all; rank 1 rank 0, which cannot miss itself; and the first rank of
    the second node these two, whose node may be gone."""
    if rank == 0:
        return world
    if rank == 1:
        return 1
    return 2 if is_second_node else 0


def begins_second_node(exchange: Exchange, rank: int) -> bool | None:
    """Whether the node of a rank, the first one there, is the second: the rank before is on rank 0's node. Nodes may have
    different numbers of ranks. None: one of these two left no look yet. Raises what the exchange raises."""
    looks = looks_of(exchange, (0, rank - 1))
    return looks[0]["node"] == looks[rank - 1]["node"] if len(looks) == 2 else None


class Silence:
    """Which ranks leave no looks any more, without that their Monitors ended: killed, stopped, or of a node that is gone.

    It counts by this process's clock, because that of another node may be wrong. A rank that never left a look is not
    silent: it may have no Monitor. earlier: looks that were there at first, perhaps of a run that was killed: they count as
    none until they are replaced. is_last: while one of the ranks leaves looks none is named, because that one does it. One
    thread uses it."""

    def __init__(self, earlier: dict[int, dict[str, Any]] | None = None, is_last: bool = False) -> None:
        self._earlier = earlier or {}
        self._is_last = is_last
        self._seen: dict[int, tuple[dict[str, Any], float]] = {}  # by rank: its newest look, and when that was new here

    def sentences(self, looks: dict[int, dict[str, Any]], clock: float) -> tuple[str, ...]:
        """A sentence for each rank that is silent. looks: the newest of all ranks. clock: of time.monotonic()."""
        for rank, look in looks.items():
            if look != (self._seen[rank][0] if rank in self._seen else self._earlier.get(rank)):
                self._seen[rank] = look, clock
        left = {rank: look for rank, (look, _) in self._seen.items() if rank in looks and not look["ended"]}
        found = [self._sentence(rank, clock) for rank in sorted(left) if self._is_silent(rank, clock)]
        return () if self._is_last and len(found) < len(left) else tuple(found)

    def without_looks(self, clock: float, node: str, has_ended: Callable[[float], bool]) -> tuple[str, ...]:
        """A sentence for rank 0 if it is silent, where the place of all looks ends with it, and does not answer. node: this one,
        whose end rank 0 does not share. has_ended: Exchange.has_ended."""
        if not self._is_silent(0, clock):
            return ()
        look, _ = self._seen[0]
        ends = look["kept"] == "process" or look["kept"] == "node" and look["node"] != node
        if not ends or has_ended(look["began"]):
            return ()
        return (self._sentence(0, clock) + ", and the store of torch.distributed there does not answer",)

    def _is_silent(self, rank: int, clock: float) -> bool:
        if rank not in self._seen:
            return False
        look, since = self._seen[rank]
        return clock - since > _patience(look) and not look["ended"]

    def _sentence(self, rank: int, clock: float) -> str:
        look, since = self._seen[rank]
        return escaped(f"rank {rank} on {look['node']} is silent: no line for {clock - since:.0f} s")


def _look_of(text: str, rank: int) -> dict[str, Any] | None:
    """The look that a rank left; None: its text is damaged, or another version's."""
    try:
        look = json.loads(text)
        numbers = [look["time"], look["every"], look["began"], *look["stages_ms"].values()]
        numbers += [look[name] for name in ("pace", "step_ms", "wait_ms", "waiting") if look[name] is not None]
        if not all(isinstance(one, (int, float)) for one in numbers):
            return None
        return {**look, "node": str(look["node"]), "verdict": str(look["verdict"]), "ended": look["ended"] is True,
                "kept": str(look["kept"]), "rank": rank}  # the process's
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def looks_of(exchange: Exchange, ranks: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The newest look of each of the ranks that left one. Raises what the exchange raises."""
    looks = ((rank, _look_of(text, rank)) for rank, text in exchange.all(ranks))
    return {rank: look for rank, look in looks if look is not None}
