# SPDX-License-Identifier: Apache-2.0
"""Parts of tasks: what one attempt at each writes becomes a data set, in the order in which it is merged."""

import json
import os
import signal
import subprocess
import sys
import unittest

import penstock
from data_fixture import Case, image_file
from penstock import Task
from penstock.packing.writer import merge

PACK, OTHER = "0123456789abcdef" * 2, "f" * 32
SCHEMA = {"x": "int64", "text": "utf8"}


def record(i):
    return {"x": i, "text": f"number {i} " * 20}


class Tasks(Case):
    def write(self, name, key, first, end, attempt=0, pack=PACK):
        with penstock.Writer(self.path(name), SCHEMA, part=Task(pack, key, attempt)) as w:
            for i in range(first, end):
                w.add(record(i))
        return self.path(name)

    def numbers(self, name="data"):
        return [r["x"] for r in penstock.Dataset(self.path(name))]

    def manifest(self, name):
        with open(self.path(f"{name}/manifest.json"), encoding="utf-8") as f:
            return json.load(f)

    def test_parts_join_in_the_order_given(self):
        parts = [self.write(f"p{i}", f"day={3 - i}", 10 * i, 10 * i + 10, attempt=i) for i in range(3)]
        merge(parts, self.path("data"), pack_id=PACK)
        merge(parts[::-1], self.path("back"))
        with penstock.Writer(self.path("whole"), SCHEMA) as w:
            for i in range(30):
                w.add(record(i))
        identity = [penstock.Dataset(self.path(name)).info.identity for name in ("data", "back", "whole")]
        self.assertEqual(identity[0], identity[2])
        self.assertNotEqual(identity[0], identity[1])
        self.assertEqual(self.numbers(), list(range(30)))
        self.assertEqual(self.numbers("back"), [*range(20, 30), *range(10, 20), *range(10)])
        m = self.manifest("p1")
        self.assertEqual([m[k] for k in ("part", "n_parts", "pack", "task", "attempt")], [0, 0, PACK, "day=2", 1])

    def test_duplicate_tasks_and_parts_of_another_pack_are_refused(self):
        a, b, again = self.write("a", "a", 0, 3), self.write("b", "b", 3, 6), self.write("again", "a", 0, 3, 1)
        stale = self.write("stale", "a", 0, 3, pack=OTHER)
        out = self.path("data")
        error = self.assert_says([a, again, "(attempt 1) are both of task a"], merge, [a, b, again], out)
        self.assertIsInstance(error, penstock.SettingsError)
        self.assert_says([stale, OTHER, "they were not packed together"], merge, [b, stale], out)
        self.assert_says([a, "not of the pack " + OTHER], merge, [a, b], out, pack_id=OTHER)
        with penstock.Writer(out, SCHEMA, pack_id=OTHER) as w:
            self.assert_says("it can only commit parts", w.add, record(0))
            self.assert_says("not of the pack " + OTHER, w.commit_parts, [a, b])
        self.assertFalse(os.path.exists(out))
        with penstock.Writer(out, SCHEMA, pack_id=PACK) as w:
            w.commit_parts([again, b])
        self.assertEqual(self.numbers(), list(range(6)))

    def test_a_part_may_be_empty(self):
        parts = [self.write("empty", "e", 0, 0), self.write("full", "f", 0, 2)]
        merge(parts, self.path("data"))
        self.assertEqual(self.numbers(), [0, 1])
        self.assert_says("and all other parts are empty", merge, parts[:1], self.path("none"))

    def test_the_part_that_a_killed_task_left_is_refused(self):
        code = ("import os, sys, signal, penstock\n"
                "w = penstock.Writer(sys.argv[1], {'x': 'int64', 'text': 'utf8'}, part=penstock.Task(sys.argv[2], 'k'))\n"
                "w.add(x=1, text='one')\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n")
        status = subprocess.run([sys.executable, "-c", code, self.path("killed"), PACK]).returncode
        self.assertEqual(status, -signal.SIGKILL)
        parts = [self.write("a", "a", 0, 2), self.path("killed")]
        self.assert_says([self.path("killed"), "its writer is at work or was killed"], merge, parts, self.path("data"))
        self.write("killed", "k", 2, 4, attempt=1)
        merge(parts, self.path("data"))
        self.assertEqual(self.numbers(), list(range(4)))

    def test_invalid_task_arguments_are_refused(self):
        for wrong, words in [(dict(pack="0" * 31, key="a"), ["pack", "32 lower-case hex digits", "uuid4().hex"]),
                             (dict(pack="0" * 31 + "\n", key="a"), ["pack"]), (dict(pack=7, key="a"), ["pack"]),
                             (dict(pack=PACK, key=""), ["key: value is ''; must be 1 to 200"]),
                             (dict(pack=PACK, key="a b"), ["key"]), (dict(pack=PACK, key="a" * 201), ["key"]),
                             (dict(pack=PACK, key=3), ["key"]), (dict(pack=PACK, key="a", attempt=-1), ["attempt"]),
                             (dict(pack=PACK, key="a", attempt=2**32), ["attempt"]),
                             (dict(pack=PACK, key="a", attempt=True), ["attempt"])]:
            self.assertIsInstance(self.assert_says(words, Task, **wrong), penstock.SettingsError)
        self.assert_says("pack_id: value is 'x'", penstock.Writer, self.path(), SCHEMA, pack_id="x")
        self.assert_says("must be left out with a Task", penstock.Writer, self.path(), SCHEMA, pack_id=PACK,
                         part=Task(PACK, "a"))
        self.assert_says("n_parts: value is 2", penstock.Writer, self.path(), SCHEMA, part=Task(PACK, "a"), n_parts=2)
        self.assert_says("pack_id: value is 'x'", merge, ["a"], self.path(), pack_id="x")
        self.assert_says("part: value is 3; must be a penstock.Task", penstock.pack, [record(0)], self.path(), part=3)
        self.assertEqual(self.left(), [])


