# SPDX-License-Identifier: Apache-2.0
"""Alerts of penstock.monitor: each is raised once and resolved once, and none comes where nothing is wrong."""
import dataclasses
import contextlib
import http.server
import json
import logging
import math
import os
import socket
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock

import penstock
import sets
from penstock import monitor
from penstock.monitor import alerts
from test_monitor import QUICK, opened

logging.getLogger("penstock.monitor").addHandler(logging.NullHandler())


def reading(**values):
    """Return a reading of 5 s in which all was well."""
    names = {one.name: None for one in dataclasses.fields(monitor.Reading)}
    total = types.SimpleNamespace(slot_memory=1e6, io_memory=0, index_memory=0, block_memory=0)
    names.update(time=0, seconds=5, name="train", node="n1", rank=3, world=8, n_samples=500, n_batches=10, n_replacements=0, pace=100.0,
                 waiting=0.01, verdict="consumer", gpu=monitor.GpuReading("ok", utilisation=0.97, throttle=("sw_power_cap",)),
                 memory_used=50, memory_limit=100, read_p99_ms=2.0, total=total, alerts=(), stragglers=(), silent=())
    return monitor.Reading(**{**names, **values})


def gpu(**values):
    return monitor.GpuReading("ok", **values)


# Each rule has a reading that it objects to, one between the limits, and one that is well again.
CASES = (
    (lambda: monitor.Starved(0.2, seconds=20), {"waiting": 0.5, "verdict": "storage"}, {"waiting": 0.15}, {"waiting": 0.05}),
    (lambda: monitor.Slow(0.5, seconds=20, n_least=3), {"pace": 20.0, "verdict": "decode"}, {"pace": 60.0}, {"pace": 99.0}),
    (lambda: monitor.SlowReads(50, seconds=20), {"read_p99_ms": 80.0}, {"read_p99_ms": 45.0}, {"read_p99_ms": 2.0}),
    (lambda: monitor.GpuIdle(0.5, seconds=20), {"gpu": gpu(utilisation=0.2)}, {"gpu": gpu(utilisation=0.6)},
     {"gpu": gpu(utilisation=0.9)}),
    (lambda: monitor.Throttled(seconds=20), {"gpu": gpu(throttle=("hw_slowdown",), sm_clock=900)}, {"gpu": gpu()},
     {"gpu": gpu(throttle=("gpu_idle",))}),
    (lambda: monitor.NearMemoryLimit(0.9, seconds=20), {"memory_used": 95}, {"memory_used": 85}, {"memory_used": 70}),
)


