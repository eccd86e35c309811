# SPDX-License-Identifier: Apache-2.0
"""Reports that the processes of PyTorch's default group exchange, through the group's store.

A store is a table of texts that one process keeps and all others reach. Each group of processes has one. No call waits
inside of the store: this module looks again and again, so that the caller chooses how long it waits for a missing
process, and can name it. A collective would wait, so none is used; and a group for NCCL alone has no collectives for
memory of the host.
"""
from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import sys
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from .errors import PenstockError
from .launchers import distributed

__all__ = ["Exchange", "reachable"]

_READ_SECONDS = 5.0  # longest wait of process 0, which may keep the store, for the others to read it
_PAUSES = 0.001, 0.05  # seconds between two looks: at first, and at most for up to 500 processes

_lock = threading.Lock()
_group: _Group | None = None


class _Group:
    """A default group: the prefix of the keys of its exchanges, and a counter of them for each subject.

    Every process makes the exchanges of a subject in the same order, as it calls collectives. The next group may use
    the same store, but some of its processes may not have been in the group before. So the store counts groups by rank
    and size.
    """

    def __init__(self, of: Any, store: Any, process: int, n: int) -> None:
        self.of = weakref.ref(of)
        number = int(store.add(f"penstock/groups-of-{n}/{process}", 1))
        self.prefix = f"penstock/{n}/{number}/"
        self.n: dict[str, Iterator[int]] = defaultdict(itertools.count)


def reachable() -> Any:
    """Return torch.distributed if this process is in a group whose processes all reach one store, else None."""
    torch = distributed()
    return torch if torch is not None and _store(torch) is not None else None


def _store(torch: Any) -> Any:
    """Return the store of the default group. None: the group has none (MPI), or one that does nothing (fake)."""
    found = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_get_default_store", None)
    return None if found is None or torch.get_backend() == "fake" else found()


@contextlib.contextmanager
def _naming() -> Generator[None, None, None]:
    """Return a context manager that turns PyTorch's RuntimeError into a PenstockError about the store."""
    try:
        yield
    except RuntimeError as error:
        raise PenstockError(f"ranks: penstock could not reach the store of torch.distributed, by which the processes "
                            f"compare their loaders ({error}); see whether process 0, which keeps it, has ended (or give "
                            "ranks=penstock.Ranks(RANK, WORLD, compare=False))") from error


def _key(torch: Any, store: Any, subject: str) -> str:
    """Return the prefix of the keys of the next exchange."""
    global _group
    with _lock, _naming():
        if _group is None or _group.of() is not torch.group.WORLD:
            _group = _Group(torch.group.WORLD, store, int(torch.get_rank()), int(torch.get_world_size()))
        return f"{_group.prefix}{subject}/{next(_group.n[subject])}/"


class Exchange:
    """An exchange: one report of each process, and one verdict on all reports, made by the process that reports last.

    Make it where `reachable` returns torch.distributed. Reports and the verdict are values that JSON holds. Methods
    raise PenstockError if the store fails. Thread: any, one at a time.
    """

    def __init__(self, torch: Any, subject: str) -> None:
        self.process, self.n = int(torch.get_rank()), int(torch.get_world_size())
        self._store = _store(torch)
        self._key = _key(torch, self._store, subject)
        self._verdict: Any = None  # None until this process has read it

    def report(self, own: Any, judge: Callable[[Sequence[Any]], Any]) -> None:
        """Give the report of this process. The process that reports last also gives the verdict. judge: makes the
        verdict from the reports, in the order of the processes."""
        with _naming():
            self._store.set(f"{self._key}report/{self.process}", json.dumps(own))
            if self._store.add(self._key + "n_reports", 1) < self.n:
                return
            everyone = [json.loads(self._store.get(f"{self._key}report/{process}")) for process in range(self.n)]
        self.decide(judge(everyone))

    def decide(self, verdict: Any) -> None:
        """Give the verdict, unless another process has given one."""
        with _naming():
            self._store.compare_set(self._key + "verdict", "", json.dumps(verdict))

    def wait(self, seconds: float, check: Callable[[], object] = lambda: None) -> bool:
        """Wait for a verdict, and return whether there is one. seconds: the longest wait. check: called now and then;
        an exception of it ends the wait."""
        with _naming():
            return self._verdict is not None or self._until("verdict", seconds, check)

    def verdict(self) -> Any:
        """Return the verdict, which must be there. Process 0 waits until all have read it, because the store may end
        with it."""
        if self._verdict is None:
            with _naming():
                self._verdict = json.loads(self._store.get(self._key + "verdict"))
                self.leave()
                if self.process == 0 and self._until("read", _READ_SECONDS):
                    self._remove()
        return self._verdict

    def leave(self) -> None:
        """Mark that this process has read the verdict, or will not read it. Call it once."""
        with _naming():
            if self._store.add(self._key + "n_read", 1) == self.n:
                self._store.set(self._key + "read", "1")

    def missing(self) -> list[int]:
        """Return the numbers of the processes that have not reported."""
        with _naming():
            return [process for process in range(self.n) if not self._has(f"report/{process}")]

    def _has(self, name: str) -> bool:
        check = getattr(self._store, "check", None)
        if check is not None:
            return bool(check([self._key + name]))
        try:  # an older PyTorch's
            self._store.wait([self._key + name], datetime.timedelta(milliseconds=10))
        except RuntimeError:
            return False
        return True

    def _until(self, name: str, seconds: float, check: Callable[[], object] = lambda: None) -> bool:
        """Wait until the store has a key, and return whether it has. The more processes there are, the more seldom each
        looks, because one process answers all."""
        end, (pause, most) = time.monotonic() + seconds, _PAUSES
        while not self._has(name):
            check()
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, most * max(1, self.n / 500))
        return True

    def _remove(self) -> None:
        """Remove the keys of this exchange from the store: a program may open a loader in each epoch."""
        with contextlib.suppress(RuntimeError):  # raised by a store that cannot remove keys
            for name in (*(f"report/{process}" for process in range(self.n)), "n_reports", "verdict", "n_read", "read"):
                self._store.delete_key(self._key + name)
