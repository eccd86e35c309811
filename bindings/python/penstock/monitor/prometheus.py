# SPDX-License-Identifier: Apache-2.0
"""Publish a Monitor's readings for Prometheus: as an endpoint, or as a text file for node_exporter.

prometheus_client writes both. The names follow https://prometheus.io/docs/practices/naming/: base units, counters with
_total. Every series has the labels data_set, node and rank.
"""
from __future__ import annotations

import errno
import operator
import os
import re
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import _optional, paths
from ..arguments import is_whole
from ..errors import PenstockError, SettingsError
from ..stats import ADVICE
from .reading import Reading
from .sinks import Sink

__all__ = ["Prometheus", "TextFile"]

LABELS = ("data_set", "node", "rank")
STALE = 300.0  # least time without a reading after which its series vanish; seconds
_ADDRESS = "the address of an interface, as '127.0.0.1', or '' for all"
PORTS = 64  # ports that on_taken="next" tries


class _Metric(NamedTuple):
    """One metric: its name without penstock_, its help text, and a function that takes its value from a Reading; the
    value None: the reading has none."""

    name: str
    help: str
    value: Any


def _ms(value: float | None) -> float | None:
    return None if value is None else value / 1e3


_COUNTERS = (
    _Metric("samples", "Samples that the loop got since open.", lambda r: r.total.n_samples),
    _Metric("batches", "Batches that the loop got since open.", lambda r: r.total.n_batches),
    _Metric("replacements", "Bad samples that were replaced since open.", lambda r: r.total.n_replacements),
    _Metric("read_bytes", "Bytes read from the storage since open.", lambda r: r.total.bytes_read),
    _Metric("reads", "Reads from the storage since open.", lambda r: r.total.n_reads),
    _Metric("slow_reads", "Reads since open that were repeated by another path.", lambda r: r.total.n_slow_reads),
    _Metric("waited_seconds", "Time since open in which the loop waited for data.",
            lambda r: r.total.stage_consumer.starved_ns / 1e9),
    _Metric("step_busy_seconds", "Time since open that the loop spent between batches.",
            lambda r: r.total.stage_consumer.busy_ns / 1e9),
)
_GAUGES = (
    _Metric("samples_per_second", "Samples in a second of the last reading.", lambda r: r.samples_per_s),
    _Metric("pace_samples_per_second", "The same without pauses of the loop, such as an evaluation.", lambda r: r.pace),
    _Metric("tokens_per_second", "Tokens in a second of the last reading.", lambda r: r.tokens_per_s),
    _Metric("waiting_ratio", "Share of the loop's time in which it waited for data, 0 to 1.", lambda r: r.waiting),
    _Metric("step_seconds", "A step with its wait, on average of the last reading.", lambda r: _ms(r.step_ms)),
    _Metric("step_wait_seconds", "The wait for data in a step, on average.", lambda r: _ms(r.wait_ms)),
    _Metric("epoch", "Epoch of the next batch.", lambda r: r.epoch),
    _Metric("position", "Position of the next batch in the order of its epoch.", lambda r: r.position),
    _Metric("world", "Ranks of the loader.", lambda r: r.world),
    _Metric("model_flops_utilization_ratio", "Share of the GPU's peak FLOPs that the model used.", lambda r: r.mfu),
    _Metric("cpu_cores", "Cores that the process kept busy.", lambda r: r.cpu_cores),
    _Metric("resident_memory_bytes", "Resident memory of the process.", lambda r: r.rss),
    _Metric("cgroup_memory_bytes", "Memory of the process's cgroup, without file pages.", lambda r: r.memory_used),
    _Metric("cgroup_memory_limit_bytes", "The limit of that cgroup.", lambda r: r.memory_limit),
    _Metric("reading_timestamp_seconds", "When this reading was taken, in seconds since 1970.", lambda r: r.time),
)
_GPU_GAUGES = (
    _Metric("gpu_utilization_ratio", "Share of time in which a kernel ran, 0 to 1.", lambda g: g.utilisation),
    _Metric("gpu_memory_used_bytes", "Memory in use on the GPU.", lambda g: g.memory_used),
    _Metric("gpu_memory_total_bytes", "Memory of the GPU.", lambda g: g.memory_total),
    _Metric("gpu_power_watts", "Power that the GPU draws.", lambda g: g.power_w),
    _Metric("gpu_power_limit_watts", "Power that the GPU may draw.", lambda g: g.power_limit_w),
    _Metric("gpu_sm_clock_hertz", "Clock of the SMs.", lambda g: None if g.sm_clock is None else g.sm_clock * 1e6),
    _Metric("gpu_pcie_received_bytes_per_second", "Traffic to the GPU.", lambda g: g.pcie_rx),
    _Metric("gpu_pcie_sent_bytes_per_second", "Traffic from the GPU.", lambda g: g.pcie_tx),
    _Metric("gpu_temperature_celsius", "Temperature of the GPU.", lambda g: g.temperature),
    _Metric("gpu_slowed", "1: the GPU is throttled for a reason that a person has to act on.",
            lambda g: None if g.throttle is None else int(bool(g.slowed))),
)
_STAGES = ("wait", "read", "decode", "copy")
_PERCENTILES = {"50": "p50", "95": "p95", "99": "p99"}