class Rules(unittest.TestCase):
    def feed(self, rule, *parts):
        """Feed the readings of each part, (n readings, what is other in them). Return the changes with the number of
        their reading."""
        found, n = [], 0
        for count, values in parts:
            for _ in range(count):
                n += 1
                alert = rule.look(reading(time=5.0 * n, **values))
                if alert is not None:
                    found.append((n, alert.state))
        return found

    def test_raised_once_and_resolved_once(self):
        for make, bad, between, good in CASES:
            with self.subTest(make().name):
                self.assertEqual(self.feed(make(), (50, {}), (20, bad), (20, between), (20, good)), [
                    (54, "raised"), (94, "resolved")])
                self.assertEqual(self.feed(make(), (10, {}), *[(3, bad), (1, {})] * 5), [])  # never for 20 s
                self.assertEqual(self.feed(make(), (10, {}), (10, between), (10, good)), [])

    def test_text_has_who_verdict_and_advice(self):
        for make, bad, _, _ in CASES:
            rule = make()
            for n in range(4):
                rule.look(reading(time=5.0 * n))
            found = [alert for n in range(4, 9) if (alert := rule.look(reading(time=5.0 * n, **bad)))]
            self.assertEqual(len(found), 1)
            for part in ("train on n1, rank 3: ", f"Verdict: {found[0].verdict}: ", rule.name):
                self.assertIn(part, found[0].text)
            self.assertEqual(json.loads(json.dumps(found[0].to_dict()))["text"], str(found[0]))

    def test_text_is_one_line(self):
        """The text is one line, whatever the names are; so is the log of a receiver that fails."""
        rule = monitor.Straggler(seconds=0)
        alert = rule.look(reading(time=5.0, name="\x1b[1m", node="a\nb", stragglers=("rank 1 on x",)))
        self.assertIn(r"Straggler: \x1b[1m on a\x0ab, rank 3: 1 straggler", alert.text)

        def receiver(_):
            raise ValueError("a\nb \x1b")
        with self.assertLogs("penstock.monitor") as logged:
            alerts.send(alert, [receiver])
        self.assertEqual([record.getMessage().isprintable() for record in logged.records], [True, True])
        self.assertIn(r"ValueError: a\x0ab \x1b", logged.output[1])

    def test_replacements_at_once(self):
        bad = {"n_replacements": 3}
        self.assertEqual(self.feed(monitor.Replacements(seconds=20), (5, {}), (2, bad), (9, {}), (1, bad)), [
            (6, "raised"), (11, "resolved"), (17, "raised")])
        self.assertEqual(self.feed(monitor.Replacements(5), (5, bad)), [])

    def test_no_batch(self):
        none = {"n_batches": 0, "waiting": None, "pace": None, "verdict": "unknown"}
        self.assertEqual(self.feed(monitor.NoBatch(seconds=20), (50, {}), (9, none), (1, {}), (4, none), (1, {}), (5, none)), [
            (55, "raised"), (60, "resolved"), (70, "raised")])
        self.assertEqual(self.feed(monitor.NoBatch(seconds=20), (5, none)), [(5, "raised")])  # no batch at all
        for more, words in ((none, f": no batch for 25 s. The loop did not ask for a batch: .*py-spy dump --pid {os.getpid()} "),
                            ({**none, "waiting": 0.99, "verdict": "storage"}, "The loop asked for a batch and waits for it. Verdict: storage: ")):
            rule = monitor.NoBatch(seconds=20)
            *_, alert = [rule.look(reading(time=5.0 * n, **more)) for n in range(5)]
            self.assertRegex(alert.text, words)
        self.assertEqual(repr(rule), "NoBatch(seconds=20)")

    def test_a_silent_rank(self):
        silent = {"silent": ("rank 3 on n2 is silent: no line for 200 s",)}
        self.assertEqual(self.feed(monitor.SilentRank(), (5, {}), (9, silent), (9, {}), (1, silent)), [
            (6, "raised"), (15, "resolved"), (24, "raised")])
        self.assertRegex(monitor.SilentRank().look(reading(**silent)).text, ": rank 3 on n2 is silent: no line for 200 s. The process")

    def test_quiet_where_nothing_is_known_or_wrong(self):
        unknown = {"waiting": None, "pace": None, "read_p99_ms": None, "gpu": None, "memory_used": None}
        for rule in (*monitor.defaults(), monitor.SlowReads(50)):
            self.assertEqual(self.feed(rule, (50, {}), (50, unknown), (50, {})), [])

    def test_thresholds(self):
        for wrong in (math.nan, math.inf, -1, 0):
            for make in (monitor.Starved, monitor.Slow, monitor.SlowReads, monitor.GpuIdle, monitor.NearMemoryLimit):
                with self.assertRaisesRegex(penstock.SettingsError, make.__name__ + r"\..*: value is .*must be a number above 0"):
                    make(wrong)
            if wrong != 0:
                for make in (monitor.Starved, monitor.Throttled, monitor.Replacements, monitor.NoBatch):
                    with self.assertRaises(penstock.SettingsError):
                        make(seconds=wrong)
        for make in (lambda: monitor.Starved(1.5), lambda: monitor.Starved(0.2, resolve=0.3), lambda: monitor.Slow(n_least=0),
                     lambda: monitor.GpuIdle(0.5, resolve=0.2), lambda: monitor.Replacements(-1)):
            self.assertRaises(penstock.SettingsError, make)
        self.assertRaises(TypeError, monitor.Starved, "x")
        for make in (monitor.Starved, monitor.Slow, monitor.SlowReads, monitor.GpuIdle, monitor.NearMemoryLimit,
                     monitor.Replacements):
            for wrong in (True, "0.2", 1j):
                self.assertRaisesRegex(TypeError, r"value is .*; must be a number above 0", make, wrong)
                self.assertRaisesRegex(TypeError, "seconds: value is", monitor.Throttled, seconds=wrong)
        self.assertRaisesRegex(TypeError, "Starved.resolve: value is True", monitor.Starved, 1, resolve=True)
        self.assertRaises(penstock.SettingsError, monitor.Starved, seconds=10**400)
        self.assertRaisesRegex(penstock.SettingsError, "Slow.n_looks: value is .*at most 100,000", monitor.Slow, n_looks=9**99)
        self.assertRaisesRegex(TypeError, "Slow.n_looks: value is .x.; must be a whole number", monitor.Slow, n_looks="x")


