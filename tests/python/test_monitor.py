# SPDX-License-Identifier: Apache-2.0
"""penstock.Monitor: its numbers are those of the loader's counters, and it never ends a loop."""
import ctypes
import dataclasses
import itertools
import io
import contextlib
import json
import logging
import os
import threading
import time
import unittest

import fake_nvml
import penstock
import sets
from penstock import _c, monitor, stats
from penstock.monitor import flops, gpu, machine
from penstock.monitor.interval import Interval, predicted, verdict

QUICK = {"every": 0.1, "look": 0.05, "gpu": None, "line": False}


class Slow(penstock.Output):
    """Rows of one byte that a worker needs a while for."""

    def to_c(self, name):
        def decode(_user, _sample, row, _size):
            time.sleep(0.002)
            ctypes.c_uint8.from_address(row).value = 7
            return 0
        callback = _c.DecodeFn(decode)
        KEPT.append(callback)
        return _c.Output(name=name.encode(), field=self.field.encode(), kind=_c.OUTPUT_CALLBACK, dtype=_c.U8, callback=_c.CallbackOutput(decode=callback))


class Stuck(Slow):
    """Rows that need no time, except the 100th, which needs until a Monitor said so, or 30 s."""

    def to_c(self, name):
        n = iter(range(10**9))

        def decode(_user, _sample, row, _size):
            if next(n) == 100:
                STUCK.wait(30)
            return 0
        callback = _c.DecodeFn(decode)
        KEPT.append(callback)
        return _c.Output(name=name.encode(), field=self.field.encode(), kind=_c.OUTPUT_CALLBACK, dtype=_c.U8, callback=_c.CallbackOutput(decode=callback))


KEPT = []
STUCK = threading.Event()
logging.getLogger("penstock.monitor").addHandler(logging.NullHandler())  # alerts of tests are not printed


def opened(**more):
    return penstock.Loader(sets.scalars(), batch_size=10, framework="dlpack", **more)


def slow_decoder():
    return opened(outputs={"x": Slow("i", _c.OUTPUT_CALLBACK)}, n_threads=1, memory=penstock.Memory(n_slots=2))


def stage_of(busy, starved, blocked, n_items, n_threads):
    """Return a stage that has counted these, of which no CPU time is known."""
    return stats.StageStats(busy, starved, blocked, 0, 0, n_items, n_threads)