class Packs(Case):
    def test_samples_are_packed_as_the_part_of_a_task_by_any_number_of_processes(self):
        samples = [record(i) for i in range(60)]
        for name, workers in (("alone", 0), ("two", 2)):
            task = Task(PACK, name, 5)
            d = penstock.pack(samples, self.path(name), part=task, num_workers=workers, progress=False)
            self.assertEqual([r["x"] for r in d], list(range(60)))
            with open(self.path(f"{name}/manifest.json"), encoding="utf-8") as f:
                m = json.load(f)
            self.assertEqual([m[k] for k in ("n_parts", "task", "attempt", "n_shards")], [0, name, 5, workers or 1])
        merge([self.path("two"), self.path("alone")], self.path("data"), pack_id=PACK)
        self.assertEqual([r["x"] for r in penstock.Dataset(self.path("data"))], list(range(60)) * 2)

    def test_an_attempt_that_is_repeated_writes_the_same_bytes(self):
        for name in ("one", "again"):
            penstock.pack([record(i) for i in range(40)], self.path(name), part=Task(PACK, "k"), num_workers=2,
                          progress=False)
        files = sorted(os.listdir(self.path("one")))
        self.assertEqual(files, sorted(os.listdir(self.path("again"))))
        for file in files:
            with open(self.path(f"one/{file}"), "rb") as a, open(self.path(f"again/{file}"), "rb") as b:
                self.assertEqual(a.read(), b.read(), file)

    def test_a_folder_of_images_is_packed_as_the_part_of_a_task(self):
        for i in range(2):
            os.mkdir(self.path(f"day{i}"))
            for k in range(3):
                with open(self.path(f"day{i}/{i}{k}.jpg"), "wb") as f:
                    f.write(image_file(3 * i + k))
            penstock.pack(self.path(f"day{i}"), self.path(f"part{i}"), part=Task(PACK, f"day/{i}", i), progress=False)
        merge([self.path("part1"), self.path("part0")], self.path("data"), pack_id=PACK)
        again = penstock.pack(self.path("day1"), self.path("part1"), part=Task(PACK, "day/1", 1), progress=False)  # is done already
        self.assertEqual(len(again), 3)
        with self.assertRaisesRegex(penstock.DataSetExistsError, r"holds attempt 1 at the task day/1 of this pack, and this is "
                                    r"attempt 2 at the task day/1; choose another directory \(overwrite=True replaces"):
            penstock.pack(self.path("day1"), self.path("part1"), part=Task(PACK, "day/1", 2), progress=False)
        os.utime(self.path("day1/10.jpg"), (1, 1))
        with self.assertRaisesRegex(penstock.DataSetExistsError, "its files have changed since then; overwrite=True"):
            penstock.pack(self.path("day1"), self.path("part1"), part=Task(PACK, "day/1", 1), progress=False)
        penstock.pack(self.path("day1"), self.path("part1"), part=Task(PACK, "day/1", 1), progress=False, overwrite=True)
        shard = next(name for name in os.listdir(self.path("part1")) if name.endswith(".pstk"))
        os.truncate(self.path(f"part1/{shard}"), 1000)
        with self.assertRaisesRegex(penstock.DataSetExistsError, r"not whole \(overwrite=True packs it again\): " + shard):
            penstock.pack(self.path("day1"), self.path("part1"), part=Task(PACK, "day/1", 1), progress=False)
        penstock.pack(self.path("day1"), self.path("part1"), part=Task(PACK, "day/1", 1), progress=False, overwrite=True)
        keys = [r["key"] for r in penstock.Dataset(self.path("data"))]
        self.assertEqual(keys, ["10.jpg", "11.jpg", "12.jpg", "00.jpg", "01.jpg", "02.jpg"])


if __name__ == "__main__":
    unittest.main()
