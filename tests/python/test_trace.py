# SPDX-License-Identifier: Apache-2.0
"""Traces: events of every batch in every stage, valid for Perfetto, and on one axis with torch.profiler."""
import collections
import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time
import unittest
import warnings

import sets
import penstock
from penstock import SettingsError

STAGES = ("claim", "read", "decode", "finish", "next", "lease")
NUMBERS = (int, float)


def loader(**keywords):
    return penstock.Loader(keywords.pop("path", None) or sets.scalars(), **{"batch_size": 10, "framework": "dlpack", "seed": 3, **keywords})


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "trace.json")

    def traced(self, n=10, trace_events=0, **keywords):
        """Return the trace of n batches."""
        with loader(observe=penstock.Observe(trace_path=self.path, trace_events=trace_events), **keywords) as data:
            for _, _batch in zip(range(n), data):
                pass
            del _batch  # a lease is in the trace once it has ended
        return read(self.path)

    def check_nesting(self, events):
        """Complete events of a thread lie apart or one in another, to 0.5 us where times count from 1970, as doubles."""
        threads = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                begin = round(event["ts"] * 1000)
                threads[event["pid"], event["tid"]].append((begin, -(begin + round(event["dur"] * 1000))))
        for spans in threads.values():
            ends = []
            for begin, end in sorted(spans):
                slack = 500 if begin > 1e18 else 0
                while ends and ends[-1] <= begin + slack:
                    ends.pop()
                self.assertTrue(not ends or -end <= ends[-1] + slack, (begin, -end, ends))
                ends.append(-end)

    def check_schema(self, events):
        """Check the keys that the Trace Event Format requires of each kind of event."""
        open_pairs = collections.Counter()
        self.check_nesting(events)
        named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
        used = {(event["pid"], event["tid"]) for event in events if event["ph"] != "M"}
        self.assertEqual(used - named, set())
        for event in events:
            self.assertIn(event["ph"], "XbeM")
            self.assertIsInstance(event["name"], str)
            self.assertIsInstance(event["pid"], int)
            if event["ph"] == "M":
                self.assertIsInstance(event["args"]["name"], str)
                continue
            self.assertIsInstance(event["tid"], int)
            self.assertIsInstance(event["ts"], NUMBERS)
            self.assertTrue(0 <= event["ts"] < 1e16)  # since 1970: 1.8e15
            if event["ph"] == "X":
                self.assertTrue(0 <= event["dur"] < 1e12)
            else:
                open_pairs[event["cat"], event["name"], event["id"]] += 1 if event["ph"] == "b" else -1
                self.assertGreaterEqual(min(open_pairs.values()), 0)
        self.assertEqual(set(open_pairs.values()) - {0}, set())


