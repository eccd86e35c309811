# SPDX-License-Identifier: Apache-2.0
"""All ranks in one view: the rank that is behind is named, with the stage, and nobody is where all is well."""
import contextlib
import io
import json
import logging
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
import threading
import time
import unittest
import unittest.mock

import penstock
import template
from data_fixture import needs, optional
from penstock import _c, monitor
from penstock.monitor import ranks
from test_monitor import QUICK, Slow, opened

HERE = pathlib.Path(__file__).resolve()
NOW = 1000.0
PATIENCE = 2.6  # seconds without a line that make a rank of one_rank() silent


def look(rank, waiting=0.01, pace=100.0, when=NOW, verdict="consumer", **stages):
    return {"rank": rank, "node": f"n{rank}", "time": when, "every": 20.0, "pace": pace, "step_ms": 10.0, "wait_ms": 0.1, "waiting": waiting,
            "verdict": verdict, "ended": False, "began": 5.0, "kept": "process", "stages_ms": {"read": 1.0, "decode": 2.0, **stages}}


def view(*looks, world=None):
    return ranks.compared({one["rank"]: one for one in looks}, len(looks) if world is None else world, NOW)


class Comparison(unittest.TestCase):
    def test_quiet_where_nothing_is_wrong(self):
        for looks in ([look(0)], [look(rank, waiting=0.02 + 0.01 * rank, pace=100 + rank) for rank in range(8)],
                      [look(rank, waiting=0.6) for rank in range(4)], [look(0), look(1, pace=75.0)], [look(0, waiting=0.6)]):
            self.assertEqual((view(*looks).stragglers, view(*looks).missing), ((), ()), looks)

    def test_the_rank_that_waits_is_named_with_its_stage(self):
        found = view(look(0), look(1), look(2, waiting=0.4, decode=5.0, verdict="decode"), look(3))
        self.assertEqual((found.slowest, round(found.spread, 6)), (2, 0.39))
        self.assertEqual(found.stragglers, ("rank 2 on n2 waits for data 40 % of its time, the median is 1 %; decode takes 5 ms, "
                                            "2.5 times the median",))
        found = view(look(0, waiting=0.55), look(1, waiting=0.55), look(2, waiting=0.99))
        self.assertRegex(found.stragglers[0], "^rank 2 on n2 waits for data 99 % of its time, the median is 55 %")
        found = view(look(0), look(1, waiting=0.4, verdict="storage"))
        self.assertEqual(found.stragglers, ("rank 1 on n1 waits for data 40 % of its time, the median is 1 %; limit: storage",))

    def test_a_rank_with_a_low_pace_is_named(self):
        found = view(look(0), look(1), look(2, pace=60.0))
        self.assertEqual(found.slowest, 2)
        self.assertEqual(found.stragglers, ("rank 2 on n2 takes 60 samples/s, the median is 100; limit: consumer",))

    def test_names_of_nodes_are_one_line(self):
        node = "\x1b]0;x\x07\nn"
        found = view(look(0), look(1), {**look(2, waiting=0.4), "node": node}, {**look(3, pace=60.0), "node": node})
        self.assertEqual([text[:28] for text in found.stragglers], [rf"rank {rank} on \x1b]0;x\x07\x0an " for rank in (2, 3)])
        self.assertTrue(all(text.isprintable() for text in found.stragglers))

    def test_ranks_that_are_gone_are_missing(self):
        found = view(look(0), look(1, when=NOW - 71), look(2, when=NOW - 70), look(3), world=5)
        self.assertEqual((found.missing, sorted(found.looks)), ((1, 4), [0, 2, 3]))
        found = view(look(0, waiting=None, pace=None))
        self.assertEqual((found.slowest, found.spread, found.stragglers), (None, None, ()))


