# SPDX-License-Identifier: Apache-2.0
"""Monitor.report writes a run as one HTML page, by the command, and stats().plot() draws stages with matplotlib."""
import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import time
import unittest
import unittest.mock

import penstock
import sets
from data_fixture import Case
from penstock import stats
from penstock.monitor import JSONLines, history
from penstock.monitor.reading import Reading

NO_CHART = "no Chart.js"
QUICK = {"every": 0.2, "look": 0.05, "gpu": None, "line": False}


def opened(**more):
    return penstock.Loader(sets.scalars(), batch_size=10, framework="dlpack", **more)


def watched(loader, seconds=0.4, **more):
    """Return a Monitor that has ended, of a loop of that many seconds."""
    with penstock.Monitor(loader, **{**QUICK, **more}) as watching:
        end = time.monotonic() + seconds
        for _ in loader:
            time.sleep(0.002)
            if time.monotonic() > end:
                break
    return watching


class Report(Case):
    def setUp(self):
        super().setUp()
        if "PENSTOCK_COMMAND" not in os.environ:
            self.skipTest("PENSTOCK_COMMAND names no program")
        self.path = os.path.join(self.folder, "run.html")

    def written(self, watching):
        """Return the document of the page; a skip where the command cannot draw."""
        try:
            watching.report(self.path)
        except penstock.PenstockError as error:
            if NO_CHART in str(error):
                self.skipTest("missing: libjs-chart.js when the command was built")
            raise
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        self.assertLess(len(text), 1e6)
        self.assertEqual(text.count("<script"), 3)
        return json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL)[1])

    def test_a_page_has_what_the_counters_have(self):
        with opened() as loader:
            watching = watched(loader)
            total = watching.latest.total
            found = self.written(watching)
        self.assertEqual((found["schema"], found["version"], found["producer"]), ("penstock report", 1, "monitor"))
        self.assertEqual((found["name"], found["node"]), (watching.name, watching.node))
        run, (series,) = found["run"], found["series"]
        self.assertEqual(run["samples"], total.n_samples)
        self.assertEqual(run["stages"]["consumer"]["items"], total.stage_consumer.n_items)
        self.assertEqual(run["memory"]["slots"], total.slot_memory)
        self.assertIn(stats.ADVICE[run["bottleneck"]], run["advice"])
        self.assertGreaterEqual(len(series["begin"]), 2)
        samples = sum(a * b for a, b in zip(series["samples_per_second"], series["seconds"]))
        self.assertAlmostEqual(samples / total.n_samples, 1, places=3)
        self.assertEqual(found["times"]["wait"]["n"], total.n_batches)
        self.assertEqual((found["settings"]["batch_size"], found["settings"]["order"]), (10, "full"))
        self.assertGreaterEqual(found["machine"]["cores"], 1)
        forecast = run["forecast"]
        self.assertTrue(forecast is None or all(case["is_prediction"] for case in forecast["cases"]))

    def test_a_page_after_the_loader_is_closed_and_while_it_runs(self):
        with opened() as loader, penstock.Monitor(loader, **QUICK) as watching:
            end = time.monotonic() + 10
            while watching.latest is None and time.monotonic() < end:
                for _ in loader:
                    time.sleep(0.001)
            self.assertTrue(self.written(watching)["series"])
        self.assertEqual(self.written(watching)["run"]["samples"], watching.latest.total.n_samples)

    def test_hostile_names_are_text(self):
        name = "</script><script>alert(1)</script>\"'\n\udcff"
        with opened() as loader:
            found = self.written(watched(loader, name=name))
        self.assertEqual(found["name"], name.replace("\udcff", "?"))

    def test_without_a_reading_it_says_so(self):
        with opened() as loader:
            with self.assertRaisesRegex(penstock.PenstockError, r"no reading yet \(it looks every 0.05 s"):
                penstock.Monitor(loader, **QUICK).report(self.path)
            with penstock.Monitor(loader, **{**QUICK, "look": 60, "every": 60}) as watching:
                with self.assertRaisesRegex(penstock.PenstockError, "no reading yet"):
                    watching.report(self.path)
            self.assertTrue(self.written(watching)["series"])  # close() looked
        self.assertEqual(os.listdir(self.folder), ["run.html"])

    def test_a_disk_that_takes_no_page_is_named_and_the_run_goes_on(self):
        with opened() as loader:
            watching = watched(loader)
            self.written(watching)  # or a skip
            for path, why in (("/dev/full", "No space left on device"), (self.folder, "it is a folder"),
                              (os.path.join(self.folder, "none/x.html"), "No such file or directory")):
                with self.assertRaisesRegex(penstock.PenstockError, "^cannot write .*" + why):
                    watching.report(path)
            self.assertIsNotNone(next(iter(loader), None))

    def test_without_the_command_it_says_what_to_do(self):
        with opened() as loader:
            watching = watched(loader, 0.1)
        with unittest.mock.patch.dict(os.environ, {"PATH": self.folder}):
            del os.environ["PENSTOCK_COMMAND"]
            with self.assertRaisesRegex(penstock.PenstockError, "draws the page, was not found: .* set PENSTOCK_COMMAND to its path.*"
                                        "`penstock page run.jsonl`"):
                watching.report(self.path)
        for program, why in (("/no/such", "No such file or directory"), (self.folder, "Permission denied")):
            with unittest.mock.patch.dict(os.environ, {"PENSTOCK_COMMAND": program}):
                with self.assertRaisesRegex(penstock.PenstockError, f"'{program}', .* does not start: {why} .set PENSTOCK_COMMAND"):
                    watching.report(self.path)
        self.assertEqual(os.listdir(self.folder), [])

    def test_lines_of_a_sink_draw_the_same_rates(self):
        lines = os.path.join(self.folder, "run.jsonl")
        with opened() as loader:
            watching = watched(loader, every=0.05, sinks=JSONLines(lines))
        expected = self.written(watching)["run"]
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "page", lines, "-o", self.path], check=False)
        self.assertEqual(done.returncode, 0)
        with open(self.path, encoding="utf-8") as file:
            found = json.loads(re.search(r'id="report">(.*?)</script>', file.read(), re.DOTALL)[1])["run"]
        for key in ("samples", "batches"):
            self.assertEqual(found[key], expected[key])
        self.assertAlmostEqual(found["samples_per_second"] / expected["samples_per_second"], 1, places=2)


