# SPDX-License-Identifier: Apache-2.0
"""penstock.Monitor: figures of a loader and its training loop, while the loop runs.

One thread reads the loader's counters, NVML and /proc, every `look` seconds. It never calls the loop, and the loop
takes no lock of the Monitor.
"""
from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import logging
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from .. import _c
from ..arguments import items, positive
from ..closing import ClosedAtEnd
from ..cores import n_cores
from ..errors import PenstockError, SettingsError
from ..escapes import escaped
from ..hints import explained
from ..launchers import distributed
from ..sealed import Sealed
from ..stats import Stats
from . import alerts as alerting, flops, gpu as gpus, machine, ranks as peers
from .history import History
from .interval import Interval, predicted, verdict
from .ranks import RankView
from .reading import Reading, averaged

if TYPE_CHECKING:
    from ..loader import Loader
    from ..metrics import Metrics

__all__ = ["Monitor"]

log = logging.getLogger("penstock.monitor")
T = TypeVar("T")
PATIENCE = 5.0  # longest wait of close() for the thread, which may be in a sink; seconds
KEPT = 1024  # most readings that wait for new()


def _close_at_end(monitor: Monitor) -> None:
    """Close a Monitor at exit, so that the last readings are written while sinks still work."""
    monitor.close()


_running: ClosedAtEnd[Monitor] = ClosedAtEnd(_close_at_end)


class _Look(NamedTuple):
    """The result of one look."""

    clock: float  # by time.monotonic()
    time: float
    stats: Stats
    machine: machine.MachineReading
    cursor: tuple[int, int]
    tokens: float | None
    minute: Metrics  # of the last minute
    whole: Metrics  # since open
    counts: _c.Stats  # the library's struct, for predictions


def _given(name: str, value: Any) -> float | None:
    return None if value is None else positive(name, value)


def _functions(name: str, value: Any) -> tuple[Callable[[Any], Any], ...]:
    """Return the functions of a setting: one function or several. Raises TypeError."""
    given = list(value) if isinstance(value, (set, frozenset)) else value
    found = (value,) if callable(value) else tuple(items(name, given, "a function or a list of functions"))
    for one in found:
        if not callable(one):
            raise TypeError(f"{name}: value is {one!r}; must be a function or a list of functions")
    return found


