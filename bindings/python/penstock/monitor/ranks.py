# SPDX-License-Identifier: Apache-2.0
"""Compare the ranks of a job: each Monitor leaves its newest line where the others find it.

The place is the key-value store of torch.distributed, or a folder that all ranks share. No collective is called: a rank
that is late or gone cannot hold up training, and nothing comes between the trainer's own collectives.
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

WAITS = 0.1  # least share of its time that a straggler waits for data
TIMES = 2.0  # and least multiple of the ranks' median; or, if less, halfway from the median to all of the time
SLOWER = 0.7  # or most share of the median's pace that a straggler has
STAGE_TIMES = 1.5  # least multiple of the ranks' median at which a stage is named
STALE = 3  # lines that a silent rank has missed
GRACE = 10.0  # and more seconds
TIMEOUT = 3.0  # seconds of an operation of the store
WATCHED = 7 * 86400.0  # seconds of a watch of rank 0; poll(2) counts milliseconds up to 2^31
STAGES = ("read", "decode", "copy")
T = TypeVar("T")


class Exchange(Protocol):
    """The place in which ranks leave their looks for each other: a text by rank. outlives: whether it may still have
    texts of a run that was killed."""

    outlives: bool

    def put(self, rank: int, text: str) -> None:
        """Replace the text of a rank."""

    def all(self, ranks: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield each of the ranks that has a text, with the text. Never waits for a missing one."""

    def kept(self) -> str:
        """Return what must end for the exchange to end: "process": this process; "node": this node; "": neither."""

    def end(self, began: float) -> None:
        """Report the end of rank 0's Monitor that began at this time to those who watch it. Returns once they can read
        it."""

    def watch(self, began: float) -> None:
        """Wait, in a thread of its own, for the end of rank 0's Monitor that began at this time. A second call does
        nothing."""

    def has_ended(self, began: float) -> bool:
        """Return whether that Monitor reported its end. Call it once the exchange does not answer: the watches have
        then ended, too."""

    def close(self) -> None:
        """Release all resources. The next call takes them again."""


class Run(NamedTuple):
    """One run of a Monitor: the time when it began, and the result of Exchange.kept."""

    began: float
    kept: str


def _listens(port: int) -> bool:
    """Return whether this process listens on a TCP port."""
    own = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of this listing is closed already
            own.add(os.readlink(f"/proc/self/fd/{fd}"))
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/self/net/{name}", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                of = line.split()
                if of[3] == "0A" and int(of[1].rpartition(":")[2], 16) == port and f"socket:[{of[9]}]" in own:
                    return True
    return False


def _is_here(host: str) -> bool:
    """Return whether a host is this node: a socket can only be bound to an address of this node."""
    for family, _, _, _, address in socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as one:
            one.bind((address[0], 0))
            return True
    return False


class _StoreExchange:
    """An exchange in a store of torch.distributed. If the store can be cloned, it has its own connection and time-out.
    A store of TCP or of one process is in memory, and a launcher that keeps one gives each start of its workers another
    prefix."""

    def __init__(self, store: Any, prefix: str) -> None:
        if hasattr(store, "clone"):
            with contextlib.suppress(Exception):  # raised by a store whose inner store cannot be cloned
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
        return "process" if _listens(store.port) else "node"  # "node": the launcher keeps it

    def _watchers_key(self, began: float) -> str:
        return f"{self._prefix}/0/watchers/{began!r}"

    def end_key(self, began: float, watcher: int) -> str:
        return f"{self._prefix}/0/ended/{began!r}/{watcher}"

    def end(self, began: float) -> None:
        self.wake(self.end_key(began, 0))  # first this, then the number; watcher() uses the reverse order, so none is missed
        for watcher in range(1, int(self._store.add(self._watchers_key(began), 0)) + 1):
            self.wake(self.end_key(began, watcher))

    def wake(self, key: str) -> None:
        """Set the key of a watch, so that it returns."""
        self._store.set(key, "ended")
        self._store.check([key])  # set() does not wait; the server answers this after it

    def watcher(self, began: float) -> str | None:
        """Count one more watcher, and return its key, which its own process may set, too. None: the end was reported
        already."""
        key = self.end_key(began, int(self._store.add(self._watchers_key(began), 1)))
        return None if self._store.check([self.end_key(began, 0)]) else key

    def wait_for_end(self, key: str) -> None:
        """Return once the key is set. It uses its own connection, because a connection serves one call at a time.
        Raises the errors of the store."""
        self._store.clone().wait([key], datetime.timedelta(seconds=WATCHED))

    def close(self) -> None:
        pass