class _Collector:
    """The newest reading of each data set, node and rank, as a collector of prometheus_client."""

    def __init__(self) -> None:
        self.core = _optional.needed("prometheus_client.core", "penstock.monitor.prometheus", "prometheus-client")
        self._lock = threading.Lock()
        self._readings: dict[tuple[str, str, str], Reading] = {}

    def put(self, reading: Reading) -> None:
        with self._lock:
            self._readings[reading.name, reading.node, str(reading.rank)] = reading

    def collect(self) -> Iterator[Any]:
        """Yield the metrics. prometheus_client calls it in its threads."""
        now = time.time()
        with self._lock:
            for key in [key for key, one in self._readings.items() if now - one.time > max(STALE, 5 * one.seconds)]:
                del self._readings[key]
            readings = list(self._readings.items())
        if not readings:
            return
        for metrics, family in ((_COUNTERS, self.core.CounterMetricFamily), (_GAUGES, self.core.GaugeMetricFamily)):
            for metric in metrics:
                yield self._family(family, metric, [(key, metric.value(reading)) for key, reading in readings])
        gpus = [(key, reading.gpu) for key, reading in readings if reading.gpu is not None]
        for metric in _GPU_GAUGES:
            yield self._family(self.core.GaugeMetricFamily, metric, [(key, metric.value(gpu)) for key, gpu in gpus])
        yield from self._states(readings)

    @staticmethod
    def _family(family: Any, metric: _Metric, values: list[tuple[tuple[str, str, str], float | None]]) -> Any:
        found = family("penstock_" + metric.name, metric.help, labels=LABELS)
        for key, value in values:
            if value is not None:
                found.add_metric(key, float(value))
        return found

    def _states(self, readings: list[tuple[tuple[str, str, str], Reading]]) -> Iterator[Any]:
        gauge = self.core.GaugeMetricFamily
        limit = gauge("penstock_limit", "1: this stage limits the loader.", labels=(*LABELS, "stage"))
        raised = gauge("penstock_alert", "1: this alert of the Monitor is raised.", labels=(*LABELS, "alert"))
        spread = gauge("penstock_stage_seconds", "Percentiles of the last minute: wait for a batch, read and decode of a run "
                       "of rows, copy of a batch to the device.", labels=(*LABELS, "stage", "percentile"))
        for key, reading in readings:
            for stage in ADVICE:
                limit.add_metric((*key, stage), float(stage == reading.verdict))
            for name in reading.alerts:
                raised.add_metric((*key, name), 1.0)
            for stage in _STAGES:
                times = None if reading.minute is None else getattr(reading.minute, stage)
                for percentile, name in _PERCENTILES.items():
                    if times is not None and times.n:
                        spread.add_metric((*key, stage, percentile), getattr(times, name) / 1e9)
        yield limit
        yield raised
        yield spread


