# SPDX-License-Identifier: Apache-2.0
"""The findings of a Monitor in loops whose cause is known: a slow store, busy workers, a slow consumer, a store that becomes
slow in the middle of a run; and that it is quiet where nothing is wrong. Each loop is a process of its own, because slow_reads.so
limits the bytes per second of all its reads."""
import json
import os
import time
import unittest

import sets

# The program of one loop; prints a JSON object. argv: data set, seconds, sleep of a step in s, size of crops.
LOOP = r"""
import ctypes, json, logging, os, sys, time
import penstock
from penstock import monitor
try:
    os.setpriority(os.PRIO_PROCESS, 0, -20)  # its threads get their cores although other programs want them
except PermissionError:
    pass
logging.getLogger("penstock.monitor").addHandler(logging.NullHandler())
path, seconds, step, size = sys.argv[1], *map(float, sys.argv[2:5])
readings, alerts, delays = [], [], []
def delay(_=None):  # keeps the seconds for which threads of this process waited for a core so far
    total = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            total += int(open(f"/proc/self/task/{thread}/schedstat").read().split()[1])
        except OSError:  # it ended, or the kernel counts none
            pass
    delays.append(total / 1e9)
rules = [monitor.Starved(0.3, seconds=0.5), monitor.Slow(0.5, seconds=0.3, n_least=3), monitor.Replacements(),
         monitor.SlowReads(200, seconds=0.5), monitor.NearMemoryLimit(0.9)]
with penstock.Loader(path, batch_size=4, n_threads=1, memory=penstock.Memory(n_slots=2),
                     reading=penstock.Reading(reader="threads", kernels="c"), framework="dlpack",
                     observe=penstock.Observe(monitor_path=False),
                     outputs={"image": penstock.image("jpg", [penstock.ops.RandomResizedCrop(int(size))])}) as loader:
    with penstock.Monitor(loader, every=0.5, look=0.5, gpu=None, line=False, sinks=[readings.append, delay], alerts=rules,
                          on_alert=alerts.append):
        end, epoch = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for _ in loader.epoch(epoch):
                time.sleep(step)
                if time.monotonic() > end - seconds / 2 and "THEN" in os.environ:  # slow_reads.so asks at each read
                    libc = ctypes.CDLL(None)
                    libc.setenv(b"PENSTOCK_BYTES_PER_SECOND", os.environ.pop("THEN").encode(), 1)
                if time.monotonic() > end:
                    break
            epoch += 1
print(json.dumps({"verdicts": [one.verdict for one in readings if one.seconds > 0.4],
                  "waiting": [one.waiting for one in readings if one.seconds > 0.4],
                  "forecasts": [one.to_dict()["forecast"] for one in readings if one.seconds > 0.4],
                  "lines": [str(one) for one in readings if one.seconds > 0.4],
                  "delays": [after - before for before, after in zip(delays, delays[1:])],
                  "alerts": [[one.rule, one.state, one.verdict, one.text] for one in alerts],
                  "rate": sum(one.n_samples for one in readings) / seconds}))
"""


MAX_DELAY = 0.1  # seconds of the 0.5 s of a reading
DEADLINE = 60  # seconds