class _PatientExchange:
    """An exchange that a thread of its own asks. The store of a stopped process, or of a node that is gone, never
    answers, whatever its time-out; then this raises TimedOutError. Thread: any."""

    def __init__(self, exchange: _StoreExchange) -> None:
        self._exchange, self.outlives = exchange, exchange.outlives
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], concurrent.futures.Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._late: concurrent.futures.Future[Any] | None = None  # the question that was given up and has no answer yet
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
        with contextlib.suppress(Exception):  # raised if the store ended without a report
            self._exchange.wait_for_end(key)
            self._ended.add(began)

    def has_ended(self, began: float) -> bool:
        if began in self._watches:
            self._watches[began][0].join(TIMEOUT)
        return began in self._ended

    def close(self) -> None:
        # Before CPython 3.14, a thread that returns from C++ while the interpreter ends aborts the process.
        for thread, key in self._watches.values():
            if thread.is_alive():
                with contextlib.suppress(Exception):  # the store is gone, and the watch with it; or it hangs
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
    """An exchange in files of a folder: NAME-rankR.json. Each is replaced in one step, and stays; the last text says
    that the Monitor ended."""

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
    """Check the setting ranks= and return its exchange: "auto", a folder, a store, or None. None: there is no exchange.
    Raises TypeError and SettingsError."""
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
    """Return the text that a rank leaves for the others: one line of JSON, some 400 bytes.

    run: the Monitor's run.
    reading: the newest line in which a step ended.
    when: time now, at which the rank was alive.
    every: seconds between two lines.
    ended: whether the Monitor was closed, so that no other text follows.
    """
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

    looks: by rank, the newest line in which a step ended, of the ranks that are not missing. It is a dict with rank,
        node, time, every, pace (samples/s without pauses), step_ms, wait_ms, waiting (0 to 1), verdict, and stages_ms:
        the p50 of read, decode and copy in the last minute.
    missing: the ranks that have left nothing for three lines and 10 s, or whose Monitor ended that long ago.
    slowest: the rank that waits longest for data; if their waits differ by 0.01 at most, the rank with the lowest pace.
        None: no rank had a step.
    spread: the largest `waiting` minus the smallest; None: no rank had a step.
    stragglers: a sentence for each rank that is clearly slower than the others, with the stage; () if there is none.
    """

    looks: dict[int, dict[str, Any]]
    missing: tuple[int, ...]
    slowest: int | None
    spread: float | None
    stragglers: tuple[str, ...]


def _median(values: list[float]) -> float:
    """Return the median; of an even number of values the lower one, so that one of two ranks can be the straggler."""
    return statistics.median_low(values)


def _reason(look: dict[str, Any], looks: list[dict[str, Any]]) -> str:
    """Say why a rank is slow: by the stage whose p50 is furthest above the median of the ranks, else by its verdict."""
    found = ""
    most = STAGE_TIMES
    for stage, own in look["stages_ms"].items():
        usual = _median([one["stages_ms"][stage] for one in looks if stage in one["stages_ms"]])
        if usual > 0 and own / usual >= most:
            most = own / usual
            found = f"; {stage} takes {own:.3g} ms, {most:.1f} times the median"
    return found or (f"; limit: {look['verdict']}" if look["verdict"] != "unknown" else "")


def compared(looks: dict[int, dict[str, Any]], world: int, now: float) -> RankView:
    """Compare the looks of ranks. now: seconds since 1970. Pure."""
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
    """Return the seconds within which a rank must leave its next look."""
    return float(STALE * look["every"] + GRACE)


def n_watched(rank: int, world: int, is_second_node: bool) -> int:
    """Return how many ranks, from 0 on, a rank watches. Rank 0 watches all. Rank 1 watches rank 0, which cannot miss
    itself. The first rank of the second node watches these two, whose node may be gone."""
    if rank == 0:
        return world
    if rank == 1:
        return 1
    return 2 if is_second_node else 0


def begins_second_node(exchange: Exchange, rank: int) -> bool | None:
    """Return whether the node of a rank, which is the first one there, is the second node: then the rank before it is
    on rank 0's node. Nodes may have different numbers of ranks. None: one of these two ranks left no look yet. Raises
    the errors of the exchange."""
    looks = looks_of(exchange, (0, rank - 1))
    return looks[0]["node"] == looks[rank - 1]["node"] if len(looks) == 2 else None


class Silence:
    """Find the ranks that leave no looks any more, although their Monitors did not end: they were killed or stopped, or
    their node is gone.

    It uses this process's clock, because another node's may be wrong. A rank that never left a look is not silent: it
    may have no Monitor. Thread: one.

    earlier: looks that were there at the start, perhaps of a run that was killed. They do not count until they are
        replaced.
    is_last: name no rank while one of the ranks leaves looks, because that one names them.
    """

    def __init__(self, earlier: dict[int, dict[str, Any]] | None = None, is_last: bool = False) -> None:
        self._earlier = earlier or {}
        self._is_last = is_last
        self._seen: dict[int, tuple[dict[str, Any], float]] = {}  # by rank: its newest look, and the time when it was new here

    def sentences(self, looks: dict[int, dict[str, Any]], clock: float) -> tuple[str, ...]:
        """Return a sentence for each rank that is silent. looks: the newest look of all ranks. clock: time.monotonic()."""
        for rank, look in looks.items():
            if look != (self._seen[rank][0] if rank in self._seen else self._earlier.get(rank)):
                self._seen[rank] = look, clock
        left = {rank: look for rank, (look, _) in self._seen.items() if rank in looks and not look["ended"]}
        found = [self._sentence(rank, clock) for rank in sorted(left) if self._is_silent(rank, clock)]
        return () if self._is_last and len(found) < len(left) else tuple(found)

    def without_looks(self, clock: float, node: str, has_ended: Callable[[float], bool]) -> tuple[str, ...]:
        """Return a sentence for rank 0 if it is silent, the exchange ends with it, and the exchange does not answer.

        node: this node. It would have ended with rank 0 if that ran here.
        has_ended: Exchange.has_ended.
        """
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
    """Return the look in a rank's text; None: the text is damaged, or another version's."""
    try:
        look = json.loads(text)
        numbers = [look["time"], look["every"], look["began"], *look["stages_ms"].values()]
        numbers += [look[name] for name in ("pace", "step_ms", "wait_ms", "waiting") if look[name] is not None]
        if not all(isinstance(one, (int, float)) for one in numbers):
            return None
        return {**look, "node": str(look["node"]), "verdict": str(look["verdict"]), "ended": look["ended"] is True,
                "kept": str(look["kept"]), "rank": rank}  # the rank of the process
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def looks_of(exchange: Exchange, ranks: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return the newest look of each of the ranks that left one. Raises the errors of the exchange."""
    looks = ((rank, _look_of(text, rank)) for rank, text in exchange.all(ranks))
    return {rank: look for rank, look in looks if look is not None}
