# SPDX-License-Identifier: Apache-2.0
"""The tasks of an engine and its driver, in this process: one attempt at each task makes the data set, nothing
else stays, and a folder that they do not share is refused by name. tests/engines runs the engines themselves."""
import dataclasses
import os
import pickle
import shutil
import signal
import subprocess
import sys
import unittest

import penstock
from data_fixture import Case, image_file
from penstock.packing import parts
from penstock.packing.cluster import ClusterPack, WriterSettings

SCHEMA = {"x": "int64", "text": "utf8"}


def samples(first, end):
    return [{"x": i, "text": f"number {i}"} for i in range(first, end)]


class Cluster(Case):
    def pack(self, schema=SCHEMA, **settings):
        made = ClusterPack(self.path(), schema, WriterSettings(**settings), "a test")
        self.addCleanup(made.abort)
        return made

    def numbers(self):
        return [record["x"] for record in penstock.Dataset(self.path())]

    def parts_of(self, pack):
        return sorted(name for name in os.listdir(pack.place.directory) if name != parts.MARKER)

    def test_one_attempt_at_each_task_in_the_order_of_the_tasks(self):
        with self.pack() as pack:
            place = pickle.loads(pickle.dumps(pack.place))
            done = [place.write(task, samples(10 * task, 10 * task + 10)) for task in (2, 0, 1)]
            place.write(1, samples(10, 20), attempt=1)  # a speculative attempt, whose result nobody takes
            place.write(3, [])
            self.assertEqual(len(self.parts_of(pack)), 5)
            data = pack.commit(done)
        self.assertEqual([record["x"] for record in data], list(range(30)))
        self.assertEqual(self.left(), ["data"])
        self.assertEqual(penstock.Dataset(self.path()).info.n_shards, 3)

    def test_a_sample_that_cannot_be_packed_leaves_no_part(self):
        with self.pack() as pack:
            error = self.assert_says(["task 4: sample 2", "field x"], pack.place.write, 4,
                                     [*samples(0, 2), {"x": "two", "text": ""}])
            self.assertEqual((error.sample, pickle.loads(pickle.dumps(error)).sample), (2, 2))
            self.assertEqual(self.parts_of(pack), [])
        self.assertEqual(self.left(), [])

    def test_images_become_planes_in_the_tasks(self):
        with self.pack({"image": "image", "x": "int64"}) as pack:
            done = [pack.place.write(task, [{"image": image_file(task), "x": task}]) for task in range(2)]
            path = os.path.join(pack.place.directory, done[1].name)
            self.assertEqual(penstock.Dataset(path).fields["image"].field.codec, "planes")
            self.assertLess(penstock.Dataset(path).fields["image"].stored_bytes, len(image_file(1)))
            data = pack.commit(done)
        self.assertEqual(data[1]["image"], image_file(1))

    def test_two_attempts_and_no_samples_are_refused(self):
        with self.pack() as pack:
            done = [pack.place.write(0, samples(0, 3)) for _ in range(2)]
            error = self.assert_says(["task 0 has two", done[0].name, done[1].name], pack.commit, done)
            self.assertIsInstance(error, penstock.SettingsError)
        for found in ([], [0]):
            with self.pack() as pack:
                self.assert_says("no samples", pack.commit, [pack.place.write(task, []) for task in found])
        self.assertEqual(self.left(), [])

    def test_parts_of_another_schema_and_of_another_pack_are_refused(self):
        with self.pack() as pack:
            other = dataclasses.replace(pack.place, schema={"x": penstock.Field("int64")})
            done = [pack.place.write(0, samples(0, 3)), other.write(1, [{"x": 1}])]
            self.assert_says([done[1].name, "field"], pack.commit, done)
        with self.pack() as pack:
            done = pack.place.write(0, samples(0, 3))
            path = os.path.join(pack.place.directory, done.name)
            shutil.rmtree(path)
            with penstock.Writer(path, SCHEMA, part=penstock.Task("f" * 32, "0")) as writer:
                writer.add(samples(0, 1)[0])
            self.assert_says([done.name, "f" * 32, "not of the pack"], pack.commit, [done])
        self.assertEqual(self.left(), [])

    def test_a_folder_that_is_not_shared_is_an_error_that_says_so(self):
        words = ["path: value is ", self.path(), "must be in a folder that all machines mount"]
        with self.pack() as pack:
            other = self.path(".data.parts-00000000")  # another machine has this at the path
            place = dataclasses.replace(pack.place, directory=other, host="driver-7")
            error = self.assert_says([*words, "driver-7", other, "No such file"], place.write, 0, samples(0, 1))
            self.assertIsInstance(error, penstock.SettingsError)
            os.mkdir(other)
            with open(os.path.join(other, parts.MARKER), "x", encoding="utf-8") as file:
                file.write("0" * 32)
            self.assert_says([*words, "another pack"], place.write, 0, samples(0, 1))
            self.assertEqual(os.listdir(other), [parts.MARKER])
            shutil.rmtree(other)
            done = pack.place.write(0, samples(0, 3))  # a part that the driver does not see
            shutil.rmtree(os.path.join(pack.place.directory, done.name))
            self.assert_says([*words, done.name, "task 0", "is not on the driver's machine"], pack.commit, [done])
        self.assertEqual(self.left(), [])

    def test_a_machine_with_another_disk_at_the_path_is_refused(self):
        """The task sees a file system of its own there."""
        code = ("import os, pickle, subprocess, sys\n"
                "subprocess.run(['mount', '-t', 'tmpfs', 'none', sys.argv[1]], check=True)\n"
                "place = pickle.loads(bytes.fromhex(sys.argv[2]))\n"
                "try: place.write(0, [{'x': 1, 'text': ''}])\n"
                "except ValueError as error: print(error, os.listdir(sys.argv[1]))\n")
        if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", self.folder], capture_output=True).returncode:
            self.skipTest("no mount namespace here")
        with self.pack() as pack:
            done = subprocess.run(["unshare", "-rm", sys.executable, "-c", code, self.folder,
                                   pickle.dumps(pack.place).hex()], capture_output=True, text=True)
            self.assertIn("must be in a folder that all machines mount", done.stdout, done.stderr)
            self.assertTrue(done.stdout.strip().endswith("[]"), done.stdout)

    def test_another_version_of_the_package_is_refused(self):
        with self.pack() as pack:
            place = dataclasses.replace(pack.place, version="0.0.1")
            self.assert_says(["must be 0.0.1, as on the driver's", "pip install"], place.write, 0, [])

    def test_a_pack_that_cannot_succeed_is_refused_before_a_task_runs(self):
        with penstock.Writer(self.path(), SCHEMA) as writer:
            writer.add(samples(7, 8)[0])
        self.assert_says("overwrite=True", self.pack)
        for settings, words in ((dict(shard_size=1), "shard_size"), (dict(damaged="x"), "damaged")):
            self.assert_says(words, self.pack, overwrite=True, **settings)
        with self.pack(overwrite=True) as pack:
            self.assertIsInstance(self.assert_says("another writer", self.pack, overwrite=True), penstock.DataSetBusyError)
            self.assertEqual(self.numbers(), [7])
            pack.commit([pack.place.write(0, samples(0, 2))])
        self.assertEqual(self.numbers(), [0, 1])
        self.assertEqual(self.left(), ["data"])

    def test_a_driver_that_is_killed_leaves_the_old_data_set_and_the_next_cleans_up(self):
        code = ("import os, signal, sys\n"
                "from penstock.packing.cluster import ClusterPack, WriterSettings\n"
                "pack = ClusterPack(sys.argv[1], {'x': 'int64', 'text': 'utf8'}, WriterSettings(overwrite=True), '')\n"
                "pack.place.write(0, [{'x': 9, 'text': ''}])\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n")
        with penstock.Writer(self.path(), SCHEMA) as writer:
            writer.add(samples(7, 8)[0])
        self.assertEqual(subprocess.run([sys.executable, "-c", code, self.path()]).returncode, -signal.SIGKILL)
        self.assertEqual(self.numbers(), [7])
        self.assertEqual(len(self.left()), 2)
        with self.pack(overwrite=True) as pack:
            self.assertEqual(self.left(), sorted([os.path.basename(pack.place.directory), "data"]))
            pack.commit([pack.place.write(0, samples(0, 2))])
        self.assertEqual((self.left(), self.numbers()), (["data"], [0, 1]))

    def test_an_attempt_that_is_still_at_work_at_the_end_leaves_nothing(self):
        """It writes while the driver removes: its directory goes, and it fails."""
        for began in (True, False):
            with self.pack(overwrite=True) as pack:
                def slow():
                    yield from samples(0, 2)
                    pack.commit([done])
                    yield from samples(2, 4)
                done = pack.place.write(0, samples(0, 2))
                if began:
                    self.assert_says("No such file", pack.place.write, 1, slow())
                else:
                    pack.commit([done])
                    self.assert_says("A task whose pack has ended", pack.place.write, 1, samples(0, 1))
            self.assertEqual((self.left(), self.numbers()), (["data"], [0, 1]))

    def test_a_driver_that_forgets_it_leaves_nothing(self):
        code = ("import sys\n"
                "from penstock.packing.cluster import ClusterPack, WriterSettings\n"
                "pack = ClusterPack(sys.argv[1], {'x': 'int64', 'text': 'utf8'}, WriterSettings(), '')\n"
                "pack.place.write(0, [{'x': 9, 'text': ''}])\n")
        done = subprocess.run([sys.executable, "-c", code, self.path()], capture_output=True, text=True)
        self.assertEqual((done.returncode, self.left()), (0, []), done.stderr)

    def test_a_link_to_the_data_set_is_followed(self):
        os.mkdir(self.path("there"))
        os.symlink(self.path("there/data"), self.path())
        with self.pack() as pack:
            self.assertEqual(os.path.dirname(pack.place.directory), os.path.realpath(self.path("there")))
            pack.commit([pack.place.write(0, samples(0, 2))])
        self.assertEqual((self.left(), os.listdir(self.path("there"))), (["data", "there"], ["data"]))


if __name__ == "__main__":
    unittest.main()
