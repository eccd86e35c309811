# SPDX-License-Identifier: Apache-2.0
"""The parts that the tests of launchers share: they run epoch.py, and compare what its processes saw with one process."""
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import sets
import template

HERE = pathlib.Path(__file__).resolve().parent
EPOCH = str(HERE / "epoch.py")
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "SLURM", "OMPI", "PMI", "MV2", "RAY")


def environment():
    """This process's, without what a launcher may have set, and with as few threads as processes have cores."""
    found = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    return {**found, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}


def run(command, env=None, timeout=300, **keywords):
    """Run a command; what it printed, or AssertionError with that."""
    done = subprocess.run([str(word) for word in command], env=env or environment(), text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, **keywords)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


@functools.lru_cache(None)
def alone(kind=""):
    """Return what one process sees."""
    with tempfile.TemporaryDirectory() as out:
        one = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
        python = template.python(*template.TRAINING) if kind == "gloo" else sys.executable
        run([python, EPOCH, sets.scalars(), out, kind], {**environment(), **(one if kind else {})})
        return json.loads(pathlib.Path(out, "0.json").read_text())


class EngineCase(unittest.TestCase):
    def setUp(self):
        self.out = tempfile.mkdtemp(prefix="penstock-engine-")
        self.addCleanup(shutil.rmtree, self.out, True)

    def images(self):
        """Return a folder of 9 images."""
        folder = pathlib.Path(self.out, "images")
        run([os.environ["PENSTOCK_MAKE_IMAGES"], "9", folder])
        return str(folder)

    def check_parts(self, source, parts, n):
        """The folder has n parts, which merge to what one pack of the source makes."""
        paths = sorted(pathlib.Path(parts).iterdir())
        self.assertEqual([path.name for path in paths], [f"part-{i:05}-of-{n:05}" for i in range(n)])
        command, joined, whole = os.environ["PENSTOCK_COMMAND"], f"{parts}-joined", f"{parts}-whole"
        run([command, "merge", *paths, joined])
        run([command, "pack", source, whole])
        told = [json.loads(run([command, "info", name, "--json"])) for name in (joined, whole)]
        self.assertEqual([one["n_samples"] for one in told], [9, 9])
        self.assertEqual(told[0]["identity"], told[1]["identity"])

    def check_epoch(self, world, source, kind=""):
        """Compare what the processes of epoch.py left: coverage, equal counts, the global batches. Returns it."""
        found = sorted(pathlib.Path(self.out).glob("*.json"), key=lambda path: int(path.stem))
        self.assertEqual([path.name for path in found], [f"{rank}.json" for rank in range(world)])
        seen = [json.loads(path.read_text()) for path in found]
        wanted = alone(kind)
        self.assertEqual([(one["ranks"]["rank"], one["ranks"]["world"], one["ranks"]["source"]) for one in seen],
                         [(rank, world, source) for rank in range(world)])
        for name in ("length", "weight"):
            for one in seen:
                if name == "weight" and kind:
                    self.assertAlmostEqual(one[name], wanted[name], places=4)
                else:
                    self.assertEqual(one[name], wanted[name])
        ids = [sample for one in seen for batch in one["batches"] for sample in batch["ids"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(len(ids), wanted["length"] * 24)
        self.assertEqual(sorted(ids), sorted(sample for batch in wanted["batches"] for sample in batch["ids"]))
        together = [sorted(row for rows in batches for row in rows) for batches in zip(*(one["rows"] for one in seen))]
        self.assertEqual(together, [sorted(rows) for rows in wanted["rows"]])
        return seen
