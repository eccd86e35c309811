# SPDX-License-Identifier: Apache-2.0
"""Observe.monitor_path: where a loader has the file that `penstock top` asks, and what becomes of it."""
import json
import os
import subprocess
import tempfile
import unittest
from unittest import mock

import sets
import penstock
from penstock import SettingsError, status_files


def loader(**keywords):
    return penstock.Loader(sets.scalars(), **{"batch_size": 10, "framework": "dlpack", **keywords})


class TestStatusFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        change = mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": folder.name})
        change.start()
        self.addCleanup(change.stop)
        self.folder = os.path.join(folder.name, "penstock")

    def top(self):
        command = os.environ.get("PENSTOCK_COMMAND")
        if not command:
            self.skipTest("missing: PENSTOCK_COMMAND")
        return json.loads(subprocess.run([command, "top", "--once", "--json"], check=True, timeout=60,
                                         stdout=subprocess.PIPE).stdout)

    def test_each_loader_has_a_file_until_it_is_closed(self):
        with loader() as first, loader(ranks=penstock.Ranks(1, 2)) as second:
            self.assertEqual(len(os.listdir(self.folder)), 2)
            self.assertEqual(os.stat(self.folder).st_mode & 0o777, 0o700)
            next(iter(first))
            seen = self.top()
            self.assertEqual(seen["folder"], status_files.folder())
            found = {entry["rank"]: entry for entry in seen["loaders"]}
            self.assertEqual({entry["pid"] for entry in seen["loaders"]}, {os.getpid()})
            self.assertEqual((found[0]["n_batches"], found[1]["n_batches"], found[1]["world"]), (1, 0, 2))
            second.close()
            self.assertEqual(len(os.listdir(self.folder)), 1)
        self.assertEqual(os.listdir(self.folder), [])

    def test_top_knows_nothing_of_a_loader_that_was_not_asked_for_a_batch(self):
        with loader():
            seen, = self.top()["loaders"]
        self.assertEqual((seen["cores"], seen["bottleneck"], seen["bottleneck_since"]), (None, "unknown", None))

    def test_false_makes_none_and_a_path_names_it(self):
        with loader(observe=penstock.Observe(monitor_path=False)):
            self.assertFalse(os.path.exists(self.folder))
        path = os.path.join(os.environ["XDG_RUNTIME_DIR"], "mine")
        with loader(observe=penstock.Observe(monitor_path=path)):
            self.assertEqual(os.stat(path).st_size, 4096)
            self.assertFalse(os.path.exists(self.folder))
        self.assertFalse(os.path.exists(path))

    def test_a_child_of_fork_leaves_the_file_to_its_parent(self):
        with loader() as data:
            child = os.fork()
            if child == 0:
                try:
                    data.close()
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            self.assertEqual(len(os.listdir(self.folder)), 1)
            self.assertEqual(self.top()["loaders"][0]["state"], "running")

    def test_wrong_paths_are_refused_and_a_wrong_folder_gives_none(self):
        for path, kind, text in (("", SettingsError, "value is empty"), (True, TypeError, "value is a bool"),
                                 ("/nonexistent/status", SettingsError, "in a folder that exists"),
                                 (__file__, SettingsError, "is not the status file of a loader")):
            with self.subTest(path=path), self.assertRaisesRegex(kind, "monitor_path: .*" + text):
                loader(observe=penstock.Observe(monitor_path=path))
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o777)  # others could put files there
        with loader():
            self.assertEqual(os.listdir(self.folder), [])

    def test_without_a_runtime_folder_it_is_in_tmp(self):
        for value in "", "relative":
            with mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": value}):
                self.assertEqual(status_files.folder(), f"/tmp/penstock-{os.geteuid()}")


if __name__ == "__main__":
    unittest.main()
