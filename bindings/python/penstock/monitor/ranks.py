# SPDX-License-Identifier: Apache-2.0
"""All ranks of a job in one view: each Monitor leaves its newest line where the others find it, and compares.

The place is the key-value store of torch.distributed, or a folder that all ranks share. No collective is called, so that
neither a rank that is late nor one that is gone can hold up training, and nothing comes between the trainer's own
collectives.
"""
from __future__ import annotations

import contextlib
import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from .. import paths
from ..errors import SettingsError
from ..escapes import escaped
from ..launchers import distributed
from .reading import Reading

__all__ = ["Board", "RankView", "Silence", "board_of", "compared", "looks_of"]

WAITS = 0.1  # a straggler waits for data for at least this share of its time, and
TIMES = 2.0  # for at least so many times the median of the ranks; or, where that is most of the time, halfway from it to all
SLOWER = 0.7  # or has at most this share of the median's pace
STAGE_TIMES = 1.5  # a stage is named where its median is so many times that of the ranks
STALE = 3  # lines that a rank did not leave
GRACE = 10.0  # seconds more
TIMEOUT = 5.0  # seconds of an operation of the store
STAGES = ("read", "decode", "copy")


class Board(Protocol):
    """Where the looks of ranks lie: texts by rank."""

    def put(self, rank: int, text: str) -> None:
        """Replace the text of a rank."""

    def all(self, world: int) -> Iterator[tuple[int, str]]:
        """Give the ranks that have a text, and these texts. Never waits for one that is missing."""


class _StoreBoard:
    """In a store of torch.distributed, with a connection and a time-out of its own where the store can be cloned."""

    def __init__(self, store: Any, prefix: str) -> None:
        import datetime
        if hasattr(store, "clone"):
            with contextlib.suppress(Exception):  # a store that only other kinds of stores can clone
                store = store.clone()
                store.set_timeout(datetime.timedelta(seconds=TIMEOUT))
        self._store, self._prefix = store, prefix

    def _key(self, rank: int) -> str:
        return f"{self._prefix}/{rank}"

    def put(self, rank: int, text: str) -> None:
        self._store.set(self._key(rank), text)

    def all(self, world: int) -> Iterator[tuple[int, str]]:
        for rank in range(world):
            if self._store.check([self._key(rank)]):
                yield rank, self._store.get(self._key(rank)).decode()


class _FolderBoard:
    """In files of a folder: NAME-rankR.json, each replaced in one step."""

    def __init__(self, folder: str, prefix: str) -> None:
        self._folder, self._prefix = folder, prefix.replace("/", "-")

    def _path(self, rank: int) -> str:
        return os.path.join(self._folder, f"{self._prefix}-rank{rank}.json")

    def put(self, rank: int, text: str) -> None:
        path = self._path(rank)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def all(self, world: int) -> Iterator[tuple[int, str]]:
        for rank in range(world):
            with contextlib.suppress(FileNotFoundError), open(self._path(rank), encoding="utf-8") as file:
                yield rank, file.read()


def board_of(setting: Any, name: str) -> Board | None:
    """The setting ranks=, checked: "auto", a folder, a store, or None. None: there is nobody to compare with."""
    run = "-".join(os.environ.get(one, "") for one in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"))
    prefix = f"penstock/{run.strip('-') or 'run'}/{name.replace('/', '-')}"
    if setting is None:
        return None
    if setting == "auto":
        if distributed() is None:
            return None
        from torch.distributed import distributed_c10d
        return _StoreBoard(distributed_c10d._get_default_store(), prefix)
    if isinstance(setting, (str, os.PathLike)):
        folder = paths.local(setting)
        if not os.path.isdir(folder):
            raise SettingsError(f"ranks: value is {folder!r}; must be a folder that exists, and that all ranks share")
        return _FolderBoard(folder, prefix)
    if all(callable(getattr(setting, method, None)) for method in ("set", "get", "check")):
        return _StoreBoard(setting, prefix)
    raise TypeError(f"ranks: value is {setting!r}; must be 'auto', None, a folder, or a store of torch.distributed")


def text_of(reading: Reading, when: float, every: float, ended: bool) -> str:
    """What a rank leaves for the others: one line of JSON, some 400 bytes. when: it was still there.
    every: seconds between two of them. ended: its Monitor was closed, so that no other follows."""
    minute, stages = reading.minute, {}
    for stage in STAGES:
        times = None if minute is None else getattr(minute, stage)
        if times is not None and times.n:
            stages[stage] = times.p50 / 1e6
    return json.dumps({"rank": reading.rank, "node": reading.node, "time": when, "every": every, "pace": reading.pace,
                       "step_ms": reading.step_ms, "wait_ms": reading.wait_ms, "waiting": reading.waiting,
                       "verdict": reading.verdict, "ended": ended, "stages_ms": stages})


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


class Silence:
    """Which ranks leave no looks any more, without that their Monitors ended: killed, stopped, or of a node that is gone.

    It counts by this process's clock, because that of another node may be wrong. A rank that never left a look is not
    silent: it may have no Monitor. One thread uses it."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, float]] = {}  # by rank: the time in its newest look, and when that was new here

    def sentences(self, looks: dict[int, dict[str, Any]], clock: float) -> tuple[str, ...]:
        """A sentence for each rank that is silent. looks: the newest of all ranks. clock: of time.monotonic()."""
        found = []
        for rank, look in sorted(looks.items()):
            if rank not in self._seen or self._seen[rank][0] != look["time"]:
                self._seen[rank] = look["time"], clock
            seconds = clock - self._seen[rank][1]
            if seconds > _patience(look) and not look["ended"]:
                found.append(escaped(f"rank {rank} on {look['node']} is silent: no line for {seconds:.0f} s"))
        return tuple(found)


def _look_of(text: str, rank: int) -> dict[str, Any] | None:
    """The look that a rank left; None: its text is damaged, or another version's."""
    try:
        look = json.loads(text)
        numbers = [look["time"], look["every"], *look["stages_ms"].values()]
        numbers += [look[name] for name in ("pace", "step_ms", "wait_ms", "waiting") if look[name] is not None]
        if not all(isinstance(one, (int, float)) for one in numbers):
            return None
        return {**look, "node": str(look["node"]), "verdict": str(look["verdict"]), "ended": look["ended"] is True,
                "rank": rank}  # the process's
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def looks_of(board: Board, world: int) -> dict[int, dict[str, Any]]:
    """The newest look of each rank below `world` that left one. Raises what the board raises."""
    looks = ((rank, _look_of(text, rank)) for rank, text in board.all(world))
    return {rank: look for rank, look in looks if look is not None}