class Traces(Case):
    def test_a_trace_of_ten_batches_has_every_batch_once_in_every_stage(self):
        self.check_batches(self.traced())

    def test_batches_of_all_kinds_of_loaders_are_there_once_in_every_stage(self):
        for keywords in ({"order": penstock.Order("windowed", block=7, window=2)}, {"order": "sequential", "n_threads": 3},
                         {"reading": penstock.Reading(io="direct")},
                         {"path": penstock.Mixture({sets.scalars(): 0.9, sets.scalars(40): 0.1}, exhaustion="repeat",
                                                    samples_per_epoch=200)}):
            with self.subTest(keywords=keywords):
                self.check_batches(self.traced(**keywords))

    def test_batches_of_images_are_there_once_in_every_stage(self):
        """As planes, and as the JPEG and PNG files that they were."""
        outputs = {"x": penstock.image("jpg", [penstock.ops.Resize((16, 16))])}
        planes, kept = sets.photos(), os.path.join(self.folder, "kept")
        subprocess.run([os.environ["PENSTOCK_COMMAND"], "pack", os.path.join(sets.ROOT, "files-40"), kept, "--jpeg", "keep"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for path in (planes, kept):
            self.check_batches(self.traced(n=4, path=path, outputs=outputs), 4)

    def test_blocks_of_a_windowed_order_are_there_once_in_an_epoch(self):
        """Blocks that are read ahead at the end belong to later epochs."""
        events = self.traced(n=200, order=penstock.Order("windowed", ways=1, block=50, window=2))["traceEvents"]
        self.check_schema(events)
        blocks = [event["args"] for event in events if event["name"] == "block" and event["ph"] == "b"]
        first = collections.Counter(args["block"] for args in blocks if args["epoch"] == 0)
        self.assertEqual(first, {block: 1 for block in range(40)})
        self.assertEqual({args["rows"] for args in blocks}, {50})
        for event in events:
            if event["name"] == "block":
                self.assertTrue(set(event.get("args", {})) <= {"epoch", "block", "rows"})

    def check_batches(self, found, n_batches=10):
        self.check_schema(found["traceEvents"])
        n, rows = collections.Counter(), collections.Counter()
        for event in found["traceEvents"]:
            if event["ph"] in "Xb" and "args" in event and event["name"] != "block":
                args = event["args"]
                if args["batch"] >= n_batches:
                    continue  # read ahead
                self.assertEqual(args["epoch"], 0)
                self.assertEqual(args["index"], args["batch"])
                n[event["name"], args["batch"]] += 1
                rows[event["name"], args["batch"]] += args["rows"]
        for stage in STAGES:
            for batch in range(n_batches):
                self.assertEqual(rows[stage, batch], 10, stage)
                if stage not in ("read", "decode"):  # read and decode are of tasks
                    self.assertEqual(n[stage, batch], 1, stage)
        self.assertEqual({name for name, _batch in n}, set(STAGES))

    def test_stages_of_a_batch_come_in_their_order(self):
        ends, begins = collections.defaultdict(dict), collections.defaultdict(dict)
        for event in self.traced()["traceEvents"]:
            if event["ph"] in "Xb" and "args" in event:
                batch, name = event["args"]["batch"], event["name"]
                begins[batch][name] = min(event["ts"], begins[batch].get(name, event["ts"]))
                if event["ph"] == "X":
                    ends[batch][name] = max(event["ts"] + event["dur"], ends[batch].get(name, 0))
        for batch in range(10):
            begin, end = begins[batch], ends[batch]
            self.assertLessEqual(begin["claim"], begin["read"])
            self.assertLessEqual(begin["read"], begin["decode"])
            self.assertLessEqual(end["decode"], end["finish"] + 0.002)
            self.assertLessEqual(end["finish"], end["next"] + 0.002)
            self.assertLessEqual(begin["lease"], end["next"] + 0.002)

    def test_every_thread_has_a_name_and_counts_what_it_overwrote(self):
        found = self.traced(n=200, trace_events=16)
        threads = {event["tid"]: event["args"] for event in found["traceEvents"] if event["name"] == "thread_name"}
        self.assertIn("next", [args["name"] for args in threads.values()])
        self.assertTrue(any(args["name"].startswith("pstk-work-") for args in threads.values()))
        for tid, args in threads.items():
            kept = [event for event in found["traceEvents"] if event.get("tid") == tid and event["ph"] in "Xb"]
            self.assertEqual(args["overwritten"], max(0, args["events"] - 16))
            self.assertEqual(len(kept), args["events"] - args["overwritten"])
        ours = next(args for args in threads.values() if args["name"] == "next")
        self.assertGreater(ours["overwritten"], 0)

    def test_times_are_those_of_the_clock_that_it_names(self):
        before = time.monotonic_ns(), time.time_ns()
        found = self.traced()
        after = time.monotonic_ns(), time.time_ns()
        other = found["otherData"]
        self.assertTrue(before[0] <= other["monotonic_ns"] <= after[0])
        self.assertTrue(before[1] <= other["realtime_ns"] <= after[1])
        for event in found["traceEvents"]:
            if event["ph"] != "M":
                self.assertLessEqual(other["monotonic_ns"] + event["ts"] * 1000, after[0])

    def test_it_is_written_on_demand_also_by_other_threads(self):
        with loader(observe=penstock.Observe(trace_events=100)) as data:
            batches = iter(data)
            wrong = []

            def write():
                try:
                    for _ in range(20):
                        data.write_trace(self.path)
                except Exception as error:
                    wrong.append(error)

            thread = threading.Thread(target=write)
            thread.start()
            for _batch in batches:
                pass
            thread.join()
            self.assertEqual(wrong, [])
            self.check_schema([event for event in read(self.path)["traceEvents"]])
            with self.assertRaisesRegex(SettingsError, "opened without trace_path"):
                data.write_trace()
        with self.assertRaisesRegex(penstock.PenstockError, "closed"):
            data.write_trace(self.path)

    def test_an_unwritable_trace_is_reported_and_the_run_goes_on(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with loader(observe=penstock.Observe(trace_path="/dev/full")) as data:
                self.assertEqual(sum(1 for _ in data), 200)
                self.assertIn("no_trace", data.stats().fallbacks)
        told = [str(warning.message) for warning in seen if warning.category is RuntimeWarning]
        self.assertEqual(len(told), 2, told)
        self.assertIn("/dev/full", told[1])
        self.assertIn("No space left", told[1])

    def test_wrong_values_are_refused(self):
        for path, kind, message in ((os.path.join(self.folder, "none", "t.json"), SettingsError, "folder that exists"),
                                    (self.folder, SettingsError, "must be a file"),
                                    ("", SettingsError, "trace_path: value is empty; must be a path$"),
                                    (self.path + ".gz", SettingsError, "trace_path: value is .* must not end in .gz"),
                                    (self.path + ".GZ", SettingsError, "trace_path: value is .* must not end in .gz"),
                                    (self.path + ".zst", SettingsError, "trace_path: value is .* must not end in .zst"),
                                    (self.path + ".bz2", SettingsError, "trace_path: value is .* must not end in .bz2"),
                                    ("a\0b", SettingsError, "zero byte"), (7.5, TypeError, "trace_path: value is a float; must be the path of a file")):
            with self.assertRaisesRegex(kind, message):
                loader(observe=penstock.Observe(trace_path=path))
        with self.assertRaisesRegex(SettingsError, "trace_events: value is 1048577; must be 0 .* from 1 to 1048576"):
            loader(observe=penstock.Observe(trace_events=2**20 + 1))
        with loader(observe=penstock.Observe(trace_path=self.path)) as data, self.assertRaisesRegex(SettingsError,
                                                                                                    "^path: .* must not end in .gz"):
            data.write_trace(self.path + ".gz")
        self.assertFalse(os.path.exists(self.path + ".gz"))
        with loader() as data, self.assertRaisesRegex(SettingsError, "trace_events"):
            data.write_trace(self.path)

    def test_bench_writes_one(self):
        command = os.environ.get("PENSTOCK_COMMAND")
        if not command:
            self.skipTest("PENSTOCK_COMMAND names no program")
        run = [command, "bench", sets.scalars(), "--epochs", "1", "--no-ceilings", "--trace"]
        subprocess.run([*run, self.path], check=True, stdout=subprocess.DEVNULL)
        self.check_schema(read(self.path)["traceEvents"])
        done = subprocess.run([*run, "/dev/full"], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn(b"/dev/full", done.stderr)
        self.assertIn(b"the trace could not be written", done.stdout)
        done = subprocess.run([*run, self.folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)


class Merged(Case):
    def theirs(self, trace, name="theirs.json"):
        path = os.path.join(self.folder, name)
        data = json.dumps(trace).encode()
        with open(path, "wb") as file:
            file.write(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    def test_events_keep_their_place_on_the_clock_of_the_day(self):
        ours = self.traced()
        opened, base = ours["otherData"]["realtime_ns"], 1_700_000_000_000_000_000
        for theirs, base_ns in (({"traceEvents": [], "baseTimeNanoseconds": base}, base), ({"traceEvents": []}, 0), ([], 0)):
            for name in ("theirs.json", "theirs.json.gz"):
                merged = penstock.trace.merge([self.path, self.path], self.theirs(theirs, name))
                moved = [event for event in merged["traceEvents"] if event["ph"] == "X"]
                self.check_schema(merged["traceEvents"])  # the two loaders' pairs do not meet
                first = next(event for event in ours["traceEvents"] if event["ph"] == "X")
                self.assertAlmostEqual(moved[0]["ts"] * 1000 + base_ns, opened + first["ts"] * 1000, delta=2000)
                self.assertEqual(len({event["tid"] for event in moved}),
                                 2 * len({event["tid"] for event in ours["traceEvents"] if event["ph"] == "X"}))

    def test_a_known_event_lies_inside_of_a_range_of_torch_profiler(self):
        torch = sets.torch_or_skip()
        theirs, both = os.path.join(self.folder, "torch.json"), os.path.join(self.folder, "both.json")
        activities = [torch.profiler.ProfilerActivity.CPU]
        with loader(observe=penstock.Observe(trace_path=self.path), framework="torch") as data, \
                torch.profiler.profile(activities=activities) as profiler:
            for _, _batch in zip(range(3), data):
                with torch.profiler.record_function("pause"):
                    time.sleep(0.005)
        profiler.export_chrome_trace(theirs)
        merged = penstock.trace.merge(self.path, theirs, both)
        self.assertEqual(read(both), merged)

        def spans(name, category):
            return sorted((event["ts"], event["ts"] + event["dur"]) for event in merged["traceEvents"]
                          if event.get("name") == name and event.get("cat") == category and event["ph"] == "X")

        ranges, ours = spans("penstock.next", "user_annotation"), spans("next", "penstock")
        pauses = spans("pause", "user_annotation")
        self.assertEqual((len(ranges), len(pauses)), (3, 3))
        self.assertEqual(len(ours), 3)
        for begin, end in ours:  # each of ours is in one of theirs, to 1 ms, and in no pause
            self.assertTrue(any(a - 1000 <= begin and end <= b + 1000 for a, b in ranges), (begin, end, ranges))
            self.assertFalse(any(a + 1000 <= begin and end <= b - 1000 for a, b in pauses), (begin, end, pauses))

    def test_a_result_whose_name_ends_in_gz_is_compressed(self):
        self.traced()
        out = os.path.join(self.folder, "both.json.gz")
        for name in (out, os.fsencode(out), pathlib.Path(out)):
            merged = penstock.trace.merge(self.path, self.theirs([]), name)
            with gzip.open(out) as file:
                self.assertEqual(json.load(file), merged)
            os.unlink(out)
        with self.assertRaisesRegex(SettingsError, "^out: value is '.*zst'; must not end in .zst, because it is written as plain JSON "
                                    r"\(compress the file afterwards\)$"):
            penstock.trace.merge(self.path, self.theirs([]), out.replace(".gz", ".zst"))
        penstock.trace.merge(self.path, self.theirs([]), out.replace(".gz", ".Gz"))
        with gzip.open(out.replace(".gz", ".Gz")) as file:
            self.assertEqual(json.load(file), merged)

    def test_a_file_that_cannot_be_opened_is_named_with_its_argument(self):
        self.traced()
        lost, theirs = os.path.join(self.folder, "m.json"), self.theirs([])
        for arguments, said in ((([self.path], lost), "theirs: cannot read the file: No such file or directory (the order is "
                                                      "merge(ours, theirs, out))"),
                                (([lost], theirs), "ours: cannot read the file: No such file or directory (the"),
                                ((os.fsencode(lost), theirs), "ours: cannot read the file: No such file or directory (the")):
            with self.assertRaises(FileNotFoundError) as caught:
                penstock.trace.merge(*arguments)
            self.assertTrue(caught.exception.strerror.startswith(said), caught.exception)
            self.assertEqual(caught.exception.filename, lost)
        with self.assertRaisesRegex(IsADirectoryError, r"^\[Errno 21\] theirs: cannot read the file: Is a directory"):
            penstock.trace.merge(self.path, self.folder)
        for out in (os.path.join(self.folder, "none", "both.json"), os.path.join(self.folder, "none", "both.json.gz")):
            with self.assertRaisesRegex(FileNotFoundError, "out: cannot write the file: No such file or directory") as caught:
                penstock.trace.merge(self.path, theirs, out)
            self.assertEqual(caught.exception.filename, out)

    def test_files_that_are_no_traces_are_refused(self):
        self.traced()
        empty = self.theirs({"traceEvents": []})
        for ours, theirs, message in ((empty, empty, "ours: .* is not the trace of a loader"),
                                      (self.path, self.theirs({"a": 1}, "a.json"), "theirs: .* list of traceEvents"),
                                      (self.path, self.theirs(7, "b.json"), "theirs: .* list of traceEvents")):
            with self.assertRaisesRegex(SettingsError, message):
                penstock.trace.merge(ours, theirs)
        with open(empty, "wb") as file:
            file.write(b"\x1f\x8b broken")
        with self.assertRaisesRegex(SettingsError, "theirs: .* must be a file of JSON"):
            penstock.trace.merge(self.path, empty)
        with self.assertRaisesRegex(TypeError, "ours: value is 7; must be the path of a file, or a list"):
            penstock.trace.merge(7, self.theirs([]))
        with open(empty, encoding="utf-8") as file:  # the number of an open file is no path
            for number in (True, file.fileno()):
                for name, files in (("theirs", (self.path, number)), ("ours", ([number], self.theirs([], "c.json"))),
                                    ("out", (self.path, self.theirs([], "c.json"), number))):
                    with self.assertRaisesRegex(TypeError, f"{name}: value is an? (int|bool|list); must be the path of a file"):
                        penstock.trace.merge(*files)
            os.fstat(file.fileno())


if __name__ == "__main__":
    unittest.main()