class Causes(unittest.TestCase):
    def loop(self, seconds, step=0.0, size=32, bytes_per_second=0, then=None):
        """Return what a Monitor saw of a loop whose threads had their cores. A worker that waits for a core counts as
        busy, and would limit: such a loop is run again until there is one, whatever the Monitor said of it; the test is
        skipped where there is none."""
        library = os.environ.get("PENSTOCK_SLOW_STORAGE")
        if not library:
            self.skipTest("missing: PENSTOCK_SLOW_STORAGE")
        more = {} if then is None else {"THEN": str(then)}
        end = time.monotonic() + DEADLINE
        while True:
            done = sets.python(LOOP, sets.photos(), seconds, step, size, LD_PRELOAD=library,
                               PENSTOCK_BYTES_PER_SECOND=str(bytes_per_second), **more)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            seen = json.loads(done.stdout)
            if max(seen["delays"]) < MAX_DELAY:
                return seen
            if time.monotonic() > end:
                self.skipTest("other programs have the cores")

    def size(self):
        """Return bytes of a sample."""
        path = sets.photos()
        return sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path) if name.endswith(".pstk")) / 40

    def cases(self, seen, which):
        """Return the cases of a reading's forecast by what changes, each with the "times" of the measured rate."""
        told = seen["forecasts"][which]
        return {case["what"]: {**case, "times": case["samples_per_second"] / told["measured"]} for case in told["cases"]}

    def test_a_slow_store(self):
        seen = self.loop(3, bytes_per_second=60 * self.size())
        self.assertEqual(set(seen["verdicts"][1:]), {"storage"}, seen)
        self.assertEqual([alert[:3] for alert in seen["alerts"] if alert[0] == "Starved"], [["Starved", "raised", "storage"]])
        self.assertIn("disk", seen["alerts"][0][3])
        self.assertNotIn("Slow", [alert[0] for alert in seen["alerts"]])  # it was never faster
        case = self.cases(seen, 1)
        self.assertTrue(1.5 < case["storage"]["times"] <= 2.01, seen)
        self.assertEqual((case["storage"]["change"], case["storage"]["is_prediction"]), ("x2", True))
        self.assertTrue(all(0.99 < case[what]["times"] < 1.02 for what in ("workers", "consumer")), seen)
        self.assertRegex(seen["lines"][-1], r"limit: storage \(predicted: [\d.,]+ with storage twice as fast\)")

    def test_busy_workers(self):
        seen = self.loop(2.5, size=256)
        self.assertEqual(set(seen["verdicts"][1:]), {"decode"}, seen)
        self.assertEqual([alert[:3] for alert in seen["alerts"]], [["Starved", "raised", "decode"]])
        case = self.cases(seen, 1)
        self.assertTrue(0.99 < case["storage"]["times"] < 1.02, seen)
        if len(os.sched_getaffinity(0)) > 1:  # else the cores limit
            self.assertTrue(1.2 < case["workers"]["times"] <= 2.01, seen)
            self.assertRegex(seen["lines"][-1], r"limit: decode \(predicted: [\d.,]+ with 1 more worker\)")

    def test_a_slow_consumer_and_nothing_else_is_quiet(self):
        seen = self.loop(2.5, step=0.04)
        self.assertEqual(set(seen["verdicts"][1:]), {"consumer"}, seen)
        self.assertEqual(seen["alerts"], [])
        self.assertLess(max(seen["waiting"][1:]), 0.2)
        case = self.cases(seen, 1)
        self.assertGreater(case["consumer"]["times"], 1.5, seen)
        self.assertTrue(all(0.99 < case[what]["times"] < 1.02 for what in ("workers", "storage")), seen)

    def test_a_store_that_becomes_slow(self):
        seen = self.loop(6, step=0.025, then=60 * self.size())
        self.assertEqual((seen["verdicts"][1], seen["verdicts"][-1]), ("consumer", "storage"), seen)
        # Each forecast is of its own seconds: since open, the consumer would limit most of the time.
        before, after = self.cases(seen, 1), self.cases(seen, -1)
        self.assertTrue(before["storage"]["times"] < 1.02 < before["consumer"]["times"], seen)
        self.assertTrue(1.5 < after["storage"]["times"] <= 2.01 and after["consumer"]["times"] < 1.02, seen)
        raised = {alert[0]: alert[2] for alert in seen["alerts"] if alert[1] == "raised"}
        self.assertEqual((raised.get("Starved"), raised.get("Slow")), ("storage", "storage"), seen)
        self.assertEqual([alert[1] for alert in seen["alerts"] if alert[0] == "Slow"], ["raised"])


if __name__ == "__main__":
    unittest.main()
