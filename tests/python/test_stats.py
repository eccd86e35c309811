# SPDX-License-Identifier: Apache-2.0
"""loader.stats(): every number of the C struct, readable when printed, fit for JSON."""
import dataclasses
import itertools
import json
import threading
import time
import unittest

import sets
import penstock
from penstock import _c, stats


class Stats(unittest.TestCase):
    def setUp(self):
        self.data = penstock.Loader(sets.scalars(), batch_size=10, framework="dlpack")
        self.addCleanup(self.data.close)

    def test_it_counts(self):
        self.assertEqual(self.data.stats().n_batches, 0)
        for _ in self.data:
            pass
        told = self.data.stats()
        self.assertEqual((told.n_samples, told.n_batches, told.n_replacements), (2000, 200, 0))
        self.assertEqual(told.stage_consumer.n_items, 200)
        self.assertGreaterEqual(told.stage_workers.n_items, 2000)
        self.assertIn(told.reader, ("io_uring", "threads"))
        self.assertIn(told.kernels, ("c", "avx2", "avx512", "neon"))
        self.assertIn(told.bottleneck, stats.ADVICE)
        self.assertGreater(told.slot_memory, 0)
        self.assertTrue(0 <= told.starved <= 1)

    def test_a_forecast_is_of_these_statistics(self):
        self.assertEqual((self.data.forecast().cases, str(self.data.forecast())),
                         ((), "no prediction: the loop has not run long enough, or nothing shows a bottleneck"))
        for epoch in range(3):
            for _ in self.data.epoch(epoch):
                time.sleep(0.0005)
        told = self.data.forecast()
        self.assertNotEqual(self.data.stats().bottleneck, "unknown")
        counts = self.data.stats()
        loop = counts.stage_consumer.busy_ns + counts.stage_consumer.starved_ns
        self.assertAlmostEqual(told.measured, counts.n_samples * 1e9 / loop, delta=0.1 * told.measured)
        whats = [(case.what, case.change) for case in told.cases]
        self.assertIn(("workers", "+1"), whats)
        self.assertEqual(whats[-2:], [("storage", "x2"), ("consumer", "none")])
        for case in told.cases:
            self.assertTrue(case.is_prediction and case.limit in stats.ADVICE and case.limit != "unknown", case)
            self.assertGreaterEqual(case.samples_per_second, told.measured * 0.999)
            self.assertIn(f"{case.what} {case.change}: ", str(told))
        self.assertEqual(json.loads(json.dumps(told.to_dict())), told.to_dict())
        both, = self.data.forecast(more_workers=2, storage=0.5).cases
        self.assertEqual((both.what, both.change), ("workers+storage", "+2,x0.5"))

    def test_times_begin_with_the_first_batch_that_the_loop_asks_for(self):
        n_full = 10 * self.data.stats().n_slots
        end = time.monotonic() + 30
        while self.data.stats().stage_workers.n_items < n_full and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(1)
        told = self.data.stats()
        for stage in (told.stage_reader, told.stage_workers, told.stage_consumer):
            self.assertEqual((stage.busy_ns, stage.starved_ns, stage.blocked_ns, stage.cpu_ns, stage.core_wait_ns),
                             (0, 0, 0, 0, 0))
        self.assertEqual((told.cpu_ns, told.n_rows_ahead, told.bottleneck), (0, n_full, "unknown"))
        begin, cpu = time.monotonic_ns(), time.process_time_ns()
        for _ in itertools.islice(self.data, 20):
            time.sleep(0.01)
        told = self.data.stats()
        whole = time.monotonic_ns() - begin
        self.assertLessEqual(told.cpu_ns, time.process_time_ns() - cpu)
        self.assertEqual(told.n_rows_ahead, n_full)
        for stage in (told.stage_reader, told.stage_workers, told.stage_consumer):
            self.assertLessEqual(stage.busy_ns + stage.starved_ns + stage.blocked_ns, stage.n_threads * whole)
        used = [stage.cpu_ns for stage in (told.stage_reader, told.stage_workers, told.stage_consumer)]
        self.assertTrue(0 < used[0] < whole and 0 < used[1] and used[2] == 0, used)
        self.assertLess(sum(used), time.process_time_ns() - cpu)
        self.assertEqual((told.stage_consumer.core_wait_ns, told.stage_uploader.cpu_ns), (0, 0))
        share = 100 * told.starved
        self.assertEqual(told.bottleneck, "consumer")
        self.assertTrue(told.advice.startswith(f"the loop waits for batches {share:.0f} % of the time; "), told.advice)

    def test_a_change_that_means_nothing_is_refused(self):
        for change, words in (({"more_workers": 0}, "more_workers: value is 0"), ({"storage": 0}, "storage: value is 0"),
                              ({"storage": float("nan")}, "storage: value is nan"), ({"storage": -1}, "storage: value is -1")):
            with self.assertRaisesRegex(ValueError, words):
                self.data.forecast(**change)
        with self.assertRaisesRegex(TypeError, "more_workers: value is '2'"):
            self.data.forecast(more_workers="2")

    def test_it_has_every_member_of_the_c_struct(self):
        names = {name for name, *_ in _c.Stats._fields_} - {"size"}
        self.assertEqual({field.name for field in dataclasses.fields(penstock.Stats)}, names | {"data_sets"})

    def test_every_enumerator_has_a_word(self):
        for words, prefix in ((stats.BOTTLENECKS, "BOTTLENECK_"), (stats.FALLBACKS, "FALLBACK_")):
            codes = {value for name, value in vars(_c).items() if name.startswith(prefix)}
            self.assertEqual(set(words), codes)
        self.assertEqual(set(stats.ADVICE), set(stats.BOTTLENECKS.values()))

    def test_it_prints_for_people(self):
        for _ in self.data:
            pass
        text = str(self.data.stats())
        for part in ("2,000 samples in 200 batches", "reader", "workers", "consumer", "slots", "bottleneck: "):
            self.assertIn(part, text)
        self.assertNotIn("uploader", text)
        self.assertLessEqual(max(map(len, text.splitlines()[:-1])), 100)

    def test_json_holds_it(self):
        told = self.data.stats().to_dict()
        self.assertEqual(json.loads(json.dumps(told)), told)
        self.assertIn("busy_ns", told["stage_workers"])

    def test_after_close_it_has_the_last_figures(self):
        with penstock.Loader(sets.scalars(), batch_size=10, framework="dlpack") as data:
            n = sum(1 for _ in data)
            before = data.stats()
        after = data.stats()
        self.assertEqual((n, after.n_batches, after.n_samples), (200, before.n_batches, before.n_samples))
        self.assertEqual(after, data.stats())
        self.assertIn("2,000 samples in 200 batches", str(after))
        data.close()
        self.assertEqual(after, data.stats())
        mixed = penstock.Loader(penstock.Mixture({sets.scalars(): 1, sets.scalars(103): 1}), batch_size=10, framework="dlpack")
        next(iter(mixed))
        mixed.close()
        self.assertEqual([one.n_samples for one in mixed.stats().data_sets], [2000, 103])

    def test_other_threads_may_ask_all_the_time_also_while_it_closes(self):
        stop, wrong = threading.Event(), []

        def ask():
            while not stop.is_set():
                try:
                    self.data.stats()
                except penstock.PenstockError as error:
                    wrong.append(error)
                    return

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in self.data:
            pass
        self.data.close()
        stop.set()
        for thread in threads:
            thread.join(10)
            self.assertFalse(thread.is_alive())
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