class Silence(unittest.TestCase):
    """Looks are of each 20 s, so that 70 s without one are silence."""

    def test_a_rank_whose_looks_end_is_named_and_one_that_was_never_there_is_not(self):
        silence = ranks.Silence()
        for clock in range(0, 100, 20):
            self.assertEqual(silence.sentences({0: look(0, when=clock), 3: look(3, when=clock)}, clock), ())
        old = {3: look(3, when=80)}
        self.assertEqual(silence.sentences({0: look(0, when=150), **old}, 150), ())
        self.assertEqual(silence.sentences({0: look(0, when=160), **old}, 160), ("rank 3 on n3 is silent: no line for 80 s",))
        self.assertEqual(silence.sentences({0: look(0, when=180), 3: look(3, when=180)}, 180), ())

    def test_one_whose_monitor_ended_is_not_silent(self):
        silence, ended = ranks.Silence(), {3: {**look(3), "ended": True}}
        silence.sentences({3: look(3)}, 0)
        self.assertEqual([silence.sentences(ended, clock) for clock in (20, 1000)], [(), ()])

    def test_the_clock_of_another_node_does_not_matter(self):
        silence = ranks.Silence()
        for clock in range(0, 1000, 20):
            looks = {1: look(1, when=clock - 10**6), 2: look(2, when=clock + 10**6)}
            self.assertEqual(silence.sentences(looks, clock), ())
        self.assertEqual(len(silence.sentences(looks, 1060)), 2)

    def test_names_are_one_line(self):
        silence, looks = ranks.Silence(), {1: {**look(1), "node": "\x1b\n"}}
        silence.sentences(looks, 0)
        self.assertEqual(silence.sentences(looks, 71), (r"rank 1 on \x1b\x0a is silent: no line for 71 s",))


    def test_looks_that_a_killed_run_left_are_of_no_rank(self):
        left = {1: look(1, when=3), 2: look(2, when=3)}
        silence = ranks.Silence(left)
        self.assertEqual([silence.sentences(left, clock) for clock in (0, 71, 1000)], [()] * 3)
        new = {**left, 2: look(2, when=1001)}
        self.assertEqual(silence.sentences(new, 1001), ())
        self.assertEqual(silence.sentences(new, 1072), ("rank 2 on n2 is silent: no line for 71 s",))

    def test_rank_0_is_silent_where_its_store_is_gone_for_as_long(self):
        silence, runs = ranks.Silence(), lambda began: False
        self.assertEqual(silence.without_looks(100, "n1", runs), ())  # nothing is known of it
        silence.sentences({0: look(0), 1: look(1)}, 100)
        self.assertEqual(silence.without_looks(170, "n1", runs), ())
        named = ("rank 0 on n0 is silent: no line for 71 s, and the store of torch.distributed there does not answer",)
        self.assertEqual(silence.without_looks(171, "n1", runs), named)
        self.assertEqual(silence.without_looks(171, "n1", lambda began: began == 5.0), ())
        silence.sentences({0: {**look(0), "time": 5, "ended": True}}, 180)
        self.assertEqual(silence.without_looks(1000, "n1", runs), ())

    def test_rank_0_is_not_named_for_a_store_that_others_keep(self):
        for kept, node, n in (("process", "n0", 1), ("node", "n0", 0), ("node", "n1", 1), ("", "n0", 0), ("", "n1", 0)):
            silence = ranks.Silence()
            silence.sentences({0: {**look(0), "kept": kept}}, 0)
            self.assertEqual(len(silence.without_looks(71, node, lambda began: False)), n, (kept, node))

    def test_the_first_rank_of_the_second_node_reports_a_node_that_is_gone(self):
        self.assertEqual([ranks.n_watched(rank, 16, rank == 8) for rank in (0, 1, 2, 7, 8, 9, 15)], [16, 1, 0, 0, 2, 0, 0])
        silence = ranks.Silence(is_last=True)
        old = {0: look(0, when=0), 1: look(1, when=0)}
        self.assertEqual(silence.sentences(old, 0), ())
        self.assertEqual(silence.sentences({**old, 1: look(1, when=60)}, 71), ())  # rank 1 reports it
        old[1] = look(1, when=60)
        self.assertEqual([one[:6] for one in silence.sentences(old, 1000)], ["rank 0", "rank 1"])
        old[1] = {**look(1, when=1001), "ended": True}
        self.assertEqual([one[:6] for one in silence.sentences(old, 1001)], ["rank 0"])


    def test_nodes_may_have_different_numbers_of_ranks(self):
        """2, 4 and 4 ranks: rank 2 is the first of the second node, rank 6 of the third."""
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            exchange, watching = ranks.exchange_of(folder, "a"), {}
            for rank, local_rank in ((2, 0), (3, 1), (4, 2), (6, 0)):
                data = stack.enter_context(opened(ranks=penstock.Ranks(rank, 10, local_rank, 4, compare=False)))
                watching[rank] = stack.enter_context(penstock.Monitor(data, ranks=folder, **{**QUICK, "every": 60.0}))
            n = lambda: {rank: one._n_watched(exchange) for rank, one in watching.items()}  # noqa: E731
            self.assertEqual(n(), {2: 0, 3: 0, 4: 0, 6: 0})  # no rank left a look
            for rank in range(10):
                exchange.put(rank, json.dumps({**look(rank), "node": f"n{(rank + 2) // 4}"}))
            self.assertEqual(n(), {2: 2, 3: 0, 4: 0, 6: 0})

    def test_a_rank_is_silent_after_its_first_line_where_no_run_left_it(self):
        """A folder may have looks of an earlier run, which was killed; a store in memory has none."""
        optional("torch")
        from torch.distributed import HashStore
        store = HashStore()
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(ranks, "GRACE", 0.0):
            for place, is_silent in ((store, True), (folder, False)):
                ranks.exchange_of(place, "first").put(1, json.dumps({**look(1), "every": 0.1}))
                with opened(ranks=penstock.Ranks(0, 2, compare=False)) as data, penstock.Monitor(
                        data, **{**QUICK, "ranks": place, "name": "first"}) as watching:
                    for _ in data.epoch(0):
                        time.sleep(0.02)
                    time.sleep(1)
                    self.assertEqual(any("rank 1 on n1 is silent" in one for one in watching._silent), is_silent, place)