class Prometheus(Sink):
    """Serve the newest look of its Monitors at http://address:port/metrics, from threads of its own.

        with penstock.Monitor(loader, sinks=penstock.monitor.Prometheus(9400)):

    port: 1 to 65535, or 0 for any free port. The attribute `port` is the port in use. Each rank of a machine needs its
        own: 9400 + local rank.
    address: address or host name of an interface of this machine, IPv4 or IPv6; "": all interfaces, by IPv4, for a
        Prometheus server on another machine.
    on_taken: what happens if another program has the port: "error", or "next", which tries the next 63.

    One exporter may be the sink of several Monitors: it serves until the last of them has ended, and again with the
    next one. A series vanishes 5 minutes after its last reading, or later if readings are more than a minute long:
    after 5 times their length. In a child of fork it serves nothing.

    Raises MissingPackageError without prometheus_client, PenstockError if the port is taken, TypeError or SettingsError
    for a wrong argument.
    """

    _every_look = True
    address: str
    port: int

    def __init__(self, port: int = 9400, *, address: str = "", on_taken: str = "error") -> None:
        if not is_whole(port) or not 0 <= operator.index(port) <= 65535:
            raise SettingsError(f"port: value is {port!r}; must be a whole number from 0 to 65535 (0: any free port)")
        port = operator.index(port)
        if not isinstance(address, str):
            raise TypeError(f"address: value is {address!r}; must be {_ADDRESS}")
        if not isinstance(on_taken, str) or on_taken not in ("error", "next"):
            raise SettingsError(f"on_taken: value is {on_taken!r}; must be 'error' or 'next'")
        self._collector = _Collector()
        client = _optional.needed("prometheus_client", "penstock.monitor.Prometheus", "prometheus-client")
        self._registry = client.CollectorRegistry()
        self._registry.register(self._collector)
        self._serve, self._pid, self._users = client.start_http_server, os.getpid(), 0
        self._fix(address=address, port=port)
        self._on_taken = on_taken
        self._server: Any = None
        self._thread: Any = None
        self._open()
        _serving.add(self)

    def begin(self) -> None:
        """Count a Monitor that starts with this sink."""
        self._users += 1
        if self._server is None:
            self._open()

    def __call__(self, reading: Reading) -> None:
        self._collector.put(reading)

    def close(self) -> None:
        """Forget a Monitor with this sink that ended. Without Monitors the port is closed."""
        self._users = max(0, self._users - 1)
        server, thread = self._server, self._thread
        if self._users > 0 or server is None or os.getpid() != self._pid:
            return
        self._server = self._thread = None
        server.shutdown()
        server.server_close()
        thread.join(5)

    def _open(self) -> None:
        ports = range(self.port, min(self.port + (PORTS if self._on_taken == "next" and self.port else 1), 65536))
        for port in ports:
            try:
                opened = self._serve(port, self.address or "0.0.0.0", self._registry)
            except (OSError, ValueError) as error:  # ValueError: the text cannot be a host name
                if getattr(error, "errno", None) == errno.EADDRINUSE:
                    continue
                raise self._refusal_of(port, error) from None
            if opened is None:
                raise PenstockError("penstock.monitor.Prometheus needs prometheus-client 0.19 or newer (pip install -U "
                                    "prometheus-client)")
            self._server, self._thread = opened
            self._fix(port=int(self._server.server_port))
            return
        others = f", nor are the next {len(ports) - 1}" if len(ports) > 1 else ""
        raise PenstockError(f"port: value is {ports[0]}, which is not free{others}; must be a port that no other program "
                            "has (give each rank its own, or on_taken='next')")

    def _refusal_of(self, port: int, error: OSError | ValueError) -> Exception:
        """Return the exception for a port that cannot be opened, with advice."""
        if isinstance(error, (socket.gaierror, ValueError)) or error.errno == errno.EADDRNOTAVAIL:
            return SettingsError(f"address: value is {self.address!r}; must be {_ADDRESS} (`ip address` lists those of this machine)")
        if error.errno == errno.EACCES:
            return SettingsError(f"port: value is {port}, which this user may not open; must be another (give one from 1024 on)")
        return PenstockError(f"port: value is {port}, which cannot be opened ({error.strerror}); must be a free port")

    def _forget(self) -> None:
        """In a child of fork, close the inherited socket, so that only the parent has the port."""
        if self._server is not None:
            self._server.socket.close()
            self._server = self._thread = None

    def __repr__(self) -> str:
        return f"Prometheus({self.port}, address={self.address!r})"


_serving: weakref.WeakSet[Prometheus] = weakref.WeakSet()


def _forget_all() -> None:
    for one in list(_serving):
        one._forget()


os.register_at_fork(after_in_child=_forget_all)


class TextFile(Sink):
    """Write each line's reading for node_exporter's textfile collector, as FOLDER/penstock-NAME-rankR.prom.

        node_exporter --collector.textfile.directory=FOLDER

    The file is replaced in one step, and removed at the end of the Monitor. A killed process leaves it; its
    penstock_reading_timestamp_seconds is then old. Each Monitor needs a TextFile of its own.

    folder: an existing folder.

    Raises MissingPackageError without prometheus_client, SettingsError if there is no such folder.
    """

    folder: str
    path: str | None

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._fix(folder=paths.local(folder, "folder"), path=None)
        if not os.path.isdir(self.folder):
            raise SettingsError(f"folder: value is {self.folder!r}; must be a folder that exists (node_exporter's "
                                "--collector.textfile.directory)")
        self._collector = _Collector()
        client = _optional.needed("prometheus_client", "penstock.monitor.TextFile", "prometheus-client")
        self._registry, self._write = client.CollectorRegistry(), client.write_to_textfile
        self._registry.register(self._collector)

    def __call__(self, reading: Reading) -> None:
        self._collector.put(reading)
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", reading.name)[:100]
        path = os.path.join(self.folder, f"penstock-{name}-rank{reading.rank}.prom")
        self._fix(path=path)
        self._write(path, self._registry)

    def close(self) -> None:
        """Remove the file."""
        path = self.path
        self._fix(path=None)
        if path is not None:
            os.unlink(path)

    def __repr__(self) -> str:
        return f"TextFile({self.folder!r})"
