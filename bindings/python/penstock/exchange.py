# SPDX-License-Identifier: Apache-2.0
"""What the processes of PyTorch's default group report to each other, through the group's store.

A store is a table of texts that one process keeps and all of them reach; each group of processes has one. Nobody waits
inside of it: a process that never comes holds up the others for as long as they choose, and they can name it. No
collective can do that, and none is run: a group for NCCL alone has none for memory of the host.
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

_READ_SECONDS = 5.0  # that process 0, which may keep the store, waits for the others to read it
_PAUSES = 0.001, 0.05  # seconds between two looks: at first, and the most for up to 500 processes

_lock = threading.Lock()
_group: _Group | None = None


class _Group:
    """A default group: what the keys of its exchanges begin with, and these exchanges, counted by their subject.

    Every process makes the same exchanges of a subject in the same order, as it does collectives. A store may be used again by
    the next group, but not every process was in the one before: so the store counts groups, by rank and by size."""

    def __init__(self, of: Any, store: Any, process: int, n: int) -> None:
        self.of = weakref.ref(of)
        number = int(store.add(f"penstock/groups-of-{n}/{process}", 1))
        self.prefix = f"penstock/{n}/{number}/"
        self.n: dict[str, Iterator[int]] = defaultdict(itertools.count)


def reachable() -> Any:
    """Return torch.distributed if this process is in a group whose processes reach each other's store, else None."""
    torch = distributed()
    return torch if torch is not None and _store(torch) is not None else None


def _store(torch: Any) -> Any:
    """The store of the default group; None: it has none (MPI), or one that does nothing (fake)."""
    found = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_get_default_store", None)
    return None if found is None or torch.get_backend() == "fake" else found()


@contextlib.contextmanager
def _naming() -> Generator[None, None, None]:
    """Say whose call it was that failed in PyTorch."""
    try:
        yield
    except RuntimeError as error:
        raise PenstockError(f"ranks: penstock could not reach the store of torch.distributed, by which the processes "
                            f"compare their loaders ({error}); see whether process 0, which keeps it, has ended (or give "
                            "ranks=penstock.Ranks(RANK, WORLD, compare=False))") from error


def _key(torch: Any, store: Any, subject: str) -> str:
    """What the keys of the next exchange begin with."""
    global _group
    with _lock, _naming():
        if _group is None or _group.of() is not torch.group.WORLD:
            _group = _Group(torch.group.WORLD, store, int(torch.get_rank()), int(torch.get_world_size()))
        return f"{_group.prefix}{subject}/{next(_group.n[subject])}/"


class Exchange:
    """One report of each process, and the verdict on all of them, which the process that reports last finds.

    Make it where `reachable` returns torch.distributed. What is reported, and the verdict, are what JSON holds. Methods
    raise PenstockError if the store fails. Any one thread at a time.
    """

    def __init__(self, torch: Any, subject: str) -> None:
        self.process, self.n = int(torch.get_rank()), int(torch.get_world_size())
        self._store = _store(torch)
        self._key = _key(torch, self._store, subject)
        self._verdict: Any = None  # once this process has read it

    def report(self, own: Any, judge: Callable[[Sequence[Any]], Any]) -> None:
        """Give the report of this process. judge: the verdict on the reports, by process."""
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
        """Return whether there is a verdict within some seconds. check: called now and then, ends the wait by what it raises."""
        with _naming():
            return self._verdict is not None or self._until("verdict", seconds, check)

    def verdict(self) -> Any:
        """Return the verdict, which is there. Process 0 stays until all have read it, because its end may be the store's."""
        if self._verdict is None:
            with _naming():
                self._verdict = json.loads(self._store.get(self._key + "verdict"))
                self.leave()
                if self.process == 0 and self._until("read", _READ_SECONDS):
                    self._remove()
        return self._verdict

    def leave(self) -> None:
        """Say that this process has read the verdict, or will not. Once."""
        with _naming():
            if self._store.add(self._key + "n_read", 1) == self.n:
                self._store.set(self._key + "read", "1")

    def missing(self) -> list[int]:
        """Return the processes that have not reported."""
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
        """Look until there is such a key. Of many processes each looks more seldom, because one of them answers all."""
        end, (pause, most) = time.monotonic() + seconds, _PAUSES
        while not self._has(name):
            check()
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, most * max(1, self.n / 500))
        return True

    def _remove(self) -> None:
        """Leave nothing in the store: a loader may be opened in each epoch."""
        with contextlib.suppress(RuntimeError):  # a store that cannot
            for name in (*(f"report/{process}" for process in range(self.n)), "n_reports", "verdict", "n_read", "read"):
                self._store.delete_key(self._key + name)