class Kept(unittest.TestCase):
    """The history of a Monitor has a bound, and loses no sample."""

    def reading(self, i, **more):
        values = {"time": 10.0 + i, "seconds": 1.0, "name": "x", "node": "n", "rank": 0, "world": 1, "epoch": 0, "position": i,
                  "n_samples": 2, "n_batches": 1, "n_replacements": 0, "samples_per_s": float(i), "read_bytes_per_s": 1.0,
                  "verdict": "decode", "total": None}
        return Reading(**{**values, **more})

    def test_points_are_merged_in_pairs_when_they_are_full(self):
        kept, most = history.History(), history.MAX_POINTS
        for i in range(most):
            kept.add(self.reading(i))
        before = kept.points()
        self.assertEqual(len(before), most)
        kept.add(self.reading(most))
        after = kept.points()
        self.assertEqual((len(before), len(after)), (most, most // 2 + 1))  # a caller that has the points keeps them
        self.assertEqual((after[1]["samples_per_s"], after[1]["seconds"], after[1]["time"]), (2.5, 2.0, 13.0))
        for i in range(most + 1, 5 * most):
            kept.add(self.reading(i))
            self.assertLessEqual(len(kept.points()), most)
        self.assertEqual(sum(point["n_samples"] for point in kept.points()), 2 * 5 * most)
        self.assertEqual(sum(point["seconds"] for point in kept.points()), 5 * most)

    def test_unknown_readings_do_not_count(self):
        kept = history.History()
        for i in range(history.MAX_POINTS + 1):
            kept.add(self.reading(i, waiting=0.5 if i % 2 else None, rss=None))
        self.assertEqual({point["waiting"] for point in kept.points()[:-1]}, {0.5})
        self.assertEqual({point["rss"] for point in kept.points()}, {None})


class Plot(Case):
    def test_without_matplotlib_it_names_the_package(self):
        with opened() as loader:
            found = loader.stats()
        with unittest.mock.patch.dict("sys.modules", {"matplotlib": None}):
            with self.assertRaisesRegex(ImportError, "needs matplotlib: pip install matplotlib"):
                found.plot()

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "missing: matplotlib")
    def test_bars_are_the_shares_of_the_stages(self):
        with opened() as loader:
            found = watched(loader, 0.2).latest.total
        figure = found.plot()
        axes, = figure.axes
        self.assertIn(f"limit: {found.bottleneck}", axes.get_title())
        self.assertIn("%", axes.get_xlabel())
        self.assertEqual([text.get_text() for text in axes.get_legend().get_texts()], ["busy", "starved", "blocked"])
        names = [label.get_text() for label in axes.get_yticklabels()]
        self.assertEqual([name.split(" ")[0] for name in names], ["reader", "workers", "consumer"])
        busy = axes.containers[0][1].get_width()
        workers = found.stage_workers
        self.assertAlmostEqual(busy, 100 * workers.busy_ns / (workers.busy_ns + workers.starved_ns + workers.blocked_ns))
        path = os.path.join(self.folder, "plot.png")
        figure.savefig(path)
        self.assertGreater(os.path.getsize(path), 1000)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "missing: matplotlib")
    def test_a_stage_without_time_has_no_bar_and_axes_may_be_given(self):
        from matplotlib.figure import Figure
        with opened() as loader:
            empty = dataclasses.replace(loader.stats(), stage_workers=stats.StageStats(0, 0, 0, 0, 0, 0, 2), n_device_slots=1)
        figure = Figure()
        axes = figure.add_subplot()
        self.assertIs(empty.plot(axes=axes), figure)
        widths = [bars[1].get_width() for bars in axes.containers]
        self.assertTrue(all(width != width for width in widths), widths)  # NaN: absent, not 0
        self.assertEqual(len(axes.get_yticklabels()), 4)


if __name__ == "__main__":
    unittest.main()