class Exchanges(unittest.TestCase):
    def check(self, exchange):
        self.assertEqual(list(exchange.all(range(3))), [])
        exchange.put(2, "a")
        exchange.put(0, "b")
        exchange.put(2, "c")
        self.assertEqual(list(exchange.all(range(3))), [(0, "b"), (2, "c")])

    def test_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(ranks.exchange_of(folder, "a/b"))
            self.check(ranks.exchange_of(pathlib.Path(folder), "c"))
            self.assertEqual(len(os.listdir(folder)), 4)

    def test_a_store(self):
        optional("torch")
        from torch.distributed import HashStore
        store = HashStore()
        self.check(ranks.exchange_of(store, "a"))
        self.check(ranks.exchange_of(store, "b"))

    def test_kept_says_if_the_process_or_the_node_keeps_a_store(self):
        optional("torch")
        import torch.distributed as dist
        code = ("import sys, torch.distributed as dist\nfrom penstock.monitor import ranks\n"
                "store = dist.TCPStore('localhost', int(sys.argv[1]), is_master=False, wait_for_workers=False)\n"
                "print(ranks.exchange_of(dist.PrefixStore('a', store), 'a').kept())")
        store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        for one in (store, dist.PrefixStore("a", dist.PrefixStore("b", store))):
            self.assertEqual(ranks.exchange_of(one, "a").kept(), "process")
        other = subprocess.run([sys.executable, "-c", code, str(store.port)], capture_output=True, text=True, timeout=120)
        self.assertEqual(other.stdout, "node\n", other.stderr)
        with unittest.mock.patch.object(socket, "getaddrinfo", lambda host, *_, **__: [(2, 2, 0, "", ("192.0.2.1", 0))]):
            self.assertEqual(ranks.exchange_of(store, "a").kept(), "")  # an address that no node has
        self.assertEqual(ranks.exchange_of(dist.HashStore(), "a").kept(), "")

    def test_a_store_that_does_not_answer_is_given_up_and_not_asked_again_until_it_does(self):
        class Stopped(dict):
            calls, goes_on = 0, threading.Event()

            def set(self, key, value):
                self.calls += 1
                self.goes_on.wait()
            get = check = set

        store = Stopped()
        exchange = ranks.exchange_of(store, "a")
        self.assertEqual(exchange.kept(), "")
        with unittest.mock.patch.object(ranks, "TIMEOUT", 0.1):
            start = time.monotonic()
            for _ in range(20):
                self.assertRaisesRegex(penstock.TimedOutError, "ranks: the store gave no answer within 0.1 s", exchange.put, 0, "a")
            self.assertLess(time.monotonic() - start, 1)
        self.assertEqual(store.calls, 1)
        store.goes_on.set()
        end = time.monotonic() + 30
        while store.calls < 2:
            self.assertLess(time.monotonic(), end)
            with contextlib.suppress(penstock.TimedOutError):
                exchange.put(0, "a")
        thread = exchange._thread
        exchange.close()
        thread.join(30)
        self.assertFalse(thread.is_alive())

    def test_damaged_looks_are_as_missing_ones(self):
        good = json.dumps(look(1, when=time.time()))
        wrong = ["", "3", "[1]", "{}", "null", good[:-9], good.replace("0.01", '"x"'), good.replace("100.0", "[]"), good.replace("ended", "end")]
        for text in wrong:
            with tempfile.TemporaryDirectory() as folder:
                exchange = ranks.exchange_of(folder, "a")
                exchange.put(0, text)
                exchange.put(1, good)
                found = ranks.compared(ranks.looks_of(exchange, range(2)), 2, time.time())
                self.assertEqual((found.missing, found.slowest), ((0,), 1), text)

    def test_wrong_settings(self):
        with opened() as loader:
            for wrong, kind, message in (("/no/such", penstock.SettingsError, "ranks: value is '/no/such'; must be a folder that"),
                                         (5, TypeError, "ranks: value is 5; must be 'auto', None, a folder")):
                with self.assertRaisesRegex(kind, message):
                    penstock.Monitor(loader, ranks=wrong)