class Server:
    """Takes requests, until it is stopped. code, reason, headers: of its answers. taken: what was posted."""

    def __init__(self, code=204, reason=None, **headers):
        self.taken, self.requests = taken, requests = [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                requests.append((self.command, self.path, dict(self.headers)))
                if "Content-Length" in self.headers:
                    taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(code, reason)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            do_POST = do_GET = answer

            def log_message(self, *_):
                pass
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?secret=5"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Webhooks(unittest.TestCase):
    ALERT = alerts.Alert("Starved", "raised", "text", 0.5, "storage", "advice", "train", "n1", 0, 1.0)

    def test_it_posts(self):
        server = Server()
        hook = monitor.Webhook(server.url)
        hook(self.ALERT)
        hook.close()
        hook(self.ALERT)
        hook.close()
        server.stop()
        self.assertEqual(server.taken, [self.ALERT.to_dict()] * 2)
        self.assertNotIn("secret", repr(hook))

    def test_one_that_hangs_holds_nobody_up(self):
        with socket.create_server(("127.0.0.1", 0)) as hangs:
            hook = monitor.Webhook(f"http://127.0.0.1:{hangs.getsockname()[1]}/")
            hook._fix(TIMEOUT=0.2)
            with self.assertLogs("penstock.monitor", logging.WARNING) as logged:
                start = time.monotonic()
                for _ in range(monitor.Webhook.MOST + 5):
                    hook(self.ALERT)
                self.assertLess(time.monotonic() - start, 0.15)
                hook.close()
                self.assertLess(time.monotonic() - start, 1)
            self.assertIn("dropped", logged.output[0])
            self.assertEqual(monitor.Webhook.TIMEOUT, 2)

    def test_once_closed_it_starts_no_request(self):
        """A thread that begins while the interpreter ends would crash it; every alert is reported."""
        with socket.create_server(("127.0.0.1", 0)) as hangs:
            hook = monitor.Webhook(f"http://127.0.0.1:{hangs.getsockname()[1]}/")
            hook._fix(TIMEOUT=0.2)
            with self.assertLogs("penstock.monitor", logging.WARNING) as logged:
                for _ in range(10):
                    hook(self.ALERT)
                hook.close()
                started = {thread for thread in threading.enumerate() if thread.name == "penstock-request"}
                time.sleep(0.6)
            later = {thread for thread in threading.enumerate() if thread.name == "penstock-request"}
            self.assertLessEqual(later, started)
            self.assertLess(len(started), hook.MAX_GIVEN_UP)
            self.assertEqual(len(logged.output), 10, logged.output)
            self.assertNotIn("penstock-webhook", [thread.name for thread in threading.enumerate()])

    def test_alerts_are_sent_where_no_thread_can_be_started_any_more(self):
        """As from CPython 3.12 on while the interpreter ends."""
        start, allowed = threading.Thread.start, ["penstock-webhook"]

        def refused(thread):
            if thread.name.startswith("penstock-") and thread.name not in allowed:
                raise RuntimeError("can't create new thread at interpreter shutdown")
            start(thread)
        server = Server()
        hook = monitor.Webhook(server.url)
        with unittest.mock.patch.object(threading.Thread, "start", refused):
            for _ in range(3):  # in the hook's own thread
                hook(self.ALERT)
            hook.close()
            self.assertEqual(len(server.taken), 3)
            allowed.clear()
            hook(self.ALERT)  # in the caller's
            self.assertEqual(len(server.taken), 4)
            hook.close()
        server.stop()
        with socket.create_server(("127.0.0.1", 0)) as hangs:
            hook = monitor.Webhook(f"http://127.0.0.1:{hangs.getsockname()[1]}/")
            hook._fix(TIMEOUT=0.2)
            allowed.append("penstock-webhook")
            with unittest.mock.patch.object(threading.Thread, "start", refused), \
                    self.assertLogs("penstock.monitor", logging.WARNING) as logged:
                for _ in range(3):
                    hook(self.ALERT)
                hook.close()
                time.sleep(0.5)
            self.assertGreaterEqual(len(logged.output), 3, logged.output)  # each of them

    def test_an_alert_for_which_the_system_has_no_thread_is_dropped_at_once(self):
        start, allowed = threading.Thread.start, []

        def refused(thread):
            if thread.name.startswith("penstock-") and thread.name not in allowed:
                raise RuntimeError("can't start new thread")
            start(thread)
        with socket.create_server(("127.0.0.1", 0)) as hangs:
            hook = monitor.Webhook(f"http://127.0.0.1:{hangs.getsockname()[1]}/")
            with unittest.mock.patch.object(threading.Thread, "start", refused), \
                    self.assertLogs("penstock.monitor", logging.WARNING) as logged:
                begin = time.monotonic()
                hook(self.ALERT)  # neither the hook's thread
                allowed.append("penstock-webhook")
                hook(self.ALERT)  # nor the request's
                hook.close()
                self.assertLess(time.monotonic() - begin, monitor.Webhook.TIMEOUT)
        self.assertEqual(len(logged.output), 2, logged.output)
        for record in logged.output:
            self.assertRegex(record, r" got no thread \(can't start new thread\); dropped: text$")

    def test_alerts_are_sent_while_the_interpreter_ends(self):
        server = Server()
        program = ("import sys; from penstock import monitor; from penstock.monitor import alerts\n"
                   "hook = monitor.Webhook(sys.argv[1])\n"
                   "for n in range(5): hook(alerts.Alert('Starved', 'raised', str(n), 0.5, 'storage', '', 'train', 'n1', 0, 1.0))\n")
        done = subprocess.run([sys.executable, "-c", program, server.url], stderr=subprocess.PIPE, text=True, timeout=60)
        server.stop()
        self.assertEqual((done.returncode, done.stderr, [one["text"] for one in server.taken]), (0, "", list("01234")))

    def test_an_alert_that_comes_while_it_is_closed_is_sent(self):
        server = Server()
        hook = monitor.Webhook(server.url)
        for _ in range(50):
            closing = threading.Thread(target=hook.close)
            closing.start()
            hook(self.ALERT)
            closing.join()
        hook.close()
        server.stop()
        self.assertEqual(len(server.taken), 50)

    def test_a_server_that_answers_byte_by_byte_is_given_up_in_time(self):
        def drip(server, taken):
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                taken.append(client)

                def answer(client=client):
                    with contextlib.suppress(OSError):
                        for byte in b"HTTP/1.1 204 No Content\r\nX: " + b"x" * 1000:
                            client.send(bytes([byte]))
                            time.sleep(0.05)
                threading.Thread(target=answer, daemon=True).start()
        with socket.create_server(("127.0.0.1", 0)) as server:
            taken = []
            threading.Thread(target=drip, args=(server, taken), daemon=True).start()
            hook = monitor.Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/")
            hook._fix(TIMEOUT=0.2)
            with self.assertLogs("penstock.monitor", logging.WARNING) as logged:
                for _ in range(hook.MAX_GIVEN_UP + 2):
                    hook(self.ALERT)
                end = time.monotonic() + 5
                while len(logged.output) < hook.MAX_GIVEN_UP + 2 and time.monotonic() < end:
                    time.sleep(0.02)
            self.assertEqual(["no answer within 0.2 s" in line for line in logged.output], [True] * hook.MAX_GIVEN_UP + [False] * 2)
            self.assertTrue(all("hangs; dropped: text" in line for line in logged.output[-2:]), logged.output)
            self.assertEqual(len(taken), hook.MAX_GIVEN_UP)
            for client in taken:
                client.close()
            hook.close()

    def test_a_redirect_is_a_logged_failure_and_goes_nowhere(self):
        elsewhere = Server()
        for code in (300, 301, 302, 303, 307, 308):
            with self.subTest(code):
                server = Server(code, Location=elsewhere.url)
                hook = monitor.Webhook(server.url, {"Authorization": "Bearer 7"})
                with self.assertLogs("penstock.monitor", logging.WARNING) as logged:
                    hook(self.ALERT)
                    hook.close()
                    server.stop()
                self.assertEqual([method for method, _, _ in server.requests], ["POST"])
                self.assertEqual(server.taken, [self.ALERT.to_dict()])
                self.assertEqual(len(logged.output), 1, logged.output)
                self.assertRegex(logged.output[0], f"failed: HTTP {code} .*: no redirect is followed; give Webhook the URL that "
                                 "it leads to, on 127.0.0.1$")
                self.assertNotIn("secret", logged.output[0])
        elsewhere.stop()
        self.assertEqual(elsewhere.requests, [])

    def test_an_answer_of_3xx_that_leads_nowhere_has_no_advice(self):
        for code, headers in ((304, {"Location": "http://127.0.0.1/"}), (304, {}), (302, {})):
            with self.subTest(code, headers=headers):
                server = Server(code, **headers)
                hook = monitor.Webhook(server.url)
                with self.assertLogs("penstock.monitor", logging.WARNING) as logged:
                    hook(self.ALERT)
                    hook.close()
                    server.stop()
                self.assertRegex(logged.output[0], f"failed: HTTP {code} [A-Z][A-Za-z ]*$")

    def test_an_answer_that_is_not_2xx_is_logged_without_the_path(self):
        server = Server(404, "no /hook?secret=5 \x1b[2J", Location="http://[::1")
        hook = monitor.Webhook(server.url)
        with self.assertLogs("penstock.monitor", logging.WARNING) as logged:
            hook(self.ALERT)
            hook.close()
            server.stop()
        self.assertIn("failed: HTTP 404 no /... \\x1b[2J", logged.output[0])
        for message in logged.output:
            self.assertNotIn("secret", message)
            self.assertNotIn("\x1b", message)

    def test_urls(self):
        for url, words in (("file:///etc/passwd", "begins with 'file:'; must begin with http:// or https://"),
                           ("", "has no scheme"), (None, "is a NoneType; must be a str"), ("ftp://x", "begins with 'ftp:'"),
                           ("http://[::1", "no valid host and port"), ("http://", "no valid host and port"),
                           ("http:///secret", "no valid host"), ("http://h:99999/secret", "no valid host and port"),
                           ("http://h:0/secret", "no valid host and port"), ("http://h:x/secret", "no valid host and port"),
                           (f"http://{'h' * 64}.org/secret", "no valid host"), ("http://a..b/secret", "no valid host"),
                           ("http://me:secret@h/", "has a user before its host"),
                           ("http://h/secret\n", r"has '\\n' as character 16; must be ASCII"),
                           ("http://h/\x1bsecret", r"has '\\x1b' as character 10"), ("http://h/secret 5", "has ' ' as character"),
                           ("http://h/\xe9secret", "has '\xe9' as character 10"), ("htps://h/secret", "begins with 'htps:'")):
            with self.subTest(url), self.assertRaisesRegex(penstock.SettingsError, "^url: value .*" + words) as caught:
                monitor.Webhook(url)
            self.assertNotIn("secret", str(caught.exception))
        for url in ("http://[::1]:80/x", "HTTPS://h.org", "http://my_host:8080?x=%20", "http://10.0.0.1/a#b"):
            monitor.Webhook(url)

    def test_headers(self):
        for headers, error, words in (({"Authorization": "secret\n"}, penstock.SettingsError, "value of 'Authorization' has a con"),
                                      ({"X": "\u20ac"}, penstock.SettingsError, "value of 'X' has"),
                                      ({"X y": "secret"}, penstock.SettingsError, "name is 'X y'"),
                                      ({"X": 5}, TypeError, "value of 'X' is an int"), ({5: "x"}, penstock.SettingsError, "name is 5"),
                                      ({"Content-Length": "5"}, penstock.SettingsError, "name is 'Content-Length'; must be no header"),
                                      ({"transfer-encoding": "chunked"}, penstock.SettingsError, "name is 'transfer-encoding'"),
                                      ({"Connection": "keep-alive"}, penstock.SettingsError, "name is 'Connection'"),
                                      ("X: secret", TypeError, "value is a str; must be a dict"), (True, TypeError, "value is a bool")):
            with self.subTest(headers), self.assertRaisesRegex(error, "^headers: " + words) as caught:
                monitor.Webhook("http://h/", headers)
            self.assertNotIn("secret", str(caught.exception))
        server = Server()
        hook = monitor.Webhook(server.url, {"X-Token": "a b\xe9", "content-type": "text/json"})
        hook(self.ALERT)
        hook.close()
        server.stop()
        (_, _, headers), = server.requests
        self.assertEqual((headers["X-Token"], headers["Content-Type"]), ("a b\xe9", "text/json"))


class Sinks(unittest.TestCase):
    def test_json_lines(self):
        path = os.path.join(sets.ROOT, "lines.jsonl")
        sinks = [monitor.JSONLines(path), monitor.JSONLines(path)]
        with penstock.Loader(sets.scalars(), batch_size=10, framework="dlpack") as loader:
            with penstock.Monitor(loader, every=0.1, look=0.05, gpu=None, line=False, sinks=sinks):
                for _ in loader:
                    time.sleep(0.001)
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual(sum(line["n_samples"] for line in lines), 4000)
        self.assertRaises(ValueError, sinks[0], None)  # it was closed with its Monitor
        for end in (".gz", ".BZ2", ".xz", ".zst"):
            with self.assertRaisesRegex(penstock.SettingsError, f"^path: value is '.*{end}'; must not end in {end.lower()}, because it is "
                                        r"written as plain JSON \(compress the file afterwards\)$"):
                monitor.JSONLines(path + end)
            self.assertFalse(os.path.exists(path + end))
        pipe = os.path.join(sets.ROOT, "pipe")
        os.mkfifo(pipe)  # nobody reads it
        for wrong, kind, why in ((os.path.join(sets.ROOT, "no", "such"), FileNotFoundError, "No such file"), (pipe, OSError, "No such device"),
                                 (sets.ROOT, IsADirectoryError, "Is a directory")):
            self.assertRaisesRegex(kind, f"path: cannot append to the file: {why}", monitor.JSONLines, wrong)

    def test_the_number_of_an_open_file_is_no_path(self):
        number = os.open(os.path.join(sets.ROOT, "open"), os.O_CREAT | os.O_RDWR)
        self.addCleanup(os.close, number)
        with opened() as loader:
            watching = penstock.Monitor(loader, **QUICK)
            with watching:
                pass
            for wrong in (True, number):
                for make in (monitor.JSONLines, watching.report):
                    self.assertRaisesRegex(TypeError, "path: value is an? (bool|int); must be the name of a file", make, wrong)
        os.fstat(number)  # it is open
        os.fstat(1)
        for make, error, words in ((lambda: monitor.TensorBoard(True), penstock.SettingsError, "writer: value is True"),
                                   (lambda: monitor.TensorBoard(sets.ROOT, prefix=5), TypeError, "prefix: value is 5"),
                                   (lambda: monitor.JSONLines("a\0b"), penstock.SettingsError, "zero byte")):
            self.assertRaisesRegex(error, words, make)

    def test_tensorboard_writers(self):
        written = []
        writer = types.SimpleNamespace(add_scalar=lambda *values: written.append(values), flush=lambda: None)
        one = reading(total=types.SimpleNamespace(n_samples=77), time=5.0)
        sink = monitor.TensorBoard(writer)
        sink(one)
        sink.close()  # the writer is not ours to close
        self.assertIn(("penstock/pace", 100.0, 77, 5.0), written)
        self.assertEqual({name for name, *_ in written}, set(one.scalars()))
        self.assertRaises(penstock.SettingsError, monitor.TensorBoard, 5)


if __name__ == "__main__":
    unittest.main()