class Numbers(unittest.TestCase):
    def run_loop(self, loader, seconds, step=0.0, **more):
        """Run a loop of that many seconds; return its readings."""
        found = []
        with penstock.Monitor(loader, **{**QUICK, "sinks": found.append, **more}) as watching:
            end = time.monotonic() + seconds
            for _ in loader:
                time.sleep(step)
                if time.monotonic() > end:
                    break
        return found, watching

    def test_lines_add_up_to_the_counters(self):
        with opened() as loader:
            found, watching = self.run_loop(loader, 0.5, 0.005)
            total = loader.stats()
        self.assertGreaterEqual(len(found), 3)
        self.assertEqual(sum(one.n_samples for one in found), total.n_samples)
        self.assertEqual(sum(one.n_batches for one in found), total.n_batches)
        for one in found:
            self.assertAlmostEqual(one.samples_per_s, one.n_samples / one.seconds)
        last = watching.latest.total
        for name in ("n_samples", "n_batches", "bytes_delivered", "stage_consumer", "n_slots", "slot_memory"):
            self.assertEqual(getattr(last, name), getattr(total, name), name)
        self.assertTrue(0 < last.bytes_read <= total.bytes_read)  # the loader reads ahead meanwhile
        self.assertEqual([watching.new()["penstock/n_samples"] for _ in found], [one.n_samples for one in found])
        self.assertIsNone(watching.new())

    def test_a_slow_consumer_and_a_slow_decoder(self):
        with opened() as loader:
            found, _ = self.run_loop(loader, 0.6, 0.01, every=0.25, alerts=[monitor.Starved(0.2, seconds=0.1)])
        # A loaded machine may let the loop take fewer batches in a reading than a verdict asks for.
        self.assertEqual({one.verdict for one in found if one.seconds > 0.2 and one.n_batches >= 4}, {"consumer"})
        self.assertTrue(all(one.waiting < 0.1 and not one.alerts for one in found))
        alerts = []
        with slow_decoder() as loader:
            found, _ = self.run_loop(loader, 0.6, every=0.25, alerts=[monitor.Starved(0.2, seconds=0.1)], on_alert=alerts.append)
            self.assertEqual(found[-1].total.bottleneck, "decode")
        self.assertEqual({one.verdict for one in found if one.seconds > 0.2}, {"decode"})
        self.assertEqual([(one.rule, one.state) for one in alerts], [("Starved", "raised")])
        self.assertIn(stats.ADVICE[alerts[0].verdict], alerts[0].text)

    def test_a_slow_decoder_is_found_when_the_loader_was_open_for_long(self):
        with slow_decoder() as loader:
            time.sleep(1)
            begin = time.monotonic_ns()
            for _ in itertools.islice(loader, 30):
                pass
            told, whole = loader.stats(), time.monotonic_ns() - begin
        workers = told.stage_workers
        counted = workers.busy_ns + workers.starved_ns + workers.blocked_ns
        share = 100 * workers.busy_ns / counted
        self.assertLessEqual(counted, whole)  # time of the one worker
        self.assertGreater(share, 50)
        self.assertEqual(told.bottleneck, "decode")
        self.assertTrue(told.advice.startswith(f"the workers are busy {share:.0f} % of the time; "), told.advice)

    def test_a_loop_that_hangs(self):
        """In a step, and in the loader: each raises NoBatch once, and the text says which."""
        for name, stuck in (("step", {}),
                            ("loader",
                             {"outputs": {"x": Stuck("i", _c.OUTPUT_CALLBACK)}, "n_threads": 1,
                              "memory": penstock.Memory(n_slots=2)})):
            alerts = []

            def receive(alert, alerts=alerts):
                alerts.append(alert)
                STUCK.set()
            STUCK.clear()
            with opened(**stuck) as loader, penstock.Monitor(loader, **QUICK, alerts=[monitor.NoBatch(seconds=1)], on_alert=receive):
                for i, _ in enumerate(loader):
                    if i == 5 and name == "step":
                        STUCK.wait(30)
                    if i == 150:
                        break
                self.until(lambda: len(alerts) == 2)
            self.assertEqual([(one.rule, one.state) for one in alerts], [("NoBatch", "raised"), ("NoBatch", "resolved")])
            self.assertIn("did not ask for a batch" if name == "step" else "asked for a batch and waits", alerts[0].text)

    def until(self, is_so):
        end = time.monotonic() + 30
        while not is_so() and time.monotonic() < end:
            time.sleep(0.01)

    def test_the_verdict_is_the_librarys(self):
        with opened() as fast, slow_decoder() as slow:
            for loader, step in ((fast, 0.005), (slow, 0)):
                for i, _ in enumerate(loader):
                    time.sleep(step)
                    if i == 30:
                        break
                self.assertEqual(verdict(loader.stats()), loader.stats().bottleneck)

    def test_intervals_of_made_up_counters(self):
        with opened() as loader:
            zero = loader.stats()
        second = 10**9

        def stage(busy, starved, blocked, core_wait=0, cpu=0):
            return dataclasses.replace(stage_of(busy, starved, blocked, 0, 1), cpu_ns=cpu, core_wait_ns=core_wait)

        def after(n_batches, consumer, workers, reader, uploader=(0, 0, 0), **more):
            stages = {"stage_" + name: stage(*map(int, times)) for name, times in (
                ("consumer", consumer), ("workers", workers), ("reader", reader), ("uploader", uploader))}
            return dataclasses.replace(zero, n_batches=zero.n_batches + n_batches, **stages, **more)

        start = after(0, (0, 0, 0), (0, 0, 0), (0, 0, 0))
        waits = 3 * second, 7 * second, 0
        for wanted, later in (
                ("unknown", after(3, (second // 2, second // 2, 0), (0, 0, 0), (0, 0, 0))),
                ("consumer", after(100, (9.5 * second, 0.5 * second, 0), (0, 0, 0), (0, 0, 0))),
                ("storage", after(100, waits, (second, 9 * second, 0), (second, 9 * second, 0))),
                ("storage", after(0, (0, 10 * second, 0), (0, 10 * second, 0), (0, 10 * second, 0))),  # it stands still
                ("decode", after(100, waits, (9 * second, second, 0), (second, second, 8 * second))),
                ("unknown", after(100, waits, (second // 100, 10 * second, 0), (0, second // 100, 10 * second))),
                ("reader", after(100, waits, (second, 9 * second, 0), (9 * second, second, 0))),
                ("reader", after(100, waits, (second, 9 * second, 0), (9 * second, second, 0, 4 * second, 4 * second))),
                ("cores", after(100, waits, (second, 9 * second, 0), (9 * second, second, 0, 5 * second, 4 * second))),
                ("copy", after(100, waits, (second, 9 * second, 0), (second, 9 * second, 0), (10 * second, 0, 0))),
                ("consumer", after(100, waits, (second, 0, 0), (second, 0, 0), (second, 0, 9 * second)))):
            self.assertEqual(verdict(Interval.between(start, later, 10)), wanted)
        slow = after(1, (4 * second, second // 10, 0), (second, 0, 0), (second, 0, 0))  # one long step in a look
        self.assertEqual(verdict(Interval.between(start, slow, 5)), "consumer")
        slow = after(1, (second, 4 * second, 0), (5 * second, 0, 0), (second, 0, 0))
        self.assertEqual(verdict(Interval.between(start, slow, 5)), "decode")
        self.assertEqual(verdict(Interval.between(start, after(1, (second, 0, 0), (second, 0, 0), (second, 0, 0)), 5)), "unknown")
        found = Interval.between(start, after(100, waits, (0, 0, 0), (0, 0, 0), n_samples=zero.n_samples + 1000), 20)
        self.assertEqual((found.waiting, found.pace, found.step_ms, found.wait_ms), (0.7, 100, 100, 70))
        still = Interval.between(start, start, 20)
        self.assertEqual((still.waiting, still.pace, still.step_ms), (None, None, None))

    def test_predictions_are_of_the_interval_alone(self):
        with opened(n_threads=1) as loader:
            zero = loader.stats()
            for _ in loader:
                pass
            with penstock.Monitor(loader, **{**QUICK, "every": 60, "look": 60}) as watching:
                pass
        second, stage = 10**9, stage_of
        none = stage(0, 0, 0, 0, 1)
        start = dataclasses.replace(zero, stage_reader=none, stage_workers=none, stage_consumer=none, n_samples=5 * 10**6,
                                    cpu_ns=10**15)  # counts of earlier times: they do not matter
        after = dataclasses.replace(
            start, n_batches=start.n_batches + 100, n_samples=start.n_samples + 1000, cpu_ns=start.cpu_ns + 10 * second,
            stage_consumer=stage(2 * second, 8 * second, 0, 0, 1), stage_workers=stage(10 * second, 0, 0, 1000, 1),
            stage_reader=stage(second, second, 8 * second, 0, 1))
        found = Interval.between(start, after, 10)
        forecast = predicted(found, verdict(found), after, 4)
        self.assertEqual(forecast.measured, 100)
        self.assertEqual([(one.what, one.change, round(one.samples_per_second), one.limit) for one in forecast.cases],
                         [("workers", "+1", 200, "decode"), ("storage", "x2", 100, "decode"), ("consumer", "none", 100, "decode")])
        reading = dataclasses.replace(watching.latest, verdict="decode", forecast=forecast)
        self.assertIn("limit: decode (predicted: 200 with 1 more worker)", str(reading))
        self.assertEqual(reading.to_dict()["forecast"], forecast.to_dict())
        self.assertEqual({name: value for name, value in reading.scalars().items() if "predicted" in name}, {
            "penstock/predicted_samples_per_s_1_more_worker": 200, "penstock/predicted_samples_per_s_storage_x2": 100,
            "penstock/predicted_samples_per_s_no_consumer": 100})
        forecast = predicted(found, verdict(found), after, 1)  # its core is busy all the time
        reading = dataclasses.replace(reading, forecast=forecast)
        self.assertIn("limit: decode (predicted: no faster with 1 more worker, limit cores)", str(reading))
        few = Interval.between(start, start, 10)
        self.assertIsNone(predicted(few, verdict(few), start, 4))
        reading = dataclasses.replace(reading, forecast=None)
        self.assertNotIn("predicted", f"{reading} {reading.scalars()}")
        self.assertIsNone(reading.to_dict()["forecast"])

    def test_tokens_flops_and_the_line(self):
        tokens = iter(range(0, 10**9, 1000))
        with opened() as loader:
            a, _ = self.run_loop(loader, 0.15, 0.005, tokens_per_sample=7, flops_per_sample=1e9, peak_flops=1e15)
            b, _ = self.run_loop(loader, 0.15, 0.005, tokens_so_far=lambda: next(tokens), flops_per_sample=1e9)
        self.assertAlmostEqual(a[0].tokens_per_s, 7 * a[0].samples_per_s)
        self.assertAlmostEqual(a[0].mfu, a[0].samples_per_s / 1e6)
        self.assertGreater(b[0].tokens_per_s, 0)
        self.assertIsNone(b[0].mfu)  # no GPU, no peak
        for part in ("penstock scalars-2000: ", " samples/s, ", " tokens/s, step ", "waiting for data", "cores, rss "):
            self.assertIn(part, str(a[0]))
        self.assertNotIn("gpu", str(a[0]))
        self.assertEqual(json.loads(json.dumps(a[0].to_dict())), a[0].to_dict())


class Life(unittest.TestCase):
    def test_it_prints_a_line_and_ends_its_thread(self):
        text = io.StringIO()
        with opened() as loader, contextlib.redirect_stderr(text):
            for _ in penstock.Monitor(loader, gpu=None).wrap(loader):
                pass
        self.assertEqual(len(text.getvalue().splitlines()), 1)
        self.assertIn("penstock scalars-2000", text.getvalue())
        self.assertNotIn("penstock-monitor", [thread.name for thread in threading.enumerate()])

    def test_names_cannot_write_to_a_terminal(self):
        """A control character, a line separator, a mark of direction and a byte that is not UTF-8, in the name and in what a
        sink raises."""
        name, shown = "\x1b[2J\n\x9b\u2028\u202e\udcff ä", r"\x1b[2J\x0a\x9b\u2028\u202e\xff ä"
        text, lines = io.StringIO(), []

        def raises(_):
            raise ValueError(name)
        with opened() as loader, contextlib.redirect_stderr(text), self.assertLogs("penstock.monitor") as logged:
            with penstock.Monitor(loader, gpu=None, name=name, sinks=[raises]), \
                    penstock.Monitor(loader, gpu=None, name=name, line=lines.append):
                for _ in loader:
                    pass
        self.assertEqual(len(text.getvalue().splitlines()), 1)
        for line in (text.getvalue(), *lines):
            self.assertTrue(line.startswith(f"penstock {shown}: "), repr(line))
        self.assertEqual([record.getMessage().count(shown) for record in logged.records], [2])
        self.assertTrue(all(record.getMessage().isprintable() for record in logged.records))

    def test_without_a_standard_error_nothing_is_printed(self):
        text = io.StringIO()
        with opened() as loader, contextlib.redirect_stdout(text), contextlib.redirect_stderr(None):
            with penstock.Monitor(loader, gpu=None):
                pass
        self.assertEqual(text.getvalue(), "")

    def test_a_loader_closed_under_it(self):
        found = []
        loader = opened()
        with penstock.Monitor(loader, **{**QUICK, "sinks": found.append}) as watching:
            for _ in loader:
                pass
            time.sleep(0.07)
            loader.close()
            watching._thread.join(5)
            self.assertFalse(watching._thread.is_alive())
        self.assertEqual(sum(one.n_samples for one in found), 2000)
        with self.assertRaisesRegex(penstock.PenstockError, "closed"):
            penstock.Monitor(loader).start()

    def test_two_of_them_and_one_that_raises(self):
        def wrong(_):
            raise ValueError("no")
        found = [], []
        with opened() as loader, self.assertLogs("penstock.monitor", logging.WARNING) as logged:
            with penstock.Monitor(loader, **QUICK, sinks=[found[0].append, wrong]), \
                    penstock.Monitor(loader, **QUICK, sinks=[wrong, found[1].append]):
                for _ in loader:
                    time.sleep(0.001)
        self.assertEqual([sum(one.n_samples for one in each) for each in found], [2000, 2000])
        self.assertEqual(len(logged.records), 2)  # once each, for several lines

    def test_in_a_child_of_fork_it_does_nothing(self):
        found = []
        with opened() as loader, penstock.Monitor(loader, **{**QUICK, "sinks": found.append}) as watching:
            child = os.fork()
            if not child:
                watching.close()
                try:
                    penstock.Monitor(loader).start()
                except penstock.ForkedError:
                    os._exit(0)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue(watching._thread.is_alive())
            for _ in loader:
                pass
        self.assertEqual(sum(one.n_samples for one in found), 2000)

    def test_a_process_of_multiprocessing_that_leaves_it_open_writes_the_last_line(self):
        """Such a child that was forked ends by os._exit, and runs nothing of atexit."""
        done = sets.python("""
import multiprocessing, sys, penstock
def work():
    global loader, watching
    loader = penstock.Loader(sys.argv[1], batch_size=10, framework="dlpack")
    watching = penstock.Monitor(loader, gpu=None).start()
    for _ in loader:
        pass
p = multiprocessing.get_context("fork").Process(target=work)
p.start()
p.join()
sys.exit(p.exitcode)
""", sets.scalars())
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (0, 1), done.stderr)

    def test_bad_settings(self):
        with opened() as loader:
            for wrong, words in (({"every": float("nan")}, "every: value is nan"), ({"look": -1}, "look: value is -1"),
                                 ({"every": 1, "look": 2}, "look: value is 2; must be at most every"),
                                 ({"flops_per_sample": 0}, "flops_per_sample"), ({"dtype": "int3"}, "dtype: value is 'int3'"),
                                 ({"gpu": True}, "gpu: value is True"), ({"gpu": -1}, "gpu: value is -1"),
                                 ({"tokens_per_sample": 1, "tokens_so_far": int}, "give one of them")):
                with self.assertRaisesRegex(penstock.SettingsError, words):
                    penstock.Monitor(loader, **wrong)
            for wrong, words in (({"sinks": 5}, "sinks"), ({"on_alert": ["x"]}, "on_alert"), ({"alerts": ["x"]}, "alerts"),
                                 ({"line": 5}, "line"), ({"line": 1}, "line: value is 1"), ({"every": True}, "every: value is True"),
                                 ({"look": "1"}, "look: value is '1'"), ({"peak_flops": True}, "peak_flops: value is True"),
                                 ({"name": 5}, "name: value is 5"), ({"tokens_so_far": 5}, "tokens_so_far"), ({"every": "x"}, "every"),
                                 ({"interval": 5}, "every= is the seconds")):
                with self.assertRaisesRegex(TypeError, words):
                    penstock.Monitor(loader, **wrong)
            with self.assertRaisesRegex(TypeError, "must be a penstock.Loader"):
                penstock.Monitor(5)
            with penstock.Monitor(loader, **QUICK) as watching, self.assertRaisesRegex(penstock.PenstockError, "before"):
                watching.start()


class Gpus(unittest.TestCase):
    def read(self, device=0, **fake):
        with fake_nvml.instead_of_pynvml(fake_nvml.FakeNVML(**fake)) as module:
            one = gpu.Gpu(device)
            found = one.read()
            one.close()
            one.close()
            self.assertEqual(module.n_open, 0)
        return found

    def test_every_counter(self):
        found = self.read(mask=0x4 | 0x40 | 1 << 40)
        self.assertEqual(found, monitor.GpuReading(
            "ok", "NVIDIA H200", "GPU-0", False, 0.87, 0.41, 9 * 10**9, 141 * 10**9, 612, 700, 1755, 3201, 1980,
            ("sw_power_cap", "hw_thermal_slowdown", "bit_40"), 2048000, 102400, 64, {}))
        self.assertEqual(found.slowed, ("hw_thermal_slowdown",))
        self.assertEqual(self.read("00000000:65:00.0").uuid, "GPU-at-00000000:65:00.0")

    def test_missing_counters_and_no_permission(self):
        found = self.read(GetPcieThroughput="NotSupported", GetPowerUsage="NoPermission", GetMemoryInfo="Unknown")
        self.assertEqual(found.state, "ok")
        self.assertEqual(dict(found.missing), {
            "pcie_rx": "not supported", "pcie_tx": "not supported", "power_w": "no permission",
            "memory_used": "NVMLError_Unknown: Unknown", "memory_total": "NVMLError_Unknown: Unknown"})
        self.assertEqual((found.power_w, found.memory_used, found.sm_clock), (None, None, 1755))

    def test_a_mig_instance(self):
        found = self.read("MIG-1")
        self.assertEqual((found.is_mig, found.memory_total, found.utilisation, found.power_w), (True, 18 * 10**9, None, 612))
        self.assertEqual(found.missing["utilisation"], "not supported")
        self.assertIsNone(monitor.peak_flops(found.name))

    def test_a_gpu_that_is_lost_no_library_and_no_device(self):
        with fake_nvml.instead_of_pynvml(fake_nvml.FakeNVML()) as module:
            one = gpu.Gpu(0)
            self.assertEqual(one.read().state, "ok")
            module.fails["GetUtilizationRates"] = "GpuIsLost"
            self.assertTrue(one.read().state.startswith("lost: "))
            asked = len(module.asked)
            self.assertTrue(one.read().state.startswith("lost: "))
            self.assertEqual(len(module.asked), asked)  # nobody asks a lost one again
        self.assertRegex(self.read(Init="LibraryNotFound").state, "^no library: ")
        self.assertRegex(self.read(9, GetHandleByIndex="NotFound").state, "^no such device: 9")
        with fake_nvml.instead_of_pynvml(None):
            self.assertRegex(gpu.Gpu(0).read().state, "^no library: .*pip install nvidia-ml-py")

    def test_which_one_is_this_processs(self):
        self.assertEqual(gpu.which("0:1:0.0", 0, {})[0], "0:1:0.0")
        self.assertEqual(gpu.which("0:1:0.0", 0, {"CUDA_VISIBLE_DEVICES": "MIG-a"})[0], "MIG-a")
        if not getattr(getattr(__import__("sys").modules.get("torch"), "cuda", None), "is_initialized", bool)():
            self.assertEqual(gpu.which(None, 1, {"CUDA_VISIBLE_DEVICES": "4,5"})[0], 5)
            self.assertEqual(gpu.which(None, 3, {"CUDA_VISIBLE_DEVICES": "GPU-x"})[0], "GPU-x")
            self.assertEqual(gpu.which(None, 0, {})[0], None)

    def test_in_a_monitor_with_its_alerts(self):
        alerts, found = [], []
        fake = fake_nvml.FakeNVML(mask=0x40, utilisation=10)
        with fake_nvml.instead_of_pynvml(fake), opened() as loader, penstock.Monitor(
                loader, **{**QUICK, "gpu": 0}, sinks=found.append, on_alert=alerts.append, flops_per_sample=1e9,
                alerts=[monitor.GpuIdle(0.5, seconds=0.1), monitor.Throttled(seconds=0.1)]):
            for i, _ in enumerate(loader):
                if i == 60:
                    fake.mask, fake.utilisation = 0x4, 95
                time.sleep(0.005)
        self.assertEqual(sorted((one.rule, one.state) for one in alerts), [
            ("GpuIdle", "raised"), ("GpuIdle", "resolved"), ("Throttled", "raised"), ("Throttled", "resolved")])
        self.assertAlmostEqual(found[0].mfu, found[0].samples_per_s / 989.5e3)
        self.assertIn("slowed by hw_thermal_slowdown", str(found[0]))
        self.assertEqual(found[0].scalars()["penstock/gpu_throttled"], 1)


class Peaks(unittest.TestCase):
    def test_names_as_nvml_gives_them(self):
        for name, tflops in (("NVIDIA H200", 989.5), ("NVIDIA H100 80GB HBM3", 989.5),
                             ("NVIDIA A100-SXM4-80GB", 312), ("NVIDIA A100 80GB PCIe", 312),
                             ("NVIDIA L40S", 362.05), ("NVIDIA L4", 121), ("NVIDIA B200", 2250),
                             ("NVIDIA GeForce RTX 4090", 165.2)):
            self.assertEqual(monitor.peak_flops(name), tflops * 1e12, name)
        self.assertEqual(monitor.peak_flops("Tesla T4", "float16"), 65e12)
        self.assertEqual(monitor.peak_flops("Tesla V100-SXM2-32GB", "torch.float16"), 125e12)
        for name in ("NVIDIA A10G", "NVIDIA L40", "NVIDIA GH200 480GB", "NVIDIA GeForce RTX 4090 Laptop GPU", "", "Tesla T4",
                     "NVIDIA H200 MIG 1g.18gb", "NVIDIA GeForce RTX 4090 D", "NVIDIA H200 NVL", "NVIDIA H100 NVL",
                     "NVIDIA H100 PCIe", "NVIDIA A10"):
            self.assertIsNone(monitor.peak_flops(name), name)

    def test_each_has_a_source_and_half_the_time_for_twice_the_bits(self):
        for peak in flops.PEAKS:
            self.assertIn("NVIDIA", peak.source)
            self.assertLess(peak.tflops["float32"], peak.tflops["float16"])
            self.assertEqual(peak.tflops.get("bfloat16", peak.tflops["float16"]), peak.tflops["float16"])


class Cgroups(unittest.TestCase):
    def test_the_lowest_limit_counts_and_file_pages_do_not(self):
        import tempfile
        with tempfile.TemporaryDirectory() as root:
            inner = os.path.join(root, "a", "b")
            os.makedirs(inner)

            def write(folder, **texts):
                for name, text in texts.items():
                    with open(os.path.join(folder, name.replace("_", ".", 1)), "w", encoding="ascii") as file:
                        file.write(text)
            write(inner, memory_max="max\n", memory_current="5\n")
            write(os.path.join(root, "a"), memory_max="1000\n", memory_current="900\n",
                  memory_stat="anon 200\ninactive_file 500\nactive_file 100\n")
            write(root, member="0::/a/b\n")
            found = machine.Cgroup(root, os.path.join(root, "member"))
            self.assertEqual((found.limit, found.used()), (1000, 300))
            write(root, member="0::/gone\n")
            self.assertEqual(machine.read(machine.Cgroup(root, os.path.join(root, "member"))).memory_limit, None)


if __name__ == "__main__":
    unittest.main()