def lived(read):
    """Wait until a process wrote a line twice as long after now as makes a rank silent. Returns its file's text. read: reads it."""
    begin = time.monotonic()
    while True:
        text = read()
        if float(re.search(r"^at ([\d.]+)$", text, re.MULTILINE)[1]) > begin + 2 * PATIENCE:
            return text
        if time.monotonic() > begin + 60:
            raise AssertionError(f"the process hangs: {text}")
        time.sleep(0.05)


class Runs(unittest.TestCase):
    def run_both(self, folder, slow, every):
        """Run two ranks in one process, one after the other in each step. Return rank 0's line, and its alerts."""
        settings = {**QUICK, "every": every, "ranks": folder, "name": "both"}
        outputs = {"x": Slow("i", _c.OUTPUT_CALLBACK)}
        alerts, lines = [], []
        with contextlib.ExitStack() as stack:
            loaders = [stack.enter_context(opened(ranks=penstock.Ranks(rank, 2), memory=penstock.Memory(n_slots=4), n_threads=1,
                                                  **({"outputs": outputs} if rank == slow else {}))) for rank in range(2)]
            watching = [stack.enter_context(penstock.Monitor(loader, alerts=[monitor.Straggler(seconds=0)], on_alert=alerts.append,
                                                             **{**settings, "line": lines.append})) for loader in loaders]
            end = time.monotonic() + 2.2 * every
            for _ in zip(*loaders):
                time.sleep(0.005)
                if time.monotonic() > end:
                    break
            return watching[0].view(), [line for line in lines if "waits for data" in line], alerts

    def test_a_slow_rank_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            found, lines, alerts = self.run_both(folder, 1, 0.3)
        self.assertEqual((len(found.looks), found.slowest, found.missing), (2, 1, ()))
        self.assertRegex(found.stragglers[0], "^rank 1 on .* waits for data .*(decode takes|limit: decode)")
        self.assertTrue(lines and "rank 1 on" in lines[0], lines)
        self.assertEqual([one.state for one in alerts][:1], ["raised"])
        self.assertIn("1 straggler. rank 1 on", alerts[0].text)

    def test_two_equal_ranks_are_quiet(self):
        with tempfile.TemporaryDirectory() as folder:
            found, lines, alerts = self.run_both(folder, None, 1.0)
        self.assertEqual((found.stragglers, lines, alerts), ((), [], []))

    def test_a_folder_that_goes_away_is_logged_once_and_the_run_goes_on(self):
        folder = tempfile.mkdtemp()
        with opened() as loader, self.assertLogs("penstock.monitor", logging.WARNING) as logged:
            with penstock.Monitor(loader, **{**QUICK, "ranks": folder}) as watching:
                shutil.rmtree(folder)
                for _ in loader.epoch(0):
                    time.sleep(0.002)
                time.sleep(0.3)
                self.assertIsNotNone(watching.latest)
        self.assertEqual(len(logged.output), 1, logged.output)  # a look that is missing is no error
        self.assertIn("FileNotFoundError", logged.output[0])

    def test_a_store_that_fails_is_logged_and_the_run_goes_on(self):
        class Broken:
            def set(self, *_):
                raise RuntimeError("gone")
            get = check = set

        with opened() as loader, self.assertLogs("penstock.monitor", logging.WARNING) as logged:
            with penstock.Monitor(loader, **{**QUICK, "ranks": Broken()}) as watching:
                time.sleep(0.3)
                self.assertIsNotNone(watching.latest)
        self.assertEqual(len(logged.output), 2, logged.output)  # from put and from the comparison
        self.assertIn("gone", logged.output[0])

    def test_a_stopped_and_a_killed_process_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "ranks"))
            started = [subprocess.Popen([sys.executable, str(HERE), "rank", folder, str(rank)], stdin=subprocess.PIPE)
                       for rank in range(3)]
            try:
                self.check_silence(folder, started)
            finally:
                for process in started:
                    process.kill()
                    process.wait()
                    process.stdin.close()

    def check_silence(self, folder, started):
        def wait_for(rank, what, is_there=True):
            """Wait until the last line of a rank, with its alert, has what is searched for, or has it no more."""
            end = time.monotonic() + 120
            while time.monotonic() < end:
                with contextlib.suppress(FileNotFoundError):
                    text = pathlib.Path(folder, f"{rank}.txt").read_text(encoding="utf-8")
                    if (what in text) == is_there:
                        return text
                time.sleep(0.05)
            self.fail(f"rank {rank} {'never' if is_there else 'always'} says {what!r}: {text}")

        for rank in range(3):
            self.assertNotIn("silent", wait_for(rank, "samples/s"))
        started[0].send_signal(signal.SIGSTOP)
        self.assertRegex(wait_for(1, "raised: penstock: SilentRank: "), "rank 0 on .* is silent: no line for .* s. The process was")
        self.assertNotIn("silent", wait_for(2, "samples/s"))  # rank 1 says it alone
        started[0].send_signal(signal.SIGCONT)
        wait_for(1, "resolved: penstock: SilentRank: ")
        started[1].kill()
        wait_for(0, "; rank 1 on ")
        wait_for(0, "alerts: SilentRank")
        started[2].send_signal(signal.SIGSTOP)
        wait_for(0, "; rank 2 on ")
        started[2].send_signal(signal.SIGCONT)
        wait_for(0, "; rank 2 on ", False)
        started[2].stdin.close()  # it ends as it should
        self.assertEqual(started[2].wait(30), 0)
        lived(lambda: wait_for(0, ""))
        text = wait_for(0, "; rank 1 on ")
        self.assertNotIn("; rank 2 on ", text)

    def test_rank_0_is_named_by_rank_1_where_its_store_ends_with_it(self):
        needs("torch")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        for ends in ("badly", "well", "well and unread", "without a group"):
            with self.subTest(ends), tempfile.TemporaryDirectory() as folder:
                started = [subprocess.Popen([template.python(), str(HERE), "rank", folder, str(rank), "auto"], stdin=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, env=environment) for rank in range(2)]
                try:
                    self.check_end_of_rank_0(folder, started, ends)
                finally:
                    for process in started:
                        process.kill()
                        process.wait()
                        process.stdin.close()

    def check_end_of_rank_0(self, folder, started, ends):
        read = lambda rank: pathlib.Path(folder, f"{rank}.txt").read_text(encoding="utf-8")  # noqa: E731

        def send(rank, number):
            os.kill(int(pathlib.Path(folder, f"{rank}.pid").read_text(encoding="utf-8")), number)

        def wait_for(rank, what):
            end = time.monotonic() + 120
            while not (os.path.exists(f"{folder}/{rank}.txt") and what in read(rank)):
                self.assertLess(time.monotonic(), end, f"rank {rank} never says {what!r}")
                time.sleep(0.05)
        for rank in range(2):
            wait_for(rank, "samples/s")
        wait_for(1, "watches rank 0")
        if ends == "badly":
            for number in (signal.SIGSTOP, signal.SIGKILL):
                send(0, number)
                wait_for(1, "raised: penstock: SilentRank: ")
                self.assertRegex(read(1), "rank 0 on .* is silent: no line for .* s, and the store of torch.distributed there does "
                                 "not answer. The process was")
                if number == signal.SIGSTOP:
                    send(0, signal.SIGCONT)
                    wait_for(1, "resolved: penstock: SilentRank: ")
            return
        before = time.monotonic()
        if ends == "well and unread":
            send(1, signal.SIGSTOP)
        if ends.startswith("well"):
            started[0].stdin.close()
        else:
            started[1].stdin.write(b"leave the group\n")
            started[1].stdin.flush()
            wait_for(1, "without a group")
            send(0, signal.SIGKILL)
        self.assertEqual(started[0].wait(30), 0 if ends.startswith("well") else -signal.SIGKILL)
        send(1, signal.SIGCONT)
        text = lived(lambda: read(1))  # on it goes
        self.assertIsNone(started[1].poll())
        self.assertNotIn("silent", text.splitlines()[0])
        with contextlib.suppress(FileNotFoundError):  # a false alarm of a busy machine before that does not count
            alerts = pathlib.Path(folder, "1.alerts").read_text(encoding="utf-8").splitlines()
            self.assertEqual([one for one in alerts if float(one.split()[0]) > before and one.endswith("raised")], [])

    def test_three_processes_of_torch(self):
        optional("torch")
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=3", str(HERE),
                                   "worker", out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                                  env={**os.environ, "OMP_NUM_THREADS": "1"})
            self.assertEqual(done.returncode, 0, done.stdout[-3000:])
            found = json.loads(pathlib.Path(out, "view.json").read_text())
        self.assertEqual((found["n"], found["missing"], found["slowest"]), (3, [], 1))
        self.assertEqual(len(found["stragglers"]), 1, found)
        self.assertIn("rank 1 on", found["stragglers"][0])

    def test_a_rank_that_ends_before_rank_0_ends_well(self):
        needs("torch")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
        for seconds in ("0.05", "0.2"):  # while the interpreter of rank 1 ends
            started = [subprocess.Popen([sys.executable, str(HERE), "later", seconds], env={**env, "RANK": str(rank)},
                                        stderr=subprocess.PIPE, text=True) for rank in (0, 1)]
            ended = [(process.communicate(timeout=120)[1], process.returncode) for process in started]
            self.assertEqual([status for _, status in ended], [0, 0], ended)


