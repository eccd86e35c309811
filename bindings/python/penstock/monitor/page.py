# SPDX-License-Identifier: Apache-2.0
"""Draw the page of Monitor.report by the command `penstock page`, so that it is the page of `penstock bench --report`.
This module makes the command's input: the document that src/cli/report/report_page.h describes, and readings, as lines
of JSON."""
from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from .. import _c, forecast as predictions, paths
from ..__main__ import command
from ..cores import n_cores
from ..errors import PenstockError
from ..stats import StageStats, Stats, advised
from .interval import Interval, verdict

if TYPE_CHECKING:
    from ..loader import Loader
    from ..metrics import Distribution, Metrics

__all__ = ["Found", "write"]

SCHEMA, VERSION = "penstock report", 1  # as in src/cli/report/report_page.h
PATIENCE = 60.0  # longest wait for the command, which takes some 0.1 s; seconds
_TIMES = ("wait", "read", "decode", "finish", "copy", "stream")


@dataclasses.dataclass(frozen=True)
class Found:
    """The figures of a run that readings do not have."""

    interval: Interval  # from the Monitor's first look to its last
    total: Stats
    metrics: Metrics  # since open
    counts: _c.Stats  # the struct of `total`


def _stage(stage: StageStats) -> dict[str, int]:
    return {"busy_ns": stage.busy_ns, "starved_ns": stage.starved_ns, "blocked_ns": stage.blocked_ns,
            "cpu_ns": stage.cpu_ns, "core_wait_ns": stage.core_wait_ns, "items": stage.n_items, "threads": stage.n_threads}


def _times(spread: Distribution) -> dict[str, int]:
    return {"n": spread.n, "sum_ns": spread.sum, "p50_ns": spread.p50, "p95_ns": spread.p95, "p99_ns": spread.p99,
            "max_ns": spread.max}


def _run(found: Found) -> dict[str, Any]:
    """Return the figures that are no sums of readings, with the keys of `penstock bench --json`."""
    of, total = found.interval, found.total
    stages = {"reader": _stage(of.stage_reader), "workers": _stage(of.stage_workers)}
    if total.n_device_slots:
        stages["uploader"] = _stage(of.stage_uploader)
    stages["consumer"] = _stage(of.stage_consumer)
    limit, forecast = verdict(of), predictions.of_counts(
        found.counts, n_cores(), predictions.usual(int(found.counts.n_threads)))
    memory = {"slots": total.slot_memory, "io": total.io_memory, "index": total.index_memory, "scratch": total.scratch_memory}
    if total.block_memory:
        memory["blocks"] = total.block_memory
    return {"stages": stages, "memory": memory, "bottleneck": limit, "advice": f"{limit}: {advised(limit, of)}",
            "forecast": forecast.to_dict() if forecast.cases else None}


def _settings(loader: Loader, total: Stats) -> dict[str, Any]:
    numbers, ranks = loader._numbers, loader.ranks
    outputs = {f"output {name}": repr(output)[:200] for name, output in list(loader.outputs.items())[:20]}
    return {"batch_size": loader.batch_size, "threads": total.n_threads, "slots": total.n_slots, "order": loader._order,
            "seed": numbers["seed"], "rank": ranks.rank, "world": ranks.world, "framework": loader._framework,
            "device": "host" if numbers["device"] == _c.HOST else f"cuda:{numbers['device_index']}", "reader": total.reader,
            "direct": total.direct, "queue_depth": total.queue_depth, "kernels": total.kernels,
            "fallbacks": ", ".join(total.fallbacks) or "none", **outputs}


def document(loader: Loader, name: str, node: str, found: Found) -> dict[str, Any]:
    """Return the document without series and machine, which the command adds."""
    times = {one: getattr(found.metrics, one) for one in _TIMES}
    return {"schema": SCHEMA, "version": VERSION, "name": name, "node": node, "path": loader.path, "run": _run(found),
            "times": {one: _times(spread) for one, spread in times.items() if spread.n},
            "settings": _settings(loader, found.total)}


def _program() -> str:
    try:
        return command()
    except FileNotFoundError as error:
        raise PenstockError(f"the penstock command, which draws the page, was not found: {error}. Elsewhere, `penstock page "
                            "run.jsonl` draws what sinks=penstock.monitor.JSONLines('run.jsonl') wrote") from None


def write(path: str | os.PathLike[str], loader: Loader, name: str, node: str, found: Found,
          points: list[dict[str, Any]]) -> None:
    """Draw the page. Raises PenstockError if it cannot be written, or if there is no command. points: of History."""
    out = os.path.abspath(paths.local(path, what="the name of a file"))
    lines = [document(loader, name, node, found), *points]
    data = "".join(json.dumps(line, separators=(",", ":"), default=str) + "\n" for line in lines).encode()
    # An absolute path cannot be taken for an option or for "-".
    line = [_program(), "page", "-", "-o", out]
    try:
        done = subprocess.run(line, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    except OSError as error:
        raise PenstockError(f"{line[0]!r}, which draws the page, does not start: {error.strerror} (set PENSTOCK_COMMAND to the "
                            "path of the penstock command)") from None
    except subprocess.TimeoutExpired:
        raise PenstockError(f"{line[0]!r} did not draw the page within {PATIENCE:g} s") from None
    said = done.stderr.decode(errors="replace").strip().replace("penstock: ", "")
    if done.returncode:
        raise PenstockError(said or f"{line[0]} page ended with status {done.returncode}")
