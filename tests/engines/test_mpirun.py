# SPDX-License-Identifier: Apache-2.0
"""mpirun of Open MPI: mpi4py knows the same ranks, and processes that it binds keep their cores."""
import json
import os
import pathlib
import shutil
import sys
import unittest

import sets
from data_fixture import optional
from engine import EPOCH, EngineCase, environment, run

optional("mpi4py")
if not shutil.which("mpirun"):
    raise unittest.SkipTest("missing: mpirun (apt-get install openmpi-bin)")
# Processes find each other on this machine alone, and may be more than cores.
MPIRUN = ["mpirun", "--allow-run-as-root", "--mca", "btl", "self,vader", "--mca", "plm", "isolated"]


class Epoch(EngineCase):
    def check(self, world, *words, inner=()):
        run([*MPIRUN, *words, "-n", str(world), *inner, sys.executable, EPOCH, sets.scalars(), self.out, "mpi"])
        seen = self.check_epoch(world, "Open MPI")
        for rank, one in enumerate(seen):
            self.assertEqual(one["mpi"], [rank, world])
            self.assertEqual((one["ranks"]["local_rank"], one["ranks"]["local_world"]), (rank, world))
        return seen

    def test_processes_without_cores_of_their_own(self):
        for one in self.check(3, "--oversubscribe", "--bind-to", "none"):
            self.assertFalse(one["ranks"]["is_bound"])

    def test_processes_that_are_bound(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one core")
        for one in self.check(2, "--bind-to", "core"):
            self.assertLess(one["cores"], len(os.sched_getaffinity(0)))
            self.assertTrue(one["ranks"]["is_bound"])

    def test_torchrun_inside_of_mpirun(self):
        optional("torch")
        run([*MPIRUN, "-n", "1", sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", EPOCH,
             sets.scalars(), self.out])
        self.check_epoch(2, "torchrun")


class Command(EngineCase):
    def each(self, world, *words):
        """Return the JSON that each of the command's processes printed, by rank."""
        into = 'exec "$@" > "$0/$OMPI_COMM_WORLD_RANK.json"'  # mpirun mixes lines that are long
        run([*MPIRUN, "--oversubscribe", "--bind-to", "none", "-n", str(world), "sh", "-c", into, self.out,
             os.environ["PENSTOCK_COMMAND"], *words, "--json"])
        return [json.loads(pathlib.Path(self.out, f"{rank}.json").read_text()) for rank in range(world)]

    def test_order_and_bench_have_a_part_each(self):
        line = [sets.scalars(), "--rank", "auto", "--global-batch-size", "24"]
        orders = self.each(3, "order", *line)
        together = [sorted(sum(rows, [])) for rows in zip(*(one["batches"] for one in orders))]
        alone = json.loads(run([os.environ["PENSTOCK_COMMAND"], "order", sets.scalars(), "--batch-size", "24", "--json"]))
        self.assertEqual(together, [sorted(batch) for batch in alone["batches"]])
        seen = self.each(3, "bench", *line, "--epochs", "1", "--no-ceilings")
        self.assertEqual([(one["rank"], one["world"], one["local_rank"], one["local_world"], one["source"]) for one in seen],
                         [(rank, 3, rank, 3, "Open MPI") for rank in range(3)])
        for one in seen:
            self.assertEqual((one["samples"], one["batch_size"]), (8 * alone["n_batches"], 8))
            self.assertEqual(one["threads"], 1 if len(os.sched_getaffinity(0)) < 6 else one["threads"])

    def test_pack_makes_a_part_each(self):
        source, parts = self.images(), os.path.join(self.out, "parts")
        for rank, one in enumerate(self.each(3, "pack", source, parts, "--part", "auto")):
            self.assertEqual((one["part"], one["n_parts"], one["source"]), (rank, 3, "Open MPI"))
        self.check_parts(source, parts, 3)


if __name__ == "__main__":
    unittest.main()