def later(seconds):
    """A rank of the test above: rank 0 closes its Monitor some time after rank 1."""
    import torch.distributed as dist
    dist.init_process_group("gloo")
    with opened(ranks="auto") as loader, contextlib.redirect_stderr(io.StringIO()), penstock.Monitor(loader, **QUICK):
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            for _ in loader:
                time.sleep(0.002)
        dist.barrier()
        if dist.get_rank() == 0:
            time.sleep(float(seconds))


def worker(out):
    """A rank of test_three_processes_of_torch; rank 1 decodes slowly, and all wait for each other in each step."""
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    outputs = {"outputs": {"x": Slow("i", _c.OUTPUT_CALLBACK)}} if rank == 1 else {}
    with opened(ranks="auto", memory=penstock.Memory(n_slots=4), n_threads=1,
                **outputs) as loader, contextlib.redirect_stderr(io.StringIO()):
        with penstock.Monitor(loader, **QUICK) as watching:
            for _, _ in zip(range(40), loader):
                dist.all_reduce(torch.ones(1))
            time.sleep(0.3)
            dist.barrier()
            if rank == 0:
                found = watching.view()
                pathlib.Path(out, "view.json").write_text(json.dumps(
                    {"n": len(found.looks), "missing": found.missing, "slowest": found.slowest,
                     "stragglers": found.stragglers}))
            dist.barrier()
    dist.destroy_process_group()


