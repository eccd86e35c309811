# SPDX-License-Identifier: Apache-2.0
"""A data set for tests of penstock.python, loaders on it, and a look at their processes. Needs NumPy."""
import gc
import os
import pathlib
import tempfile
import time
import unittest

import numpy

import penstock
from penstock import python

N = 40


def children(of=None):
    """Numbers of processes of penstock.python below a process."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes()
        except (OSError, IndexError, ValueError):
            continue
        if parent == (of or os.getpid()) and b"_worker.py" in command:
            found.append(int(entry.name))
    return found


def is_alive(pid):
    try:
        return (pathlib.Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = cls.folder.name + "/set"
        random = numpy.random.default_rng(1)
        cls.arrays = random.integers(0, 256, (N, 3, 4, 6), dtype=numpy.uint8)
        cls.arrays[:, 0, 0, 0] = numpy.arange(N)
        penstock.pack(({"a": cls.arrays[i], "s": i * 0.5, "t": "x" * i, "v": numpy.arange(i, dtype="int32"),
                        "w": numpy.arange(2 * i, dtype="int16").reshape(i, 2, 1)[:, :1 + i % 2],
                        "img": numpy.repeat(cls.arrays[i].transpose(1, 2, 0), 1 + i % 3, axis=1)}
                       for i in range(N)), cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tearDown(self):
        gc.collect()
        self.assertEqual(children(), [])

    def loader(self, outputs, **more):
        if isinstance(outputs, penstock.Output):
            outputs = {"x": outputs}
        settings = {"batch_size": 8, "framework": "numpy", "shuffle": False, "last_batch": "short", **more}
        return penstock.Loader(self.path, outputs=outputs, **settings)

    def rows(self, outputs, **more):
        with self.loader(outputs, **more) as loader:
            return numpy.concatenate([batch["x"].copy() for batch in loader])

    def of_arrays(self, function, **more):
        return python(function, "a", shape=(3, 4, 6), dtype="uint8", **more)
