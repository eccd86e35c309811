# SPDX-License-Identifier: Apache-2.0
"""A trace records what each thread of a loader did when, on one time axis with PyTorch's profiler.

    with penstock.Loader("train", batch_size=256, observe=penstock.Observe(trace_path="loader.json")) as loader, \\
            profile() as profiler:
        for batch in loader:
            step(batch)
    profiler.export_chrome_trace("torch.json")
    penstock.trace.merge("loader.json", "torch.json", "both.json")  # open it at https://ui.perfetto.dev

`penstock/diagnostics.h` describes the events.
"""
from __future__ import annotations

import contextlib
import gzip
import json
import os
import warnings
from ctypes import byref, c_void_p
from typing import IO, TYPE_CHECKING, Any

from . import _c, errors, paths
from .errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .handle import Handle

__all__ = ["merge"]

_ORDER = " (the order is merge(ours, theirs, out))"
_TIDS = 100_000  # distance between the thread ids of two loaders of one process


# ---- the trace of a loader -----------------------------------------------------------------------------------------


def path_of(path: Any, name: str = "trace_path") -> bytes:
    """Return a path for the library. name: name of the argument."""
    return os.fsencode(paths.local(path, name, "the path of a file"))


def begin(handle: Handle) -> None:
    """Warn if the loader that was opened could not write its file."""
    handle.traced = True
    if "no_trace" in handle.stats().fallbacks:
        warnings.warn("trace_path: the file cannot be written; the loader works without it, and tries again when it "
                      "is closed", RuntimeWarning, stacklevel=4)


def write(handle: Handle, path: Any) -> None:
    """Write the trace so far. path: None: trace_path. Thread: any."""
    name, error = None if path is None else path_of(path, "path"), errors.new()
    handle.check_process()
    with handle.alive:
        errors.check(_c.lib.pstk_trace_write(handle.opened(), name, byref(error)), error)


def end(pointer: c_void_p) -> None:
    """Write the trace of a loader that is about to be closed; warn if that fails."""
    error = errors.new()
    if _c.lib.pstk_trace_write(pointer, None, byref(error)) < 0:
        warnings.warn(error.message.decode(errors="replace"), RuntimeWarning, stacklevel=4)


# ---- two traces on one time axis -----------------------------------------------------------------------------------


def _read(name: str, path: Any) -> dict[str, Any]:
    """Return a trace from a file, which gzip may have compressed, as a dict. Raises SettingsError, OSError."""
    found = os.fsdecode(path_of(path, name))
    with paths.regular(found, name, "a file of JSON" + _ORDER, _ORDER) as file, paths.naming(name, "read", found, _ORDER):
        data = file.read()
    try:
        trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (OSError, EOFError, ValueError) as error:
        raise SettingsError(f"{name}: {os.fspath(path)!r} is not a trace; must be a file of JSON ({error})") from None
    if isinstance(trace, list):
        trace = {"traceEvents": trace}
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise SettingsError(f"{name}: {os.fspath(path)!r} is not a trace; must have a list of traceEvents")
    return trace


def _opened_ns(path: Any, trace: dict[str, Any]) -> int:
    """Return the time of CLOCK_REALTIME, in ns, from which a loader's trace counts. Raises SettingsError."""
    other = trace.get("otherData")
    if not isinstance(other, dict) or not isinstance(other.get("realtime_ns"), int) \
            or not str(other.get("producer", "")).startswith("penstock"):
        raise SettingsError(f"ours: {os.fspath(path)!r} is not the trace of a loader; must be a file that Observe.trace_path or "
                            "write_trace wrote (the order is merge(ours, theirs, out))")
    return int(other["realtime_ns"])


def _moved(event: dict[str, Any], shift: float, number: int) -> dict[str, Any]:
    """Return an event of loader `number` with times of the other trace. shift: microseconds."""
    event = dict(event)
    if "ts" in event:
        event["ts"] = round(event["ts"] + shift, 3)
    if "tid" in event:
        event["tid"] += number * _TIDS
    if "id" in event:
        event["id"] = f"penstock {number}.{event['id']}"
    if event.get("name") == "thread_name":
        event["args"] = {**event["args"], "name": f"penstock {event['args']['name']}"}
    return event


def merge(ours: Any, theirs: Any, out: Any = None) -> dict[str, Any]:
    """Return the traces of a loader, or of several in a list, and of torch.profiler on one time axis: PyTorch's.

    ours: files that Observe.trace_path or Loader.write_trace wrote; no pipes.
    theirs: a file of export_chrome_trace; it may be compressed (.json.gz).
    out: a file to write the result to, as JSON; gzip compresses it if its name ends in .gz, in upper or lower case.
        None: none.

    PyTorch's times are of CLOCK_REALTIME, from baseTimeNanoseconds or, if that is missing, from 1970. A loader's are of
    CLOCK_MONOTONIC. The loader records both clocks when it is opened; if the machine's clock is set later, its events
    move.

    Raises SettingsError if a file is no such trace, OSError if a file cannot be read or written.
    """
    written = None if out is None else path_of(out, "out")
    if isinstance(ours, (str, bytes, os.PathLike)):
        ours = [ours]
    found = _read("theirs", theirs)
    base = found.get("baseTimeNanoseconds", 0)
    events = list(found["traceEvents"])
    for number, path in enumerate(_listed(ours)):
        trace = _read("ours", path)
        shift = (_opened_ns(path, trace) - base) / 1000
        events += [_moved(event, shift, number) for event in trace["traceEvents"] if event.get("name") != "process_name"]
    merged = {**found, "traceEvents": events}
    if written is not None:
        with paths.naming("out", "write", written), _opened(written) as file:
            json.dump(merged, file)
    return merged


def _opened(out: Any) -> IO[str]:
    """Return a file to write JSON to, compressed if its name ends in .gz."""
    if os.fsdecode(out).lower().endswith(".gz"):
        return gzip.open(out, "wt", encoding="utf-8")
    paths.check_plain(out, "out")
    return open(out, "w", encoding="utf-8")


def _listed(ours: Any) -> Sequence[Any]:
    try:
        return list(ours)
    except TypeError:
        raise TypeError(f"ours: value is {ours!r}; must be the path of a file, or a list of them") from None