def one_rank(folder, rank, place=None):
    """A rank of the tests above: its last line and its last alert are in FOLDER/RANK.txt. It ends with its standard input; what
    comes there before ends its process group. place: "auto": two ranks, and process 0 keeps the store."""
    ranks.GRACE = PATIENCE - ranks.STALE * 0.2
    ranks.TIMEOUT = 5.0
    pathlib.Path(folder, f"{rank}.pid").write_text(str(os.getpid()), encoding="utf-8")
    said = {"line": "", "alert": ""}
    watching = None
    if place is not None:
        import torch.distributed as dist
        dist.init_process_group("gloo", rank=rank, world_size=2)

    def say(**what):
        said.update(what, at=f"at {time.monotonic():.2f}")
        if getattr(watching and watching._exchange, "_watches", None):
            said["watches"] = "watches rank 0"
        path = os.path.join(folder, f"{rank}.txt")
        pathlib.Path(path + ".new").write_text("\n".join(said.values()), encoding="utf-8")
        os.replace(path + ".new", path)

    def alarm(alert):
        say(alert=f"{alert.state}: {alert}")
        with open(os.path.join(folder, f"{rank}.alerts"), "a", encoding="utf-8") as file:
            file.write(f"{time.monotonic()} {alert.state}\n")
    with opened(ranks=penstock.Ranks(rank, 2 if place else 3)) as loader:
        watching = penstock.Monitor(
            loader, every=0.2, look=0.1, gpu=None, ranks=place or os.path.join(folder, "ranks"), name="r",
            alerts=[monitor.SilentRank()], line=lambda line: say(line=line), on_alert=alarm)
        watching.start()
        epoch = 0
        while True:
            if select.select([sys.stdin], [], [], 0)[0]:
                if not sys.stdin.buffer.raw.read(1000):
                    break
                dist.destroy_process_group()
                said["group"] = "without a group"
            for _ in loader.epoch(epoch):
                time.sleep(0.002)
            epoch += 1
        watching.close()
    if place and rank == 0:
        time.sleep(0.5)  # rank 1 reads that its Monitor ended


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2])
    elif sys.argv[1:2] == ["later"]:
        later(sys.argv[2])
    elif sys.argv[1:2] == ["rank"]:
        one_rank(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    else:
        unittest.main()