class Monitor(Sealed):
    """Watch a loader and the loop around it, from a thread of its own.

        with penstock.Monitor(loader, alerts=True):
            for batch in loader.epoch(0):
                step(batch)

        for batch in penstock.Monitor(loader).wrap(loader.epoch(0)):
            step(batch)

    every: seconds between two lines, which sinks get as well.
    look: seconds between two looks at the counters, at most `every`; None: 5, or `every` if that is less. Alerts get
        every look, and so do sinks with every_look = True. GPU figures of a line are averages of its looks.
    name: name of the data set in lines, labels and alerts; None: the last part of loader.path.
    sinks: functions of a Reading, called in the Monitor's thread: JSONLines, TensorBoard, yours. An exception of a sink
        is logged, once for each kind of exception.
    alerts: a list of rules; True: penstock.monitor.defaults(); None: no rules.
    on_alert: functions of an Alert, such as Webhook(url), called in the Monitor's thread. The logger "penstock.monitor"
        logs every alert as well.
    line: True: print each line to stderr, on rank 0 only; a function: it gets the text, on every rank; False: neither.
    gpu: "auto": the GPU that this process uses; an index, UUID (also of a MIG instance) or PCI bus id of NVML; None: no
        GPU.
    tokens_per_sample: number of tokens in a sample, for tokens/s.
    tokens_so_far: where that number varies, a function that returns the number of tokens so far.
    flops_per_sample: FLOPs of forward and backward pass for a sample on this GPU, for mfu.
    dtype: dtype of the matrix products.
    peak_flops: peak FLOPs per second of the GPU; None: penstock.monitor.peak_flops of its name and dtype. For an
        unknown GPU there is no mfu.
    ranks: the place in which the ranks of a job leave their lines for each other. "auto": the store of
        torch.distributed, if the process has initialised it; a folder that all ranks share; a store; None: there is
        none. Monitors with the same `name` compare their lines. Rank 0's line names stragglers and ranks that are
        silent; see view().

    When the loader is closed, its Monitor writes a last line and ends. In a child of fork a Monitor does nothing.
    Several Monitors may watch one loader.

    Raises TypeError and SettingsError for wrong arguments.
    """

    name: str
    loader: Loader
    node: str
    _pid = -1  # close does nothing with it if __init__ did not finish

    @explained("penstock.Monitor", {"interval": "every= is the seconds between lines, and look= between looks",
                                    "callbacks": "sinks= takes functions of a Reading, and on_alert= functions of an Alert"})
    def __init__(self, loader: Loader, *, every: float = 60.0, look: float | None = None, name: str | None = None,
                 sinks: Any = (), alerts: Any = None, on_alert: Any = (), line: bool | Callable[[str], Any] = True,
                 gpu: int | str | None = "auto", tokens_per_sample: float | None = None,
                 tokens_so_far: Callable[[], float] | None = None, flops_per_sample: float | None = None,
                 dtype: Any = "bfloat16", peak_flops: float | None = None, ranks: Any = "auto") -> None:
        from ..loader import Loader
        if not isinstance(loader, Loader):
            raise TypeError(f"loader: value is {loader!r}; must be a penstock.Loader")
        self._every = positive("every", every)
        self._look_every = min(5.0, self._every) if look is None else positive("look", look)
        if self._look_every > self._every:
            raise SettingsError(f"look: value is {look!r}; must be at most every, {every!r}")
        self._sinks, self._on_alert = _functions("sinks", sinks), _functions("on_alert", on_alert)
        # A rule has a state, so each Monitor has its own copy.
        self._rules = [copy.deepcopy(rule) for rule in alerting.rules_of(alerts)]
        if not callable(line) and not isinstance(line, bool):
            raise TypeError(f"line: value is {line!r}; must be True, False or a function of a str")
        if tokens_so_far is not None and not callable(tokens_so_far):
            raise TypeError(f"tokens_so_far: value is {tokens_so_far!r}; must be a function without arguments")
        if tokens_so_far is not None and tokens_per_sample is not None:
            raise SettingsError("tokens_so_far: value is a function; must be None with tokens_per_sample (give one of them)")
        self._tokens_per_sample, self._tokens_so_far = _given("tokens_per_sample", tokens_per_sample), tokens_so_far
        self._flops, self._peak = _given("flops_per_sample", flops_per_sample), _given("peak_flops", peak_flops)
        self._dtype = flops.checked(dtype)
        self._gpu_setting, self._line = gpus.checked(gpu), line
        if not (ranks is None or isinstance(ranks, str) and ranks == "auto"):
            peers.exchange_of(ranks, "")
        self._ranks_setting, self._exchange = ranks, cast("peers.Exchange | None", None)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name: value is {name!r}; must be a str, or None for the last part of loader.path")
        self._fix(name=os.path.basename(loader.path) or loader.path if name is None else name, loader=loader,
                  node=socket.gethostname())
        self._gpu = gpus.Gpu(None)
        self._cgroup, self._n_cores = machine.Cgroup(), n_cores()
        self._new: collections.deque[Reading] = collections.deque(maxlen=KEPT)
        self._thread: threading.Thread | None = None
        self._stop, self._finished = threading.Event(), False
        self._complained: set[tuple[int, str, str]] = set()
        self._latest: Reading | None = None
        self._history = History()
        self._pid = os.getpid()

    # ---- life ----------------------------------------------------------------------------------------------

    def start(self) -> Monitor:
        """Begin to watch, and return the Monitor; `with` and wrap() call it. Raises PenstockError if it was started
        before, or the loader is closed."""
        if self._thread is not None or self._finished:
            raise PenstockError("this Monitor was started before (make another one)")
        if os.getpid() != self._pid:
            raise PenstockError("this Monitor was made before fork (make one in the process that trains)")
        self._first = self._last = self._line_from = self._sample()
        for one in self._sinks:
            begin = getattr(one, "begin", None)
            if callable(begin):
                begin()
        # It is asked here, because CUDA's current device belongs to the thread that trains.
        self._device = self._found_gpu()
        self._gpu_looks: list[gpus.GpuReading] = []
        try:
            self._exchange = peers.exchange_of(self._ranks_setting, self.name)
        except Exception as error:  # torch.distributed may have no store, and the run must go on
            self._complain(peers.exchange_of, error)
        self._stragglers: tuple[str, ...] = ()
        self._silent: tuple[str, ...] = ()
        self._is_second_node: bool | None = None  # whether this rank is the first of the second node; None: not known yet
        self._silence, self._own_run = peers.Silence(), peers.Run(time.time(), "")
        self._shown: Reading | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-monitor", daemon=True)
        self._thread.start()
        _running.add(self)
        return self

    def close(self) -> None:
        """Take a last look, write the last line and stop; do nothing if it was not started. Waits at most 5 s for a
        sink that hangs. It may be called again, and in a child of fork, where it does nothing."""
        if os.getpid() != self._pid or self._finished:
            return
        thread = self._thread
        if thread is None:  # not started
            return
        self._stop.set()
        if thread is threading.current_thread():  # a sink calls it
            return
        thread.join(PATIENCE)
        if thread.is_alive():
            log.warning("penstock: the Monitor of %s did not end within %g s; one of its sinks hangs", escaped(self.name), PATIENCE)
        self._finished = True
        _running.discard(self)

    def __enter__(self) -> Monitor:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def wrap(self, batches: Iterable[T]) -> Iterator[T]:
        """Iterate over the batches, and watch meanwhile. It keeps no batch."""
        with self:
            yield from batches

    def __reduce__(self) -> Any:
        raise TypeError("a penstock.Monitor has a thread and cannot be pickled or sent to another process")

    # ---- what it found ---------------------------------------------------------------------------------------

    @property
    def latest(self) -> Reading | None:
        """The newest look's Reading; None before the first look."""
        return self._latest

    def new(self) -> dict[str, float] | None:
        """Return Reading.scalars() of a line that was not returned before, the oldest first; None: there is none. The
        newest 1024 lines wait. It is for trackers that the loop itself must call:

            if (numbers := monitor.new()) is not None:
                wandb.log(numbers)            # or mlflow.log_metrics(numbers, step=step)
        """
        try:
            return self._new.popleft().scalars()
        except IndexError:
            return None

    def view(self) -> RankView | None:
        """Read the newest lines of all ranks and compare them, as a penstock.monitor.RankView. None: there is no place
        with lines of other ranks. It asks the store or the folder each time. Thread: any."""
        if self._exchange is None:
            return None
        return peers.compared(peers.looks_of(self._exchange, range(self._process_world())), self._process_world(), time.time())

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the figures so far as one HTML page, which needs no other file and no network: throughput over time,
        the time of threads, distributions of waits, predictions, machine and settings. It may be called while the loop
        runs, and after close(). The command `penstock page` draws the page, in some 0.1 s.

        Raises PenstockError if there is no reading yet, the page cannot be written, or the command is not found; the
            message says what to do. The Monitor goes on then, and an older file stays.
        """
        from . import page
        points = self._history.points()
        if not points:
            raise PenstockError(f"this Monitor has no reading yet (it looks every {self._look_every:g} s; call report() after "
                                "that, or after close())")
        first, last = self._first, self._last  # the thread replaces both
        interval = Interval.between(first.stats, last.stats, max(last.clock - first.clock, 1e-9))
        page.write(path, self.loader, self.name, self.node, page.Found(interval, last.stats, last.whole, last.counts), points)

    def __repr__(self) -> str:
        state = "not started" if self._thread is None else "ended" if not self._thread.is_alive() else "running"
        return f"<penstock.Monitor of {self.name!r}: {state}, a line every {self._every:g} s>"

    # ---- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Look every `look` seconds. Once this thread runs, only it calls the methods below."""
        if self._exchange is not None:
            self._guarded(self._begin_to_compare, self._exchange)
        due = time.monotonic() + self._look_every
        try:
            while True:
                last = self._stop.wait(max(0.0, due - time.monotonic()))
                if not self._guarded_look(last) or last:
                    return
                due = max(due + self._look_every, time.monotonic())
        finally:
            self._end()

    def _guarded_look(self, last: bool) -> bool:
        """Look; return whether to go on. Exceptions are logged, because the training must not end by them."""
        try:
            sample = self._sample()
        except (PenstockError, SystemExit):  # the loader is closed, or the interpreter ends
            if self._last is not self._line_from:
                self._guarded(self._write_line, self._last, self._gpu_looks)
            return False
        except Exception as error:
            self._complain(self, error)
            return True
        self._guarded(self._look, sample)
        if last or sample.clock - self._line_from.clock >= self._every - self._look_every / 2:
            self._guarded(self._write_line, sample, self._gpu_looks)
        return True

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:
            self._complain(function, error)

    def _complain(self, who: object, error: Exception) -> None:
        """Log an exception, once for each kind of it."""
        # A bound method is a new object at each access, so its object is taken.
        key = id(getattr(who, "__self__", who)), getattr(who, "__name__", ""), type(error).__name__
        if key not in self._complained:
            self._complained.add(key)
            text = f"the Monitor of {self.name}: {who} raised {type(error).__name__}: {error} (logged once)"
            log.warning("penstock: %s", escaped(text), exc_info=log.isEnabledFor(logging.DEBUG))

    def _end(self) -> None:
        if self._exchange is not None and self._shown is not None:
            with contextlib.suppress(Exception):  # the process with the store may have ended
                self._exchange.put(self._process_rank(), peers.text_of(self._own_run, self._shown, time.time(), self._every, ended=True))
                if self._own_run.kept:
                    self._exchange.end(self._own_run.began)
        if self._exchange is not None:
            self._exchange.close()
        self._gpu.close()
        for one in (*self._sinks, *self._on_alert):
            close = getattr(one, "close", None)
            if callable(close):
                self._guarded(close)

    def _sample(self) -> _Look:
        """Read the counters. Raises PenstockError if the loader is closed."""
        stats = self.loader.stats()
        tokens = None
        if self._tokens_so_far is not None:
            try:
                tokens = float(self._tokens_so_far())
            except Exception as error:
                self._complain(self._tokens_so_far, error)
        return _Look(time.monotonic(), time.time(), stats, machine.read(self._cgroup), self.loader.cursor, tokens,
                     self.loader.metrics("minute"), self.loader.metrics(), self.loader._handle.counts())

    def _look(self, sample: _Look) -> None:
        if self._device is None and self._gpu_setting == "auto":
            self._device = self._found_gpu()  # CUDA may have been initialised since
        if self._device is not None and self._gpu.device is None:
            self._gpu = gpus.Gpu(self._device)
        gpu = self._gpu.read()
        self._gpu_looks.append(gpu)
        reading = self._reading(self._last, sample, gpu)
        self._last = sample
        for rule in self._rules:
            alert = rule.look(reading)
            if alert is not None:
                alerting.send(alert, self._on_alert)
        raised = self._raised()
        reading = reading if reading.alerts == raised else self._with_alerts(reading, raised)
        self._history.add(reading)
        self._latest = reading
        self._give(reading, every_look=True)

    def _raised(self) -> tuple[str, ...]:
        return tuple(rule.name for rule in self._rules if rule.raised)

    @staticmethod
    def _with_alerts(reading: Reading, raised: tuple[str, ...]) -> Reading:
        return dataclasses.replace(reading, alerts=raised)

    def _give(self, reading: Reading, every_look: bool) -> None:
        for sink in self._sinks:
            if bool(getattr(sink, "every_look", False)) == every_look:
                try:
                    sink(reading)
                except Exception as error:
                    self._complain(sink, error)

    def _write_line(self, sample: _Look, looks: list[gpus.GpuReading]) -> None:
        """Write a line: the reading since the last line."""
        reading = self._reading(self._line_from, sample, averaged(looks) or self._gpu.read())
        self._line_from, self._gpu_looks = sample, []
        if self._exchange is not None:
            reading = self._shared(self._exchange, reading)
        self._new.append(reading)
        self._give(reading, every_look=False)
        if callable(self._line):
            self._line(str(reading))
        elif self._line and self._process_rank() == 0 and sys.stderr is not None:
            print(reading, file=sys.stderr, flush=True)

    def _shared(self, exchange: peers.Exchange, reading: Reading) -> Reading:
        """Leave a line's reading for the other ranks. Return the reading, with stragglers and silent ranks if this rank
        watches others."""
        if reading.waiting is not None or self._shown is None:  # without a step a reading has nothing to compare
            self._shown = reading
        if self._stop.is_set():  # _end() writes the last text
            return reading
        rank = self._process_rank()
        self._guarded(exchange.put, rank, peers.text_of(self._own_run, self._shown, reading.time, self._every, ended=False))
        if not self._n_watched(exchange):
            return reading
        self._guarded(self._compare, exchange, rank)
        return dataclasses.replace(reading, stragglers=self._stragglers, silent=self._silent)

    def _n_watched(self, exchange: peers.Exchange) -> int:
        """Return how many ranks, from 0 on, this one watches."""
        rank, local_rank = self._process_rank(), self.loader.ranks.local_rank
        if self._is_second_node is None and rank > 1 and local_rank == 0:
            with contextlib.suppress(Exception):  # the comparison reports it
                self._is_second_node = peers.begins_second_node(exchange, rank)
        is_second = self._is_second_node
        if is_second is None:  # correct if all nodes have equally many ranks
            is_second = local_rank == 0 and rank == self.loader.ranks.local_world
        return peers.n_watched(rank, self._process_world(), is_second)

    def _begin_to_compare(self, exchange: peers.Exchange) -> None:
        """Read the lines that an earlier run left. On rank 0, also find out whether the exchange ends with it."""
        earlier = dict[int, Any]()
        if exchange.outlives:
            with contextlib.suppress(Exception):  # the first line reports it
                earlier = peers.looks_of(exchange, range(self._process_world() if self._process_rank() == 0 else 2))
        self._silence = peers.Silence(earlier, is_last=self._process_rank() > 0)
        if self._process_rank() == 0:
            self._own_run = self._own_run._replace(kept=exchange.kept())

    def _compare(self, exchange: peers.Exchange, rank: int) -> None:
        """Compare the ranks that this one watches."""
        n = self._n_watched(exchange)
        self._stragglers = ()
        try:
            looks = peers.looks_of(exchange, range(n))
        except Exception:
            if self._ranks_setting == "auto" and distributed() is None:  # the training has ended
                self._silent = ()
            elif rank > 0:
                self._silent = self._silence.without_looks(time.monotonic(), self.node, exchange.has_ended) or self._silent
            raise
        self._silent = self._silence.sentences(looks, time.monotonic())
        if rank > 0 and 0 in looks and looks[0]["kept"] and not looks[0]["ended"]:
            exchange.watch(looks[0]["began"])
        if rank == 0:
            self._stragglers = peers.compared(looks, n, time.time()).stragglers

    # ---- parts of a reading --------------------------------------------------------------------------------------

    def _process_rank(self) -> int:
        group = distributed()
        return self.loader.ranks.rank if group is None else int(group.get_rank())

    def _process_world(self) -> int:
        group = distributed()
        return self.loader.ranks.world if group is None else int(group.get_world_size())

    def _found_gpu(self) -> int | str | None:
        """Return the setting gpu=, or the GPU that this process uses; None: there is none."""
        if self._gpu_setting != "auto":
            return self._gpu_setting
        found, why = gpus.which(self._bus_id(), self.loader.ranks.local_rank)
        if found is None:
            self._gpu.state = why
        return found

    def _bus_id(self) -> str | None:
        """Return the PCI bus id of the loader's device; None: batches are on the host."""
        from ctypes import byref, sizeof

        from .. import errors
        kind, index = self.loader._numbers["device"], self.loader._numbers["device_index"]
        if kind == _c.HOST:
            return None
        device = _c.Device(size=sizeof(_c.Device))
        if _c.lib.pstk_get_device(kind, index, byref(device), byref(errors.new())) < 0:
            return None
        return device.bus_id.decode() or None

    def _tokens_per_s(self, before: _Look, after: _Look, interval: Interval) -> float | None:
        if before.tokens is not None and after.tokens is not None:
            rate = (after.tokens - before.tokens) / interval.seconds
            return rate if math.isfinite(rate) else None
        if self._tokens_per_sample is None:
            return None
        return self._tokens_per_sample * interval.n_samples / interval.seconds

    def _mfu(self, samples_per_s: float, gpu: gpus.GpuReading) -> float | None:
        if self._flops is None:
            return None
        peak = self._peak
        if peak is None and gpu.name and not gpu.is_mig:
            peak = flops.peak_flops(gpu.name, self._dtype)
        return None if peak is None else self._flops * samples_per_s / peak

    def _reading(self, before: _Look, after: _Look, gpu: gpus.GpuReading) -> Reading:
        interval = Interval.between(before.stats, after.stats, max(after.clock - before.clock, 1e-9))
        samples_per_s = interval.n_samples / interval.seconds
        now, ranks, limit = after.machine, self.loader.ranks, verdict(interval)
        return Reading(
            time=after.time, seconds=interval.seconds, name=self.name, node=self.node, rank=ranks.rank, world=ranks.world,
            epoch=after.cursor[0], position=after.cursor[1], n_samples=interval.n_samples, n_batches=interval.n_batches,
            n_replacements=interval.n_replacements, samples_per_s=samples_per_s,
            read_bytes_per_s=interval.bytes_read / interval.seconds, verdict=limit, total=after.stats,
            pace=interval.pace, tokens_per_s=self._tokens_per_s(before, after, interval), step_ms=interval.step_ms,
            wait_ms=interval.wait_ms, waiting=interval.waiting, minute=after.minute, mfu=self._mfu(samples_per_s, gpu),
            read_p99_ms=after.minute.read.p99 / 1e6 if after.minute.read.n else None,
            cpu_cores=(now.cpu_s - before.machine.cpu_s) / interval.seconds, rss=now.rss, memory_used=now.memory_used,
            memory_limit=now.memory_limit, gpu=gpu,
            forecast=predicted(interval, limit, after.stats, self._n_cores), alerts=self._raised(), stragglers=self._stragglers,
            silent=self._silent)
