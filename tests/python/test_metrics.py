# SPDX-License-Identifier: Apache-2.0
"""loader.metrics(): every number of the C struct, of the window that was asked for."""
import dataclasses
import json
import time
import unittest

import sets
import penstock
from penstock import SettingsError, _c, metrics


class Metrics(unittest.TestCase):
    def setUp(self):
        self.data = penstock.Loader(sets.scalars(), batch_size=10, framework="dlpack")
        self.addCleanup(self.data.close)

    def test_it_counts_in_windows(self):
        begin = time.monotonic_ns()
        for _ in self.data:
            pass
        before = self.data.stats().bytes_read  # the next epoch is read meanwhile
        told = self.data.metrics()
        self.assertTrue(0 < before <= told.bytes_read <= self.data.stats().bytes_read)
        self.assertEqual((told.n_samples, told.n_batches, told.wait.n), (2000, 200, 200))
        self.assertGreaterEqual(told.duration_ns, time.monotonic_ns() - begin - 10**9)
        self.assertEqual(self.data.metrics("look").n_batches, 200)
        self.assertEqual(self.data.metrics("look").n_batches, 0)
        self.assertEqual(self.data.metrics("minute").n_batches, 200)
        self.assertGreater(told.decode.n, 0)
        self.assertTrue(0 < told.decode.p50 <= told.decode.p95 <= told.decode.p99 <= told.decode.max)
        self.assertLessEqual(told.decode.p50 * told.decode.n // 2, 2 * told.decode.sum)
        self.assertGreaterEqual(told.read.n, told.n_reads)
        self.assertGreaterEqual(told.finish.n, 200)
        self.assertTrue(0 < told.ready.n == told.leased.n == told.free.n <= 201)  # every 10 ms
        self.assertEqual(told.leased.sum, told.leased.n - 1)  # the loop held a batch, except at the first
        self.assertLessEqual(told.ready.max, self.data.stats().n_slots * 9 / 8)
        self.assertGreaterEqual(told.jobs.n, told.decode.n)
        self.assertEqual(told.stream, metrics.Distribution(0, 0, 0, 0, 0, 0))
        self.assertEqual(told.copy, metrics.Distribution(0, 0, 0, 0, 0, 0))
        self.assertTrue(0 <= told.waiting <= 1)
        self.assertEqual(told.fallbacks, self.data.stats().fallbacks)

    def test_it_has_every_member_of_the_c_struct(self):
        names = {name for name, *_ in _c.Metrics._fields_} - {"size", "reserved"}
        self.assertEqual({field.name for field in dataclasses.fields(metrics.Metrics)}, names)
        members = {name for name, *_ in _c.Distribution._fields_}
        self.assertEqual({field.name for field in dataclasses.fields(metrics.Distribution)}, members)
        codes = {value for name, value in vars(_c).items() if name.startswith("WINDOW_")}
        self.assertEqual(set(metrics.WINDOWS.values()), codes)

    def test_it_prints_a_line_and_json_holds_it(self):
        for _ in self.data:
            pass
        told = self.data.metrics()
        self.assertRegex(str(told), r"^\d+\.\d s: [\d,]+ samples/s, waited [\d.]+ % \(for a batch p50 .*, max .*\)$")
        self.assertEqual(json.loads(json.dumps(told.to_dict())), told.to_dict())

    def test_wrong_windows_are_refused(self):
        for window in ("hour", 7, None):
            with self.assertRaisesRegex(SettingsError, "window: value is .*; must be one of 'open', 'look', 'minute'"):
                self.data.metrics(window)
        self.data.close()
        with self.assertRaisesRegex(penstock.PenstockError, "closed"):
            self.data.metrics()


if __name__ == "__main__":
    unittest.main()
