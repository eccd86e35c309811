# SPDX-License-Identifier: Apache-2.0
"""penstock.monitor.Prometheus and TextFile: what is scraped is what the counters are. And contrib/: the rules fire, and no
expression names a metric that nobody gives."""
import contextlib
import dataclasses
import errno
import json
import math
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import urllib.parse
import urllib.request

import penstock
import sets
from penstock import monitor
from penstock.monitor import prometheus
from test_monitor import QUICK, opened

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    raise unittest.SkipTest("prometheus_client is not installed") from None

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib"
BAD_NAME = 'a "b"\n\\c'
FULL_GPU = monitor.GpuReading("ok", name="g", utilisation=0.5, memory_used=1, memory_total=2, power_w=3.0, power_limit_w=4.0,
                              sm_clock=5, throttle=("hw_slowdown",), pcie_rx=6, pcie_tx=7, temperature=8)


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def values(text):
    """Return {name: [(labels, value)]} by the library's own parser."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def tool(name):
    path = shutil.which(name)
    if path is None:
        if os.environ.get("CI"):
            raise AssertionError(f"{name} is not installed")
        raise unittest.SkipTest(f"{name} is not installed")
    return path


def read_all(loader):
    for _ in loader.epoch(0):
        pass
    time.sleep(0.2)  # a look


class Endpoint(unittest.TestCase):
    def exporter(self, port=0, **more):
        found = monitor.Prometheus(port, address="127.0.0.1", **more)
        self.addCleanup(found.close)
        return found

    def test_it_serves_the_counters(self):
        loader, exporter = opened(), self.exporter()
        with penstock.Monitor(loader, sinks=exporter, name=BAD_NAME, alerts=True, **QUICK):
            read_all(loader)
            found, stats = values(scrape(exporter.port)), loader.stats()
        labels = {"data_set": BAD_NAME, "node": socket.gethostname(), "rank": "0"}
        for name, wanted in (("samples", stats.n_samples), ("batches", stats.n_batches), ("replacements", 0),
                             ("waited_seconds", stats.stage_consumer.starved_ns / 1e9)):
            self.assertEqual(found[f"penstock_{name}_total"], [(labels, wanted)], name)
        self.assertEqual(sum(value for _, value in found["penstock_limit"]), 1)
        self.assertIn(({**labels, "stage": "wait", "percentile": "99"}, loader.metrics("minute").wait.p99 / 1e9),
                      found["penstock_stage_seconds"])
        self.assertNotIn("penstock_gpu_power_watts", found)
        loader.close()

    def test_the_port_is_free_after_the_last_monitor(self):
        loader, exporter = opened(), self.exporter()
        first, second = (penstock.Monitor(loader, sinks=exporter, name=name, **QUICK) for name in "ab")
        with first:
            with second:
                read_all(loader)
                found = values(scrape(exporter.port))["penstock_samples_total"]
                self.assertEqual({labels["data_set"] for labels, _ in found}, {"a", "b"})
            scrape(exporter.port)
        with self.assertRaises(OSError):
            scrape(exporter.port)
        with penstock.Monitor(loader, sinks=exporter, **QUICK):  # and again
            scrape(exporter.port)
        loader.close()

    def test_one_that_was_closed_first_serves_until_the_last(self):
        loader, exporter = opened(), self.exporter()
        exporter.close()
        with penstock.Monitor(loader, sinks=exporter, **QUICK):
            with penstock.Monitor(loader, sinks=exporter, **QUICK):
                pass
            scrape(exporter.port)
        loader.close()

    def test_a_taken_port_is_an_error_or_the_next_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            with self.assertRaisesRegex(penstock.PenstockError, f"port: value is {port}, which is not free; must be"):
                self.exporter(port)
            self.assertGreater(self.exporter(port, on_taken="next").port, port)

    def test_wrong_settings_are_named(self):
        for settings, message in (({"port": -1}, "port: value is -1"), ({"port": 65536}, "port: value is 65536"),
                                  ({"port": True}, "port: value is True"), ({"port": "9400"}, "port: value is '9400'"),
                                  ({"on_taken": "ask"}, "on_taken: value is 'ask'")):
            with self.assertRaisesRegex(penstock.SettingsError, message):
                monitor.Prometheus(**settings)
        for address in ("192.0.2.1", "no-such-host.invalid", "x" * 70, "a\0b", "1.2.3.4.5", "::g"):
            with self.assertRaisesRegex(penstock.SettingsError, f"address: value is {re.escape(repr(address))}; must be the address of an interface"):
                monitor.Prometheus(0, address=address)
        for address in (5, None, b"127.0.0.1", ("127.0.0.1",)):
            with self.assertRaisesRegex(TypeError, f"address: value is {re.escape(repr(address))}; must be"):
                monitor.Prometheus(0, address=address)

    def test_a_port_that_cannot_be_opened_is_named(self):
        for code, kind, message in ((errno.EACCES, penstock.SettingsError, r"port: value is 80, which this user may not open; must be another"),
                                    (errno.EMFILE, penstock.PenstockError, r"port: value is 80, which cannot be opened \(Too many open files\); must be")):
            with unittest.mock.patch("prometheus_client.start_http_server", side_effect=OSError(code, os.strerror(code))):
                with self.assertRaisesRegex(kind, message):
                    monitor.Prometheus(80)

    def test_a_child_of_fork_does_not_keep_the_port(self):
        exporter = self.exporter()
        port = exporter.port
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(reader, 1)
            os._exit(0)
        exporter.begin()
        exporter.close()
        try:
            with socket.create_server(("127.0.0.1", port)):
                pass
        finally:
            os.write(writer, b"x")
            os.waitpid(child, 0)
            os.close(reader)
            os.close(writer)

    def test_a_series_vanishes_when_its_readings_end(self):
        collector = prometheus._Collector()
        collector.put(full_reading(time=time.time() - 301))
        self.assertEqual(list(collector.collect()), [])

    def prometheus(self, ports, rules=None):
        """Start a Prometheus that scrapes these ports each second. Return a function of an expression that gives its value."""
        program = tool("prometheus")
        folder = tempfile.mkdtemp(prefix="penstock-prometheus-")
        self.addCleanup(shutil.rmtree, folder, True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        config = pathlib.Path(folder, "prometheus.yml")
        targets = [f"127.0.0.1:{one}" for one in ports]
        config.write_text("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
                          f"rule_files: {['rules.yml'] if rules else []}\n"
                          f"scrape_configs:\n  - job_name: penstock\n    static_configs:\n      - targets: {targets}\n")
        if rules:
            pathlib.Path(folder, "rules.yml").write_text(rules)
        with open(os.path.join(folder, "log"), "wb") as log:
            server = subprocess.Popen([program, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                                       f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        self.addCleanup(server.wait, 20)
        self.addCleanup(server.terminate)

        def query(expression):
            text = urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode(
                {"query": expression}), timeout=5).read()
            return json.loads(text)["data"]["result"]
        return query

    def wait_for(self, query, expression, is_right):
        """Return the answer, once it is right; after 60 s the last one."""
        end, found = time.monotonic() + 60, None
        while time.monotonic() < end:
            with contextlib.suppress(OSError):  # it has not started
                found = query(expression)
                if is_right(found):
                    break
            time.sleep(0.3)
        return found

    def test_a_prometheus_scrapes_a_running_loop(self):
        loader, exporter = opened(), self.exporter()
        query = self.prometheus([exporter.port])
        with penstock.Monitor(loader, sinks=exporter, name=BAD_NAME, **QUICK):
            read_all(loader)
            found = self.wait_for(query, "penstock_samples_total", bool)
            self.assertEqual([(one["metric"]["data_set"], float(one["value"][1])) for one in found],
                             [(BAD_NAME, loader.stats().n_samples)])
            for expression in dashboard():
                query(expression)  # an error for one that does not parse
        loader.close()

    def test_rules_page_for_a_stopped_a_hanging_and_a_killed_process(self):
        """The rules of contrib/, with seconds for their minutes."""
        rules = (CONTRIB / "prometheus/penstock.rules.yml").read_text()
        for long, short in (("10m", "8s"), ("[1h]", "[60s]"), ("for: 2m", "for: 1s")):
            self.assertIn(long, rules)
            rules = rules.replace(long, short)
        tool("prometheus")
        started = [subprocess.Popen([sys.executable, __file__, "rank", str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True) for rank in range(2)]
        try:
            ports = [int(one.stdout.readline()) for one in started]
            self.check_pages(self.prometheus(ports, rules), started, ports)
        finally:
            for process in started:
                process.kill()
                process.wait()
                process.stdin.close()
                process.stdout.close()

    def check_pages(self, query, started, ports):
        firing = 'ALERTS{alertstate="firing", alertname=~"PenstockNoBatch|PenstockRankGone|PenstockDown"}'

        def alerts(wanted):
            found = self.wait_for(query, firing, lambda found: names(found) == wanted)
            self.assertEqual(names(found), wanted)

        def names(found):
            return {(one["metric"]["alertname"][8:], one["metric"].get("rank") or one["metric"]["instance"]) for one in found}

        self.assertTrue(self.wait_for(query, "increase(penstock_samples_total[8s]) > 0 and penstock_samples_total offset 8s",
                                      lambda found: len(found) == 2))
        alerts(set())
        started[1].send_signal(signal.SIGSTOP)
        alerts({("RankGone", "1"), ("Down", f"127.0.0.1:{ports[1]}")})
        started[1].send_signal(signal.SIGCONT)
        alerts(set())
        started[0].stdin.write("hang\n")
        started[0].stdin.flush()
        alerts({("NoBatch", "0")})
        started[0].kill()
        alerts({("RankGone", "0"), ("Down", f"127.0.0.1:{ports[0]}")})


class Text(unittest.TestCase):
    def test_the_file_has_the_line_and_is_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            loader, written = opened(), []
            sink = monitor.TextFile(folder)
            with penstock.Monitor(loader, sinks=[sink, lambda reading: written.append(pathlib.Path(sink.path).read_text())],
                                  name="a/b c", **QUICK):
                read_all(loader)
                # The next text may be just being written, under another name.
                self.assertEqual([name for name in os.listdir(folder) if name.endswith(".prom")], ["penstock-a-b-c-rank0.prom"])
            self.assertEqual(os.listdir(folder), [])
            loader.close()
        self.assertEqual(values(written[-1])["penstock_samples_total"][0][0]["data_set"], "a/b c")

    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(penstock.SettingsError, "folder: value is '/no/such'; must be a folder that exists"):
            monitor.TextFile("/no/such")
        with self.assertRaisesRegex(TypeError, "folder: value is a bool"):
            monitor.TextFile(True)


def full_reading(**more):
    """Return a reading with a value for every metric."""
    loader = opened()
    with penstock.Monitor(loader, **QUICK) as watching:
        read_all(loader)
    loader.close()
    minute = watching.latest.minute
    minute = dataclasses.replace(minute, **{stage: dataclasses.replace(minute.wait, n=1) for stage in
                                            ("wait", "read", "decode", "copy")})
    known = dict.fromkeys(("tokens_per_s", "mfu", "read_p99_ms", "memory_used", "memory_limit", "waiting", "pace", "step_ms",
                           "wait_ms"), 1.0)
    return dataclasses.replace(watching.latest, **{**known, "gpu": FULL_GPU, "minute": minute, "alerts": ("Starved",), **more})


def dashboard():
    """Return the expressions of the Grafana dashboard, with values for its variables."""
    panels = json.loads((CONTRIB / "grafana/penstock.json").read_text())["panels"]
    found = [target["expr"] for panel in panels for target in panel["targets"]]
    for variable, value in (("$data_set", ".*"), ("$node", ".*"), ("$__rate_interval", "1m"), ("$__range", "1h")):
        found = [one.replace(variable, value) for one in found]
    return found


class Contrib(unittest.TestCase):
    def given(self):
        from prometheus_client import CollectorRegistry, generate_latest
        collector, registry = prometheus._Collector(), CollectorRegistry()
        collector.put(full_reading())
        registry.register(collector)
        return generate_latest(registry).decode()

    def test_every_metric_has_a_value_and_passes_promtool(self):
        text = self.given()
        for name, found in values(text).items():
            for _, value in found:
                self.assertTrue(math.isfinite(value), name)
        self.assertEqual({line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}, set(values(text)))
        done = subprocess.run([tool("promtool"), "check", "metrics"], input=text, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, 0)

    def test_the_rules_fire_and_are_quiet(self):
        folder = CONTRIB / "prometheus"
        for command in (["check", "config", "prometheus.yml"], ["check", "rules", "penstock.rules.yml"],
                        ["test", "rules", "penstock.rules.test.yml"]):
            done = subprocess.run([tool("promtool"), *command], cwd=folder, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_no_expression_names_a_metric_that_is_not_there(self):
        rules = re.findall(r"penstock_\w+", (CONTRIB / "prometheus/penstock.rules.yml").read_text())
        used = set(rules).union(*(re.findall(r"penstock_\w+", one) for one in dashboard()))
        self.assertEqual(used - set(values(self.given())), set())
        self.assertGreater(len(used), 15)

    def test_the_page_has_every_metric_and_rule(self):
        page = (CONTRIB.parent / "docs/how-to/prometheus.md").read_text()
        self.assertEqual(set(values(self.given())) - set(re.findall(r"penstock_\w+", page)), set())
        rules = re.findall(r"alert: (\w+)", (CONTRIB / "prometheus/penstock.rules.yml").read_text())
        named = set(re.findall(r"`(Penstock\w+)`", page))
        self.assertEqual(named - set(rules), set())
        self.assertLessEqual({"PenstockNoBatch", "PenstockRankGone", "PenstockDown", "PenstockSilent"}, named)

    def test_the_dashboard_has_what_grafana_requires(self):
        board = json.loads((CONTRIB / "grafana/penstock.json").read_text())
        self.assertEqual(board["schemaVersion"], 38)
        panels, taken = board["panels"], set()
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        for panel in panels:
            self.assertIn(panel["type"], ("stat", "timeseries"))
            self.assertTrue(panel["title"] and panel["description"] and panel["fieldConfig"]["defaults"]["unit"])
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertLessEqual(at["x"] + at["w"], 24)
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells
            self.assertEqual(len({target["refId"] for target in panel["targets"]}), len(panel["targets"]))
        self.assertEqual([one["name"] for one in board["templating"]["list"]], ["source", "data_set", "node"])


def one_rank(rank):
    """A rank of test_rules_page_for_...: it prints its port. A line of the standard input makes a step hang."""
    exporter = monitor.Prometheus(0, address="127.0.0.1")
    with opened(ranks=penstock.Ranks(rank, 2)) as loader, penstock.Monitor(loader, sinks=exporter, name="r", **QUICK):
        print(exporter.port, flush=True)
        epoch = 0
        while True:
            for _ in loader.epoch(epoch):
                if select.select([sys.stdin], [], [], 0.002)[0]:
                    time.sleep(600)
            epoch += 1


if __name__ == "__main__":
    one_rank(int(sys.argv[2])) if sys.argv[1:2] == ["rank"] else unittest.main()
